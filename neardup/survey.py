"""The first pass over a collection: what is known about every document without its text."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from neardup import _native
from neardup.arrays import core_texts
from neardup.errors import ChangedInput, InvalidValue, LimitReached
from neardup.sources import FORMATS, path_id
from neardup.types import PROTECTED, Batch, label

# Documents are numbered in 32 bits with a sign.
MOST: Final = 2**31 - 1


@dataclass(frozen=True, slots=True, eq=False)
class Documents:
    """The bookkeeping of a run: one row per document, in the order of the input, without the texts."""

    ids: pa.LargeStringArray
    lengths: npt.NDArray[np.uint32]
    """Characters of the text."""
    content: npt.NDArray[np.uint64]
    """128 bits that identify the normalised text within this run; 0 if it has no information."""
    spelling: npt.NDArray[np.uint32]
    """32 bits that tell apart texts whose normalised form is the same, and a text from another one that is
    read in its place."""
    files: list[str]
    runs: list[tuple[int, int]]
    """Which of the files (or folders of files that are a document each) they are in, up to which row."""
    fields: pa.Table
    prints: npt.NDArray[np.uint64] | None = None
    """The words of the fingerprints, where a look gives them: no later reading is needed for these."""

    def __len__(self) -> int:
        return len(self.ids)

    def column(self, name: str) -> list[Any]:
        """The values of a field, as Python values."""
        values: list[Any] = self.fields.column(name).to_pylist()
        return values

    def names(self, rows: npt.NDArray[Any]) -> list[str]:
        """The ids of some documents."""
        found: list[str] = self.ids.take(pa.array(rows)).to_pylist()
        return found

    def file(self) -> npt.NDArray[np.int32]:
        """Which of the files each is in."""
        files, ends = np.array(self.runs, np.int64).reshape(-1, 2).T
        return np.repeat(files.astype(np.int32), np.diff(ends, prepend=0))

    def without(self, *columns: str) -> Documents:
        """The same, without *columns*, which are no longer needed."""
        held = {column: getattr(self, column) for column in columns}
        changes: dict[str, Any] = {
            name: None if value is None else value[:0].copy() for name, value in held.items()
        }
        return replace(self, **changes)

    def table(self) -> pa.Table:
        """Everything as one Arrow table, for a checkpoint; it shares its memory."""
        columns = {
            "id": self.ids,
            "length": pa.array(self.lengths),
            "content": pa.Array.from_buffers(pa.binary(16), len(self), [None, pa.py_buffer(self.content)]),
            "spelling": pa.array(self.spelling),
        }
        if self.prints is not None:
            words = np.ascontiguousarray(self.prints)
            kind = pa.binary(words.shape[1] * 8)
            columns["print"] = pa.Array.from_buffers(kind, len(self), [None, pa.py_buffer(words)])
        table = pa.table(columns)
        for name in self.fields.column_names:
            table = table.append_column("field:" + name, self.fields.column(name))
        return table.replace_schema_metadata({"files": json.dumps([self.files, self.runs])})

    @classmethod
    def of(cls, table: pa.Table) -> Documents:
        """The reverse of `table`."""
        files, runs = json.loads((table.schema.metadata or {})[b"files"])
        names = [name for name in table.column_names if name.startswith("field:")]
        fields = table.select(names).rename_columns([name.removeprefix("field:") for name in names])
        ids, lengths = (_whole(table.column(name)) for name in ("id", "length"))
        return cls(
            ids=ids.cast(pa.large_string()),
            lengths=lengths.to_numpy(),
            content=_words(table.column("content")),
            spelling=_whole(table.column("spelling")).to_numpy(),
            files=files,
            runs=[(file, end) for file, end in runs],
            fields=fields.replace_schema_metadata(None),
            prints=_words(table.column("print")) if "print" in table.column_names else None,
        )


def _words(column: pa.ChunkedArray) -> npt.NDArray[np.uint64]:
    """A column of fixed width as rows of 64-bit words."""
    whole = _whole(column)
    words = np.frombuffer(whole.buffers()[1] if len(whole) else b"", np.uint64)
    return words.reshape(-1, column.type.byte_width // 8)[whole.offset : whole.offset + len(whole)]


def _whole(column: pa.ChunkedArray) -> pa.Array:
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


class _Column:
    """A growing array. It is moved, not copied, where the system can; a tenth is room to grow."""

    def __init__(self, kind: type[np.generic], *shape: int) -> None:
        self._data: npt.NDArray[Any] = np.zeros((0, *shape), kind)
        self._count = 0

    def add(self, values: npt.NDArray[Any]) -> None:
        end = self._count + len(values)
        if end > len(self._data):
            self._resize(end + max(end // 10, 1 << 12))
        self._data[self._count : end] = values
        self._count = end

    def whole(self) -> npt.NDArray[Any]:
        """All values. As long as the caller holds them, they are copied before more are added."""
        if len(self._data) != self._count:
            self._resize(self._count)
        found: npt.NDArray[Any] = self._data.view()
        return found

    def _resize(self, count: int) -> None:
        try:
            self._data.resize((count, *self._data.shape[1:]))
        except ValueError:  # the caller holds it
            data = np.zeros((count, *self._data.shape[1:]), self._data.dtype)
            data[: self._count] = self._data[: self._count]
            self._data = data


class _Names:
    """A growing array of strings."""

    def __init__(self) -> None:
        self._ends, self._bytes = _Column(np.int64), _Column(np.uint8)
        self._size = 0
        self._ends.add(np.zeros(1, np.int64))

    def add(self, names: pa.LargeStringArray) -> None:
        if not len(names):
            return
        _, ends, data = names.cast(pa.large_string()).buffers()
        bounds = np.frombuffer(ends, np.int64)[names.offset : names.offset + len(names) + 1]
        begin, end = int(bounds[0]), int(bounds[-1])
        if data is not None:
            self._bytes.add(np.frombuffer(data, np.uint8)[begin:end])
        self._ends.add(bounds[1:] + (self._size - begin))
        self._size += end - begin

    def whole(self) -> pa.LargeStringArray:
        ends, data = self._ends.whole(), self._bytes.whole()
        buffers = [None, pa.py_buffer(ends), pa.py_buffer(data)]
        return pa.Array.from_buffers(pa.large_string(), len(ends) - 1, buffers)


@dataclass(frozen=True, slots=True, eq=False)
class Looked:
    """What a look at a batch found, a row per document; named as in `Documents`."""

    content: npt.NDArray[np.uint64]
    informative: npt.NDArray[np.bool_]
    lengths: npt.NDArray[Any]
    spelling: npt.NDArray[np.uint32]
    prints: npt.NDArray[np.uint64] | None = None


class Surveyor:
    """Collects `Documents` batch by batch."""

    def __init__(
        self, look: Callable[[Batch], Looked], fields: Sequence[str], begun: Documents | None = None
    ) -> None:
        """*look* is that of the content of the documents."""
        self.look = look
        self._files: dict[str, int] = {}
        self._runs: list[tuple[int, int]] = []
        self._ids, self._lengths, self._content = _Names(), _Column(np.uint32), _Column(np.uint64, 2)
        self._spelling = _Column(np.uint32)
        self._prints: _Column | None = None
        self._fields: dict[str, list[Any]] = {name: [] for name in fields}
        self.count = 0
        if begun is not None:
            self._files = {name: number for number, name in enumerate(begun.files)}
            for name, parts in self._fields.items():
                parts.append(begun.fields.column(name).combine_chunks())
            self._add(begun.ids, begun.lengths, begun.content, begun.spelling, begun.prints)
            self._runs = list(begun.runs)

    def add(self, batch: Batch, found: Looked) -> None:
        """Add the documents of the next batch, and what was *found* in them."""
        found.content[~found.informative] = 0
        for name, parts in self._fields.items():  # text files have none
            parts.append(pa.nulls(len(batch)) if batch.fields is None else batch.fields.column(name))
        self._add(batch.ids, found.lengths, found.content, found.spelling, found.prints)
        file = self._files.setdefault(_origin(batch), len(self._files))
        if self._runs and self._runs[-1][0] == file:
            self._runs.pop()
        self._runs.append((file, self.count))

    def _add(self, ids: pa.LargeStringArray, lengths: Any, content: Any, spelling: Any, prints: Any) -> None:
        self.count += len(ids)
        if self.count > MOST:
            raise LimitReached(f"more than {MOST:,} documents; deduplicate parts of them, then what stays")
        self._ids.add(ids)
        self._lengths.add(lengths)
        self._content.add(content)
        self._spelling.add(spelling)
        if prints is not None:
            self._prints = self._prints or _Column(np.uint64, prints.shape[1])
            self._prints.add(prints)

    def documents(self) -> Documents:
        """All documents so far."""
        return Documents(
            ids=self._ids.whole(),
            lengths=self._lengths.whole(),
            content=self._content.whole(),
            spelling=self._spelling.whole(),
            files=list(self._files),
            runs=list(self._runs),
            fields=pa.table({name: _field(parts) for name, parts in self._fields.items()}),
            prints=None if self._prints is None else self._prints.whole(),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Again:
    """What a source gave when it was first read: each later reading must give the same."""

    ids: pa.LargeStringArray
    spelling: npt.NDArray[np.uint32]
    key: bytes

    def table(self) -> pa.Table:
        """Everything as one Arrow table, for a checkpoint."""
        table = pa.table({"id": self.ids, "spelling": pa.array(self.spelling)})
        return table.replace_schema_metadata({"key": self.key.hex()})

    @classmethod
    def of(cls, table: pa.Table) -> Again:
        """The reverse of `table`."""
        ids, spelling = (_whole(table.column(name)) for name in ("id", "spelling"))
        key = bytes.fromhex((table.schema.metadata or {})[b"key"].decode())
        return cls(ids.cast(pa.large_string()), spelling.to_numpy(), key)

    def check(self, batch: Batch, at: int) -> None:
        """Raise if *batch* does not hold the documents from number *at* on, each with its id and its text."""
        ids = self.ids.slice(at, len(batch))
        same = len(ids) == len(batch) and ids.equals(batch.ids.cast(pa.large_string()))
        if same:
            same = bool((self.spelled(batch) == self.spelling[at : at + len(batch)]).all())
        if not same:
            raise changed(repr(batch.file), f"from its place {batch.places[0]} on it gives other documents")

    def spelled(self, batch: Batch) -> npt.NDArray[np.uint32]:
        """The spellings of a batch, to be compared with those of the first reading."""
        return _native.spellings(core_texts(batch.texts), self.key)

    def find(self, ids: pa.ChunkedArray, spelling: npt.NDArray[np.uint32]) -> npt.NDArray[np.int64]:
        """The numbers of documents, which are found by id and must have the same text."""
        if len(ids) == len(self.ids) and pa.chunked_array([self.ids]).equals(ids):
            numbers = np.arange(len(ids))
        else:
            found = pc.index_in(ids, value_set=self.ids)
            if found.null_count:
                id = ids.filter(found.is_null())[0].as_py()
                raise InvalidValue(
                    f"document {id!r} was not among those that were compared; pass the same data"
                )
            numbers = found.to_numpy().astype(np.int64)
        other = spelling != self.spelling[numbers]
        if other.any():
            id = ids[int(other.argmax())].as_py()
            raise InvalidValue(
                f"document {id!r} does not have the text that was compared; pass the same data"
            )
        return numbers

    def check_end(self, count: int) -> None:
        """Raise if *count*, the number of documents of a whole reading, is not all of them."""
        if count != len(self.ids):
            raise changed("the input", f"it gives {count:,} documents, and first gave {len(self.ids):,}")


def check_apart(documents: Documents, first: int) -> None:
    """Raise if one of the *first* documents has the id, prefix included, of a protected one after them."""
    if first == len(documents):
        return
    shared = pc.is_in(documents.ids[first:], value_set=documents.ids[:first])
    if pc.any(shared).as_py():
        id = documents.ids[first:].filter(shared)[0].as_py()
        raise InvalidValue(
            f"id {id!r} of the input is the name of the protected document {id.removeprefix(PROTECTED)!r}; "
            f"give it one that does not begin with {PROTECTED!r}"
        )


def changed(name: str, how: str) -> ChangedInput:
    """The error for an input that differs from what was first read."""
    return ChangedInput(f"{name} changed while it was read: {how}; run again when nothing writes to it")


def _origin(batch: Batch) -> str:
    """The file, or the folder, that counts as the source of the documents.

    A document that is a whole file and was named by the user belongs to its folder, as if that had been
    walked: a file by itself would lose everything it has.
    """
    if (
        batch.format in FORMATS
        and FORMATS[batch.format].whole
        and batch.ids[0].as_py() == path_id(batch.file)
    ):
        return os.path.dirname(batch.file) or "."
    return batch.file


def _field(parts: list[Any]) -> pa.ChunkedArray:
    """One column of parts whose types may differ from file to file."""
    kinds = {part.type for part in parts}
    if len(kinds) <= 1:
        return pa.chunked_array(parts) if parts else pa.chunked_array([], pa.null())
    texts = [pa.array([label(value) for value in part.to_pylist()], pa.string()) for part in parts]
    return pa.chunked_array(texts, pa.string())
