"""Blocks: the runs of bits that an index looks up.

With radius + 1 blocks two fingerprints within the radius have at least one in common.
"""

from __future__ import annotations

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
