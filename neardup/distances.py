"""Distance: the bits in which two fingerprints differ; similarity: the cosine it speaks for."""

from __future__ import annotations

import math
import numbers
import operator

from neardup.errors import InvalidType, InvalidValue, shown
from neardup.fingerprints import check_bits


def distance(left: int, right: int) -> int:
    """How many bits differ.

    >>> distance(0b1010, 0b1011)
    1
    """
    return (_fingerprint(left) ^ _fingerprint(right)).bit_count()


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


def _fingerprint(value: object) -> int:
    try:
        if isinstance(value, bool):
            raise TypeError
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise InvalidType(f"a fingerprint must be an integer, not {shown(value)}") from None
    if number < 0:
        raise InvalidValue(f"a fingerprint cannot be negative: {shown(value)}")
    return number
