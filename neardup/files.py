"""Files that appear whole or not at all.

Written under another name in the same folder, synced, renamed, and the folder synced: a reader, a
crash or a power cut sees the old file or the new one, never a part of it. A process that is killed
leaves the other name behind; who may, sweeps it (`sweep`).
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from queue import Queue
from threading import Thread
from typing import IO, Any, Final

from neardup.errors import InvalidType, InvalidValue, LimitReached, shown

_TEMPORARY: Final = re.compile(r"\.neardup-[0-9a-f]{16}\.tmp")

# What a write can meet that is no fault of the program: full, forbidden, failing or too large.
_DISK: Final = {
    getattr(errno, name)
    for name in (
        "ENOSPC",
        "EDQUOT",
        "EFBIG",
        "EIO",
        "EROFS",
        "EACCES",
        "EPERM",
        "ENOENT",
        "ENOTDIR",
        "ENAMETOOLONG",
    )
    if hasattr(errno, name)
}


def check_path(path: str | os.PathLike[str]) -> str:
    """*path* as text, if it can be the name of a file."""
    name = os.fspath(path) if isinstance(path, (str, os.PathLike)) else None
    if not isinstance(name, str):
        raise InvalidType(f"a file must be given as a str or a Path, not {shown(path)}")
    try:
        if not name or b"\0" in os.fsencode(name):
            raise ValueError
    except ValueError:
        raise InvalidValue(f"{shown(name)} cannot be the name of a file") from None
    return name


def check_free(path: str | os.PathLike[str], *, overwrite: bool) -> None:
    """Raise if *path* exists and may not be replaced."""
    name = check_path(path)
    if os.path.isdir(name):
        raise InvalidValue(f"{name!r} is a folder; name a file in it")
    if not overwrite and os.path.lexists(name):
        raise InvalidValue(f"{name!r} exists; choose another name or ask to overwrite it")


def check_folder(path: str | os.PathLike[str]) -> None:
    """Raise if *path* is no folder and cannot become one."""
    name = at = check_path(path)
    if "://" in name:
        raise InvalidValue(f"{name!r} is an address; name a folder of this machine")
    while at and not os.path.lexists(at):
        at = os.path.dirname(at)
    if at and not os.path.isdir(at):
        raise InvalidValue(f"{at!r} is no folder; choose another place for the results")


@contextmanager
def atomic_file(path: str | os.PathLike[str], *, overwrite: bool = False) -> Iterator[IO[bytes]]:
    """A file to write to; it gets the name *path* when the block ends without an error.

    The bytes are on the disk before the name is, and the name is before this returns.
    """
    target = check_path(path)
    check_free(target, overwrite=overwrite)
    folder = os.path.dirname(target) or "."
    temporary = os.path.join(folder, f".neardup-{secrets.token_hex(8)}.tmp")
    with _explained(target):
        handle = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
        try:
            with os.fdopen(handle, "w+b") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            check_free(target, overwrite=overwrite)
            os.replace(temporary, target)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary)
            raise
        sync_folder(folder)


def file_digest(path: str | os.PathLike[str]) -> str:
    """The SHA-256 of a file."""
    found = hashlib.sha256()
    with open(path, "rb") as file:
        while piece := file.read(1 << 20):
            found.update(piece)
    return found.hexdigest()


class Digested:
    """A file to write to; a thread makes the SHA-256 of what is written meanwhile."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._found = file, hashlib.sha256()
        self.flush, self.tell = file.flush, file.tell
        self._pieces: Queue[Any] = Queue(maxsize=8)
        self._fault: BaseException | None = None
        self._thread = Thread(target=self._look, daemon=True)

    def write(self, data: Any) -> int:
        """Write bytes that nobody changes."""
        self._pieces.put(data)
        return self._file.write(data)

    def digest(self) -> str:
        """The SHA-256 of all that was written, after the block."""
        if self._fault is not None:
            raise self._fault
        return self._found.hexdigest()

    def _look(self) -> None:
        while (piece := self._pieces.get()) is not None:
            try:
                self._found.update(piece)
            except BaseException as fault:  # who writes must not wait for ever
                self._fault = fault

    def __enter__(self) -> Digested:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._pieces.put(None)
        self._thread.join()


def sync_folder(folder: str) -> None:
    """Make the names in *folder* durable, where the system can."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:  # Windows opens no folders, and needs no sync of them
        return
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sweep(folder: str) -> None:
    """Remove what killed processes left in *folder*; only for one who alone writes there."""
    for name in os.listdir(folder):
        if _TEMPORARY.fullmatch(name):
            with suppress(OSError):
                os.unlink(os.path.join(folder, name))


@contextmanager
def _explained(target: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno not in _DISK:
            raise
        raise LimitReached(f"cannot write {target!r}: {error.strerror}") from None
