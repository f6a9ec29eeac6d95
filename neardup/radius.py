"""From the similarity that a user wants to the radius that finds it.

The distance of two documents with cosine s is binomial: each bit differs with probability
acos(s) / pi. The radius is the smallest that holds the wanted share of such pairs.
"""

from __future__ import annotations

import math
from typing import Final

from neardup.checks import check_share

# Keys of sampled bits are no narrower where sampling is worth its while.
KEY: Final = 8


def radius_for(similarity: float, recall: float, bits: int) -> int:
    """The radius within which a pair of that similarity lies with probability *recall*.

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
    for distance in range(bits + 1):
        found += math.comb(bits, distance) * differ**distance * (1 - differ) ** (bits - distance)
        if found >= recall:
            return distance
    return bits


def recall_at(radius: int, similarity: float, recall: float, bits: int) -> float:
    """The recall that a join needs at the radius to find *recall* of all pairs of that similarity within it.

    Sampled bits find nearer pairs more often, the wider their keys are, and most pairs are nearer than the
    radius.

    >>> recall_at(84, 0.64, 0.99, 256)
    0.95
    """
    differ = math.acos(check_share("similarity", similarity)) / math.pi
    counts = [math.comb(bits, far) * differ**far * (1 - differ) ** (bits - far) for far in range(radius + 1)]
    seen = [
        math.prod(max(0, bits - far - at) / (bits - at) for at in range(min(KEY, bits)))
        for far in range(radius + 1)
    ]
    if not 0 < seen[-1] < 1:
        return recall
    for percent in range(50, 100):
        tables = math.log(1 - percent / 100) / math.log(1 - seen[-1])
        found = sum(count * (1 - (1 - chance) ** tables) for count, chance in zip(counts, seen, strict=True))
        if found >= recall * sum(counts):
            return min(percent / 100, recall)
    return recall
