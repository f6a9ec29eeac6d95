"""Groups: greedy stars, and connected components.

A star is one centre and members that were each compared with it. A component is a chain:
two of its rows may be far apart, so nothing should be deleted because of it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from neardup import _native
from neardup.checks import check_threads, whole
from neardup.errors import InvalidType, InvalidValue, shown
from neardup.pairs import Pairs, Prints, arrays, as_prints, check_plan, check_radius


class Groups:
    """Greedy stars.

    `label[row]` is the number of the row's group, counted in the order in which centres were
    made. `center`, `member` and `distance` are parallel: one entry for each row that is not
    itself a centre. A row without information is alone in its group.
    """

    __slots__ = ("center", "centers", "distance", "label", "member")

    def __init__(
        self,
        label: npt.NDArray[np.uint32],
        centers: npt.NDArray[np.uint32],
        member: npt.NDArray[np.uint32],
        center: npt.NDArray[np.uint32],
        distance: npt.NDArray[np.uint16],
    ) -> None:
        self.label = label
        self.centers = centers
        self.member = member
        self.center = center
        self.distance = distance

    def __len__(self) -> int:
        return len(self.centers)

    def __iter__(self) -> Iterator[list[int]]:
        """Each group as rows, its centre first."""
        sizes = np.bincount(self.label[self.member], minlength=len(self))
        start = 0
        for center, end in zip(self.centers.tolist(), np.cumsum(sizes).tolist(), strict=True):
            yield [center, *self.member[start:end].tolist()]
            start = end

    def __repr__(self) -> str:
        return f"<{len(self)} groups of {len(self.label)} rows>"


def groups(
    prints: Prints,
    radius: int,
    order: npt.ArrayLike | None = None,
    *,
    threads: int | None = None,
    plan: str | None = None,
) -> Groups:
    """Greedy stars: in *order*, a row in no group becomes a centre and takes every row in no
    group within *radius* of it.

    *order* lists row numbers, each once; without it rows come as they are.

    >>> import numpy as np
    >>> list(groups(np.array([0b0011, 0b1111, 0b0111, 0], dtype=np.uint64), radius=1))
    [[0, 2], [1], [3]]
    """
    own = as_prints(prints)
    radius, threads = check_radius(radius, own.bits), check_threads(threads)
    check_plan(plan, 1.0)
    places = None if order is None else _order(order, len(own))
    request = (own.bits, radius, 1.0, threads, plan, None)
    return Groups(*_native.groups(arrays(own), places, request))


def _order(order: npt.ArrayLike, count: int) -> npt.NDArray[np.uint32]:
    try:
        places = np.asarray(order)
    except (TypeError, ValueError, OverflowError):
        raise InvalidType(f"order must be row numbers, not {shown(order)}") from None
    if places.size == 0:
        places = places.astype(np.uint32)
    if places.dtype.kind not in "iu" or places.ndim != 1:
        raise InvalidType(f"order must be row numbers, not {places.dtype} of shape {places.shape}")
    if len(places) != count:
        raise InvalidValue(f"order must list all {count} rows, not {len(places)}")
    if count and (int(places.min()) < 0 or int(places.max()) >= count):
        raise InvalidValue(f"order must list rows from 0 to {count - 1}")
    places = places.astype(np.uint32)
    if count and int(np.bincount(places, minlength=count).max()) > 1:
        raise InvalidValue("order must list each row once")
    return np.ascontiguousarray(places)


def components(pairs: Pairs, n: int) -> npt.NDArray[np.uint32]:
    """For each of *n* rows the smallest row that a chain of *pairs* leads to.

    >>> import numpy as np
    >>> from neardup.pairs import join
    >>> components(join(np.array([0, 1, 3, 0xF0], dtype=np.uint64), radius=1), 4).tolist()
    [0, 0, 0, 3]
    """
    if not isinstance(pairs, Pairs):
        raise InvalidType(f"pairs must be what join returns, not {type(pairs).__name__}")
    count = whole("n", n, 0, 2**32 - 1)
    left, right = (np.ascontiguousarray(side, dtype=np.uint32) for side in (pairs.left, pairs.right))
    return _native.components(left, right, count)
