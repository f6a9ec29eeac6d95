"""Pairs of texts to verdicts, in one call."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from neardup import _native
from neardup.arrays import core_texts
from neardup.checks import check_text, check_threads
from neardup.errors import InvalidType, InvalidValue, shown
from neardup.schemes.model import Scheme
from neardup.verifiers.measures import Measure, counted, measuring_scheme, parse_measure
from neardup.verifiers.reasons import TABLE, code_of
from neardup.verifiers.verdicts import Verdicts
from neardup.verifiers.verifier import Rows, Verifier


def verify(
    pairs: Iterable[tuple[str, str]],
    *,
    measure: str = "default",
    frequencies: Scheme | None = None,
    threads: int | None = None,
) -> Verdicts:
    """Measure pairs of texts, and say for each whether they are near-duplicates, and why.

    The verdicts are those of a run whose documents are these texts and whose candidates are these pairs: the
    texts that one is paired with are its neighbours, and may object. *measure* is what `dedupe` calls
    `verify`. *frequencies* is a fitted scheme, of a collection that holds the texts, which says how common
    their features are; without it the texts themselves are counted. With the measure `preserving` a pair is
    accepted if one of the two, whichever, says nothing that the other lacks.

    >>> text = "one two three four five six seven eight nine ten"
    >>> found = verify([(text, text + " eleven"), (text, "something else"), (text, text.upper())])
    >>> for verdict in found:
    ...     print(verdict.accepted, verdict.reason, round(verdict.similarity, 2))
    True nearly identical 0.94
    False too different 0.0
    True identical but for case, spacing or punctuation 1.0
    """
    by = parse_measure(check_text("measure", measure))
    threads = check_threads(threads)
    if not by.verifies:
        raise InvalidValue(f"measure {measure!r} verifies nothing; name one that does")
    if frequencies is not None and not isinstance(frequencies, Scheme):
        raise InvalidType(f"frequencies must be a fitted Scheme or None, not {shown(frequencies)}")
    table = None if frequencies is None else counted(frequencies)
    return judged_pairs(_checked(pairs), by, table, threads=threads)


def judged_pairs(
    pairs: Iterable[tuple[str, str]],
    measure: Measure,
    frequencies: _native.Frequencies | None,
    *,
    open: bool = False,
    threads: int | None = None,
) -> Verdicts:
    """The verdicts of `verify` on pairs, by any measure; without *frequencies* the texts are counted.

    With *open*, what *frequencies* (or nothing) do not know is counted in the texts.
    """
    number: dict[str, int] = {}
    both = [number.setdefault(text, len(number)) for pair in pairs for text in pair]
    rows = np.array(both, np.int64).reshape(-1, 2)
    array = pa.array([_sound(text) for text in number], pa.large_string())
    own = None if open else _native.Frequencies()
    recipe = measuring_scheme().recipe
    words, informative, _, _ = _native.survey(
        recipe, core_texts(array), own, secrets.token_bytes(32), threads
    )
    # Each text under the number of the first one that reads the same when normalised.
    _, first, of_text = np.unique(words, axis=0, return_index=True, return_inverse=True)
    text = first[of_text.reshape(-1)][rows]

    code = np.full(len(rows), code_of("identical"), np.uint8)
    code[rows[:, 0] != rows[:, 1]] = code_of("spelled")
    code[~informative[rows].all(axis=1)] = code_of("no-information")
    figures = np.zeros((3, len(rows)))
    figures[:, code != code_of("no-information")] = 1.0
    asked = np.flatnonzero((text[:, 0] != text[:, 1]) & informative[rows].all(axis=1))
    unlike, place = np.unique(np.sort(text[asked], axis=1), axis=0, return_inverse=True)
    if len(asked):
        verifier = Verifier(measure, frequencies or own, open=open, threads=threads)
        found = _judged(verifier, unlike, array)
        place = place.reshape(-1)
        code[asked] = found.code[place]
        for column, values in zip(figures, (found.similarity, found.weighted, found.rare), strict=True):
            column[asked] = values[place]
    accepts = np.array([reason.accepts for reason in TABLE])
    return Verdicts(accepts[code], code, *figures)


def _judged(verifier: Verifier, pairs: Rows, texts: pa.Array) -> Verdicts:
    """The verdicts on different pairs of numbers, all there are."""
    numbers = np.unique(pairs)
    verifier.add(numbers, texts.take(pa.array(numbers)))
    left, right = (np.ascontiguousarray(side) for side in pairs.T)
    return verifier.judge_together(left, right)


def _checked(pairs: Any) -> Iterable[tuple[str, str]]:
    """The *pairs*, each of which is two texts."""
    if isinstance(pairs, (str, bytes)) or not isinstance(pairs, Iterable):
        raise InvalidType(f"pairs must be an iterable of pairs of texts, not {shown(pairs)}")
    for row, pair in enumerate(pairs):
        if not isinstance(pair, (tuple, list)) or [isinstance(one, str) for one in pair] != [True, True]:
            raise InvalidType(f"pair {row} must be two texts, (str, str), not {shown(pair)}")
        yield pair[0], pair[1]


def _sound(text: str) -> str:
    """*text* with lone surrogates, which no UTF-8 can hold, as U+FFFD."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
