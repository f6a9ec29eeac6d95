"""JSON Lines: one object a line.

Blank lines are no records. A line that is not one JSON object with the wanted fields is bad and
stands alone: no line can spoil its neighbours. What orjson refuses is refused (NaN, lone
surrogates, invalid UTF-8, a second value on the line); a wanted key that stands twice is, too.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from typing import Any, Final

import orjson

from neardup.sources.files import File
from neardup.sources.limits import Limits, size
from neardup.sources.lines import HEAD, Block, LongLine, blocks
from neardup.sources.reading import Ids, Report, Request, Unfit, batch_of, checked_text, fields_of
from neardup.types import Bad, Batch

_BLANK: Final = object()


def read(file: File, request: Request, bad: Report) -> Iterator[Batch]:
    """The documents of *file*; a record that is none goes to *bad*."""
    ids = Ids(file.id, request)
    with file.chunks(request.limits) as chunks:
        for block in blocks(chunks, limits=request.limits):
            if isinstance(block, LongLine):
                bad(too_long(file.name, block, request.limits))
            elif batch := _documents(block, file, request, ids, bad):
                yield batch


def too_long(name: str, line: LongLine, limits: Limits) -> Bad:
    """What is reported of a line over the limit."""
    reason = f"is {size(line.length)} long; the limit is {size(limits.line)} a line"
    return Bad(name, line.line, line.offset, reason, line.head[:HEAD], line.length)


def _documents(block: Block, file: File, request: Request, ids: Ids, bad: Report) -> Batch | None:
    lines = block.lines()
    try:
        records = list(map(orjson.loads, lines))
    except orjson.JSONDecodeError:
        records = [_parsed(line) for line in lines]
    texts = _clean(records, request)
    names: list[str] = []
    rows = list(range(len(lines)))
    if texts is None or _suspect(lines, records, texts, request):
        texts, rows = [], []
        for row, record in enumerate(records):
            if record is _BLANK:
                continue
            try:
                text = _checked(lines[row], record, request)
                names.append(ids.of(record.get(request.id_name), block.line + row))
                texts.append(text)
                rows.append(row)
            except Unfit as fault:
                line, offset = block.place(row, lines)
                bad(Bad(file.name, line, offset, str(fault), lines[row]))
    else:
        ids.note()
        names = [record[request.id_name] for record in records]
    if not texts:
        return None
    return batch_of(
        names,
        texts,
        [block.line + row for row in rows],
        file=file.name,
        fields=fields_of([records[row] for row in rows], request.fields),
        raw=[lines[row] + b"\n" for row in rows] if request.raw else None,
    )


def _parsed(line: bytes) -> Any:
    """The value of *line*, `_BLANK`, or the `Unfit` that says why there is none."""
    if not line.strip(b" \t\r"):
        return _BLANK
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError as error:
        return Unfit(f"is not JSON: {error}")


def _clean(records: list[Any], request: Request) -> list[str] | None:
    """The texts, if every record is an object with a text and an id of its own: the case to be fast in."""
    if set(map(type, records)) != {dict}:
        return None
    texts = [record.get(request.text_field) for record in records]
    names = [record.get(request.id_name) for record in records]
    return texts if set(map(type, texts)) == set(map(type, names)) == {str} and all(names) else None


def _suspect(lines: list[bytes], records: list[Any], texts: list[str], request: Request) -> bool:
    """Whether a record may be nested too deep or have a key twice: a cheap look that clears nearly all."""
    if any(_depth_over(record, request.limits.depth) for record in records):
        return True
    return any(_may_repeat(line, text, request) for line, text in zip(lines, texts, strict=True))


def _may_repeat(line: bytes, text: str, request: Request) -> bool:
    """Whether a wanted key may stand in *line* twice, found without a look into the text.

    The last of equal keys wins, so *text* follows it, in at least one byte a character: a key that
    wins over an earlier one stands before the last `len(text)` bytes.
    """
    key, other = _key(request.text_field), _key(request.id_name)
    first = line.find(key)
    if first < 0 or line.find(key, first + 1, len(line) - len(text)) >= 0:
        return True
    return line.count(other, 0, first) + line.count(other, first + len(key) + len(text)) > 1


@cache
def _key(name: str) -> bytes:
    return orjson.dumps(name)


def _checked(line: bytes, record: Any, request: Request) -> str:
    """The text of *record*, parsed from *line*."""
    if isinstance(record, Unfit):
        raise record
    text = checked_text(record, request.text_field)
    if _depth_over(record, request.limits.depth):
        raise Unfit(f"is nested more than {request.limits.depth} levels deep")
    if _may_repeat(line, text, request):
        pairs: Any = json.loads(line, object_pairs_hook=list, parse_int=str, parse_float=str)
        keys = [key for key, _ in pairs]
        for name in (request.text_field, request.id_name):
            if keys.count(name) > 1:
                raise Unfit(f"has the key {name!r} twice")
    return text


def _depth_over(value: Any, limit: int) -> bool:
    level = [inner for inner in value.values() if type(inner) is dict or type(inner) is list]
    for _ in range(limit - 1):
        if not level:
            return False
        level = [
            inner
            for outer in level
            for inner in (outer.values() if type(outer) is dict else outer)
            if type(inner) is dict or type(inner) is list
        ]
    return bool(level)
