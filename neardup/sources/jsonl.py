"""JSON Lines: one object a line.

Blank lines are no records. A line that is not one JSON object with the wanted fields is bad and
stands alone: no line can spoil its neighbours. What orjson refuses is refused (NaN, lone
surrogates, invalid UTF-8, a second value on the line); a wanted key that stands twice is, too.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import chain
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
    records = _records(block, lines, request)
    texts, names, rows = [], [], []
    for row, record in enumerate(records):
        if record is _BLANK:
            continue
        try:
            if type(record) is Unfit:
                raise record
            text = checked_text(record, request.text_field)
            names.append(ids.of(record.get(request.id_name), block.line + row))
            texts.append(text)
            rows.append(row)
        except Unfit as fault:
            line, offset = block.place(row, lines)
            bad(Bad(file.name, line, offset, str(fault), lines[row]))
    if not rows:
        return None
    return batch_of(
        names,
        texts,
        [block.line + row for row in rows],
        file=file.name,
        fields=fields_of([records[row] for row in rows], request.fields),
        raw=[lines[row] + b"\n" for row in rows] if request.raw else None,
    )


def _records(block: Block, lines: list[bytes], request: Request) -> list[Any]:
    """The parsed lines: a value, `_BLANK`, or the `Unfit` that says why there is none."""
    try:
        records = list(map(orjson.loads, lines))
    except orjson.JSONDecodeError:
        records = [_parsed(line) for line in lines]
    for row in _suspects(block, lines, records, request):
        if type(records[row]) is dict and (fault := _fault(lines[row], records[row], request)):
            records[row] = Unfit(fault)
    return records


def _parsed(line: bytes) -> Any:
    if not line.strip(b" \t\r"):
        return _BLANK
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError as error:
        return Unfit(f"is not JSON: {error}")


def _suspects(block: Block, lines: list[bytes], records: list[Any], request: Request) -> Iterator[int]:
    """Rows that may be nested too deep or hold a key twice: a cheap look that clears nearly all."""
    deep = (row for row, record in enumerate(records) if type(record) is dict and _nested(record))
    twice: list[int] = []
    for name, key in _keys(request).items():
        if block.data.count(key) > sum(type(record) is dict and name in record for record in records):
            twice += [row for row, line in enumerate(lines) if line.count(key) > 1]
    return chain(deep, twice)


def _nested(record: dict[str, Any]) -> bool:
    return any(type(value) is dict or type(value) is list for value in record.values())


def _keys(request: Request) -> dict[str, bytes]:
    return {name: orjson.dumps(name) for name in (request.text_field, request.id_name)}


def _fault(line: bytes, record: dict[str, Any], request: Request) -> str | None:
    if _depth_over(record, request.limits.depth):
        return f"is nested more than {request.limits.depth} levels deep"
    for name, key in _keys(request).items():
        if line.count(key) > 1 and _top_count(line, name) > 1:
            return f"has the key {name!r} twice"
    return None


def _depth_over(value: Any, limit: int) -> bool:
    level = [value]
    for _ in range(limit):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if type(outer) is dict else outer)
            if type(inner) is dict or type(inner) is list
        ]
        if not level:
            return False
    return True


def _top_count(line: bytes, key: str) -> int:
    """How often *key* stands in the outermost object of *line*, which orjson has parsed."""
    pairs: Any = json.loads(line, object_pairs_hook=list, parse_int=str, parse_float=str)
    return sum(name == key for name, _ in pairs)
