"""Blocks: the runs of bits that an index looks up, and a census of how many fingerprints share each.

With radius + 1 blocks two fingerprints within the radius have at least one in common.
"""

from __future__ import annotations

from collections import Counter
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
    """Which blocks were ever seen, and which of them more fingerprints share than *limit*.

    All living fingerprints are counted at once from time to time; of those counts only the large ones are
    kept at hand, with what came and went since, so that the question for one fingerprint costs little.
    """

    def __init__(self, bits: int, offsets: list[int], limit: int) -> None:
        self._masks = block_masks(bits, offsets)
        self._spans = list(zip(offsets, (mask.bit_length() for mask in self._masks), strict=True))
        self._limit = limit
        self._width = (bits + 63) // 64
        self._new: list[Words] = []
        self._seen: list[Keys] = [self._keys([], at) for at in range(len(self._spans))]
        self._living: list[Keys] = list(self._seen)
        self._large: list[dict[int, int]] = [{} for _ in self._spans]
        self._since: list[Counter[int]] = [Counter() for _ in self._spans]
        self._born: list[Words] = []
        self._gone: list[Words] = []
        self._noted = [0, 0]  # how many of those two are in `_since`
        self._changes = 0
        self._watched: list[tuple[int, int, int, dict[int, int], Counter[int]]] = []

    def see(self, words: Words) -> None:
        """Fingerprints that were asked for."""
        self._new.append(words)

    def add(self, words: Words) -> None:
        """Fingerprints that are there from now on."""
        self._born.append(words)
        self._changes += len(words)

    def remove(self, words: Words) -> None:
        """Fingerprints that are there no longer."""
        self._new.append(words)
        self._gone.append(words)
        self._changes += len(words)

    def blocks(self) -> Iterator[tuple[int, list[int]]]:
        """The number of each block and all values it was seen with."""
        for at in range(len(self._spans)):
            self._seen[at] = np.union1d(self._seen[at], self._keys(self._new, at))
            living = np.concatenate([self._living[at], self._keys(self._born, at)])
            yield at, np.union1d(self._seen[at], living).tolist()
        self._new = []

    @property
    def crowded(self) -> bool:
        """Whether any block may be shared by more than the limit."""
        if self._noted != [len(self._born), len(self._gone)]:
            self._note()
        return bool(self._watched)

    def crowds(self, value: int) -> list[tuple[int, int]]:
        """The number of each block of a fingerprint that more than the limit share, and how many do."""
        found = []
        for at, offset, mask, large, since in self._watched:
            key = value >> offset & mask
            if key in large or key in since:
                count = since[key] + (large[key] if key in large else self._counted(at, key))
                if count > self._limit:
                    found.append((at, count))
        return found

    def _counted(self, at: int, key: int) -> int:
        living = self._living[at]
        begin, end = (
            int(np.searchsorted(living, living.dtype.type(key), side=side)) for side in ("left", "right")
        )
        return end - begin

    def _note(self) -> None:
        """Take up what came and went: all counted anew where it is much, noted where it is little."""
        if self._changes > self._limit + len(self._living[0]) // 16:
            self._count()
        else:
            for at, since in enumerate(self._since):
                since.update(self._keys(self._born[self._noted[0] :], at).tolist())
                since.subtract(self._keys(self._gone[self._noted[1] :], at).tolist())
        self._noted = [len(self._born), len(self._gone)]
        half = self._limit // 2
        self._watched = [
            (at, self._spans[at][0], self._masks[at], large, since)
            for at, (large, since) in enumerate(zip(self._large, self._since, strict=True))
            if large or self._changes > half
        ]

    def _count(self) -> None:
        for at in range(len(self._spans)):
            living = np.sort(np.concatenate([self._living[at], self._keys(self._born, at)]))
            self._living[at] = living = _without(living, self._keys(self._gone, at))
            keys, counts = np.unique(living, return_counts=True)
            large = counts > self._limit // 2
            self._large[at] = dict(zip(keys[large].tolist(), counts[large].tolist(), strict=True))
            self._since[at] = Counter()
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
