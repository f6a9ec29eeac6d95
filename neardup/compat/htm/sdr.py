"""Sparse distributed representations: which bits of a grid are on, in three forms.

`sparse` has the numbers of the bits that are on, `dense` a byte for each bit, `coordinates` the place of each
bit that is on. What is read stays the same array until a value is assigned; after changing an array in place,
assign it back (`sdr.dense = sdr.dense`), as in the original.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final
from weakref import WeakMethod

import numpy as np
import numpy.typing as npt

from neardup.checks import whole
from neardup.compat.htm.random import Random
from neardup.compat.htm.refusals import RefusedState, RefusedValue, as_runtime_error
from neardup.errors import InvalidType, InvalidValue, shown

__all__ = ["SDR", "overlap"]

Indices = npt.NDArray[np.uint32]
Bytes = npt.NDArray[np.uint8]
Watcher = Callable[["SDR"], None]

LARGEST: Final = 2**32 - 1  # bits


class SDR:
    """A sparse distributed representation: which of *dimensions* bits are on; at first none, or *sparse*.

    >>> sdr = SDR(8, [5, 2])
    >>> sdr.sparse.tolist(), sdr.dense.tolist(), sdr.getSparsity()
    ([2, 5], [0, 0, 1, 0, 0, 1, 0, 0], 0.25)
    >>> grid = SDR((3, 3))
    >>> grid.coordinates = [[0, 1, 2], [1, 1, 2]]
    >>> print(grid)
    SDR( 3, 3 ) 1, 4, 8
    """

    __slots__ = ("__weakref__", "_coordinates", "_dense", "_dimensions", "_sparse", "_watchers")

    __hash__ = None  # type: ignore[assignment]

    def __init__(
        self,
        dimensions: int | Sequence[int] | SDR | None = None,
        sparse: Iterable[int] = (),
        *,
        sdr: SDR | None = None,
    ) -> None:
        given = dimensions if sdr is None else sdr
        if given is None or (sdr is not None and dimensions is not None):
            raise InvalidType("give an SDR either dimensions or another SDR")
        self._dense: Bytes | None = None
        self._coordinates: list[npt.NDArray[np.intp]] | None = None
        self._watchers: list[WeakMethod[Watcher]] = []
        if isinstance(given, SDR):
            self._dimensions: tuple[int, ...] = tuple(given.dimensions)
            self._sparse: Indices | None = given.sparse.copy()
        else:
            self._dimensions = shape_of(given)
            self._sparse = np.zeros(0, dtype=np.uint32)
        if not isinstance(sparse, tuple) or sparse:
            self._sparse = self._checked(sparse)

    @property
    def dimensions(self) -> list[int]:
        """How many bits there are in each direction."""
        return list(self._dimensions)

    @property
    def size(self) -> int:
        """How many bits there are."""
        return math.prod(self._dimensions)

    # --- its value -------------------------------------------------------------------------------------

    @property
    def sparse(self) -> Indices:
        """The numbers of the bits that are on, sorted."""
        if self._sparse is None:
            assert self._dense is not None
            self._sparse = np.flatnonzero(self._dense).astype(np.uint32)
        return self._sparse

    @sparse.setter
    def sparse(self, indices: Iterable[int]) -> None:
        self._put(self._checked(indices))

    @property
    def dense(self) -> Bytes:
        """A byte for each bit, 0 or 1, in the shape of the dimensions."""
        if self._dense is None:
            dense = np.zeros(self.size, dtype=np.uint8)
            dense[self.sparse] = 1
            self._dense = dense.reshape(self._dimensions)
        return self._dense

    @dense.setter
    def dense(self, values: npt.ArrayLike) -> None:
        if values is not self._dense:
            given = _numbers(values, "dense values", "biuf")
            if given.shape != self._dimensions:
                raise RefusedValue(
                    f"dense values of shape {given.shape} do not fit an SDR of {self._dimensions}"
                )
            self._dense = (given != 0).astype(np.uint8)
        self._sparse = self._coordinates = None
        self._tell()

    @property
    def coordinates(self) -> list[npt.NDArray[np.intp]]:
        """The places of the bits that are on: for each dimension an array with a number for each bit."""
        if self._coordinates is None:
            self._coordinates = list(np.unravel_index(self.sparse.astype(np.intp), self._dimensions))
        return self._coordinates

    @coordinates.setter
    def coordinates(self, places: Sequence[Iterable[int]]) -> None:
        given = [self._indices(row) for row in _items(places, "coordinates")]
        if len(given) != len(self._dimensions) or len({len(row) for row in given}) > 1:
            raise RefusedValue(
                f"coordinates of an SDR of {self._dimensions} are {len(self._dimensions)} "
                "equally long lists of numbers"
            )
        for row, wide in zip(given, self._dimensions, strict=True):
            _check_range(row, wide, f"a dimension of {wide}")
        self._put(self._checked(np.ravel_multi_index(tuple(given), self._dimensions)))

    def zero(self) -> SDR:
        """Switch all bits off."""
        return self._put(np.zeros(0, dtype=np.uint32))

    def setSDR(self, other: SDR) -> SDR:
        """Take the value of another SDR of the same dimensions."""
        return self._put(self._alike(other).sparse.copy())

    def reshape(self, dimensions: int | Sequence[int]) -> SDR:
        """Take other dimensions with the same number of bits in all."""
        shape = shape_of(dimensions)
        if math.prod(shape) != self.size:
            raise RefusedValue(f"{self.size} bits cannot have the dimensions {list(shape)}")
        self._sparse, self._dense, self._coordinates = self.sparse, None, None
        self._dimensions = shape
        return self

    def flatten(self) -> SDR:
        """Take one dimension."""
        return self.reshape(self.size)

    # --- what it tells ---------------------------------------------------------------------------------

    def getSum(self) -> int:
        """How many bits are on."""
        return len(self.sparse)

    def getSparsity(self) -> float:
        """The share of bits that are on."""
        return len(self.sparse) / (self.size or 1)

    def getOverlap(self, other: SDR) -> int:
        """How many bits are on in both.

        >>> SDR(8, [1, 2, 3]).getOverlap(SDR(8, [2, 3, 4]))
        2
        """
        return len(np.intersect1d(self.sparse, self._alike(other).sparse, assume_unique=True))

    # --- chance ----------------------------------------------------------------------------------------

    def randomize(self, sparsity: float, seed: int | Random = 0, *, rng: Random | None = None) -> SDR:
        """Switch that share of the bits on, and no others; seed 0 is another one each time.

        >>> SDR(100).randomize(0.05, seed=42).sparse.tolist()
        [8, 30, 52, 84, 86]
        """
        count = _share("sparsity", sparsity, self.size)
        numbers = np.arange(self.size, dtype=np.uint32)
        return self._put(np.sort(_generator(seed if rng is None else rng).sample(numbers, count)))

    def addNoise(self, fractionNoise: float, seed: int | Random = 0) -> SDR:
        """Move that share of the bits that are on to places that are off.

        >>> sdr = SDR(100, range(10))
        >>> SDR(sdr).addNoise(0.3).getOverlap(sdr)
        7
        """
        on = self.sparse
        count, off = _share("fractionNoise", fractionNoise, len(on)), self.size - len(on)
        if count > off:
            raise RefusedValue(f"cannot move {count} bits: only {off} of {self.size} are off")
        rng = _generator(seed)
        gone = rng.sample(on, count)
        free = np.setdiff1d(np.arange(self.size, dtype=np.uint32), on, assume_unique=True)
        moved = rng.sample(free, count)
        return self._put(np.sort(np.concatenate([np.setdiff1d(on, gone, assume_unique=True), moved])))

    def killCells(self, fraction: float, seed: int | Random = 0) -> SDR:
        """Switch off that share of all bits, on or off; the same seed switches off the same."""
        count = _share("fraction", fraction, self.size)
        dead = _generator(seed).sample(np.arange(self.size, dtype=np.uint32), count)
        return self._put(np.setdiff1d(self.sparse, dead, assume_unique=True))

    # --- sets of bits ----------------------------------------------------------------------------------

    def intersection(self, *inputs: SDR | Sequence[SDR]) -> SDR:
        """Switch on what is on in all *inputs*: two, or a list of them.

        >>> SDR(8).intersection(SDR(8, [1, 2, 3]), SDR(8, [2, 3, 4])).sparse.tolist()
        [2, 3]
        """
        given = [self._alike(sdr).sparse for sdr in _inputs(inputs)]
        numbers, counts = np.unique(np.concatenate(given), return_counts=True)
        return self._put(numbers[counts == len(given)])

    def union(self, *inputs: SDR | Sequence[SDR]) -> SDR:
        """Switch on what is on in any of the *inputs*: two, or a list of them.

        >>> SDR(8).union([SDR(8, [1]), SDR(8, [2]), SDR(8, [1, 4])]).sparse.tolist()
        [1, 2, 4]
        """
        return self._put(np.unique(np.concatenate([self._alike(sdr).sparse for sdr in _inputs(inputs)])))

    set_union = union

    def concatenate(self, *given: Any, inputs: Sequence[SDR] | None = None, axis: int | None = None) -> SDR:
        """Put the *inputs* (two, or a list of them) side by side along a dimension.

        >>> SDR(8).concatenate(SDR(4, [1]), SDR(4, [1])).sparse.tolist()
        [1, 5]
        """
        if given and not isinstance(given[-1], SDR) and axis is None and inputs is None and len(given) > 1:
            *given, axis = given  # type: ignore[assignment]
        at = 0 if axis is None else axis
        if not isinstance(at, (int, np.integer)) or isinstance(at, bool) or at < 0:
            raise InvalidType(f"axis must be the number of a dimension, not {shown(at)}")
        chosen = _inputs(given if inputs is None else (*given, inputs))
        if at >= len(self._dimensions):
            raise RefusedValue(f"axis {shown(at)} is not a dimension of an SDR of {self._dimensions}")
        shapes = [sdr._dimensions for sdr in chosen]
        whole_shape = list(self._dimensions)
        for shape in shapes:
            if len(shape) != len(whole_shape) or any(
                one != other
                for place, (one, other) in enumerate(zip(shape, whole_shape, strict=True))
                if place != at
            ):
                raise RefusedValue(f"an SDR of {shape} cannot be a part of one of {self._dimensions}")
        if sum(shape[at] for shape in shapes) != whole_shape[at]:
            raise RefusedValue(f"the parts do not fill an SDR of {self._dimensions} along axis {at}")
        self._dense = np.concatenate([sdr.dense for sdr in chosen], axis=at)
        self._sparse = self._coordinates = None
        self._tell()
        return self

    # --- as an object ----------------------------------------------------------------------------------

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SDR):
            return NotImplemented
        return self._dimensions == other._dimensions and np.array_equal(self.sparse, other.sparse)

    def __str__(self) -> str:
        dimensions = ", ".join(map(str, self._dimensions))
        return f"SDR( {dimensions} ) {', '.join(map(str, self.sparse.tolist()))}".rstrip()

    def __repr__(self) -> str:
        shape = self.size if len(self._dimensions) == 1 else self.dimensions
        return f"SDR({shape}, {self.sparse.tolist()})"

    def __getstate__(self) -> dict[str, Any]:
        return {"dimensions": self.dimensions, "sparse": self.sparse}

    def __setstate__(self, state: dict[str, Any]) -> None:
        try:
            if set(state) != {"dimensions", "sparse"}:
                raise InvalidValue("it needs dimensions and the bits that are on")
            SDR.__init__(self, state["dimensions"], state["sparse"])
        except (InvalidValue, TypeError) as error:
            raise RefusedState(f"this is not the state of an SDR: {shown(error)}") from None

    # --- for its own use -------------------------------------------------------------------------------

    def _watch(self, watcher: Watcher) -> None:
        """Call a bound method after every assignment, as long as its object lives."""
        self._watchers.append(WeakMethod(watcher))

    def _tell(self) -> None:
        if self._watchers:
            live = [(reference, watcher) for reference in self._watchers if (watcher := reference())]
            self._watchers = [reference for reference, _ in live]
            for _, watcher in live:
                watcher(self)

    def _put(self, sparse: Indices) -> SDR:
        """Take bits that are known to be sorted, different and in range."""
        self._sparse, self._dense, self._coordinates = sparse, None, None
        self._tell()
        return self

    def _checked(self, indices: Iterable[int]) -> Indices:
        numbers = np.sort(self._indices(indices))
        _check_range(numbers, self.size, f"an SDR of {self.size} bits")
        if len(numbers) > 1 and (twice := np.flatnonzero(numbers[1:] == numbers[:-1])).size:
            raise RefusedValue(f"bit {numbers[twice[0]]} is named twice; name every bit once")
        return numbers.astype(np.uint32)

    def _indices(self, given: Iterable[int]) -> npt.NDArray[Any]:
        return _numbers(given, "the bits that are on", "iu").reshape(-1)

    def _alike(self, other: object) -> SDR:
        if not isinstance(other, SDR):
            raise InvalidType(f"give an SDR, not {shown(other)}")
        if other._dimensions != self._dimensions:
            here, there = (
                str(shape[0]) if len(shape) == 1 else str(shape)
                for shape in (self._dimensions, other._dimensions)
            )
            raise RefusedValue(f"an SDR of {here} bits and one of {there} do not fit each other")
        return other


def overlap(left: SDR, right: SDR) -> int:
    """How many bits are on in both."""
    return left.getOverlap(right)


def shape_of(dimensions: Any) -> tuple[int, ...]:
    """Dimensions as a tuple, if an SDR can have them; a single one may be 0."""
    given = [dimensions] if isinstance(dimensions, (int, np.integer)) else _items(dimensions, "dimensions")
    with as_runtime_error():
        shape = tuple(whole("a dimension", one, 0 if len(given) == 1 else 1, LARGEST) for one in given)
    if not shape:
        raise RefusedValue("an SDR needs at least one dimension")
    if len(shape) > 32 or math.prod(shape) > LARGEST:
        raise RefusedValue(f"an SDR has at most 32 dimensions and {LARGEST} bits, not {shown(shape)}")
    return shape


def _items(given: Any, what: str) -> list[Any]:
    if isinstance(given, (str, bytes)) or not can_be_listed(given):
        raise InvalidType(f"{what} must be a list, not {shown(given)}")
    return list(given)


def can_be_listed(given: object) -> bool:
    """Whether it has elements; an array without dimensions claims to, and has none."""
    return isinstance(given, Iterable) and getattr(given, "ndim", 1) != 0


def _numbers(given: Any, what: str, kinds: str) -> npt.NDArray[Any]:
    try:
        array = given if isinstance(given, np.ndarray) else np.array(_items(given, what))
    except (ValueError, OverflowError):  # lists of different lengths, or numbers beyond all types
        raise RefusedValue(f"{what} must be plain numbers, not {shown(given)}") from None
    if array.size and array.dtype.kind not in kinds:
        raise InvalidType(f"{what} must be numbers, not {shown(given)}")
    return array


def _check_range(numbers: npt.NDArray[Any], size: int, where: str) -> None:
    if len(numbers) and (numbers.min() < 0 or numbers.max() >= size):
        wrong = numbers[(numbers < 0) | (numbers >= size)][0]
        raise RefusedValue(f"bit {wrong} is outside {where}")


def _share(name: str, share: Any, count: int) -> int:
    """That share of *count*, rounded as the original does: in 32 bits, halves upwards."""
    if isinstance(share, (bool, str)) or not isinstance(share, (int, float, np.floating, np.integer)):
        raise InvalidType(f"{name} must be a number, not {shown(share)}")
    if not 0 <= share <= 1:
        raise RefusedValue(f"{name} must be from 0 to 1, not {shown(share)}")
    return math.floor(float(np.float32(count) * np.float32(share)) + 0.5)


def _generator(seed: Any) -> Random:
    """A generator of that seed, or a copy of one that is given: as in the original, it does not move on."""
    if not isinstance(seed, Random):
        return Random(seed)
    own = Random(1)
    own.__setstate__(seed.__getstate__())
    return own


def _inputs(given: Sequence[Any]) -> list[SDR]:
    inputs = list(given)
    if len(inputs) == 1 and not isinstance(inputs[0], SDR):
        inputs = _items(inputs[0], "the inputs")
        if not inputs:
            raise RefusedValue("give at least one SDR")
    elif len(inputs) != 2:
        raise InvalidType(f"give two SDRs or a list of them, not {len(inputs)}")
    for sdr in inputs:
        if not isinstance(sdr, SDR):
            raise InvalidType(f"give an SDR, not {shown(sdr)}")
    return inputs
