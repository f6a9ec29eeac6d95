"""Pairs of pictures: who may show the same, and whether they do.

Of every picture what is inside its borders is stored. The other side asks with parts, turns and
symmetries of itself. What no view foresees, any part of a picture or a picture on a page, is found by
matching corners that vote for a map. All this only proposes: the two thumbnails are then laid upon each
other, block after block must agree, also without those at the rim, and the colours must not be others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup import _native
from neardup.colours import other_colours
from neardup.features.image import (
    DULL,
    EVERY,
    VIEWS,
    WHOLE,
    View,
    fingerprints_of,
    full_matrix,
    part,
    symmetry_matrix,
    trimmed,
)
from neardup.fingerprints import Fingerprints
from neardup.pairs import join, join_batches
from neardup.thumbs import PIXELS, Picture, Thumbs

Rows = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.float64]

RADIUS: Final = 88
# Ways to lay one picture upon the other that are tried for a pair, the nearest first.
TRIED: Final = 3


@dataclass(frozen=True, slots=True, eq=False)
class Prints:
    """Fingerprints of pictures through views: whose each is, and where it lies in that picture."""

    prints: Fingerprints
    picture: Rows
    matrix: Numbers
    """3 x 3 matrices from the unit square that was seen to the picture's."""


def stored(thumbs: Thumbs, *, threads: int | None = None) -> Prints:
    """What is kept of every picture: the whole, and what lies on it if its ground is plain."""
    return _prints(thumbs, (WHOLE,), (0,), threads)


def asked(thumbs: Thumbs, *, views: tuple[View, ...] = VIEWS, threads: int | None = None) -> Prints:
    """What the other side asks with."""
    return _prints(thumbs, views, EVERY, threads)


def _prints(thumbs: Thumbs, views: tuple[View, ...], inner: tuple[int, ...], threads: int | None) -> Prints:
    words, valid = fingerprints_of(thumbs, views, least=DULL, threads=threads)
    kinds = [full_matrix(view.matrix) @ symmetry_matrix(one) for view in views for one in view.symmetries]
    parts = [
        (words, valid, np.repeat(np.arange(len(thumbs)), len(kinds)), np.tile(kinds, (len(thumbs), 1, 1)))
    ]
    for number, thumb in enumerate(thumbs):
        box = trimmed(thumb)
        if box is None:
            continue
        view = View("within", part(*box), inner)
        more = fingerprints_of(thumb[None], [view], least=DULL, threads=1)
        turned = np.array([full_matrix(view.matrix) @ symmetry_matrix(one) for one in inner])
        parts.append((*more, np.full(len(inner), number), turned))
    words, valid, picture, matrix = (np.concatenate([part[at] for part in parts]) for at in range(4))
    wanted = valid.astype(bool)
    prints = Fingerprints(words[wanted], bits=256)
    return Prints(prints, picture[wanted].astype(np.int64), matrix[wanted].reshape(-1, 3, 3))


@dataclass(frozen=True, slots=True, eq=False)
class Proposals:
    """Pairs of pictures near enough to be looked at, with the ways in which they may lie on each other.

    `left` is the picture that may lie in `right`; a pair has up to `TRIED` rows,
    and one more where corners vote.
    """

    left: Rows
    right: Rows
    distance: npt.NDArray[np.int32]
    map: Numbers

    def table(self) -> pa.Table:
        """As an Arrow table, to be kept."""
        maps = pa.FixedSizeListArray.from_arrays(pa.array(self.map.ravel(), pa.float64()), 6)
        return pa.table({"left": self.left, "right": self.right, "distance": self.distance, "map": maps})

    @classmethod
    def of(cls, table: pa.Table) -> Proposals:
        """What `table` made."""
        left, right, distance = (table.column(name).to_numpy() for name in ("left", "right", "distance"))
        maps = table.column("map").combine_chunks().flatten().to_numpy().reshape(-1, 6)
        return cls(left, right, distance, maps)


