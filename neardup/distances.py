"""Distance: the bits in which two fingerprints differ; similarity: the cosine it indicates."""

from __future__ import annotations

import math
import numbers
from typing import Final

import numpy as np
import numpy.typing as npt

from neardup.checks import whole
from neardup.errors import InvalidType, InvalidValue, shown
from neardup.fingerprints import check_bits

# How many bits of a 16-bit number are set.
_COUNTS: Final = (
    np.unpackbits(np.arange(1 << 16, dtype=np.uint16).view(np.uint8)).reshape(-1, 16).sum(1, np.uint8)
)


def distance(left: int, right: int) -> int:
    """How many bits differ.

    >>> distance(0b1010, 0b1011)
    1
    """
    return (whole("a fingerprint", left, 0) ^ whole("a fingerprint", right, 0)).bit_count()


def distances(one: npt.NDArray[np.uint64], other: npt.NDArray[np.uint64]) -> npt.NDArray[np.int32]:
    """The same for each row of two arrays of words, one fingerprint a row.

    >>> distances(np.array([[5, 0], [3, 3]], np.uint64), np.array([[4, 0], [3, 0]], np.uint64)).tolist()
    [1, 2]
    """
    found: npt.NDArray[np.int32] = _COUNTS[(one ^ other).view(np.uint16)].sum(axis=1, dtype=np.int32)
    return found


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
