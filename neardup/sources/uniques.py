"""Ids that were met before, in about 40 bytes an id.

A 64-bit and a 32-bit hash of each id stand in an open table, with its place. Two different ids
are taken for one with odds of about 1 in 10^11 for a billion of them; the 64-bit hash is Python's
own, keyed by the process, so nobody can choose ids that collide.
"""

from __future__ import annotations

import zlib
from typing import Final

import numpy as np
import numpy.typing as npt

_FULL: Final = 0.75
_GROWTH: Final = 1.6

Words = npt.NDArray[np.uint64]


class Uniques:
    """A growing set of ids, each with the place where it was first met."""

    def __init__(self) -> None:
        self._count = 0
        self._reserve(1024)

    def add(self, ids: list[str], places: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The place where each of *ids* was first met: its own place if never before."""
        keys = np.fromiter(map(hash, ids), np.int64, len(ids)).view(np.uint64)
        keys[keys == 0] = 1  # 0 marks a free slot
        checks = np.fromiter((zlib.crc32(name.encode()) for name in ids), np.uint32, len(ids))
        order = np.lexsort((np.arange(len(ids)), checks, keys))
        fresh = np.ones(len(ids), dtype=bool)
        fresh[1:] = (keys[order][1:] != keys[order][:-1]) | (checks[order][1:] != checks[order][:-1])
        firsts = order[fresh]  # the first of each id in this batch
        while self._count + len(firsts) > _FULL * len(self._keys):
            self._grow()
        found = self._put(keys[firsts], checks[firsts], places[firsts])
        result = np.empty(len(ids), dtype=np.int64)
        result[order] = found[np.cumsum(fresh) - 1]
        return result

    @property
    def nbytes(self) -> int:
        """The memory that it takes."""
        return self._keys.nbytes + self._checks.nbytes + self._places.nbytes

    def _reserve(self, slots: int) -> None:
        self._keys: Words = np.zeros(slots, dtype=np.uint64)
        self._checks = np.zeros(slots, dtype=np.uint32)
        self._places = np.zeros(slots, dtype=np.int64)

    def _grow(self) -> None:
        used = self._keys != 0
        keys, checks, places = self._keys[used], self._checks[used], self._places[used]
        self._reserve(int(len(self._keys) * _GROWTH))
        self._count = 0
        self._put(keys, checks, places)

    def _put(
        self, keys: Words, checks: npt.NDArray[np.uint32], places: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.int64]:
        """Put in distinct ids that may stand in the table already; the place that each has there."""
        found: npt.NDArray[np.int64] = places.copy()
        slots = (keys % np.uint64(len(self._keys))).astype(np.int64)
        left = np.arange(len(keys))
        while len(left):
            free = self._keys[slots[left]] == 0
            # Of those that want one free slot the first takes it; the others look again.
            wanted, takers = np.unique(slots[left[free]], return_index=True)
            taking = left[free][takers]
            self._keys[wanted], self._checks[wanted] = keys[taking], checks[taking]
            self._places[wanted] = places[taking]
            self._count += len(taking)
            at = slots[left]
            same = (self._keys[at] == keys[left]) & (self._checks[at] == checks[left])
            found[left[same]] = self._places[at[same]]
            left = left[~same]
            slots[left] = (slots[left] + 1) % len(self._keys)
        return found
