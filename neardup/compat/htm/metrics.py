"""What many SDRs have in common: how sparse they are, how often each bit is on, how much neighbours overlap.

A metric watches an SDR and counts every value that is assigned to it, or it is made for dimensions and given
SDRs with `addData`. The first *period* samples have equal weight; from then on the old ones fade.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from neardup.checks import whole
from neardup.compat.htm.refusals import RefusedValue, as_runtime_error
from neardup.compat.htm.sdr import SDR, shape_of
from neardup.errors import InvalidType, shown

__all__ = ["ActivationFrequency", "Metrics", "Overlap", "Sparsity"]

Real: TypeAlias = np.float32  # the original's numbers, so that the printed digits are the same

# The original's means begin at a number between 1,024 and 2,048, which rounds the first sample.
BEGIN: Final = Real(1536)


class _Metric:
    """Counts the samples of one source, and finds the weight of each."""

    def __init__(
        self,
        dimensions: SDR | int | Sequence[int] | None = None,
        period: int | None = None,
        *,
        sdr: SDR | None = None,
    ) -> None:
        source = dimensions if sdr is None else sdr
        if source is None or period is None or (sdr is not None and dimensions is not None):
            raise InvalidType("give an SDR, or dimensions, and a period")
        with as_runtime_error():
            self.period = whole("period", period, 1, 2**32 - 1)
        self.samples = 0
        self._watches = isinstance(source, SDR)
        if isinstance(source, SDR):
            self.dimensions = source.dimensions
            source._watch(self._take)
        else:
            self.dimensions = list(shape_of(source))

    def addData(self, sdr: SDR) -> None:
        """Count an SDR; only for a metric that was made for dimensions."""
        if not isinstance(sdr, SDR):
            raise InvalidType(f"give an SDR, not {shown(sdr)}")
        if self._watches:
            raise RefusedValue("this watches an SDR: assign to that, or make one for dimensions")
        if sdr.dimensions != self.dimensions:
            raise RefusedValue(f"an SDR of {sdr.dimensions} does not fit a metric of {self.dimensions}")
        self._take(sdr)

    def _take(self, sdr: SDR) -> None:
        raise NotImplementedError

    def _weight(self) -> Real:
        self.samples += 1
        weight: Real = Real(1 / min(self.period, self.samples))
        return weight


class _Spread(_Metric):
    """A number for each sample, and its least, mean, standard deviation and largest."""

    _name = ""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._latest = self._least = self._most = Real("nan")
        self._mean, self._variance = BEGIN, Real(0)

    def _count(self, value: float) -> None:
        weight = self._weight()
        self._latest = latest = Real(value)
        self._least, self._most = np.fmin(self._least, latest), np.fmax(self._most, latest)
        apart = latest - self._mean
        step = weight * apart
        self._mean += step
        self._variance = (Real(1) - weight) * (self._variance + apart * step)

    def min(self) -> float:
        """The least; not a number before the first sample, as are the others."""
        return float(self._least)

    def max(self) -> float:
        """The largest."""
        return float(self._most)

    def mean(self) -> float:
        """The mean."""
        return float(self._mean) if self.samples else float("nan")

    def std(self) -> float:
        """The standard deviation."""
        return float(np.sqrt(self._variance)) if self.samples else float("nan")

    def __str__(self) -> str:
        return f"{self._name} {_summary(self)}"


class Sparsity(_Spread):
    """The share of bits that are on.

    >>> sdr = SDR(1000)
    >>> metric = Sparsity(sdr, period=1000)
    >>> for share in (0.01, 0.15, 0.05):
    ...     _ = sdr.randomize(share)
    >>> print(metric)
    Sparsity Min/Mean/Std/Max 0.01 / 0.0700033 / 0.0588751 / 0.15
    """

    _name = "Sparsity"

    @property
    def sparsity(self) -> float:
        """That of the latest SDR."""
        return float(self._latest)

    def _take(self, sdr: SDR) -> None:
        self._count(sdr.getSparsity())


class Overlap(_Spread):
    """The share of bits that an SDR has in common with the one before it.

    >>> metric = Overlap(8, period=100)
    >>> for bits in ([0, 1, 2, 3], [2, 3, 4, 5], [2, 3, 4, 7]):
    ...     metric.addData(SDR(8, bits))
    >>> metric.overlap, metric.min(), metric.mean()
    (0.75, 0.5, 0.625)
    """

    _name = "Overlap"

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._before: SDR | None = None

    @property
    def overlap(self) -> float:
        """That of the latest two."""
        return float(self._latest)

    def reset(self) -> None:
        """Begin a new series: the next SDR has none before it."""
        self._before = None

    def _take(self, sdr: SDR) -> None:
        if self._before is not None:
            on = max(sdr.getSum(), self._before.getSum())
            self._count(sdr.getOverlap(self._before) / on if on else 1.0)
        self._before = SDR(sdr)


class ActivationFrequency(_Metric):
    """How often each bit is on.

    With *initialValue* every bit begins with that, as if it had been so for long: old samples fade at once.

    >>> metric = ActivationFrequency(2, period=1000)
    >>> for bits in ([], [0, 1], [1]):
    ...     metric.addData(SDR(2, bits))
    >>> print(metric)
    Activation Frequency Min/Mean/Std/Max 0.333333 / 0.5 / 0.166667 / 0.666667
    Entropy 0.918296
    """

    def __init__(
        self,
        dimensions: SDR | int | Sequence[int] | None = None,
        period: int | None = None,
        initialValue: float = -1,
        *,
        sdr: SDR | None = None,
    ) -> None:
        if not isinstance(initialValue, (int, float, np.floating)) or not initialValue <= 1:
            raise RefusedValue(f"initialValue must be from 0 to 1, or -1 for none, not {shown(initialValue)}")
        super().__init__(dimensions, period, sdr=sdr)
        self._fades = initialValue >= 0
        size = int(np.prod(self.dimensions, dtype=np.int64))
        self.activationFrequency: npt.NDArray[np.float32] = np.full(size, max(initialValue, 0), dtype=Real)

    def _take(self, sdr: SDR) -> None:
        weight = self._weight()
        if self._fades:
            weight = Real(1 / self.period)
        self.activationFrequency *= Real(1) - weight
        self.activationFrequency[sdr.sparse] += weight

    def min(self) -> float:
        """The frequency of the bit that is on least often."""
        return float(self.activationFrequency.min(initial=1))

    def max(self) -> float:
        """The frequency of the bit that is on most often."""
        return float(self.activationFrequency.max(initial=0))

    def mean(self) -> float:
        """The mean frequency of all bits."""
        return float(_total(self.activationFrequency) / Real(self.activationFrequency.size or 1))

    def std(self) -> float:
        """The standard deviation of the frequencies."""
        apart = self.activationFrequency - Real(self.mean())
        return float(np.sqrt(_total(apart * apart) / Real(apart.size or 1)))

    def entropy(self) -> float:
        """How evenly the bits are used: 1 where all are on equally often, 0 where none ever changes."""
        most = float(_entropy(np.array([self.mean()], dtype=Real)))
        return float(_entropy(self.activationFrequency)) / most if most else 0.0

    def __str__(self) -> str:
        return f"Activation Frequency {_summary(self)}\nEntropy {self.entropy():g}"


class Metrics:
    """All three at once.

    >>> metrics = Metrics([4], 100)
    >>> for bits in ([0, 1], [1, 2]):
    ...     metrics.addData(SDR(4, bits))
    >>> print(metrics)
    SDR( 4 )
        Sparsity Min/Mean/Std/Max 0.5 / 0.5 / 0 / 0.5
        Activation Frequency Min/Mean/Std/Max 0 / 0.5 / 0.353553 / 1
        Entropy 0.5
        Overlap Min/Mean/Std/Max 0.5 / 0.5 / 0 / 0.5
    """

    def __init__(
        self,
        dimensions: SDR | int | Sequence[int] | None = None,
        period: int | None = None,
        *,
        sdr: SDR | None = None,
    ) -> None:
        self.sparsity = Sparsity(dimensions, period, sdr=sdr)
        self.activationFrequency = ActivationFrequency(dimensions, period, sdr=sdr)
        self.overlap = Overlap(dimensions, period, sdr=sdr)

    @property
    def dimensions(self) -> list[int]:
        """Those of the SDRs."""
        return list(self.sparsity.dimensions)

    def addData(self, sdr: SDR) -> None:
        """Count an SDR; only where it was made for dimensions."""
        for metric in (self.sparsity, self.activationFrequency, self.overlap):
            metric.addData(sdr)

    def reset(self) -> None:
        """Begin a new series: the next SDR has none before it."""
        self.overlap.reset()

    def __str__(self) -> str:
        lines = "\n".join(map(str, (self.sparsity, self.activationFrequency, self.overlap)))
        head = f"SDR( {', '.join(map(str, self.dimensions))} )"
        return f"{head}\n{lines}".replace("\n", "\n    ")


def _summary(metric: _Spread | ActivationFrequency) -> str:
    figures = metric.min(), metric.mean(), metric.std(), metric.max()
    return "Min/Mean/Std/Max " + " / ".join(f"{figure:g}" for figure in figures)


def _total(values: npt.NDArray[np.float32]) -> Real:
    """One added after the other in 32 bits."""
    total: Real = Real(np.cumsum(values, dtype=Real)[-1] if len(values) else 0)
    return total


def _entropy(shares: npt.NDArray[np.float32]) -> Real:
    """The mean binary entropy."""
    inner = shares[(shares > 0) & (shares < 1)]
    bits = -inner * np.log2(inner) - (1 - inner) * np.log2(1 - inner)
    mean: Real = _total(bits) / Real(len(shares) or 1)
    return mean
