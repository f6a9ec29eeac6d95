"""Shelves: captures set aside as they come, and given back page by page in the order of time.

Texts beyond some memory go to a temporary file; for each capture about 20 bytes are held, and the name of
each page once. What is given back depends on the captures alone, not on the order in which they came:
captures of one moment are ordered by id, then by their text.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from tempfile import SpooledTemporaryFile, gettempdir
from types import TracebackType
from typing import IO, Any, Final, cast

import numpy as np
import numpy.typing as npt

from neardup.errors import NotWritten, Said, Setting

# Lengths of id, date, fingerprint and text, and what the text is known by.
_HEAD: Final = struct.Struct("<IIIQ32s")


@dataclass(frozen=True, slots=True)
class Held:
    """A capture as it was set aside."""

    moment: float
    id: str
    date: str
    text: str
    digest: bytes
    """Texts are equal if these are."""
    print: int | None

    def same_as(self, other: Held) -> bool:
        """Whether both are one capture that came twice."""
        return (self.moment, self.id, self.digest) == (other.moment, other.id, other.digest)


def digest_of(text: str) -> bytes:
    """What *text* is known by. A collision would be one of BLAKE2b with 256 bits."""
    return blake2b(text.encode(), digest_size=32).digest()


class Shelf:
    """Captures by page. To be left with `with`, as it may hold a file."""

    def __init__(self, memory: int) -> None:
        """Texts take up to *memory* bytes; from there on all are in a file."""
        file = SpooledTemporaryFile(max_size=memory)  # noqa: SIM115
        self._file = cast(IO[bytes], file)
        self._numbers: dict[str, int] = {}
        self._pages, self._moments, self._offsets = array("q"), array("d"), array("q")
        self._end = 0

    def __enter__(self) -> Shelf:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def __len__(self) -> int:
        """How many captures there are."""
        return len(self._offsets)

    @property
    def pages(self) -> int:
        """How many pages there are."""
        return len(self._numbers)

    def add(self, page: str, moment: float, id: str, date: str, text: str, print: int | None) -> None:
        """Set one capture aside."""
        parts = [id.encode(), date.encode(), b"" if print is None else _bytes(print), text.encode()]
        head = _HEAD.pack(*map(len, parts), digest_of(text))
        self._pages.append(self._numbers.setdefault(page, len(self._numbers)))
        self._moments.append(moment)
        self._offsets.append(self._end)
        try:
            for part in (head, *parts):
                self._file.write(part)
                self._end += len(part)
        except OSError as error:
            raise NotWritten(
                Said(
                    f"no room to set texts aside in {gettempdir()!r}: {error.strerror}; "
                    "name another folder with TMPDIR, or raise ",
                    Setting("memory"),
                )
            ) from None

    def by_page(self) -> Iterator[tuple[str, Iterator[Held]]]:
        """The pages by name, each with its captures by time. A page must be used up before the next one."""
        names = list(self._numbers)
        rank = np.empty(len(names), np.int64)
        rank[sorted(range(len(names)), key=names.__getitem__)] = np.arange(len(names))
        pages = rank[np.frombuffer(self._pages, np.int64)] if len(self) else np.empty(0, np.int64)
        moments = np.frombuffer(self._moments, np.float64) if len(self) else np.empty(0)
        order = np.lexsort((moments, pages))
        ends = np.flatnonzero(np.diff(pages[order], append=-1)) + 1
        names.sort()
        begin = 0
        for name, end in zip(names, ends.tolist(), strict=True):
            yield name, self._by_time(order[begin:end], moments)
            begin = end

    def _by_time(self, captures: npt.NDArray[Any], moments: npt.NDArray[np.float64]) -> Iterator[Held]:
        """The *captures* of one page, which are in the order of their moments."""
        at = 0
        while at < len(captures):
            moment, end = moments[captures[at]], at + 1
            while end < len(captures) and moments[captures[end]] == moment:
                end += 1
            same = captures[at:end].tolist()
            for capture in same if len(same) == 1 else sorted(same, key=self._order):
                yield self._read(capture)
            at = end

    def _order(self, capture: int) -> tuple[bytes, bytes]:
        """The place of a capture among those of one moment: its id and what its text is known by."""
        self._file.seek(self._offsets[capture])
        id, _, _, _, digest = _HEAD.unpack(self._file.read(_HEAD.size))
        return self._file.read(id), digest

    def _read(self, capture: int) -> Held:
        self._file.seek(self._offsets[capture])
        *lengths, digest = _HEAD.unpack(self._file.read(_HEAD.size))
        id, date, print, text = (self._file.read(length) for length in lengths)
        value = int.from_bytes(print, "little") if print else None
        return Held(self._moments[capture], id.decode(), date.decode(), text.decode(), digest, value)


def _bytes(value: int) -> bytes:
    """At least one byte, as none stands for no fingerprint."""
    return value.to_bytes(value.bit_length() // 8 + 1, "little")
