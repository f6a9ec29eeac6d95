"""Documents that a Python program holds: tables of any Arrow library, data sets, iterables.

A document without an id gets the number of its row, from 0. Only lists, tables and columns are read
again; an iterable, a stream or a query is read once and set aside, because it may give something else the
next time. What stays is returned as it came: the same kind of object, rows and columns.
"""

from __future__ import annotations

import mmap
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import groupby, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup.arrays import checked_batch, checked_column
from neardup.errors import InvalidType, InvalidValue, shown
from neardup.sources.columns import Table, slices
from neardup.sources.options import DEFAULT_ID, Request
from neardup.sources.reading import Report, Unfit, batch_of, checked_text, fields_of, lacking
from neardup.sources.streams import Broken
from neardup.types import Bad, Batch, Document

ROWS = 4096


class Held:
    """Documents in memory, readable as often as wanted."""

    name = "<memory>"
    path = root = digest = modified = reduced = None
    suffix = ""
    walked = False
    size = consumed = 0

    def __init__(self, data: Any) -> None:
        if isinstance(data, Mapping):
            raise InvalidType(
                f"documents must be a path, a table or an iterable, not {type(data).__name__} with the keys "
                f"{shown(list(data)[:3])}; pass one of its values, [document], or pyarrow.table(columns)"
            )
        if isinstance(data, bytes | bytearray | memoryview):
            raise InvalidType(f"documents must be a path, a table or an iterable, not {type(data).__name__}")
        # What its owner does with a frame afterwards, such as reordering its rows, does not show here.
        self._given = data.copy(deep=False) if _is_frame(data) else data
        self._table = None if _is_frame(data) else _table(data)
        if self._table is not None or _is_frame(data):
            return
        if not isinstance(data, Iterable):
            way_out = "; call collect() first" if hasattr(data, "collect") else ""
            raise InvalidType(
                f"documents must be a path, a table or an iterable, not {type(data).__name__}{way_out}"
            )
        if isinstance(data, pa.Array | pa.ChunkedArray):
            self._given = checked_column(data)
        elif not isinstance(data, list | tuple) and not _is_column(data):
            self._given = list(data)

    def now(self) -> Held:
        """The same documents as they are now; documents that were set aside do not change."""
        return self if isinstance(self._table, pa.Table) else Held(self._given)

    def __len__(self) -> int:
        """How many records there are, good and bad."""
        if isinstance(self._table, pa.Table):
            return int(self._table.num_rows)
        return len(self._given)

    def take(self, rows: npt.NDArray[np.int64]) -> Any:
        """The records with those numbers, in the type they came in; for an iterable a list."""
        data = self._given
        if isinstance(data, list | tuple):
            found = [data[row] for row in rows.tolist()]
            return tuple(found) if isinstance(data, tuple) else found
        if _is_data_set(data):
            return data.select(rows)
        if hasattr(data, "iloc"):
            return data.iloc[rows]
        if isinstance(data, np.ndarray) or _is_of(data, "polars", "DataFrame", "Series"):
            return data[rows]
        table: Any = data if isinstance(data, pa.RecordBatch | pa.Array | pa.ChunkedArray) else self._table
        wanted = np.zeros(len(self), dtype=bool)
        wanted[rows] = True
        table = table.filter(pa.array(wanted))
        return _as_data_set(data, table) if _is_streamed_set(data) else table

    def with_columns(self, columns: pa.Table, text_field: str) -> Any:
        """All records with *columns* added, one row per record; a mere text gets the name *text_field*."""
        data, names = self._given, self._names(text_field)
        for name in columns.column_names:
            if name in names:
                raise InvalidValue(
                    f"the data has a column {name!r} of its own; choose another name with prefix="
                )
        if isinstance(data, list | tuple):
            rows = columns.to_pylist()
            return [{**_named(item, text_field), **row} for item, row in zip(data, rows, strict=True)]
        if _is_frame(data) or _is_of(data, "pandas", "Series"):
            frame = (
                data.to_frame(text_field if data.name is None else data.name) if _is_column(data) else data
            )
            added = columns.to_pandas(types_mapper=_nullable(columns)).set_axis(frame.index)
            frame = frame.copy(deep=False)
            for name in columns.column_names:
                frame[name] = added[name]
            return frame
        if _is_of(data, "polars", "DataFrame", "Series"):
            frame = data.alias(data.name or text_field).to_frame() if _is_column(data) else data
            return frame.with_columns(sys.modules["polars"].from_arrow(columns).get_columns())
        if _is_data_set(data):
            return _as_data_set(data, _with(data.with_format("arrow")[:], columns))
        table = self._table
        if isinstance(data, pa.Array | pa.ChunkedArray | np.ndarray):
            table = pa.table({text_field: data})
        table = _with(table, columns)
        if isinstance(data, pa.RecordBatch):
            return pa.RecordBatch.from_arrays(
                [pa.concat_arrays(column.chunks) for column in table.columns], schema=table.schema
            )
        return _as_data_set(data, table) if _is_streamed_set(data) else table

    def _names(self, text_field: str) -> set[Any]:
        """The columns, or for a list the keys of all its records."""
        data = self._given
        if _is_frame(data):
            return set(data.columns)
        if self._table is not None:
            return set(data.column_names if _is_data_set(data) else self._table.schema.names)
        if isinstance(data, list | tuple):
            return {name for item in data for name in _named(item, text_field)}
        return {getattr(data, "name", None) or text_field}

    def read(self, request: Request, bad: Report) -> Iterator[Batch]:
        """The documents; a record that is not one goes to *bad*."""
        if _is_frame(self._given):
            return _rows(self.name, _frame_table(self._given, request), request, bad)
        if self._table is None:
            return _documents(self.name, self._given, request, bad)
        return _rows(self.name, self._table, request, bad)


