"""Verdicts: what was found for some pairs, one row each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, overload

import numpy as np
import numpy.typing as npt

from neardup.verifiers.reasons import ACCEPTING, TABLE
from neardup.verifiers.rules import WHOLE


class Verdict(NamedTuple):
    """The verdict on one pair: whether it is accepted, why in words, and the figures that it rests on."""

    accepted: bool
    reason: str
    similarity: float
    weighted: float
    rare: float


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Verdicts(Sequence[Verdict]):
    """Columns, of which `verdicts[0]` is the first row. *code* is the place of a reason in its table."""

    accepted: npt.NDArray[np.bool_]
    code: npt.NDArray[np.uint8]
    similarity: npt.NDArray[np.float64]
    """The plain cosine; the Jaccard or the containment if that decides."""
    weighted: npt.NDArray[np.float64]
    """The same cosine, in which common text counts little."""
    rare: npt.NDArray[np.float64]
    """The same, over text that few documents have."""
    map: npt.NDArray[np.float64] | None = None
    """For images: six numbers that lead from the left one to the right one."""

    def __len__(self) -> int:
        return len(self.code)

    @overload
    def __getitem__(self, at: int) -> Verdict: ...
    @overload
    def __getitem__(self, at: slice) -> Verdicts: ...
    def __getitem__(self, at: int | slice) -> Verdict | Verdicts:
        if isinstance(at, slice):
            return Verdicts(
                self.accepted[at],
                self.code[at],
                self.similarity[at],
                self.weighted[at],
                self.rare[at],
                None if self.map is None else self.map[at],
            )
        return Verdict(
            bool(self.accepted[at]),
            TABLE[int(self.code[at])].words,
            float(self.similarity[at]),
            float(self.weighted[at]),
            float(self.rare[at]),
        )

    def __iter__(self) -> Iterator[Verdict]:
        return (self[at] for at in range(len(self)))

    def __repr__(self) -> str:
        return f"<{len(self)} verdicts, {int(self.accepted.sum())} accepted>"


def joined(parts: Sequence[Verdicts], order: npt.NDArray[np.int64]) -> Verdicts:
    """Several as one, in another *order*; those of texts."""
    columns = ("accepted", "code", "similarity", "weighted", "rare")
    return Verdicts(*(np.concatenate([getattr(part, name) for part in parts])[order] for name in columns))


def verdicts_of(code: npt.NDArray[np.uint8], *figures: npt.NDArray[np.uint16]) -> Verdicts:
    """Verdicts of the core, whose figures are in ten-thousandths."""
    return Verdicts(code < ACCEPTING, code, *(values / WHOLE for values in figures))
