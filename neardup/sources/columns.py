"""Documents from columns: what Parquet, Arrow and in-memory tables have in common.

Nothing in a table is trusted: a text that is null or not UTF-8 makes its row bad, and if an id is
neither text nor integer, the table is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from neardup.sources.limits import size
from neardup.sources.options import Request
from neardup.sources.reading import Report
from neardup.sources.streams import Broken
from neardup.sources.text_fields import BETWEEN, all_null
from neardup.types import Bad, Batch


class Table:
    """The reading of one table: checks its schema, then turns its record batches into documents."""

    def __init__(
        self, name: str, schema: pa.Schema, request: Request, bad: Report, *, prefix: str, first: int = 1
    ) -> None:
        """A document without an id gets *prefix* and its row number, counted from *first*."""
        self._first = first
        self._name, self._request, self._bad, self._prefix = name, request, bad, prefix
        names = schema.names
        texts = tuple(dict.fromkeys(request.text_names))
        for column in [*texts, *request.fields, *([request.id_field] if request.id_field else [])]:
            if column not in names:
                raise Broken(f"has no column {column!r}; columns: {', '.join(map(repr, names[:20]))}")
            if names.count(column) > 1:
                raise Broken(f"has two columns {column!r}")
        self.has_ids = names.count(request.id_name) == 1
        self._row = 0
        for column in texts:
            _needs_kind(schema, column, _is_text, "text")
        if self.has_ids:
            _needs_kind(
                schema, request.id_name, lambda kind: _is_text(kind) or pa.types.is_integer(kind), "id"
            )

    @property
    def columns(self) -> list[str]:
        """The columns that have to be read."""
        names = [*self._request.text_names, *self._request.fields]
        if self.has_ids:
            names.append(self._request.id_name)
        return list(dict.fromkeys(names))

    def documents(self, batch: pa.RecordBatch) -> Iterator[Batch]:
        """The documents of *batch*, the next rows of the table."""
        first, self._row = self._row + 1, self._row + batch.num_rows
        if batch.num_rows == 0:
            return
        places = np.arange(first, first + batch.num_rows, dtype=np.int64)
        texts, faults = _texts_of_fields(batch, self._request)
        if self.has_ids:
            ids, odd = _texts(batch.column(self._request.id_name), "id")
            faults |= odd
            for row in np.flatnonzero(lengths_of(ids) == 0).tolist():
                faults.setdefault(row, "its id is empty")
        else:
            ids = pa.array(
                [f"{self._prefix}{place + self._first - 1}" for place in places.tolist()], pa.large_string()
            )
        if faults:
            for row in sorted(faults):
                raw = _raw(batch.slice(row, 1))
                self._bad(Bad(self._name, first + row, None, faults[row], raw))
            kept = np.ones(batch.num_rows, dtype=bool)
            kept[list(faults)] = False
            ids, texts, places = ids.filter(pa.array(kept)), texts.filter(pa.array(kept)), places[kept]
        if not len(ids):
            return
        if faults:
            batch = _rows(batch, kept)
        fields = batch.select(list(self._request.fields)) if self._request.fields else None
        raw_rows = batch if self._request.raw else None
        yield Batch(ids=ids, texts=texts, file=self._name, places=places, fields=fields, raw=raw_rows)


def _rows(batch: pa.RecordBatch, kept: Any) -> pa.RecordBatch:
    """The rows of *batch* where *kept*; Arrow cannot filter views."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], kept, [False]]))).reshape(-1, 2).tolist()
    parts = [batch.slice(begin, end - begin) for begin, end in edges]
    [found] = pa.Table.from_batches(parts).combine_chunks().to_batches()
    return found


def lengths_of(array: pa.Array) -> Any:
    """The length of each text in bytes; -1 for null."""
    return pc.binary_length(array).fill_null(-1).to_numpy(zero_copy_only=False)


def slices(batch: pa.RecordBatch, columns: Iterable[str], block: int) -> Iterator[pa.RecordBatch]:
    """*batch* in parts of about *block* bytes of *columns*."""
    size = sum(batch.column(column).nbytes for column in columns)
    rows = max(1, min(batch.num_rows, int(block * batch.num_rows / max(1, size))))
    for start in range(0, batch.num_rows, rows):
        yield batch.slice(start, rows)


def _is_text(kind: pa.DataType) -> bool:
    is_any = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
    views = (pa.types.is_string_view, pa.types.is_binary_view)
    return any(check(kind) for check in (*is_any, *views)) or pa.types.is_null(kind)


