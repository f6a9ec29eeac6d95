"""Sources: documents from files, folders, pipes and tables, in batches, as often as wanted.

Nothing in an input can stop the reading of it: a record that is no document is reported and
counted, a file that cannot be read is refused and the others go on. Documents and bad records
together are all records. A second reading gives the same batches, or an error if a file changed.
To add a format, write its file and add its line to `FORMATS`.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from glob import glob, has_magic
from importlib import import_module
from itertools import groupby
from typing import Any, Final, Protocol

from neardup.errors import InvalidType, InvalidValue, LimitReached, RefusedInput, UnknownName, shown
from neardup.sources.files import STDIN, File, Found, Seen, met, walk
from neardup.sources.limits import DEFAULT, Limits
from neardup.sources.names import id_path, path_id
from neardup.sources.streams import SUFFIXES, Broken, compression
from neardup.types import Bad, Batch

__all__ = [
    "FORMATS",
    "Limits",
    "Source",
    "Tolerance",
    "are_texts",
    "id_path",
    "keep_apart",
    "mostly_pictures",
    "open_source",
    "path_id",
]


@dataclass(frozen=True, slots=True)
class Format:
    """A kind of input: the endings of its names, its first bytes, and the module that reads it."""

    name: str
    suffixes: tuple[str, ...]
    module: str
    magic: bytes = b""


FORMATS: Final = {
    row.name: row
    for row in (
        Format("jsonl", (".jsonl", ".ndjson", ".json"), "jsonl"),
        Format("csv", (".csv", ".tsv", ".tab"), "delimited"),
        Format("parquet", (".parquet", ".pq"), "parquet", b"PAR1"),
        Format("arrow", (".arrow", ".arrows", ".feather", ".ipc"), "arrow", b"ARROW1"),
        Format("warc", (".warc",), "warc", b"WARC/"),
        Format("text", (), "text"),
        Format("image", (), "images"),  # by asking only: among texts pictures are passed by
    )
}

# What is passed by: first bytes, or endings of names, of files that hold no text.
_FOREIGN: Final = {
    b"\x7fELF": "a program",
    b"MZ": "a program",
    b"%PDF-": "a PDF",
    b"PK\x03\x04": "a zip archive",
    b"7z\xbc\xaf\x27\x1c": "a 7z archive",
    b"Rar!": "a rar archive",
    b"SQLite format 3\x00": "a database",
    b"\xff\xd8\xff": "a picture",
    b"\x89PNG": "a picture",
    b"GIF8": "a picture",
    b"II*\x00": "a picture",
    b"MM\x00*": "a picture",
}
_MAGIC: Final = (b"\xff\xd8\xff", b"\x89PNG", b"GIF8", b"II*\x00", b"MM\x00*", b"BM")
_PICTURES: Final = (
    ".jpg",
    ".jpeg",
    ".png",
    ".gif",
    ".bmp",
    ".webp",
    ".tif",
    ".tiff",
    ".avif",
    ".heic",
    ".heif",
    ".svg",
)


_TEXT_FILES: Final = (".txt", ".md", ".html", ".htm")
# How the names of files end that are read here.
_KNOWN: Final = (*(one for row in FORMATS.values() for one in row.suffixes), *_PICTURES, *_TEXT_FILES)
_ENDINGS: Final = re.compile(f"({'|'.join(map(re.escape, _KNOWN))})" r"(\.\w+)?$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file that was passed by, and why."""

    file: str
    reason: str


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How many bad records a run bears: a number, or a share of all records.

    >>> Tolerance.of("5%"), Tolerance.of("12")
    (Tolerance(count=None, share=0.05), Tolerance(count=12, share=None))
    """

    count: int | None = None
    share: float | None = None

    @classmethod
    def of(cls, text: str) -> Tolerance:
        """From `N` or `P%`."""
        try:
            if text.endswith("%"):
                share = float(text[:-1]) / 100
                if 0 <= share <= 1:
                    return cls(share=share)
            elif (count := int(text)) >= 0:
                return cls(count=count)
        except ValueError:
            pass
        raise InvalidValue(f"{text!r} is not a number of bad records or a share such as 5%")

    def check(self, bad: int, records: int | None, last: Bad | None = None) -> None:
        """Raise if *bad* is too many; a share is looked at only when the number of *records* is known."""
        if self.count is not None and bad > self.count:
            one = "" if last is None else f"{shown(last.file)}, line {last.line}, {last.reason}: "
            raise LimitReached(
                f"{one}more than {self.count} records are bad; see the quarantine file, or allow more"
            )
        if self.share is not None and records and bad > self.share * records:
            raise LimitReached(
                f"{bad} of {records} records are bad, more than {self.share:.4g} of all; "
                "see the quarantine file, or allow more"
            )


ANY: Final = Tolerance()


class Expected(Protocol):
    """What a source gave when it was first read."""

    def check(self, batch: Batch, at: int) -> None:
        """Raise if *batch* does not hold the documents from number *at* on."""

    def check_end(self, count: int) -> None:
        """Raise if a whole reading gave another number of documents."""


class Source:
    """Documents in batches. Iterate over it as often as wanted.

    After one whole reading `documents` and `bad` count all records, `refused` lists the files that
    could not be read, `skipped` what was passed by, and `digests` the SHA-256 of every file.
    """

    def __init__(
        self,
        inputs: list[Any],
        request: Any,
        *,
        format: str | None = None,
        on_bad: Callable[[Bad], None] | None = None,
        unique: bool = False,
        tolerance: Tolerance = ANY,
        prefix: str = "",
    ) -> None:
        self.inputs = inputs
        self.request = request
        self.prefix = prefix
        self.documents = 0
        self.bad = 0
        self.refused: list[Bad] = []
        self.skipped: list[Skipped] = []
        self._format = format
        self._on_bad = on_bad
        self._unique = unique
        self._tolerance = tolerance
        self._restored: dict[str, str] = {}
        self._told = 0  # bad records reported so far; a second reading repeats none
        self._repeats: dict[str, set[int]] | None = None  # where ids stand again, after a whole reading
        self._read = False  # whether this process has read all of it
        self.expected: Expected | None = None
        """What every reading must give, once that is known."""

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
        return self._restored or {one.name: one.digest for one in self.inputs if getattr(one, "digest", None)}

    def file(self, name: str) -> Any:
        """The input with this name, as it stands in `Batch.file`."""
        return next(one for one in self.inputs if getattr(one, "name", None) == name)

    @property
    def consumed(self) -> int:
        """The bytes of files that were read so far, for a progress bar."""
        return sum(one.consumed for one in self.inputs if isinstance(one, File))

    @property
    def size(self) -> int:
        """The bytes of all files as they are stored, for a progress bar; 0 where unknown."""
        return sum(one.size for one in self.inputs if isinstance(one, File))

    def __iter__(self) -> Iterator[Batch]:
        return self.batches()

    def batches(self, *, raw: bool = False) -> Iterator[Batch]:
        """All documents in input order; with *raw* also the records that they were made of."""
        reading = _Reading(self, replace(self.request, raw=raw))
        expected = self.expected
        for batch in reading.batches():
            if self._unique:
                batch = reading.distinct(batch)
            if self.prefix:
                batch = replace(batch, ids=_prefixed(batch.ids, self.prefix))
            if expected is not None and len(batch):
                expected.check(batch, reading.documents)
            reading.documents += len(batch)
            if len(batch):
                yield replace(batch, records=None)  # they hold the bytes of the input
        if expected is not None:
            expected.check_end(reading.documents)
        self.documents, self.bad, self._repeats = reading.documents, reading.bad, reading.repeats
        self._read = True
        self._tolerance.check(self.bad, self.records)


class _Reading:
    """One pass over a source."""

    def __init__(self, source: Source, request: Any) -> None:
        self._source, self._request = source, request
        self._reports = self._refused = self._skipped = 0
        self._names: dict[str, int] = {}
        self._uniques: Any = None
        # An earlier reading found out which ids stand again, and told: no table of ids is needed.
        self._known = source._repeats if source._read or not source._repeats else None
        self.repeats: dict[str, set[int]] = {}
        self.documents = self.bad = 0

    def batches(self) -> Iterator[Batch]:
        for name, files in groupby(self._files(), key=lambda pair: pair[0]):
            if name in ("text", "image"):
                reader = import_module(f"neardup.sources.{FORMATS[name].module}")
                yield from reader.read_all((file for _, file in files), self._request, self.take)
                continue
            for _, file in files:
                yield from self._guarded(name, file)

    def distinct(self, batch: Batch) -> Batch:
        """*batch* without the documents whose id was met before."""
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
                reason = f"its id {name!r} stands already in {where(row)}"
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
            pictures=None if batch.pictures is None else batch.pictures[kept],
        )

    def _first_places(self, batch: Batch) -> tuple[Any, Callable[[int], str]]:
        """Which documents are the first with their id; and where the first one of another stands."""
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
            return f"{names[place >> 40]!r} line {place & ((1 << 40) - 1)}"

        return kept, where

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
                name, reason = format_of(one, self._source._format)
            except Broken as error:
                self._fail(one, error)
                continue
            if name is not None:
                yield name, one
            elif one.walked or reason != "is a picture":
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


def keep_apart(source: Source, protected: Source) -> None:
    """Take out of *source* the files that *protected* holds, too: a document is no duplicate of itself.

    A file that a walk found, under whatever name, is passed by; one that was named for both is an error.
    """
    both: Seen = {}
    for one in protected.inputs:
        if isinstance(one, File) and (inode := _inode(one)) is not None:
            both[inode] = one.name
    for at, one in enumerate(source.inputs):
        if isinstance(one, File) and _inode(one) in both:
            if not one.walked:
                raise InvalidValue(f"{one.name!r} is in the input and protected; leave it out of one of them")
            source.inputs[at] = Found(one.path, skipped="is protected")


def _inode(file: File) -> tuple[int, int] | None:
    if file.is_remote or file.is_stream:
        return None
    try:
        status = os.stat(file.path)
    except (OSError, ValueError):
        return None
    return status.st_dev, status.st_ino


def is_picture(file: File, head: bytes = b"") -> bool:
    """Whether its name, or its first bytes, say that it is a picture."""
    magic = head.startswith(_MAGIC) or head[8:12] == b"WEBP" or head[4:12] in (b"ftypavif", b"ftypheic")
    return magic or (file.suffix in _PICTURES and file.suffix != ".svg")


def is_file_name(text: str) -> bool:
    """Whether *text*, if no such file is there, is more likely the name of one than a text.

    >>> [is_file_name(text) for text in ("nosuch.jpg", "my photo.jpg", "a/b.txt", "a text", "End. Of it.")]
    [True, True, True, False, False]
    """
    if len(text) > 1000 or "\n" in text:
        return False
    suffix = File(text).suffix
    if suffix in _PICTURES:
        return True
    known = {*SUFFIXES, *_TEXT_FILES, *(ending for row in FORMATS.values() for ending in row.suffixes)}
    return len(text.split()) == 1 and (suffix in known or os.path.splitext(text)[1] in known)


def mostly_pictures(data: Any) -> bool:
    """Whether *data* names files and folders, and more than half of the files are pictures by name.

    >>> mostly_pictures([{"id": "a", "text": "no file"}])
    False
    """
    if not _are_paths(data):
        return False
    files = [one for one in _inputs(data, again=False) if isinstance(one, File)]
    return 2 * sum(map(is_picture, files)) > len(files)


def format_of(file: File, asked: str | None = None) -> tuple[str | None, str]:
    """The name of the format of *file*; None and the reason if it is none that holds text."""
    if asked is not None and asked != "image":
        return asked, ""
    head = file.head()
    if asked == "image":
        if file.suffix == ".svg":
            return None, "is a drawing"
        return ("image", "") if is_picture(file, head) else (None, "is no picture")
    packed = compression(head) is not None
    if not packed:
        for row in FORMATS.values():
            if row.magic and head.startswith(row.magic):
                return row.name, ""
        for magic, what in _FOREIGN.items():
            if head.startswith(magic):
                return None, f"is {what}"
    if file.suffix in _PICTURES:
        return None, "is a drawing" if file.suffix == ".svg" else "is a picture"
    for row in FORMATS.values():
        if file.suffix in row.suffixes:
            if file.suffix == ".json" and head.lstrip()[:1] == b"[":
                raise Broken("is a JSON array; one object a line is wanted: jq -c '.[]'")
            return row.name, ""
    if file.path == STDIN or file.is_stream or (file.is_remote and not file.suffix):
        return "jsonl", ""
    return "text", ""


def open_source(
    data: Any,
    *,
    text_field: str = "text",
    id_field: str | None = None,
    fields: Iterable[str] = (),
    html: bool = False,
    format: str | None = None,
    limits: Limits = DEFAULT,
    again: bool = True,
    on_bad: Callable[[Bad], None] | None = None,
    unique: bool = False,
    tolerance: Tolerance = ANY,
    prefix: str = "",
) -> Source:
    """The documents of *data*: a path, several, `-`, a table, or an iterable of documents.

    Without *id_field* the field `id` is used where there is one, else `file:line`. *again* keeps what
    can be read only once (a pipe), for a second reading. *unique* makes a document whose id was met
    before a bad record. *on_bad* is given every bad record and every refused file. *prefix* is put before
    every id.
    """
    from neardup.sources.reading import Request

    for name, value in (("text_field", text_field), ("id_field", id_field)):
        if not isinstance(value, str) and (value is not None or name == "text_field"):
            raise InvalidType(f"{name} must be the name of a field, not {shown(value)}")
    if format is not None and format not in FORMATS:
        raise UnknownName(f"unknown format {format!r}; known: {', '.join(FORMATS)}")
    request = Request(
        text_field=text_field, id_field=id_field, fields=tuple(fields), html=html, limits=limits
    )
    return Source(
        _inputs(data, again),
        request,
        format=format,
        on_bad=on_bad,
        unique=unique,
        tolerance=tolerance,
        prefix=prefix,
    )


def _inputs(data: Any, again: bool) -> list[Any]:
    if not _are_paths(data):
        from neardup.sources.memory import Held

        return [data if isinstance(data, Held) else Held(data)]
    seen: Seen = {}
    inputs: list[Any] = []
    for path in dict.fromkeys(os.fspath(one) for one in ([data] if _is_path(data) else data)):
        for name in _matching(os.fsdecode(path)):
            inputs += _named(name, seen, again)
    return inputs


def _is_path(data: Any) -> bool:
    return isinstance(data, str | os.PathLike)


def _are_paths(data: Any) -> bool:
    return _is_path(data) or (isinstance(data, list | tuple) and all(map(_is_path, data)))


def are_texts(data: Any) -> bool:
    """Whether a list of strings holds texts and no paths: one of them names no file, and reads as a text.

    >>> are_texts(["one text", "another"]), are_texts(["one.jsonl", "two"])
    (True, False)
    """
    if not isinstance(data, list | tuple) or not all(isinstance(one, str) for one in data):
        return False
    return not data or any(_reads_as_text(one) for one in data)


# A name without spaces: with a folder in it, or of plain letters.
_NAME: Final = re.compile(r"[^\s]*[/\\][^\s]*|[\w.~-]+", re.ASCII)


def _reads_as_text(text: str) -> bool:
    if text == STDIN:
        return False
    if not text or len(text) > 4096 or "\n" in text:
        return True
    if _NAME.fullmatch(text) or _ENDINGS.search(text):
        return False
    try:
        return not os.path.lexists(text)
    except ValueError:
        return True


def _matching(path: str) -> list[str]:
    """*path*, or what matches it as a shell does it, if it is a pattern and no such file is there."""
    if not has_magic(path) or "://" in path or os.path.lexists(path):
        return [path]
    if not (found := sorted(glob(path, recursive=True))):
        raise RefusedInput(f"no file matches {shown(path, 300)}")
    return found


def _named(path: str, seen: Seen, again: bool) -> Iterator[Any]:
    """The inputs that *path*, named by the user, stands for."""
    file = File(path, again=again)
    if path == STDIN or file.is_remote:
        yield file
        return
    try:
        status = os.stat(path)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        known = any(file.suffix in row.suffixes for row in FORMATS.values())
        way_out = "; give texts as iter(texts)" if len(path.split()) > 1 and not known else ""
        raise RefusedInput(f"{shown(path, 300)} cannot be read: {reason}{way_out}") from None
    if not stat.S_ISDIR(status.st_mode):
        reason = met(path, status, seen) if stat.S_ISREG(status.st_mode) else None
        yield file if reason is None else Found(path, skipped=reason)
        return
    for found in walk(path, seen):
        yield File(found.path, root=path) if found == Found(found.path) else found


def _prefixed(ids: Any, prefix: str) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.binary_join_element_wise(pa.scalar(prefix, ids.type), ids, pa.scalar("", ids.type))


def _records(batch: Batch, rows: list[int]) -> Iterable[tuple[int | None, bytes]]:
    """The offsets and bytes of the records of *rows*; of what is no line id and text as JSON."""
    import orjson

    if batch.records is not None:
        return batch.records(rows)
    found = zip(batch.ids.take(rows).to_pylist(), batch.texts.take(rows).to_pylist(), strict=True)
    return ((None, orjson.dumps({"id": name, "text": text})) for name, text in found)
