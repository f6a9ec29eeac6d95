"""Pairs: all fingerprints within a radius of each other.

The answer is exact unless a *recall* below 1 allows otherwise. Rows without information are
in no pair, not even with each other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from neardup import _native
from neardup.checks import check_share, check_threads, whole
from neardup.errors import InvalidType, InvalidValue, shown
from neardup.fingerprints import MAX_BITS, Fingerprints, check_comparable
from neardup.types import Bands

MAX_ROWS = 2**32 - 2

Number = TypeVar("Number", np.uint64, np.int64, np.uint32)
Prints = Fingerprints | npt.NDArray[np.uint64]
Arrays = tuple[npt.NDArray[np.uint64], npt.NDArray[np.bool_] | None]


class Pairs:
    """Pairs of rows: `left`, `right` and `distance`, parallel arrays sorted by left, then right.

    In a join of one set with itself left < right.
    """

    __slots__ = ("distance", "left", "right")

    def __init__(
        self,
        left: npt.NDArray[np.uint32],
        right: npt.NDArray[np.uint32],
        distance: npt.NDArray[np.uint16],
    ) -> None:
        self.left = left
        self.right = right
        self.distance = distance

    def __len__(self) -> int:
        return len(self.left)

    def __iter__(self) -> Iterator[tuple[int, int, int]]:
        return zip(self.left.tolist(), self.right.tolist(), self.distance.tolist(), strict=True)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Pairs):
            return NotImplemented
        return all(np.array_equal(getattr(self, name), getattr(other, name)) for name in self.__slots__)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<{len(self)} pairs>"


@dataclass(frozen=True, slots=True)
class Plan:
    """How a join finds its pairs. Printed, it is a few lines for people."""

    method: str
    """`brute`, `blocks` or `sampling`."""
    rows: int
    bits: int
    radius: int
    recall: float
    """The least probability with which a pair within the radius is found; 1.0 is exact."""
    blocks: tuple[tuple[int, int, int], ...]
    """For each block its bits, the radius it is searched with, and the parts it is cut into."""
    tables: int
    key_bits: int
    collision: float
    """How often two fingerprints of a sample agree in a table's key."""
    seconds: float
    bytes: int

    @property
    def choice(self) -> str:
        """What is done, without what it costs. With a recall below 1 it is the same on every machine."""
        exact = "exact" if self.recall == 1.0 else f"recall at least {self.recall:g}"
        lines = [
            f"{self.method}: {self.rows} fingerprints of {self.bits} bits, radius {self.radius}, {exact}"
        ]
        if self.method == "blocks":
            cut = ", ".join(
                f"{count} of {bits} bits in {parts} parts, radius {radius}"
                for (bits, radius, parts), count in Counter(self.blocks).items()
            )
            lines.append(f"  blocks: {cut}")
        if self.method != "brute":
            lines.append(
                f"  {self.tables} tables with keys of {self.key_bits} bits; two keys of the sample agree "
                f"with probability {self.collision:.2g}"
            )
        return "\n".join(lines)

    def __str__(self) -> str:
        return f"{self.choice}\n  about {self.seconds:.3g} s and {self.bytes / 1e6:.0f} MB beside the input"


def plan_of(prints: Fingerprints, radius: int, facts: _native._Plan) -> Plan:
    """The plan of the core for a join of *prints*."""
    method, blocks, tables, key_bits, collision, seconds, size, recall = facts
    return Plan(
        method=method,
        rows=len(prints),
        bits=prints.bits,
        radius=radius,
        recall=recall,
        blocks=tuple(blocks),
        tables=tables,
        key_bits=key_bits,
        collision=collision,
        seconds=seconds,
        bytes=size,
    )


class Nearest(NamedTuple):
    """Pairs that were cut to the nearest of either side."""

    pairs: Pairs
    crowded: npt.NDArray[np.uint32]
    """The rows of pairs that were cut."""
    plan: Plan | None
    """How they were found; None where bands say which rows are compared."""


def join(
    prints: Prints,
    radius: int,
    other: Prints | None = None,
    *,
    recall: float = 1.0,
    threads: int | None = None,
    plan: str | None = None,
    memory: int | None = None,
    tell: Callable[[float], None] | None = None,
) -> Pairs:
    """All pairs within *radius* bits, of one set or of *prints* with *other*, of any width.

    With *recall* below 1 sampling tables may be used: each pair within the radius is then
    found with at least that probability. *plan* forces a way (see `neardup.plan`). The
    fingerprints of one set are sorted in a copy: of a part of them if a copy of all would take more
    than *memory* bytes (1 GiB), but of a quarter at least, or of half if *memory* is not given. *tell* is
    called now and then with the share that is done.

    >>> import numpy as np
    >>> list(join(np.array([0b1010, 0b1011, 0b0000], dtype=np.uint64), radius=2))
    [(0, 1, 1), (0, 2, 2)]
    """
    left = as_prints(prints)
    radius, recall = check_radius(radius, left.bits), check_share("recall", recall)
    threads = check_threads(threads)
    memory = None if memory is None else min(whole("memory", memory, 1), 1 << 62)
    check_plan(plan, recall)
    right = None if other is None else _comparable(left, other)
    request = (left.bits, radius, recall, threads, plan, memory)
    return Pairs(*_native.join(arrays(left), right, request, tell))


