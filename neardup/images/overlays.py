"""One image laid upon the other, and what differs then.

Light that changed all over is not a difference: the grey levels of the upper image are first fitted
to those of the lower one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
from PIL import Image

from neardup.images import comparisons, rules
from neardup.images.prints import Numbers
from neardup.images.thumbs import PIXELS, SIDE, Thumbnail, address

Grey = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

# Blocks a side, and the mean difference of grey levels from which a block is said to differ.
BLOCKS: Final = 16
DIFFERS: Final = 16.0
SAME, OTHER, UNSEEN = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Overlay:
    """Two images to show on a page, as data: addresses of the same size."""

    laid: str
    """The right image laid upon the left one; what it does not show is grey."""
    difference: str
    """The left image pale, with what differs in red."""
    differs: float
    """Share of what both show that differs."""
    unseen: float
    """Share of the left image, without its borders, that the right one does not show."""


Look = tuple[Thumbnail, Image.Image]  # of `thumbs.look`


def overlay(left: Look, right: Look, map: Numbers | None = None) -> Overlay:
    """Two images laid upon each other as *map* says, which leads from what is inside the borders of the left
    one to what is inside those of the right one; without it, as well as they can be."""
    (one, lower), (other, upper) = left, right
    if map is None:
        map = comparisons.compare(one, other, rules.rule_of("default", ignore_colour=True)).inner
    shown, inside = _lay(upper, comparisons.with_borders(map, one, other), lower.size)
    grey = np.asarray(lower.convert("L"), dtype=np.float64)
    apart = difference(grey, np.asarray(shown.convert("L"), dtype=np.float64), inside)
    marks = blocks(one, other, map)
    return Overlay(
        laid=address(shown),
        difference=address(_marked(grey, apart, inside)),
        differs=float((marks == OTHER).sum() / max(1, (marks != UNSEEN).sum())),
        unseen=float((marks == UNSEEN).mean()),
    )


def blocks(left: Thumbnail, right: Thumbnail, matrix: Numbers) -> npt.NDArray[np.uint8]:
    """For each block inside the left image, row by row: SAME, OTHER, or UNSEEN by the right one."""
    lower, upper = (Image.frombytes("L", (SIDE, SIDE), one.thumb[:PIXELS]) for one in (left, right))
    shown, inside = _lay(upper, matrix, lower.size)
    apart = difference(np.asarray(lower, dtype=np.float64), np.asarray(shown, dtype=np.float64), inside)
    size = SIDE // BLOCKS
    both = inside.reshape(BLOCKS, size, BLOCKS, size).sum(axis=(1, 3))
    sums = apart.reshape(BLOCKS, size, BLOCKS, size).sum(axis=(1, 3))
    found = np.where(sums / np.maximum(both, 1) >= DIFFERS, OTHER, SAME)
    return np.where(2 * both < size * size, UNSEEN, found).astype(np.uint8)


def difference(lower: Grey, upper: Grey, inside: Flags) -> Grey:
    """How far the grey levels are apart where both show something, and 0 elsewhere."""
    if inside.sum() < 2:
        return np.zeros_like(lower)
    wanted, given = lower[inside], upper[inside]
    near = np.ones(len(wanted), dtype=bool)
    fitted = given
    for _ in range(4):
        # What differs has no say in how bright the rest is.
        spread = float(given[near].var())
        slope = float(np.cov(given[near], wanted[near], bias=True)[0, 1]) / spread if spread > 1e-9 else 1.0
        fitted = (given - given[near].mean()) * slope + wanted[near].mean()
        residue = np.abs(fitted - wanted)
        near = residue <= np.median(residue) * 3 + 1e-9
    found = np.zeros_like(lower)
    found[inside] = np.abs(fitted - wanted)
    return found


def _lay(upper: Image.Image, matrix: Numbers, size: tuple[int, int]) -> tuple[Image.Image, Flags]:
    """*upper* as the lower image of that size would show it, and where it shows anything."""
    (a, b, c, d, e, f), (width, height) = matrix.tolist(), upper.size
    numbers = (
        a * width / size[0],
        b * width / size[1],
        c * width,
        d * height / size[0],
        e * height / size[1],
        f * height,
    )
    ground = "gray" if upper.mode == "RGB" else 128
    shown = upper.transform(
        size, Image.Transform.AFFINE, numbers, Image.Resampling.BILINEAR, fillcolor=ground
    )
    cover = Image.new("L", upper.size, 255).transform(size, Image.Transform.AFFINE, numbers)
    return shown, np.asarray(cover) > 0


def _marked(grey: Grey, apart: Grey, inside: Flags) -> Image.Image:
    pale = 255 - (255 - grey) * 0.35
    red = np.clip((apart - DIFFERS / 2) / 40, 0, 1) * inside
    colours = np.stack([pale * (1 - red) + 200 * red, pale * (1 - red), pale * (1 - red)], axis=-1)
    colours[~inside] = 160
    return Image.fromarray(np.rint(colours).astype(np.uint8))
