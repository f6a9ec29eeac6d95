"""How much of an input is believed: the limits that keep a hostile file from filling memory."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Final

from neardup.errors import InvalidType, InvalidValue

MIB: Final = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The largest of everything, in bytes unless said; each can be replaced.

    >>> Limits(line=1000).line
    1000
    """

    line: int = 64 * MIB  # a line of JSONL, a record of CSV, a row of a table
    text: int = 1024 * MIB  # a text file
    ratio: int = 1000  # decompressed bytes for one compressed byte ...
    ratio_after: int = 100 * MIB  # ... looked at after so many
    depth: int = 128  # levels of nested JSON
    pixels: int = 178_956_970  # of a picture

    def __post_init__(self) -> None:
        for part in fields(self):
            value = getattr(self, part.name)
            if isinstance(value, bool) or not isinstance(value, int):
                raise InvalidType(f"limit {part.name} must be an integer, not {value!r}")
            if value < 1:
                raise InvalidValue(f"limit {part.name} must be at least 1, not {value}")


DEFAULT: Final = Limits()


def size(count: int) -> str:
    """A number of bytes as people say it.

    >>> size(64 << 20), size(1500)
    ('64.0 MiB', '1500 bytes')
    """
    for unit, name in ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB")):
        if count >= unit:
            return f"{count / unit:.1f} {name}"
    return f"{count} bytes"
