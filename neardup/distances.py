"""Distance: the bits in which two fingerprints differ; similarity: the cosine it speaks for."""

from __future__ import annotations

import math
import numbers

from neardup.checks import whole
from neardup.errors import InvalidType, InvalidValue, shown
from neardup.fingerprints import check_bits


def distance(left: int, right: int) -> int:
    """How many bits differ.

    >>> distance(0b1010, 0b1011)
    1
    """
    return (whole("a fingerprint", left, 0) ^ whole("a fingerprint", right, 0)).bit_count()


def similarity(distance: float, bits: int) -> float:
    """The cosine that a distance estimates: cos(pi x distance / bits).

    >>> similarity(0, 64), round(similarity(3, 64), 3), round(similarity(32, 64), 3)
    (1.0, 0.989, 0.0)
    """
    check_bits(bits)
    if isinstance(distance, bool) or not isinstance(distance, numbers.Real):
        raise InvalidType(f"distance must be a number, not {shown(distance)}")
    if not 0 <= distance <= bits:
        raise InvalidValue(f"distance must be from 0 to {bits}, not {shown(distance)}")
    return math.cos(math.pi * float(distance) / bits)
