"""Selections: which bits the votes set when it is not simply their sign."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

Votes = npt.NDArray[Any]
Select = Callable[[Votes, int], npt.NDArray[np.intp]]


@dataclass(frozen=True, slots=True)
class Selection:
    """A named way to choose bits by their votes."""

    summary: str
    choose: Select


def top(votes: Votes, count: int) -> npt.NDArray[np.intp]:
    """The *count* bits with most votes.

    >>> top(np.array([1, 5, 5, 0]), 2).tolist(), top(np.array([0, 0, 0]), 2).tolist()
    ([1, 2], [0, 1])
    """
    return np.argsort(-votes, kind="stable")[:count]


def top_above(votes: Votes, count: int) -> npt.NDArray[np.intp]:
    """As `top`, but without bits that have no more votes than any other.

    >>> top_above(np.array([1, 5, 5, 1]), 3).tolist(), top_above(np.array([0, 0, 0]), 2).tolist()
    ([1, 2], [])
    """
    best = top(votes, count)
    return np.asarray(best[votes[best] > votes.min()])


def top_htm(votes: Votes, count: int) -> npt.NDArray[np.intp]:
    """As the HTM encoder does it: take the first maximum, set it to the minimum, *count* times.

    Once nothing is above the minimum, the first bit of all is the maximum and taken again and again.

    >>> top_htm(np.array([1, 5, 5, 1]), 3).tolist(), top_htm(np.array([0, 0, 0]), 2).tolist()
    ([1, 2, 0], [0])
    """
    best = top_above(votes, count)
    return best if len(best) == count or 0 in best else np.append(best, 0)


SELECTIONS: Final = {
    "top": Selection("the bits with most weight for them are set; of equal ones the lower", top),
    "top-above": Selection("as top, but none that has no more weight than any other", top_above),
    "top-htm": Selection("as top-above, and the lowest bit where these are too few", top_htm),
}
