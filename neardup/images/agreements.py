"""How far two images agree, one laid upon the other by a map: block by block, as a whole and at the rim."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from neardup import _native
from neardup.images.prints import Numbers, Rows
from neardup.images.thumbs import PIXELS, Thumbs

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
    "lean_across",
    "lean_down",
)


def agreements(
    thumbs: Thumbs, left: Rows, right: Rows, maps: Numbers, *, threads: int | None = None
) -> Numbers:
    """How far pairs agree, a row of `AGREEMENT` each."""
    return marked_agreements(thumbs, left, right, maps, threads)[0]


def marked_agreements(
    thumbs: Thumbs, left: Rows, right: Rows, maps: Numbers, threads: int | None
) -> tuple[Numbers, npt.NDArray[np.uint8]]:
    """The same, and what each block of the left image says: a place in `MARKS`."""
    return _native.image_agreements(
        thumbs[:, :PIXELS],
        left.astype(np.int64),
        right.astype(np.int64),
        np.ascontiguousarray(maps),
        threads,
    )
