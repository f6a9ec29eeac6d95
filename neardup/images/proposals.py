"""Pairs of images that may show the same, each with the ways in which one may lie on the other.

Fingerprints through views find the parts, turns and symmetries that somebody foresaw. Any other part of an
image, or an image on a page, is found by corners that match and vote for a map. All of this only proposes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup import _native
from neardup.fingerprints import Fingerprints
from neardup.images.prints import Numbers, Prints, Rows
from neardup.images.thumbs import PIXELS, Thumbs
from neardup.images.views import WHOLE, View, fingerprints_of
from neardup.pairs import join, join_batches

RADIUS: Final = 88
# Ways to lay one image upon the other that are tried for a pair, the nearest first.
TRIED: Final = 3


@dataclass(frozen=True, slots=True, eq=False)
class Proposals:
    """Pairs of images near enough to be looked at, with the ways in which they may lie on each other.

    `left` is the image that may lie in `right`; a pair has up to `TRIED` rows,
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
    """All pairs within *radius* of kept and asking images; with *own* they are the same ones.

    *tell* is called now and then with the share that is done.
    """
    found = join(kept.prints, radius, other=asking.prints, threads=threads, tell=tell)
    left, right = kept.image[found.left], asking.image[found.right]
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


# Corners taken from each image, up to this many images; with more images fewer, so that work grows linearly.
CORNERS: Final = 80
IMAGES: Final = 2000
# Bits in which matching corners may differ; a corner with more matches than this tells nothing.
CORNER_RADIUS: Final = 40
COMMON: Final = 64
# Matches of a pair that are looked at, the nearest; and how many must agree on a map.
MATCHES: Final = 32
VOTES: Final = 3


def propose_by_corners(
    thumbs: Thumbs, first: int = 0, *, whole: Fingerprints | None = None, threads: int | None = None
) -> Proposals:
    """Pairs of images with corners that agree on a map; of those from *first* on with those before it.

    The distance is that of the left image and what the right one shows there. *whole* are the fingerprints of
    the whole images, if they were made before.
    """
    most = max(8, int(CORNERS * min(1.0, (IMAGES / max(1, len(thumbs))) ** 0.5)))
    image, place, words = _native.image_corners(thumbs[:, :PIXELS], most, threads)
    split = int(np.searchsorted(image, first))
    prints = Fingerprints(words[split:], bits=256)
    other = Fingerprints(words[:split], bits=256) if first else None
    counts = np.zeros(len(image), dtype=np.int64)
    parts = [np.zeros((3, 0), dtype=np.int64)]
    for some in join_batches(prints, CORNER_RADIUS, other=other, threads=threads):
        one, two = some.left.astype(np.int64) + split, some.right.astype(np.int64)
        kept = (image[one] != image[two]) & (counts[one] <= COMMON) & (counts[two] <= COMMON)
        one, two = one[kept], two[kept]
        counts += np.bincount(np.concatenate([one, two]), minlength=len(counts))
        parts.append(np.stack([one, two, some.distance[kept].astype(np.int64)]))
    one, two, distance = np.concatenate(parts, axis=1)
    rare = (counts[one] <= COMMON) & (counts[two] <= COMMON)
    one, two, distance = one[rare], two[rare], distance[rare]
    order = np.lexsort([two, one, distance, image[two], image[one]])
    key = image[one[order]] << 32 | image[two[order]]
    order = order[np.arange(len(order)) - np.searchsorted(key, key) < MATCHES]
    one, two = one[order], two[order]
    key = image[one] << 32 | image[two]
    begin = np.flatnonzero(np.append(True, key[1:] != key[:-1])) if len(key) else np.zeros(0, dtype=np.int64)
    matches = np.column_stack([place[one], place[two]]).astype(np.float32)
    maps, votes = _native.image_maps(matches, np.append(begin, len(key))[1:].astype(np.int64), VOTES, threads)
    rows = np.flatnonzero(votes)
    left, right, maps = image[one[begin[rows]]], image[two[begin[rows]]], maps[rows]
    # The one that is shown smaller lies in the other.
    large = maps[:, 0] * maps[:, 4] > 1
    left, right = np.where(large, right, left), np.where(large, left, right)
    across, down = maps[large, 0], maps[large, 4]
    maps[large, 2], maps[large, 5] = -maps[large, 2] / across, -maps[large, 5] / down
    maps[large, 0], maps[large, 4] = 1 / across, 1 / down
    return Proposals(left, right, _distances(thumbs, left, right, maps, whole, threads), maps)


def _distances(
    thumbs: Thumbs,
    left: Rows,
    right: Rows,
    maps: Numbers,
    whole: Fingerprints | None,
    threads: int | None,
) -> npt.NDArray[np.int32]:
    """In how many bits images differ from what others show of them."""
    found = np.full(len(left), 128, dtype=np.int32)  # where nothing is to be seen: as far as chance
    if whole is None:
        words, known = fingerprints_of(thumbs, [WHOLE], threads=threads)
    else:
        words, known = whole.words, whole.valid
    for row, (one, other) in enumerate(zip(left.tolist(), right.tolist(), strict=True)):
        view = View("elected", tuple(maps[row].tolist()))
        seen, valid = fingerprints_of(thumbs[other : other + 1], [view], threads=1)
        if known[one] and valid[0]:
            found[row] = int.from_bytes((words[one] ^ seen[0]).tobytes(), "little").bit_count()
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
