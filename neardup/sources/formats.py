"""Formats: the kinds of input, and how to recognise one by names and first bytes.

To add one, write its reader and add its row here.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Final

from neardup.sources.files import STDIN, File
from neardup.sources.streams import SUFFIXES, Broken, compression


@dataclass(frozen=True, slots=True)
class Format:
    """A kind of input: its file extensions, its first bytes, and the module that reads it."""

    name: str
    suffixes: tuple[str, ...]
    module: str
    magic: bytes = b""
    whole: bool = False
    """Whether each file is one document."""
    fields: bool = True
    """Whether a document is a record of fields, of which one or several are its text."""


FORMATS: Final = {
    row.name: row
    for row in (
        Format("jsonl", (".jsonl", ".ndjson", ".json"), "jsonl"),
        Format("csv", (".csv", ".tsv", ".tab"), "delimited"),
        Format("parquet", (".parquet", ".pq"), "parquet", b"PAR1"),
        Format("arrow", (".arrow", ".arrows", ".feather", ".ipc"), "arrow", b"ARROW1"),
        Format("warc", (".warc",), "warc", b"WARC/", fields=False),
        Format("text", (), "text", whole=True, fields=False),
        Format(
            "image", (), "images", whole=True, fields=False
        ),  # on request only: among texts, images are skipped
    )
}

# What is skipped: first bytes, or file extensions, of files that hold no text.
_FOREIGN: Final = {
    b"\x7fELF": "a program",
    b"MZ": "a program",
    b"%PDF-": "a PDF",
    b"PK\x03\x04": "a zip archive",
    b"7z\xbc\xaf\x27\x1c": "a 7z archive",
    b"Rar!": "a rar archive",
    b"SQLite format 3\x00": "a database",
    b"\xff\xd8\xff": "an image",
    b"\x89PNG": "an image",
    b"GIF8": "an image",
    b"II*\x00": "an image",
    b"MM\x00*": "an image",
}
_MAGIC: Final = (b"\xff\xd8\xff", b"\x89PNG", b"GIF8", b"II*\x00", b"MM\x00*", b"BM")
_IMAGES: Final = (
    ".jpg",
    ".jpeg",
    ".png",
    ".gif",
    ".bmp",
    ".webp",
    ".tif",
    ".tiff",
    ".avif",
    ".heic",
    ".heif",
    ".svg",
)


_TEXT_FILES: Final = (".txt", ".md", ".html", ".htm")
# The extensions of files that are read here.
_KNOWN: Final = (*(one for row in FORMATS.values() for one in row.suffixes), *_IMAGES, *_TEXT_FILES)
ENDINGS: Final = re.compile(f"({'|'.join(map(re.escape, _KNOWN))})" r"(\.\w+)?$", re.IGNORECASE)


def is_image(file: File, head: bytes = b"") -> bool:
    """Whether its name, or its first bytes, show that it is an image."""
    magic = head.startswith(_MAGIC) or head[8:12] == b"WEBP" or head[4:12] in (b"ftypavif", b"ftypheic")
    return magic or (file.suffix in _IMAGES and file.suffix != ".svg")


def is_file_name(text: str) -> bool:
    """Whether *text*, if no such file is there, is more likely the name of one than a text.

    >>> [is_file_name(text) for text in ("nosuch.jpg", "my photo.jpg", "a/b.txt", "a text", "End. Of it.")]
    [True, True, True, False, False]
    """
    if len(text) > 1000 or "\n" in text:
        return False
    suffix = File(text).suffix
    if suffix in _IMAGES:
        return True
    known = {*SUFFIXES, *_TEXT_FILES, *(ending for row in FORMATS.values() for ending in row.suffixes)}
    return len(text.split()) == 1 and (suffix in known or os.path.splitext(text)[1] in known)


def format_of(file: File, asked: str | None = None) -> tuple[str | None, str]:
    """The name of the format of *file*; None and the reason if it holds no text."""
    if asked is not None and asked != "image":
        return asked, ""
    head = file.head()
    if asked == "image":
        if file.suffix == ".svg":
            return None, "is a drawing"
        return ("image", "") if is_image(file, head) else (None, "is not an image")
    packed = compression(head) is not None
    if not packed:
        for row in FORMATS.values():
            if row.magic and head.startswith(row.magic):
                return row.name, ""
        for magic, what in _FOREIGN.items():
            if head.startswith(magic):
                return None, f"is {what}"
    if file.suffix in _IMAGES:
        return None, "is a drawing" if file.suffix == ".svg" else "is an image"
    for row in FORMATS.values():
        if file.suffix in row.suffixes:
            if file.suffix == ".json" and head.lstrip()[:1] == b"[":
                raise Broken("is a JSON array; write one object per line: jq -c '.[]'")
            return row.name, ""
    if file.path == STDIN or file.is_stream or (file.is_remote and not file.suffix):
        return "jsonl", ""
    return "text", ""
