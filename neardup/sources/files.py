"""Input files: opened without surprises, and walked.

A walk follows no symbolic link, opens nothing but regular files, meets each inode once and goes
in sorted order, so that the same tree always gives the same documents. A path that the user
names may be a link or a pipe: that is deliberate.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import stat
import sys
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO, Any, ClassVar, Final, Protocol, cast

from neardup.ahead import ahead
from neardup.errors import RefusedInput, unusable
from neardup.sizes import USUAL
from neardup.sources.limits import MIB, InputLimits
from neardup.sources.names import path_id
from neardup.sources.streams import SUFFIXES, Broken, Feed, Shared, chunks

STDIN: Final = "-"
_REMOTE: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
_PLAIN: Final = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)

# What file systems of fsspec call the time, the checksum or the version of a file.
_VERSION: Final = re.compile(
    "blob|checksum|crc|created|date|digest|etag|generation|hex|md5|modif|mtime|sha|version", re.IGNORECASE
)


class Input(Protocol):
    """What every input can be asked: a file, what a walk met and cannot read, documents in memory."""

    @property
    def name(self) -> str:
        """As `Batch.file` has it."""

    @property
    def path(self) -> str | None:
        """Where it is, if it is somewhere."""

    @property
    def root(self) -> str | None:
        """The folder that was walked to find it, or its own path."""

    @property
    def walked(self) -> bool:
        """Whether a walk found it, and the user did not name it."""

    @property
    def suffix(self) -> str:
        """The ending of its name that tells the format."""

    @property
    def digest(self) -> str | None:
        """The SHA-256 of its bytes, once all were read."""

    @property
    def size(self) -> int:
        """Its bytes as they are stored; 0 where unknown."""

    @property
    def consumed(self) -> int:
        """How many of its bytes the present reading has taken."""

    @property
    def modified(self) -> int | None:
        """When it was last written to, in nanoseconds; None where unknown."""

    @property
    def reduced(self) -> bool | None:
        """For an image: whether it was decoded at a smaller scale."""


class File:
    """One input of bytes: its name, its first bytes, and ways to read it, as often as wanted.

    `digest` is the SHA-256 of its raw bytes once it was read to the end. A pipe is opened once, and its
    first bytes can be inspected before it is read. It is copied to a temporary file while it is first
    read, if it is to be read again, and before that for a reader that goes back and forth.
    """

    def __init__(self, path: str, *, root: str | None = None, again: bool = True) -> None:
        """*root* is the folder that was walked to find it."""
        self.path = path
        self.root = path if root is None else root
        self.walked = root is not None
        self.name = "<stdin>" if path == STDIN else path
        self.id = "stdin" if path == STDIN else path_id(path)
        self.digest: str | None = None
        self.bytes = 0
        self.reduced: bool | None = None  # of an image: whether it was decoded at a smaller scale
        self._again = again
        self._copy: IO[bytes] | None = None
        self._stamp: tuple[int, ...] | None = None
        self._modified: int | None = None
        self._feed: Feed | None = None

    @property
    def suffix(self) -> str:
        """The ending of its name that tells the format, lower-cased.

        >>> File("x/a.JSONL.gz").suffix, File("a.gz").suffix
        ('.jsonl', '')
        """
        stem, ending = os.path.splitext(os.path.basename(self.path).lower())
        return os.path.splitext(stem)[1] if ending in SUFFIXES else ending

    @property
    def named_compression(self) -> str | None:
        """The compression that its name promises."""
        return SUFFIXES.get(os.path.splitext(self.path.lower())[1])

    @property
    def size(self) -> int:
        """Its size in bytes as it is stored; 0 where that is not known."""
        return 0 if self.path == STDIN or self.is_remote else os.stat(self.path).st_size

    @property
    def modified(self) -> int | None:
        """When it was last written to, in nanoseconds, as it was read; None where that is not known."""
        return self._modified if self._stamp is None else self._stamp[3]

    def recall(self, modified: int | None, reduced: bool | None) -> None:
        """Take over what another process saw when it read this file."""
        self._modified, self.reduced = modified, reduced

    @cached_property
    def is_stream(self) -> bool:
        """Whether it can be read only from start to end."""
        named = not self.walked and not self.is_remote
        return self.path == STDIN or (named and Path(self.path).is_fifo())

    @property
    def is_remote(self) -> bool:
        return _REMOTE.match(self.path) is not None

    @property
    def consumed(self) -> int:
        """How many of its bytes the present reading has taken."""
        return self._feed.count if self._feed is not None else self.bytes

    @contextmanager
    def open(self) -> Iterator[IO[bytes]]:
        """The file at its start; refused if it is not a file or changed since it was last open."""
        if self.is_remote:
            with _remote(self.path) as remote:
                yield remote
            return
        if self.is_stream:
            if self._copy is None:
                with self._piped(copied=True):
                    pass
            assert self._copy is not None
            yield cast(IO[bytes], Shared(self._copy))
            return
        with self._opened() as file:
            yield file

    @contextmanager
    def feed(self) -> Iterator[Feed]:
        """Its raw bytes from the start."""
        if self.is_stream and self._copy is None:
            with self._piped(copied=self._again) as feed:
                yield feed
            return
        with self.open() as file:
            feed = self._feed = Feed(file, hashed=self.digest is None)
            yield feed
            if self.digest is None:
                self.digest, self.bytes = feed.digest(), feed.count

    @contextmanager
    def _piped(self, *, copied: bool) -> Iterator[Feed]:
        """The bytes of a pipe, the one time that it gives them."""
        feed, copy = self._pipe(), None
        if copied:
            # Kept open for the life of this object: it has no name that could be left behind.
            copy = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115
            weakref.finalize(self, copy.close)
            feed.copy_to(cast(IO[bytes], copy))
        try:
            yield feed
            self.digest, self.bytes = feed.digest(), feed.count
        except Broken:
            feed.copy_to(None)
            self._copy = copy  # it breaks at the same place again
            raise
        self._copy = copy

    def _pipe(self) -> Feed:
        """A pipe, opened; the bytes that were inspected come first."""
        if self._feed is None:
            if self.path == STDIN:
                # The raw file: a thread that waits in the buffered one would hold its lock at exit.
                file = getattr(sys.stdin.buffer, "raw", sys.stdin.buffer)
            else:
                file = self._opened()
                weakref.finalize(self, file.close)
            self._feed = Feed(file)
        return self._feed

    def _opened(self) -> IO[bytes]:
        wait = 0 if self.is_stream else getattr(os, "O_NONBLOCK", 0)  # until somebody writes to a pipe
        link = getattr(os, "O_NOFOLLOW", 0) if self.walked else 0
        try:
            handle = os.open(self.path, _PLAIN | wait | link)
        except (OSError, ValueError) as error:
            raise Broken(f"cannot be opened: {getattr(error, 'strerror', None) or error}") from None
        try:
            self._check(os.fstat(handle))
        except BaseException:
            os.close(handle)
            raise
        return os.fdopen(handle, "rb", buffering=0)

    @contextmanager
    def chunks(self, limits: InputLimits, block: int = USUAL.block) -> Iterator[Iterator[bytes]]:
        """Its bytes from the start, decompressed, about *block* at a time."""
        with self.feed() as feed:
            pieces = ahead(chunks(feed, named=self.named_compression, limits=limits, block=block))
            try:
                yield pieces
            finally:
                with suppress(ValueError):  # a thread that reads ahead still waits for a pipe in it
                    pieces.close()

    def head(self, length: int = 4096) -> bytes:
        """Its first bytes as they are stored."""
        if self.is_stream and self._copy is None:
            return self._pipe().peek(length)
        with self.open() as file:
            return file.read(length) or b""

    def hashed(self) -> str:
        """The SHA-256 of its raw bytes, read for that alone if need be."""
        if self.digest is None:
            found, count = hashlib.sha256(), 0
            with self.open() as file:
                while piece := file.read(MIB):
                    found.update(piece)
                    count += len(piece)
            self.digest, self.bytes = found.hexdigest(), count
        return self.digest

    def _check(self, status: os.stat_result) -> None:
        kind = status.st_mode
        if stat.S_ISDIR(kind):
            raise Broken("is a folder")
        if not stat.S_ISREG(kind) and not (self.is_stream and stat.S_ISFIFO(kind)):
            raise Broken("is not a regular file")
        stamp = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
        if stat.S_ISREG(kind) and self._stamp is not None and stamp != self._stamp:
            raise RefusedInput(
                f"{self.name!r} changed while it was read; run again when nothing writes to it"
            )
        self._stamp = stamp


def stamp(one: Input) -> list[Any]:
    """The path of an input and what changes when it does; where nothing tells, it is like no other."""
    path = one.path
    if isinstance(one, File) and (one.is_remote or one.is_stream):
        if one.is_remote and (facts := _facts(one.path)):
            return [path, *facts]
    else:
        with suppress(OSError, TypeError, ValueError):
            status = os.stat(path)  # type: ignore[arg-type]
            return [path, status.st_size, status.st_mtime_ns, status.st_ino]
    return [str(path), secrets.token_hex(16)]


@dataclass(frozen=True, slots=True)
class Found:
    """What a walk met: a file to read, or the reason why not, as a fault or as something to pass by."""

    path: str
    fault: str | None = None
    skipped: str | None = None

    # What is never read has nothing else to tell.
    name: ClassVar[str] = "the input"
    root: ClassVar[str] = ""
    suffix: ClassVar[str] = ""
    walked: ClassVar[bool] = True
    digest: ClassVar[None] = None
    modified: ClassVar[None] = None
    reduced: ClassVar[None] = None
    size: ClassVar[int] = 0
    consumed: ClassVar[int] = 0


Seen = dict[tuple[int, int], str]


def walk(folder: str, seen: Seen) -> Iterator[Found]:
    """Everything below *folder* in sorted order. *seen* remembers inodes between walks."""
    stack = [folder]
    while stack:
        path = stack.pop()
        try:
            status = os.lstat(path)
            if stat.S_ISDIR(status.st_mode):
                with os.scandir(path) as entries:
                    names = sorted((os.fsencode(entry.name) for entry in entries), reverse=True)
                stack += [os.path.join(path, os.fsdecode(name)) for name in names]
                continue
        except OSError as error:
            yield Found(path, fault=f"cannot be opened: {error.strerror}")
            continue
        if stat.S_ISREG(status.st_mode):
            yield Found(path, skipped=met(path, status, seen))
        else:
            yield Found(path, skipped=f"is {_special(status.st_mode)}")


def met(path: str, status: os.stat_result, seen: Seen) -> str | None:
    """The reason to skip a regular file that was seen before, under this or another name."""
    first = seen.setdefault((status.st_dev, status.st_ino), path)
    return None if first is path else f"is the same file as {first!r}"


def _special(mode: int) -> str:
    if stat.S_ISLNK(mode):
        return "a symbolic link"
    if stat.S_ISFIFO(mode):
        return "a pipe"
    if stat.S_ISSOCK(mode):
        return "a socket"
    return "a device"


@contextmanager
def _fsspec(path: str) -> Iterator[Any]:
    """fsspec; what it raises about *path* in the block becomes a one-line error."""
    try:
        import fsspec
    except ImportError as error:
        raise unusable(repr(path), "fsspec", "remote", error) from None
    try:
        yield fsspec
    except FileNotFoundError:
        pattern = "; patterns are not expanded" if "*" in path else ""
        raise RefusedInput(f"{path!r} cannot be read: no such file{pattern}") from None
    except IsADirectoryError:
        raise RefusedInput(f"{path!r} cannot be read: is a folder") from None
    except OSError as error:
        raise Broken(f"cannot be opened: {error.strerror or error}") from None
    except (ImportError, ValueError) as error:
        raise RefusedInput(f"{path!r} cannot be opened: {error}") from None


def _remote(path: str) -> Any:
    with _fsspec(path) as fsspec:
        return fsspec.open(path, "rb").open()


def _facts(path: str) -> list[Any] | None:
    """The size of a remote file and what tells one version of it from another; None if nothing does."""
    try:
        with _fsspec(path) as fsspec:
            system, name = fsspec.url_to_fs(path)
            info = system.info(name)
    except Broken:
        return None
    facts = {key: str(value) for key, value in info.items() if value and _VERSION.search(key)}
    return [info.get("size"), facts] if facts else None
