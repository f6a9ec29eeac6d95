"""Verdicts: what was found for some pairs, one row each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple, overload

import numpy as np
import numpy.typing as npt

from neardup.verifiers.reasons import ACCEPTING, TABLE
from neardup.verifiers.rules import WHOLE

# Which side of a pair may go for the other.
LEFT: Final = 1
RIGHT: Final = 2


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
    goes: npt.NDArray[np.uint8] | None = None
    """Which side of an accepted pair may go for the other: `LEFT`, `RIGHT` or both; None where both may."""

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
                None if self.goes is None else self.goes[at],
            )
        return Verdict(
            bool(self.accepted[at]),
            TABLE[int(self.code[at])].words,
            float(self.similarity[at]),
            float(self.weighted[at]),
            float(self.rare[at]),
        )

    def lets_go(self, left: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """Which pairs are accepted so that one side may go: the left one where *left* says so."""
        return lets_go(self.accepted, self.goes, left)

    def __iter__(self) -> Iterator[Verdict]:
        return (self[at] for at in range(len(self)))

    def __repr__(self) -> str:
        return f"<{len(self)} verdicts, {int(self.accepted.sum())} accepted>"


def lets_go(
    accepted: npt.NDArray[np.bool_], goes: npt.NDArray[np.uint8] | None, left: npt.NDArray[np.bool_]
) -> npt.NDArray[np.bool_]:
    """Which *accepted* pairs let one side go, the left one where *left* says so. *goes* says which may.

    >>> import numpy as np
    >>> pairs = np.array([True, True]), np.array([LEFT, LEFT | RIGHT], dtype=np.uint8)
    >>> lets_go(*pairs, np.array([False, False])).tolist()
    [False, True]
    """
    return accepted if goes is None else accepted & (goes & np.where(left, LEFT, RIGHT) != 0)


def joined(parts: Sequence[Verdicts], order: npt.NDArray[np.int64]) -> Verdicts:
    """Several as one, in another *order*; those of texts by one measure."""
    columns = ("accepted", "code", "similarity", "weighted", "rare")
    found = Verdicts(*(np.concatenate([getattr(part, name) for part in parts])[order] for name in columns))
    goes = [part.goes for part in parts if part.goes is not None]
    return replace(found, goes=np.concatenate(goes)[order]) if goes else found


def verdicts_of(code: npt.NDArray[np.uint8], *figures: npt.NDArray[np.uint16]) -> Verdicts:
    """Verdicts of the core, whose figures are in ten-thousandths."""
    plain, weighted, rare = (values / WHOLE for values in figures)
    return Verdicts(code < ACCEPTING, code, plain, weighted, rare)
