"""Verdicts on pairs of images: each way to lay one upon the other is tried, and the best one counts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from neardup.images.agreements import AGREEMENT, BLOCKS, agreements, marked_agreements
from neardup.images.prints import Numbers, Rows, asked
from neardup.images.proposals import RADIUS, TRIED, Proposals, merged, propose, propose_by_corners
from neardup.images.rules import ACCEPTING, REASONS, ImageRule, judge, transformations
from neardup.images.thumbs import Thumbnail, Thumbs
from neardup.images.views import full_matrix, inverted, part


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """The verdict on pairs, a row each: the agreement of the best way to lay them on each other."""

    reason: npt.NDArray[np.uint8]
    found: Numbers
    map: Numbers
    """From the image with the lower number to the other, both without borders; NaN if there is none."""

    @property
    def accepted(self) -> npt.NDArray[np.bool_]:
        return np.asarray(self.reason < ACCEPTING)


def verify(
    thumbs: Thumbs,
    proposals: Proposals,
    rows: Rows,
    ends: Rows,
    rule: ImageRule,
    *,
    threads: int | None = None,
) -> Seen:
    """Judge pairs that have the proposals from *rows* up to *ends*: the nearest first, others if it fails."""
    best = np.zeros((len(rows), len(AGREEMENT)))
    reason = np.full(len(rows), ACCEPTING, dtype=np.uint8)
    maps = np.full((len(rows), 6), np.nan)
    open_ = np.arange(len(rows))
    for attempt in range(TRIED + 1):  # and one by corners
        open_ = open_[rows[open_] + attempt < ends[open_]]
        if not len(open_):
            break
        at = rows[open_] + attempt
        found = agreements(
            thumbs, proposals.left[at], proposals.right[at], proposals.map[at], threads=threads
        )
        verdict = judge(thumbs, proposals.left[at], proposals.right[at], found, rule, threads=threads)
        better = (verdict < ACCEPTING) | (found[:, 9] > best[open_, 9])
        best[open_[better]], reason[open_[better]] = found[better], verdict[better]
        laid = np.where(
            (proposals.left[at] > proposals.right[at])[:, None], inverted(found[:, :6]), found[:, :6]
        )
        shown = better if attempt else np.ones(len(open_), dtype=bool)
        maps[open_[shown]] = laid[shown]
        open_ = open_[verdict >= ACCEPTING]
    return Seen(reason, best, maps)


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """What two images have in common, laid upon each other in the best way that was found."""

    map: Numbers
    """From the unit square of the left image to that of the right one, borders and all."""
    inner: Numbers
    """The same for what is inside their borders."""
    distance: int | None
    """Of the views that proposed it; None if none was within the radius."""
    code: int
    """The place of its reason in `REASONS`."""
    found: Numbers
    """A row of `AGREEMENT`."""
    marks: npt.NDArray[np.uint8]
    """Places in `MARKS`, in rows: what each block says of the image that lies upon the other."""
    upper: int
    """Which one that is: 0 the left one, 1 the right one."""

    @property
    def accepted(self) -> bool:
        return self.code < ACCEPTING

    @property
    def reason(self) -> str:
        """Why it was accepted or not, in words."""
        return REASONS[self.code]


def with_borders(map: Numbers, left: Thumbnail, right: Thumbnail) -> Numbers:
    """A map between what is inside the borders of two images, as one between the whole images."""
    inside, back = full_matrix(part(*right.box)), np.linalg.inv(full_matrix(part(*left.box)))
    return np.asarray((inside @ full_matrix(map.tolist()) @ back)[:2].ravel())


def compare(left: Thumbnail, right: Thumbnail, rule: ImageRule, *, radius: int = RADIUS) -> Comparison:
    """Compare two images in every way that is proposed, or else as they are."""
    thumbs = np.array([np.frombuffer(one.thumb, dtype=np.uint8) for one in (left, right)])
    asking = asked(thumbs)
    ways = merged(propose(asking.as_they_are, asking, radius), propose_by_corners(thumbs))
    if len(ways.left):
        lower, upper, maps = ways.left, ways.right, ways.map
    else:
        lower, upper, maps = np.array([0]), np.array([1]), np.eye(3)[None, :2].reshape(1, 6)
    found, marks = marked_agreements(thumbs, lower, upper, maps, None)
    reasons = judge(thumbs, lower, upper, found, rule)
    best = int(np.lexsort([-found[:, 9], reasons >= ACCEPTING])[0])
    row, reason = found[best].copy(), int(reasons[best])
    if lower[best] == 1:
        row[:6] = np.linalg.inv(full_matrix(row[:6]))[:2].ravel()
        row[[6, 7]] = row[[7, 6]]
        if reason < ACCEPTING:
            reason = int(transformations(row[None])[0]) + reason % 2
    return Comparison(
        map=with_borders(row[:6], left, right),
        inner=row[:6],
        distance=int(ways.distance[best]) if len(ways.left) else None,
        code=reason,
        found=row,
        marks=marks[best].reshape(BLOCKS, BLOCKS),
        upper=int(lower[best]),
    )
