"""Lines of a byte stream, in blocks; a line over the limit is skipped without being kept.

Only LF ends a line. CR, U+2028, U+0085 and the like are bytes of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from neardup import _native
from neardup.sources.limits import InputLimits
from neardup.sources.streams import Broken

HEAD: Final = 64 * 1024  # what is kept of a line that is too long
_BOM: Final = b"\xef\xbb\xbf"
_WIDE: Final = {b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}


@dataclass(frozen=True, slots=True)
class Block:
    """Whole lines: `data` is their bytes; the last line end may be missing at the end of the input."""

    data: bytes
    line: int  # number of the first, from 1
    offset: int  # of the first, in bytes

    def __len__(self) -> int:
        """How many lines it has."""
        return _native.line_ends(self.data) + (not self.data.endswith(b"\n"))

    def lines(self) -> list[bytes]:
        """Its lines without their LF."""
        lines = self.data.split(b"\n")
        if not lines[-1]:
            lines.pop()
        return lines

    def offsets(self) -> list[int]:
        """The byte offset of each line."""
        return list(accumulate((len(line) + 1 for line in self.lines()), initial=self.offset))


@dataclass(frozen=True, slots=True)
class LongLine:
    """A line over the limit: where it is, how long it is, and its first bytes."""

    head: bytes
    line: int
    offset: int
    length: int


def blocks(chunks: Iterator[bytes], *, limits: InputLimits) -> Iterator[Block | LongLine]:
    """All lines of *chunks* in order. A broken stream raises with the place and the bytes of the cut line."""
    line, offset, pending = 1, 0, bytearray()
    long: LongLine | None = None
    first = True
    try:
        for chunk in chunks:
            if first:
                first = False
                if chunk[:2] in _WIDE:
                    raise Broken(f"is {_WIDE[chunk[:2]]} text; convert it: iconv -f UTF-16 -t UTF-8")
                if chunk.startswith(_BOM):
                    chunk, offset = chunk[len(_BOM) :], len(_BOM)
            start = 0
            if long is not None:
                end = chunk.find(b"\n")
                if end < 0:
                    long = LongLine(long.head, long.line, long.offset, long.length + len(chunk))
                    continue
                yield LongLine(long.head, long.line, long.offset, long.length + end)
                line, offset, start, long = line + 1, offset + long.length + end + 1, end + 1, None
            cut = chunk.rfind(b"\n") + 1
            if cut > start:
                data = (
                    b"".join((pending, memoryview(chunk)[start:cut]))
                    if pending or start or cut < len(chunk)
                    else chunk
                )
                pending.clear()
                block = Block(data, line, offset)
                yield from _checked(block, limits)
                line, offset, start = line + len(block), offset + len(data), cut
            pending += chunk[start:]
            if len(pending) > limits.line:
                long = LongLine(bytes(pending[:HEAD]), line, offset, len(pending))
                pending = bytearray()
    except Broken as error:
        if long is not None:
            yield long
            raise Broken(error.reason, line=line, offset=offset) from None
        raise Broken(error.reason, line=line, offset=offset, raw=bytes(pending[:HEAD])) from None
    if long is not None:
        yield long
    elif pending:
        yield from _checked(Block(bytes(pending), line, offset), limits)


def _checked(block: Block, limits: InputLimits) -> Iterator[Block | LongLine]:
    """*block*, taken apart where one of its lines is over the limit."""
    if len(block.data) <= limits.line:
        yield block
        return
    start = position = 0
    first = number = block.line
    for one in block.lines():
        after = position + len(one) + 1
        if len(one) > limits.line:
            if start < position:
                yield Block(block.data[start:position], first, block.offset + start)
            yield LongLine(one[:HEAD], number, block.offset + position, len(one))
            start, first = after, number + 1
        position, number = after, number + 1
    if start < len(block.data):
        yield Block(block.data[start:], first, block.offset + start)
