"""dedupe(): the whole flow, from documents to what stays, with the evidence.

sources -> survey -> fingerprint -> join -> verify -> stars -> keep -> annotations, evidence

No document is removed unless it was measured directly against the one that stays.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cache, cached_property
from inspect import signature
from itertools import chain, islice
from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from neardup import __version__, _native, pictures, wording
from neardup.arrays import core_texts
from neardup.checkpoints import Checkpoints
from neardup.checks import check_share, check_text, check_threads, whole
from neardup.errors import ChangedInput, GuardStopped, InvalidType, InvalidValue, RefusedInput, shown
from neardup.features.image import WHOLE as WHOLE_PICTURE
from neardup.features.image import fingerprints_of
from neardup.files import check_path
from neardup.fingerprints import Fingerprints
from neardup.guards import OFF, SAME_FROM, Loss, Met, Trip, trips
from neardup.guards import Limits as Guards
from neardup.keep import Keep, keep_order, parse_keep, undated
from neardup.pairs import join_batches, join_nearest
from neardup.planner import plan
from neardup.progress import Advance, by_share, stage
from neardup.radius import radius_for, recall_at
from neardup.schemes import Scheme
from neardup.schemes import scheme as scheme_of
from neardup.sources import Source, are_texts, keep_apart, mostly_pictures, open_source
from neardup.sources.files import stamp
from neardup.sources.images import FIELDS as PICTURE_FIELDS
from neardup.sources.memory import Held
from neardup.sources.streams import WORKERS, worked_ahead
from neardup.stars import ROUND, stars
from neardup.survey import Again, Documents, Surveyor, changed
from neardup.thumbs import THUMB, Thumbs
from neardup.types import PROTECTED, Bad, Batch, label
from neardup.verify import (
    IDENTICAL,
    NEIGHBOURS,
    PERHAPS_FORM,
    REASONS,
    SPELLED,
    UNVERIFIED,
    WHOLE,
    Measure,
    Verdicts,
    Verifier,
    measuring_scheme,
    parse_measure,
)

T = TypeVar("T")
U = TypeVar("U")
Rows = npt.NDArray[np.int64]
Places = npt.NDArray[np.int32]
"""One number a document, or a text: there are fewer than 2^31."""
Flags = npt.NDArray[np.bool_]

# Up to so many documents 128 bits tell them apart well enough. Of 5,000 real ones, 256 bits propose a
# ninth of the pairs, and the whole run takes 0.6 of the time.
NARROW: Final = 2_000
# The share of the pairs of the wanted similarity within the radius that the join must find, if not all.
JOIN_RECALL: Final = 0.99
# The share of pairs of a similarity that the radius holds for who wants all: it holds every pair only where
# it is as wide as the fingerprint.
NEARLY_ALL: Final = 0.99999
CHECKPOINT_SECONDS: Final = 30.0
# The layout of checkpoints.
PARTS: Final = 4
EXAMPLES: Final = 5
# What is joined: of texts, or pictures, that are the same, only one is.
DISTINCT: Final = ("distinct text", "distinct picture")
# The parts of a run that a guard stopped.
STOPPED: Final = ("annotations", "evidence", "without_information", "fitted", "stopped", "input-0", "input-1")
# Clusters and sources that a guard names.
WORST: Final = 3
# Bad records that a result holds, and bytes of each.
SOME_BAD: Final = 1_000
# Bytes for texts that are verified, and for sorting fingerprints, where the user says nothing.
MEMORY: Final = 256 << 20
# Documents whose rows are made at a time.
STEP: Final = 1 << 16
# How many bits of a 16-bit number are set.
_COUNTS: Final = (
    np.unpackbits(np.arange(1 << 16, dtype=np.uint16).view(np.uint8)).reshape(-1, 16).sum(1, np.uint8)
)

# What is chosen for pictures where the user chooses nothing.
PICTURE_DEFAULTS: Final = {"similarity": 0.79, "keep": "central,resolution,size"}

ANNOTATIONS: Final = pa.schema(
    [
        ("id", pa.string()),
        ("cluster", pa.string()),
        ("keep", pa.bool_()),
        ("duplicate_of", pa.string()),
        ("distance", pa.int32()),
        ("similarity", pa.float64()),
    ]
)
EVIDENCE: Final = pa.schema(
    [
        ("keeper", pa.string()),
        ("id", pa.string()),
        ("distance", pa.int32()),
        ("similarity", pa.float64()),
        ("common", pa.float64()),
        ("rare", pa.float64()),
        ("accepted", pa.bool_()),
        ("rule", pa.string()),
        ("scheme", pa.string()),
        ("radius", pa.int32()),
    ]
)

# What `Result.annotate` adds.
ADDED: Final = ("cluster", "keep", "duplicate_of", "similarity")

WITHOUT_INFORMATION: Final = pa.schema([("id", pa.string())])


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything a user may choose about what is a duplicate and what stays."""

    similarity: float = 0.64
    recall: float = 0.95
    radius: int | None = None
    exact: bool = False
    verify: str = "default"
    keep: str = "central,longest"
    within: str | None = None
    across: str | None = None
    source_field: str | None = None
    ignore_colour: bool = False
    """Whether a picture in clearly other colours is still the same one."""
    guards: Guards = field(default_factory=Guards)

    def __post_init__(self) -> None:
        check_share("similarity", self.similarity)
        check_share("recall", self.recall)
        if self.radius is not None:
            whole("radius", self.radius, 0)
        for name in ("exact", "ignore_colour"):
            if not isinstance(getattr(self, name), bool):
                raise InvalidType(f"{name} must be True or False, not {shown(getattr(self, name))}")
        for name in ("within", "across", "source_field"):
            if getattr(self, name) is not None:
                check_text(name, getattr(self, name))
        if self.within is not None and self.across is not None:
            raise InvalidValue("choose one of within and across")
        if self.guards is None or isinstance(self.guards, bool):
            object.__setattr__(self, "guards", Guards() if self.guards else OFF)
        if not isinstance(self.guards, Guards):
            raise InvalidType(
                f"guards must be Limits of neardup.guards, or False for none, not {shown(self.guards)}"
            )
        parse_keep(check_text("keep", self.keep))
        parse_measure(check_text("verify", self.verify))

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields of a document that these settings look at."""
        asked = (*parse_keep(self.keep).fields, self.within, self.across, self.source_field)
        return tuple(dict.fromkeys(name for name in asked if name is not None))


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """Pairs within the radius, of documents that are numbered in keep order."""

    left: Rows
    right: Rows
    distance: npt.NDArray[np.int32]
    radius: int
    plan: str
    prints: Fingerprints
    crowded: Rows
    """Documents with more candidates than were looked at: only the nearest are among the pairs."""

    ways: Ways | None = None
    """Of pictures: how each pair may lie on each other."""

    def with_more(self, left: Rows, right: Rows, distance: npt.NDArray[np.int32]) -> Candidates:
        """The same with pairs added at the end."""
        return replace(
            self,
            left=np.concatenate([self.left, left]),
            right=np.concatenate([self.right, right]),
            distance=np.concatenate([self.distance, distance]),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Ways:
    """Thumbnails, and for each candidate pair its rows, from *begin* up to *end*, of the proposals."""

    thumbs: Callable[[], Thumbs]
    proposals: pictures.Proposals
    keys: Rows
    """The pairs, sorted, each as left << 32 | right."""
    begin: Rows
    end: Rows


@dataclass(frozen=True, eq=False)
class Result:
    """What was found: annotations and evidence as Arrow tables, and the way to the kept documents."""

    summary: dict[str, Any]
    scheme: Scheme
    plan: str
    guards: tuple[Trip, ...]
    losses: tuple[Loss, ...]
    source: Source = field(repr=False)
    keep_mask: Flags = field(repr=False)
    """Which documents stay, in the order of the input."""
    annotation_batches: Callable[..., Iterator[pa.RecordBatch]] = field(repr=False)
    """The rows of `annotations` in the order of the ids, some at a time; with input_order=True in that."""
    evidence_batches: Callable[[], Iterator[pa.RecordBatch]] = field(repr=False)
    """The rows of `evidence`, some at a time."""
    without_information_batches: Callable[[], Iterator[pa.RecordBatch]] = field(repr=False)
    """The ids of documents that say nothing and so are near to nothing, in their order, some at a time."""
    bad: tuple[Bad, ...] = field(default=(), repr=False)
    """The first 1,000 bad records of what `dedupe` opened: file, line, reason, and how they begin."""

    @cached_property
    def annotations(self) -> pa.Table:
        """One row per document, in the order of the input. Bad records have none: `annotate` has all rows."""
        return pa.Table.from_batches(self.annotation_batches(input_order=True), schema=ANNOTATIONS)

    @cached_property
    def evidence(self) -> pa.Table:
        """A row for every pair that was measured, and for every copy, in the order of the ids."""
        return pa.Table.from_batches(self.evidence_batches(), schema=EVIDENCE)

    @property
    def kept(self) -> Any:
        """The documents that stay, in their order: of a table or a list the same kind of object with all of
        its columns, of files an Arrow table with id, text and the fields that were asked for.

        Records that could not be used (`bad`) are not among them. Raises GuardStopped if a guard says that
        too much would go; annotations and evidence show what.
        """
        check_guards(self)
        if (held := self._held()) is not None:
            held = held.now()
            source = Source([held], self.source.request, unique=True)
            source.expected = self.source.expected
            rows = np.concatenate([np.zeros(0, np.int64), *(batch.places for batch in source)]) - 1
            return held.take(rows[self.keep_mask])
        batches, at = [], 0
        for batch in self.source:
            mask = pa.array(self.keep_mask[at : at + len(batch)])
            at += len(batch)
            columns: dict[str, Any] = {"id": batch.ids, "text": batch.texts}
            if batch.fields is not None:
                columns.update(zip(batch.fields.schema.names, batch.fields.columns, strict=True))
            batches.append(pa.table(columns).filter(mask))
        empty = pa.table({"id": pa.array([], pa.large_string()), "text": pa.array([], pa.large_string())})
        return pa.concat_tables(batches, promote_options="permissive") if batches else empty

    def annotate(self, data: Any = None, *, prefix: str = "") -> Any:
        """*data* (what `dedupe` was given, if nothing else) with `cluster`, `keep`, `duplicate_of` and
        `similarity` added: the same kind of object, all rows in their order.

        Its documents are found by id, and must have the text that was judged; records that could not be
        used have nulls. *prefix* stands before the names of the new columns.
        """
        check_text("prefix", prefix)
        held = self._held() if data is None else _held(data)
        if held is None:
            raise InvalidType(
                "files cannot be annotated; join `annotations` with them by id, or pass a table"
            )
        held = held.now()
        known, again = self.annotations, self.source.expected
        assert isinstance(again, Again)
        source = Source([held], replace(self.source.request, fields=()), unique=True)
        read = [(batch.ids, batch.places, again.spelled(batch)) for batch in source]
        if source.refused:
            raise RefusedInput(f"the data {source.refused[0].reason}")
        at = np.full(len(held), -1, dtype=np.int64)
        if read:
            ids, places, spelling = zip(*read, strict=True)
            found = again.find(pa.chunked_array(ids), np.concatenate(spelling))
            at[np.concatenate(places) - 1] = found
        rows = pa.array(at, mask=at < 0)
        columns = {prefix + name: known.column(name).take(rows) for name in ADDED}
        return held.with_columns(pa.table(columns), self.source.request.text_field)

    def _held(self) -> Held | None:
        """What a program gave, if it was no file."""
        inputs = self.source.inputs
        return inputs[0] if len(inputs) == 1 and isinstance(inputs[0], Held) else None


def _held(data: Any) -> Held | None:
    inputs = [Held(data)] if are_texts(data) else open_source(data).inputs
    return inputs[0] if len(inputs) == 1 and isinstance(inputs[0], Held) else None


def dedupe(
    data: Any,
    *,
    settings: Settings | None = None,
    scheme: str | Scheme | None = None,
    protect: Any = None,
    text_field: str = "text",
    id_field: str | None = None,
    threads: int | None = None,
    memory: int = MEMORY,
    work: str | None = None,
    quiet: bool = True,
    source: Source | None = None,
    **choices: Any,
) -> Result:
    """Find the near-duplicates of *data* and say which documents stay.

    *data* is a path, several, a table, a list of texts or an iterable of documents. *choices* are those of
    `Settings`: similarity, recall, radius, exact, verify, keep, within, across, ... *protect* is
    another input, whose documents stay whatever happens. *work* is a folder for checkpoints and
    for what does not fit into *memory* bytes.

    `kept` of the result are the documents that stay. It raises GuardStopped where a guard says that the
    run must not go on: `guards=neardup.guards.Limits(max_loss=0.9, max_cluster=None)` raises the limit of
    one and switches off another, `guards=False` all of them. `bad` of the result tells which records could
    not be used, and why, such as a second document with the same id. If no input can be read at all, that is
    RefusedInput.

    >>> result = dedupe([{"id": "a", "text": "one and the same short text"},
    ...                  {"id": "b", "text": "One and the same  short text!"},
    ...                  {"id": "c", "text": "quite another text"}])
    >>> result.annotations.select(["id", "keep", "duplicate_of"]).to_pylist()[1]
    {'id': 'b', 'keep': True, 'duplicate_of': None}
    """
    if protect is not None and protect is data:
        raise InvalidValue("the input and what is protected are the same object; protect other documents")
    data, protect = (Held(one) if are_texts(one) else one for one in (data, protect))
    images = scheme == "image" or (scheme is None and source is None and mostly_pictures(data))
    if images:
        scheme = "image"
        choices = {**(PICTURE_DEFAULTS if settings is None else {}), **choices}
    settings = _settings(settings, choices)
    check_text("text_field", text_field)
    if id_field is not None:
        check_text("id_field", id_field)
    threads, memory = check_threads(threads), whole("memory", memory, 1)
    if not isinstance(quiet, bool):
        raise InvalidType(f"quiet must be True or False, not {shown(quiet)}")
    reading: dict[str, Any] = {
        "text_field": text_field,
        "id_field": id_field,
        "fields": settings.fields,
        "unique": True,
        "format": "image" if images else None,
    }
    bad: list[Bad] = []

    def note(one: Bad) -> None:
        if len(bad) < SOME_BAD:
            bad.append(replace(one, raw=one.raw[:SOME_BAD], length=one.length or len(one.raw)))

    reading["on_bad"] = note
    if source is None:
        source = open_source(data, **reading)
    elif not isinstance(source, Source):
        raise InvalidType(f"source must come from open_source, not {shown(source)}")
    guarded = None if protect is None else open_source(protect, **reading, prefix=PROTECTED)
    recipe = None if scheme is None else scheme_of(scheme)
    key = ""
    if work is not None:
        work = check_path(work)
        key = run_key(
            settings, recipe, [text_field, id_field, *stamps(source), "protected", *stamps(guarded)]
        )
    flow = Flow(settings, recipe, threads=threads, memory=memory, work=work, key=key, quiet=quiet)
    result = flow.run(source, guarded)
    if work is not None and any(trip.stopped for trip in result.guards):
        flow.save_stopped(result, [source] if guarded is None else [source, guarded])
    for one in [source] if guarded is None else [source, guarded]:
        if one.refused and not one.records:
            first = one.refused[0]
            others = f"; {len(one.refused):,} inputs are refused" if len(one.refused) > 1 else ""
            raise RefusedInput(f"{first.file!r}: {first.reason}{others}")
        if one.bad and not bad:  # parts in *work* stood for every reading
            for _ in one:
                pass
    return replace(result, bad=tuple(bad))


def check_size(name: str, value: int) -> int:
    """*value* if it is a number of bytes that memory may be limited to."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidType(f"{name} must be a number of bytes, not {shown(value)}")
    if not 1 << 20 <= value <= 1 << 44:
        raise InvalidValue(f"{name} must be from 1 MiB to 16 TiB, not {shown(value)}")
    return value


