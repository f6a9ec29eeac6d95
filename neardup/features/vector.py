"""Vectors to fingerprints: the signs of seeded random projections.

Vectors are scaled to integers and projections are integers, so that every sum is exact in
64-bit floats: no machine, thread count or order of additions can change a bit.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from neardup.errors import InvalidType, InvalidValue, LimitReached

_STEPS = 1 << 20  # the largest number of a vector becomes this integer
_MAX_NUMBERS = 1 << 22  # 2**20 x 2**11 x 2**22 stays below 2**53
_MAX_CELLS = 1 << 28  # of a matrix of projections: 2 GB
_BATCH = 4096


@lru_cache(maxsize=8)
def projections(numbers: int, bits: int, seed: int) -> npt.NDArray[np.float64]:
    """A matrix of small integers, close to normally distributed, decided by its three arguments."""
    with np.errstate(over="ignore"):
        cell = np.arange(numbers * bits, dtype=np.uint64) + np.uint64(seed) * np.uint64(0xD1B54A32D192ED03)
        cell *= np.uint64(0x9E3779B97F4A7C15)
        cell = (cell ^ (cell >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        cell = (cell ^ (cell >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        cell ^= cell >> np.uint64(31)
    # Eight bytes added up are all but normal, and stay integers.
    total = cell.view(np.uint8).reshape(-1, 8).sum(axis=1, dtype=np.int64) * 2 - 8 * 255
    return np.asarray(total.reshape(numbers, bits), dtype=np.float64)


def fingerprint_vectors(
    vectors: Any, bits: int, seed: int
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.bool_]]:
    """Words and validity of the fingerprints of a two-dimensional array; a zero vector has none.

    >>> words, valid = fingerprint_vectors([[1.0, 2.0], [2.0, 4.0], [0.0, 0.0]], bits=64, seed=0)
    >>> bool(words[0, 0] == words[1, 0]), valid.tolist()
    (True, [True, True, False])
    """
    try:
        given = np.asarray(vectors)
        if given.dtype.kind not in "fiubO":
            raise TypeError
        block = given.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InvalidType(
            f"vectors must be a two-dimensional array of numbers, not {type(vectors).__name__}"
        ) from None
    if block.ndim != 2 or not 1 <= block.shape[1] <= _MAX_NUMBERS:
        raise InvalidValue(
            f"vectors must have shape (n, numbers) with 1 to {_MAX_NUMBERS} numbers, not {block.shape}"
        )
    if block.shape[1] * bits > _MAX_CELLS:
        raise LimitReached(
            f"{block.shape[1]} numbers times {bits} bits need more than {_MAX_CELLS} projections; "
            "ask for fewer bits"
        )
    words = np.zeros((len(block), (bits + 63) // 64), dtype=np.uint64)
    valid = np.zeros(len(block), dtype=bool)
    matrix = projections(block.shape[1], bits, seed)
    for begin in range(0, len(block), _BATCH):
        part = block[begin : begin + _BATCH]
        if not np.isfinite(part).all():
            row = begin + int(np.argmin(np.isfinite(part).all(axis=1)))
            raise InvalidValue(f"vector {row} holds a number that is not finite; leave it out or replace it")
        largest = np.abs(part).max(axis=1)
        end = begin + len(part)
        valid[begin:end] = largest > 0
        scale = np.where(largest > 0, largest, 1.0)[:, None]
        signs = np.rint(part / scale * _STEPS) @ matrix > 0
        packed = np.packbits(signs, axis=1, bitorder="little")
        padded = np.zeros((len(part), words.shape[1] * 8), dtype=np.uint8)
        padded[:, : packed.shape[1]] = packed
        words[begin:end] = padded.view("<u8")
    words[~valid] = 0
    return words, valid
