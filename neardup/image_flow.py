"""Images in the flow: their fingerprints, how candidates are proposed, and how they are judged."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from neardup.candidates import Candidates, Ways
from neardup.fingerprints import Fingerprints
from neardup.images import comparisons, proposals, rules
from neardup.images.prints import asked, stored
from neardup.images.thumbs import THUMB, Thumbs
from neardup.images.views import WHOLE, fingerprints_of
from neardup.numbering import steps
from neardup.representatives import Representatives
from neardup.schemes import Scheme
from neardup.settings import Settings
from neardup.sources import Source
from neardup.types import Batch, PairNumbers, TextNumbers
from neardup.verdicts import Judgements
from neardup.verifiers import Verdicts


def fingerprints(scheme: Scheme, batch: Batch, *, threads: int | None) -> Fingerprints:
    """The fingerprints of a batch: of whole images."""
    assert batch.images is not None
    words, valid = fingerprints_of(batch.images, [WHOLE], threads=threads)
    return Fingerprints(words, bits=scheme.bits, valid=valid, digest=scheme.digest)


def thumbs_of(sources: Sequence[Source], texts: Representatives, *, memory: int, work: str | None) -> Thumbs:
    """The thumbnails of the images that stand for others, on the disk where memory does not do."""
    wanted = np.full(len(texts.of_document), -1, dtype=np.int64)
    wanted[texts.document] = np.arange(len(texts.document))
    shape = (len(texts.document), THUMB)
    thumbs: Thumbs
    if shape[0] * THUMB > memory:
        handle, path = tempfile.mkstemp(prefix="neardup-", dir=work)
        os.close(handle)
        thumbs = np.memmap(path, dtype=np.uint8, mode="w+", shape=shape)
        os.unlink(path)
    else:
        thumbs = np.zeros(shape, dtype=np.uint8)
    at = 0
    for source in sources:
        for batch in source:
            numbers = wanted[at : at + len(batch)]
            assert batch.images is not None
            thumbs[numbers[numbers >= 0]] = batch.images[numbers >= 0]
            at += len(batch)
    return thumbs


def propose(
    thumbs: Callable[[], Thumbs],
    documents: int,
    settings: Settings,
    *,
    threads: int | None,
    tell: Sequence[Callable[[float], None]],
) -> pa.Table:
    """Pairs of images that are near enough, each with the ways to lay one on the other.

    Each of four steps tells which share of it is done.
    """
    radius = _radius(settings)
    thumbs()
    tell[0](1.0)
    kept = stored(thumbs(), threads=threads)
    asking = asked(thumbs(), threads=threads)
    tell[1](1.0)
    ways = proposals.propose(kept, asking, radius, threads=threads, tell=tell[2])
    if settings.radius is None:
        ways = proposals.merged(ways, proposals.propose_by_corners(thumbs(), threads=threads))
    found = ways.table()
    tell[3](1.0)
    way = (
        f"{len(kept.prints)} fingerprints of {documents} images, "
        f"{len(asking.prints)} asked for, radius {radius}"
    )
    return found.replace_schema_metadata({b"plan": way.encode()})


def _radius(settings: Settings) -> int:
    return proposals.RADIUS if settings.radius is None else settings.radius


def candidates(
    proposed: pa.Table,
    prints: Fingerprints,
    settings: Settings,
    texts: Representatives,
    thumbs: Callable[[], Thumbs],
) -> Candidates:
    """What `propose` gave as candidates."""
    ways = proposals.Proposals.of(proposed)
    way = (proposed.schema.metadata or {})[b"plan"].decode()
    low, high = np.minimum(ways.left, ways.right), np.maximum(ways.left, ways.right)
    allowed = texts.comparable(TextNumbers(low), TextNumbers(high))
    first = np.ones(len(low), dtype=bool)
    first[1:] = (low[1:] != low[:-1]) | (high[1:] != high[:-1])
    begin = np.flatnonzero(first)
    end = np.append(begin[1:], len(low))
    chosen = allowed[begin]
    begin, end = begin[chosen], end[chosen]
    low, high = low[begin], high[begin]
    return Candidates(
        left=TextNumbers(low),
        right=TextNumbers(high),
        distance=ways.distance[begin],
        radius=_radius(settings),
        plan=way,
        prints=prints,
        crowded=TextNumbers(np.zeros(0, dtype=np.int64)),
        ways=Ways(thumbs, ways, low << 32 | high, begin, end),
    )


@dataclass(frozen=True, slots=True)
class Laying:
    """Judges pairs of images, laid on each other in the ways that were found for each pair."""

    ways: Ways
    rule: rules.ImageRule
    round: int
    threads: int | None

    def parts(self, found: Candidates) -> Iterable[PairNumbers]:
        return (PairNumbers(part) for part in steps(len(found), self.round))

    def judge_part(self, left: TextNumbers, right: TextNumbers) -> Verdicts:
        return self.judge(left, right)

    def judge(self, left: TextNumbers, right: TextNumbers) -> Verdicts:
        ways = self.ways
        rows = np.searchsorted(ways.keys, left << 32 | right)
        seen = comparisons.verify(
            ways.thumbs(),
            ways.proposals,
            ways.begin[rows],
            ways.end[rows],
            self.rule,
            threads=self.threads,
        )
        columns = (np.clip(seen.found[:, at], 0.0, 1.0) for at in (9, 10, 12))
        return Verdicts(seen.accepted, seen.reason, *columns)

    def meet(self, found: Candidates, judgements: Judgements) -> None:
        pass


def judge(name: str, settings: Settings, ways: Ways, *, round: int, threads: int | None) -> Laying:
    """Judges by the rule with that name."""
    rule = rules.rule_of(name, settings.similarity, ignore_colour=settings.ignore_colour)
    return Laying(ways, rule, round, threads)
