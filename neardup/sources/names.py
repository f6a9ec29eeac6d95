"""File names as ids, and back.

An id is UTF-8 text without control characters; a file name is any bytes but NUL. A name that
cannot be an id as it is, is written as `file:` and its percent-encoded bytes.
"""

from __future__ import annotations

import os
from urllib.parse import quote_from_bytes, unquote_to_bytes

_ESCAPED = "file:"


def path_id(path: str) -> str:
    r"""The id of the document that is the whole of file *path*.

    >>> path_id("news/a b.txt")
    'news/a b.txt'
    >>> path_id("news/\udcff\n.txt")
    'file:news/%FF%0A.txt'
    """
    if path.isprintable() and not path.startswith(_ESCAPED):
        return path
    return _ESCAPED + quote_from_bytes(os.fsencode(path), safe="/")


def id_path(name: str) -> str:
    r"""The path that `path_id` made *name* of.

    >>> id_path("file:news/%FF%0A.txt")
    'news/\udcff\n.txt'
    """
    if not name.startswith(_ESCAPED):
        return name
    return os.fsdecode(unquote_to_bytes(name[len(_ESCAPED) :]))
