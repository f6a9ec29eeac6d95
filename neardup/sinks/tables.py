"""Tables of results, written a record batch at a time, in the format that the name's ending tells."""

from __future__ import annotations

import csv
import io
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import IO, Any, Final, Protocol

import orjson
import pyarrow as pa

from neardup.errors import UnknownName
from neardup.files import atomic_file
from neardup.sinks.packing import PACKED, packed

STDOUT: Final = "-"
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")


class Sink(Protocol):
    """Where record batches of one schema go."""

    def write(self, batch: pa.RecordBatch) -> None: ...

    def close(self) -> None: ...


class Jsonl:
    """One object a row; binary cells as hexadecimal digits."""

    def __init__(self, file: IO[bytes], schema: pa.Schema) -> None:
        self._file = file

    def write(self, batch: pa.RecordBatch) -> None:
        lines = [
            orjson.dumps(row, default=_plain, option=orjson.OPT_APPEND_NEWLINE) for row in batch.to_pylist()
        ]
        self._file.write(b"".join(lines))

    def close(self) -> None:
        pass


class Csv:
    """A header and one row a line. A cell that a spreadsheet would run is made text by an apostrophe."""

    def __init__(self, file: IO[bytes], schema: pa.Schema) -> None:
        self._file = file
        self._put([schema.names])

    def write(self, batch: pa.RecordBatch) -> None:
        columns = [[_cell(value) for value in column.to_pylist()] for column in batch.columns]
        self._put([list(row) for row in zip(*columns, strict=True)])

    def close(self) -> None:
        pass

    def _put(self, rows: list[list[str]]) -> None:
        text = io.StringIO(newline="")
        csv.writer(text, lineterminator="\n").writerows(rows)
        self._file.write(text.getvalue().encode())


class Parquet:
    """Parquet with zstd; the schema's metadata is kept."""

    def __init__(self, file: IO[bytes], schema: pa.Schema) -> None:
        import pyarrow.parquet as pq

        self._writer = pq.ParquetWriter(file, schema, compression="zstd", write_page_checksum=True)

    def write(self, batch: pa.RecordBatch) -> None:
        self._writer.write_batch(batch)

    def close(self) -> None:
        self._writer.close()


class Arrow:
    """An Arrow IPC file."""

    _open = staticmethod(pa.ipc.new_file)

    def __init__(self, file: IO[bytes], schema: pa.Schema) -> None:
        self._writer = self._open(pa.PythonFile(file, mode="w"), schema)

    def write(self, batch: pa.RecordBatch) -> None:
        self._writer.write_batch(batch)

    def close(self) -> None:
        self._writer.close()


class ArrowStream(Arrow):
    """An Arrow IPC stream."""

    _open = staticmethod(pa.ipc.new_stream)


SINKS: Final[dict[str, Callable[[IO[bytes], pa.Schema], Sink]]] = {
    ".jsonl": Jsonl,
    ".ndjson": Jsonl,
    ".csv": Csv,
    ".parquet": Parquet,
    ".arrow": Arrow,
}


@contextmanager
def open_sink(path: str | os.PathLike[str], schema: pa.Schema, *, overwrite: bool = False) -> Iterator[Sink]:
    """A sink for record batches of *schema*. The file appears when the block ends without an error.

    `-` is standard output, as JSON Lines.
    """
    name = os.fspath(path)
    if name == STDOUT:
        yield Jsonl(sys.stdout.buffer, schema)
        sys.stdout.buffer.flush()
        return
    make = SINKS[check_sink(name)]
    with (
        atomic_file(name, overwrite=overwrite) as file,
        packed(file, os.path.splitext(name)[1].lower()) as out,
    ):
        sink = make(out, schema)
        try:
            yield sink
        except BaseException:
            with suppress(Exception):  # what is let go of later would write to a file that is closed
                sink.close()
            raise
        sink.close()


def check_sink(name: str) -> str:
    """The ending of *name* that tells its format; raises if no sink writes it."""
    stem, ending = os.path.splitext(name.lower())
    inner = os.path.splitext(stem)[1] if ending in PACKED else ending
    if inner not in SINKS or (ending in PACKED and inner in (".parquet", ".arrow")):
        raise UnknownName(f"cannot tell the format of {name!r}; known endings: {', '.join(SINKS)}")
    return inner


def _plain(value: Any) -> Any:
    return value.hex() if isinstance(value, bytes) else str(value)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, list | dict):
        value = orjson.dumps(value, default=_plain).decode()
    if isinstance(value, str):
        return "'" + value if value.startswith(_FORMULA) else value
    return str(value)
