"""Stars: a keeper and the documents that were verified against it, each of them directly.

In the keep order an unassigned document becomes keeper and takes every unassigned candidate
whose pair with it is accepted. A chain A~B~C never joins A and C.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

# Pairs judged at a time: enough for all cores, few enough that a large cluster is found early.
ROUND = 8192


def stars(
    count: int,
    left: npt.NDArray[Any],
    right: npt.NDArray[Any],
    judge: Callable[[Rows], Flags],
    *,
    fixed: Flags | None = None,
) -> npt.NDArray[np.int32]:
    """For each document the one that stays for it, itself if it stays. They are numbered in keep order.

    *left* < *right* are candidate pairs, sorted. *judge* says of some pairs, given by their row,
    which are accepted. *fixed* documents are never taken.

    >>> stars(3, np.array([0, 1]), np.array([1, 2]), lambda rows: np.ones(len(rows), bool)).tolist()
    [0, 0, 2]
    """
    keeper = np.arange(count, dtype=np.int32)
    free = np.ones(count, dtype=bool)
    at = 0
    while at < len(left):
        end = min(len(left), at + ROUND)
        # A keeper's pairs are judged in one round, so that none is judged in vain.
        while end < len(left) and left[end] == left[end - 1] and end - at < 64 * ROUND:
            end += 1
        rows = np.arange(at, end)
        rows = rows[free[left[rows]] & free[right[rows]]]
        if fixed is not None:
            rows = rows[~fixed[right[rows]]]
        if len(rows):
            rows = rows[judge(rows)]
        for one, other in zip(left[rows].tolist(), right[rows].tolist(), strict=True):
            if free[one] and free[other]:
                keeper[other] = one
                free[other] = False
        at = end
    return keeper
