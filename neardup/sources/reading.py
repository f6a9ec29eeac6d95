"""The small checks that all readers share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup.sources.limits import size
from neardup.sources.options import Request
from neardup.sources.text_fields import all_null, no_field, one_text
from neardup.types import Bad, Batch, Lacking, label

Report = Callable[[Bad], None]


class Unfit(ValueError):
    """A record that is not a document; the message is the reason."""


class Ids:
    """The ids of one input's documents.

    The first document decides: if it has an id, or the user named the field, every document needs
    one; if not, those without get `file:place`.
    """

    def __init__(self, name: str, request: Request) -> None:
        self._name = name
        self._field = request.id_name
        self._needed: bool | None = None if request.id_field is None else True

    def note(self) -> None:
        """Documents with ids of their own were met."""
        if self._needed is None:
            self._needed = True

    def numbered(self, places: npt.NDArray[np.int64]) -> pa.LargeStringArray | None:
        """The ids of documents at *places* that have none of their own; None if they need one."""
        if self._needed:
            return None
        self._needed = False
        return pa.array([f"{self._name}:{place}" for place in places.tolist()], pa.large_string())

    def of(self, value: Any, place: int) -> str:
        """The id of the document at *place* with *value* in its id field."""
        if self._needed is None:
            self._needed = value is not None
        if type(value) is str and value:
            return value
        if type(value) is int:
            return str(value)
        if value is None and not self._needed:
            return f"{self._name}:{place}"
        if value is None:
            raise Unfit(f"has no field {self._field!r}")
        raise Unfit(f"its {self._field!r} is {_kind(value)}, not text or an integer")


def checked_text(record: Any, request: Request) -> str:
    """The text of *record*, a parsed record of a line format."""
    if type(record) is not dict:
        raise Unfit(f"is {_kind(record)}, not an object")
    names = request.text_names
    if len(names) > 1:
        return _text_of_fields(record, names, request)
    (field,) = names
    value = record.get(field)
    if type(value) is str:
        return value
    if value is None and field not in record:
        raise Unfit(f"has no field {field!r}")
    raise Unfit(f"its {field!r} is {_kind(value)}, not text")


def _text_of_fields(record: dict[str, Any], names: Sequence[str], request: Request) -> str:
    parts = []
    for name in names:
        value = record.get(name)
        if type(value) is str:
            parts.append(value)
        elif value is not None:
            raise Unfit(f"its {name!r} is {_kind(value)}, not text")
    if not parts:
        raise Unfit(all_null(names) if any(name in record for name in names) else no_field(names))
    return within_limit(parts, request)


def within_limit(parts: Sequence[str], request: Request) -> str:
    """The text of which *parts* are the fields, if it is not too long."""
    limit, length = request.limits.line, sum(map(len, parts))
    if 4 * length > limit and length <= limit:
        length = sum(len(part.encode("utf-8", "surrogatepass")) for part in parts)
    if length > limit:
        raise Unfit(f"its text is {size(length)}; the limit is {size(limit)}")
    return one_text(parts)


def lacking(records: Sequence[Mapping[str, Any]], names: Sequence[str]) -> Lacking | None:
    """Which of several text fields none of the *records* has."""
    if len(names) == 1 or not records:
        return None
    absent = frozenset(name for name in names if not any(name in record for record in records))
    return Lacking(absent, tuple(records[0]))


def batch_of(
    ids: Sequence[str],
    texts: Sequence[str],
    places: Sequence[int],
    *,
    file: str,
    fields: pa.RecordBatch | None = None,
    raw: Any = None,
    records: Callable[[list[int]], Iterable[tuple[int, bytes]]] | None = None,
    lacking: Lacking | None = None,
) -> Batch:
    """A batch of Python values."""
    return Batch(
        ids=pa.array(ids, pa.large_string()),
        texts=pa.array(texts, pa.large_string()),
        file=file,
        places=np.asarray(places, dtype=np.int64),
        fields=fields,
        raw=raw,
        records=records,
        lacking=lacking,
    )


def column(values: Sequence[Any]) -> pa.Array:
    """Values of one extra field: numbers, texts or booleans as they are; where they are mixed, all as text.

    A text stays what it is, whatever is beside it: which values share a batch decides nothing.
    """
    try:
        return pa.array(values)
    except (pa.ArrowException, UnicodeError, OverflowError, ValueError, TypeError):
        return pa.array([label(value) for value in values], pa.string())


def fields_of(records: Sequence[Any], names: Sequence[str]) -> pa.RecordBatch | None:
    """The extra fields *names* of parsed *records*; null where one is missing."""
    if not names:
        return None
    return pa.RecordBatch.from_arrays(
        [column([record.get(name) for record in records]) for name in names], list(names)
    )


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    if value == "":
        return "empty"
    kinds = {str: "a string", bool: "true or false", int: "a number", float: "a number", list: "a list"}
    return kinds.get(type(value), "an object")
