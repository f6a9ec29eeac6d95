"""Documents that a Python program holds: tables of any Arrow library, data sets, iterables.

A document without an id gets the number of its row, from 0. What can be read only once is kept,
so that it can be read again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

import pyarrow as pa

from neardup.errors import InvalidType, InvalidValue, shown
from neardup.sources.columns import Table, slices
from neardup.sources.reading import DEFAULT_ID, Report, Request, Unfit, batch_of, checked_text, fields_of
from neardup.sources.streams import BLOCK
from neardup.types import Bad, Batch, Document

ROWS = 4096


class Held:
    """Documents in memory, readable as often as wanted."""

    name = "<memory>"
    digest: str | None = None
    bytes = 0

    def __init__(self, data: Any) -> None:
        if isinstance(data, Mapping):
            raise InvalidType(
                f"documents must be a path, a table or an iterable, not {type(data).__name__} with the keys "
                f"{shown(list(data)[:3])}; pass one of its values, [document], or pyarrow.table(columns)"
            )
        if isinstance(data, bytes | bytearray | memoryview):
            raise InvalidType(f"documents must be a path, a table or an iterable, not {type(data).__name__}")
        self._table = _table(data)
        if self._table is None and not isinstance(data, Iterable):
            raise InvalidType(f"documents must be a path, a table or an iterable, not {type(data).__name__}")
        self._data = list(data) if self._table is None and iter(data) is data else data

    def read(self, request: Request, bad: Report) -> Iterator[Batch]:
        """The documents; a record that is none goes to *bad*."""
        if self._table is None:
            return _documents(self.name, self._data, request, bad)
        return _rows(self.name, self._table, request, bad)


def _table(data: Any) -> Any:
    """*data* as something with a schema and record batches, or None."""
    if isinstance(data, pa.RecordBatchReader):
        return data.read_all()
    if isinstance(data, pa.Table):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    if hasattr(data, "with_format") and hasattr(data, "select"):  # a Hugging Face data set
        return data.with_format("arrow")
    shape = getattr(data, "shape", None)
    if isinstance(data, pa.ChunkedArray) or (isinstance(shape, tuple) and len(shape) == 1):
        return None  # a column: its values are the documents
    try:
        if hasattr(data, "__arrow_c_stream__"):
            return pa.table(data)
        if hasattr(data, "to_arrow"):
            return pa.table(data.to_arrow())
    except (pa.ArrowException, TypeError, ValueError) as error:
        reason = " ".join(str(error).split())[:200]
        raise InvalidValue(f"{type(data).__name__} cannot be read as a table: {reason}") from None
    return None


def _rows(name: str, table: Any, request: Request, bad: Report) -> Iterator[Batch]:
    batches = table.to_batches() if isinstance(table, pa.Table) else _set_batches(table)
    schema = table.schema if isinstance(table, pa.Table) else None
    reading: Table | None = None
    for batch in batches:
        if reading is None:
            reading = Table(name, schema or batch.schema, request, bad, prefix="", first=0)
        for part in slices(batch, request.text_field):
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
    size = 0

    def batch() -> Batch:
        return batch_of(ids, texts, places, file=name, fields=fields_of(records, request.fields))

    for number, item in enumerate(data):
        try:
            key, text, record = _document(item, request)
            ids.append(_clean(_id(key, number, request)))
        except Unfit as fault:
            raw = shown(item, 1000).encode("utf-8", "backslashreplace")
            bad(Bad(name, number + 1, None, str(fault), raw))
            continue
        texts.append(_clean(text))
        places.append(number + 1)
        records.append(record)
        size += len(text)
        if len(ids) >= ROWS or size >= BLOCK:
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
        return record.get(request.id_name), checked_text(record, request.text_field), record
    if isinstance(item, tuple | list) and len(item) == 2:
        return item[0], checked_text({request.text_field: item[1]}, request.text_field), {}
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
