"""Dedupe of a collection: the whole flow over what is stored, bound by what people said.

Without verdicts it is the flow as `neardup.dedupe` runs it, over the same documents in the same order. With
them the same pairs are judged, and then: what was said to be different is not accepted, and nothing is
accepted with both of two that are; what was said to be the same is.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, fields, replace
from itertools import islice
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup import pipeline
from neardup.candidates import Candidates
from neardup.checks import check_text
from neardup.collections.copies import stored
from neardup.collections.kinds import KINDS, kind_of, thumb_of
from neardup.collections.shelves import Shelf
from neardup.collections.verdicts import DIFFERENT, SAME, UNSURE
from neardup.contents import Content, Flow, Work
from neardup.distances import distances
from neardup.errors import InvalidType, InvalidValue, shown
from neardup.fingerprints import Fingerprints
from neardup.representatives import Representatives
from neardup.requests import Request
from neardup.results import Result
from neardup.settings import Settings
from neardup.sources import Source
from neardup.sources.options import Request as Asked
from neardup.sources.reading import batch_of, fields_of
from neardup.store import VERDICTS
from neardup.types import Bands, Batch, PairNumbers, TextNumbers
from neardup.verdicts import Judge, Judgements
from neardup.verifiers import Measure, Verdicts

STEP: Final = 1000
# Reasons of pairs that somebody decided, behind those of the content.
SAID: Final = {SAME: "said to be the same", DIFFERENT: "said to be different", UNSURE: "said to be unsure"}
APART: Final = "near one that was said to be different"

Pairs = dict[tuple[int, int], str]


def dedupe(
    shelf: Shelf, banks: frozenset[str], kind: str | None, choices: Mapping[str, Any], lock: Any
) -> Result:
    """The result of the flow over the stored documents of some banks."""
    name = _kind(shelf, kind)
    row = kind_of(name).content
    digests: list[bytes] = []
    held = Held(shelf, name, banks, lock, digests)
    if unknown := sorted(set(choices) - (known := {item.name for item in fields(Settings)})):
        raise InvalidType(f"unknown setting {shown(unknown[0])}; known: {', '.join(sorted(known))}")
    settings = Settings(**{**row.defaults, **choices})
    asked = Asked(fields=settings.fields, format=row.format)
    source = Source([held], asked, unique=True)
    said = {(verdict.low, verdict.high): verdict.verdict for verdict in shelf.store.scan_all(VERDICTS)}
    content = bound(row, said, digests) if said else row
    scheme = None if row.scheme is None else row.scheme_for(0)
    return pipeline.run(Request(source=source, settings=settings, scheme=scheme, content=content))


def _kind(shelf: Shelf, kind: str | None) -> str:
    if kind is not None:
        return KINDS.part(check_text("kind", kind)).name
    there = [row[0] for row in shelf.store.base.select("SELECT DISTINCT kind FROM content ORDER BY kind")]
    if odd := [one for one in there if one not in list(KINDS)]:
        raise shelf.store.damaged(f"it holds a content of kind {odd[0]!r:.40}")
    if len(there) > 1:
        raise InvalidValue(f"the collection holds {' and '.join(there)}; choose one with kind=")
    return there[0] if there else "text"


class Held:
    """The stored documents as an input that is read as often as wanted."""

    name = "<collection>"
    path = root = digest = modified = reduced = None
    suffix = ""
    walked = False
    size = consumed = 0

    def __init__(
        self, shelf: Shelf, kind: str, banks: frozenset[str], lock: Any, digests: list[bytes]
    ) -> None:
        """*digests* is filled with that of each document while they are read."""
        self._shelf, self._kind, self._banks, self._lock, self._digests = shelf, kind, banks, lock, digests
        self._now = shelf.now

    def read(self, request: Asked, bad: Any) -> Iterator[Batch]:
        """All documents, in the order in which they came."""
        self._digests.clear()
        rows = stored(self._shelf, self._banks, self._now, self._lock)
        own = ((row, content) for row, content in rows if content.kind == self._kind)
        place = 0
        while part := list(islice(own, STEP)):
            ids = [row.id for row, _ in part]
            data = [self._shelf.data(content) for _, content in part]
            self._digests += [content.digest for _, content in part]
            places = list(range(place + 1, place + len(part) + 1))
            place += len(part)
            records = [json.loads(row.fields) for row, _ in part]
            if self._kind == "text":
                yield batch_of(
                    ids,
                    [one.decode() for one in data],
                    places,
                    file=self.name,
                    fields=fields_of(records, request.fields),
                )
                continue
            facts = [kind_of(self._kind).fields(one) for one in data]
            known = [one | record for one, record in zip(facts, records, strict=True)]
            thumbs = np.stack([np.frombuffer(thumb_of(one), dtype=np.uint8) for one in data])
            batch = batch_of(
                ids,
                [one["sha256"] for one in facts],
                places,
                file=self.name,
                fields=fields_of(known, request.fields),
            )
            yield replace(batch, images=thumbs, format="image")


def bound(content: Content, said: Mapping[tuple[bytes, bytes], str], digests: Sequence[bytes]) -> Content:
    """A content whose pairs are judged as people said, where they did.

    *digests* are those of the documents.
    """
    base = type(content)
    count = len(base.reasons)

    class Bound(base):  # type: ignore[valid-type, misc]
        reasons = (*base.reasons, *SAID.values(), APART)

        def flow(self, prints: Fingerprints, texts: Representatives, work: Work) -> Flow:
            return BoundFlow(
                super().flow(prints, texts, work), prints, _numbered(texts, said, digests), count
            )

    return Bound()


def _numbered(
    texts: Representatives, said: Mapping[tuple[bytes, bytes], str], digests: Sequence[bytes]
) -> Pairs:
    """What was said, by the numbers of texts. Spellings of one text have one number."""
    wanted = {digest for pair in said for digest in pair}
    numbers: dict[bytes, int] = {}
    for row, digest in enumerate(digests):
        if digest in wanted and texts.of_document[row] >= 0:
            numbers.setdefault(digest, int(texts.of_document[row]))
    found: Pairs = {}
    for (low, high), verdict in said.items():
        if low in numbers and high in numbers and numbers[low] != numbers[high]:
            one, other = sorted((numbers[low], numbers[high]))
            found[one, other] = verdict
    return found


@dataclass(frozen=True, slots=True, eq=False)
class BoundFlow:
    """The flow of a content, with what people said."""

    flow: Flow
    prints: Fingerprints
    said: Pairs
    first: int
    """The place of the first reason that is not the content's."""

    def propose(self, advance: Callable[..., None], bands: Bands | None = None) -> pa.Table:
        """The pairs of the content, and those that were said to be the same."""
        found = self.flow.propose(advance, bands)
        left, right = (found.column(name).to_numpy().astype(np.int64) for name in ("left", "right"))
        low, high = np.minimum(left, right), np.maximum(left, right)
        known = set(zip(low.tolist(), high.tolist(), strict=True))
        more = sorted(pair for pair, verdict in self.said.items() if verdict == SAME and pair not in known)
        if not more:
            return found
        one, other = (np.array(side, dtype=np.int64) for side in zip(*more, strict=True))
        far = distances(self.prints.words[one], self.prints.words[other]).astype(np.int32)
        columns: dict[str, Any] = {"left": pa.array(one), "right": pa.array(other), "distance": pa.array(far)}
        if "map" in found.column_names:
            maps = np.tile([1.0, 0.0, 0.0, 0.0, 1.0, 0.0], len(one))
            columns["map"] = pa.FixedSizeListArray.from_arrays(pa.array(maps), 6)
        added = pa.table(columns).select(found.column_names).cast(found.schema.remove_metadata())
        both = pa.concat_tables([found.replace_schema_metadata(None), added])
        left, right = (both.column(name).to_numpy() for name in ("left", "right"))
        order = np.lexsort([np.maximum(left, right), np.minimum(left, right)])
        return both.take(pa.array(order)).replace_schema_metadata(found.schema.metadata)

    def candidates(self, proposed: pa.Table) -> Candidates:
        """Those of the content."""
        return self.flow.candidates(proposed)

    def judging(self, found: Candidates, measure: Measure, frequencies: Any) -> AbstractContextManager[Judge]:
        """The judge of the content, whom people overrule."""

        @contextmanager
        def judge() -> Iterator[Judge]:
            with self.flow.judging(found, measure, frequencies) as own:
                yield BoundJudge(own, self.said, self.first)

        return judge()


