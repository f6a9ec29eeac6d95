"""Sizes: how much is done at a time, and how often it is saved. They affect time and memory, not results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Sizes:
    """Small ones make a small run take all the steps of a large one."""

    block: int = 2 << 20
    """Bytes of texts in a batch that is read."""
    rows: int = 1 << 16
    """Documents whose rows are made at a time."""
    round: int = 8192
    """Pairs judged together, where none must be judged with its neighbours."""
    part: int = 1 << 15
    """Pairs judged together with their neighbours, at least; more only if one neighbourhood has more."""
    neighbours: int = 32
    """How many nearest candidates of a text are considered first: only this one affects what is measured."""
    checkpoint_seconds: float = 30.0
    """What a kill costs, at most."""


USUAL: Final = Sizes()
