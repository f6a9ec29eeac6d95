"""Search: what in a collection is near one document, measured on what it really holds.

A collection is files and folders, or an index of their fingerprints. The index proposes; what it names is
then read and measured, or reported as not verified if it cannot be read.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from typing import Any, Final

from neardup.contents import TEXT, Content, Match, Wanted, content_for, content_of
from neardup.contents.image_search import search_image_index, search_images
from neardup.contents.matches import NOT_VERIFIED, nearest_first
from neardup.contents.text_search import SIMILARITY, search_text_index, search_texts
from neardup.errors import InvalidValue, Said, Setting, shown
from neardup.index import Index
from neardup.schemes import Scheme
from neardup.sources import FORMATS, Reading, Source, format_of, is_file_name, open_source
from neardup.sources.files import File

__all__ = [
    "NOT_VERIFIED",
    "SIMILARITY",
    "Match",
    "fill",
    "index_radius",
    "is_index",
    "reach",
    "search",
    "search_image_index",
    "search_images",
    "search_text_index",
    "search_texts",
]

_MAGIC: Final = b"NDINDEX\n"


def search(
    question: str,
    data: Sequence[str],
    *,
    scheme: str | None = None,
    ignore_colour: bool = False,
    rejected: bool = False,
    threads: int | None = None,
    reading: Reading | None = None,
) -> list[Match]:
    """Search *data* (files, folders, indexes) for a file, an image or a text, or for a text given itself.

    A text is near if `dedupe` would accept the two; with *rejected* the result also has those that are as
    similar but not accepted. *scheme* names the scheme of the indexes, if it is not a built-in one. With
    *ignore_colour* an image in clearly different colours is found as well. *reading* says where the documents
    of files have their text and id.
    """
    indexes = [path for path in data if is_index(path)]
    others = [path for path in data if path not in indexes]
    _check_question(question, others)
    content = _content(question)
    asked = content.question(question)
    wanted = Wanted(scheme, ignore_colour, threads, reading or Reading())
    found: list[Match] = []
    for path in indexes:
        found += content.search_index(asked, Index.load(path), wanted)
    if others:
        found += content.search(asked, others, wanted)
    return nearest_first([match for match in found if match.accepted or rejected or not match.verified])


def _content(question: str) -> Content:
    return content_for([question]) if os.path.isfile(question) else TEXT


def _check_question(question: str, folders: Sequence[str]) -> None:
    """Raise if *question* is meant as a file, but is not one that holds a single image or text."""
    if os.path.isdir(question):
        raise InvalidValue(f"{question!r} is a folder; name an image or a text file in it")
    if not os.path.isfile(question):
        if is_file_name(question) or (folders and content_for(list(folders)) != TEXT):
            raise InvalidValue(f"no file {shown(question, 300)}")
        return
    format = format_of(File(question))[0]
    if format is not None and not FORMATS[format].whole:
        raise InvalidValue(
            Said(
                f"{question!r} holds documents of its own ({format}), and search asks for one text or "
                f"image; to compare them all: neardup dedupe {shlex.quote(question)} ",
                Setting("protect"),
                " COLLECTION ",
                Setting("out"),
                " DIR",
            )
        )


def reach(question: str) -> str:
    """How near a document must be to *question* to be found, in words."""
    return _content(question).reach(question)


# --- indexes ---------------------------------------------------------------------------------------------


def is_index(path: str) -> bool:
    """Whether *path* is a file that `Index.save` wrote, by its first bytes."""
    if not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        return file.read(len(_MAGIC)) == _MAGIC


def index_radius(scheme: Scheme) -> int:
    """The radius that an index of documents of that scheme needs to answer `search`."""
    return content_of(scheme).index_radius(scheme)


def fill(
    index: Index, data: Any, scheme: Scheme, *, threads: int | None = None, reading: Reading | None = None
) -> Source:
    """Fingerprint the documents of *data* into *index*, in place of what it held for the same ids.

    For an image the whole is held and, if it has flat borders, also what is inside them.
    """
    content = content_of(scheme)
    source = open_source(data, reading or Reading(), format=content.format, unique=True)
    for batch in source:
        ids = batch.ids.to_pylist()
        index.remove(ids)
        rows, prints = content.indexed(batch, scheme, threads=threads)
        index.add([ids[row] for row in rows], prints, threads=threads)
    return source
