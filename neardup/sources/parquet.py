"""Parquet: the wanted columns, some thousand rows at a time. Page checksums, where present, are verified."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from neardup.sources.columns import Table, slices
from neardup.sources.files import File
from neardup.sources.options import Request
from neardup.sources.reading import Report
from neardup.sources.streams import Broken
from neardup.types import Batch

MAGIC = b"PAR1"
_SMALL_ROW = 64  # below this many stored bytes per row, a dictionary may hide large texts


def read(file: File, request: Request, bad: Report) -> Iterator[Batch]:
    """The documents of *file*; a record that is not one goes to *bad*."""
    file.hashed()
    with file.open() as handle:
        try:
            parquet = _opened(handle)
            table = Table(file.name, parquet.schema_arrow, request, bad, prefix=f"{file.id}:")
            # A dictionary can expand to any number of rows: keep it folded until the rows are counted.
            texts = request.text_names
            if folded := [name for name in dict.fromkeys(texts) if _is_folded(parquet, name)]:
                parquet = _opened(handle, read_dictionary=folded)
            columns = None if request.raw else table.columns
            for batch in parquet.iter_batches(batch_size=_rows(parquet, request.block), columns=columns):
                for part in _unfolded(batch, texts, request.block):
                    yield from table.documents(part)
        except Broken:
            raise
        except (pa.ArrowException, OSError, ValueError, MemoryError) as error:
            raise Broken(f"is damaged Parquet: {_short(error)}") from None


def _opened(handle: Any, **options: Any) -> pq.ParquetFile:
    handle.seek(0)
    return pq.ParquetFile(handle, page_checksum_verification=True, pre_buffer=False, **options)


def _groups(parquet: pq.ParquetFile) -> Iterator[Any]:
    return (parquet.metadata.row_group(number) for number in range(parquet.metadata.num_row_groups))


def _rows(parquet: pq.ParquetFile, block: int) -> int:
    """How many rows make a batch of about *block* bytes, by the sizes that the footer states."""
    stored = sum(group.total_byte_size for group in _groups(parquet))
    return int(max(16, min(65536, block * max(1, parquet.metadata.num_rows) // max(1, stored))))


def _is_folded(parquet: pq.ParquetFile, column: str) -> bool:
    kind = parquet.schema_arrow.field(column).type
    if not (pa.types.is_string(kind) or pa.types.is_binary(kind)):
        return False
    paths = [parquet.schema.column(number).path for number in range(len(parquet.schema))]
    for number, group in enumerate(_groups(parquet)) if column in paths else ():
        # Asking for a chunk whose description is damaged ends the process; reading from it raises.
        next(parquet.iter_batches(batch_size=1, row_groups=[number], columns=[column]), None)
        chunk = group.column(paths.index(column))
        if chunk.has_dictionary_page:
            return bool(chunk.total_uncompressed_size < _SMALL_ROW * group.num_rows)
    return False


def _unfolded(batch: pa.RecordBatch, columns: Sequence[str], block: int) -> Iterator[pa.RecordBatch]:
    folded = [name for name in columns if pa.types.is_dictionary(batch.column(name).type)]
    plain = [name for name in columns if name not in folded]
    # The longest entries bound what a row can take.
    longest = sum(_longest(batch.column(name).dictionary) for name in folded)
    rows = max(1, 2 * block // max(1, longest)) if folded else batch.num_rows
    for start in range(0, batch.num_rows, max(1, rows)):
        for part in slices(batch.slice(start, rows), plain, block) if plain else [batch.slice(start, rows)]:
            yield _decoded(part, folded)


def _longest(dictionary: pa.Array) -> int:
    return max((len(value.as_buffer() or b"") for value in dictionary if value.is_valid), default=1)


def _decoded(batch: pa.RecordBatch, columns: Iterable[str]) -> pa.RecordBatch:
    """*batch* with the values themselves in *columns*."""
    for name in dict.fromkeys(columns):
        place = batch.schema.get_field_index(name)
        values = batch.column(place).dictionary_decode()
        batch = batch.set_column(place, batch.schema.field(place).with_type(values.type), values)
    return batch


def _short(error: BaseException) -> str:
    return str(error).strip().splitlines()[0][:200] if str(error).strip() else type(error).__name__
