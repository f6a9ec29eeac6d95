"""WARC: the main text of every HTML response. The id is the record's target address and date."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

from neardup.errors import MissingExtra
from neardup.sources.files import File
from neardup.sources.html import main_text
from neardup.sources.limits import size
from neardup.sources.reading import Report, Request, Unfit, batch_of, fields_of
from neardup.sources.streams import BLOCK, Broken
from neardup.types import Bad, Batch

_PAGES = ("text/html", "application/xhtml+xml")


def read(file: File, request: Request, bad: Report) -> Iterator[Batch]:
    """The documents of *file*; a response that is none goes to *bad*."""
    ids: list[str] = []
    texts: list[str] = []
    places: list[int] = []
    headers: list[dict[str, str]] = []
    count = 0
    with file.chunks(request.limits) as chunks:
        for number, record in enumerate(_records(chunks), 1):
            try:
                page = _page(record, request)
            except Unfit as fault:
                bad(Bad(file.name, number, record.stream_pos, str(fault)))
                continue
            if page is None:
                continue
            fields = dict(record.headers.items())
            ids.append(_id(fields))
            texts.append(page)
            places.append(number)
            headers.append(fields)
            count += len(page)
            if count >= BLOCK:
                yield batch_of(ids, texts, places, file=file.name, fields=fields_of(headers, request.fields))
                ids, texts, places, headers, count = [], [], [], [], 0
    if ids:
        yield batch_of(ids, texts, places, file=file.name, fields=fields_of(headers, request.fields))


def _records(chunks: Iterator[bytes]) -> Iterator[Any]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # fastwarc warns of itself when imported
            from fastwarc.stream_io import FastWARCError
            from fastwarc.warc import ArchiveIterator, WarcRecordType
    except ImportError:
        raise MissingExtra("WARC needs fastwarc; install it: pip install 'neardup[warc]'") from None
    file = _Bytes(chunks)
    try:
        yield from ArchiveIterator(file, record_types=WarcRecordType.response, parse_http=True)
    except FastWARCError as error:
        raise file.broken or Broken(f"is damaged WARC: {error}") from None
    if file.broken is not None:
        raise file.broken


def _page(record: Any, request: Request) -> str | None:
    """The main text of an HTML response; None for another kind of response."""
    if not record.is_http or (record.http_content_type or "").lower() not in _PAGES:
        return None
    data = record.reader.read(request.limits.line + 1)
    if len(data) > request.limits.line:
        raise Unfit(f"is over the limit of {size(request.limits.line)} a record")
    return main_text(data)


def _id(headers: dict[str, str]) -> str:
    address, date = headers.get("WARC-Target-URI"), headers.get("WARC-Date")
    return f"{address} {date}" if address and date else headers.get("WARC-Record-ID", "")


class _Bytes:
    """Chunks as the file that fastwarc reads from; it ends where the chunks break, and remembers why."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks, self._held, self._at = chunks, b"", 0
        self.broken: Broken | None = None

    def read(self, length: int = -1) -> bytes:
        if self._at >= len(self._held):
            try:
                self._held, self._at = next(self._chunks, b""), 0
            except Broken as error:
                self._held, self._at, self.broken = b"", 0, error
        piece = self._held[self._at : len(self._held) if length < 0 else self._at + length]
        self._at += len(piece)
        return piece

    def tell(self) -> int:
        return 0

    def seek(self, offset: int, whence: int = 0) -> int:
        raise OSError("a stream cannot be read backwards")

    def close(self) -> None:
        pass
