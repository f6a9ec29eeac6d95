"""The plan of a join: how pairs would be found, and at what cost."""

from __future__ import annotations

from neardup import _native
from neardup.checks import check_share, check_threads
from neardup.pairs import Plan, Prints, arrays, as_prints, check_plan, check_radius, plan_of

__all__ = ["Plan", "plan"]


def plan(
    prints: Prints,
    radius: int,
    other: Prints | None = None,
    *,
    recall: float = 1.0,
    threads: int | None = None,
    plan: str | None = None,
) -> Plan:
    """What `join` would do with the same arguments.

    *plan* forces a way: `brute`, `blocks`, `blocks:4,1` (four blocks, each cut into one
    part more than its radius) or, with a recall below 1, `sampling`.

    >>> import numpy as np
    >>> print(plan(np.arange(100, dtype=np.uint64), radius=3).method)
    brute
    """
    left = as_prints(prints)
    radius, recall = check_radius(radius, left.bits), check_share("recall", recall)
    threads = check_threads(threads)
    check_plan(plan, recall)
    rows = None if other is None else int(as_prints(other).valid.sum())
    request = (left.bits, radius, recall, threads, plan, None)
    return plan_of(left, radius, _native.join_plan(arrays(left), rows, request))