@dataclass(frozen=True, slots=True, eq=False)
class BoundJudge:
    """A judge whom people overrule."""

    judge_: Judge
    said: Pairs
    first: int

    def parts(self, found: Candidates) -> Iterable[PairNumbers]:
        """All pairs at once: which of two that are different keeps a third one depends on both."""
        yield PairNumbers(np.arange(len(found)))

    def judge_part(self, left: TextNumbers, right: TextNumbers) -> Verdicts:
        """Verdicts on all pairs."""
        return self._overruled(self.judge_.judge_part(left, right), left, right)

    def judge(self, left: TextNumbers, right: TextNumbers) -> Verdicts:
        """Verdicts on any pairs."""
        return self._overruled(self.judge_.judge(left, right), left, right)

    def meet(self, found: Candidates, judgements: Judgements) -> None:
        """Learn from the verdicts on the candidates."""
        self.judge_.meet(found, judgements)

    def _overruled(self, found: Verdicts, left: TextNumbers, right: TextNumbers) -> Verdicts:
        accepted, code = found.accepted.copy(), found.code.copy()
        names = list(SAID)
        pairs = list(zip(np.minimum(left, right).tolist(), np.maximum(left, right).tolist(), strict=True))
        for row, pair in enumerate(pairs):
            verdict = self.said.get(pair)
            if verdict is not None:
                accepted[row] = verdict == SAME
                code[row] = self.first + names.index(verdict)
        self._part(pairs, found, accepted, code)
        return replace(found, accepted=accepted, code=code)

    def _part(
        self,
        pairs: Sequence[tuple[int, int]],
        found: Verdicts,
        accepted: npt.NDArray[np.bool_],
        code: npt.NDArray[np.uint8],
    ) -> None:
        """Accept nothing with both of two that were said to be different: the nearer one has it."""
        apart = [pair for pair, verdict in self.said.items() if verdict == DIFFERENT]
        if not apart:
            return
        row_of = {pair: row for row, pair in enumerate(pairs)}
        near: dict[int, set[int]] = {}
        for (one, other), yes in zip(pairs, accepted.tolist(), strict=True):
            if yes:
                near.setdefault(one, set()).add(other)
                near.setdefault(other, set()).add(one)
        for low, high in sorted(apart):
            for middle in sorted(near.get(low, set()) & near.get(high, set())):
                rows = [row_of[min(middle, side), max(middle, side)] for side in (low, high)]
                if not all(accepted[row] for row in rows):
                    continue
                lost = min(rows, key=lambda row: (found.weighted[row], found.similarity[row], -row))
                accepted[lost] = False
                code[lost] = self.first + len(SAID)
