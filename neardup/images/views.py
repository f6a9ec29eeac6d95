"""Images: fingerprints of their thumbnails, and of parts of them.

Everything after decoding (`images.thumbs`) is integers. An image without information (flat) has
no fingerprint. `phash`, `dhash` and `ahash` are those of the PyPI package imagehash.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from neardup import _native
from neardup.images.thumbs import PIXELS, SIDE, Thumbs

Matrix = npt.NDArray[np.float64]

BITS: Final = 256
# How an image is made small before its bits are taken; raised when another way gives other bits.
SMALL: Final = 4
# Least deviation of the grey levels, in quarters: of an image, and of a part that is asked for.
FLAT: Final = 6
DULL: Final = 20

# --- views -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class View:
    """A part of an image, perhaps turned: where the unit square of what is seen lies in the image's."""

    name: str
    matrix: tuple[float, ...]
    symmetries: tuple[int, ...] = (0,)

    @property
    def fixed(self) -> list[int]:
        """Where the samples lie, in 1/65536 pixels of the thumbnail."""
        a, b, c, d, e, f = self.matrix
        step, half = SIDE / 64, 0.5 / 64
        first = [(a * half + b * half + c) * SIDE - 0.5, (d * half + e * half + f) * SIDE - 0.5]
        return [
            round(value * 65536) for value in (a * step, b * step, first[0], d * step, e * step, first[1])
        ]


def part(left: float, top: float, right: float, bottom: float) -> tuple[float, ...]:
    """The matrix of a box."""
    return (right - left, 0.0, left, 0.0, bottom - top, top)


def turn(degrees: float) -> tuple[float, ...]:
    """The matrix of a turn about the middle, at the same size."""
    angle = np.deg2rad(degrees)
    cos, sin = round(float(np.cos(angle)), 6), round(float(np.sin(angle)), 6)
    return (cos, -sin, 0.5 - 0.5 * (cos - sin), sin, cos, 0.5 - 0.5 * (cos + sin))


EVERY: Final = tuple(range(8))


BOTH: Final = (0, 1)  # as it is, and mirrored: what people do to a part as well


def _views() -> tuple[View, ...]:
    """What one side of a comparison asks with. Ratios grow evenly; none is taken from a test set."""
    found = [View("whole", part(0, 0, 1, 1), EVERY)]
    for inset in (0.035, 0.075, 0.125, 0.185):
        symmetries = EVERY if inset < 0.1 else BOTH
        found.append(View("middle", part(inset, inset, 1 - inset, 1 - inset), symmetries))
    # To the half, as in a collage of two.
    for cut in (0.09, 0.18, 0.3, 0.4, 0.5):
        found.append(View("left", part(0, 0, 1 - cut, 1), BOTH))
        found.append(View("right", part(cut, 0, 1, 1), BOTH))
        found.append(View("top", part(0, 0, 1, 1 - cut), BOTH))
        found.append(View("bottom", part(0, cut, 1, 1), BOTH))
    for cut in (0.07, 0.14, 0.22):
        found.append(View("between", part(cut, 0, 1 - cut, 1)))
        found.append(View("between", part(0, cut, 1, 1 - cut)))
    for cut in (0.1, 0.18, 0.28):
        found += [View("corner", box, BOTH) for box in _corners(cut)]
    found += [View("turned", turn(angle)) for angle in (-9, -6, -3, 3, 6, 9)]
    return tuple(found)


def _corners(cut: float) -> list[tuple[float, ...]]:
    return [part(x, y, x + 1 - cut, y + 1 - cut) for x in (0.0, cut) for y in (0.0, cut)]


VIEWS: Final = _views()
# A search also asks with parts too small for a duplicate.
PARTS: Final = (*VIEWS, *(View("corner", box) for cut in (0.36, 0.43, 0.48, 0.54) for box in _corners(cut)))
WHOLE: Final = View("whole", part(0, 0, 1, 1))


def fingerprints_of(
    thumbs: Thumbs, views: Sequence[View], *, least: int = FLAT, threads: int | None = None
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.bool_]]:
    """Words and validity for every thumbnail, view and symmetry, in this order."""
    fixed = np.array([view.fixed for view in views], dtype=np.int64).reshape(-1, 6)
    masks = np.array([sum(1 << one for one in view.symmetries) for view in views], dtype=np.uint8)
    words, valid = _native.image_fingerprints(thumbs[:, :PIXELS], fixed, masks, least, threads)
    return words, valid


def symmetry_matrix(symmetry: int) -> Matrix:
    """Where the unit square seen through a symmetry lies in the image's, as a 3 x 3 matrix."""
    found = np.eye(3)
    if symmetry & 4:
        found = found[[1, 0, 2]]
    if symmetry & 1:
        found = np.array([[-1.0, 0, 1], [0, 1, 0], [0, 0, 1]]) @ found
    if symmetry & 2:
        found = np.array([[1.0, 0, 0], [0, -1, 1], [0, 0, 1]]) @ found
    return found


def full_matrix(matrix: Sequence[float]) -> Matrix:
    """A matrix of six numbers as 3 x 3."""
    return np.array([[*matrix[:3]], [*matrix[3:]], [0.0, 0.0, 1.0]])


def inverted(maps: Matrix) -> Matrix:
    """The maps, six numbers each, that lead back; NaN where there is none.

    >>> inverted(np.array([[2.0, 0, 1, 0, 4, 0], [0, 0, 0, 0, 0, 0]])).tolist()
    [[0.5, 0.0, -0.5, 0.0, 0.25, 0.0], [nan, nan, nan, nan, nan, nan]]
    """
    a, b, c, d, e, f = maps.T
    area = a * e - b * d
    area = np.where(np.abs(area) < 1e-12, np.nan, area)
    back = np.stack([e, -b, b * f - c * e, -d, a, c * d - a * f], axis=1) / area[:, None]
    return np.asarray(back + 0.0)  # no -0.0


def trimmed(thumb: Thumbs) -> tuple[float, float, float, float] | None:
    """The box (left, top, right, bottom; of the unit square) of what lies on a plain ground, or None.

    >>> framed = np.zeros((128, 128), np.uint8)
    >>> framed[32:96, 16:112] = np.random.default_rng(1).integers(0, 255, (64, 96))
    >>> trimmed(framed)
    (0.125, 0.25, 0.875, 0.75)
    """
    pixels = thumb.ravel()[:PIXELS].reshape(SIDE, SIDE).astype(np.int16)
    edges = []
    for lines in (pixels.T, pixels, pixels.T[::-1], pixels[::-1]):
        # A line belongs to the ground if nearly all of it has the colour of the first.
        ground = np.median(lines[0])
        flat = (np.abs(lines - ground) <= 10).mean(axis=1) >= 0.97
        edges.append(int(np.argmin(flat)) if not flat.all() else SIDE)
    left, top, right, bottom = edges[0], edges[1], SIDE - edges[2], SIDE - edges[3]
    if right - left < SIDE // 4 or bottom - top < SIDE // 4 or max(edges) < 2:
        return None
    return left / SIDE, top / SIDE, right / SIDE, bottom / SIDE