def _settings(settings: Settings | None, choices: dict[str, Any]) -> Settings:
    known = {item.name for item in fields(Settings)}
    if unknown := sorted(set(choices) - known):
        known |= set(signature(dedupe).parameters) - {"data", "choices"}
        raise InvalidType(f"unknown setting {unknown[0]!r}; known: {', '.join(sorted(known))}")
    if settings is None:
        return Settings(**choices)
    if not isinstance(settings, Settings):
        raise InvalidType(f"settings must be neardup.Settings, not {shown(settings)}")
    return replace(settings, **choices)


def stamps(source: Source | None) -> list[Any]:
    """Names, sizes and times of the inputs; what is no file is like no other."""
    return [stamp(one) for one in ([] if source is None else source.inputs)]


def default_scheme(documents: int) -> Scheme:
    """The scheme for a collection of so many documents, where the user names none."""
    return scheme_of("text", bits=128 if documents <= NARROW else 256)


def check_choices(settings: Settings, scheme: Scheme | None, threads: int | None) -> None:
    """Raise if a run with these cannot be; before it begins."""
    check_threads(threads)
    if settings.radius is not None:
        widest = default_scheme(NARROW + 1) if scheme is None else scheme
        whole("radius", settings.radius, 0, widest.bits)
    if scheme is None or scheme.features != "picture":
        for rule in parse_keep(settings.keep).rules:
            if rule.name in ("resolution", "size"):
                raise InvalidValue(
                    f"keep rule {rule.name!r} is for pictures, and these are texts; "
                    "take longest, or max:FIELD with a field that they have"
                )
    elif parse_measure(settings.verify).name not in (*pictures.RULES, "none") or scheme.hash != "dct-signs":
        raise InvalidValue(
            "pictures are verified by default, strict, loose or none, with scheme image, "
            f"not by {settings.verify!r} with scheme {scheme.name!r}"
        )