def _table(data: Any) -> Any:
    """*data* as something with a schema and record batches, or None."""
    if isinstance(data, pa.RecordBatchReader):
        return set_aside(data)
    if isinstance(data, pa.Table):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    if _is_data_set(data):
        return data.with_format("arrow")
    if _is_streamed_set(data):
        return set_aside(_set_batches(data.with_format("arrow")))
    if _is_column(data):
        return None
    try:
        if hasattr(data, "__arrow_c_stream__"):
            return pa.table(data)
        if hasattr(data, "to_arrow"):
            return pa.table(data.to_arrow())
    except (pa.ArrowException, TypeError, ValueError) as error:
        reason = " ".join(str(error).split())[:200]
        raise InvalidValue(f"{type(data).__name__} cannot be read as a table: {reason}") from None
    return None


def _is_of(data: Any, package: str, *names: str) -> bool:
    """Whether *data* is one of those classes of *package*, which is not imported for that."""
    found = (getattr(sys.modules.get(package), name, None) for name in names)
    return any(isinstance(one, type) and isinstance(data, one) for one in found)


def _is_frame(data: Any) -> bool:
    return _is_of(data, "pandas", "DataFrame")


def _frame_table(frame: Any, request: Request) -> pa.Table:
    """The requested columns of a pandas frame; the others need not fit into Arrow."""
    asked = [*request.text_names, *request.fields, *([request.id_field] if request.id_field else [])]
    for column in asked:
        if column not in frame.columns:
            names = ", ".join(map(repr, list(frame.columns)[:20]))
            raise Broken(f"has no column {column!r}; columns: {names}")
    wanted = dict.fromkeys([*asked, *([request.id_name] if request.id_name in frame.columns else [])])
    columns = {}
    for name in wanted:
        if getattr(frame[name], "ndim", 1) != 1:
            raise Broken(f"has two columns {name!r}")
        try:
            columns[name] = pa.array(frame[name], from_pandas=True)
        except (pa.ArrowException, TypeError, ValueError) as error:
            raise Broken(
                f"its column {name!r} cannot be read: {' '.join(str(error).split())[:200]}"
            ) from None
    return pa.table(columns)


def _nullable(columns: pa.Table) -> Any:
    """A mapper that keeps booleans with nulls booleans in pandas, not objects."""
    if not any(pa.types.is_boolean(column.type) and column.null_count for column in columns.columns):
        return None
    return {pa.bool_(): sys.modules["pandas"].BooleanDtype()}.get


def _with(table: pa.Table, columns: pa.Table) -> pa.Table:
    for name in columns.column_names:
        table = table.append_column(name, columns.column(name))
    return table


def _is_data_set(data: Any) -> bool:
    """Whether it is a Hugging Face data set."""
    return hasattr(data, "with_format") and hasattr(data, "select")


def _is_streamed_set(data: Any) -> bool:
    """Whether it is a Hugging Face data set that gives its rows one after the other."""
    return _is_of(data, "datasets", "IterableDataset")


def _as_data_set(data: Any, table: pa.Table) -> Any:
    """*table* as a data set with the features of *data*, where those are known."""
    datasets = sys.modules["datasets"]
    found = datasets.Dataset(table)
    known = getattr(data, "features", None)
    features = {name: known[name] for name in table.column_names if known is not None and name in known}
    for name in table.column_names:
        features.setdefault(name, found.features[name])
    return found.cast(datasets.Features(features))


