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
        limit = f"{self.limit:g}" if isinstance(self.limit, int) else f"{self.limit * 100:g}%"
        shown = ", ".join(self.examples)
        return (
            f"{self.what} (limit {limit}; for example {shown})" if shown else f"{self.what} (limit {limit})"
        )


def cluster_guard(limits: Limits, clusters: Sequence[tuple[int, Sequence[str]]]) -> Trip | None:
    """The largest clusters, each with its size and some of its members."""
    if limits.max_cluster is None:
        return None
    (size, members), *others = clusters
    what = f"the largest cluster has {size:,} members"
    also = [f"{more:,} ({', '.join(some)})" for more, some in others if more > limits.max_cluster]
    if also:
        what += f"; the next ones have {' and '.join(also)}"
    return Trip("--max-cluster", limits.max_cluster, size, what, tuple(members))


def loss_guard(limits: Limits, losses: Sequence[Loss], examples: Sequence[str]) -> Trip | None:
    """The sources that lose the largest shares, and examples of what the first one loses."""
    worst, *others = losses
    if limits.max_loss is None or not worst.documents:
        return None
    what = f"source {worst.source!r} would lose {_loss(worst)}"
    also = [f"{one.source!r} {_loss(one)}" for one in others if one.share > limits.max_loss]
    if also:
        what += f"; {' and '.join(also)}"
    return Trip("--max-loss", float(limits.max_loss), worst.share, what, tuple(examples))


def _loss(loss: Loss) -> str:
    return f"{loss.removed:,} of {loss.documents:,} documents ({loss.share:.1%})"


def same_guard(limits: Limits, documents: int, same: int, examples: Sequence[str]) -> Trip | None:
    """The fingerprint that most documents have."""
    if limits.max_same is None or documents <= 1000:
        return None
    what = f"one fingerprint is shared by {same:,} of {documents:,} documents ({same / documents:.1%})"
    return Trip("--max-same", float(limits.max_same), same / documents, what, tuple(examples))
