"""What can be said of a pair in numbers, for a rule that is learned: as the core does it, slow and plain.

All are shares in ten-thousandths, rounded down. A count stands as count / (count + 1).
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import Any

from neardup.naive.judging import WHOLE, Measures, Profile, gaps, only_in

# As many words are the beginning of a text; among as many it names what it is about.
OPENING, FIRST = 12, 24
LONGEST = 16  # doublings of the length


def figures(left: Profile, right: Profile, seen: Measures, *, alone: bool, accepted: bool) -> dict[str, int]:
    """The figures by name, of a pair that the default rule accepts by itself, or not, and among its
    neighbours."""
    ours, theirs = list(left.tokens), list(right.tokens)
    shorter, longer = sorted((len(ours), len(theirs)))
    in_gaps = [(gaps(own, other), len(own)) for own, other in ((ours, theirs), (theirs, ours))]
    edited = sorted(share(sum(runs), words) for runs, words in in_gaps)
    numbers = sorted((len(left.numbers - right.joined), len(right.numbers - left.joined)))
    names = sorted((len(only_in(left, right, FIRST)), len(only_in(right, left, FIRST))))
    shared = len(left.occurs.keys() & right.occurs.keys())
    threes = runs_of(ours, 3), runs_of(theirs, 3)
    return {
        "similarity": seen.plain,
        "weighted": seen.weighted,
        "rare": seen.rare,
        "features": share(shared, left.all + right.all - shared),
        "words": jaccard(set(ours), set(theirs)),
        "pairs": jaccard(runs_of(ours, 2), runs_of(theirs, 2)),
        "triples": jaccard(*threes),
        "contained": share(len(threes[0] & threes[1]), min(map(len, threes)), of_nothing=WHOLE),
        "edited-less": edited[0],
        "edited-more": edited[1],
        "passage": min(share(max(runs, default=0), words) for runs, words in in_gaps),
        "lengths": share(shorter, longer),
        "length": size(shorter),
        "numbers": jaccard(left.numbers, right.numbers),
        "other-numbers": counted(numbers[0]),
        "more-numbers": counted(numbers[1]),
        "opening": share(same_beginning(ours, theirs), min(longer, OPENING)),
        "first-words": jaccard(set(ours[:OPENING]), set(theirs[:OPENING])),
        "other-names": counted(names[0]),
        "more-names": counted(names[1]),
        "ending": share(same_beginning(ours[::-1], theirs[::-1]), min(longer, OPENING)),
        "alone": WHOLE * alone,
        "default": WHOLE * accepted,
    }


def share(part: int, whole: int, *, of_nothing: int = 0) -> int:
    """In ten-thousandths, rounded down.

    >>> share(1, 3), share(0, 0), share(0, 0, of_nothing=10_000)
    (3333, 0, 10000)
    """
    return part * WHOLE // whole if whole else of_nothing


def jaccard(one: Set[Any], other: Set[Any]) -> int:
    """Of all that either has, how much both have; all of it where neither has any.

    >>> jaccard({1, 2}, {2, 3}), jaccard(set(), set())
    (3333, 10000)
    """
    return share(len(one & other), len(one | other), of_nothing=WHOLE)


def counted(count: int) -> int:
    """A count, which has no upper end, as a share.

    >>> [counted(count) for count in range(4)]
    [0, 5000, 6666, 7500]
    """
    return share(count, count + 1)


def runs_of(tokens: Sequence[str], count: int) -> set[tuple[str, ...]]:
    """The runs of *count* neighbouring words."""
    return {tuple(tokens[at : at + count]) for at in range(len(tokens) - count + 1)}


def same_beginning(one: Sequence[str], other: Sequence[str]) -> int:
    """How many of the first words are the same, up to the first that is not.

    >>> same_beginning("the old house".split(), "the old barn".split())
    2
    """
    count = 0
    for ours, theirs in zip(one[:OPENING], other[:OPENING], strict=False):
        if ours != theirs:
            break
        count += 1
    return count


def size(words: int) -> int:
    """How long a text of that many words is, by doublings, with 256 steps each.

    >>> [size(words) for words in (0, 1, 2, 3, 4, 1 << 20)]
    [0, 0, 625, 937, 1250, 10000]
    """
    if not words:
        return 0
    doublings = words.bit_length() - 1
    steps = doublings * 256 + (words - (1 << doublings)) * 256 // (1 << doublings)
    return min(WHOLE, share(steps, LONGEST * 256))
