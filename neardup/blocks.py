"""Blocks: the runs of bits that an index looks up, and a census of how many fingerprints share each.

With radius + 1 blocks two fingerprints within the radius have at least one in common.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.uint64]
Keys = npt.NDArray[Any]


def block_offsets(bits: int, count: int) -> list[int]:
    """Where each of *count* blocks begins; the last takes what is left.

    >>> block_offsets(64, 3)
    [0, 21, 42]
    """
    return [bits // count * at for at in range(count)]


def block_masks(bits: int, offsets: list[int]) -> list[int]:
    """The lowest bits that each block has, as ones.

    >>> [mask.bit_length() for mask in block_masks(64, [0, 21, 42])]
    [21, 21, 22]
    """
    return [(1 << end - start) - 1 for start, end in zip(offsets, [*offsets[1:], bits], strict=True)]


def block_keys(words: Words, offset: int, width: int) -> Keys:
    """The bits of one block of many fingerprints: uint32 or uint64, or integers where it has more than 64.

    >>> block_keys(np.array([[0xABC]], dtype=np.uint64), 4, 4).tolist()
    [11]
    """
    runs = [_run(words, at, min(64, offset + width - at)) for at in range(offset, offset + width, 64)]
    if not runs:
        return np.zeros(len(words), dtype=np.uint32)
    if len(runs) == 1:
        return runs[0].astype(np.uint32) if width <= 32 else runs[0]
    keys: Keys = runs[0].astype(object)
    for at, run in enumerate(runs[1:], 1):
        keys = keys | run.astype(object) << 64 * at
    return keys


def _run(words: Words, offset: int, width: int) -> Words:
    at, shift = divmod(offset, 64)
    run = words[:, at] >> np.uint64(shift)
    if shift + width > 64:
        run |= words[:, at + 1] << np.uint64(64 - shift)
    return np.asarray(run if width == 64 else run & np.uint64((1 << width) - 1))


class Census:
    """Which blocks were ever seen, and how many fingerprints that are there now share one."""

    def __init__(self, bits: int, offsets: list[int], limit: int) -> None:
        self._spans = list(
            zip(offsets, (mask.bit_length() for mask in block_masks(bits, offsets)), strict=True)
        )
        self._limit = limit
        self._width = (bits + 63) // 64
        self._new: list[Words] = []
        self._seen: list[Keys] = [self._keys([], at) for at in range(len(self._spans))]
        self._living: list[Keys] = list(self._seen)
        self._born: list[Words] = []
        self._gone: list[Words] = []
        self._changes = 0
        self._largest = 0

    def see(self, words: Words) -> None:
        """Fingerprints that were asked for."""
        self._new.append(words)

    def add(self, words: Words) -> None:
        """Fingerprints that are there from now on."""
        self._new.append(words)
        self._born.append(words)
        self._changes += len(words)

    def remove(self, words: Words) -> None:
        """Fingerprints that are there no longer."""
        self._gone.append(words)
        self._changes += len(words)

    def blocks(self) -> Iterator[tuple[int, list[int]]]:
        """The number of each block and all values it was seen with."""
        for at in range(len(self._spans)):
            self._seen[at] = np.union1d(self._seen[at], self._keys(self._new, at))
            yield at, self._seen[at].tolist()
        self._new = []

    def may_be_crowded(self) -> bool:
        """Whether more fingerprints than the limit may share a block."""
        if self._largest + self._changes <= self._limit:
            return False
        if self._changes > self._limit + len(self._living[0]) // 16:
            self._count()
        return self._largest + self._changes > self._limit

    def crowd(self, words: Words) -> list[int]:
        """How many share each block of one fingerprint."""
        return [self._sharing(at, self._keys([words], at)[0]) for at in range(len(self._spans))]

    def _sharing(self, at: int, key: Any) -> int:
        living = self._living[at]
        begin, end = (int(np.searchsorted(living, key, side=side)) for side in ("left", "right"))
        born, gone = (int((self._keys(parts, at) == key).sum()) for parts in (self._born, self._gone))
        return end - begin + born - gone

    def _count(self) -> None:
        self._largest = 0
        for at in range(len(self._spans)):
            living = np.sort(np.concatenate([self._living[at], self._keys(self._born, at)]))
            self._living[at] = living = _without(living, self._keys(self._gone, at))
            if len(living):
                self._largest = max(self._largest, int(np.unique(living, return_counts=True)[1].max()))
        self._born, self._gone, self._changes = [], [], 0

    def _keys(self, parts: list[Words], at: int) -> Keys:
        words = np.concatenate([np.zeros((0, self._width), dtype=np.uint64), *parts])
        return block_keys(words, *self._spans[at])


def _without(sorted_keys: Keys, gone: Keys) -> Keys:
    """Remove one of the equal keys for each that is gone."""
    if not len(gone):
        return sorted_keys
    unique, counts = np.unique(gone, return_counts=True)
    starts = np.searchsorted(sorted_keys, unique)
    runs = [np.arange(start, start + count) for start, count in zip(starts, counts, strict=True)]
    return np.delete(sorted_keys, np.concatenate(runs))
