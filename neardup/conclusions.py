"""Conclusions: from texts back to documents, with the rows that say who stays and why."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from neardup import _native
from neardup.arrays import core_texts
from neardup.candidates import Candidates
from neardup.contents import Content
from neardup.distances import distances
from neardup.fingerprints import Fingerprints
from neardup.guards import WORST
from neardup.images.views import inverted
from neardup.keep import Keep
from neardup.memory import give_back
from neardup.numbering import STEP, Flags, either, steps
from neardup.representatives import Representatives
from neardup.results import ANNOTATIONS, WITHOUT_INFORMATION, evidence_schema
from neardup.stars import Keepers
from neardup.types import PairNumbers, RowNumbers
from neardup.verdicts import Judgements
from neardup.verifiers import LEFT, UNVERIFIED, WHOLE, code_of

# The map of a copy.
AS_IT_IS: Final = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class Decision:
    """Which of all documents stay, protected ones included."""

    keeper: RowNumbers
    """For each document its keeper; itself if it stays."""
    stays: Flags
    """Which documents are their own keepers."""
    keep: Flags
    """Those that stay; under `none`, nothing of a cluster does."""
    cluster: RowNumbers
    """The document that names the cluster of each."""
    copies: tuple[RowNumbers, RowNumbers, PairNumbers]
    """Documents removed for a copy of theirs, what that copy duplicates, and the pair that decided it."""
    clusters: int
    largest: list[tuple[int, int]]
    """The keepers and sizes of the largest clusters."""


def decide(texts: Representatives, keepers: Keepers, fixed: Flags, keep: Keep) -> Decision:
    """The decision of *keepers* about texts, for documents."""
    count = len(fixed)
    keeper, stays = RowNumbers(np.arange(count, dtype=np.int32)), np.ones(count, dtype=bool)
    for part in steps(count if len(texts) else 0):
        rows = RowNumbers(part)
        text = texts.of_document[rows]
        kept_text = keepers.keeper[text]
        goes = kept_text != text
        if not texts.across:
            goes |= texts.document[text] != rows
        goes &= (text >= 0) & ~fixed[rows]
        keeper[rows[goes]] = texts.document[kept_text[goes]]
        stays[rows[goes]] = False
    leaders, members = np.unique(keeper[~stays], return_counts=True)
    first = np.argsort(-members, kind="stable")[:WORST]
    largest = list(zip(leaders[first].tolist(), (1 + members[first]).tolist(), strict=True)) or [(0, 1)]
    nothing = np.zeros(0, dtype=np.int32)
    copies = RowNumbers(nothing), RowNumbers(nothing), PairNumbers(nothing)
    keeps, cluster = stays, keeper
    if keep.none:
        clustered = np.ones(count, dtype=np.int32)
        clustered[leaders] += members.astype(np.int32)
        if texts.across and len(texts):
            cluster, copies = _copies(texts, keepers, keeper, stays & ~fixed)
        keeps = stays & ((clustered[cluster] == 1) | fixed)
    return Decision(keeper, stays, keeps, cluster, copies, len(leaders), largest)


def _copies(
    texts: Representatives, keepers: Keepers, keeper: RowNumbers, stays: Flags
) -> tuple[RowNumbers, tuple[RowNumbers, RowNumbers, PairNumbers]]:
    """Clusters in which copies in one source, which are not compared, go where one of them goes."""
    text, count = texts.of_document, len(keepers.keeper)
    sizes = np.bincount(keepers.keeper, minlength=count)
    copies = (text >= 0) & stays & (sizes[keepers.keeper[text]] > 1)
    cluster = np.where(copies, texts.document[text], keeper)
    rows = np.flatnonzero(copies & (cluster != np.arange(len(text), dtype=np.int32)))
    goes = np.flatnonzero(keepers.keeper != np.arange(count, dtype=np.int32))[::-1]
    member = np.zeros(count, dtype=np.int32)
    member[keepers.keeper[goes]] = goes
    other = member[text[rows]]
    partners, pairs = texts.document[other], keepers.pair[other]
    return RowNumbers(cluster), (
        RowNumbers(rows.astype(np.int32)),
        RowNumbers(partners),
        PairNumbers(pairs),
    )


@dataclass(frozen=True, slots=True, eq=False)
class Conclusion:
    """What the rows of the annotations and of the evidence are made of."""

    content: Content
    decision: Decision
    ids: pa.LargeStringArray
    fixed: Flags
    texts: Representatives
    prints: Fingerprints
    scheme: str
    """The digest of the scheme."""
    found: Candidates
    judgements: Judgements
    pair: PairNumbers
    """For each text that goes, the candidate pair that decided it."""
    verified: bool
    placed: bool = False
    """Whether the fingerprints are unknown, and only the pairs know how far apart they are."""
    rule: str | None = None
    """The digest of the learned rule that decided, if one did."""
    threads: int | None = None
    step: int = STEP
    """Rows that are made at a time."""

    def perhaps_forms(self) -> int:
        """How many of the removed documents may be siblings of one form: a person should look at them."""
        if self.content.doubtful is None:
            return 0
        goes = self._going()
        keepers = RowNumbers(self.decision.keeper[goes])
        pair = self._pair(RowNumbers(goes[~self.texts.equal(goes, keepers)]))
        doubtful = self.content.reasons.index(self.content.doubtful)
        return int(np.count_nonzero(self.judgements.reason[pair] == doubtful))

    def _going(self) -> RowNumbers:
        return RowNumbers(np.flatnonzero(~self.decision.stays).astype(np.int32))

    def _pair(self, rows: RowNumbers) -> PairNumbers:
        """The candidate pairs that decided the keepers of documents that go."""
        return PairNumbers(self.pair[self.texts.of_document[rows]])

    def _numbers(self, rows: RowNumbers) -> tuple[Any, ...]:
        """Distance, three similarities (or NaN) and the rule of documents that go, against their keepers."""
        pair, keeper = self._pair(rows), RowNumbers(self.decision.keeper[rows])
        copies = self.texts.equal(rows, keeper)
        # Texts that differ in case or space alone are one text; in some schemes they have two fingerprints.
        one, other = (self.prints.words[self.texts.place(side)] for side in (rows, keeper))
        distance = distances(one, other)
        if self.content.as_seen or self.placed:
            distance = np.where(copies, 0, distance)
            distance[~copies] = self.found.distance[pair[~copies]]
        measured = np.ones((len(rows), 3))
        # Nothing is known about what was not verified, which is not the same as 0.
        measured[~copies] = self.judgements.measured[pair[~copies]] / WHOLE if self.verified else np.nan
        rules = self._copied(rows, keeper)
        rules[~copies] = self._rules(self.judgements.reason[pair[~copies]])
        return distance, measured, rules

    def _copied(self, one: RowNumbers, other: RowNumbers) -> npt.NDArray[np.uint8]:
        """The places in `_words` of the reasons for documents with the same text."""
        return np.where(self.texts.spelled_alike(one, other), 0, len(self.content.reasons) + 2).astype(
            np.uint8
        )

    def _rules(self, reason: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
        """The places of reasons in `_words`."""
        return reason + np.uint8(2) if self.verified else np.ones(len(reason), dtype=np.uint8)

    def _words(self) -> pa.StringArray:
        """The words of the evidence: for copies, for what was not verified, and for reasons."""
        content = self.content
        return pa.array([content.identical, UNVERIFIED, *content.reasons, content.spelled], pa.string())

    def annotations(self, *, input_order: bool = False) -> Iterator[pa.RecordBatch]:
        """One row per document of the input, in the order of the ids or of the input, some at a time."""
        ids = self.ids
        own = np.flatnonzero(~self.fixed).astype(np.int32) if self.fixed.any() else None
        order = None if input_order else _native.ordered(core_texts(ids), own, [], self.threads)
        count = len(ids) if own is None else len(own)
        for begin in range(0, count, self.step):
            end = min(begin + self.step, count)
            rows = np.arange(begin, end, dtype=np.int32) if order is None else order[begin:end]
            rows = rows if own is None else own[rows]
            goes = ~self.decision.stays[rows]
            distance, measured, _ = self._numbers(RowNumbers(rows[goes]))
            cluster = ids.take(pa.array(self.decision.cluster[rows])).cast(pa.string())
            columns = {
                "id": ids.take(pa.array(rows)).cast(pa.string()),
                "cluster": cluster,
                "keep": pa.array(self.decision.keep[rows]),
                "duplicate_of": pc.if_else(pa.array(goes), cluster, pa.scalar(None, pa.string())),
                "distance": _spread(goes, distance, pa.int32()),
                "similarity": _spread(goes, measured[:, 0], pa.float64()),
            }
            yield pa.record_batch(columns, schema=ANNOTATIONS)

    def without_information(self) -> Iterator[pa.RecordBatch]:
        """The ids of documents of the input without information, in their order, some at a time."""
        ids = self.ids
        rows = np.flatnonzero((self.texts.of_document < 0) & ~self.fixed).astype(np.int32)
        order = rows[_native.ordered(core_texts(ids), rows, [], self.threads)]
        for begin in range(0, len(order), self.step):
            some = ids.take(pa.array(order[begin : begin + self.step])).cast(pa.string())
            yield pa.record_batch([some], schema=WITHOUT_INFORMATION)

    def evidence(self) -> Iterator[pa.RecordBatch]:
        """One row for every pair that was measured, and for every copy, in the order of the ids."""
        give_back()
        texts, found, judgements = self.texts, self.found, self.judgements
        goes = self._going()
        # Pairs that decided nothing, or were rejected: the one that stays is named first.
        shown = np.zeros(len(found.left), dtype=bool)
        decided = self._pair(goes)
        shown[decided[decided >= 0]] = True
        pairs = np.flatnonzero(judgements.judged & ~shown)
        one, other = texts.document[found.left[pairs]], texts.document[found.right[pairs]]
        swap = self.decision.stays[other] & ~self.decision.stays[one]
        if judgements.goes is not None:  # of two that both stay, or both go, the one that could go is second
            alike = self.decision.stays[other] == self.decision.stays[one]
            swap |= alike & (judgements.goes[pairs] == LEFT)
        copies, partners, said = self.decision.copies
        keeper = RowNumbers(
            np.concatenate([self.decision.keeper[goes], np.where(swap, other, one), partners])
        )
        members = RowNumbers(np.concatenate([goes, np.where(swap, one, other), copies]))
        said_by = PairNumbers(np.concatenate([pairs, said]))
        order = _by_ids(self.ids, keeper, members, self.threads)
        for begin in range(0, len(order), self.step):
            yield self._rows(order[begin : begin + self.step], goes, said_by, keeper, members)

    def _rows(
        self,
        chosen: npt.NDArray[np.int64],
        goes: RowNumbers,
        pairs: PairNumbers,
        keeper: RowNumbers,
        members: RowNumbers,
    ) -> pa.RecordBatch:
        """The *chosen* rows of the evidence: the first ones are those of *goes*, the others of *pairs*."""
        ids, texts, found, judged = self.ids, self.texts, self.found, self.judgements
        gone = chosen < len(goes)
        pair = PairNumbers(pairs[chosen[~gone] - len(goes)])
        distance = np.empty(len(chosen), np.int32)
        measured = np.empty((len(chosen), 3))
        rules = np.empty(len(chosen), np.uint8)
        accepted = np.ones(len(chosen), dtype=bool)
        distance[gone], measured[gone], rules[gone] = self._numbers(RowNumbers(goes[chosen[gone]]))
        distance[~gone] = found.distance[pair]
        measured[~gone] = judged.measured[pair] / WHOLE if self.verified else np.nan
        one, other = RowNumbers(keeper[chosen]), RowNumbers(members[chosen])
        left_goes = texts.of_document[other[~gone]] == found.left[pair]
        rules[~gone], accepted[~gone] = self._rules(judged.reason[pair]), judged.lets_go(pair, left_goes)
        if judged.goes is not None:
            rules[~gone & ~accepted] = code_of("lacks") + 2
        alike = ~gone & accepted & self.texts.equal(one, other)
        rules[alike], measured[alike] = self._copied(RowNumbers(one[alike]), RowNumbers(other[alike])), 1
        columns = {
            "keeper": ids.take(pa.array(one)).cast(pa.string()),
            "id": ids.take(pa.array(other)).cast(pa.string()),
            "distance": pa.array(distance),
            **{
                name: pa.array(measured[:, at], from_pandas=True)
                for at, name in enumerate(self.content.figures)
            },
            "accepted": pa.array(accepted),
            "reason": self._words().take(pa.array(rules)),
            "scheme": pa.repeat(pa.scalar(self.scheme, pa.string()), len(chosen)),
            "radius": pa.array(np.full(len(chosen), found.radius, np.int32)),
        }
        if self.content.mapped:
            decided = np.empty(len(chosen), np.int64)
            decided[gone], decided[~gone] = self._pair(RowNumbers(goes[chosen[gone]])), pair
            columns["map"] = self._maps(PairNumbers(decided), one, other)
        if self.rule is not None:
            columns["rule"] = pa.repeat(pa.scalar(self.rule, pa.string()), len(chosen))
        schema = evidence_schema(self.content, learned=self.rule is not None)
        return pa.record_batch(columns, schema=schema)

    def _maps(self, pairs: PairNumbers, keeper: RowNumbers, member: RowNumbers) -> pa.Array:
        """The map from each keeper to its member, by the verdict on their pair; copies lie as they are."""
        texts, copies = self.texts, self.texts.equal(keeper, member)
        maps = np.tile(AS_IT_IS, (len(pairs), 1))
        if self.verified:
            found = self.judgements.map[pairs[~copies]]
            turned = texts.of_document[keeper[~copies]] != self.found.left[pairs[~copies]]
            maps[~copies] = np.where(turned[:, None], inverted(found), found)
        else:
            maps[~copies] = np.nan
        unknown = pa.array(np.isnan(maps).any(axis=1))
        return pa.FixedSizeListArray.from_arrays(pa.array(maps.ravel()), 6, mask=unknown)


def _by_ids(
    ids: pa.LargeStringArray, one: RowNumbers, other: RowNumbers, threads: int | None
) -> npt.NDArray[np.int64]:
    """The order of pairs of documents by the id of *one*, then by that of *other*."""
    rows = either(len(ids), one, other).astype(np.int32)
    place = np.empty(len(ids), dtype=np.int32)
    order = _native.ordered(core_texts(ids), rows, [], threads)
    place[rows[order]] = np.arange(len(rows), dtype=np.int32)
    return np.argsort(place[one].astype(np.int64) << 32 | place[other])


def _spread(where: Flags, values: npt.NDArray[Any], kind: pa.DataType) -> pa.Array:
    """*values* in the rows where *where* is True, null elsewhere and where a value is NaN."""
    full = np.zeros(len(where), dtype=values.dtype)
    full[where] = values
    return pa.array(full, kind, mask=~where | np.isnan(full))