def _is_column(data: Any) -> bool:
    """Whether it is a column, whose values are the documents."""
    shape = getattr(data, "shape", None)
    return isinstance(data, pa.Array | pa.ChunkedArray) or (isinstance(shape, tuple) and len(shape) == 1)


def set_aside(batches: Iterable[pa.RecordBatch]) -> pa.Table:
    """What a stream gives, the one time that it is read, as a table in a temporary file."""
    ends = [0]
    with tempfile.TemporaryFile() as file:
        for schema, some in groupby(batches, key=lambda batch: batch.schema):
            with pa.ipc.new_stream(pa.PythonFile(file, "wb"), schema) as writer:
                for batch in some:
                    writer.write_batch(batch)
            ends.append(file.tell())
        file.flush()
        if len(ends) == 1:
            empty = getattr(batches, "schema", None)
            return pa.table({}) if empty is None else empty.empty_table()
        mapped = pa.py_buffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    parts = [pa.ipc.open_stream(mapped.slice(begin, end - begin)).read_all() for begin, end in pairwise(ends)]
    return pa.concat_tables(parts, promote_options="permissive")


def _named(item: Any, text_field: str) -> Mapping[str, Any]:
    """A record with names, made of an item of a list."""
    if isinstance(item, Mapping):
        return item
    if isinstance(item, Document):
        return {"id": item.id, text_field: item.content, **item.fields}
    if isinstance(item, tuple | list) and len(item) == 2:
        return {"id": item[0], text_field: item[1]}
    return {text_field: item}


def _rows(name: str, table: Any, request: Request, bad: Report) -> Iterator[Batch]:
    batches = table.to_batches() if isinstance(table, pa.Table) else _set_batches(table)
    schema = table.schema if isinstance(table, pa.Table) else None
    reading: Table | None = None
    for batch in batches:
        if reading is None:
            reading = Table(name, schema or batch.schema, request, bad, prefix="", first=0)
        for part in slices(checked_batch(batch), request.text_names, request.block):
            yield from reading.documents(part)
    if reading is None and schema is not None:
        Table(name, schema, request, bad, prefix="")


def _set_batches(data: Any) -> Iterator[pa.RecordBatch]:
    for part in data.iter(batch_size=ROWS):
        yield from pa.table(part).to_batches()


def _documents(name: str, data: Iterable[Any], request: Request, bad: Report) -> Iterator[Batch]:
    ids: list[str] = []
    texts: list[str] = []
    places: list[int] = []
    records: list[Mapping[str, Any]] = []
    size, bare = 0, False  # whether a document has a text and no fields that make it up

    def batch() -> Batch:
        return batch_of(
            ids,
            texts,
            places,
            file=name,
            fields=fields_of(records, request.fields),
            lacking=None if bare else lacking(records, request.text_names),
        )

    for number, item in enumerate(data):
        try:
            key, text, record = _document(item, request)
            bare = bare or not record or isinstance(item, Document)
            ids.append(_clean(_id(key, number, request)))
        except Unfit as fault:
            raw = shown(item, 1000).encode("utf-8", "backslashreplace")
            bad(Bad(name, number + 1, None, str(fault), raw))
            continue
        texts.append(_clean(text))
        places.append(number + 1)
        records.append(record)
        size += len(text)
        if len(ids) >= ROWS or size >= request.block:
            yield batch()
            ids, texts, places, records, size = [], [], [], [], 0
    if ids:
        yield batch()


def _document(item: Any, request: Request) -> tuple[Any, str, Mapping[str, Any]]:
    if isinstance(item, pa.Scalar):
        item = item.as_py()
    if isinstance(item, str):
        return None, item, {}
    if isinstance(item, Document):
        return item.id, item.content, item.fields
    if isinstance(item, Mapping):
        record = dict(item)
        return record.get(request.id_name), checked_text(record, request), record
    if isinstance(item, tuple | list) and len(item) == 2:
        name = request.text_names[0]
        return item[0], checked_text({name: item[1]}, request), {}
    raise Unfit(f"is {type(item).__name__}, not a text, an (id, text) pair or a mapping")


def _id(value: Any, number: int, request: Request) -> str:
    if isinstance(value, str) and value:
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        with suppress(ValueError):  # more digits than Python writes
            return str(value)
    if value is None and request.id_field is None:
        return str(number)
    raise Unfit(f"its {request.id_field or DEFAULT_ID!r} is {shown(value)}, not text or an integer")


def _clean(text: str) -> str:
    """*text* with lone surrogates, which no UTF-8 can hold, as U+FFFD."""
    try:
        text.encode()
        return text
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
