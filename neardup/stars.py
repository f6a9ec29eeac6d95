"""Stars: a keeper and the documents that were verified against it, each of them directly.

In the keep order an unassigned document becomes keeper and takes every unassigned candidate
whose pair with it is accepted. A chain A~B~C never joins A and C.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Flags = npt.NDArray[np.bool_]

# Pairs looked at together.
ROUND = 8192


def stars(
    count: int,
    left: npt.NDArray[Any],
    right: npt.NDArray[Any],
    *,
    fixed: Flags | None = None,
) -> npt.NDArray[np.int32]:
    """For each document the one that stays for it, itself if it stays. They are numbered in keep order.

    *left* < *right* are the accepted pairs, sorted. *fixed* documents are never taken.

    >>> stars(3, np.array([0, 1]), np.array([1, 2])).tolist()
    [0, 0, 2]
    """
    keeper = np.arange(count, dtype=np.int32)
    free = np.ones(count, dtype=bool)
    for at in range(0, len(left), ROUND):
        rows = np.arange(at, min(len(left), at + ROUND))
        rows = rows[free[left[rows]] & free[right[rows]]]
        if fixed is not None:
            rows = rows[~fixed[right[rows]]]
        for one, other in zip(left[rows].tolist(), right[rows].tolist(), strict=True):
            if free[one] and free[other]:
                keeper[other] = one
                free[other] = False
    return keeper
