"""When two images show the same, and in words what leads from one to the other.

Block after block must agree, also without those at the rim; no part may show something else, unless it looks
drawn over a photograph; and the colours must not be clearly different. docs/images.md explains each figure.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from neardup.images.agreements import AGREEMENT
from neardup.images.colours import other_colours
from neardup.images.prints import Numbers, Rows
from neardup.images.regions import REGIONS, Counts, line_drawing, regions
from neardup.images.thumbs import PIXELS, Thumbs

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class ImageRule:
    """When two images show the same; docs/images.md tells each."""

    mean: float
    """Least mean correlation of the blocks that show something."""
    share: float
    """Least share of those blocks that agree, in the coarse image and in the fine one."""
    part: float
    """Least share of either image that the other one shows."""
    blocks: int = 4
    """Least number of blocks that show something."""
    drawn: tuple[float, float] = (0.88, 0.92)
    """Mean and share for line drawings: charts and pages of one layout are much alike."""
    strong: float | None = 0.5
    """Least share of the inner blocks of a photograph that agree nearly wholly, where others are covered."""
    inner: tuple[float, float] = (0.65, 0.65)
    """Mean and share of the blocks that are not at the rim, looked at alone: a frame is not evidence."""
    few: tuple[float, int] = (0.12, 24)
    """By how much the mean must be higher where hardly any block shows something; 0 from that many on."""
    colour: bool = True
    """Whether clearly other colours make another image."""


RULES: Final = {
    "default": ImageRule(0.79, 0.8, 0.42),
    "strict": ImageRule(0.9, 0.95, 0.9, strong=None),
    "loose": ImageRule(0.7, 0.7, 0.2, few=(0.25, 28)),
}


def rule_of(name: str, similarity: float | None = None, *, ignore_colour: bool = False) -> ImageRule:
    """The rule of that name; the default one with its least mean, if *similarity* says another.

    >>> rule_of("default", 0.9).strong is None, rule_of("strict", ignore_colour=True).colour
    (True, False)
    """
    rule = replace(RULES[name], colour=not ignore_colour)
    if name != "default" or similarity is None:
        return rule
    return replace(rule, mean=similarity, strong=None if similarity > rule.mean else rule.strong)


# Share of an image that has one grey level: below it, it is a photograph.
PHOTOGRAPH: Final = 0.5
# The least mean of line drawings one of which is turned or mirrored.
TURNED: Final = 0.97
# The mean that is always enough, however few blocks there are.
FEW: Final = 0.95
# Mean, share and number of the inner blocks that are enough where the rim differs: corners that were filled
# when it was turned, a shade around it; drawings need what they need anyway. By how much the mean of all
# blocks may then be below the rule's.
RIM: Final = (0.83, 0.88, 20, 0.14)
# Least mean, share and number of blocks of a photograph that is covered in part.
COVERED: Final = (0.5, 0.5, 16)
# From how many windows away from the rim on those that are other are another content: in images, and in line
# drawings (those that are not alike). And how drawn they must look to be something laid over a photograph,
# and how much more so in one image than in the other.
CONTENT: Final = (5, 3)
OVERLAID: Final = (800, 60)
# What is enough where blocks are not: the least mean, number of windows that tell something (two thirds of it
# away from the rim), and share of them that is alike; and the most windows that tell something in one image
# alone, as a share of all.
WINDOWS: Final = (0.6, 30, 0.97, 0.15)
# The same in photographs with something drawn over them: number, share, share where it is surely drawn (from
# these figures of `OVERLAID` on), and share that tells something in one alone.
UNDER: Final = (60, 0.85, 0.7, 0.2)
SURELY: Final = (1200, 500)
SYMMETRIES: Final = ("", "mirror", "flip", "rot180", "transpose", "rot90", "rot270", "transverse")
REJECTED: Final = (
    "does not show the same",
    "same layout, different content",
    "shows a part only",
    "too plain to tell",
    "same image in other colours",
)
_KINDS: Final = ("", "crop", "part of it")
REASONS: Final = (
    *(
        "same image" + (f": {', '.join(words)}" if words else "")
        for symmetry in SYMMETRIES
        for kind in _KINDS
        for turned in ("", "turned")
        for covered in ("", "covered in part")
        for words in [[word for word in (symmetry, kind, turned, covered) if word]]
    ),
    *REJECTED,
)
ACCEPTING: Final = len(REASONS) - len(REJECTED)
IDENTICAL: Final = "identical file"


def grounds(thumbs: Thumbs) -> Numbers:
    """The share of each image that has nearly the same grey level."""
    found = np.zeros(len(thumbs))
    for row, thumb in enumerate(thumbs[:, :PIXELS]):
        counts = np.cumsum(np.bincount(thumb, minlength=256 + 8)[: 256 + 8])
        found[row] = np.max(counts[8:] - np.append(0, counts[:255])) / len(thumb)
    return found


def judge(
    thumbs: Thumbs,
    left: Rows,
    right: Rows,
    found: Numbers,
    rule: ImageRule,
    *,
    threads: int | None = None,
) -> npt.NDArray[np.uint8]:
    """The place in `REASONS` of each row of `agreements` of those images."""
    reason = np.where(found[:, AGREEMENT.index("whole")] >= 0.6, ACCEPTING + 1, ACCEPTING).astype(np.uint8)
    # No other figure helps where nearly no block is like its own.
    rows = np.flatnonzero(found[:, AGREEMENT.index("mean")] >= min(COVERED[0], rule.mean - RIM[3]))
    if len(rows):
        reason[rows] = _judge_near(thumbs, left[rows], right[rows], found[rows], rule, threads)
    return reason


def _judge_near(
    thumbs: Thumbs, left: Rows, right: Rows, found: Numbers, rule: ImageRule, threads: int | None
) -> npt.NDArray[np.uint8]:
    column = {name: found[:, at] for at, name in enumerate(AGREEMENT)}
    some, place = np.unique(np.concatenate([left, right]), return_inverse=True)
    photograph: Flags = np.all(grounds(thumbs[some])[place].reshape(2, -1) < PHOTOGRAPH, axis=0)
    lines = np.array([line_drawing(thumbs[one]) for one in some.tolist()], dtype=bool)
    drawing: Flags = np.all(lines[place].reshape(2, -1), axis=0)
    least = np.minimum(column["covered"], column["covering"])
    shares = np.minimum(column["share"], column["fine_share"])
    reason = transformations(found).astype(np.int64)
    lacking = np.maximum(0.0, 1.0 - column["blocks"] / rule.few[1])
    mean, share = max(rule.mean, rule.drawn[0]), max(rule.share, rule.drawn[1])
    needed = np.minimum(rule.mean + rule.few[0] * lacking, max(rule.mean, FEW))
    same = column["mean"] >= np.where(drawing, np.maximum(needed, mean), needed)
    same &= shares >= np.where(drawing, share, rule.share)
    covered = np.zeros(len(found), dtype=bool)
    if rule.strong is not None:
        rim = column["inner_mean"] >= np.where(drawing, mean, RIM[0])
        rim &= column["inner_share"] >= np.where(drawing, share, RIM[1])
        same |= rim & (column["inner_blocks"] >= RIM[2]) & (column["mean"] >= rule.mean - RIM[3])
        covered = ~same & photograph & (column["strong"] >= rule.strong) & (column["mean"] >= COVERED[0])
        covered &= (shares >= COVERED[1]) & (column["blocks"] >= COVERED[2])
    same |= covered
    same &= (column["inner_mean"] >= rule.inner[0]) & (column["inner_share"] >= rule.inner[1])
    looked = same if rule.strong is None else same | (column["mean"] >= WINDOWS[0])
    counts = np.zeros((len(found), len(REGIONS)), dtype=np.int32)
    rows = np.flatnonzero(looked)
    counts[rows] = regions(thumbs, left[rows], right[rows], found[rows], threads=threads)
    overlaid: Flags = photograph & laid_over(counts)
    if rule.strong is not None:
        under = ~same & looked & _under(counts, overlaid)
        covered |= under & overlaid
        same |= (under | (looked & _alike(counts))) & ~(drawing & (column["mean"] < mean))
    same &= ~_other_content(counts, drawing, overlaid)
    mirrored = reason // (len(_KINDS) * 4) > 0
    same &= ~(drawing & mirrored & (column["mean"] < TURNED))
    reason[covered] += 1
    reason[same & (least < rule.part)] = ACCEPTING + 2
    reason[~same] = np.where(column["whole"][~same] >= 0.6, ACCEPTING + 1, ACCEPTING)
    reason[same & (column["blocks"] < rule.blocks)] = ACCEPTING + 3
    for row in np.flatnonzero(reason < ACCEPTING).tolist() if rule.colour else ():
        if other_colours(thumbs[left[row]], thumbs[right[row]], found[row, :6]):
            reason[row] = ACCEPTING + 4
    return reason.astype(np.uint8)


def laid_over(counts: Counts, least: tuple[int, int] = OVERLAID) -> Flags:
    """In which pairs what differs looks drawn, and lies on one of the two."""
    drawn, side = (counts[:, REGIONS.index(name)] for name in ("drawn", "side"))
    found: Flags = (drawn >= least[0]) & (np.abs(side) >= least[1])
    return found


def _other_content(counts: Counts, drawing: Flags, overlaid: Flags) -> Flags:
    """Which pairs show something else in some part."""
    unlike, inside = (counts[:, REGIONS.index(name)] for name in ("unlike", "inside"))
    found: Flags = np.where(drawing, unlike >= CONTENT[1], (inside >= CONTENT[0]) & ~overlaid)
    return found


def _alike(counts: Counts) -> Flags:
    """Which pairs are alike in nearly every window, whatever their blocks say."""
    seen, told, alike, wholly, within, unlike, single = (
        counts[:, REGIONS.index(name)]
        for name in ("seen", "told", "alike", "wholly", "within", "unlike", "single")
    )
    _, least, share, one = WINDOWS
    found: Flags = (told >= least) & (alike >= share * told) & (wholly == 0) & (single <= one * seen)
    found &= (3 * within >= 2 * least) & (within - unlike >= share * within)
    return found


def _under(counts: Counts, overlaid: Flags) -> Flags:
    """Which pairs are alike under what was drawn over one of them."""
    seen, told, alike, single = (
        counts[:, REGIONS.index(name)] for name in ("seen", "told", "alike", "single")
    )
    least, share, surely, one = UNDER
    enough = alike >= np.where(laid_over(counts, SURELY), surely, share) * told
    found: Flags = overlaid & (told >= least) & enough & (single <= one * seen)
    return found


def transformations(found: Numbers) -> Rows:
    """What leads from one image to the other, as a place in `REASONS`: symmetry, part, small turn."""
    a, b, _, d, e = (found[:, at] for at in range(5))
    swapped = np.abs(b) + np.abs(d) > np.abs(a) + np.abs(e)
    # After the swap the larger numbers stand on the diagonal; their signs are the mirrors.
    across, down = np.where(swapped, b, a), np.where(swapped, d, e)
    symmetry = 4 * swapped + (across < 0) * 1 + (down < 0) * 2
    lean = np.where(swapped, np.abs(a) + np.abs(e), np.abs(b) + np.abs(d)) / np.maximum(
        np.abs(across) + np.abs(down), 1e-9
    )
    least = np.minimum(found[:, 6], found[:, 7])
    kind = np.where(least >= 0.96, 0, np.where(least >= 0.42, 1, 2))
    numbers: Rows = ((symmetry * 3 + kind) * 2 + (lean > 0.02)) * 2
    return numbers


def named(matrices: Numbers) -> list[str]:
    """What would lead from whole images to the one that was seen through views, were they verified."""
    shown = np.minimum(np.abs(np.linalg.det(matrices)), 1.0)
    found = np.column_stack([matrices[:, :2].reshape(-1, 6), np.ones(len(matrices)), shown])
    return [REASONS[place] for place in transformations(found).tolist()]
