"""Bytes of one input: hashed while they are read, decompressed within limits.

A broken stream first gives everything before the break, then raises `Broken`.
Compression is recognised by its first bytes, never by the name alone.
"""

from __future__ import annotations

import bz2
import hashlib
import lzma
import zlib
from collections.abc import Callable, Iterator
from io import SEEK_END, SEEK_SET, RawIOBase
from threading import Lock
from typing import IO, Any, Final, Protocol

from neardup.errors import RefusedInput
from neardup.sources.limits import MIB, InputLimits, size

PIECE: Final = 256 * 1024  # compressed bytes taken at a time
CHUNK: Final = 1 * MIB  # bytes read or decompressed at a time
XZ_MEMORY: Final = 128 * MIB  # the largest dictionary an .xz file may ask for; `xz -9` asks for 64 MiB

MAGIC: Final = {
    b"\x1f\x8b": "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\xfd7zXZ\x00": "xz",
    b"BZh": "bz2",
    # A frame to skip may come first: parallel and seekable zstd files begin with one.
    **{bytes([low, 0x2A, 0x4D, 0x18]): "zstd" for low in range(0x50, 0x60)},
}
SUFFIXES: Final = {".gz": "gzip", ".zst": "zstd", ".xz": "xz", ".bz2": "bz2"}


