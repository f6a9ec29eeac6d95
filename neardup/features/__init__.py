"""From the text of a document to weighted features. To add a part, write it in the core and add its line.

The core does the work (src/text/normalize/mod.rs, src/text/features/mod.rs, src/recipe/mod.rs);
`neardup.naive` says the same in plain Python.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from neardup.errors import InvalidValue, shown
from neardup.features.ballots import ABSTAIN, SIMHASH_1, SIMHASH_2, Ballot
from neardup.features.shingles import char_shingles, clean_set, tokens, word_shingles
from neardup.registry import Registry, plain_number

MAX_RUN = 64


@dataclass(frozen=True, slots=True)
class Part:
    """A named step on the way to features."""

    name: str
    summary: str
    cut: Callable[[str], list[str]] | None = None
    """Features that are cut here and not in the core."""
    ballot: Ballot | None = None
    """Weights that are summed here and not in the core."""


def _rows(kind: str, rows: dict[str, str], ballots: Mapping[str, Ballot] | None = None) -> Registry[Part]:
    parts = [Part(name, summary, ballot=(ballots or {}).get(name)) for name, summary in rows.items()]
    return Registry(kind, {part.name: lambda part=part: part for part in parts})


NORMALIZATIONS = _rows(
    "normalisation",
    {
        "none": "the text as it is",
        "lower": "full Unicode lower case",
        "text": "format characters removed, NFKC, lower case, runs of other than word characters one space; "
        "a combining mark belongs to the word it follows",
        "prose": "as text, after scripts, styles, addresses and the targets of links were left out",
        "word-chars": "lower case, word characters only, nothing between them",
        "ascii-words": "lower case, ASCII words of two letters or more, one space between them",
        "unicode-words": "lower case, Unicode words, one space between them; every CJK character is a word",
    },
)

WEIGHTS = _rows(
    "weights",
    {
        "count": "every occurrence of a feature votes",
        "set": "every different feature votes once",
        "log": "every different feature votes bit_length(occurrences) times",
        "log-df": "as log, times a weight that falls with the feature's document frequency: 32 up to "
        "max(16, isqrt(documents) // 3) documents, less by a factor sqrt(2) a doubling, 0 for a feature "
        "of one document; without a fitted table the same as log",
        "log-df-open": "as log-df, for documents that the table did not count: a feature that it does not "
        "know, or that one document had, weighs 32",
        "simhash-2": "as count; given weights as simhash 2.x has them: a plain feature repeats the weight "
        "before it, a negative integer only lowers the total, other numbers are added in float64",
        "simhash-1": "as count; given weights as simhash 1.x has them: numbers are added in float64",
        "abstain": "as count; the zeros before the first 1 of a hash do not vote",
    },
    {"simhash-2": SIMHASH_2, "simhash-1": SIMHASH_1, "abstain": ABSTAIN},
)


def _counted(name: str, summary: str) -> Callable[[str], Part]:
    def part(argument: str) -> Part:
        number = plain_number(argument, 1, MAX_RUN)
        if number is None:
            given = shown(f"{name}:{argument}")
            raise InvalidValue(f"features {given}: write {name}:N with N from 1 to {MAX_RUN}")
        return Part(f"{name}:{number}", summary.replace("N", argument))

    return part


def _shingles(name: str, summary: str, cut: Callable[..., list[str]]) -> Callable[[str], Part]:
    def part(argument: str) -> Part:
        count, _, clean = argument.partition(":")
        if not count.isascii() or not count.isdigit():
            raise InvalidValue(f"features '{name}:{argument}': write {name}:N or {name}:N:CLEAN")
        characters = clean_set(clean)
        return Part(
            f"{name}:{argument}",
            summary.replace("N", count) + (f" after removing {characters}" if characters else ""),
            lambda text: cut(text, int(count), characters),
        )

    return part


FEATURES: Registry[Part] = Registry(
    "features",
    {
        "chars": _counted("chars", "every run of N characters; a shorter text is one feature"),
        "words": _counted("words", "every run of N words; fewer words are one feature"),
        "mixed": _counted(
            "mixed",
            "words, CJK characters, pairs of CJK characters, and runs of N other characters, "
            "each kind with a hash of its own",
        ),
        # For compatibility, cut in Python.
        "tokens": lambda: Part("tokens", "what is between white space, as the HTM encoder splits", tokens),
        "pbtk-chars": _shingles("pbtk-chars", "runs of N characters as pbtk cuts them", char_shingles),
        "pbtk-words": _shingles("pbtk-words", "runs of N words as pbtk cuts them", word_shingles),
        "vector": lambda: Part("vector", "the numbers of a vector, such as an embedding"),
        "picture": lambda: Part("picture", "the grey levels of an image made small"),
    },
)
