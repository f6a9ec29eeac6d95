"""From the similarity that a user wants to the radius that finds it.

The distance of two documents with cosine s is binomial: each bit differs with probability
acos(s) / pi. The radius is the smallest that covers the wanted share of such pairs.
"""

from __future__ import annotations

import math
from typing import Final

from neardup.checks import check_share

# Keys of sampled bits are not narrower where sampling pays.
KEY: Final = 8
# A share so far below the largest one that no sum of floats would show it.
NOTHING: Final = 1e-30


def radius_for(similarity: float, recall: float, bits: int) -> int:
    """The radius that covers a pair of that similarity with probability *recall*.

    >>> radius_for(0.64, 0.95, 128), radius_for(1.0, 0.95, 128)
    (44, 0)
    """
    differ = math.acos(check_share("similarity", similarity)) / math.pi
    check_share("recall", recall)
    if recall == 1:
        return bits
    if differ == 0:
        return 0
    found = 0.0
    first, shares = _shares(differ, bits)
    for distance, share in enumerate(shares, first):
        found += share
        if found >= recall:
            return distance
    return bits


def bands_for(similarity: float, recall: float) -> int:
    """How many bands find a pair of that similarity with probability *recall*.

    Two texts of one size with cosine s have in common s / (2 - s) of what either has, and share a band with
    the square of that.

    >>> bands_for(0.64, 0.98), bands_for(0.7, 0.98), bands_for(1.0, 0.98)
    (16, 12, 1)
    """
    check_share("similarity", similarity)
    check_share("recall", recall)
    shared = (similarity / (2 - similarity)) ** 2
    return 1 if shared == 1 else math.ceil(math.log(1 - recall) / math.log(1 - shared))


def _shares(differ: float, bits: int) -> tuple[int, list[float]]:
    """The share of pairs at each distance from a first one on; what is left out on either side is negligible.

    From the most frequent distance outwards, each from the one beside it: no coefficient of a wide
    fingerprint is too large for a float and no power too small, and every machine multiplies in the same way.

    >>> _shares(0.5, 2)
    (0, [0.25, 0.5, 0.25])
    """
    odds = differ / (1 - differ)
    middle = int((bits + 1) * differ)
    below, above = [], [1.0]
    share = 1.0
    for distance in range(middle, 0, -1):
        share *= distance / ((bits - distance + 1) * odds)
        if share < NOTHING:
            break
        below.append(share)
    for distance in range(middle, bits):
        share = above[-1] * ((bits - distance) * odds / (distance + 1))
        if share < NOTHING:
            break
        above.append(share)
    shares = [*reversed(below), *above]
    total = sum(shares)
    return middle - len(below), [share / total for share in shares]


def recall_at(radius: int, similarity: float, recall: float, bits: int) -> float:
    """The recall that a join needs at the radius to find *recall* of all pairs of that similarity within it.

    Sampled bits find nearer pairs more often, the wider their keys are, and most pairs are nearer than the
    radius.

    >>> recall_at(84, 0.64, 0.99, 256)
    0.95
    """
    differ = math.acos(check_share("similarity", similarity)) / math.pi
    first, shares = _shares(differ, bits)

    def chance(far: int) -> float:
        return math.prod(max(0, bits - far - at) / (bits - at) for at in range(min(KEY, bits)))

    least = chance(radius)
    if radius < first or not 0 < least < 1:
        return recall
    seen = [(share, chance(far)) for far, share in enumerate(shares, first) if far <= radius]
    wanted = recall * sum(share for share, _ in seen)
    for percent in range(50, 100):
        tables = math.log(1 - percent / 100) / math.log(1 - least)
        if sum(share * (1 - (1 - one) ** tables) for share, one in seen) >= wanted:
            return min(percent / 100, recall)
    return recall
