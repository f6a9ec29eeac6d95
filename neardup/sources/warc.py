"""WARC: the main text of every HTML response. The id is the record's target address and date.

The fields are the headers of the record; its address and date are also called `url` and `date`.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any, Final

from neardup.errors import unusable
from neardup.sources.files import File
from neardup.sources.html import main_text
from neardup.sources.limits import size
from neardup.sources.options import Request
from neardup.sources.reading import Report, Unfit, batch_of, fields_of
from neardup.sources.streams import Broken
from neardup.types import Bad, Batch

_PAGES: Final = ("text/html", "application/xhtml+xml")
# Headers that are also called as such fields are elsewhere.
_ALSO: Final = {"url": "WARC-Target-URI", "date": "WARC-Date"}
# Room for the head of a record, and for what is read ahead.
HEADERS: Final = 8 << 20


def read(file: File, request: Request, bad: Report) -> Iterator[Batch]:
    """The documents of *file*; a response that is none goes to *bad*."""
    ids: list[str] = []
    texts: list[str] = []
    places: list[int] = []
    headers: list[dict[str, str]] = []
    raw: list[bytes] = []
    count = 0

    def batch() -> Batch:
        fields, records = fields_of(headers, request.fields), raw if request.raw else None
        return batch_of(ids, texts, places, file=file.name, fields=fields, raw=records)

    with file.chunks(request.limits, request.block) as chunks:
        data = _Bytes(chunks, request.limits.line + HEADERS if request.raw else 0)
        for number, record in enumerate(_records(data), 1):
            # Of a repeated header the first counts, as for every reader of the record.
            fields = dict(reversed(list(record.headers.items())))
            fields = {name: fields[header] for name, header in _ALSO.items() if header in fields} | fields
            try:
                page = _page(record, fields, request)
            except Unfit as fault:
                bad(Bad(file.name, number, record.stream_pos, str(fault)))
                continue
            if page is None:
                continue
            ids.append(_id(fields))
            texts.append(page)
            places.append(number)
            headers.append(fields)
            count += len(page)
            if request.raw:
                raw.append(data.record(record.stream_pos, _length(fields)))
                count += len(raw[-1])
            if count >= request.block:
                yield batch()
                ids, texts, places, headers, raw, count = [], [], [], [], [], 0
    if ids:
        yield batch()


def _records(file: _Bytes) -> Iterator[Any]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # fastwarc warns of itself when imported
            from fastwarc import stream_io
            from fastwarc.warc import ArchiveIterator, WarcRecordType
    except ImportError as error:
        raise unusable("WARC", "fastwarc", "warc", error) from None
    # Before version 2 it has an error of its own; since then OSError, which is caught anyway.
    damaged: type[Exception] = getattr(stream_io, "FastWARCError", OSError)
    try:
        yield from ArchiveIterator(file, record_types=WarcRecordType.response, parse_http=True)
    except (damaged, OSError) as error:
        raise file.failed or file.broken or Broken(f"is damaged WARC: {error}") from None
    if file.broken is not None:
        raise file.broken


def _page(record: Any, fields: dict[str, str], request: Request) -> str | None:
    """The main text of an HTML response; None for another kind of response."""
    if not record.is_http or (record.http_content_type or "").lower() not in _PAGES:
        return None
    limit = request.limits.line
    length = record.content_length
    data = b"" if _length(fields) > limit else record.reader.read(limit + 1)
    if max(len(data), _length(fields)) > limit:
        raise Unfit(f"is over the limit of {size(limit)} per record")
    if len(data) < length:
        raise Unfit(f"is cut off: {len(data):,} of {length:,} bytes are there")
    return main_text(data)


def _length(fields: dict[str, str]) -> int:
    """The bytes of a record behind its head."""
    length = fields.get("Content-Length", "").strip()
    return int(length) if length.isascii() and length.isdecimal() else 0


def _id(headers: dict[str, str]) -> str:
    address, date = headers.get("WARC-Target-URI"), headers.get("WARC-Date")
    return f"{address} {date}" if address and date else headers.get("WARC-Record-ID", "")


class _Bytes:
    """Chunks as the file that fastwarc reads from; it ends where the chunks break, and remembers why.

    The last *memory* bytes that were read are kept, for `record`.
    """

    def __init__(self, chunks: Iterator[bytes], memory: int) -> None:
        self._chunks, self._held, self._at = chunks, b"", 0
        self._memory, self._last, self._begin = memory, bytearray(), 0
        self.broken: Broken | None = None
        self.failed: OSError | None = None

    def read(self, length: int = -1) -> bytes:
        if self._at >= len(self._held):
            try:
                self._held, self._at = next(self._chunks, b""), 0
            except Broken as error:
                self._held, self._at, self.broken = b"", 0, error
            except OSError as error:
                self.failed = error
                raise
        piece = self._held[self._at : len(self._held) if length < 0 else self._at + length]
        self._at += len(piece)
        if self._memory:
            self._last += piece
            self._forget(self._begin + len(self._last) - self._memory)
        return piece

    def record(self, begin: int, length: int) -> bytes:
        """The record at *begin*, which has *length* bytes behind its head; what came before is forgotten."""
        self._forget(begin)
        head = self._last.index(b"\r\n\r\n") + 4
        return bytes(self._last[: head + length]) + b"\r\n\r\n"

    def _forget(self, begin: int) -> None:
        if begin > self._begin:
            del self._last[: begin - self._begin]
            self._begin = begin

    def tell(self) -> int:
        return 0

    def seek(self, offset: int, whence: int = 0) -> int:
        raise OSError("a stream cannot be read backwards")

    def close(self) -> None:
        pass
