"""Fingerprints of images through views: what is stored of each image, and what the other side asks with.

Stored is the whole image, and what lies on it if its ground is plain. The other side asks with parts, turns
and symmetries of itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from neardup.fingerprints import Fingerprints
from neardup.images.thumbs import Thumbs
from neardup.images.views import (
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

Rows = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Prints:
    """Fingerprints of images through views: whose each is, and where it lies in that image."""

    prints: Fingerprints
    image: Rows
    matrix: Numbers
    """3 x 3 matrices from the unit square that was seen to the image's."""
    plain: npt.NDArray[np.bool_]
    """Which ones see all of the image, or all that lies on its ground, as it is."""

    @property
    def as_they_are(self) -> Prints:
        """The plain ones alone: what `stored` would give."""
        prints, some = Fingerprints(self.prints.words[self.plain], bits=256), self.plain
        return Prints(prints, self.image[some], self.matrix[some], some[some])


def stored(thumbs: Thumbs, *, threads: int | None = None) -> Prints:
    """What is kept of every image: the whole, and what lies on it if its ground is plain."""
    return _prints(thumbs, (WHOLE,), (0,), threads)


def asked(thumbs: Thumbs, *, views: tuple[View, ...] = VIEWS, threads: int | None = None) -> Prints:
    """What the other side asks with."""
    return _prints(thumbs, views, EVERY, threads)


def _prints(thumbs: Thumbs, views: tuple[View, ...], inner: tuple[int, ...], threads: int | None) -> Prints:
    words, valid = fingerprints_of(thumbs, views, least=DULL, threads=threads)
    kinds = [full_matrix(view.matrix) @ symmetry_matrix(one) for view in views for one in view.symmetries]
    count = len(thumbs)
    image, first = np.repeat(np.arange(count), len(kinds)), np.arange(len(kinds)) == 0
    parts = [(words, valid, image, np.tile(kinds, (count, 1, 1)), np.tile(first, count))]
    for number, thumb in enumerate(thumbs):
        box = trimmed(thumb)
        if box is None:
            continue
        view = View("within", part(*box), inner)
        more = fingerprints_of(thumb[None], [view], least=DULL, threads=1)
        turned = np.array([full_matrix(view.matrix) @ symmetry_matrix(one) for one in inner])
        parts.append((*more, np.full(len(inner), number), turned, np.arange(len(inner)) == 0))
    words, valid, image, matrix, plain = (np.concatenate([part[at] for part in parts]) for at in range(5))
    wanted = valid.astype(bool)
    prints = Fingerprints(words[wanted], bits=256)
    return Prints(prints, image[wanted].astype(np.int64), matrix[wanted].reshape(-1, 3, 3), plain[wanted])
