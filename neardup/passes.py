"""Passes: the stages of a run over whole inputs, on one machine.

A stage turns values into values. Here it is given batch after batch, read ahead; its observer is told
how far it is, and what it has done is kept in checkpoints.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from neardup import _native, wording
from neardup.ahead import WORKERS, worked_ahead
from neardup.arrays import without
from neardup.candidates import Candidates, reaches
from neardup.checkpoints import Checkpoints
from neardup.contents import Flow, Work
from neardup.files import spare_path
from neardup.fingerprints import Fingerprints
from neardup.numbering import Flags, steps
from neardup.observers import Observer, checked
from neardup.parts import Surveyed, bands_of, load_survey, put_bands, save_fingerprints, save_survey
from neardup.representatives import Representatives, fill_repeats
from neardup.requests import Request
from neardup.schemes import Scheme
from neardup.schemes.computing import banded
from neardup.sources import Source
from neardup.stars import crowded_keepers, leading, open_to, take
from neardup.survey import Again, Surveyor
from neardup.types import Bands, Batch, PairNumbers, Ranks, RowNumbers, TextNumbers
from neardup.verdicts import Judge, Judgements
from neardup.verifiers import Measure, Verdicts

T = TypeVar("T")
U = TypeVar("U")


@dataclass(frozen=True, slots=True, eq=False)
class Passes:
    """Those of one run."""

    request: Request
    observer: Observer
    checkpoints: Checkpoints

    # --- over the documents --------------------------------------------------------------------------------

    def survey(self) -> Surveyed:
        """What is known about all documents without their texts, and how common each feature is."""
        sources = self.request.sources
        begun = load_survey(self.checkpoints)
        if begun is not None and not self.checkpoints.remembers:
            read = wording.counted(len(begun.documents), self.request.content.noun)
            place = self.checkpoints.folder
            self.observer.note(f"resuming from what is in {place}, where {read} had been read", minor=True)
        if begun is None or begun.counts is None:
            begun = self._surveyed(begun)
        else:
            for source, counts in zip(sources, begun.counts, strict=True):
                source.restore(counts)
        # From now on every reading must give these documents.
        for source, rows in zip(sources, (slice(begun.first), slice(begun.first, None)), strict=False):
            source.expected = Again(begun.documents.ids[rows], begun.documents.spelling[rows], begun.key)
        return begun

    def _surveyed(self, begun: Surveyed | None) -> Surveyed:
        request = self.request
        key = secrets.token_bytes(32) if begun is None else begun.key
        table = _native.Frequencies() if begun is None else begun.frequencies
        documents = None if begun is None else begun.documents
        first, skip = (0, 0) if begun is None else (begun.first, begun.batches)
        look = partial(request.content.look, frequencies=table, key=key, threads=request.threads)
        surveyor = Surveyor(look, request.settings.fields, documents)
        seen = 0
        for source in request.sources:
            with self.observer.stage("read", total=source.size, what=request.content.noun) as advance:
                batches = iter(source)
                seen += sum(1 for _ in islice(batches, max(skip - seen, 0)))
                while (next_one := next(batches, None)) is not None:
                    # A checkpoint names the batches that are counted, so none may be at work meanwhile.
                    with self._ahead(self._until_due(next_one, batches), surveyor.look) as looked_at:
                        for batch, found in looked_at:
                            surveyor.add(batch, found)
                            seen += 1
                            first += len(batch) if source is request.source else 0
                            advance(surveyor.count, source.consumed)
                    if self.checkpoints.due(complete=False):
                        part = Surveyed(surveyor.documents(), table, key, first, batches=seen)
                        save_survey(self.checkpoints, part)
                        del part
        counts = [source.counts() for source in request.sources]
        done = Surveyed(surveyor.documents(), table, key, first, counts=counts)
        if self.checkpoints.due(complete=True):
            save_survey(self.checkpoints, done)
        return done

    def _until_due(self, first: Batch, batches: Iterator[Batch]) -> Iterator[Batch]:
        """The *first* batch and the next ones, until a checkpoint is due."""
        for batch in chain([first], batches):
            yield batch
            if self.checkpoints.due(complete=False):
                return

    def _ahead(
        self, batches: Iterator[T], work: Callable[[T], U]
    ) -> closing[Generator[tuple[T, U], None, None]]:
        """All batches, each with what *work* makes of it: of the next ones, while the last ones are used."""
        return closing(worked_ahead(batches, work, min(WORKERS, self.request.threads or WORKERS)))

    def bands(self, scheme: Scheme, texts: Representatives) -> Bands | None:
        """Room for the bands of *texts*, if they are needed."""
        each = self.request.content.bands(scheme, self.request.settings, len(texts))
        return np.zeros((len(texts), each), dtype=np.uint32) if each else None

    def fingerprint(
        self,
        scheme: Scheme,
        texts: Representatives,
        looked: npt.NDArray[np.uint64] | None = None,
        bands: Bands | None = None,
    ) -> Fingerprints:
        """The fingerprints of all documents, each where *texts* places it. *bands* gets those of the texts.

        With *looked*, their words as the survey gave them, nothing is read.
        """
        request, count = self.request, len(texts.of_document)
        words = np.zeros((count, (scheme.bits + 63) // 64), dtype=np.uint64)
        valid = np.zeros(count, dtype=bool)
        prints = Fingerprints(words, bits=scheme.bits, valid=valid, digest=scheme.digest)
        if count < 2 and request.settings.verify != "none":  # nothing is near to it
            return prints
        if looked is not None:
            for part in steps(count):
                places = texts.place(RowNumbers(part))
                words[places], valid[places] = looked[part], texts.of_document[part] >= 0

        done = self.checkpoints.load("fingerprints") if looked is None else None
        known = 0 if looked is None else count
        for part in () if done is None else done.to_batches():
            before = Fingerprints.from_arrow(part.column("fingerprint"), scheme.bits, scheme.digest)
            places = texts.place(_rows(known, len(before)))
            words[places], valid[places] = before.words, before.valid
            if bands is not None:
                bands_of(part, into=bands, at=places)
            known += len(before)

        def make(numbered: tuple[RowNumbers, Batch]) -> tuple[Fingerprints, Bands | None]:
            rows, batch = numbered
            if (repeats := texts.repeats(rows)).any():
                batch = replace(batch, texts=without(batch.texts, repeats))
            if bands is None:
                return request.content.fingerprints(scheme, batch, threads=request.threads), None
            some, own = banded(scheme, batch.texts, request.threads)
            return some, own[:, : bands.shape[1]]

        at = 0
        for source in request.sources if known < count else ():
            batches, at = _skipped(source, at, known)
            with (
                self.observer.stage("fingerprint", total=source.size, what=request.content.noun) as advance,
                self._ahead(_numbered(batches, at), make) as made,
            ):
                for (rows, _), (some, own) in made:
                    places = texts.place(rows)
                    words[places], valid[places] = some.words, some.valid
                    if bands is not None and own is not None:
                        put_bands(own, into=bands, at=places)
                    at += len(rows)
                    advance(at, source.consumed)
                    if self.checkpoints.due(complete=at == count):
                        save_fingerprints(self.checkpoints, prints, texts, at, bands)
        if looked is None:
            fill_repeats(prints, texts)
        # What is no longer written is read where it is.
        words.flags.writeable = valid.flags.writeable = False
        if bands is not None:
            bands.flags.writeable = False
        return prints

    # --- over the texts ------------------------------------------------------------------------------------

    def flow(self, prints: Fingerprints, texts: Representatives) -> Flow:
        """How candidates among *texts* are found and judged, by the fingerprints of all documents."""
        return self.request.content.flow(texts.own(prints), texts, self.work)

    @property
    def work(self) -> Work:
        """What a content needs of this run."""
        request = self.request
        return Work(
            sources=request.sources,
            settings=request.settings,
            observer=self.observer,
            spare=partial(spare_path, self.checkpoints.folder),
            threads=request.threads,
            memory=request.memory,
            sizes=request.sizes,
        )

    def candidates(self, flow: Flow, texts: int, bands: Bands | None = None) -> Candidates:
        """The pairs of this many different texts that are near enough to be compared."""
        proposed, unit = self.checkpoints.load("candidates"), self.request.content.unit
        if proposed is None:
            with self.observer.stage(
                "join", total=texts, unit=f"{unit}s", what=f"distinct {unit}"
            ) as advance:
                proposed = flow.propose(advance, bands)
            if self.checkpoints.due(complete=True):
                self.checkpoints.save("candidates", proposed)
        return flow.candidates(proposed)

    def verify(self, found: Candidates, judge: Judge, measure: Measure) -> Judgements:
        """Every candidate pair, measured and judged."""
        judgements = Judgements(
            found,
            verified=measure.verifies,
            mapped=self.request.content.mapped,
            directed=measure.preserves,
        )
        if not measure.verifies:
            return judgements
        done, more = self.checkpoints.load("verdicts"), False
        with self.observer.stage("verify", total=len(found), unit="pairs", what="pair") as advance:
            if count := 0 if done is None else judgements.restore(done):
                advance(count, count)
            for pairs in checked(judge.parts(found), self.observer):
                if judgements.judged[pairs].all():
                    continue
                left, right = TextNumbers(found.left[pairs]), TextNumbers(found.right[pairs])
                judgements.note(pairs, judge.judge_part(left, right))
                more, count = True, count + len(pairs)
                advance(count, count)
                if self.checkpoints.due(complete=False):
                    self.checkpoints.save("verdicts", judgements.table())
                    more = False
            if more and self.checkpoints.due(complete=True):
                self.checkpoints.save("verdicts", judgements.table())
            judge.meet(found, judgements)
            advance(len(found), len(found))
        return judgements

    def crowds(
        self,
        keeper: TextNumbers,
        rank: Ranks,
        found: Candidates,
        texts: Representatives,
        judgements: Judgements,
        judge: Judge,
    ) -> Candidates:
        """Let keepers in crowded places take what is accepted against them and has no better keeper. A keeper
        with more candidates than were considered was compared only with the nearest of them.

            In the order, each is compared with everything near it. Changes *keeper*, and adds to
            *judgements*. Only texts that have a candidate are considered: the others were not set aside.
        """
        if not len(found.crowded):
            return found
        leads, known = leading(keeper), found.left << 32 | found.right
        met = np.zeros(len(keeper), dtype=bool)
        met[found.left] = met[found.right] = True
        more: list[tuple[TextNumbers, TextNumbers, npt.NDArray[np.int32], Verdicts]] = []
        for reach in reaches(found, crowded_keepers(keeper, rank, found)):
            if keeper[reach.text] != reach.text:
                continue
            reach = open_to(reach, keeper, rank, texts, met)
            was, places = _among(known, *reach.pairs)
            known_ones = PairNumbers(places[was])
            taken = reach.others[was][judgements.lets_go(known_ones, reach.others[was] < reach.text)]
            if len((new := reach.only(~was)).others):
                verdicts = judge.judge(*new.pairs)
                more.append((*new.pairs, new.distance, verdicts))
                taken = np.concatenate([taken, new.others[verdicts.lets_go(new.others < new.text)]])
            take(reach.text, TextNumbers(taken), keeper, leads)
        if more:
            left, right, distance, judged = zip(*more, strict=True)
            one, other = TextNumbers(np.concatenate(left)), TextNumbers(np.concatenate(right))
            found = found.with_more(one, other, np.concatenate(distance))
            judgements.learn(found, judged)
        return found


def _rows(first: int, count: int) -> RowNumbers:
    return RowNumbers(np.arange(first, first + count))


def _skipped(source: Source, at: int, known: int) -> tuple[Iterator[Batch], int]:
    """The batches of *source* after the first *known* rows, of which *at* were before it; the next row."""
    batches = iter(source)
    while at < known and (batch := next(batches, None)) is not None:
        if at + len(batch) > known:  # batches are not as they were
            return chain([batch], batches), at
        at += len(batch)
    return batches, at


def _numbered(batches: Iterator[Batch], first: int) -> Iterator[tuple[RowNumbers, Batch]]:
    """Batches with the numbers of their rows, from *first* on."""
    for batch in batches:
        yield _rows(first, len(batch)), batch
        first += len(batch)


def _among(
    known: npt.NDArray[np.int64], left: TextNumbers, right: TextNumbers
) -> tuple[Flags, npt.NDArray[np.int64]]:
    """Which pairs are *known*, those being sorted, each as left << 32 | right; and where they are."""
    keys = left << 32 | right
    places = np.minimum(np.searchsorted(known, keys), max(len(known) - 1, 0))
    return known[places] == keys, places
