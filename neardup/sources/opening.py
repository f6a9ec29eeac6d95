"""Opening: which inputs some data names, and the source of their documents."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from glob import glob, has_magic
from typing import Any, Final

from neardup.errors import InvalidValue, RefusedInput, shown
from neardup.sizes import USUAL, Sizes
from neardup.sources.files import STDIN, File, Found, Input, Seen, met, walk
from neardup.sources.formats import ENDINGS, FORMATS, is_image
from neardup.sources.options import Reading, Request
from neardup.sources.source import Source
from neardup.types import Bad

READING: Final = Reading()


def open_source(
    data: Any,
    reading: Reading = READING,
    *,
    fields: Iterable[str] = (),
    again: bool = True,
    on_bad: Callable[[Bad], None] | None = None,
    unique: bool = False,
    prefix: str = "",
    sizes: Sizes = USUAL,
    **options: Any,
) -> Source:
    """The documents of *data*: a path, several, `-`, a table, or an iterable of documents.

    *options* are those of `Reading`: text_field, id_field, format, html, limits, tolerance. *again* keeps
    what can be read only once (a pipe), for a second reading. *unique* makes a document whose id was seen
    before a bad record. *on_bad* is given every bad record and every refused file. *prefix* is put before
    every id.
    """
    request = Request.of_reading(replace(reading, **options), fields, sizes.block)
    return Source(_inputs(data, again), request, on_bad=on_bad, unique=unique, prefix=prefix)


def _inputs(data: Any, again: bool) -> list[Input]:
    if not _are_paths(data):
        from neardup.sources.memory import Held

        return [data if isinstance(data, Held) else Held(data)]
    seen: Seen = {}
    inputs: list[Input] = []
    for path in dict.fromkeys(os.fspath(one) for one in ([data] if _is_path(data) else data)):
        for name in _matching(os.fsdecode(path)):
            inputs += _named(name, seen, again)
    return inputs


def _is_path(data: Any) -> bool:
    return isinstance(data, str | os.PathLike)


def _are_paths(data: Any) -> bool:
    return _is_path(data) or (isinstance(data, list | tuple) and all(map(_is_path, data)))


def are_texts(data: Any) -> bool:
    """Whether a list of strings holds texts, not paths: one of them names no file, and reads as a text.

    >>> are_texts(["one text", "another"]), are_texts(["one.jsonl", "two"])
    (True, False)
    """
    if not isinstance(data, list | tuple) or not all(isinstance(one, str) for one in data):
        return False
    return not data or any(_reads_as_text(one) for one in data)


# A name without spaces: with a folder in it, or of plain letters.
_NAME: Final = re.compile(r"[^\s]*[/\\][^\s]*|[\w.~-]+", re.ASCII)


def _reads_as_text(text: str) -> bool:
    if text == STDIN:
        return False
    if not text or len(text) > 4096 or "\n" in text:
        return True
    if _NAME.fullmatch(text) or ENDINGS.search(text):
        return False
    try:
        return not os.path.lexists(text)
    except ValueError:
        return True


def _matching(path: str) -> list[str]:
    """*path*, or what it matches in a shell, if it is a pattern and no such file exists."""
    if not has_magic(path) or "://" in path or os.path.lexists(path):
        return [path]
    if not (found := sorted(glob(path, recursive=True))):
        raise RefusedInput(f"no file matches {shown(path, 300)}")
    return found


def _named(path: str, seen: Seen, again: bool) -> Iterator[Input]:
    """The inputs that *path*, given by the user, names."""
    file = File(path, again=again)
    if path == STDIN or file.is_remote:
        yield file
        return
    try:
        status = os.stat(path)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        known = any(file.suffix in row.suffixes for row in FORMATS.values())
        way_out = "; give texts as iter(texts)" if len(path.split()) > 1 and not known else ""
        raise RefusedInput(f"{shown(path, 300)} cannot be read: {reason}{way_out}") from None
    if not stat.S_ISDIR(status.st_mode):
        reason = met(path, status, seen) if stat.S_ISREG(status.st_mode) else None
        yield file if reason is None else Found(path, skipped=reason)
        return
    for found in walk(path, seen):
        yield File(found.path, root=path) if found == Found(found.path) else found


def mostly_images(data: Any) -> bool:
    """Whether *data* names files and folders, and more than half of the files are images by name.

    >>> mostly_images([{"id": "a", "text": "no file"}])
    False
    """
    if not _are_paths(data):
        return False
    files = [one for one in _inputs(data, again=False) if isinstance(one, File)]
    return 2 * sum(map(is_image, files)) > len(files)


def keep_apart(source: Source, protected: Source) -> None:
    """Take out of *source* the files that *protected* holds, too: a document is not a duplicate of itself.

    A file that a walk found, under whatever name, is skipped; one that was named for both is an error.
    """
    both: Seen = {}
    for one in protected.inputs:
        if isinstance(one, File) and (inode := _inode(one)) is not None:
            both[inode] = one.name
    for at, one in enumerate(source.inputs):
        if isinstance(one, File) and _inode(one) in both:
            if not one.walked:
                raise InvalidValue(f"{one.name!r} is in the input and protected; leave it out of one of them")
            source.inputs[at] = Found(one.path, skipped="is protected")


def _inode(file: File) -> tuple[int, int] | None:
    if file.is_remote or file.is_stream:
        return None
    try:
        status = os.stat(file.path)
    except (OSError, ValueError):
        return None
    return status.st_dev, status.st_ino
