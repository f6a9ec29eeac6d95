"""The kept documents, in the format they came in: lines byte for byte, rows with every column."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from contextlib import ExitStack, closing
from typing import IO, Any, Final, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup.errors import InvalidValue
from neardup.files import Digested, atomic_file, file_digest
from neardup.sinks.packing import packed
from neardup.sinks.tables import Arrow, ArrowStream, Parquet, Sink
from neardup.sources import Source
from neardup.sources.arrow import MAGIC
from neardup.sources.delimited import header_line
from neardup.sources.streams import SUFFIXES
from neardup.types import Batch


def copy_kept(
    source: Source,
    mask: npt.NDArray[np.bool_],
    folder: str | os.PathLike[str],
    *,
    overwrite: bool = False,
) -> dict[str, str]:
    """Copy the documents of *source* where *mask*, in input order, is True: the SHA-256 of each file made.

    Inputs of one format become one `kept` file; CSV files with another header and tables with other columns
    get one of their own, as do Arrow files with dictionaries. The metadata of a table are those of the first
    that is in the file. Of a WARC the records of the kept pages are copied. Documents that are whole files
    are listed by id in `kept.txt`.
    """
    made: dict[str, Digested | None] = {}
    headers: dict[str, bytes] = {}
    with ExitStack() as stack:
        writers: dict[Any, _Put] = {}
        at = 0
        for batch in source.batches(raw=True):
            wanted, at = mask[at : at + len(batch)], at + len(batch)
            if len(wanted) < len(batch):
                break
            if batch.file not in headers:
                headers[batch.file] = _header(batch, source)
            shape = _shape(batch, headers)
            if shape not in writers:
                name = os.path.join(folder, _name(batch, headers[batch.file], len(made)))
                file = stack.enter_context(atomic_file(name, overwrite=overwrite))
                made[name] = None
                if not isinstance(batch.raw, pa.RecordBatch):
                    made[name] = digested = stack.enter_context(Digested(file))
                    file = cast(IO[bytes], digested)
                writers[shape] = _writer(stack, file, batch, headers[batch.file])
            writers[shape](batch, wanted)
        if at != len(mask):
            raise InvalidValue(f"{len(mask)} marks for {at} documents: this is not the input that was judged")
    return {name: file_digest(name) if lines is None else lines.digest() for name, lines in made.items()}


_Mask = npt.NDArray[np.bool_]
_Put = Callable[[Batch, _Mask], None]


def _header(batch: Batch, source: Source) -> bytes:
    """How a file of one format begins, where that is not the same for all of them."""
    if batch.format not in ("csv", "arrow"):
        return b""
    file = source.file(batch.file)
    return header_line(file, source.request) if batch.format == "csv" else file.head(len(MAGIC))


def _shape(batch: Batch, headers: dict[str, bytes]) -> Any:
    """What batches must share to go into one file."""
    if batch.raw is None:
        return "ids"
    if isinstance(batch.raw, pa.RecordBatch):
        schema = batch.raw.schema.remove_metadata()
        # A Parquet file has a dictionary for every part of its rows, an Arrow file one for all.
        own = batch.format == "arrow" and any(map(_has_dictionary, schema.types))
        return _table_ending(batch, headers[batch.file]), schema, batch.file if own else ""
    return batch.format, headers[batch.file]


def _has_dictionary(kind: pa.DataType) -> bool:
    return pa.types.is_dictionary(kind) or any(
        _has_dictionary(kind.field(at).type) for at in range(kind.num_fields)
    )


def _table_ending(batch: Batch, header: bytes) -> str:
    if batch.format != "arrow":
        return ".parquet"
    return ".arrow" if header == MAGIC else ".arrows"


def _name(batch: Batch, header: bytes, number: int) -> str:
    stem = f"kept-{number + 1}" if number else "kept"
    if batch.raw is None:
        return f"{stem}.txt"
    if isinstance(batch.raw, pa.RecordBatch):
        return stem + _table_ending(batch, header)
    rest, ending = os.path.splitext(batch.file.lower())
    packing = ending if ending in SUFFIXES else ""
    inner = os.path.splitext(rest)[1] if packing else ending
    return f"{stem}{inner if inner in ('.tsv', '.tab') else '.' + batch.format}{packing}"


_TABLES: Final[dict[str, Callable[[IO[bytes], pa.Schema], Sink]]] = {
    ".parquet": Parquet,
    ".arrow": Arrow,
    ".arrows": ArrowStream,
}


def _writer(stack: ExitStack, file: IO[bytes], batch: Batch, header: bytes) -> _Put:
    if batch.raw is None:
        return lambda part, wanted: _put_lines(
            file, [f"{name}\n".encode() for name in part.ids.to_pylist()], wanted
        )
    if isinstance(batch.raw, pa.RecordBatch):
        table = _TABLES[_table_ending(batch, header)](file, batch.raw.schema)
        sink = stack.enter_context(closing(table))
        return lambda part, wanted: sink.write(part.raw.filter(pa.array(wanted)))
    ending = os.path.splitext(batch.file)[1].lower()
    if batch.format == "warc":
        return lambda part, wanted: _put_records(file, part.raw, wanted, ending)
    out = stack.enter_context(packed(file, ending))
    out.write(header)
    return lambda part, wanted: _put_lines(out, part.raw, wanted)


def _put_records(file: IO[bytes], records: list[bytes], wanted: _Mask, ending: str) -> None:
    """Write records each compressed by itself, so that a reader can begin at any of them."""
    for record, keep in zip(records, wanted.tolist(), strict=True):
        if keep:
            one = io.BytesIO()
            with packed(one, ending) as out:
                out.write(record)
            file.write(one.getvalue())


def _put_lines(file: IO[bytes], lines: list[bytes] | pa.LargeBinaryArray, wanted: _Mask) -> None:
    if isinstance(lines, list):
        file.write(b"".join(line for line, keep in zip(lines, wanted.tolist(), strict=True) if keep))
        return
    begins, data = np.frombuffer(lines.buffers()[1], np.int64), memoryview(lines.buffers()[2])
    begins = begins[lines.offset : lines.offset + len(lines) + 1]
    # Neighbours that stay are one piece.
    edges = np.flatnonzero(np.diff(np.concatenate([[False], wanted, [False]])))
    file.write(b"".join(data[begin:end] for begin, end in begins[edges].reshape(-1, 2).tolist()))
