"""Numbers of documents and texts: which occur, and where each is, some at a time.

NumPy makes places of eight bytes of those of four that it is given: what looks at all of them takes
some at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[Any]
Flags = npt.NDArray[np.bool_]

STEP: Final = 1 << 16
"""How many are taken at a time."""


def steps(count: int, size: int = STEP) -> Iterator[npt.NDArray[np.int64]]:
    """The numbers below *count*, *size* at a time.

    >>> [part.tolist() for part in steps(5, 2)]
    [[0, 1], [2, 3], [4]]
    """
    return (np.arange(at, min(at + size, count)) for at in range(0, count, size))


def either(count: int, one: Numbers, other: Numbers) -> npt.NDArray[np.int64]:
    """The numbers below *count* that are in *one* or in *other*, in ascending order."""
    met = np.zeros(count, dtype=bool)
    met[one] = met[other] = True
    return np.flatnonzero(met)


def inverse(order: Numbers) -> npt.NDArray[np.int32]:
    """The place of each in *order*."""
    place = np.empty(len(order), dtype=np.int32)
    for begin in range(0, len(order), STEP):
        some = order[begin : begin + STEP]
        place[some] = np.arange(begin, begin + len(some))
    return place


def look_up(values: Numbers, places: Numbers, *, into: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """*values* at *places*, some at a time."""
    for begin in range(0, len(places), STEP):
        part = slice(begin, begin + STEP)
        into[part] = values[places[part]]
    return into
