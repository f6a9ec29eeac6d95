"""A source: the documents of some inputs, in batches, as often as wanted.

Nothing in an input can stop the reading of it: a record that is not a document is reported and
counted, a file that cannot be read is refused, and the others are read. Documents and bad records
together are all records. A second reading gives the same batches, or an error if a file changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from importlib import import_module
from itertools import groupby
from typing import Any, NamedTuple, Protocol

from neardup.errors import InvalidValue, Said, shown
from neardup.observers import SILENT, check
from neardup.sources.files import File, Found, Input
from neardup.sources.formats import FORMATS, format_of
from neardup.sources.options import Request
from neardup.sources.streams import Broken
from neardup.sources.text_fields import NAME
from neardup.types import Bad, Batch, Lacking


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file that was skipped, and why."""

    file: str
    reason: str


class Located(NamedTuple):
    """A document and where it is: in which batch and row."""

    id: str
    batch: Batch
    row: int

    @property
    def text(self) -> str:
        """Its text, or what is there instead."""
        found: str = self.batch.texts[self.row].as_py()
        return found


def values_of(ids: Iterable[str]) -> Any:
    """*ids* as `among` wants them."""
    import pyarrow as pa

    return pa.array(sorted(ids), pa.large_string())


def among(batch: Batch, ids: Any) -> Iterator[Located]:
    """The documents of a batch that have one of the *ids* (of `values_of`)."""
    import pyarrow.compute as pc

    rows = pc.indices_nonzero(pc.is_in(batch.ids, value_set=ids)).to_pylist()
    for row in rows:
        yield Located(batch.ids[row].as_py(), batch, row)


class Expected(Protocol):
    """What a source gave when it was first read."""

    def check(self, batch: Batch, at: int) -> None:
        """Raise if *batch* does not hold the documents from number *at* on."""

    def check_end(self, count: int) -> None:
        """Raise if a whole reading gave another number of documents."""


class Source:
    """Documents in batches. Iterate over it as often as wanted.

    After one whole reading `documents` and `bad` count all records, `refused` lists the files that
    could not be read, `skipped` what was skipped, and `digests` the SHA-256 of every file.
    """

    def __init__(
        self,
        inputs: list[Input],
        request: Request,
        *,
        on_bad: Callable[[Bad], None] | None = None,
        unique: bool = False,
        prefix: str = "",
    ) -> None:
        self.inputs = inputs
        self.request = request
        self.prefix = prefix
        self.documents = 0
        self.bad = 0
        self.refused: list[Bad] = []
        self.skipped: list[Skipped] = []
        self._on_bad = on_bad
        self._unique = unique
        self._tolerance = request.tolerance
        self._restored: dict[str, str] = {}
        self._told = 0  # bad records reported so far; a second reading repeats none
        self._repeats: dict[str, set[int]] | None = None  # where ids occur again, after a whole reading
        self._read = False  # whether this process has read all of it
        self.expected: Expected | None = None
        """What every reading must give, once that is known."""
        self.observer = SILENT
        """The observer that is asked between batches whether to continue."""

    @property
    def records(self) -> int:
        """All records: documents and bad ones."""
        return self.documents + self.bad

    def counts(self) -> dict[str, Any]:
        """What one whole reading counted, so that a later process need not read again to know it."""
        return {
            "documents": self.documents,
            "bad": self.bad,
            "digests": self.digests,
            "refused": [asdict(replace(bad, raw=b"")) | {"raw": ""} for bad in self.refused],
            "skipped": [asdict(one) for one in self.skipped],
            "repeats": {name: sorted(places) for name, places in (self._repeats or {}).items()},
            "files": {one.name: (one.modified, one.reduced) for one in self.inputs if isinstance(one, File)},
        }

    def restore(self, counts: dict[str, Any]) -> None:
        """Take over what another process counted."""
        self.documents, self.bad = counts["documents"], counts["bad"]
        self.refused = [Bad(**{**bad, "raw": b""}) for bad in counts["refused"]]
        self.skipped = [Skipped(**one) for one in counts["skipped"]]
        self._restored = counts["digests"]
        for one in self.inputs:
            if isinstance(one, File):
                one.recall(*counts["files"].get(one.name, (None, None)))
        self._repeats = {name: set(places) for name, places in counts["repeats"].items()}
        self._tolerance.check(self.bad, self.records)

    @property
    def digests(self) -> dict[str, str]:
        """The SHA-256 of the raw bytes of every file that was read to its end."""
        return self._restored or {one.name: one.digest for one in self.inputs if one.digest is not None}

    def file(self, name: str) -> File:
        """The file with this name, as `Batch.file` has it."""
        return next(one for one in self.inputs if isinstance(one, File) and one.name == name)

    @property
    def consumed(self) -> int:
        """The bytes of files that were read so far, for a progress bar."""
        return sum(one.consumed for one in self.inputs)

    @property
    def size(self) -> int:
        """The bytes of all files as they are stored, for a progress bar; 0 where unknown."""
        return sum(one.size for one in self.inputs)

    def __iter__(self) -> Iterator[Batch]:
        return self.batches()

    def rows(self) -> Iterator[tuple[int, Batch]]:
        """All documents in input order, each batch with the number of its first document."""
        first = 0
        for batch in self:
            yield first, batch
            first += len(batch)

    def find(self, ids: Iterable[str]) -> Iterator[Located]:
        """The documents with those *ids*, in input order; the reading ends with the last of them."""
        wanted = set(ids)
        missing, values = len(wanted), values_of(wanted)
        for batch in self if wanted else ():
            for located in among(batch, values):
                missing -= 1
                yield located
            if not missing:
                return

    def batches(self, *, raw: bool = False) -> Iterator[Batch]:
        """All documents in input order; with *raw* also the records that they were made of."""
        reading = _Pass(self, replace(self.request, raw=raw))
        expected = self.expected
        for batch in reading.batches():
            check(self.observer)
            reading.note_lacking(batch)
            if self._unique:
                batch = reading.distinct(batch)
            if self.prefix:
                batch = replace(batch, ids=_prefixed(batch.ids, self.prefix))
            if expected is not None and len(batch):
                expected.check(batch, reading.documents)
            reading.documents += len(batch)
            if len(batch):
                yield replace(batch, records=None, lacking=None)  # they hold the bytes of the input
        if expected is not None:
            expected.check_end(reading.documents)
        reading.check_fields()
        self.documents, self.bad, self._repeats = reading.documents, reading.bad, reading.repeats
        self._read = True
        self._tolerance.check(self.bad, self.records)


