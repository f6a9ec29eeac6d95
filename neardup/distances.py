"""Distance: the bits in which two fingerprints differ; similarity: the cosine it speaks for."""

from __future__ import annotations

import math

from neardup.errors import InvalidType, InvalidValue
from neardup.fingerprints import check_bits


def distance(left: int, right: int) -> int:
    """How many bits differ.

    >>> distance(0b1010, 0b1011)
    1
    """
    for value in (left, right):
        if isinstance(value, bool) or not hasattr(value, "__index__"):
            raise InvalidType(f"a fingerprint must be an integer, not {value!r}")
        if value < 0:
            raise InvalidValue(f"a fingerprint cannot be negative: {value}")
    return (left.__index__() ^ right.__index__()).bit_count()


def similarity(distance: float, bits: int) -> float:
    """The cosine that a distance estimates: cos(pi x distance / bits).

    >>> similarity(0, 64), round(similarity(3, 64), 3), round(similarity(32, 64), 3)
    (1.0, 0.989, 0.0)
    """
    check_bits(bits)
    if isinstance(distance, bool) or not isinstance(distance, (int, float)):
        raise InvalidType(f"distance must be a number, not {distance!r}")
    if not 0 <= distance <= bits:
        raise InvalidValue(f"distance must be from 0 to {bits}, not {distance}")
    return math.cos(math.pi * distance / bits)
