"""Texts in the flow: their fingerprints, how candidates are proposed, and how they are judged."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from neardup.candidates import Candidates
from neardup.fingerprints import Fingerprints
from neardup.numbering import steps
from neardup.pairs import join_nearest
from neardup.planner import plan
from neardup.radius import radius_for, recall_at
from neardup.representatives import Representatives
from neardup.schemes import Scheme
from neardup.settings import Settings
from neardup.types import Batch, PairNumbers, TextNumbers
from neardup.verdicts import Judgements
from neardup.verifiers import NEIGHBOURS, Verdicts, Verifier

# The share of the pairs of the wanted similarity within the radius that the join must find, if not all.
JOIN_RECALL: Final = 0.99
# With exact=True the radius covers this share of the pairs at the wanted similarity: to cover all of them
# it would be as wide as the fingerprint.
NEARLY_ALL: Final = 0.99999


def fingerprints(scheme: Scheme, batch: Batch, *, threads: int | None) -> Fingerprints:
    """The fingerprints of a batch."""
    return scheme.fingerprints(batch.texts, threads=threads)


def reach_of(settings: Settings, bits: int) -> tuple[int, float]:
    """The radius of the search for candidates, and the recall that it needs there."""
    if settings.radius is not None:
        return settings.radius, 1.0
    if settings.exact:
        return radius_for(settings.similarity, min(1.0, NEARLY_ALL), bits), 1.0
    radius = radius_for(settings.similarity, min(settings.recall / JOIN_RECALL, NEARLY_ALL), bits)
    return radius, recall_at(radius, settings.similarity, JOIN_RECALL, bits)


def propose(
    prints: Fingerprints,
    texts: Representatives,
    settings: Settings,
    *,
    neighbours: int = NEIGHBOURS,
    threads: int | None,
    memory: int,
    tell: Callable[[float], None],
) -> pa.Table:
    """Pairs of texts that are near enough to be looked at, by the fingerprints of the texts.

    Of each text the *neighbours* nearest. *tell* is told which share is done.
    """
    radius, recall = reach_of(settings, prints.bits)
    way = plan(prints, radius, recall=recall, threads=threads).choice
    pairs, crowded = join_nearest(
        prints,
        radius,
        neighbours,
        within=texts.field if texts.within else None,
        across=texts.field if texts.across else None,
        fixed=texts.fixed if texts.fixed.any() else None,
        recall=recall,
        threads=threads,
        memory=memory,
        tell=tell,
    )
    columns = {
        "left": pa.array(pairs.left.astype(np.int64)),
        "right": pa.array(pairs.right.astype(np.int64)),
        "distance": pa.array(pairs.distance.astype(np.int32)),
    }
    notes = {"plan": way, "crowded": json.dumps(crowded.tolist())}
    return pa.table(columns).replace_schema_metadata(notes)


def candidates(proposed: pa.Table, prints: Fingerprints, settings: Settings) -> Candidates:
    """What `propose` gave as candidates."""
    notes = proposed.schema.metadata or {}
    left, right, distance = (proposed.column(name).to_numpy() for name in ("left", "right", "distance"))
    return Candidates(
        left=TextNumbers(left),
        right=TextNumbers(right),
        distance=distance,
        radius=reach_of(settings, prints.bits)[0],
        plan=notes[b"plan"].decode(),
        prints=prints,
        crowded=TextNumbers(np.array(json.loads(notes[b"crowded"]), dtype=np.int64)),
    )


@dataclass(frozen=True, slots=True)
class Sharing:
    """Judges texts that were set aside by the share of features that they have in common."""

    verifier: Verifier
    round: int

    def parts(self, found: Candidates) -> Iterable[PairNumbers]:
        return (PairNumbers(part) for part in steps(len(found), self.round))

    def judge_part(self, left: TextNumbers, right: TextNumbers) -> Verdicts:
        return self.verifier.judge(left, right)

    def judge(self, left: TextNumbers, right: TextNumbers) -> Verdicts:
        return self.verifier.judge(left, right)

    def meet(self, found: Candidates, judgements: Judgements) -> None:
        pass


@dataclass(frozen=True, slots=True)
class Ruling:
    """Judges texts that were set aside by a rule, which looks at the neighbours of both."""

    verifier: Verifier

    def parts(self, found: Candidates) -> Iterable[PairNumbers]:
        """All pairs of a text stand in one part."""
        return (PairNumbers(part) for part in self.verifier.parts(found.left, found.right))

    def judge_part(self, left: TextNumbers, right: TextNumbers) -> Verdicts:
        return self.verifier.judge_together(left, right)

    def judge(self, left: TextNumbers, right: TextNumbers) -> Verdicts:
        return self.verifier.judge(left, right)

    def meet(self, found: Candidates, judgements: Judgements) -> None:
        self.verifier.meet(found.left, found.right, judgements.measured[:, 0])
