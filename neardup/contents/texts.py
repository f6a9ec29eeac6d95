"""Texts: how they are looked at, how candidates are proposed, and how they are judged."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar, Final

import numpy as np
import pyarrow as pa

from neardup import _native
from neardup.arrays import core_texts
from neardup.candidates import Candidates
from neardup.contents import text_search
from neardup.contents.model import Content, Flow, Match, Wanted, Words, Work
from neardup.errors import InvalidValue
from neardup.fingerprints import Fingerprints
from neardup.index import Index
from neardup.keep import parse_keep
from neardup.numbering import Flags, either, steps
from neardup.observers import by_share
from neardup.pairs import join_nearest
from neardup.radius import bands_for, radius_for, recall_at
from neardup.representatives import Representatives
from neardup.schemes import Scheme
from neardup.settings import Settings
from neardup.survey import Looked
from neardup.types import Bands, Batch, PairNumbers, TextNumbers
from neardup.verdicts import Judge, Judgements
from neardup.verifiers import (
    IDENTICAL,
    PERHAPS_FORM,
    SPELLED,
    Measure,
    Verdicts,
    Verifier,
    joined,
    measuring_scheme,
)
from neardup.verifiers.reasons import TABLE

# The share of the pairs of the wanted similarity within the radius that the join must find, if not all.
JOIN_RECALL: Final = 0.99
# From this many texts on, only those that share a band are compared. Of fewer, all can be compared at no
# higher cost.
BANDED: Final = 10_000
# As many does the core make for each text.
BANDS: Final = 16
# The share of pairs of the wanted similarity that share a band.
BAND_RECALL: Final = 0.98
# With exact=True the radius covers this share of the pairs at the wanted similarity: to cover all of them
# it would be as wide as the fingerprint.
NEARLY_ALL: Final = 0.99999


class Texts(Content):
    """Documents that are texts."""

    name = "text"
    figures = ("similarity", "weighted", "rare")
    said: ClassVar = MappingProxyType({"weighted": "without common text", "rare": "rare text only"})
    reasons = tuple(reason.words for reason in TABLE)
    identical = IDENTICAL
    spelled = SPELLED
    doubtful = PERHAPS_FORM
    words = Words(
        measured="text",
        part="text",
        silent="empty, punctuation only",
        nothing="empty, white space or punctuation",
        near=(
            "Two documents count as near-duplicates when their texts are at least",
            "similar (1 is the same text) <em>and</em> agree in more than what many documents share, such as "
            "a template or a footer. ",
        ),
        terms=(
            (
                "similarity",
                "Cosine of the words and character runs of two documents, each counted: 1 is the same text, "
                "0 has nothing in common. Measured on the real text, not estimated.",
            ),
            ("without common text", "The same, where what many documents share counts little."),
            ("rare text only", "The same, on what few documents have."),
        ),
        marked=True,
    )

    def check(self, settings: Settings, scheme: Scheme | None) -> None:
        for rule in parse_keep(settings.keep).rules:
            if rule.name in ("resolution", "size"):
                raise InvalidValue(
                    f"keep rule {rule.name!r} is for images, and these are texts; "
                    "take longest, or max:FIELD with a field that they have"
                )

    def look(
        self, batch: Batch, frequencies: _native.Frequencies | None, key: bytes, threads: int | None
    ) -> Looked:
        texts = core_texts(batch.texts)
        return Looked(*_native.survey(measuring_scheme().recipe, texts, frequencies, key, threads))

    def bands(self, scheme: Scheme, settings: Settings, texts: int) -> int:
        if settings.radius is not None or settings.exact or texts < BANDED or not scheme.has_bands:
            return 0
        needed = bands_for(settings.similarity, BAND_RECALL)
        return needed if needed <= BANDS and settings.recall <= BAND_RECALL**2 else 0

    def flow(self, prints: Fingerprints, texts: Representatives, work: Work) -> Flow:
        return TextFlow(prints, texts, work)

    def question(self, question: str) -> str:
        return text_search.question_of(question)

    def search(self, asked: str, data: Sequence[str], wanted: Wanted) -> list[Match]:
        return text_search.search_texts(asked, data, threads=wanted.threads, reading=wanted.reading)

    def search_index(self, asked: str, index: Index, wanted: Wanted) -> list[Match]:
        return text_search.search_text_index(asked, index, wanted.scheme, threads=wanted.threads)

    def reach(self, question: str) -> str:
        return f"a similarity of {text_search.SIMILARITY} to the text"

    def index_radius(self, scheme: Scheme) -> int:
        return radius_for(text_search.SIMILARITY, 0.95, scheme.bits)


def reach_of(settings: Settings, bits: int, *, banded: bool = False) -> tuple[int, float]:
    """The radius of the search for candidates, and the recall that it needs there."""
    if banded:
        return radius_for(settings.similarity, settings.recall / BAND_RECALL, bits), BAND_RECALL
    if settings.radius is not None:
        return settings.radius, 1.0
    if settings.exact:
        return radius_for(settings.similarity, min(1.0, NEARLY_ALL), bits), 1.0
    radius = radius_for(settings.similarity, min(settings.recall / JOIN_RECALL, NEARLY_ALL), bits)
    return radius, recall_at(radius, settings.similarity, JOIN_RECALL, bits)


@dataclass(frozen=True, slots=True, eq=False)
class TextFlow:
    """The candidates among the texts of one run, and the verdicts on them."""

    prints: Fingerprints
    texts: Representatives
    work: Work

    def propose(self, advance: Callable[..., None], bands: Bands | None = None) -> pa.Table:
        """Pairs of texts that are near enough to be looked at: of each text the nearest ones."""
        prints, texts, work = self.prints, self.texts, self.work
        tell = by_share(advance, len(texts))
        radius, recall = reach_of(work.settings, prints.bits, banded=bands is not None)
        found = join_nearest(
            prints,
            radius,
            work.sizes.neighbours,
            bands=bands,
            within=texts.group if len(texts.group) else None,
            across=texts.source if texts.across else None,
            fixed=texts.fixed if texts.fixed.any() else None,
            recall=recall,
            threads=work.threads,
            memory=work.memory,
            tell=tell,
        )
        tell(1.0)
        columns = {
            "left": pa.array(found.pairs.left.astype(np.int64)),
            "right": pa.array(found.pairs.right.astype(np.int64)),
            "distance": pa.array(found.pairs.distance.astype(np.int32)),
        }
        way = "" if found.plan is None else found.plan.choice
        if bands is not None:
            way = (
                f"bands: {len(prints)} fingerprints of {prints.bits} bits, radius {radius}, of texts "
                f"that share one of {bands.shape[1]} bands"
            )
        notes = {"plan": way, "radius": str(radius), "crowded": json.dumps(found.crowded.tolist())}
        return pa.table(columns).replace_schema_metadata(notes)

    def candidates(self, proposed: pa.Table) -> Candidates:
        notes = proposed.schema.metadata or {}
        left, right, distance = (proposed.column(name).to_numpy() for name in ("left", "right", "distance"))
        return Candidates(
            left=TextNumbers(left),
            right=TextNumbers(right),
            distance=distance,
            radius=int(notes[b"radius"]),
            plan=notes[b"plan"].decode(),
            prints=self.prints,
            crowded=TextNumbers(np.array(json.loads(notes[b"crowded"]), dtype=np.int64)),
        )

    @contextmanager
    def judging(
        self, found: Candidates, measure: Measure, frequencies: _native.Frequencies
    ) -> Iterator[Judge]:
        # A text that is in no pair is near nothing, and is never needed.
        needed = TextNumbers(either(len(self.texts), found.left, found.right))
        with set_aside(needed, self.texts, measure, frequencies, self.work) as verifier:
            sizes = self.work.sizes
            if measure.rule is None:
                yield Sharing(verifier, sizes.round)
            else:
                yield Ruling(verifier, sizes.part, self.texts.named)


@contextmanager
def set_aside(
    needed: TextNumbers,
    texts: Representatives,
    measure: Measure,
    frequencies: _native.Frequencies | None,
    work: Work,
) -> Iterator[Verifier]:
    """A verifier that has the texts with the *needed* numbers."""
    wanted = np.full(len(texts.of_document), -1, dtype=np.int32)
    wanted[texts.document[needed]] = needed
    with work.spare() as spill:
        verifier = Verifier(
            measure,
            frequencies,
            memory=work.memory,
            spill=spill,
            threads=work.threads,
        )
        verifier.expect(len(texts), needed)
        at = 0
        for source in work.sources if len(needed) else ():
            with work.observer.stage("read again", total=source.size, what="document") as advance:
                for batch in source:
                    numbers = wanted[at : at + len(batch)]
                    if (numbers >= 0).any():
                        verifier.add(numbers, batch.texts)
                    at += len(batch)
                    advance(at, source.consumed)
        del wanted  # the texts are there, and it is as long as the input
        yield verifier


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
    part: int
    named: Flags
    """The texts whose subject is known: what they are compared with is about the same."""

    def parts(self, found: Candidates) -> Iterable[PairNumbers]:
        """All pairs of a text are in one part."""
        return (PairNumbers(part) for part in self.verifier.parts(found.left, found.right, self.part))

    def judge_part(self, left: TextNumbers, right: TextNumbers) -> Verdicts:
        return self._judged(self.verifier.judge_together, left, right)

    def judge(self, left: TextNumbers, right: TextNumbers) -> Verdicts:
        return self._judged(self.verifier.judge, left, right)

    def _judged(self, judge: Callable[..., Verdicts], left: TextNumbers, right: TextNumbers) -> Verdicts:
        """The verdicts of *judge*. No text with a subject is near one without: each kind is asked alone."""
        if not len(self.named) or not len(left):
            return judge(left, right)
        named = self.named[left]
        kinds = [np.flatnonzero(named == kind) for kind in (True, False)]
        found = [
            judge(left[rows], right[rows], same=kind) for rows, kind in zip(kinds, (True, False), strict=True)
        ]
        return joined(found, np.argsort(np.concatenate(kinds), kind="stable"))

    def meet(self, found: Candidates, judgements: Judgements) -> None:
        self.verifier.meet(found.left, found.right, judgements.measured[:, 0])
