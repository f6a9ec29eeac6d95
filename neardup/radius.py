"""From the similarity that a user wants to the radius that finds it.

The distance of two documents with cosine s is binomial: each bit differs with probability
acos(s) / pi. The radius is the smallest that holds the wanted share of such pairs.
"""

from __future__ import annotations

import math

from neardup.checks import check_share


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
