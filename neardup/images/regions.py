"""Where two images that lie on each other show something else, counted in windows that overlap.

The mean over blocks hides a small part that differs wholly: another person before the same wall. And it is
lowered by what was laid over an image: words, a sticker. What differs looks drawn if it has few grey levels
or far sharper edges than what it lies on. That is a guess: only photographs are taken for covered by it.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from neardup import _native
from neardup.images.agreements import AGREEMENT
from neardup.images.prints import Numbers, Rows
from neardup.images.thumbs import PIXELS, SIDE, Thumbs

# Windows that both show, and that tell something in both; of these alike, other, wholly other; of those away
# from the rim all, not alike, other; those that tell something in one image alone; how much what differs
# looks drawn, in thousandths; and on which of the two it lies: above 0 the left one, below 0 the right one.
REGIONS: Final = (
    "seen",
    "told",
    "alike",
    "other",
    "wholly",
    "within",
    "unlike",
    "inside",
    "single",
    "drawn",
    "side",
)

Counts = npt.NDArray[np.int32]

_WARP: Final = [*range(6), AGREEMENT.index("lean_across"), AGREEMENT.index("lean_down")]
# A line drawing: how many of its pixels have one grey level, and four; and how many of its edges are steep.
GROUND: Final = 0.5
LEVELS: Final = 0.75
STEEP: Final = 0.35
# Grey levels that count as one, and differences of neighbours that are an edge, and a steep one.
LEVEL: Final = 9
EDGE: Final = 8
CLIFF: Final = 40


def regions(thumbs: Thumbs, left: Rows, right: Rows, found: Numbers, *, threads: int | None = None) -> Counts:
    """What windows say of pairs that agree as *found* says: a row of `REGIONS` each."""
    some, place = np.unique(np.concatenate([left, right]), return_inverse=True)
    one, other = place.reshape(2, -1).astype(np.int64)
    warps = np.ascontiguousarray(found[:, _WARP])
    return _native.image_regions(np.ascontiguousarray(thumbs[some][:, :PIXELS]), one, other, warps, threads)


def line_drawing(thumb: Thumbs) -> bool:
    """Whether an image is lines and words on a ground: few grey levels, and steep edges between them.

    Much ground alone makes none: a star field and a cup on white are photographs.

    >>> page = np.full((SIDE, SIDE), 250, dtype=np.uint8)
    >>> page[20:100:8, 20:100] = 30
    >>> line_drawing(page.ravel())
    True
    >>> line_drawing(np.repeat(np.arange(SIDE, dtype=np.uint8), SIDE))
    False
    """
    grey = thumb[:PIXELS].astype(np.int64)
    counts = np.bincount(grey, minlength=256 + LEVEL - 1)
    runs = [_run(counts) for _ in range(4)]
    if runs[0] < GROUND * PIXELS or sum(runs) < LEVELS * PIXELS:
        return False
    rows = grey.reshape(SIDE, SIDE)
    across, down = np.abs(np.diff(rows, axis=1))[:-1], np.abs(np.diff(rows, axis=0))[:, :-1]
    edges = np.maximum(across, down)
    return int((edges > CLIFF).sum()) >= max(1.0, STEEP * int((edges > EDGE).sum()))


def _run(counts: npt.NDArray[np.int64]) -> int:
    """How many pixels the best run of levels has; they are taken out of *counts*."""
    sums = np.cumsum(counts)
    sums = sums[LEVEL - 1 :] - np.append(0, sums[:-LEVEL])
    best = int(sums.argmax())
    counts[best : best + LEVEL] = 0
    return int(sums[best])