class Flow:
    """One run: the stages after each other, each of which may have been finished before."""

    def __init__(
        self,
        settings: Settings,
        scheme: Scheme | None = None,
        *,
        threads: int | None = None,
        memory: int = MEMORY,
        work: str | None = None,
        key: str = "",
        quiet: bool = True,
        tell: Callable[[str], None] = lambda text: None,
    ) -> None:
        """*tell* is given what a person should know while the run goes on."""
        check_choices(settings, scheme, threads)
        self.settings, self.scheme, self.threads, self.memory = settings, scheme, threads, memory
        self.keep: Keep = parse_keep(settings.keep)
        self.measure: Measure = parse_measure(settings.verify, settings.similarity)
        self.pictures = scheme is not None and scheme.features == "picture"
        self._noun = "picture" if self.pictures else "document"
        self.work, self.quiet, self._tell = work, quiet, tell
        self.checkpoints = Checkpoints(work, key or run_key(settings, scheme, []))
        self._saved = time.monotonic()
        self._undated = 0
        self._met = Met([], [], [], 0, 0, [])
        self._restored = False  # whether the result is one that a guard stopped before
        self._table = ""  # the checkpoint of frequencies that the last one of the survey names
        self._key = b""  # the secret by which this run identifies texts

    def run(self, source: Source, protected: Source | None = None) -> Result:
        """All stages."""
        try:
            return self._stages(source, protected)
        except ChangedInput:
            for name in ("stopped", "survey"):  # so that a new run begins with what is there now
                self.checkpoints.forget(name)
            raise

    def _stages(self, source: Source, protected: Source | None) -> Result:
        sources = [source]
        if protected is not None:
            keep_apart(source, protected)
            sources.append(protected)
        if (known := self._stopped(sources)) is not None:
            return known
        documents, table, fixed = self.survey(sources)
        _check_distinct(documents, fixed)
        self._check_fields(documents, len(documents) - int(fixed.sum()))
        scheme = self.scheme or default_scheme(len(documents))
        if scheme.weights == "log-df" and scheme.frequencies is None:
            scheme = replace(scheme, frequencies=table)
        same = Representatives.of(documents, self.settings, self.keep, fixed, self.threads)
        documents = documents.without("content", "spelling")
        _give_back()
        prints = self.fingerprint(sources, scheme, same)
        if not self.pictures:  # thumbnails of an older decoder may lie in the cache
            _check_copies(prints, same)
        _give_back()
        if self.pictures:
            found = self._picture_candidates(sources, prints, same)
        else:
            found = self.candidates(prints, same)
        _give_back()
        judged = self.verify(sources, same, found, table, documents)
        documents = documents.without("lengths")
        _give_back()
        return self.conclude(source, documents, fixed, scheme, prints, same, judged)

    def _check_fields(self, documents: Documents, own: int) -> None:
        """Raise if the first *own* documents, those of the input, all lack a field: its name is misspelt."""
        named = [("--within", self.settings.within), ("--across", self.settings.across)]
        named += [("--source-field", self.settings.source_field)]
        named += [(f"--keep {rule.name}", rule.field) for rule in self.keep.rules]
        for option, name in named:
            if name is None or (self.pictures and name in PICTURE_FIELDS):
                continue
            lack = documents.fields.column(name).slice(0, own).null_count
            if own and lack == own:
                raise InvalidValue(
                    f"no document has a value in the field {name!r} of {option}; "
                    "correct its name, or leave the option out"
                )
            if lack and option in ("--within", "--across"):
                self._tell(
                    f"{lack:,} of {own:,} documents have no {name!r}; {option} takes them for one source"
                )
        for rule in self.keep.rules if own > 1 else ():
            if rule.field is not None and rule.score is not None and not self.pictures:
                scores = map(rule.score, documents.column(rule.field)[:own])
                first = next(scores)
                if all(score == first for score in scores):
                    self._tell(
                        f"--keep {rule.name} decides nothing: to it all {own:,} documents have the same "
                        f"{rule.field!r}, or none that it understands"
                    )
        for rule, odd in undated(self.keep, lambda name: documents.column(name)[:own]):
            self._undated += len(odd)
            self._tell(
                f"{len(odd):,} of {own:,} documents have a {rule.field!r} that is no known form of a date, "
                f"such as {shown(odd[0])}; for --keep {rule.name} they come last"
            )

    # --- stages ----------------------------------------------------------------------------------------

    def survey(self, sources: Sequence[Source]) -> tuple[Documents, _native.Frequencies, Flags]:
        """Ids, lengths, fields and contents of all documents, and how common each feature is."""
        recipe = measuring_scheme()
        done = self.checkpoints.load("survey")
        notes = {} if done is None else json.loads((done.schema.metadata or {})[b"notes"])
        self._key = bytes.fromhex(notes["key"]) if notes else secrets.token_bytes(32)
        counts_of = None if done is None else self.checkpoints.load(notes["frequencies"])
        table, skip, first = _native.Frequencies(), 0, 0
        surveyor = Surveyor(recipe, self.settings.fields, table, self.threads, key=self._key)
        if done is not None and counts_of is not None:
            table = _native.Frequencies.from_bytes(counts_of.column("bytes")[0].as_py())
            documents = Documents.of(done)
            if not self.quiet and not self.checkpoints.remembers:
                read = wording.counted(len(documents), self._noun)
                self._tell(f"going on from what is in {self.work}, where {read} had been read")
            if notes["complete"]:
                for source, counts in zip(sources, notes["sources"], strict=True):
                    source.restore(counts)
                return self._surveyed(sources, documents, table, notes["first"])
            surveyor = Surveyor(recipe, self.settings.fields, table, self.threads, documents, key=self._key)
            skip, first, self._table = notes["batches"], notes["first"], notes["frequencies"]
        seen = 0
        for number, source in enumerate(sources):
            with stage("read", total=source.size, what=self._noun, quiet=self.quiet) as advance:
                batches = iter(source)
                seen += sum(1 for _ in islice(batches, max(skip - seen, 0)))
                while (next_one := next(batches, None)) is not None:
                    # A checkpoint names the batches that are counted, so none may be at work meanwhile.
                    some = self._until_due(chain([next_one], batches))
                    with self._ahead(some, surveyor.look) as looked_at:
                        for batch, found in looked_at:
                            surveyor.add(batch, found)
                            seen += 1
                            first += len(batch) if number == 0 else 0
                            advance(surveyor.count, source.consumed)
                    if self._due(complete=False):
                        notes = {"complete": False, "batches": seen, "first": first}
                        self._save_survey(surveyor, table, notes)
        if self._due(complete=True):
            notes = {"complete": True, "first": first, "sources": [source.counts() for source in sources]}
            self._save_survey(surveyor, table, notes)
        return self._surveyed(sources, surveyor.documents(), table, first)

    def _surveyed(
        self, sources: Sequence[Source], documents: Documents, table: _native.Frequencies, first: int
    ) -> tuple[Documents, _native.Frequencies, Flags]:
        """What the survey gives; from now on every reading must give these documents."""
        for source, rows in zip(sources, (slice(first), slice(first, None)), strict=False):
            source.expected = Again(documents.ids[rows], documents.spelling[rows], self._key)
        return documents, table, _fixed(len(documents), first)

    def _ahead(
        self, batches: Iterator[T], work: Callable[[T], U]
    ) -> AbstractContextManager[Iterator[tuple[T, U]]]:
        """All batches, each with what *work* makes of it: of the next ones, while the last ones are used."""
        return closing(worked_ahead(batches, work, min(WORKERS, self.threads or WORKERS)))

    def _until_due(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        """The next batches, until a checkpoint is due."""
        for batch in batches:
            yield batch
            if self._due(complete=False):
                return

    def _thumbs(self, sources: Sequence[Source], same: Representatives, count: int) -> Thumbs:
        """The thumbnails of the pictures that stand for others, on the disk where memory does not do."""
        wanted = np.full(count, -1, dtype=np.int64)
        wanted[same.document] = np.arange(len(same.document))
        shape = (len(same.document), THUMB)
        thumbs: Thumbs
        if shape[0] * THUMB > self.memory:
            handle, path = tempfile.mkstemp(prefix="neardup-", dir=self.work)
            os.close(handle)
            thumbs = np.memmap(path, dtype=np.uint8, mode="w+", shape=shape)
            os.unlink(path)
        else:
            thumbs = np.zeros(shape, dtype=np.uint8)
        at = 0
        for source in sources:
            for batch in source:
                numbers = wanted[at : at + len(batch)]
                assert batch.pictures is not None
                thumbs[numbers[numbers >= 0]] = batch.pictures[numbers >= 0]
                at += len(batch)
        return thumbs

    def _picture_candidates(
        self, sources: Sequence[Source], prints: Fingerprints, same: Representatives
    ) -> Candidates:
        """The pairs of pictures that are near enough, each with the ways to lay one on the other."""
        radius = pictures.RADIUS if self.settings.radius is None else self.settings.radius
        thumbs = cache(lambda: self._thumbs(sources, same, len(prints)))
        done = self.checkpoints.load("candidates")
        if done is None:
            count = len(same.document)
            with stage("join", total=count, unit="pictures", what=DISTINCT[1], quiet=self.quiet) as advance:
                tell = [by_share(advance, count, step, 4) for step in range(4)]
                thumbs()
                tell[0](1.0)
                kept = pictures.stored(thumbs(), threads=self.threads)
                asking = pictures.asked(thumbs(), threads=self.threads)
                tell[1](1.0)
                ways = pictures.propose(kept, asking, radius, threads=self.threads, tell=tell[2])
                if self.settings.radius is None:
                    ways = pictures.merged(ways, pictures.propose_by_corners(thumbs(), threads=self.threads))
                done = ways.table()
                tell[3](1.0)
            text = (
                f"{len(kept.prints)} fingerprints of {len(prints)} pictures, "
                f"{len(asking.prints)} asked for, radius {radius}"
            )
            done = done.replace_schema_metadata({b"plan": text.encode()})
            if self._due(complete=True):
                self._save("candidates", done)
        ways = pictures.Proposals.of(done)
        text = (done.schema.metadata or {})[b"plan"].decode()
        low, high = np.minimum(ways.left, ways.right), np.maximum(ways.left, ways.right)
        allowed = same.comparable(low, high)
        first = np.ones(len(low), dtype=bool)
        first[1:] = (low[1:] != low[:-1]) | (high[1:] != high[:-1])
        begin = np.flatnonzero(first)
        end = np.append(begin[1:], len(low))
        chosen = allowed[begin]
        begin, end = begin[chosen], end[chosen]
        own = same.own(prints)
        crowded = np.zeros(0, dtype=np.int64)
        low, high, distance = low[begin], high[begin], ways.distance[begin]
        keys = low << 32 | high
        return Candidates(
            low, high, distance, radius, text, own, crowded, Ways(thumbs, ways, keys, begin, end)
        )

    def _picture_judge(self, found: Candidates) -> Callable[[Rows, Rows], Verdicts]:
        settings = self.settings
        rule = pictures.rule_of(self.measure.name, settings.similarity, ignore_colour=settings.ignore_colour)
        ways = found.ways
        assert ways is not None

        def judge(left: Rows, right: Rows) -> Verdicts:
            rows = np.searchsorted(ways.keys, left << 32 | right)
            seen = pictures.verify(
                ways.thumbs(), ways.proposals, ways.begin[rows], ways.end[rows], rule, threads=self.threads
            )
            columns = (np.clip(seen.found[:, at], 0.0, 1.0) for at in (9, 10, 12))
            return Verdicts(seen.accepted, seen.reason, *columns)

        return judge

    def _due(self, *, complete: bool) -> bool:
        """Whether a checkpoint is worth its while: for what a kill would cost, or for the next run."""
        if self.work is None:
            return False
        old = time.monotonic() - self._saved > CHECKPOINT_SECONDS
        return old or (complete and self.checkpoints.remembers)

    def _save(self, name: str, table: pa.Table) -> None:
        self.checkpoints.save(name, table)
        self._saved = time.monotonic()

    def _save_survey(self, surveyor: Surveyor, table: _native.Frequencies, notes: dict[str, Any]) -> None:
        # The table first, under a name of its own: the survey says which table belongs to it.
        name = f"frequencies-{surveyor.count}" if not notes["complete"] else "frequencies"
        self.checkpoints.save(name, pa.table({"bytes": pa.array([table.to_bytes()], pa.large_binary())}))
        documents = surveyor.documents().table()
        notes = {**notes, "frequencies": name, "key": self._key.hex()}
        metadata = {**(documents.schema.metadata or {}), b"notes": json.dumps(notes).encode()}
        self._save("survey", documents.replace_schema_metadata(metadata))
        if self._table not in ("", name):
            self.checkpoints.forget(self._table)
        self._table = name

    def fingerprint(self, sources: Sequence[Source], scheme: Scheme, same: Representatives) -> Fingerprints:
        """The fingerprints of all documents, each where *same* places it."""
        count = len(same.of_document)
        words = np.zeros((count, (scheme.bits + 63) // 64), dtype=np.uint64)
        valid = np.zeros(count, dtype=bool)
        prints = Fingerprints(words, bits=scheme.bits, valid=valid, digest=scheme.digest)
        if self.measure.verifies and count < 2:
            return prints
        done, known = self.checkpoints.load("fingerprints"), 0
        for part in () if done is None else done.to_batches():
            before = Fingerprints.from_arrow(part.column("fingerprint"), scheme.bits, scheme.digest)
            places = same.place(np.arange(known, known + len(before)))
            words[places], valid[places] = before.words, before.valid
            known += len(before)
        at = 0
        for source in sources if known < count else ():
            batches = iter(source)
            while at < known and (batch := next(batches, None)) is not None:
                at += len(batch)
                if at > known:  # batches are not as they were
                    at, batches = at - len(batch), chain([batch], batches)
                    break
            with (
                stage("fingerprint", total=source.size, what=self._noun, quiet=self.quiet) as advance,
                self._ahead(batches, lambda batch: _fingerprints(scheme, batch, self.threads)) as made,
            ):
                for batch, some in made:
                    at += len(batch)
                    places = same.place(np.arange(at - len(batch), at))
                    words[places], valid[places] = some.words, some.valid
                    advance(at, source.consumed)
                    if self._due(complete=at == count):
                        self._save_fingerprints(prints, same, at)
        # What nobody writes any more is read where it is.
        words.flags.writeable = valid.flags.writeable = False
        return prints

    def _save_fingerprints(self, prints: Fingerprints, same: Representatives, count: int) -> None:
        def batches() -> Iterator[pa.RecordBatch]:
            for begin in range(0, count, STEP):
                places = same.place(np.arange(begin, min(begin + STEP, count)))
                some = Fingerprints(prints.words[places], bits=prints.bits, valid=prints.valid[places])
                yield pa.record_batch({"fingerprint": some.to_arrow()}, schema)

        schema = pa.schema([("fingerprint", pa.binary(prints.words.shape[1] * 8))])
        self.checkpoints.save_batches("fingerprints", schema, batches())
        self._saved = time.monotonic()

    def candidates(self, prints: Fingerprints, same: Representatives) -> Candidates:
        """The pairs of different texts that are near enough to be looked at."""
        settings = self.settings
        bits = prints.bits
        radius = settings.radius
        if radius is None:
            wanted = 1.0 if settings.exact else settings.recall
            share = min(wanted / (1.0 if settings.exact else JOIN_RECALL), NEARLY_ALL)
            radius = radius_for(settings.similarity, share, bits)
        recall = 1.0
        if not settings.exact and settings.radius is None:
            recall = recall_at(radius, settings.similarity, JOIN_RECALL, bits)
        some = same.own(prints)
        text = plan(some, radius, recall=recall, threads=self.threads).choice
        done = self.checkpoints.load("candidates")
        if done is None:
            with stage("join", total=len(some), unit="texts", what=DISTINCT[0], quiet=self.quiet) as advance:
                tell = by_share(advance, len(some))
                pairs, cut = join_nearest(
                    some,
                    radius,
                    NEIGHBOURS,
                    within=same.field if same.within else None,
                    across=same.field if same.across else None,
                    fixed=same.fixed if same.fixed.any() else None,
                    recall=recall,
                    threads=self.threads,
                    memory=self.memory,
                    tell=tell,
                )
                tell(1.0)
            done = pa.table(
                {
                    "left": pa.array(pairs.left.astype(np.int64)),
                    "right": pa.array(pairs.right.astype(np.int64)),
                    "distance": pa.array(pairs.distance.astype(np.int32)),
                }
            )
            done = done.replace_schema_metadata({b"crowded": json.dumps(cut.tolist()).encode()})
            if self._due(complete=True):
                self._save("candidates", done)
        crowded = np.array(json.loads((done.schema.metadata or {})[b"crowded"]), dtype=np.int64)
        left, right, distance = (done.column(name).to_numpy() for name in ("left", "right", "distance"))
        return Candidates(left, right, distance, radius, text, some, crowded)

    def verify(
        self,
        sources: Sequence[Source],
        same: Representatives,
        found: Candidates,
        table: _native.Frequencies,
        documents: Documents,
    ) -> Judged:
        """Every candidate pair that can decide something, measured; and who keeps whom."""
        if not self.measure.verifies:
            return self._stars(same, found, Judgements(found, None), documents)
        if found.ways is not None:
            with self._verifying(found) as advance:
                verdicts = Judgements(found, self._picture_judge(found), advance)
                self._judge(verdicts, _rounds(len(found.left)), verdicts.judge_pairs)
                judged = self._stars(same, found, verdicts, documents)
                advance(len(found.left), len(found.left))
                return judged
        # Whoever the join met has a pair: a text that has none is near to nothing, and is never asked for.
        needed = _either(len(same.document), found.left, found.right)
        with tempfile.TemporaryDirectory(prefix="neardup-", dir=self.work) as folder:
            verifier = Verifier(
                self.measure,
                table,
                len(same.document),
                wanted=needed,
                spill=os.path.join(folder, "texts"),
                memory=self.memory,
                threads=self.threads,
            )
            if len(needed):
                self._set_aside(sources, needed, same, verifier)
            with self._verifying(found) as advance:
                verdicts = Judgements(found, verifier.judge, advance)
                if self.measure.rule is not None:
                    # Among their neighbours: all pairs of a document stand in one part.
                    self._judge(verdicts, verifier.parts(found.left, found.right), verifier.judge_together)
                    verifier.meet(found.left, found.right, verdicts.measured[:, 0])
                else:
                    self._judge(verdicts, _rounds(len(found.left)), verifier.judge)
                _give_back()
                judged = self._stars(same, found, verdicts, documents)
                advance(len(found.left), len(found.left))
                return judged

    def _verifying(self, found: Candidates) -> AbstractContextManager[Advance]:
        return stage("verify", total=len(found.left), unit="pairs", what="pair", quiet=self.quiet)

    def _judge(
        self, verdicts: Judgements, parts: Iterable[Rows], judge: Callable[[Rows, Rows], Verdicts]
    ) -> None:
        """Judge all candidate pairs, in parts that may have been done before."""
        done, more = self.checkpoints.load("verdicts"), False
        if done is not None:
            verdicts.restore(done)
        for rows in parts:
            if verdicts.judged[rows].all():
                continue
            verdicts.note(rows, judge(verdicts.left[rows], verdicts.right[rows]))
            more = True
            if self._due(complete=False):
                self._save("verdicts", verdicts.table())
                more = False
        if more and self._due(complete=True):
            self._save("verdicts", verdicts.table())

    def _set_aside(
        self, sources: Sequence[Source], needed: Rows, same: Representatives, verifier: Verifier
    ) -> None:
        """Set the texts with the *needed* numbers aside."""
        wanted = np.full(len(same.of_document), -1, dtype=np.int32)
        wanted[same.document[needed]] = needed
        at = 0
        for source in sources:
            with stage("read again", total=source.size, what=self._noun, quiet=self.quiet) as advance:
                for batch in source:
                    numbers = wanted[at : at + len(batch)]
                    if (numbers >= 0).any():
                        verifier.add(numbers, batch.texts)
                    at += len(batch)
                    advance(at, source.consumed)

    def _stars(
        self, same: Representatives, found: Candidates, verdicts: Judgements, documents: Documents
    ) -> Judged:
        central = any(rule.name == "central" for rule in self.keep.rules)
        pairs = np.flatnonzero(verdicts.yes)
        if central:
            order = self._central_order(same, found, pairs, documents)
        else:
            order = np.arange(len(same.document), dtype=np.int32)
        _give_back()
        rank = _inverse(order)
        one, other = rank[found.left[pairs]], rank[found.right[pairs]]
        low, high = np.minimum(one, other), np.maximum(one, other)
        by_rank = np.argsort(low.astype(np.int64) << 32 | high)
        fixed = same.fixed[order] if same.fixed.any() else None
        made = stars(len(order), low[by_rank], high[by_rank], fixed=fixed)
        _look_up(order, made, into=made)
        del order
        _give_back()
        keeper = _look_up(made, rank, into=np.empty_like(made))
        del made
        found = _absorb(keeper, rank, found, same, verdicts)
        return _best_keepers(keeper, rank, found, verdicts, any_keeper=central)

    def _central_order(
        self, same: Representatives, found: Candidates, accepted: Rows, documents: Documents
    ) -> Places:
        """The keep order, which looks at how many *accepted* pairs each text is in."""
        sides = np.concatenate([found.left[accepted], found.right[accepted]])
        met, times = np.unique(sides, return_counts=True)
        degree = np.zeros(len(documents), dtype=np.uint32)
        degree[same.document[met]] = times
        fixed = None
        if same.fixed.any():
            fixed = np.zeros(len(documents), dtype=bool)
            fixed[same.document] = same.fixed
        return _order(documents, self.keep, fixed, degree, same.document, threads=self.threads)

    def conclude(
        self,
        source: Source,
        documents: Documents,
        fixed: Flags,
        scheme: Scheme,
        prints: Fingerprints,
        same: Representatives,
        judged: Judged,
    ) -> Result:
        """Annotations, evidence, counts and guards."""
        found = judged.found
        conclusion = Conclusion(
            documents, fixed, scheme, prints, same, found, judged, self.keep, self.measure, self.threads
        )
        losses, worst, examples = _losses(documents, self.settings, fixed, conclusion.keep)
        _give_back()
        alike = _native.most_alike(prints.words, prints.valid)
        self._met = Met(
            clusters=[
                (size, _ids(documents.ids, np.flatnonzero(conclusion.keeper == keeper)[:EXAMPLES]))
                for keeper, size in (conclusion.largest if len(documents) else ())
            ],
            losses=[losses[at] for at in worst],
            lost=_ids(documents.ids, examples),
            documents=len(documents),
            same=len(alike),
            alike=_ids(documents.ids, np.sort(same.document_at(alike))[:EXAMPLES]),
            noun=self._noun,
        )
        summary = {
            "documents": source.documents,
            "kept": int(conclusion.keep[~fixed].sum()),
            "removed": int((~conclusion.keep[~fixed]).sum()),
            "copies": int(np.count_nonzero(same.of_document >= 0)) - len(same.document),
            "clusters": conclusion.clusters,
            "perhaps_forms": conclusion.perhaps_forms(),
            "without_information": int(np.count_nonzero((same.of_document < 0) & ~fixed)),
            "protected": int(fixed.sum()),
            "undated": self._undated,
            "bad": source.bad,
            "candidate_pairs": len(found.left),
            "measured_pairs": int(judged.measures.sum()),
            "accepted_pairs": int(judged.accepted.sum()),
            "radius": found.radius,
            "similarity": self.settings.similarity,
            "scheme": scheme.digest,
        }
        return Result(
            summary=summary,
            scheme=scheme,
            plan=found.plan,
            guards=trips(self.settings.guards, self._met),
            losses=tuple(loss for loss in losses if loss.documents),
            source=source,
            keep_mask=conclusion.keep[~fixed],
            annotation_batches=conclusion.annotations,
            evidence_batches=conclusion.evidence,
            without_information_batches=conclusion.without_information,
        )

    # --- a run that a guard stopped ----------------------------------------------------------------------

    def save_stopped(self, result: Result, sources: Sequence[Source]) -> None:
        """Keep *result*, which a guard stopped: with another limit the same run has nothing to find out."""
        if self._restored:
            return
        notes = {
            "summary": result.summary,
            "plan": result.plan,
            "digest": result.scheme.digest,
            "losses": [asdict(loss) for loss in result.losses],
            "met": asdict(self._met),
            "sources": [source.counts() for source in sources],
        }
        frequencies = None
        if self.scheme is None or self.scheme.frequencies is None:
            frequencies = result.scheme.frequencies
        fitted = b"" if frequencies is None else frequencies.to_bytes()
        save = self.checkpoints.save_batches
        save("annotations", ANNOTATIONS, result.annotation_batches())
        save("evidence", EVIDENCE, result.evidence_batches())
        save("without_information", WITHOUT_INFORMATION, result.without_information_batches())
        for number, source in enumerate(sources):
            assert isinstance(source.expected, Again)
            self.checkpoints.save(f"input-{number}", source.expected.table())
        self.checkpoints.save("fitted", pa.table({"bytes": pa.array([fitted], pa.large_binary())}))
        # The last one: it says that the others are there.
        mask = pa.table({"keep": result.keep_mask})
        self._save("stopped", mask.replace_schema_metadata({b"notes": json.dumps(notes).encode()}))

    def _stopped(self, sources: Sequence[Source]) -> Result | None:
        """The result of the same run, if a guard stopped it; its limits may have been others."""
        mask = self.checkpoints.load("stopped")
        fitted = None if mask is None else self.checkpoints.load("fitted")
        tables = [self.checkpoints.opened(name) for name in STOPPED[:3]] if fitted is not None else [None]
        read = [self.checkpoints.load(f"input-{number}") for number in range(len(sources))]
        if mask is None or fitted is None or any(table is None for table in (*tables, *read)):
            return None
        notes = json.loads((mask.schema.metadata or {})[b"notes"])
        met = Met(**{**notes["met"], "losses": [Loss(**loss) for loss in notes["met"]["losses"]]})
        scheme = self.scheme or default_scheme(met.documents)
        if scheme.weights == "log-df" and scheme.frequencies is None:
            table = _native.Frequencies.from_bytes(fitted.column("bytes")[0].as_py())
            scheme = replace(scheme, frequencies=table)
        if scheme.digest != notes["digest"]:
            return None
        for source, counts, known in zip(sources, notes["sources"], read, strict=True):
            source.restore(counts)
            assert known is not None
            source.expected = Again.of(known)
        self._met, self._restored = met, True
        if not self.quiet:
            self._tell(f"going on from what is in {self.work}: a guard stopped this run when all was judged")
        annotations, evidence, without = (table for table in tables if table is not None)

        def annotation_batches(*, input_order: bool = False) -> Iterator[pa.RecordBatch]:
            own = sources[0].expected
            if not input_order or not isinstance(own, Again):
                return iter(annotations.to_batches())
            places = pc.index_in(own.ids.cast(pa.string()), value_set=annotations.column("id"))
            return iter(annotations.take(places).to_batches())

        return Result(
            summary=notes["summary"],
            scheme=scheme,
            plan=notes["plan"],
            guards=trips(self.settings.guards, met),
            losses=tuple(Loss(**loss) for loss in notes["losses"]),
            source=sources[0],
            keep_mask=mask.column("keep").to_numpy(),
            annotation_batches=annotation_batches,
            evidence_batches=lambda: iter(evidence.to_batches()),
            without_information_batches=lambda: iter(without.to_batches()),
        )


def _give_back() -> None:
    """Let the system have the memory that the last stage no longer needs."""
    pa.default_memory_pool().release_unused()
    _native.give_back()


def check_guards(result: Result, report: str | None = None) -> None:
    """Raise if a guard says that the run must not go on.

    *report* is where the command line tells it in full; without one the way out is told in Python.
    """
    stopped = [trip for trip in result.guards if trip.stopped]
    if not stopped:
        return
    where, way_out = "", f"pass guards={_passing(result)}, or guards=False"
    if report is not None:
        where = f" ({report} shows it)"
        way_out = f"give {' '.join(trip.option for trip in stopped)}, or --no-guards"
    what = "; ".join(map(str, stopped))
    raise GuardStopped(
        f"stopped, no document was removed: {what}{where}; if this is what you want, {way_out}"
    )


def _passing(result: Result) -> str:
    """The limits, as Python, with which the run would pass."""
    met: dict[str, float | None] = {
        trip.setting: trip.least if trip.stopped else trip.limit for trip in result.guards
    }
    # A guard that was not looked at is off, but for that of small collections.
    limits = {"max_cluster": None, "max_loss": None, **met}
    if result.summary["documents"] > SAME_FROM:
        limits.setdefault("max_same", None)
    said = [f"{name}={value!r}" for name, value in limits.items() if value != getattr(Guards(), name)]
    return f"neardup.guards.Limits({', '.join(said)})"


def run_key(settings: Settings, scheme: Scheme | None, inputs: Sequence[Any]) -> str:
    """What must be equal for the parts of one run to be used by another; limits of guards find nothing."""
    facts = {
        "version": [__version__, PARTS],
        "settings": asdict(replace(settings, guards=OFF)),
        "scheme": scheme and scheme.digest,
        "inputs": list(inputs),
    }
    return hashlib.blake2b(
        json.dumps(facts, sort_keys=True, default=str).encode(), digest_size=16
    ).hexdigest()


def _fingerprints(scheme: Scheme, batch: Batch, threads: int | None) -> Fingerprints:
    if batch.pictures is None:
        return scheme.fingerprints(batch.texts, threads=threads)
    words, valid = fingerprints_of(batch.pictures, [WHOLE_PICTURE], threads=threads)
    return Fingerprints(words, bits=scheme.bits, valid=valid, digest=scheme.digest)


def _fixed(count: int, first: int) -> Flags:
    fixed = np.zeros(count, dtype=bool)
    fixed[first:] = True
    return fixed


def _check_distinct(documents: Documents, fixed: Flags) -> None:
    """Raise if a document of the input has the id of a protected one with its prefix."""
    if not fixed.any():
        return
    first = int(fixed.argmax())
    shared = pc.is_in(documents.ids[first:], value_set=documents.ids[:first])
    if pc.any(shared).as_py():
        id = documents.ids[first:].filter(shared)[0].as_py()
        raise InvalidValue(
            f"id {id!r} of the input is the name of the protected document {id.removeprefix(PROTECTED)!r}; "
            f"give it one that does not begin with {PROTECTED!r}"
        )


def _check_copies(prints: Fingerprints, same: Representatives) -> None:
    """Raise if a copy has another fingerprint than the text that it is said to be, letter for letter."""
    for begin in range(0, len(same.others), STEP):
        rows = same.others[begin : begin + STEP]
        text = same.of_document[rows]
        copies = text >= 0
        copies[copies] = same.spelled_alike(rows[copies], same.document[text[copies]])
        places = len(same.document) + begin + np.flatnonzero(copies)
        if (prints.words[places] != prints.words[text[copies]]).any():
            raise changed("the input", "two documents with one text have two fingerprints")


def _ids(ids: pa.LargeStringArray, rows: Rows | Places) -> list[str]:
    found: list[str] = ids.take(pa.array(rows)).to_pylist()
    return found


def _source_of(documents: Documents, settings: Settings) -> tuple[list[str], Places]:
    """The names of the sources, and which one each document comes from."""
    if settings.source_field is None:
        return documents.files or [""], documents.file()
    values = [label(value) or "(none)" for value in documents.column(settings.source_field)]
    names = sorted(set(values)) or [""]
    codes = {name: code for code, name in enumerate(names)}
    return names, np.array([codes[value] for value in values], dtype=np.int32)


def _losses(
    documents: Documents, settings: Settings, fixed: Flags, keep: Flags
) -> tuple[list[Loss], list[int], Rows]:
    """What each source loses, those that lose the largest shares, and examples from the first of them."""
    names, codes = _source_of(documents, settings)
    gone = ~fixed & ~keep
    totals, lost = (_tally(codes, of, len(names)) for of in (~fixed, gone))
    losses = [Loss(*row) for row in zip(names, totals.tolist(), lost.tolist(), strict=True)]
    worst = np.argsort(-lost / np.maximum(totals, 1), kind="stable")[:WORST].tolist()
    return losses, worst, np.flatnonzero(gone & (codes == worst[0]))[:EXAMPLES]


def _tally(codes: Places, wanted: Flags, count: int) -> Rows:
    """How many of the *wanted* documents have each code."""
    found = np.zeros(count, dtype=np.int64)
    for begin in range(0, len(codes), STEP):
        part = slice(begin, begin + STEP)
        found += np.bincount(codes[part][wanted[part]], minlength=count)
    return found


@dataclass(frozen=True, slots=True, eq=False)
class Representatives:
    """One document for each text that occurs, numbered in keep order; the others are its copies.

    With *across*, copies are of one source each: they are not compared with each other.
    """

    document: Places
    """The document that stands for a text."""
    of_document: Places
    """The text of each document, -1 where it has no information."""
    others: Places
    """The documents that stand for none, in the order of the input."""
    spelling: npt.NDArray[np.uint32]
    """Tells documents apart whose texts are the same but for case, spacing and punctuation."""
    twin: Places
    """With *across* and *within*, the first text that is equal to each."""
    field: Places
    """What these compare, as a number; nothing without them."""
    across: bool
    within: bool
    fixed: Flags

    @classmethod
    def of(
        cls, documents: Documents, settings: Settings, keep: Keep, fixed: Flags, threads: int | None
    ) -> Representatives:
        """The texts of *documents*."""
        name = settings.within or settings.across
        codes = None
        if name is not None:
            seen: dict[str | None, int] = {}
            codes = np.array(
                [seen.setdefault(label(value), len(seen)) for value in documents.column(name)], np.int32
            )
        # Across sources a document that is protected and one that is not are never one text: the one may be a
        # copy of what the other is not compared with.
        apart = codes if codes is None or settings.across is None else codes * 2 + fixed
        document, of_document, twin = _native.one_of_each(
            documents.content,
            None if apart is None else apart.astype(np.uint32),
            _order(documents, keep, fixed, None, threads=threads),
        )
        alone = np.ones(len(documents), dtype=bool)
        alone[document] = False
        return cls(
            document=document,
            of_document=of_document,
            others=np.flatnonzero(alone).astype(np.int32),
            spelling=documents.spelling,
            twin=twin,
            field=np.zeros(0, np.int32) if codes is None else codes[document],
            across=settings.across is not None,
            within=settings.within is not None,
            fixed=fixed[document],
        )

    def place(self, rows: Rows | Places) -> Rows:
        """Where the fingerprints of documents stand: those of the texts in their order, then the others."""
        text = self.of_document[rows]
        stands = text >= 0
        stands[stands] = self.document[text[stands]] == rows[stands]
        return np.where(stands, text, len(self.document) + np.searchsorted(self.others, rows))

    def document_at(self, places: npt.NDArray[Any]) -> Places:
        """The documents whose fingerprints stand at *places*."""
        is_text = places < len(self.document)
        rest = places[~is_text] - np.uint32(len(self.document))
        return np.concatenate([self.document[places[is_text]], self.others[rest]])

    def own(self, prints: Fingerprints) -> Fingerprints:
        """The fingerprints of the texts, of all that were placed; no copy is made."""
        count = len(self.document)
        return Fingerprints(
            prints.words[:count], bits=prints.bits, valid=prints.valid[:count], digest=prints.digest
        )

    def equal(self, one: Rows | Places, other: Rows | Places) -> Flags:
        """Which of the documents have the same text, two by two."""
        texts = self.of_document[one], self.of_document[other]
        if len(self.twin):
            texts = self.twin[texts[0]], self.twin[texts[1]]
        found: Flags = texts[0] == texts[1]
        return found

    def spelled_alike(self, one: Rows | Places, other: Rows | Places) -> Flags:
        """Which of the documents that have the same text are letter for letter the same, two by two."""
        found: Flags = self.spelling[one] == self.spelling[other]
        return found

    def comparable(self, left: npt.NDArray[Any], right: npt.NDArray[Any]) -> Flags:
        """Which pairs may be compared: of one source, or of two, as the user wants."""
        wanted: Flags = ~(self.fixed[left] & self.fixed[right])
        if self.within:
            wanted &= self.field[left] == self.field[right]
        if self.across:
            wanted &= self.field[left] != self.field[right]
        return wanted


def _order(
    documents: Documents,
    keep: Keep,
    fixed: Flags | None,
    pairs: npt.NDArray[np.uint32] | None,
    rows: Places | None = None,
    *,
    threads: int | None,
) -> Places:
    """The keep order of all documents, or the places of some."""
    fields = {name: documents.column(name) for name in keep.fields}
    return keep_order(
        keep, documents.ids, documents.lengths, fields, rows=rows, pairs=pairs, fixed=fixed, threads=threads
    )


def _either(count: int, one: npt.NDArray[Any], other: npt.NDArray[Any]) -> Rows:
    """The numbers below *count* that stand in *one* or in *other*, in ascending order."""
    met = np.zeros(count, dtype=bool)
    met[one] = met[other] = True
    return np.flatnonzero(met)


def _inverse(order: Places) -> Places:
    """The place of each in *order*."""
    place = np.empty(len(order), dtype=np.int32)
    for begin in range(0, len(order), STEP):
        some = order[begin : begin + STEP]
        place[some] = np.arange(begin, begin + len(some))
    return place


def _look_up(values: Places, places: Places, *, into: Places) -> Places:
    """*values* at *places*, some at a time: NumPy makes places of eight bytes of those it is given."""
    for begin in range(0, len(places), STEP):
        part = slice(begin, begin + STEP)
        into[part] = values[places[part]]
    return into


def _rounds(count: int) -> Iterator[Rows]:
    """The numbers below *count*, some at a time."""
    return (np.arange(at, min(at + ROUND, count)) for at in range(0, count, ROUND))


class Judgements:
    """Verdicts on candidate pairs. Without a judge nothing is measured, and all are accepted."""

    def __init__(
        self,
        found: Candidates,
        judge: Callable[[Rows, Rows], Verdicts] | None,
        advance: Advance = lambda documents, pairs: None,
    ) -> None:
        """*advance* is told how many pairs are judged."""
        self._judge, self._advance, self._done = judge, advance, 0
        self.left, self.right = found.left, found.right
        count = len(found.left)
        self.judged = np.zeros(count, dtype=bool)
        self.yes = np.full(count, judge is None)
        self.reason = np.zeros(count, dtype=np.uint8)
        self.measured = np.zeros((count, 3), dtype=np.uint16)

    def learn(self, found: Candidates, verdicts: Sequence[Verdicts]) -> None:
        """Take in pairs that were added at the end, and what was found of them."""
        count = len(self.left)
        more = len(found.left) - count
        self.left, self.right = found.left, found.right
        for name in ("judged", "yes", "reason", "measured"):
            old = getattr(self, name)
            setattr(self, name, np.concatenate([old, np.zeros((more, *old.shape[1:]), dtype=old.dtype)]))
        for part in verdicts:
            self._take(np.arange(count, count + len(part.reason)), part)
            count += len(part.reason)

    def note(self, rows: Rows, verdicts: Verdicts) -> None:
        """Verdicts on some pairs."""
        self._take(rows, verdicts)
        self._tell(len(rows))

    def _take(self, rows: Rows, verdicts: Verdicts) -> None:
        self.judged[rows] = self._judge is not None
        self.yes[rows], self.reason[rows] = verdicts.accepted, verdicts.reason
        for column, values in enumerate((verdicts.plain, verdicts.common, verdicts.rare)):
            self.measured[rows, column] = np.rint(values * WHOLE)

    def _tell(self, more: int) -> None:
        self._done += more
        self._advance(self._done, self._done)

    def judge_pairs(self, left: Rows, right: Rows) -> Verdicts:
        """Verdicts on any pairs; without a judge all are accepted."""
        if self._judge is not None:
            return self._judge(left, right)
        nothing = np.zeros(len(left))
        return Verdicts(np.ones(len(left), dtype=bool), nothing.astype(np.uint8), nothing, nothing, nothing)

    def table(self) -> pa.Table:
        """What was judged, for a checkpoint."""
        columns: dict[str, Any] = {"left": self.left, "right": self.right}
        columns |= {"judged": self.judged, "yes": self.yes, "reason": self.reason}
        return pa.table({**columns, **{f"measured{at}": self.measured[:, at] for at in range(3)}})

    def restore(self, table: pa.Table) -> None:
        """Take over what was judged before, if it was of these pairs."""
        pairs = ((table.column("left"), self.left), (table.column("right"), self.right))
        if not all(np.array_equal(before.to_numpy(), now) for before, now in pairs):
            return
        for name, own in (("judged", self.judged), ("yes", self.yes), ("reason", self.reason)):
            own[:] = table.column(name)
        for at in range(3):
            self.measured[:, at] = table.column(f"measured{at}")
        self._tell(int(np.count_nonzero(self.judged)))


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """Who keeps whom among the texts, and what was found of each candidate pair."""

    keeper: Places
    """For each text the one that stays for it."""
    pair: Places
    """The candidate pair that says so, -1 for a keeper."""
    found: Candidates
    measures: Flags
    """Which pairs were measured: all, or none where nothing is verified."""
    accepted: Flags
    reason: npt.NDArray[np.uint8]
    measured: npt.NDArray[np.uint16]


def _absorb(
    keeper: Places, rank: Places, found: Candidates, same: Representatives, verdicts: Judgements
) -> Candidates:
    """Let keepers in crowded places take what they are near to beyond their nearest candidates.

    Changes *keeper*. A text that goes was measured against its new keeper; one that is not accepted
    there stays, even where the text that kept it goes. Only texts that have a candidate are met: those of
    others were not set aside.
    """
    if not len(found.crowded):
        return found
    own = np.arange(len(keeper), dtype=np.int32)
    leads = np.zeros(len(keeper), dtype=bool)
    leads[keeper[keeper != own]] = True
    hubs = found.crowded[leads[found.crowded]]
    hubs = hubs[np.argsort(rank[hubs])]
    known = found.left << 32 | found.right
    more: list[tuple[Rows, Rows, npt.NDArray[np.int32], Verdicts]] = []
    met_by_join = np.zeros(len(keeper), dtype=bool)
    met_by_join[found.left] = met_by_join[found.right] = True
    prints = Fingerprints(found.prints.words[hubs], bits=found.prints.bits)
    for pairs in join_batches(prints, found.radius, other=found.prints):
        low, high = int(pairs.left[0]), int(pairs.left[-1])
        some = hubs[low : high + 1].tolist()
        ends = np.searchsorted(pairs.left, np.arange(low, high + 2)).tolist()
        for hub, begin, end in zip(some, ends[:-1], ends[1:], strict=True):
            if keeper[hub] != hub:
                continue
            other, distance = pairs.right[begin:end].astype(np.int64), pairs.distance[begin:end]
            wanted = (rank[keeper[other]] > rank[hub]) & ~same.fixed[other] & (other != hub)
            wanted &= met_by_join[other]
            wanted &= same.comparable(np.full(len(other), hub), other)
            other, distance = other[wanted], distance[wanted].astype(np.int32)
            keys = np.minimum(other, hub) << 32 | np.maximum(other, hub)
            rows = np.minimum(np.searchsorted(known, keys), max(len(known) - 1, 0))
            met = known[rows] == keys
            taken = other[met][verdicts.yes[rows[met]]]
            other, distance = other[~met], distance[~met]
            if len(other):
                left, right = np.minimum(other, hub), np.maximum(other, hub)
                judged = verdicts.judge_pairs(left, right)
                more.append((left, right, distance, judged))
                taken = np.concatenate([taken, other[judged.accepted]])
            keeper[taken] = hub
            if leads[taken].any():
                lost = np.isin(keeper, taken) & (keeper != own)
                keeper[lost] = np.flatnonzero(lost)
    if more:
        one, two, apart, judgements = zip(*more, strict=True)
        found = found.with_more(np.concatenate(one), np.concatenate(two), np.concatenate(apart))
        verdicts.learn(found, judgements)
    return found


def _best_keepers(
    keeper: Places, rank: Places, found: Candidates, verdicts: Judgements, *, any_keeper: bool
) -> Judged:
    """Every text that goes joins the most similar of the keepers that it is verified against.

    Unless *any_keeper*, only of those before it in the keep order: what the rule prefers never goes for
    what it does not.
    """
    stays = keeper == np.arange(len(keeper), dtype=np.int32)
    one, other = found.left, found.right
    # Pairs of one that stays and one that goes.
    rows = np.flatnonzero(stays[one] != stays[other])
    if not any_keeper:
        rows = rows[
            np.where(
                stays[one[rows]], rank[one[rows]] < rank[other[rows]], rank[other[rows]] < rank[one[rows]]
            )
        ]
    yes = rows[verdicts.yes[rows]]
    goes = np.where(stays[one[yes]], other[yes], one[yes])
    keeps = np.where(stays[one[yes]], one[yes], other[yes])
    plain, common = (verdicts.measured[yes, column].astype(np.int64) for column in (0, 1))
    best = np.lexsort([rank[keeps], found.distance[yes], -plain, -common, goes])
    first = np.ones(len(best), dtype=bool)
    first[1:] = goes[best][1:] != goes[best][:-1]
    chosen = best[first]
    pair = np.full(len(keeper), -1, dtype=np.int32)
    keeper[goes[chosen]] = keeps[chosen]
    pair[goes[chosen]] = yes[chosen]
    return Judged(keeper, pair, found, verdicts.judged, verdicts.yes, verdicts.reason, verdicts.measured)


class Conclusion:
    """From texts back to documents: who stays, and the rows that say why."""

    def __init__(
        self,
        documents: Documents,
        fixed: Flags,
        scheme: Scheme,
        prints: Fingerprints,
        same: Representatives,
        found: Candidates,
        judged: Judged,
        keep: Keep,
        measure: Measure,
        threads: int | None,
    ) -> None:
        self._documents, self._fixed, self._scheme = documents, fixed, scheme
        self._same, self._found = same, found
        self._measure, self._prints, self._threads = measure, prints, threads
        count = len(documents)
        self.keeper = np.arange(count, dtype=np.int32)
        self.stays = np.ones(count, dtype=bool)
        for begin in range(0, count if len(same.document) else 0, STEP):
            self._settle(np.arange(begin, min(begin + STEP, count)), judged.keeper)
        # Nobody asks for those of texts any more.
        self._judged = replace(judged, keeper=judged.keeper[:0].copy())
        keepers, members = np.unique(self.keeper[~self.stays], return_counts=True)
        self.clusters = len(keepers)
        first = np.argsort(-members, kind="stable")[:WORST]
        self.largest = list(zip(keepers[first].tolist(), (1 + members[first]).tolist(), strict=True)) or [
            (0, 1)
        ]
        """The keepers and sizes of the largest clusters."""
        self.keep = self.stays
        self.cluster = self.keeper
        self._copies = np.zeros((3, 0), dtype=np.int32)
        """Documents that go for a copy of theirs, what that is a duplicate of, and the pair that says so."""
        if keep.none:
            clustered = np.ones(count, dtype=np.int32)
            clustered[keepers] += members.astype(np.int32)
            if same.across and len(same.document):
                # A copy in its own source was not compared with it, but is a duplicate of what that one is.
                text = same.of_document
                texts = np.bincount(judged.keeper, minlength=len(judged.keeper))
                copies = (text >= 0) & self.stays & (texts[judged.keeper[text]] > 1) & ~fixed
                self.cluster = np.where(copies, same.document[text], self.keeper)
                rows = np.flatnonzero(copies & (self.cluster != np.arange(count, dtype=np.int32)))
                goes = np.flatnonzero(judged.keeper != np.arange(len(judged.keeper), dtype=np.int32))[::-1]
                member = np.zeros(len(judged.keeper), dtype=np.int32)
                member[judged.keeper[goes]] = goes
                other = member[text[rows]]
                self._copies = np.array([rows, same.document[other], judged.pair[other]], dtype=np.int32)
            self.keep = self.stays & ((clustered[self.cluster] == 1) | fixed)

    def _settle(self, rows: Rows, keeper: Places) -> None:
        """Say of some documents who keeps them; *keeper* says it of texts."""
        same = self._same
        text = same.of_document[rows]
        kept_text = keeper[text]
        goes = kept_text != text
        if not same.across:
            goes |= same.document[text] != rows
        goes &= (text >= 0) & ~self._fixed[rows]
        self.keeper[rows[goes]] = same.document[kept_text[goes]]
        self.stays[rows[goes]] = False

    def perhaps_forms(self) -> int:
        """How many documents go that may be siblings of one form: a person should look at them."""
        goes = np.flatnonzero(~self.stays)
        pair = self._pair(goes[~self._same.equal(goes, self.keeper[goes])])
        reason = self._judged.reason[pair]
        return (
            0
            if self._found.ways is not None
            else int(np.count_nonzero(reason == REASONS.index(PERHAPS_FORM)))
        )

    def _pair(self, rows: Rows | Places) -> Places:
        """The candidate pairs that say who keeps documents that go."""
        return self._judged.pair[self._same.of_document[rows]]

    def _numbers(self, rows: Rows | Places) -> tuple[Any, ...]:
        """Distance, three similarities (or NaN) and the rule of documents that go, against their keepers."""
        pair, keeper = self._pair(rows), self.keeper[rows]
        copies = self._same.equal(rows, keeper)
        # Texts that differ in case or space alone are one text; in some schemes they have two fingerprints.
        one, other = (self._prints.words[self._same.place(side)] for side in (rows, keeper))
        distance = _COUNTS[(one ^ other).view(np.uint16)].sum(axis=1, dtype=np.int32)
        if self._found.ways is not None:
            # Pictures are near through the view that found them, not as they are.
            distance = np.where(copies, 0, distance)
            distance[~copies] = self._found.distance[pair[~copies]]
        measured = np.ones((len(rows), 3))
        # Of what was not verified nothing is known, which is not the same as 0.
        measured[~copies] = self._judged.measured[pair[~copies]] / WHOLE if self._measure.verifies else np.nan
        rules = self._copied(rows, keeper)
        rules[~copies] = self._rules(self._judged.reason[pair[~copies]])
        return distance, measured, rules

    def _copied(self, one: Rows | Places, other: Rows | Places) -> npt.NDArray[np.uint8]:
        """The places in `_words` of what is said of documents with the same text."""
        return np.where(self._same.spelled_alike(one, other), 0, len(REASONS) + 2).astype(np.uint8)

    def _rules(self, reason: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
        """The places of reasons in `_words`."""
        return reason + np.uint8(2) if self._measure.verifies else np.ones(len(reason), dtype=np.uint8)

    def _words(self) -> pa.StringArray:
        """What the evidence says: of copies, of what was not verified, and of reasons."""
        if self._found.ways is None:
            return pa.array([IDENTICAL, UNVERIFIED, *REASONS, SPELLED], pa.string())
        return pa.array([pictures.IDENTICAL, UNVERIFIED, *pictures.REASONS], pa.string())

    def annotations(self, *, input_order: bool = False) -> Iterator[pa.RecordBatch]:
        """One row per document of the input, in the order of the ids or of the input, some at a time."""
        ids = self._documents.ids
        own = np.flatnonzero(~self._fixed).astype(np.int32) if self._fixed.any() else None
        order = None if input_order else _native.ordered(core_texts(ids), own, [], self._threads)
        count = len(ids) if own is None else len(own)
        for begin in range(0, count, STEP):
            end = min(begin + STEP, count)
            rows = np.arange(begin, end, dtype=np.int32) if order is None else order[begin:end]
            rows = rows if own is None else own[rows]
            goes = ~self.stays[rows]
            distance, measured, _ = self._numbers(rows[goes])
            cluster = ids.take(pa.array(self.cluster[rows])).cast(pa.string())
            columns = {
                "id": ids.take(pa.array(rows)).cast(pa.string()),
                "cluster": cluster,
                "keep": pa.array(self.keep[rows]),
                "duplicate_of": pc.if_else(pa.array(goes), cluster, pa.scalar(None, pa.string())),
                "distance": _spread(goes, distance, pa.int32()),
                "similarity": _spread(goes, measured[:, 0], pa.float64()),
            }
            yield pa.record_batch(columns, schema=ANNOTATIONS)

    def without_information(self) -> Iterator[pa.RecordBatch]:
        """The ids of documents of the input without information, in their order, some at a time."""
        ids = self._documents.ids
        rows = np.flatnonzero((self._same.of_document < 0) & ~self._fixed).astype(np.int32)
        order = rows[_native.ordered(core_texts(ids), rows, [], self._threads)]
        for begin in range(0, len(order), STEP):
            some = ids.take(pa.array(order[begin : begin + STEP])).cast(pa.string())
            yield pa.record_batch([some], schema=WITHOUT_INFORMATION)

    def evidence(self) -> Iterator[pa.RecordBatch]:
        """A row for every pair that was measured, and for every copy, in the order of the ids."""
        _give_back()
        same, found, judged = self._same, self._found, self._judged
        goes = np.flatnonzero(~self.stays).astype(np.int32)
        # Pairs that decided nothing, or said no: the one that stays is named first.
        shown = np.zeros(len(found.left), dtype=bool)
        decided = self._pair(goes)
        shown[decided[decided >= 0]] = True
        pairs = np.flatnonzero(judged.measures & ~shown)
        one, other = same.document[found.left[pairs]], same.document[found.right[pairs]]
        swap = self.stays[other] & ~self.stays[one]
        copies, partners, said = self._copies
        keeper = np.concatenate([self.keeper[goes], np.where(swap, other, one), partners])
        members = np.concatenate([goes, np.where(swap, one, other), copies])
        pairs = np.concatenate([pairs, said])
        order = _by_ids(self._documents.ids, keeper, members, self._threads)
        for begin in range(0, len(order), STEP):
            yield self._rows(order[begin : begin + STEP], goes, pairs, keeper, members)

    def _rows(self, rows: Rows, goes: Places, pairs: Rows, keeper: Places, members: Places) -> pa.RecordBatch:
        """Some of the rows of the evidence, of which the first are those of *goes*, the others of *pairs*."""
        ids, found, judged = self._documents.ids, self._found, self._judged
        gone = rows < len(goes)
        pair = pairs[rows[~gone] - len(goes)]
        distance = np.empty(len(rows), np.int32)
        measured = np.empty((len(rows), 3))
        rules = np.empty(len(rows), np.uint8)
        accepted = np.ones(len(rows), dtype=bool)
        distance[gone], measured[gone], rules[gone] = self._numbers(goes[rows[gone]])
        distance[~gone] = found.distance[pair]
        measured[~gone] = judged.measured[pair] / WHOLE if self._measure.verifies else np.nan
        rules[~gone], accepted[~gone] = self._rules(judged.reason[pair]), judged.accepted[pair]
        one, other = keeper[rows], members[rows]
        alike = ~gone & accepted & self._same.equal(one, other)
        rules[alike], measured[alike] = self._copied(one[alike], other[alike]), 1
        columns = {
            "keeper": ids.take(pa.array(keeper[rows])).cast(pa.string()),
            "id": ids.take(pa.array(members[rows])).cast(pa.string()),
            "distance": pa.array(distance),
            "similarity": pa.array(measured[:, 0], from_pandas=True),
            "common": pa.array(measured[:, 1], from_pandas=True),
            "rare": pa.array(measured[:, 2], from_pandas=True),
            "accepted": pa.array(accepted),
            "rule": self._words().take(pa.array(rules)),
            "scheme": pa.repeat(pa.scalar(self._scheme.digest, pa.string()), len(rows)),
            "radius": pa.array(np.full(len(rows), found.radius, np.int32)),
        }
        return pa.record_batch(columns, schema=EVIDENCE)


def _by_ids(ids: pa.LargeStringArray, one: Places, other: Places, threads: int | None) -> Rows:
    """The order of pairs of documents by the id of *one*, then by that of *other*."""
    rows = _either(len(ids), one, other).astype(np.int32)
    place = np.empty(len(ids), dtype=np.int32)
    order = _native.ordered(core_texts(ids), rows, [], threads)
    place[rows[order]] = np.arange(len(rows), dtype=np.int32)
    return np.argsort(place[one].astype(np.int64) << 32 | place[other])


def _spread(where: Flags, values: npt.NDArray[Any], kind: pa.DataType) -> pa.Array:
    """*values* in the rows where *where* is True, null elsewhere and where a value is NaN."""
    full = np.zeros(len(where), dtype=values.dtype)
    full[where] = values
    return pa.array(full, kind, mask=~where | np.isnan(full))
