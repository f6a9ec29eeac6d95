"""Guards: they stop a run that is about to do something absurd, and say what it was."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from neardup.errors import InvalidValue, shown


@dataclass(frozen=True, slots=True)
class Limits:
    """What a run may do; None switches a guard off."""

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


@dataclass(frozen=True, slots=True)
class Trip:
    """A guard that was looked at."""

    name: str
    limit: float
    value: float
    what: str
    examples: tuple[str, ...]

    @property
    def stopped(self) -> bool:
        """Whether the run must not go on."""
        return self.value > self.limit

    def __str__(self) -> str:
        shown = ", ".join(self.examples)
        return (
            f"{self.what} (limit {self.limit:g}; for example {shown})"
            if shown
            else f"{self.what} (limit {self.limit:g})"
        )


def cluster_guard(limits: Limits, size: int, members: Sequence[str]) -> Trip | None:
    """The largest cluster and some of its members."""
    if limits.max_cluster is None:
        return None
    what = f"the largest cluster has {size:,} members"
    return Trip("--max-cluster", limits.max_cluster, size, what, tuple(members))


def loss_guard(
    limits: Limits, source: str, documents: int, removed: int, examples: Sequence[str]
) -> Trip | None:
    """The source that loses the largest share of its documents."""
    if limits.max_loss is None or not documents:
        return None
    what = f"source {source!r} would lose {removed:,} of {documents:,} documents ({removed / documents:.1%})"
    return Trip("--max-loss", limits.max_loss, removed / documents, what, tuple(examples))


def same_guard(limits: Limits, documents: int, same: int, examples: Sequence[str]) -> Trip | None:
    """The fingerprint that most documents have."""
    if limits.max_same is None or documents <= 1000:
        return None
    what = f"one fingerprint is shared by {same:,} of {documents:,} documents ({same / documents:.1%})"
    return Trip("--max-same", limits.max_same, same / documents, what, tuple(examples))
