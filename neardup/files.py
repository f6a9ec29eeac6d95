"""Files that appear only when they are complete."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from neardup.errors import InvalidType, InvalidValue, shown


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


@contextlib.contextmanager
def atomic_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A file to write to, under a temporary name; it gets its own when the block ends well.

    The bytes are on the disk before the name is, and the name is before this returns.
    """
    target = Path(check_path(path))
    folder = target.parent
    number, temporary = tempfile.mkstemp(prefix=f".{target.name[:100]}.", suffix=".part", dir=folder)
    try:
        with os.fdopen(number, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    _sync_folder(folder)


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _sync_folder(folder: Path) -> None:
    if os.name == "nt":  # a folder cannot be opened there
        return
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
