"""The lock of the one writer, and the witness of its last commit.

SQLite finds no fault in a write-ahead log whose end is gone: the state before is consistent as well. The
witness says how far the log came. It is written over, unsynced, after each commit, so it is never ahead of
what is on the disk. The lock ends with the process that holds it, however that ends.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import socket
import struct
import time
import weakref
from contextlib import suppress
from typing import Any, Final, NamedTuple

from neardup.errors import DamagedFile, LimitReached, Locked
from neardup.files import atomic_file

NO_LOCKS: Final = {errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP}
_WITNESS: Final = struct.Struct("<8sQ16sQ")
_MAGIC: Final = b"NDWITNES"
_SIZE: Final = _WITNESS.size + 16
# How often a witness is read until it is taken for damaged.
READS: Final = 20


class Lock:
    """The right to write, until `release`."""

    def __init__(self, path: str, name: str) -> None:
        """Take the lock file *path* of the store *name*; Locked if another one has it."""
        self._handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            _lock(self._handle)
        except BlockingIOError:
            holder = _holder(self._handle)
            os.close(self._handle)
            raise Locked(
                f"{name!r} is being written by {holder}; open it with read_only=True, or wait until that one "
                "closes it"
            ) from None
        except OSError as error:
            os.close(self._handle)
            if error.errno in NO_LOCKS:
                raise LimitReached(
                    f"the file system of {name!r} has no locks; put the collection on a local disk"
                ) from None
            raise
        self._path = path
        said = {"pid": os.getpid(), "host": socket.gethostname(), "since": int(time.time())}
        with suppress(OSError):  # on a full disk the lock holds as well, and only its holder is not told
            os.ftruncate(self._handle, 0)
            os.pwrite(self._handle, json.dumps(said).encode(), 0) if hasattr(os, "pwrite") else None
        _HELD.add(self)

    def holds(self) -> bool:
        """Whether others would still meet it: whoever removes the file lets a second writer in."""
        try:
            return self._handle >= 0 and os.path.samestat(os.fstat(self._handle), os.stat(self._path))
        except OSError:
            return False

    def release(self) -> None:
        """Let others write."""
        if self._handle >= 0:
            handle, self._handle = self._handle, -1
            with suppress(OSError):
                os.ftruncate(handle, 0)
            os.close(handle)

    def forget(self) -> None:
        """In a child process: the lock is that of the parent, and must end with it."""
        if self._handle >= 0:
            handle, self._handle = self._handle, -1
            os.close(handle)


_HELD: Final[weakref.WeakSet[Lock]] = weakref.WeakSet()


def _forget_all() -> None:
    for lock in list(_HELD):
        lock.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)


def _lock(handle: int) -> None:
    try:
        import fcntl
    except ImportError:  # Windows
        import msvcrt

        locking: Any = vars(msvcrt)
        os.lseek(handle, 1 << 20, os.SEEK_SET)  # behind what is written there, which others may read
        try:
            locking["locking"](handle, locking["LK_NBLCK"], 1)
        except OSError:
            raise BlockingIOError from None
        return
    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _holder(handle: int) -> str:
    """Who has the lock, as it wrote there."""
    with suppress(OSError, ValueError, TypeError, KeyError, OverflowError):
        os.lseek(handle, 0, os.SEEK_SET)
        said = json.loads(os.read(handle, 4096))
        since = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(int(said["since"])))
        return f"process {int(said['pid'])} on {str(said['host'])[:60]!r} since {since}"
    return "another process or thread"


class Witnessed(NamedTuple):
    """How far a store came, as its witness says."""

    change: int
    chain: bytes
    inode: int
    """Of the database: a copy has another one."""


class Witness:
    """The file that knows the last commit."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._handle = -1

    def read(self) -> Witnessed | None:
        """What it says; None if there is no such file."""
        for _ in range(READS):
            try:
                with open(self._path, "rb") as file:
                    data = file.read(_SIZE + 1)
            except FileNotFoundError:
                return None
            # A writer may be in the middle of it.
            if len(data) == _SIZE and data[-16:] == _check(data[:-16]) and data.startswith(_MAGIC):
                _, change, chain, inode = _WITNESS.unpack(data[:-16])
                return Witnessed(change, chain, inode)
        raise DamagedFile(f"{self._path!r} is damaged; delete it, then run `neardup collection check`")

    def begin(self, found: Witnessed) -> None:
        """Make the file, whole or not at all: an empty one would be damage after a power cut."""
        self.close()
        with atomic_file(self._path, overwrite=True) as file:
            file.write(_said(found))

    def write(self, found: Witnessed) -> None:
        """Say how far the store came."""
        if self._handle < 0:
            self._handle = os.open(self._path, os.O_RDWR | getattr(os, "O_BINARY", 0))
        os.lseek(self._handle, 0, os.SEEK_SET)
        os.write(self._handle, _said(found))

    def close(self) -> None:
        """Close the file."""
        if self._handle >= 0:
            handle, self._handle = self._handle, -1
            os.close(handle)


def _said(found: Witnessed) -> bytes:
    data = _WITNESS.pack(_MAGIC, found.change, found.chain, found.inode)
    return data + _check(data)


def _check(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=16).digest()
