"""JSON Lines: one object per line.

Blank lines are not records. A line that is not one JSON object with the wanted fields is bad,
and only that line: none can spoil its neighbours. What orjson refuses is refused (NaN, lone
surrogates, invalid UTF-8, a second value on the line); a wanted key that occurs twice is, too.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa

from neardup import _native
from neardup.ahead import begun_ahead
from neardup.sources.files import File
from neardup.sources.limits import InputLimits, size
from neardup.sources.lines import HEAD, Block, LongLine, blocks
from neardup.sources.options import Request
from neardup.sources.reading import Ids, Report, Unfit, batch_of, checked_text, fields_of, lacking
from neardup.sources.text_fields import BETWEEN
from neardup.types import Bad, Batch

_BLANK: Final = object()
_NESTS: Final = frozenset((dict, list))
_SHORT: Final = 512  # below this many bytes per line, keys are counted in the whole block at once


class _Fault(str):
    """Why a line is not a document. Not an exception: keeping one keeps its frame, with all the records."""


def read(file: File, request: Request, bad: Report) -> Iterator[Batch]:
    """The documents of *file*; a record that is none goes to *bad*."""
    ids = Ids(file.id, request)
    names, limit = request.text_names, request.limits.line

    def look(block: Block | LongLine) -> Any:
        """The records that the core finds in a block, if it has no doubt."""
        if isinstance(block, LongLine) or request.fields:
            return None
        if len(names) > 1:
            return _native.read_jsonl_fields(block.data, names, request.id_name, BETWEEN, limit)
        return _native.read_jsonl(block.data, names[0], request.id_name)

    with (
        file.chunks(request.limits, request.block) as chunks,
        closing(begun_ahead(blocks(chunks, limits=request.limits), look)) as looked_at,
    ):
        for block, found in looked_at:
            if isinstance(block, LongLine):
                bad(too_long(file.name, block, request.limits))
            elif (batch := _plain(block, found, file, request, ids)) or (
                batch := _documents(block, file, request, ids, bad)
            ):
                yield batch


def too_long(name: str, line: LongLine, limits: InputLimits) -> Bad:
    """What is reported of a line over the limit."""
    reason = f"is {size(line.length)} long; the limit is {size(limits.line)} per line"
    return Bad(name, line.line, line.offset, reason, line.head[:HEAD], line.length)


def _documents(block: Block, file: File, request: Request, ids: Ids, bad: Report) -> Batch | None:
    lines = block.lines()
    try:
        records = list(map(orjson.loads, lines))
    except orjson.JSONDecodeError:
        records = [_parsed(line) for line in lines]
    faults = dict(_faults(block, lines, records, request))
    rows = [row for row, record in enumerate(records) if record is not _BLANK and row not in faults]
    names = [records[row].get(request.id_name) for row in rows]
    kinds = set(map(type, names))
    if float in kinds:
        names = [_exact(name, lines[row], request) for name, row in zip(names, rows, strict=True)]
    if kinds != {str} or not all(names):
        names, rows = _named(names, rows, block.line, ids, faults)
    elif rows:
        ids.note()
    offsets = block.offsets() if faults else []
    for row in sorted(faults):
        bad(Bad(file.name, block.line + row, offsets[row], faults[row], lines[row]))
    if not rows:
        return None
    found = [records[row] for row in rows]
    texts = request.text_names
    return batch_of(
        names,
        [record[texts[0]] for record in found]
        if len(texts) == 1
        else [checked_text(record, request) for record in found],
        [block.line + row for row in rows],
        file=file.name,
        fields=fields_of(found, request.fields),
        raw=[lines[row] + b"\n" for row in rows] if request.raw else None,
        records=lambda some: _records(block, [rows[row] for row in some]),
        lacking=lacking(found, texts),
    )


def _plain(block: Block, found: Any, file: File, request: Request, ids: Ids) -> Batch | None:
    """The documents of *block*, if the core *found* all its lines to be documents."""
    if found is None:
        return None
    texts, named, ends = found
    places = np.arange(block.line, block.line + len(ends) - 1)
    names = ids.numbered(places) if named is None else _strings(*named)
    if names is None:
        return None
    if named is not None:
        ids.note()
    raw = None
    if request.raw:
        data = block.data if block.data.endswith(b"\n") else block.data + b"\n"
        ends[-1] = len(data)
        raw = pa.LargeBinaryArray.from_buffers(
            pa.large_binary(), len(places), [None, pa.py_buffer(ends), pa.py_buffer(data)]
        )
    return Batch(
        ids=names,
        texts=_strings(*texts),
        file=file.name,
        places=places,
        raw=raw,
        records=lambda rows: _records(block, rows),
    )


def _records(block: Block, rows: list[int]) -> Iterator[tuple[int, bytes]]:
    """The offsets and bytes of some lines of *block*."""
    lines, offsets = block.lines(), block.offsets()
    return ((offsets[row], lines[row]) for row in rows)


def _strings(offsets: npt.NDArray[np.int64], data: npt.NDArray[np.uint8]) -> pa.LargeStringArray:
    return pa.LargeStringArray.from_buffers(len(offsets) - 1, pa.py_buffer(offsets), pa.py_buffer(data))


def _named(
    values: list[Any], rows: list[int], first: int, ids: Ids, faults: dict[int, str]
) -> tuple[list[str], list[int]]:
    """The ids of *rows*, and the rows that have one; the others go to *faults*."""
    names, kept = [], []
    for value, row in zip(values, rows, strict=True):
        try:
            names.append(ids.of(value, first + row))
            kept.append(row)
        except Unfit as fault:
            faults[row] = str(fault)
    return names, kept


def _faults(
    block: Block, lines: list[bytes], records: list[Any], request: Request
) -> Iterator[tuple[int, str]]:
    """The rows that are not documents, and why: a close look at what a cheap one has not cleared."""
    several = len(request.text_names) > 1
    plain = set(map(type, records)) == {dict} and not several
    if not plain or set(map(type, [record.get(request.text_names[0]) for record in records])) != {str}:
        for row, record in enumerate(records):
            try:
                if record is not _BLANK:
                    checked_text(record, request)
            except Unfit as fault:
                yield row, record if type(record) is _Fault else str(fault)
    for row, record in enumerate(records):
        if type(record) is dict and _depth_over(record, request.limits.depth):
            yield row, f"is nested more than {request.limits.depth} levels deep"
    names = _wanted(request)
    if len(block.data) < _SHORT * len(lines) and all(
        block.data.count(orjson.dumps(name))
        <= sum(type(record) is dict and name in record for record in records)
        for name in names
    ):
        return
    for row, (line, record) in enumerate(zip(lines, records, strict=True)):
        if type(record) is dict and _may_repeat(line, record, request) and (name := _repeated(line, names)):
            yield row, f"has the key {name!r} twice"


def _parsed(line: bytes) -> Any:
    """The value of *line*, `_BLANK`, or the fault that says why there is none."""
    if not line.strip(b" \t\r"):
        return _BLANK
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError as error:
        return _Fault(f"is not JSON: {error}")


def _wanted(request: Request) -> tuple[str, ...]:
    """The keys that must not occur twice: those of the text, and that of the id."""
    return *dict.fromkeys(request.text_names), request.id_name


def _may_repeat(line: bytes, record: dict[str, Any], request: Request) -> bool:
    """Whether one of the wanted keys may occur twice in *line*, of which *record* was parsed."""
    if len(request.text_names) > 1:
        return any(line.count(orjson.dumps(name)) != (name in record) for name in _wanted(request))
    (name,) = request.text_names
    text = record.get(name)
    return type(text) is str and _may_hide(line, text, orjson.dumps(name), orjson.dumps(request.id_name))


def _may_hide(line: bytes, text: str, key: bytes, other: bytes) -> bool:
    """Whether the text's *key* or the id's, *other*, may occur in *line* twice, without a look into the text.

    The last of equal keys wins, so *text* follows it, in at least one byte a character: a key that
    wins over an earlier one is before the last `len(text)` bytes.
    """
    first = line.find(key)
    if first < 0 or line.find(key, first + 1, len(line) - len(text)) >= 0:
        return True
    before = line.find(other, 0, first)
    after = line.find(other, first + len(key) + len(text))
    if before >= 0:
        return after >= 0 or line.find(other, before + 1, first) >= 0
    return after >= 0 and line.find(other, after + 1) >= 0


def _exact(value: Any, line: bytes, request: Request) -> Any:
    """*value*, the id in *line*; an integer over 64 bits, which orjson makes a float, with all its digits."""
    return json.loads(line)[request.id_name] if type(value) is float else value


def _repeated(line: bytes, names: tuple[str, ...]) -> str | None:
    """The wanted key that occurs twice in the outermost object of *line*, which orjson could parse."""
    pairs: Any = json.loads(line, object_pairs_hook=list, parse_int=str, parse_float=str)
    keys = [key for key, _ in pairs]
    return next((name for name in names if keys.count(name) > 1), None)


def _depth_over(value: dict[str, Any], limit: int) -> bool:
    if _NESTS.isdisjoint(map(type, value.values())):
        return False
    level = [inner for inner in value.values() if type(inner) in _NESTS]
    for _ in range(limit - 1):
        if not level:
            return False
        level = [
            inner
            for outer in level
            for inner in (outer.values() if type(outer) is dict else outer)
            if type(inner) in _NESTS
        ]
    return bool(level)
