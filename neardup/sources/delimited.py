"""CSV and TSV: a header, then one record a row, with quotes as in RFC 4180.

A row with too few or too many cells, with bytes that are not UTF-8 or with broken quotes is bad
and only that one. A quote that is never closed takes the rest of the file with it.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from typing import Final

from neardup.sources.files import File
from neardup.sources.jsonl import too_long
from neardup.sources.limits import InputLimits, size
from neardup.sources.lines import HEAD, LongLine, blocks
from neardup.sources.options import Request
from neardup.sources.reading import Ids, Report, Unfit, batch_of, fields_of, within_limit
from neardup.sources.streams import Broken
from neardup.types import Bad, Batch

DELIMITERS: Final = ",;\t|"


class Lines:
    """Decoded lines for the csv module, remembering the bytes that the current record is made of."""

    def __init__(self, file: File, chunks: Iterator[bytes], limits: InputLimits, bad: Report) -> None:
        self._file, self._limits, self._bad = file, limits, bad
        self._blocks = blocks(chunks, limits=limits)
        self._ready: Iterator[bytes] = iter(())
        self.line, self.offset = 1, 0  # of the next line
        self.start, self.place = 1, 0  # of the current record
        self.raw: list[bytes] = []
        self._size = 0

    def begin(self) -> None:
        """Forget the last record; the next line begins another."""
        self.raw, self._size = [], 0
        self.start, self.place = self.line, self.offset

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = next(self._ready, None)
        while line is None:
            block = next(self._blocks)
            if isinstance(block, LongLine):
                if self.raw:
                    raise Broken(
                        "a quote is not closed within the limit of a record",
                        line=self.start,
                        offset=self.place,
                    )
                self._bad(too_long(self._file.name, block, self._limits))
                self.line, self.offset = block.line + 1, block.offset + block.length + 1
                self.begin()
                continue
            self._ready = iter(_split(block.data))
            self.line, self.offset = block.line, block.offset
            if not self.raw:
                self.begin()
            line = next(self._ready, None)
        self.raw.append(line)
        self.line, self.offset, self._size = self.line + 1, self.offset + len(line), self._size + len(line)
        if self._size > self._limits.line:
            reason = f"a record is over the limit of {size(self._limits.line)}: is a quote not closed?"
            raise Broken(reason, line=self.start, offset=self.place, raw=b"".join(self.raw)[:HEAD])
        return line.decode("utf-8", "surrogateescape")


def _split(data: bytes) -> list[bytes]:
    """Lines with their LF, split at LF only."""
    lines = [line + b"\n" for line in data.split(b"\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines


def read(file: File, request: Request, bad: Report) -> Iterator[Batch]:
    """The documents of *file*; a record that is none goes to *bad*."""
    # The module's own limit is one for the whole process; ours is the tighter one.
    csv.field_size_limit(max(csv.field_size_limit(), request.limits.line + 1))
    ids = Ids(file.id, request)
    with file.chunks(request.limits, request.block) as chunks:
        lines = Lines(file, chunks, request.limits, bad)
        header, delimiter = _header(lines, request)
        texts_at = [header.index(name) for name in request.text_names]
        id_at = header.index(request.id_name) if request.id_name in header else None
        line_end = b"\r\n" if lines.raw[-1].endswith(b"\r\n") else b"\n"
        rows = csv.reader(lines, delimiter=delimiter, strict=True)
        names, texts, places, records, raw, offsets, count = [], [], [], [], [], [], 0
        while True:
            lines.begin()
            try:
                cells = next(rows)
                if not cells:
                    continue
                _check(cells, header)
                name = ids.of(None if id_at is None else cells[id_at] or None, lines.start)
                text = within_limit([cells[at] for at in texts_at], request)
            except StopIteration:
                break
            except (csv.Error, Unfit) as error:
                data = b"".join(lines.raw)
                if "unexpected end of data" in str(error):
                    error = Unfit("a quote is not closed: the rest of the file is one record")
                bad(Bad(file.name, lines.start, lines.place, str(error), data[:HEAD], len(data)))
                continue
            texts.append(text)
            names.append(name)
            places.append(lines.start)
            if request.fields:
                records.append(dict(zip(header, cells, strict=True)))
            row = b"".join(lines.raw)
            raw.append(row)
            offsets.append(lines.place)
            count += len(row)
            if count >= request.block or len(names) >= 65536:
                yield _batch(file, request, names, texts, places, records, raw, offsets, line_end)
                names, texts, places, records, raw, offsets, count = [], [], [], [], [], [], 0
        if names:
            yield _batch(file, request, names, texts, places, records, raw, offsets, line_end)


def _ended(row: bytes, line_end: bytes) -> bytes:
    """The bytes of a record; with a *line_end* also where the file ends without one."""
    return row if row.endswith(b"\n") else row.removesuffix(b"\r") + line_end


def header_line(file: File, request: Request) -> bytes:
    """The bytes of the header of *file*, for a sink that copies it."""
    with file.chunks(request.limits, request.block) as chunks:
        lines = Lines(file, chunks, request.limits, lambda _: None)
        _header(lines, request)
        return b"".join(lines.raw)


def _header(lines: Lines, request: Request) -> tuple[list[str], str]:
    """The column names and the delimiter: the first that gives the columns of the text."""
    found: list[str] = []
    wanted = set(request.text_names)
    try:
        first = next(lines, None)
    except Broken as error:
        raise Broken(error.reason) from None
    if first is None:
        raise Broken("is empty: no header row")
    for delimiter in DELIMITERS:
        try:
            cells = next(csv.reader([first], delimiter=delimiter, strict=True), [])
        except csv.Error:
            continue
        if wanted <= set(cells):
            if request.id_field is not None and request.id_field not in cells:
                raise Broken(f"has no column {request.id_field!r}; columns: {_some(cells)}")
            if len(set(cells)) < len(cells):
                raise Broken(f"has two columns of one name: {_some(cells)}")
            return cells, delimiter
        if not found or len(wanted.intersection(cells)) > len(wanted.intersection(found)):
            found = cells
    missing = [name for name in request.text_names if name not in found]
    raise Broken(f"has no column {missing[0]!r} in its first row: {_some(found)}")


def _some(cells: list[str]) -> str:
    return ", ".join(repr(cell[:40]) for cell in cells[:8])


def _check(cells: list[str], header: list[str]) -> None:
    if len(cells) != len(header):
        raise Unfit(f"has {len(cells)} cells; the header has {len(header)}")
    for cell in cells:
        if not cell.isascii():
            try:
                cell.encode()
            except UnicodeEncodeError:
                raise Unfit("is not UTF-8") from None


def _batch(
    file: File,
    request: Request,
    names: list[str],
    texts: list[str],
    places: list[int],
    records: list[dict[str, str]],
    raw: list[bytes],
    offsets: list[int],
    line_end: bytes,
) -> Batch:
    return batch_of(
        names,
        texts,
        places,
        file=file.name,
        fields=fields_of(records, request.fields),
        raw=[_ended(row, line_end) for row in raw] if request.raw else None,
        records=lambda rows: ((offsets[row], raw[row]) for row in rows),
    )
