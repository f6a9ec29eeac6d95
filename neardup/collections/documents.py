"""Documents as a program or a file gives them, one by one; what is not one is told with its reason.

A mapping holds a text under `text`, or an image under `picture` (its bytes, or the path of its file). All its
other values are fields, which come back with every match.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from neardup.collections.kinds import FACTS, Kept, kept_image, kept_text, kept_thumbnail
from neardup.contents import content_for
from neardup.errors import InvalidType, shown
from neardup.images.thumbs import BadImage
from neardup.sources import Reading, open_source
from neardup.types import Bad, Batch, Document

# Longer ids are not stored.
MOST: Final = 4096
TEXT, PICTURE, ID = "text", "picture", "id"


@dataclass(frozen=True, slots=True)
class Given:
    """A document as it came, or why it is none."""

    id: str
    kept: Kept | None = None
    fields: Mapping[str, Any] = field(default_factory=dict)
    fault: str | None = None


class Unfit(ValueError):
    """Something that is not a document; the message is the reason."""


def documents_of(data: Any, *, fields: Iterable[str] = ()) -> Iterator[Given]:
    """The documents of *data*: mappings, (id, text) pairs, or whatever `dedupe` reads.

    Of files and tables the named *fields* come along, of mappings all.
    """
    if isinstance(data, Mapping):
        raise InvalidType(f"documents must be several, not one {type(data).__name__}; pass [document]")
    if isinstance(data, (list, tuple)) and not all(isinstance(one, (str, os.PathLike)) for one in data):
        for number, item in enumerate(data):
            yield _given(item, number)
        return
    if (
        isinstance(data, Iterable)
        and not isinstance(data, (str, bytes, os.PathLike, list, tuple))
        and not (hasattr(data, "__arrow_c_stream__") or hasattr(data, "iloc") or hasattr(data, "schema"))
    ):
        for number, item in enumerate(data):
            yield _given(item, number)
        return
    yield from _read(data, tuple(fields))


def kept_of(item: Mapping[str, Any]) -> Kept:
    """What a mapping holds: its text or its picture."""
    if (TEXT in item) == (PICTURE in item):
        raise Unfit("has both 'text' and 'picture'" if TEXT in item else "has neither 'text' nor 'picture'")
    if TEXT in item:
        if not isinstance(item[TEXT], str):
            raise Unfit(f"its 'text' is {type(item[TEXT]).__name__}, not text")
        return kept_text(item[TEXT])
    return picture(item[PICTURE])


def picture(given: Any) -> Kept:
    """An image by its bytes, or by the path of its file."""
    if isinstance(given, (str, os.PathLike)):
        path = os.fspath(given)
        try:
            with open(path, "rb") as file:
                given = file.read()
        except (OSError, ValueError) as error:
            raise Unfit(
                f"the picture {shown(path)} cannot be read: {getattr(error, 'strerror', error)}"
            ) from None
    if isinstance(given, (bytearray, memoryview)):
        given = bytes(given)
    if not isinstance(given, bytes):
        raise Unfit(f"its 'picture' is {type(given).__name__}, not the bytes or the path of an image")
    try:
        return kept_image(given)
    except BadImage as error:
        raise Unfit(f"its picture {error}") from None


def _given(item: Any, number: int) -> Given:
    if isinstance(item, Given):  # read before, to be stored some at a time
        return item
    name = str(number)
    try:
        if isinstance(item, Document):
            item = {ID: item.id, TEXT: item.content, **item.fields}
        elif isinstance(item, tuple) and len(item) == 2:
            item = {ID: item[0], TEXT: item[1]}
        if not isinstance(item, Mapping):
            raise Unfit(f"is {type(item).__name__}, not a mapping with 'id' and 'text' or 'picture'")
        name = check_id(item.get(ID))
        rest = {key: value for key, value in item.items() if key not in (ID, TEXT, PICTURE)}
        return Given(name, kept_of(item), checked_fields(rest))
    except Unfit as fault:
        return Given(name, fault=str(fault))


def check_id(value: Any) -> str:
    """The id that *value* is."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 64:
        return str(value)
    if not isinstance(value, str) or not value:
        raise Unfit(f"its 'id' is {shown(value)}, not text or an integer")
    if len(value) > MOST:
        raise Unfit(f"its 'id' has {len(value):,} characters; at most {MOST:,} are stored")
    if "\0" in value or any("\ud800" <= letter <= "\udfff" for letter in value):
        raise Unfit(f"its 'id' {shown(value)} holds a character that cannot be stored")
    return str(value)


def checked_fields(fields: Mapping[Any, Any]) -> dict[str, Any]:
    """*fields* as JSON has them."""
    try:
        said = json.dumps(fields, ensure_ascii=True, allow_nan=False, default=_plain)
        found: dict[str, Any] = json.loads(said)
    except (TypeError, ValueError, RecursionError, OverflowError) as error:
        raise Unfit(f"its fields cannot be stored as JSON: {shown(str(error), 100)}") from None
    return found


def _plain(value: Any) -> Any:
    """What JSON has instead of *value*: dates as text, numbers of numpy as numbers."""
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if hasattr(value, "item"):
        return value.item()
    raise TypeError(f"{type(value).__name__} is not in JSON")


# --- files and tables ------------------------------------------------------------------------------------


def _read(data: Any, fields: tuple[str, ...]) -> Iterator[Given]:
    bad: list[Bad] = []
    content = content_for(data)
    wanted = tuple(content.fields) if content.name == "image" else fields
    source = open_source(data, Reading(format=content.format), fields=wanted, on_bad=bad.append)
    for batch in source:
        yield from map(_of_bad, bad)
        bad.clear()
        yield from _of_batch(batch)
    yield from map(_of_bad, bad)


def _of_bad(bad: Bad) -> Given:
    place = bad.file if bad.line is None else f"{bad.file}:{bad.line}"
    return Given(place, fault=bad.reason)


def _of_batch(batch: Batch) -> Iterator[Given]:
    rows = batch.fields.to_pylist() if batch.fields is not None else [{}] * len(batch)
    ids, texts = batch.ids.to_pylist(), batch.texts.to_pylist()
    for row, (name, text, fields) in enumerate(zip(ids, texts, rows, strict=True)):
        try:
            check_id(name)
            if batch.images is None:
                yield Given(name, kept_text(text), checked_fields(fields))
            else:
                kept = kept_thumbnail(batch.images[row].tobytes(), text, fields)
                yield Given(name, kept, {key: value for key, value in fields.items() if key not in FACTS})
        except Unfit as fault:
            yield Given(name, fault=str(fault))
