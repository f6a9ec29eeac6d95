"""Guards: they stop a run that is about to do something absurd, and say what it was."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from neardup.errors import InvalidValue, shown
from neardup.numbering import STEP, Flags, Numbers
from neardup.survey import Documents
from neardup.types import RowNumbers, label
from neardup.wording import counted

# Clusters and sources that a guard names, and documents of each.
WORST: Final = 3
EXAMPLES: Final = 5


@dataclass(frozen=True, slots=True)
class GuardLimits:
    """What a run may do; None turns a guard off."""

    max_cluster: int | None = 1000
    """Members of one cluster."""
    max_loss: float | None = 0.5
    """Share of a source's documents that may be removed."""
    max_same: float | None = 0.01
    """Share of a collection of more than 1,000 documents that may have one fingerprint."""

    def __post_init__(self) -> None:
        if self.max_cluster is not None and (type(self.max_cluster) is not int or self.max_cluster < 1):
            raise InvalidValue(f"max_cluster must be a whole number from 1 on, not {shown(self.max_cluster)}")
        for name in ("max_loss", "max_same"):
            value = getattr(self, name)
            if value is not None and (type(value) not in (int, float) or not 0 <= value <= 1):
                raise InvalidValue(f"{name} must be a share from 0 to 1, not {shown(value)}")


Limits = GuardLimits  # as users write it: neardup.guards.Limits
SAME_FROM: Final = 1000
"""The share with one fingerprint is checked in collections of more documents than this."""
OFF: Final = GuardLimits(max_cluster=None, max_loss=None, max_same=None)


@dataclass(frozen=True, slots=True)
class Loss:
    """What a source lost."""

    source: str
    documents: int
    removed: int

    @property
    def share(self) -> float:
        """Of its documents."""
        return self.removed / max(self.documents, 1)


@dataclass(frozen=True, slots=True)
class Trip:
    """A guard that was checked."""

    name: str
    """Of the limit."""
    limit: float
    value: float
    what: str
    examples: tuple[str, ...]

    @property
    def stopped(self) -> bool:
        """Whether the run must stop."""
        return self.value > self.limit

    @property
    def least(self) -> float:
        """The least limit that lets the run pass: a number of members, or a share in few digits.

        >>> Trip("max_loss", 0.5, 0.503, "", ()).least, Trip("max_same", 0.01, 0.07, "", ()).least
        (0.51, 0.07)
        """
        if isinstance(self.limit, int):
            return self.value
        step = 1 if self.value >= 0.1 else 0.1  # per cent
        at = math.floor(self.value * 100 / step)
        while (share := float(f"{at * step:.6g}") / 100) < self.value:  # as the option is read
            at += 1
        return share

    @property
    def option(self) -> str:
        """The option of the command that lets the run pass, with its least value."""
        return f"--{self.name.replace('_', '-')} {_limit(self.least)}"

    def __str__(self) -> str:
        limit = _limit(self.limit)
        shown = ", ".join(self.examples)
        return (
            f"{self.what} (limit {limit}; for example {shown})" if shown else f"{self.what} (limit {limit})"
        )


def _limit(value: float) -> str:
    return f"{value}" if isinstance(value, int) else f"{value * 100:.6g}%"


@dataclass(frozen=True, slots=True)
class Met:
    """What guards check in a run; it can be compared with any limits."""

    clusters: Sequence[tuple[int, Sequence[str]]]
    """The largest clusters: how many members each has, and some of them."""
    losses: Sequence[Loss]
    """The sources that lose the largest shares."""
    lost: Sequence[str]
    """Some documents that the first of them loses."""
    documents: int
    same: int
    """How many documents have one fingerprint, at most."""
    alike: Sequence[str]
    """Some of those."""
    noun: str = "document"


def trips(limits: GuardLimits, met: Met) -> tuple[Trip, ...]:
    """The guards that are on, and what each found."""
    found: list[Trip | None] = []
    if met.documents:
        found = [cluster_guard(limits, met.clusters), loss_guard(limits, met.losses, met.lost, met.noun)]
    if met.same:
        found.append(same_guard(limits, met.documents, met.same, met.alike, met.noun))
    return tuple(trip for trip in found if trip is not None)


def cluster_guard(limits: GuardLimits, clusters: Sequence[tuple[int, Sequence[str]]]) -> Trip | None:
    """The largest clusters, each with its size and some of its members."""
    if limits.max_cluster is None:
        return None
    (size, members), *others = clusters
    what = f"the largest cluster has {counted(size, 'member')}"
    also = [f"{more:,} ({', '.join(some)})" for more, some in others if more > limits.max_cluster]
    if also:
        what += f"; the next ones have {' and '.join(also)}"
    return Trip("max_cluster", limits.max_cluster, size, what, tuple(members))


def loss_guard(
    limits: GuardLimits, losses: Sequence[Loss], examples: Sequence[str], noun: str
) -> Trip | None:
    """The sources that lose the largest shares, and examples of what the first of them loses."""
    worst, *others = losses
    if limits.max_loss is None or not worst.documents:
        return None
    what = f"source {worst.source!r} would lose {_loss(worst, noun)}"
    also = [f"{one.source!r} {_loss(one, noun)}" for one in others if one.share > limits.max_loss]
    if also:
        what += f"; {' and '.join(also)}"
    return Trip("max_loss", float(limits.max_loss), worst.share, what, tuple(examples))


def _loss(loss: Loss, noun: str) -> str:
    return f"{loss.removed:,} of {counted(loss.documents, noun)} ({loss.share:.1%})"


def same_guard(
    limits: GuardLimits, documents: int, same: int, examples: Sequence[str], noun: str
) -> Trip | None:
    """The fingerprint that most documents have."""
    if limits.max_same is None or documents <= SAME_FROM:
        return None
    what = f"one fingerprint is shared by {same:,} of {counted(documents, noun)} ({same / documents:.1%})"
    return Trip("max_same", float(limits.max_same), same / documents, what, tuple(examples))


def losses_of(
    documents: Documents, source_field: str | None, fixed: Flags, keep: Flags
) -> tuple[list[Loss], list[int], RowNumbers]:
    """What each source loses, those that lose the largest shares, and examples from the first of them."""
    names, codes = _source_of(documents, source_field)
    gone = ~fixed & ~keep
    totals, lost = (_tally(codes, of, len(names)) for of in (~fixed, gone))
    losses = [Loss(*row) for row in zip(names, totals.tolist(), lost.tolist(), strict=True)]
    worst = np.argsort(-lost / np.maximum(totals, 1), kind="stable")[:WORST].tolist()
    examples = np.flatnonzero(gone & (codes == worst[0]))[:EXAMPLES]
    return losses, worst, RowNumbers(examples)


def _source_of(documents: Documents, source_field: str | None) -> tuple[list[str], Numbers]:
    """The names of the sources, and which one each document comes from."""
    if source_field is None:
        return documents.files or [""], documents.file()
    values = [label(value) or "(none)" for value in documents.column(source_field)]
    names = sorted(set(values)) or [""]
    codes = {name: code for code, name in enumerate(names)}
    return names, np.array([codes[value] for value in values], dtype=np.int32)


def _tally(codes: Numbers, wanted: Flags, count: int) -> Numbers:
    """How many of the *wanted* documents have each code."""
    found = np.zeros(count, dtype=np.int64)
    for begin in range(0, len(codes), STEP):
        part = slice(begin, begin + STEP)
        found += np.bincount(codes[part][wanted[part]], minlength=count)
    return found