def propose(
    kept: Prints,
    asking: Prints,
    radius: int,
    *,
    own: bool = True,
    threads: int | None = None,
    tell: Callable[[float], None] | None = None,
) -> Proposals:
    """All pairs within *radius* of kept and asking pictures; with *own* they are the same ones.

    *tell* is called now and then with the share that is done.
    """
    found = join(kept.prints, radius, other=asking.prints, threads=threads, tell=tell)
    left, right = kept.picture[found.left], asking.picture[found.right]
    rows = np.flatnonzero(left != right) if own else np.arange(len(left))
    left, right, distance = left[rows], right[rows], found.distance[rows].astype(np.int32)
    low, high = (np.minimum(left, right), np.maximum(left, right)) if own else (left, right)
    order = np.lexsort([found.right[rows], found.left[rows], distance, high, low])
    first = np.searchsorted(_pair(low, high, order), _pair(low, high, order), side="left")
    order = order[np.arange(len(order)) - first < TRIED]
    rows = rows[order]
    inverse = np.linalg.inv(kept.matrix[found.left[rows]]) if len(rows) else np.zeros((0, 3, 3))
    maps = asking.matrix[found.right[rows]] @ inverse
    return Proposals(left[order], right[order], distance[order], maps[:, :2].reshape(-1, 6))


# Corners of a picture, of up to so many pictures; of more pictures fewer, so that the work grows as they do.
CORNERS: Final = 80
PICTURES: Final = 2000
# Bits in which matching corners may differ; a corner with more matches than this tells nothing.
CORNER_RADIUS: Final = 40
COMMON: Final = 64
# Matches of a pair that are looked at, the nearest; and how many must agree on a map.
MATCHES: Final = 32
VOTES: Final = 3


def propose_by_corners(thumbs: Thumbs, first: int = 0, *, threads: int | None = None) -> Proposals:
    """Pairs of pictures with corners that agree on a map; of those from *first* on with those before it.

    The distance is that of the left picture and what the right one shows there.
    """
    most = max(8, int(CORNERS * min(1.0, (PICTURES / max(1, len(thumbs))) ** 0.5)))
    picture, place, words = _native.picture_corners(thumbs[:, :PIXELS], most, threads)
    split = int(np.searchsorted(picture, first))
    prints = Fingerprints(words[split:], bits=256)
    other = Fingerprints(words[:split], bits=256) if first else None
    counts = np.zeros(len(picture), dtype=np.int64)
    parts = [np.zeros((3, 0), dtype=np.int64)]
    for some in join_batches(prints, CORNER_RADIUS, other=other, threads=threads):
        one, two = some.left.astype(np.int64) + split, some.right.astype(np.int64)
        kept = (picture[one] != picture[two]) & (counts[one] <= COMMON) & (counts[two] <= COMMON)
        one, two = one[kept], two[kept]
        counts += np.bincount(np.concatenate([one, two]), minlength=len(counts))
        parts.append(np.stack([one, two, some.distance[kept].astype(np.int64)]))
    one, two, distance = np.concatenate(parts, axis=1)
    rare = (counts[one] <= COMMON) & (counts[two] <= COMMON)
    one, two, distance = one[rare], two[rare], distance[rare]
    order = np.lexsort([two, one, distance, picture[two], picture[one]])
    key = picture[one[order]] << 32 | picture[two[order]]
    order = order[np.arange(len(order)) - np.searchsorted(key, key) < MATCHES]
    one, two = one[order], two[order]
    key = picture[one] << 32 | picture[two]
    begin = np.flatnonzero(np.append(True, key[1:] != key[:-1])) if len(key) else np.zeros(0, dtype=np.int64)
    matches = np.column_stack([place[one], place[two]]).astype(np.float32)
    maps, votes = _native.picture_maps(
        matches, np.append(begin, len(key))[1:].astype(np.int64), VOTES, threads
    )
    rows = np.flatnonzero(votes)
    left, right, maps = picture[one[begin[rows]]], picture[two[begin[rows]]], maps[rows]
    # The one that is shown smaller lies in the other.
    large = maps[:, 0] * maps[:, 4] > 1
    left, right = np.where(large, right, left), np.where(large, left, right)
    across, down = maps[large, 0], maps[large, 4]
    maps[large, 2], maps[large, 5] = -maps[large, 2] / across, -maps[large, 5] / down
    maps[large, 0], maps[large, 4] = 1 / across, 1 / down
    return Proposals(left, right, _distances(thumbs, left, right, maps, threads), maps)