class _Pass:
    """One pass over a source."""

    def __init__(self, source: Source, request: Request) -> None:
        self._source, self._request = source, request
        self._reports = self._refused = self._skipped = 0
        self._names: dict[str, int] = {}
        self._uniques: Any = None
        # An earlier reading found which ids occur again and reported them: no table of ids is needed.
        self._known = source._repeats if source._read or not source._repeats else None
        self._lacking: Lacking | None = None
        self.repeats: dict[str, set[int]] = {}
        self.documents = self.bad = 0

    def batches(self) -> Iterator[Batch]:
        for name, files in groupby(self._files(), key=lambda pair: pair[0]):
            if name in FORMATS and FORMATS[name].whole:
                reader = import_module(f"neardup.sources.{FORMATS[name].module}")
                yield from reader.read_all((file for _, file in files), self._request, self.take)
                continue
            for _, file in files:
                yield from self._guarded(name, file)

    def distinct(self, batch: Batch) -> Batch:
        """*batch* without the documents whose id was seen before."""
        import numpy as np
        import pyarrow as pa

        kept, where = self._first_places(batch)
        if kept.all():
            return batch
        rows = np.flatnonzero(~kept).tolist()
        places = batch.places[~kept].tolist()
        self.repeats.setdefault(batch.file, set()).update(places)
        if self._reports + len(rows) <= self._source._told:
            self.bad += len(rows)
            self._reports += len(rows)
            self._source._tolerance.check(self.bad, None)
        else:
            ids = batch.ids.filter(pa.array(~kept)).to_pylist()
            found = zip(rows, places, ids, _records(batch, rows), strict=True)
            for row, place, name, (offset, record) in found:
                reason = f"duplicate id {name!r}; first seen in {where(row)}"
                self.take(Bad(batch.file, place, offset, reason, record))
        mask = pa.array(kept)
        raw = batch.raw
        if isinstance(raw, list):
            raw = [line for line, keep in zip(raw, kept.tolist(), strict=True) if keep]
        elif raw is not None:
            raw = raw.filter(mask)
        return replace(
            batch,
            ids=batch.ids.filter(mask),
            texts=batch.texts.filter(mask),
            places=batch.places[kept],
            fields=batch.fields.filter(mask) if batch.fields is not None else None,
            raw=raw,
            images=None if batch.images is None else batch.images[kept],
        )

    def _first_places(self, batch: Batch) -> tuple[Any, Callable[[int], str]]:
        """Which documents are the first with their id; for the others, where the first one is."""
        import numpy as np

        if self._known is not None:
            again = self._known.get(batch.file)
            kept = np.ones(len(batch), dtype=bool)
            if again:
                kept = np.fromiter((place not in again for place in batch.places.tolist()), bool, len(batch))
            return kept, lambda row: "an earlier place"
        if self._uniques is None:
            from neardup import _native

            self._uniques = _native.Uniques()
        number = self._names.setdefault(batch.file, len(self._names))
        places = batch.places + (number << 40)
        first = self._uniques.add(batch.ids.to_pylist(), places)
        kept = first == places
        names = [] if kept.all() else list(self._names)

        def where(row: int) -> str:
            place = int(first[row])
            return f"{names[place >> 40]!r}, line {place & ((1 << 40) - 1)}"

        return kept, where

    def note_lacking(self, batch: Batch) -> None:
        """Remember which text fields no document had so far."""
        if len(batch) and (self._lacking is None or self._lacking.names):
            names = frozenset() if batch.lacking is None else batch.lacking.names
            there = () if batch.lacking is None else batch.lacking.there
            before = self._lacking
            self._lacking = (
                Lacking(names, there) if before is None else before._replace(names=before.names & names)
            )

    def check_fields(self) -> None:
        """Raise if there is a text field that no document has: its name is misspelt."""
        if self._lacking is not None and self._lacking.names:
            name = next(name for name in self._request.text_names if name in self._lacking.names)
            there = ", ".join(shown(one) for one in self._lacking.there[:20])
            raise InvalidValue(
                Said("no document has the field ", repr(name), " of ", NAME, f"; the first one has: {there}")
            )

    def take(self, bad: Bad) -> None:
        """Count a bad record; report it if no earlier reading did."""
        self.bad += 1
        self._report(lambda: self._source._on_bad and self._source._on_bad(bad))
        self._source._tolerance.check(self.bad, None, bad)

    def _refuse(self, bad: Bad) -> None:
        # The lists may be those of another process, which read the same.
        self._refused += 1
        if self._refused > len(self._source.refused):
            self._source.refused.append(bad)
        self._report(lambda: self._source._on_bad and self._source._on_bad(bad))

    def _skip(self, file: str, reason: str) -> None:
        self._skipped += 1
        if self._skipped > len(self._source.skipped):
            self._source.skipped.append(Skipped(file, reason))

    def _report(self, tell: Callable[[], Any]) -> None:
        self._reports += 1
        if self._reports > self._source._told:
            self._source._told = self._reports
            tell()

    def _files(self) -> Iterator[tuple[str, Any]]:
        """The inputs to read, each with the name of its format."""
        names = self._request.text_names
        several = ", ".join(dict.fromkeys(names)) if len(names) > 1 else ""
        for one in self._source.inputs:
            if isinstance(one, Found):
                if one.skipped is not None:
                    self._skip(one.path, one.skipped)
                elif one.fault is not None:
                    self.take(Bad(one.path, None, None, one.fault))
                continue
            if not isinstance(one, File):
                yield "memory", one
                continue
            try:
                name, reason = format_of(one, self._request.format)
            except Broken as error:
                self._fail(one, error)
                continue
            if name is not None and several and not FORMATS[name].fields:
                kind = "an image" if name == "image" else name
                self._fail(one, Broken(f"is {kind}, which has no fields to make a text of: {several}"))
            elif name is not None:
                yield name, one
            elif one.walked or reason != "is an image":
                self._skip(one.name, reason)
            else:
                self._refuse(Bad(one.name, None, None, f"{reason}; text is wanted"))

    def _guarded(self, name: str, file: Any) -> Iterator[Batch]:
        """The documents of one file; if it breaks, the rest of it is one bad record."""
        started = False
        bad_before = self.bad
        try:
            if name == "memory":
                found = file.read(self._request, self.take)
            else:
                found = import_module(f"neardup.sources.{FORMATS[name].module}").read(
                    file, self._request, self.take
                )
            for batch in found:
                started = True
                yield replace(batch, format=name)
        except Broken as error:
            if started or self.bad > bad_before:
                reason = f"the rest of the file is lost: {error.reason}"
                self.take(Bad(file.name, error.line, error.offset, reason, error.raw))
            else:
                self._refuse(Bad(file.name, None, None, error.reason, error.raw))

    def _fail(self, file: File, error: Broken) -> None:
        if file.walked:
            self.take(Bad(file.name, None, None, error.reason))
        else:
            self._refuse(Bad(file.name, None, None, error.reason))


def _prefixed(ids: Any, prefix: str) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.binary_join_element_wise(pa.scalar(prefix, ids.type), ids, pa.scalar("", ids.type))


def _records(batch: Batch, rows: list[int]) -> Iterable[tuple[int | None, bytes]]:
    """The offsets and bytes of the records of *rows*; if a record is not a line, its id and text as JSON."""
    import orjson

    if batch.records is not None:
        return batch.records(rows)
    found = zip(batch.ids.take(rows).to_pylist(), batch.texts.take(rows).to_pylist(), strict=True)
    return ((None, orjson.dumps({"id": name, "text": text})) for name, text in found)
