"""The values that travel from sources to sinks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NewType, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

# A run numbers five things. Numbers of one kind are not numbers of another.
RowNumbers = NewType("RowNumbers", "npt.NDArray[Any]")
"""Documents, by their row: those of the input in their order, then the protected ones."""
TextNumbers = NewType("TextNumbers", "npt.NDArray[Any]")
"""Texts: equal documents have one. They are numbered in the keep order."""
PrintPlaces = NewType("PrintPlaces", "npt.NDArray[Any]")
"""Fingerprints, by their place: those of the texts in their order, then those of the other documents."""
Ranks = NewType("Ranks", "npt.NDArray[Any]")
"""Texts, by their place in an order that may look at verdicts: the first one is the first to stay."""
PairNumbers = NewType("PairNumbers", "npt.NDArray[Any]")
"""Candidate pairs, by their place among the candidates."""

Bands: TypeAlias = "npt.NDArray[np.uint32]"
"""Numbers of texts, a row for each: similar texts are likely to have one in common in the same column."""


@dataclass(frozen=True, slots=True)
class Document:
    """One document, where a single one is needed; many travel as a `Batch`."""

    id: str
    content: str
    fields: Mapping[str, Any] = field(default_factory=dict)


class Lacking(NamedTuple):
    """Fields that no document of a batch has, and those that the first one has."""

    names: frozenset[str]
    there: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Documents that are next to each other in one input, as Arrow arrays of equal length.

    `file` is the file, or the folder that was walked if each file is a document, as the user named it.
    `raw` is there only on request: the records' bytes as a list or an Arrow
    array (line formats, with their line ends), or a record batch with every column (tables); None if
    each file is a document.
    """

    ids: pa.LargeStringArray
    texts: pa.LargeStringArray
    file: str
    places: npt.NDArray[np.int64]  # line, row or file of each document, from 1
    fields: pa.RecordBatch | None = None
    raw: Any = None
    format: str = "memory"  # a name of `sources.FORMATS`, or this
    records: Callable[[list[int]], Iterable[tuple[int, bytes]]] | None = None
    """For line formats, while they are read: the offsets and bytes of the records of some rows."""
    images: npt.NDArray[np.uint8] | None = None  # thumbnails; `texts` are then the SHA-256 of the files
    lacking: Lacking | None = None
    """If the text has several fields: those that no document of this batch has."""

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self) -> Any:
        """The documents one by one."""
        rows = self.fields.to_pylist() if self.fields is not None else [{}] * len(self)
        return map(Document, self.ids.to_pylist(), self.texts.to_pylist(), rows)


@dataclass(frozen=True, slots=True)
class Bad:
    """A record that cannot be used: where it is, why, and its bytes.

    `line` counts from 1; None means the whole file. `offset` is in bytes of the decompressed file,
    None if records have none (rows of a table). `raw` holds the record's bytes, or the first of
    them where `length` is more.
    """

    file: str
    line: int | None
    offset: int | None
    reason: str
    raw: bytes = b""
    length: int | None = None


PROTECTED: Final = "protected:"
"""The prefix of the ids of protected documents: the same id in the input is another document."""


def label(value: Any) -> str | None:
    """The text that names a value of a field: 7, 7.0 and "7" have one name, whatever column they come from.

    >>> label(7), label(7.0), label(True), label(None)
    ('7', '7', 'true', None)
    """
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, dict | list):
        import json

        return json.dumps(value, ensure_ascii=False, default=str)
    return None if value is None else str(value)