def _distances(
    thumbs: Thumbs, left: Rows, right: Rows, maps: Numbers, threads: int | None
) -> npt.NDArray[np.int32]:
    """In how many bits pictures differ from what others show of them."""
    found = np.full(len(left), 128, dtype=np.int32)  # where nothing is to be seen: as far as chance
    whole, known = fingerprints_of(thumbs, [WHOLE], threads=threads)
    for row, (one, other) in enumerate(zip(left.tolist(), right.tolist(), strict=True)):
        view = View("elected", tuple(maps[row].tolist()))
        seen, valid = fingerprints_of(thumbs[other : other + 1], [view], threads=1)
        if known[one] and valid[0]:
            found[row] = int.from_bytes((whole[one] ^ seen[0]).tobytes(), "little").bit_count()
    return found


def merged(one: Proposals, other: Proposals) -> Proposals:
    """The ways of both, pair by pair, the nearest first."""
    left, right, distance, maps = (
        np.concatenate([getattr(one, name), getattr(other, name)])
        for name in ("left", "right", "distance", "map")
    )
    order = np.lexsort([distance, np.maximum(left, right), np.minimum(left, right)])
    return Proposals(left[order], right[order], distance[order], maps[order])


def _pair(low: Rows, high: Rows, order: Rows) -> Rows:
    key: Rows = low[order] << 32 | high[order]
    return key


BLOCKS: Final = 8  # a side
MARKS: Final = ("the same", "differs", "not in the other", "too plain to tell")
AGREEMENT: Final = (
    *(f"m{at}" for at in range(6)),
    "covered",
    "covering",
    "whole",
    "mean",
    "share",
    "fine_mean",
    "fine_share",
    "blocks",
    "strong",
    "inner_mean",
    "inner_share",
    "inner_blocks",
)


def agreements(
    thumbs: Thumbs, left: Rows, right: Rows, maps: Numbers, *, threads: int | None = None
) -> Numbers:
    """How far pairs agree, a row of `AGREEMENT` each."""
    return _agreements(thumbs, left, right, maps, threads)[0]


def _agreements(
    thumbs: Thumbs, left: Rows, right: Rows, maps: Numbers, threads: int | None
) -> tuple[Numbers, npt.NDArray[np.uint8]]:
    """The same, and what each block of the left picture says: a place in `MARKS`."""
    return _native.picture_agreements(
        thumbs[:, :PIXELS],
        left.astype(np.int64),
        right.astype(np.int64),
        np.ascontiguousarray(maps),
        threads,
    )


# --- the verdict -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ImageRule:
    """When two pictures show the same; docs/images.md tells each."""

    mean: float
    """Least mean correlation of the blocks that show something."""
    share: float
    """Least share of those blocks that agree, in the coarse image and in the fine one."""
    part: float
    """Least share of either picture that the other one shows."""
    blocks: int = 4
    """Least number of blocks that show something."""
    drawn: tuple[float, float] = (0.88, 0.92)
    """Mean and share for drawings, of which most is ground: charts and pages of one layout are much alike."""
    strong: float | None = 0.5
    """Least share of the inner blocks of a photograph that agree nearly wholly, where others are covered."""
    inner: tuple[float, float] = (0.65, 0.65)
    """Mean and share of the blocks that are not at the rim, looked at alone: a frame is no evidence."""
    few: tuple[float, int] = (0.12, 24)
    """By how much the mean must be higher where hardly any block shows something; 0 from that many on."""
    colour: bool = True
    """Whether clearly other colours make another picture."""


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


