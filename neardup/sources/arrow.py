"""Arrow IPC, file and stream. Every record batch is validated in full before one value is looked at."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa

from neardup.sources.columns import Table, slices
from neardup.sources.files import File
from neardup.sources.reading import Report, Request
from neardup.sources.streams import Broken
from neardup.types import Batch

MAGIC: Final = b"ARROW1"


def read(file: File, request: Request, bad: Report) -> Iterator[Batch]:
    """The documents of *file*; a record that is none goes to *bad*."""
    file.hashed()
    with file.open() as handle:
        try:
            schema, batches = _batches(handle)
            table = Table(file.name, schema, request, bad, prefix=f"{file.id}:")
            for batch in batches:
                batch.validate(full=False)
                for part in slices(_sound(batch), request.text_field):
                    yield from table.documents(part)
        except Broken:
            raise
        except (pa.ArrowException, OSError, ValueError, MemoryError) as error:
            raise Broken(f"is damaged Arrow data: {str(error).strip().splitlines()[0][:200]}") from None


def _batches(handle: Any) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    if handle.read(len(MAGIC)) == MAGIC:
        handle.seek(0)
        reader = pa.ipc.open_file(handle)
        return reader.schema, (reader.get_batch(number) for number in range(reader.num_record_batches))
    handle.seek(0)
    stream = pa.ipc.open_stream(handle)
    return stream.schema, iter(stream)


def _sound(batch: pa.RecordBatch) -> pa.RecordBatch:
    """*batch*, if its offsets and lengths hold. Whether its texts are UTF-8 is looked at later, by row."""
    for column in batch.columns:
        kind = column.type
        if pa.types.is_string(kind):
            column = column.view(pa.binary())
        elif pa.types.is_large_string(kind):
            column = column.view(pa.large_binary())
        elif pa.types.is_string_view(kind):
            column = column.view(pa.binary_view())
        column.validate(full=True)
    return batch
