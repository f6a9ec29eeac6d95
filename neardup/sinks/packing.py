"""Compression of what is written: as the ending of a name tells, the same bytes whenever it is written."""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import IO, Any, Final

import pyarrow as pa

from neardup.checks import cores
from neardup.threads import Pool

PACKED: Final = (".gz", ".zst", ".xz", ".bz2")


@contextmanager
def packed(file: IO[bytes], ending: str) -> Iterator[IO[bytes]]:
    """*file* as one to write to, compressed as *ending* tells."""
    out: Any
    if ending == ".gz":
        out = Gzip(file)
    elif ending == ".xz":
        out = lzma.LZMAFile(file, "wb")  # noqa: SIM115
    elif ending == ".bz2":
        out = bz2.BZ2File(file, "wb")
    elif ending == ".zst":
        out = pa.CompressedOutputStream(pa.PythonFile(_Kept(file), mode="w"), "zstd")
    else:
        yield file
        return
    with out:
        yield out


class Gzip:
    """One gzip member whose blocks are compressed by several threads.

    A block begins with the end of the one before as its dictionary, so that little is lost by the cut;
    where blocks end, and so every byte, depends on what is written alone.
    """

    BLOCK: Final = 1 << 20
    WINDOW: Final = 1 << 15

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._pending = file, bytearray()
        self._sum = self._size = 0
        self._before = b""
        self._workers: Pool | None = None
        self._blocks: deque[Future[bytes]] = deque()
        # Deflate, no name, no time, made by any system.
        file.write(b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff")

    def write(self, data: Any) -> int:
        """Take some bytes."""
        self._pending += data
        while len(self._pending) >= self.BLOCK:
            self._begin(bytes(self._pending[: self.BLOCK]))
            del self._pending[: self.BLOCK]
        return len(data)

    def close(self) -> None:
        """Write what is left, and what says that it is whole."""
        try:
            self._finish()
        finally:
            if self._workers is not None:
                self._workers.shutdown()

    def _begin(self, block: bytes) -> None:
        if self._workers is None:
            self._workers = Pool(cores())
        self._note(block)
        self._blocks.append(self._workers.submit(_deflated, block, self._before))
        self._before = block[-self.WINDOW :]
        if len(self._blocks) > 2 * cores():
            self._file.write(self._blocks.popleft().result())

    def _note(self, block: bytes) -> None:
        self._sum = zlib.crc32(block, self._sum)
        self._size += len(block)

    def _finish(self) -> None:
        while self._blocks:
            self._file.write(self._blocks.popleft().result())
        rest = bytes(self._pending)
        self._note(rest)
        self._file.write(_deflated(rest, self._before, zlib.Z_FINISH))
        self._file.write(self._sum.to_bytes(4, "little") + (self._size & 0xFFFFFFFF).to_bytes(4, "little"))

    def __enter__(self) -> Gzip:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        if kind is None:
            self.close()
        elif self._workers is not None:
            self._workers.shutdown(cancel_futures=True)


def _deflated(block: bytes, before: bytes, flush: int = zlib.Z_SYNC_FLUSH) -> bytes:
    packer = zlib.compressobj(6, zlib.DEFLATED, -zlib.MAX_WBITS, zdict=before)
    return packer.compress(block) + packer.flush(flush)


class _Kept:
    """A file that outlives the stream that writes to it."""

    closed = False

    def __init__(self, file: IO[bytes]) -> None:
        self.write = file.write
        self.flush = file.flush
        self.tell = file.tell

    def close(self) -> None:
        self.flush()