# Share of a picture that has one grey level: a drawing from the first on, a photograph below the second.
DRAWN: Final = 0.6
PHOTOGRAPH: Final = 0.5
# The mean that is always enough, however few blocks there are.
FEW: Final = 0.95
# Mean, share and number of the inner blocks that are enough where the rim differs: corners that were filled
# when it was turned, a shade around it; drawings need what they need anyway. By how much the mean of all
# blocks may then be below the rule's.
RIM: Final = (0.83, 0.88, 20, 0.14)
# Least mean, share and number of blocks of a photograph that is covered in part.
COVERED: Final = (0.5, 0.5, 16)
SYMMETRIES: Final = ("", "mirror", "flip", "rot180", "transpose", "rot90", "rot270", "transverse")
REJECTED: Final = (
    "does not show the same",
    "same layout, different content",
    "shows a part only",
    "too plain to tell",
    "same picture in other colours",
)
_KINDS: Final = ("", "crop", "part of it")
REASONS: Final = (
    *(
        "same picture" + (f": {', '.join(words)}" if words else "")
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
    """The share of each picture that has nearly the same grey level."""
    found = np.zeros(len(thumbs))
    for row, thumb in enumerate(thumbs[:, :PIXELS]):
        counts = np.cumsum(np.bincount(thumb, minlength=256 + 8)[: 256 + 8])
        found[row] = np.max(counts[8:] - np.append(0, counts[:255])) / len(thumb)
    return found


def judge(thumbs: Thumbs, left: Rows, right: Rows, found: Numbers, rule: ImageRule) -> npt.NDArray[np.uint8]:
    """The place in `REASONS` of each row of `agreements` of those pictures."""
    column = {name: found[:, at] for at, name in enumerate(AGREEMENT)}
    some, place = np.unique(np.concatenate([left, right]), return_inverse=True)
    ground = grounds(thumbs[some])[place].reshape(2, -1)
    drawn, photograph = ground.min(axis=0) >= DRAWN, ground.max(axis=0) < PHOTOGRAPH
    least = np.minimum(column["covered"], column["covering"])
    shares = np.minimum(column["share"], column["fine_share"])
    reason = transformations(found).astype(np.int64)
    lacking = np.maximum(0.0, 1.0 - column["blocks"] / rule.few[1])
    drawing = max(rule.mean, rule.drawn[0]), max(rule.share, rule.drawn[1])
    needed = np.minimum(rule.mean + rule.few[0] * lacking, max(rule.mean, FEW))
    same = column["mean"] >= np.where(drawn, np.maximum(needed, drawing[0]), needed)
    same &= shares >= np.where(drawn, drawing[1], rule.share)
    if rule.strong is not None:
        mean, share, blocks, less = RIM
        rim = column["inner_mean"] >= np.where(drawn, drawing[0], mean)
        rim &= column["inner_share"] >= np.where(drawn, drawing[1], share)
        same |= rim & (column["inner_blocks"] >= blocks) & (column["mean"] >= rule.mean - less)
        mean, share, blocks = COVERED
        covered = ~same & photograph & (column["strong"] >= rule.strong) & (column["mean"] >= mean)
        covered &= (shares >= share) & (column["blocks"] >= blocks)
        reason[covered] += 1
        same |= covered
    same &= (column["inner_mean"] >= rule.inner[0]) & (column["inner_share"] >= rule.inner[1])
    reason[same & (least < rule.part)] = ACCEPTING + 2
    reason[~same] = np.where(column["whole"][~same] >= 0.6, ACCEPTING + 1, ACCEPTING)
    reason[same & (column["blocks"] < rule.blocks)] = ACCEPTING + 3
    for row in np.flatnonzero(reason < ACCEPTING).tolist() if rule.colour else ():
        if other_colours(thumbs[left[row]], thumbs[right[row]], found[row, :6]):
            reason[row] = ACCEPTING + 4
    return reason.astype(np.uint8)


def transformations(found: Numbers) -> Rows:
    """What leads from one picture to the other, as a place in `REASONS`: symmetry, part, small turn."""
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
    """What would lead from whole pictures to the one that was seen through views, were they verified."""
    shown = np.minimum(np.abs(np.linalg.det(matrices)), 1.0)
    found = np.column_stack([matrices[:, :2].reshape(-1, 6), np.ones(len(matrices)), shown])
    return [REASONS[place] for place in transformations(found).tolist()]


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """The verdict on pairs, a row each: the agreement of the best way to lay them on each other."""

    reason: npt.NDArray[np.uint8]
    found: Numbers

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
    open_ = np.arange(len(rows))
    for attempt in range(TRIED + 1):  # and one by corners
        open_ = open_[rows[open_] + attempt < ends[open_]]
        if not len(open_):
            break
        at = rows[open_] + attempt
        found = agreements(
            thumbs, proposals.left[at], proposals.right[at], proposals.map[at], threads=threads
        )
        verdict = judge(thumbs, proposals.left[at], proposals.right[at], found, rule)
        better = (verdict < ACCEPTING) | (found[:, 9] > best[open_, 9])
        best[open_[better]], reason[open_[better]] = found[better], verdict[better]
        open_ = open_[verdict >= ACCEPTING]
    return Seen(reason, best)


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """What two pictures have in common, laid upon each other in the best way that was found."""

    map: Numbers
    """From the unit square of the left picture to that of the right one, borders and all."""
    inner: Numbers
    """The same for what is inside their borders."""
    distance: int | None
    """Of the views that proposed it; None if none was within the radius."""
    code: int
    """The place of its reason in `REASONS`."""
    found: Numbers
    """A row of `AGREEMENT`."""
    marks: npt.NDArray[np.uint8]
    """Places in `MARKS`, in rows: what each block says of the picture that lies upon the other."""
    upper: int
    """Which one that is: 0 the left one, 1 the right one."""

    @property
    def accepted(self) -> bool:
        return self.code < ACCEPTING

    @property
    def reason(self) -> str:
        """Why it was accepted or not, in words."""
        return REASONS[self.code]


def compare(left: Picture, right: Picture, rule: ImageRule, *, radius: int = RADIUS) -> Comparison:
    """Compare two pictures in every way that is proposed, or else as they are."""
    thumbs = np.array([np.frombuffer(one.thumb, dtype=np.uint8) for one in (left, right)])
    ways = merged(propose(stored(thumbs), asked(thumbs), radius), propose_by_corners(thumbs))
    if len(ways.left):
        lower, upper, maps = ways.left, ways.right, ways.map
    else:
        lower, upper, maps = np.array([0]), np.array([1]), np.eye(3)[None, :2].reshape(1, 6)
    found, marks = _agreements(thumbs, lower, upper, maps, None)
    reasons = judge(thumbs, lower, upper, found, rule)
    best = int(np.lexsort([-found[:, 9], reasons >= ACCEPTING])[0])
    row, reason = found[best].copy(), int(reasons[best])
    if lower[best] == 1:
        row[:6] = np.linalg.inv(full_matrix(row[:6]))[:2].ravel()
        row[[6, 7]] = row[[7, 6]]
        if reason < ACCEPTING:
            reason = int(transformations(row[None])[0]) + reason % 2
    whole = full_matrix(part(*right.box)) @ full_matrix(row[:6]) @ np.linalg.inv(full_matrix(part(*left.box)))
    return Comparison(
        map=whole[:2].ravel(),
        inner=row[:6],
        distance=int(ways.distance[best]) if len(ways.left) else None,
        code=reason,
        found=row,
        marks=marks[best].reshape(BLOCKS, BLOCKS),
        upper=int(lower[best]),
    )
