"""Graded edits: copies of a document that differ from it by a known kind and amount of change.

Calibration plants them in a collection to see which ones are found. Numbers are left alone: a
document with other numbers is another document (docs/quality.md), whatever else is equal.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from neardup import cjk

# A word, or one character of a script without spaces: what verification counts as words.
_WORD: Final = re.compile(rf"[{cjk.CLASS}]|[^\W{cjk.CLASS}]+")
_PARTS: Final = (re.compile(r"(?<=\n)\s*\n"), re.compile(r"(?<=\n)"), re.compile(r"(?<=[.!?。！？])\s*"))
_CONFUSED: Final = {
    "a": "o", "b": "h", "c": "e", "e": "c", "f": "t", "g": "q", "h": "b", "i": "l", "l": "i", "m": "rn",
    "n": "ri", "o": "c", "q": "g", "r": "n", "s": "z", "t": "f", "u": "v", "v": "y", "w": "vv", "y": "v",
}  # fmt: skip
FEWEST_WORDS: Final = 8


class Vocabulary:
    """Words of a collection, to put in the place of others; each as likely as it is common there."""

    def __init__(self, texts: Sequence[str], most: int = 200_000) -> None:
        self.words: list[str] = []
        self.characters: list[str] = []
        for text in texts:
            for found in _WORD.finditer(text):
                word = found[0]
                if not _has_digit(word):
                    (self.characters if cjk.is_cjk(word[0]) else self.words).append(word)
            if len(self.words) + len(self.characters) >= most:
                break

    def other(self, word: str, chance: random.Random) -> str:
        """A word for the place of *word*, of the same kind; itself if there is no other."""
        pool = self.characters if cjk.is_cjk(word[0]) else self.words
        for _ in range(4):
            found = chance.choice(pool) if pool else word
            if found != word:
                return found
        return word


@dataclass(frozen=True, slots=True)
class Edit:
    """A kind of change and how much of the document it touches, in per cent."""

    kind: str
    percent: int

    @property
    def name(self) -> str:
        """Its name in tables: `words 10 %`."""
        return f"{self.kind} {self.percent} %"


Change = Callable[[str, float, Vocabulary, str, random.Random], str]


def replace_words(text: str, share: float, vocabulary: Vocabulary, donor: str, chance: random.Random) -> str:
    """That share of the words replaced by words of the collection, anywhere."""
    places = [found.span() for found in _WORD.finditer(text) if not _has_digit(found[0])]
    chosen = chance.sample(places, min(len(places), max(1, round(share * len(places)))))
    return _spliced(text, [(at, end, vocabulary.other(text[at:end], chance)) for at, end in sorted(chosen)])


def move_parts(text: str, share: float, vocabulary: Vocabulary, donor: str, chance: random.Random) -> str:
    """Paragraphs (or lines, or sentences) of about that share of the text moved elsewhere."""
    for cut in _PARTS:
        parts = [part for part in cut.split(text) if part.strip()]
        if len(parts) >= 3:
            break
    else:
        return text
    count = max(1, round(share * len(parts)))
    moved = sorted(chance.sample(range(len(parts)), min(count, len(parts) - 1)))
    rest = [part for at, part in enumerate(parts) if at not in set(moved)]
    for at in moved:
        rest.insert(chance.randrange(len(rest) + 1), parts[at])
    between = "\n\n" if cut is _PARTS[0] else "" if cut is _PARTS[1] else " "
    return between.join(rest)


def truncate(text: str, share: float, vocabulary: Vocabulary, donor: str, chance: random.Random) -> str:
    """The end cut off."""
    places = [found.end() for found in _WORD.finditer(text)]
    kept = max(1, round((1 - share) * len(places)))
    return text[: places[kept - 1]] if places else text


def swap_frame(text: str, share: float, vocabulary: Vocabulary, donor: str, chance: random.Random) -> str:
    """The first and the last words exchanged for those of another document: other page furniture."""
    places, theirs = ([found.span() for found in _WORD.finditer(one)] for one in (text, donor))
    count = max(1, round(share * len(places) / 2))
    if len(places) <= 2 * count or not theirs:
        return text
    head = donor[theirs[0][0] : theirs[min(count, len(theirs)) - 1][1]]
    tail = donor[theirs[max(0, len(theirs) - count)][0] : theirs[-1][1]]
    body = text[places[count][0] : places[-count - 1][1]]
    return f"{head}\n{body}\n{tail}"


def misread(text: str, share: float, vocabulary: Vocabulary, donor: str, chance: random.Random) -> str:
    """That share of the letters misread or lost, as in a poor scan."""
    letters = []
    for letter in text:
        if not letter.isalpha() or chance.random() >= share:
            letters.append(letter)
        elif cjk.is_cjk(letter):
            letters.append(vocabulary.other(letter, chance))
        elif chance.random() < 0.15:
            continue
        else:
            letters.append(_CONFUSED.get(letter.lower(), letter))
    return "".join(letters)


CHANGES: Final[dict[str, Change]] = {
    "words": replace_words,
    "moved": move_parts,
    "cut": truncate,
    "frame": swap_frame,
    "misread": misread,
}
EDITS: Final = (
    *(Edit("words", percent) for percent in (1, 2, 5, 10, 15, 20, 30, 50)),
    *(Edit("moved", percent) for percent in (10, 30)),
    *(Edit("cut", percent) for percent in (10, 20, 40)),
    *(Edit("frame", percent) for percent in (10, 20)),
    *(Edit("misread", percent) for percent in (1, 3, 8)),
)


def edited(text: str, edit: Edit, vocabulary: Vocabulary, donor: str, chance: random.Random) -> str:
    """A copy of *text* changed that way; *donor* is another document of the collection.

    >>> words = Vocabulary(["some other words to take"])
    >>> edited("one two three four five six seven", Edit("cut", 30), words, "", random.Random(1))
    'one two three four five'
    """
    return CHANGES[edit.kind](text, edit.percent / 100, vocabulary, donor, chance)


def word_count(text: str) -> int:
    """How many words a text has, as verification counts them."""
    return sum(1 for _ in _WORD.finditer(text))


def _spliced(text: str, changes: Sequence[tuple[int, int, str]]) -> str:
    parts, last = [], 0
    for at, end, word in changes:
        parts += [text[last:at], word]
        last = end
    return "".join([*parts, text[last:]])


def _has_digit(word: str) -> bool:
    return any(letter.isdigit() for letter in word)
