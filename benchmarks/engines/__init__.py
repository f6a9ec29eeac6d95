"""What the runner can measure: for each model of a workload, the engines that do it.

An engine is a function of the input, the workload and the options in its definition. It prepares, untimed,
and returns a task. What it imports may be missing: the runner then leaves it out and names it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


def nothing(_: Any) -> dict[str, float]:
    return {}


@dataclass(frozen=True, slots=True)
class Task:
    """A call to be timed, and what to read from its answer."""

    call: Callable[[], Any]
    items: int
    """How much of the input it works on: rows, bytes, comparisons. Goals compare the seconds of one item."""
    found: Callable[[Any], int | str] = len
    figures: Callable[[Any], dict[str, float]] = nothing
    """More figures of the answer. A `wall` or `cpu` in it replaces the measured one: a child timed itself."""


Engine = Callable[..., Task]


def models() -> dict[str, dict[str, Engine]]:
    """Model -> engine -> its function."""
    from engines import dedupe, hamming, leaks, originals, texts

    return {**hamming.MODELS, **texts.MODELS, **originals.MODELS, **dedupe.MODELS, **leaks.MODELS}
