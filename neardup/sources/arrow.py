"""Arrow IPC, file and stream. Every record batch is validated in full before any value is read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa

from neardup.arrays import checked_batch
from neardup.sources.columns import Table, slices
from neardup.sources.files import File
from neardup.sources.options import Request
from neardup.sources.reading import Report
from neardup.sources.streams import Broken
from neardup.types import Batch

MAGIC: Final = b"ARROW1"


def read(file: File, request: Request, bad: Report) -> Iterator[Batch]:
    """The documents of *file*; a record that is not one goes to *bad*."""
    file.hashed()
    with file.open() as handle:
        try:
            schema, batches = _batches(handle)
            table = Table(file.name, schema, request, bad, prefix=f"{file.id}:")
            for batch in batches:
                for part in slices(checked_batch(batch), request.text_names, request.block):
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