def _needs_kind(schema: pa.Schema, column: str, check: Any, what: str) -> None:
    kind = schema.field(column).type
    if not check(kind.value_type if pa.types.is_dictionary(kind) else kind):
        wanted = "text" if what == "text" else "text or an integer"
        raise Broken(f"its column {column!r} is {kind}, not {wanted}")


def _unfolded(column: pa.Array) -> pa.Array:
    """*column* with the values themselves where it is dictionary-encoded."""
    if not pa.types.is_dictionary(column.type):
        return column
    values = column.dictionary
    if pa.types.is_string_view(values.type) or pa.types.is_binary_view(values.type):
        values = values.cast(pa.large_binary())  # Arrow cannot take from views
    return values.take(column.indices)


def _texts_of_fields(batch: pa.RecordBatch, request: Request) -> tuple[pa.LargeStringArray, dict[int, str]]:
    """The texts of *batch*, and the faults of its rows. A faulty row is null or empty in the texts."""
    names, limit = request.text_names, request.limits.line
    if len(names) == 1:
        texts, faults = _texts(batch.column(names[0]), "text")
        columns = [texts]
    else:
        by_name, faults, there = {}, {}, np.zeros(batch.num_rows, dtype=bool)
        for name in dict.fromkeys(names):
            by_name[name], odd = _texts(batch.column(name), repr(name))
            valid = _unfolded(batch.column(name)).is_valid().to_numpy(False)
            faults |= {row: fault for row, fault in odd.items() if valid[row]}
            there |= valid
        faults |= dict.fromkeys(np.flatnonzero(~there).tolist(), all_null(names))
        columns = [by_name[name] for name in names]
    sizes = [pc.binary_length(column).fill_null(0).to_numpy(False).astype(np.int64) for column in columns]
    lengths: Any = sum(sizes)
    long = lengths > limit
    for row in np.flatnonzero(long).tolist():
        faults[row] = f"its text is {size(int(lengths[row]))}; the limit is {size(limit)}"
    if len(names) == 1:
        return texts, faults
    nothing, between = pa.scalar("", pa.large_string()), pa.scalar(BETWEEN, pa.large_string())
    parts, begun = [], np.zeros(batch.num_rows, dtype=bool)
    for column, bytes_of in zip(columns, sizes, strict=True):
        says = (bytes_of > 0) & ~long
        parts.append(pc.if_else(pa.array(begun & says), between, nothing))
        parts.append(pc.if_else(pa.array(says), column, nothing))
        begun |= says
    return pc.binary_join_element_wise(*parts, nothing), faults


def _texts(column: pa.Array, what: str) -> tuple[pa.LargeStringArray, dict[int, str]]:
    """*column* as text, and the faults of its rows. A faulty row is null in the text."""
    column = _unfolded(column)
    faults = {}
    if column.null_count:
        faults = {int(row): f"its {what} is null" for row in np.flatnonzero(column.is_null().to_numpy(False))}
    if pa.types.is_integer(column.type) or pa.types.is_null(column.type):
        return column.cast(pa.large_string()), faults
    try:
        texts = column.cast(pa.large_binary()).cast(pa.large_string())  # the second cast checks UTF-8
        texts.validate(full=True)
        return texts, faults
    except pa.ArrowException:
        values: list[str | None] = []
        for row, value in enumerate(column.cast(pa.large_binary()).to_pylist()):
            try:
                values.append(None if value is None else value.decode())
            except UnicodeDecodeError:
                faults[row] = f"its {what} is not UTF-8"
                values.append(None)
        return pa.array(values, pa.large_string()), faults


def _raw(row: pa.RecordBatch) -> bytes:
    """The cells of a bad row that were read, as JSON; bytes that are not UTF-8 become `\\xHH`."""
    cells = {}
    for name, folded in zip(row.schema.names, row.columns, strict=True):
        column = _unfolded(folded)
        column = column.cast(pa.large_binary()) if _is_text(column.type) else column
        try:
            (value,) = column.to_pylist()
        except (ValueError, OverflowError):  # such as a moment outside of Python's calendar
            value = " ".join(str(column).split())
        cells[name] = value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else value
    try:
        return orjson.dumps(cells, default=str)
    except TypeError:  # nested too deeply
        return str(cells).encode("utf-8", "backslashreplace")
