"""Verdicts: what was found for each candidate pair, collected while pairs are judged."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from neardup.candidates import Candidates
from neardup.numbering import Flags
from neardup.types import PairNumbers, TextNumbers
from neardup.verifiers import WHOLE, Verdicts, lets_go


class Judge(Protocol):
    """What judges pairs of texts."""

    def parts(self, found: Candidates) -> Iterable[PairNumbers]:
        """All candidate pairs, in parts each of which can be judged by itself."""

    def judge_part(self, left: TextNumbers, right: TextNumbers) -> Verdicts:
        """Verdicts on the pairs of a part."""

    def judge(self, left: TextNumbers, right: TextNumbers) -> Verdicts:
        """Verdicts on any pairs, once the candidates are judged."""

    def meet(self, found: Candidates, judgements: Judgements) -> None:
        """Learn from the verdicts on the candidates."""


Judging = AbstractContextManager[Judge]


class Judgements:
    """The verdicts on all candidate pairs. What is not *verified* is accepted, and was not measured."""

    def __init__(
        self, found: Candidates, *, verified: bool, mapped: bool = False, directed: bool = False
    ) -> None:
        self.left, self.right = found.left, found.right
        self._verified = verified
        count = len(found)
        self.judged = np.zeros(count, dtype=bool)
        self.accepted = np.full(count, not verified)
        self.reason = np.zeros(count, dtype=np.uint8)
        self.measured = np.zeros((count, 3), dtype=np.uint16)
        self.map = np.full((count if mapped else 0, 6), np.nan)
        # Which side may go, where that is not both.
        self.goes = np.zeros(count, dtype=np.uint8) if directed else None

    def note(self, pairs: PairNumbers, verdicts: Verdicts) -> None:
        """Verdicts on some pairs."""
        self.judged[pairs] = self._verified
        self.accepted[pairs], self.reason[pairs] = verdicts.accepted, verdicts.code
        for column, values in enumerate((verdicts.similarity, verdicts.weighted, verdicts.rare)):
            self.measured[pairs, column] = np.rint(values * WHOLE)
        if verdicts.map is not None:
            self.map[pairs] = verdicts.map
        if self.goes is not None and verdicts.goes is not None:
            self.goes[pairs] = verdicts.goes

    def lets_go(self, pairs: PairNumbers, left: Flags) -> Flags:
        """Which of some *pairs* are accepted so that one side may go: the left one where *left* says so."""
        return lets_go(self.accepted[pairs], None if self.goes is None else self.goes[pairs], left)

    def learn(self, found: Candidates, verdicts: Sequence[Verdicts]) -> None:
        """Add pairs at the end, with their verdicts."""
        count = len(self.left)
        more = len(found) - count
        self.left, self.right = found.left, found.right
        for name in ("judged", "accepted", "reason", "measured", *(() if self.goes is None else ("goes",))):
            old = getattr(self, name)
            setattr(self, name, np.concatenate([old, np.zeros((more, *old.shape[1:]), dtype=old.dtype)]))
        for part in verdicts:
            self.note(PairNumbers(np.arange(count, count + len(part))), part)
            count += len(part)

    def table(self) -> pa.Table:
        """What was judged, for a checkpoint."""
        columns: dict[str, Any] = {"left": self.left, "right": self.right}
        columns |= {"judged": self.judged, "yes": self.accepted, "reason": self.reason}
        columns |= {f"measured{at}": self.measured[:, at] for at in range(3)}
        if self.goes is not None:
            columns["goes"] = self.goes
        return pa.table(columns | {f"map{at}": self.map[:, at] for at in range(6) if len(self.map)})

    def restore(self, table: pa.Table) -> int:
        """Take over earlier verdicts, if they are on these pairs; returns how many."""
        pairs = ((table.column("left"), self.left), (table.column("right"), self.right))
        if not all(np.array_equal(before.to_numpy(), now) for before, now in pairs):
            return 0
        for name, own in (("judged", self.judged), ("yes", self.accepted), ("reason", self.reason)):
            own[:] = table.column(name)
        if self.goes is not None:
            self.goes[:] = table.column("goes")
        for at in range(3):
            self.measured[:, at] = table.column(f"measured{at}")
        for at in range(6 if len(self.map) else 0):
            self.map[:, at] = table.column(f"map{at}")
        return int(np.count_nonzero(self.judged))


class Unverified:
    """Accepts all pairs, and measures none."""

    def parts(self, found: Candidates) -> Iterable[PairNumbers]:
        return ()

    def judge_part(self, left: TextNumbers, right: TextNumbers) -> Verdicts:
        return self.judge(left, right)

    def judge(self, left: TextNumbers, right: TextNumbers) -> Verdicts:
        nothing = np.zeros(len(left))
        return Verdicts(np.ones(len(left), dtype=bool), nothing.astype(np.uint8), nothing, nothing, nothing)

    def meet(self, found: Candidates, judgements: Judgements) -> None:
        pass
