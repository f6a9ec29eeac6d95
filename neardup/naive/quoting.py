"""What two texts share word by word: every word of one is compared with every word of the other.

A passage is as long as it can be: neither the words before it nor those behind it are the same. One that
lies within a longer one in both texts is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from neardup.naive.judging import tokens_of
from neardup.naive.texts import normalize_text


class Passage(NamedTuple):
    """Words that two texts share: where they begin in each, in words, and how many."""

    own: int
    other: int
    words: int

    def lies_in(self, longer: Passage) -> bool:
        """Whether both sides lie within those of another passage."""
        return all(
            begin <= at and at + self.words <= begin + longer.words
            for at, begin in ((self.own, longer.own), (self.other, longer.other))
        )


def words_of(text: str) -> list[str]:
    """The words of a text, once case, spacing and punctuation are aside; every CJK character is one.

    >>> words_of("To be, or NOT - 漢字")
    ['to', 'be', 'or', 'not', '漢', '字']
    """
    return tokens_of(normalize_text(text))


def shared(own: Sequence[str], other: Sequence[str], least: int) -> list[Passage]:
    """The passages of *least* words or more that two texts have in common.

    >>> shared("a b c d".split(), "x b c d b c".split(), 2)
    [Passage(own=1, other=1, words=3), Passage(own=1, other=4, words=2)]
    """
    # How many words are the same from here on, for every place in one text and every place in the other.
    run = [[0] * (len(other) + 1) for _ in range(len(own) + 1)]
    for one in reversed(range(len(own))):
        for two in reversed(range(len(other))):
            run[one][two] = run[one + 1][two + 1] + 1 if own[one] == other[two] else 0
    found = [
        Passage(one, two, run[one][two])
        for one in range(len(own))
        for two in range(len(other))
        if run[one][two] >= least and not (one and two and own[one - 1] == other[two - 1])
    ]
    return [one for one in found if not any(one.lies_in(longer) for longer in found if longer != one)]


def covered(own: Sequence[str], others: Sequence[Sequence[str]], least: int) -> int:
    """How many words of a text are in passages that it shares with any of the *others*.

    >>> covered("a b c d e".split(), ["b c".split(), "c d".split()], 2)
    3
    """
    passages = [one for other in others for one in shared(own, other, least)]
    return len({place for one in passages for place in range(one.own, one.own + one.words)})
