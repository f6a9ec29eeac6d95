"""The first pass over a collection: what is known of every document without its text."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup import _native
from neardup.features.image import WHOLE, fingerprints_of
from neardup.schemes.model import Scheme, arrow_chunk
from neardup.types import Batch, label


@dataclass(frozen=True, slots=True, eq=False)
class Documents:
    """The bookkeeping of a run: one row a document, in the order of the input, and no text."""

    ids: pa.LargeStringArray
    lengths: npt.NDArray[np.int64]
    """Characters of the text."""
    content: npt.NDArray[np.uint64]
    """128 bits that identify the normalised text."""
    informative: npt.NDArray[np.bool_]
    files: list[str]
    file: npt.NDArray[np.int32]
    """Which of the files it stands in."""
    fields: pa.Table

    def __len__(self) -> int:
        return len(self.ids)

    def column(self, name: str) -> list[Any]:
        """The values of a field, as Python values."""
        values: list[Any] = self.fields.column(name).to_pylist()
        return values

    def table(self) -> pa.Table:
        """Everything as one Arrow table, for a checkpoint."""
        columns = {
            "id": self.ids,
            "length": pa.array(self.lengths),
            "content_low": pa.array(self.content[:, 0]),
            "content_high": pa.array(self.content[:, 1]),
            "informative": pa.array(self.informative),
            "file": pa.array(self.file),
        }
        table = pa.table(columns)
        for name in self.fields.column_names:
            table = table.append_column("field:" + name, self.fields.column(name))
        return table.replace_schema_metadata({"files": json.dumps(self.files)})

    @classmethod
    def of(cls, table: pa.Table) -> Documents:
        """The reverse of `table`."""
        files = json.loads((table.schema.metadata or {}).get(b"files", b"[]"))
        names = [name for name in table.column_names if name.startswith("field:")]
        fields = table.select(names).rename_columns([name.removeprefix("field:") for name in names])
        low, high = (table.column(name).to_numpy() for name in ("content_low", "content_high"))
        return cls(
            ids=_whole(table.column("id")),
            lengths=table.column("length").to_numpy(),
            content=np.stack([low, high], axis=1) if len(low) else np.zeros((0, 2), np.uint64),
            informative=table.column("informative").to_numpy(),
            files=files,
            file=table.column("file").to_numpy(),
            fields=fields.replace_schema_metadata(None),
        )


def _whole(column: pa.ChunkedArray) -> pa.LargeStringArray:
    column = column.cast(pa.large_string())
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], pa.large_string())


class Surveyor:
    """Collects `Documents` batch by batch, and counts document frequencies where they are wanted."""

    def __init__(
        self,
        scheme: Scheme,
        fields: Sequence[str],
        frequencies: _native.Frequencies | None,
        threads: int | None,
        begun: Documents | None = None,
    ) -> None:
        self.frequencies = frequencies
        self._scheme, self._fields, self._threads = scheme, list(fields), threads
        self._files: dict[str, int] = {}
        self._parts: list[tuple[Any, ...]] = []
        self.count = 0
        if begun is not None:
            self._files = {name: number for number, name in enumerate(begun.files)}
            kept = [begun.fields.column(name).combine_chunks() for name in self._fields]
            self._parts.append((begun.ids, begun.lengths, begun.content, begun.informative, begun.file, kept))
            self.count = len(begun)

    def add(self, batch: Batch) -> None:
        """Look at the documents of one batch."""
        self.count += len(batch)
        if batch.pictures is not None:
            content, informative, lengths = _look(batch)
        else:
            content, informative, lengths = _native.survey(
                self._scheme.recipe, arrow_chunk(batch.texts), self.frequencies, self._threads
            )
        file = self._files.setdefault(batch.file, len(self._files))
        fields = [] if batch.fields is None else [batch.fields.column(name) for name in self._fields]
        self._parts.append(
            (batch.ids, lengths, content, informative, np.full(len(batch), file, np.int32), fields)
        )

    def _columns(self) -> list[list[Any]]:
        return [[part[at] for part in self._parts] for at in range(6)]

    def documents(self) -> Documents:
        """All documents so far."""
        ids, lengths, content, informative, file, fields = self._columns()
        return Documents(
            ids=pa.concat_arrays([pa.array([], pa.large_string()), *ids]),
            lengths=np.concatenate([np.zeros(0, np.int64), *lengths]),
            content=np.concatenate([np.zeros((0, 2), np.uint64), *content]),
            informative=np.concatenate([np.zeros(0, bool), *informative]),
            files=list(self._files),
            file=np.concatenate([np.zeros(0, np.int32), *file]),
            fields=pa.table(
                {name: _field([part[at] for part in fields]) for at, name in enumerate(self._fields)}
            ),
        )


def _look(batch: Batch) -> tuple[Any, Any, Any]:
    """Contents (of the files), whether there is something to see, and lengths, which pictures have not."""
    digests = b"".join(bytes.fromhex(text)[:16] for text in batch.texts.to_pylist())
    content = np.frombuffer(digests, dtype="<u8").astype(np.uint64).reshape(-1, 2)
    _, informative = fingerprints_of(batch.pictures, [WHOLE])  # type: ignore[arg-type]
    return content, informative, np.zeros(len(batch), dtype=np.int64)


def _field(parts: list[Any]) -> pa.ChunkedArray:
    """One column of parts whose types may differ from file to file."""
    kinds = {part.type for part in parts}
    if len(kinds) <= 1:
        return pa.chunked_array(parts) if parts else pa.chunked_array([], pa.null())
    texts = [pa.array([label(value) for value in part.to_pylist()], pa.string()) for part in parts]
    return pa.chunked_array(texts, pa.string())
