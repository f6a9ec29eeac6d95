"""The quarantine: every record that could not be used, with its place, the reason and its bytes."""

from __future__ import annotations

import base64
import json
import os
from contextlib import ExitStack
from itertools import islice
from types import TracebackType
from typing import IO, Any

import orjson

from neardup.errors import Cancelled
from neardup.files import atomic_file, check_free
from neardup.sources.names import path_id
from neardup.types import Bad


class Quarantine:
    """A JSON Lines file that is made when the first bad record comes; without a path it only counts.

    It is also written when the run fails: then it is needed most. Not when it is interrupted or
    cancelled: then it is not complete, and the same run resumes later.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None, *, overwrite: bool = False) -> None:
        if path is not None:
            check_free(path, overwrite=overwrite)
        self.path = None if path is None else os.fspath(path)
        self.count = 0
        self._overwrite = overwrite
        self._stack = ExitStack()
        self._file: IO[bytes] | None = None

    def add(self, bad: Bad) -> None:
        """Keep one bad record."""
        self.count += 1
        if self.path is None:
            return
        if self._file is None:
            self._file = self._stack.enter_context(atomic_file(self.path, overwrite=self._overwrite))
        self._file.write(row(bad))

    def __enter__(self) -> Quarantine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None or (isinstance(error, Exception) and not isinstance(error, Cancelled)):
            self._stack.close()
        else:
            self._stack.__exit__(kind, error, trace)


def row(bad: Bad) -> bytes:
    r"""One line of the file. Bytes that are not UTF-8 are written in base64.

    >>> row(Bad("a.jsonl", 3, 120, "is not JSON", b"{"))
    b'{"file":"a.jsonl","line":3,"offset":120,"reason":"is not JSON","raw":"{"}\n'
    """
    cells: dict[str, object] = {
        "file": path_id(bad.file),
        "line": bad.line,
        "offset": bad.offset,
        "reason": bad.reason.encode("utf-8", "backslashreplace").decode(),
    }
    try:
        cells["raw"] = bad.raw.decode()
    except UnicodeDecodeError:
        cells["raw_base64"] = base64.b64encode(bad.raw).decode()
    if bad.length is not None and bad.length > len(bad.raw):
        cells["length"] = bad.length
    return orjson.dumps(cells, option=orjson.OPT_APPEND_NEWLINE)


def first_rows(path: str | os.PathLike[str], most: int = 1000) -> list[dict[str, Any]]:
    """The first rows of such a file, or of another with an object in each line."""
    with open(path, "rb") as file:
        return [json.loads(line) for line in islice(file, most)]
