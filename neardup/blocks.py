"""Blocks: the runs of bits that an index looks up, and a census of how many fingerprints share each.

With radius + 1 blocks two fingerprints within the radius have at least one in common.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.uint64]


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


def block_keys(words: Words, offset: int, width: int) -> Words:
    """The bits of one block of many fingerprints; a block of more than 64 is mixed into 64.

    >>> block_keys(np.array([[0xABC]], dtype=np.uint64), 4, 4).tolist()
    [11]
    """
    keys = np.zeros(len(words), dtype=np.uint64)
    for at in range(offset, offset + width, 64):
        part = _run(words, at, min(64, offset + width - at))
        keys = part if at == offset else (keys ^ part) * np.uint64(0x9E3779B97F4A7C15)
        if width > 64:
            keys ^= keys >> np.uint64(29)
    return keys


def _run(words: Words, offset: int, width: int) -> Words:
    at, shift = divmod(offset, 64)
    run = words[:, at] >> np.uint64(shift)
    if shift + width > 64:
        run |= words[:, at + 1] << np.uint64(64 - shift)
    return run if width == 64 else run & np.uint64((1 << width) - 1)


class Census:
    """Which blocks were ever seen, and how many fingerprints that are there now share one."""

    def __init__(self, bits: int, offsets: list[int], limit: int) -> None:
        self._spans = list(
            zip(offsets, (mask.bit_length() for mask in block_masks(bits, offsets)), strict=True)
        )
        self._limit = limit
        self._width = (bits + 63) // 64
        self._new: list[Words] = []
        self._seen = [np.zeros(0, dtype=np.uint64) for _ in self._spans]
        self._living = [np.zeros(0, dtype=np.uint64) for _ in self._spans]
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

    def blocks(self) -> int:
        """How many different blocks were seen."""
        if self._new:
            words = self._joined(self._new)
            for at, (offset, width) in enumerate(self._spans):
                self._seen[at] = np.union1d(self._seen[at], block_keys(words, offset, width))
            self._new = []
        return sum(map(len, self._seen))

    def may_be_crowded(self) -> bool:
        """Whether more fingerprints than the limit may share a block."""
        if (
            self._largest + self._changes > self._limit
            and self._changes > self._limit + len(self._living[0]) // 16
        ):
            self._count()
        return self._largest + self._changes > self._limit

    def crowd(self, words: Words) -> list[int]:
        """How many share each block of one fingerprint."""
        counts = []
        for at, (offset, width) in enumerate(self._spans):
            key = block_keys(words, offset, width)[0]
            begin, end = np.searchsorted(
                self._living[at], [key, key + np.uint64(1)] if width < 64 else [key, key]
            )
            end = np.searchsorted(self._living[at], key, side="right") if width >= 64 else end
            born, gone = (
                sum(int((block_keys(part, offset, width) == key).sum()) for part in parts)
                for parts in (self._born, self._gone)
            )
            counts.append(int(end - begin) + born - gone)
        return counts

    def _count(self) -> None:
        born, gone = self._joined(self._born), self._joined(self._gone)
        self._largest = 0
        for at, (offset, width) in enumerate(self._spans):
            living = np.sort(np.concatenate([self._living[at], block_keys(born, offset, width)]))
            if len(gone):
                living = _without(living, np.sort(block_keys(gone, offset, width)))
            self._living[at] = living
            if len(living):
                self._largest = max(self._largest, int(np.unique(living, return_counts=True)[1].max()))
        self._born, self._gone, self._changes = [], [], 0

    def _joined(self, parts: list[Words]) -> Words:
        return np.concatenate([np.zeros((0, self._width), dtype=np.uint64), *parts])


def _without(sorted_keys: Words, gone: Words) -> Words:
    """Remove one of the equal keys for each that is gone."""
    unique, counts = np.unique(gone, return_counts=True)
    starts = np.searchsorted(sorted_keys, unique)
    places = np.concatenate(
        [np.arange(start, start + count) for start, count in zip(starts, counts, strict=True)]
    )
    return np.delete(sorted_keys, places)
