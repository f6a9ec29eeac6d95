"""Files that appear whole or not at all, and the lock for changing one.

Written under another name in the same folder, synced, renamed, and the folder synced: a reader, a
crash or a power cut sees the old file or the new one, never a part of it. The other name is random and
must be free. No link is followed: a link in the place of the file is replaced, not what it
points to. A process that is killed leaves the other name behind; `sweep` removes it.

All files that neardup writes are made here, also those that the core fills.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import secrets
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from queue import Queue
from threading import Thread, local
from typing import IO, Any, Final

from neardup.errors import InvalidType, InvalidValue, LimitReached, NotWritten, shown
from neardup.threads import started

_TEMPORARY: Final = re.compile(r"\.neardup-[0-9a-f]{16}\.tmp")

# A name that must be free; no link of that name is followed.
_NEW: Final = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)

_HELD: Final = local()  # `names`: the files that this thread has locked
_NO_LOCKS: Final = {errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP}

# What a write can meet that is not the program's fault: full, forbidden, failing or too large.
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
    if os.path.exists(name) and not os.path.isfile(name):
        raise InvalidValue(f"{name!r} is a device or a pipe, and would be replaced; name a file")
    if not overwrite and os.path.lexists(name):
        raise InvalidValue(f"{name!r} exists; choose another name or ask to overwrite it")


def check_folder(path: str | os.PathLike[str]) -> None:
    """Raise if *path* is not a folder and cannot become one."""
    name = at = check_path(path)
    if "://" in name:
        raise InvalidValue(f"{name!r} is an address; name a folder of this machine")
    while at and not os.path.lexists(at):
        at = os.path.dirname(at)
    if at and not os.path.isdir(at):
        raise InvalidValue(f"{at!r} is not a folder; choose another place for the results")


@contextmanager
def atomic_file(path: str | os.PathLike[str], *, overwrite: bool = False) -> Iterator[IO[bytes]]:
    """A file to write to; it gets the name *path* when the block ends without an error.

    The bytes are on the disk before the name is, and the name is before this returns. A file that is
    replaced leaves its mode to the new one, and its owner and group where the system allows it.
    """
    target = check_path(path)
    check_free(target, overwrite=overwrite)
    folder = os.path.dirname(target) or "."
    temporary = os.path.join(folder, f".neardup-{secrets.token_hex(8)}.tmp")
    with _explained(target):
        before = _replaced(target) if overwrite else None
        handle = os.open(temporary, _NEW, 0o666 if before is None else 0o600)
        try:
            with os.fdopen(handle, "w+b") as file:
                if before is not None:
                    _dress(handle, before)
                yield file
                file.flush()
                os.fsync(file.fileno())
            check_free(target, overwrite=overwrite)
            if overwrite or not _named(temporary, target):
                os.replace(temporary, target)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary)
            raise
        sync_folder(folder)


def _replaced(target: str) -> os.stat_result | None:
    """The file that will be replaced, if it is one."""
    with suppress(OSError):
        found = os.lstat(target)
        return found if stat.S_ISREG(found.st_mode) else None
    return None


def _dress(handle: int, before: os.stat_result) -> None:
    """Give a new file the owner, the group and the mode of the one that it replaces."""
    mode = stat.S_IMODE(before.st_mode) & 0o777
    own = os.fstat(handle)
    if hasattr(os, "fchown") and (own.st_uid, own.st_gid) != (before.st_uid, before.st_gid):
        try:
            os.fchown(handle, before.st_uid, before.st_gid)
        except OSError:
            try:
                os.fchown(handle, -1, before.st_gid)
            except OSError:
                mode &= ~0o070  # another group must not get the permissions of the old one
    if hasattr(os, "fchmod"):
        os.fchmod(handle, mode)


def _named(temporary: str, target: str) -> bool:
    """Give a file a name that must be free, atomically; False if the system cannot."""
    try:
        os.link(temporary, target, follow_symlinks=False)
    except FileExistsError:
        check_free(target, overwrite=False)
        raise
    except (OSError, NotImplementedError):  # no hard links here: the name was free a moment ago
        return False
    os.unlink(temporary)
    return True


@contextmanager
def locked(path: str | os.PathLike[str], *, wait: bool = True) -> Iterator[bool]:
    """Hold the lock for changing the file *path*; yields whether there is such a file.

    It holds among processes and threads, and ends with the process. Readers need no lock. With *wait*
    False, a lock that is held elsewhere is an error; one that this thread holds always is.
    """
    name = check_path(path)
    real = os.path.realpath(name)
    held = vars(_HELD).setdefault("names", set())
    if real in held:  # it would wait for itself
        raise LimitReached(f"{name!r} is being changed here already; it is saved when that `edit` ends")
    held.add(real)
    try:
        with _locked(name, wait) as there:
            yield there
    finally:
        held.discard(real)


@contextmanager
def _locked(name: str, wait: bool) -> Iterator[bool]:
    try:
        import fcntl
    except ImportError:  # Windows
        with _locked_beside(name, wait):
            yield os.path.exists(name)
        return
    while True:
        handle = _opened(name)
        if handle is None:
            yield False
            return
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if not wait:
                    raise _busy(name) from None
                fcntl.flock(handle, fcntl.LOCK_EX)
            except OSError as error:  # some network file systems have no locks
                if error.errno not in _NO_LOCKS:
                    raise
            # Its holder may have put another file in the place of the one that is locked here.
            if not _stands(handle, name):
                continue
            try:
                yield True
            finally:
                with suppress(OSError):  # explicitly, as a process forked meanwhile has the handle, too
                    fcntl.flock(handle, fcntl.LOCK_UN)
            return
        finally:
            os.close(handle)


def _opened(name: str) -> int | None:
    """A handle to lock: to write, as locks over the network need it, or at least to read; None if no file."""
    with suppress(FileNotFoundError, NotADirectoryError):
        try:
            return os.open(name, os.O_RDWR | getattr(os, "O_NONBLOCK", 0))
        except OSError as error:
            if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
                raise
            return os.open(name, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    return None


def _stands(handle: int, name: str) -> bool:
    """Whether *name* still names the open file."""
    try:
        return os.path.samestat(os.fstat(handle), os.stat(name))
    except FileNotFoundError:
        return False


def _busy(name: str) -> LimitReached:
    return LimitReached(f"another process or thread changes {name!r}; wait for it")


@contextmanager
def _locked_beside(name: str, wait: bool) -> Iterator[None]:
    """The lock for systems where an open file cannot be replaced: on a file beside it, which stays."""
    import msvcrt

    locking: Any = vars(msvcrt)
    folder, own = os.path.split(name)
    handle = os.open(os.path.join(folder, f".{own}.lock"), os.O_RDWR | os.O_CREAT, 0o666)
    try:
        while True:
            try:
                locking["locking"](handle, locking["LK_LOCK" if wait else "LK_NBLCK"], 1)
                break
            except OSError:  # it gives up after ten seconds
                if not wait:
                    raise _busy(name) from None
        try:
            yield
        finally:
            os.lseek(handle, 0, os.SEEK_SET)
            locking["locking"](handle, locking["LK_UNLCK"], 1)
    finally:
        os.close(handle)


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
        self._thread: Thread

    def write(self, data: Any) -> int:
        """Write bytes that nothing changes."""
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
            except BaseException as fault:  # the writer must not wait for ever
                self._fault = fault

    def __enter__(self) -> Digested:
        self._thread = started(self._look)
        return self

    def __exit__(self, *error: object) -> None:
        self._pieces.put(None)
        self._thread.join()


@contextmanager
def spare_path(folder: str | None = None) -> Iterator[str]:
    """The path of a file that is not there yet, in a new folder within *folder* (None: the system's for
    temporary files). The new folder goes at the end, with all that is in it.
    """
    with tempfile.TemporaryDirectory(prefix="neardup-", dir=folder) as own:
        yield os.path.join(own, "spare")


def sync_folder(folder: str) -> None:
    """Make the names in *folder* durable, if the system can."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:  # Windows cannot open folders, and need not sync them
        return
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def is_temporary(name: str) -> bool:
    """Whether a file of that name is one that is being written, or that a killed process left behind."""
    return _TEMPORARY.fullmatch(name) is not None


def sweep(folder: str) -> None:
    """Remove what killed processes left in *folder*; call it only while nothing else writes there."""
    for name in os.listdir(folder):
        if is_temporary(name):
            with suppress(OSError):
                os.unlink(os.path.join(folder, name))


@contextmanager
def _explained(target: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno not in _DISK:
            raise
        reason = NotWritten(f"cannot write {target!r}: {error.strerror}")
        reason.errno = error.errno
        raise reason from None