def join_nearest(
    prints: Prints,
    radius: int,
    most: int,
    *,
    bands: Bands | None = None,
    within: npt.NDArray[np.int32] | None = None,
    across: npt.NDArray[np.int32] | None = None,
    fixed: npt.NDArray[np.bool_] | None = None,
    recall: float = 1.0,
    threads: int | None = None,
    plan: str | None = None,
    memory: int | None = None,
    tell: Callable[[float], None] | None = None,
) -> Nearest:
    """The pairs of `join` among the *most* nearest of either row, the rows of the others, and the plan.

    Among equally near rows, lower numbers come first. Only rows with the same number in *within*, with
    different ones in *across*, and of which at least one is not *fixed*, are compared. With *bands*, a row
    of numbers for each, only rows with the same number in some column are. If all rows are alike, they take
    a list of at most *most* each, never the memory of all pairs within the radius.

    >>> import numpy as np
    >>> found = join_nearest(np.array([0, 1, 3, 7], dtype=np.uint64), radius=3, most=1)
    >>> list(found.pairs), found.crowded.tolist()
    ([(0, 1, 1), (1, 2, 1), (2, 3, 1)], [0, 1, 2, 3])
    """
    left = as_prints(prints)
    radius, recall = check_radius(radius, left.bits), check_share("recall", recall)
    most, threads = whole("most", most, 1, MAX_ROWS), check_threads(threads)
    memory = None if memory is None else min(whole("memory", memory, 1), 1 << 62)
    check_plan(plan, recall)
    # Copied: the core reads them without the interpreter's lock.
    same = None if within is None else np.array(within, dtype=np.int32)
    different = None if across is None else np.array(across, dtype=np.int32)
    flags = None if fixed is None else np.array(fixed, dtype=bool)
    comparable = (same, different, flags)
    request = (left.bits, radius, recall, threads, plan, memory)
    numbers = None if bands is None else unshared(bands)
    found, crowded, facts = _native.join_nearest(arrays(left), numbers, most, comparable, request, tell)
    return Nearest(Pairs(*found), crowded, None if facts is None else plan_of(left, radius, facts))


def join_batches(
    prints: Prints,
    radius: int,
    other: Prints | None = None,
    *,
    size: int = 1 << 20,
    threads: int | None = None,
) -> Iterator[Pairs]:
    """The pairs of `join`, in the same order, about *size* at a time: for answers larger than memory.

    A batch never splits the pairs of one left row.

    >>> import numpy as np
    >>> [len(pairs) for pairs in join_batches(np.zeros(4, dtype=np.uint64), radius=0, size=2)]
    [3, 2, 1]
    """
    size = whole("size", size, 1)
    left = as_prints(prints)
    radius, threads = check_radius(radius, left.bits), check_threads(threads)
    right = None if other is None else _comparable(left, other)
    stream = _native.PairStream(arrays(left), right, left.bits, radius, threads)
    return _batches(stream, min(size, 2**63))


def _batches(stream: _native.PairStream, size: int) -> Iterator[Pairs]:
    while len((pairs := Pairs(*stream.take(size))).left):
        yield pairs


def _comparable(prints: Fingerprints, other: Prints) -> Arrays:
    own = as_prints(other)
    check_comparable(prints, own)
    return arrays(own)


def as_prints(prints: Prints) -> Fingerprints:
    """*prints* as Fingerprints; a plain array must be uint64, of shape (n,) or (n, words)."""
    if not isinstance(prints, Fingerprints):
        if not isinstance(prints, np.ndarray):
            raise InvalidType(
                f"fingerprints must be Fingerprints or a uint64 array, not {type(prints).__name__}; "
                "Fingerprints.of makes them from integers"
            )
        if prints.ndim == 0:
            raise InvalidValue("fingerprints must have shape (n,) or (n, words), not ()")
        if prints.dtype == np.dtype(">u8"):
            prints = prints.astype(np.uint64)
        prints = Fingerprints(prints)
    if len(prints) > MAX_ROWS:
        raise InvalidValue(f"{len(prints)} fingerprints are too many at once; at most {MAX_ROWS}")
    return prints


def arrays(prints: Fingerprints) -> Arrays:
    """Words that nothing else writes, and the valid flags if any is False."""
    valid = None if bool(prints.valid.all()) else np.array(prints.valid, dtype=bool)
    return unshared(prints.words), valid


def unshared(words: npt.NDArray[Number]) -> npt.NDArray[Number]:
    """*words*, copied unless it is read-only down to its owner.

    The core reads without the interpreter's lock, so memory that another thread may write is
    copied first; read-only memory (including bytes, Arrow buffers and read-only maps) is borrowed.
    """
    owned: npt.NDArray[Number] = words.copy(order="C") if _shared(words) else np.ascontiguousarray(words)
    return owned


def _shared(owner: Any) -> bool:
    while isinstance(owner, np.ndarray):
        if owner.flags.writeable:
            return True
        owner = owner.base
    try:
        return owner is not None and not memoryview(owner).readonly
    except TypeError:
        return True


def check_radius(radius: int, bits: int) -> int:
    """*radius* if it is one for fingerprints of *bits* bits; distances have 16 bits."""
    return whole("radius", radius, 0, min(bits, MAX_BITS - 1))


def check_plan(plan: str | None, recall: float) -> None:
    """Raise unless *plan* may be forced."""
    if plan is not None and not isinstance(plan, str):
        raise InvalidType(f"plan must be a str, not {shown(plan)}")
    if plan == "sampling" and recall >= 1.0:
        raise InvalidValue("sampling tables are not exact; pass a recall below 1 to allow them")
