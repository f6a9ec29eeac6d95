"""Which of two copies of an image has something added to it: words or a sticker over it, a page around it.

An image that shows less than another is a part of it, or the other one is a page with it. It is taken for a
page if what it has around the image is mostly of one grey level, and the image is not.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from neardup.images.agreements import AGREEMENT
from neardup.images.prints import Numbers, Rows
from neardup.images.regions import REGIONS, regions
from neardup.images.rules import grounds, laid_over
from neardup.images.thumbs import PIXELS, SIDE, Thumbs
from neardup.images.views import inverted

# From how many windows on what differs and looks drawn was added.
WINDOWS: Final = 2
# How much of the larger image lies around the other one at least. And the share of one grey level that what
# lies around has at least, and the image itself at most.
AROUND: Final = 0.1
PAGE: Final = 0.5


def additions(
    thumbs: Thumbs, left: Rows, right: Rows, maps: Numbers, *, threads: int | None = None
) -> npt.NDArray[np.int8]:
    """For pairs laid by their maps: 1 if the left one has something added, -1 if the right one has."""
    side = np.zeros(len(left), dtype=np.int8)
    known = np.flatnonzero(~np.isnan(maps).any(axis=1))
    if not len(known):
        return side
    found = np.zeros((len(known), len(AGREEMENT)))
    found[:, :6] = maps[known]
    counts = regions(thumbs, left[known], right[known], found, threads=threads)
    other, lies = (counts[:, REGIONS.index(name)] for name in ("other", "side"))
    over = (other >= WINDOWS) & laid_over(counts)
    side[known] = np.where(over, np.sign(lies), 0)
    backs = inverted(maps)
    for row in known[~over].tolist():
        side[row] = _page(thumbs[left[row]], maps[row]) - _page(thumbs[right[row]], backs[row])
    return side


def _page(thumb: Thumbs, there: Numbers) -> int:
    """1 if an image is a page with another one on it, else 0; *there* leads from the one to the other."""
    if np.isnan(there).any():
        return 0
    middle = (np.arange(SIDE) + 0.5) / SIDE
    across, down = middle[None, :], middle[:, None]
    x, y = (there[at] * across + there[at + 1] * down + there[at + 2] for at in (0, 3))
    inside = ((x >= 0) & (x <= 1) & (y >= 0) & (y <= 1)).ravel()
    grey = thumb[:PIXELS]
    if not AROUND * PIXELS <= np.count_nonzero(~inside) < PIXELS:
        return 0
    around, shown = (float(grounds(grey[some][None])[0]) for some in (~inside, inside))
    return int(around >= PAGE > shown)