class Broken(RefusedInput):
    """The input cannot be read further. What came before it was whole."""

    def __init__(
        self, reason: str, *, line: int | None = None, offset: int | None = None, raw: bytes = b""
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.line = line
        self.offset = offset
        self.raw = raw


class Feed:
    """The raw bytes of an input, read once from start to end, with their SHA-256."""

    def __init__(self, file: IO[bytes], *, hashed: bool = True) -> None:
        """*hashed* ones have a digest."""
        self._file = file
        self._copy: IO[bytes] | None = None
        self._hash = hashlib.sha256() if hashed else None
        self._head = b""
        self.count = 0

    def peek(self, length: int) -> bytes:
        """The next *length* bytes, or fewer at the end; they are read again by `read`."""
        while len(self._head) < length and (piece := self._take(length - len(self._head))):
            self._head += piece
        return self._head[:length]

    def read(self, length: int = CHUNK) -> bytes:
        """The next *length* bytes, or fewer at the end: a pipe gives the same pieces as its copy."""
        pieces, self._head = [self._head[:length]] if self._head else [], self._head[length:]
        missing = length - sum(map(len, pieces))
        while missing and (piece := self._take(missing)):
            pieces.append(piece)
            missing -= len(piece)
        return b"".join(pieces)

    def copy_to(self, file: IO[bytes] | None) -> None:
        """Write every byte of the input, those that were looked at too, to *file*; None ends that."""
        if file is not None:
            file.write(self._head)
        self._copy = file

    def digest(self) -> str:
        """The SHA-256 of all bytes of the input, in hexadecimal; reads what is left."""
        while self.read():
            pass
        assert self._hash is not None
        return self._hash.hexdigest()

    def _take(self, length: int) -> bytes:
        try:
            piece = self._file.read(length) or b""
        except OSError as error:
            raise Broken(f"cannot be read: {error.strerror or error}") from None
        if self._hash is not None:
            self._hash.update(piece)
        self.count += len(piece)
        if (copy := self._copy) is not None:
            copy.write(piece)
        return piece

    # What pyarrow asks of a file.
    closed = False

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        pass


class Shared(RawIOBase):
    """A file that is open once, for one of several readers at the same time, each at its own place."""

    _turn: Final = Lock()

    def __init__(self, file: IO[bytes]) -> None:
        self._shared, self._at = file, 0

    def readinto(self, buffer: Any) -> int:
        with self._turn:
            self._shared.seek(self._at)
            piece = self._shared.read(len(buffer))
        buffer[: len(piece)] = piece
        self._at += len(piece)
        return len(piece)

    def seek(self, offset: int, whence: int = SEEK_SET) -> int:
        with self._turn:
            begin = self._shared.seek(0, SEEK_END) if whence == SEEK_END else whence * self._at
        self._at = begin + offset
        return self._at

    def tell(self) -> int:
        return self._at

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True


def compression(head: bytes) -> str | None:
    """The compression that a file with these first bytes has, or None."""
    for magic, name in MAGIC.items():
        if head.startswith(magic):
            return name
    return None


def chunks(feed: Feed, *, named: str | None = None, limits: InputLimits, block: int) -> Iterator[bytes]:
    """The decompressed bytes of *feed*, about *block* at a time.

    *named* is the compression its name promises.
    """
    found = compression(feed.peek(6))
    if found is None:
        if named is not None:
            empty = not feed.peek(1)
            raise Broken(f"is empty, not {named}" if empty else f"is named as {named} but is not; rename it")
        return _gathered(iter(lambda: feed.read(block), b""), block)
    return _gathered(_measured(_DECODERS[found](feed), feed, limits), block)


def _gathered(pieces: Iterator[bytes], block: int) -> Iterator[bytes]:
    """The same bytes in pieces of about *block*; those before a break come before its error."""
    held: list[bytes] = []
    count = 0
    try:
        for piece in pieces:
            held.append(piece)
            count += len(piece)
            if count >= block:
                yield b"".join(held)
                held, count = [], 0
    except Broken:
        if held:
            yield b"".join(held)
        raise
    if held:
        yield b"".join(held)


def _measured(pieces: Iterator[bytes], feed: Feed, limits: InputLimits) -> Iterator[bytes]:
    total = 0
    for piece in pieces:
        total += len(piece)
        if total > limits.ratio_after and total > limits.ratio * feed.count:
            ratio = f"{limits.ratio} times its size"
            raise Broken(f"expands to more than {ratio}, the limit after {size(limits.ratio_after)}")
        yield piece


class _Decoder(Protocol):
    def decompress(self, data: bytes, max_length: int = ...) -> bytes: ...

    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...


class _Gzip:
    """zlib with the manners of the bz2 and lzma decoders."""

    def __init__(self) -> None:
        self._inner = zlib.decompressobj(wbits=31)

    def decompress(self, data: bytes, max_length: int = 0) -> bytes:
        return self._inner.decompress(self._inner.unconsumed_tail + data, max_length)

    @property
    def eof(self) -> bool:
        return self._inner.eof

    @property
    def needs_input(self) -> bool:
        return not self._inner.unconsumed_tail

    @property
    def unused_data(self) -> bytes:
        return self._inner.unused_data


def _members(name: str, decoder_of: Callable[[], Any]) -> Callable[[Feed], Iterator[bytes]]:
    """A decompressor of one or more members, one after the other, as gzip, xz and bz2 files may have."""

    def pieces(feed: Feed) -> Iterator[bytes]:
        data = feed.read(PIECE)
        while data:
            decoder: _Decoder = decoder_of()
            while not decoder.eof:
                if not data and decoder.needs_input and not (data := feed.read(PIECE)):
                    raise Broken(f"the {name} stream is cut short")
                try:
                    piece = decoder.decompress(data, CHUNK)
                except (zlib.error, OSError, EOFError, lzma.LZMAError, ValueError) as error:
                    raise Broken(f"the {name} stream is damaged: {error}") from None
                data = b""
                if piece:
                    yield piece
            data = decoder.unused_data.lstrip(b"\0")  # tapes and some tools pad with zeros
            while not data and (data := feed.read(PIECE)):
                data = data.lstrip(b"\0")
            if data and compression(data + feed.peek(6)) != name:
                raise Broken(f"bytes that are not {name} follow the {name} stream")

    return pieces


def _zstd(feed: Feed) -> Iterator[bytes]:
    # zstd itself refuses windows above 128 MiB, checks frame checksums and reads many frames.
    import pyarrow as pa

    stream = pa.CompressedInputStream(pa.PythonFile(feed, mode="r"), "zstd")
    while True:
        try:
            piece = stream.read(CHUNK)
        except (OSError, pa.ArrowException) as error:
            raise Broken(f"the zstd stream is damaged: {error}") from None
        if not piece:
            return
        yield piece


_DECODERS: Final[dict[str, Callable[[Feed], Iterator[bytes]]]] = {
    "gzip": _members("gzip", _Gzip),
    "xz": _members("xz", lambda: lzma.LZMADecompressor(memlimit=XZ_MEMORY)),
    "bz2": _members("bz2", bz2.BZ2Decompressor),
    "zstd": _zstd,
}
