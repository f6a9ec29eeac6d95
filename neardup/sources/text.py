"""Text files: each is one document, its path is its id.

UTF-8, or UTF-16 with a byte order mark. Files of another kind (images, programs, archives) are
skipped and listed; anything else that is not text is bad.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import groupby
from typing import Final

from neardup.sources.files import File
from neardup.sources.limits import InputLimits, size
from neardup.sources.options import Request
from neardup.sources.reading import Report, Unfit, batch_of
from neardup.sources.streams import Broken
from neardup.types import Bad, Batch

_MARKS: Final = {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16", codecs.BOM_UTF8: "utf-8-sig"}

_PAGES: Final = (".html", ".htm", ".xhtml")


def read(file: File, request: Request, bad: Report) -> Iterator[Batch]:
    """The one document of *file*."""
    return read_all([file], request, bad)


def read_all(files: Iterable[File], request: Request, bad: Report) -> Iterator[Batch]:
    """The documents of many files, in batches. A document's place is its file's number below the root."""
    for root, found in groupby(files, key=lambda file: file.root):
        ids: list[str] = []
        texts: list[str] = []
        places: list[int] = []
        count = 0
        for number, file in enumerate(found, 1):
            try:
                text = content(file, request)
            except Broken as error:
                bad(Bad(file.name, None, None, error.reason))
                continue
            except Unfit as fault:
                bad(Bad(file.name, 1, 0, str(fault), file.head()))
                continue
            ids.append(file.id)
            texts.append(text)
            places.append(number)
            count += len(text)
            if count >= request.block or len(ids) >= 4096:
                yield replace(batch_of(ids, texts, places, file=root), format="text")
                ids, texts, places, count = [], [], [], 0
        if ids:
            yield replace(batch_of(ids, texts, places, file=root), format="text")


def content(file: File, request: Request) -> str:
    """The text of *file*; of HTML the main text."""
    data = _bytes(file, request.limits)
    if request.html and (data[:256].lstrip().startswith(b"<") or file.suffix in _PAGES):
        from neardup.sources.html import main_text

        return main_text(data)
    return decoded(data)


def decoded(data: bytes) -> str:
    """*data* as text, without its byte order mark."""
    encoding = next((name for mark, name in _MARKS.items() if data.startswith(mark)), "utf-8")
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        raise Unfit(
            f"is not {encoding.removesuffix('-sig').upper()} text: byte {error.start} is wrong"
        ) from None


def _bytes(file: File, limits: InputLimits) -> bytes:
    if file.size > limits.text and not file.named_compression:
        raise Broken(f"is {size(file.size)}; the limit is {size(limits.text)} for a text file")
    pieces, count = [], 0
    with file.chunks(limits) as chunks:
        for piece in chunks:
            pieces.append(piece)
            count += len(piece)
            if count > limits.text:
                raise Broken(f"is over the limit of {size(limits.text)} for a text file")
    return b"".join(pieces)
