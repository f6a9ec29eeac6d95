"""The plan of a join: how pairs would be found, and at what cost."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from neardup import _native
from neardup.checks import check_share, check_threads
from neardup.pairs import Prints, arrays, as_prints, check_plan, check_radius


@dataclass(frozen=True, slots=True)
class Plan:
    """What `join` would do. Printed, it is a few lines for people."""

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
        """What is done, without what it costs: the same on every machine."""
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
    found = _native.join_plan(arrays(left), rows, request)
    method, blocks, tables, key_bits, collision, seconds, size, recall = found
    return Plan(
        method=method,
        rows=len(left),
        bits=left.bits,
        radius=radius,
        recall=recall,
        blocks=tuple(blocks),
        tables=tables,
        key_bits=key_bits,
        collision=collision,
        seconds=seconds,
        bytes=size,
    )
