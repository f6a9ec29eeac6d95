"""A file below a folder, reached without following a link.

Anybody who may write to a tree can replace one of its folders by a link to elsewhere, even between a
check and what follows it. So the folder of a file is opened step by step, with no step a link, and
everything that is done with the file is done in that open folder. Where the system cannot do that
(Windows), the steps are checked and the whole path is used.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Final

from neardup.files import sync_folder

_HELD: Final = os.open in os.supports_dir_fd and hasattr(os, "O_DIRECTORY")
_FOLDER: Final = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
_NO_LINK: Final = getattr(os, "O_NOFOLLOW", 0)


class Place:
    """A name in a folder, whether a file has it or not; for as long as `reached` holds the folder."""

    __slots__ = ("_folder", "_name", "path")

    def __init__(self, path: str, folder: int | None) -> None:
        self.path, self._folder = path, folder
        self._name = path if folder is None else os.path.basename(path)

    def beside(self, name: str) -> Place:
        """Another name in the same folder."""
        return Place(os.path.join(os.path.dirname(self.path), name), self._folder)

    def open(self, flags: int, mode: int = 0o600) -> int:
        """A handle of the file; never of what a link points to."""
        flags |= _NO_LINK | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
        if not _NO_LINK and self.exists() and stat.S_ISLNK(self.status().st_mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), self.path)
        return os.open(self._name, flags, mode, dir_fd=self._folder)

    def status(self) -> os.stat_result:
        return os.stat(self._name, dir_fd=self._folder, follow_symlinks=False)

    def exists(self) -> bool:
        """Whether something has the name, a broken link included."""
        try:
            self.status()
        except FileNotFoundError:
            return False
        return True

    def rename(self, other: Place) -> None:
        os.rename(self._name, other._name, src_dir_fd=self._folder, dst_dir_fd=other._folder)

    def replace(self, other: Place) -> None:
        os.replace(self._name, other._name, src_dir_fd=self._folder, dst_dir_fd=other._folder)

    def link(self, other: Place) -> None:
        """Give the file a second name, which must be free."""
        follow = os.link not in os.supports_follow_symlinks  # there is no choice there
        os.link(
            self._name,
            other._name,
            src_dir_fd=self._folder,
            dst_dir_fd=other._folder,
            follow_symlinks=follow,
        )

    def unlink(self) -> None:
        os.unlink(self._name, dir_fd=self._folder)

    def rmdir(self) -> None:
        """Remove the folder of that name, which must be empty."""
        os.rmdir(self._name, dir_fd=self._folder)

    def sync(self) -> None:
        """Make the names in the folder durable."""
        if self._folder is None:
            sync_folder(os.path.dirname(self.path))
        else:
            os.fsync(self._folder)


@contextmanager
def reached(path: str, below: str | None = None, *, make: bool = False) -> Iterator[Place]:
    """*path*, absolute, reached from the folder *below*, or else from its own; with *make* folders are made.

    *below* itself may be named through links, since the user chose it; nothing from it to *path* may.
    """
    folder, name = os.path.split(path)
    start = folder if below is None or below == path else below
    if not name or not is_below(folder, start):
        raise OSError(errno.EINVAL, f"{path!r} is not below {below!r}")
    if make:
        os.makedirs(start, exist_ok=True)
    steps = [] if folder == start else os.path.relpath(folder, start).split(os.sep)
    if not _HELD:
        _walked(start, steps, make)
        yield Place(path, None)
        return
    handle = os.open(start, _FOLDER)
    try:
        for step in steps:
            further = _entered(handle, step, path, make)
            os.close(handle)
            handle = further
        yield Place(path, handle)
    finally:
        os.close(handle)


def _entered(folder: int, step: str, path: str, make: bool) -> int:
    """A handle of the folder *step* in *folder*."""
    if make:
        with suppress(FileExistsError):
            os.mkdir(step, dir_fd=folder)
    try:
        return os.open(step, _FOLDER | _NO_LINK, dir_fd=folder)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR, errno.EMLINK):
            _check_folder(os.stat(step, dir_fd=folder, follow_symlinks=False), step)
        raise


def _walked(start: str, steps: Iterable[str], make: bool) -> None:
    at = start
    for step in steps:
        at = os.path.join(at, step)
        if make and not os.path.lexists(at):
            os.mkdir(at)
        _check_folder(os.lstat(at), step)


def _check_folder(status: os.stat_result, step: str) -> None:
    if stat.S_ISLNK(status.st_mode):
        raise OSError(errno.ELOOP, f"{step!r} on the way to it is a symbolic link")
    if not stat.S_ISDIR(status.st_mode):
        raise OSError(errno.ENOTDIR, f"{step!r} on the way to it is not a folder")


def is_below(path: str, folder: str) -> bool:
    """Whether *path* is *folder* or inside it, by name; both absolute and normalised.

    >>> is_below("/a/b/c", "/a/b"), is_below("/a/bc", "/a/b"), is_below("/a", "/")
    (True, False, True)
    """
    return path == folder or path.startswith(os.path.join(folder, ""))


def folder_of(path: str, folders: Iterable[str]) -> str | None:
    """The nearest of *folders* that contains *path*; None if there is none."""
    return max((one for one in folders if is_below(path, one)), key=len, default=None)
