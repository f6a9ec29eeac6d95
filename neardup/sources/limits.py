"""How much of an input is believed: the limits that keep a hostile file from filling memory."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Final

from neardup.checks import share_of
from neardup.errors import InvalidType, InvalidValue, LimitReached, shown
from neardup.types import Bad

MIB: Final = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class InputLimits:
    """The largest of everything, in bytes unless noted; each can be replaced.

    >>> InputLimits(line=1000).line
    1000
    """

    line: int = 64 * MIB  # a line of JSONL, a record of CSV, a row of a table
    text: int = 1024 * MIB  # a text file
    ratio: int = 1000  # decompressed bytes for one compressed byte ...
    ratio_after: int = 100 * MIB  # ... checked after this many bytes
    depth: int = 128  # levels of nested JSON
    pixels: int = 178_956_970  # of an image

    def __post_init__(self) -> None:
        for part in fields(self):
            value = getattr(self, part.name)
            if isinstance(value, bool) or not isinstance(value, int):
                raise InvalidType(f"limit {part.name} must be an integer, not {value!r}")
            if value < 1:
                raise InvalidValue(f"limit {part.name} must be at least 1, not {value}")


Limits = InputLimits  # as users write it: neardup.sources.Limits
DEFAULT: Final = InputLimits()


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How many bad records a run bears: a number, or a share of all records.

    >>> Tolerance.of("5%"), Tolerance.of("12")
    (Tolerance(count=None, share=0.05), Tolerance(count=12, share=None))
    """

    count: int | None = None
    share: float | None = None

    @classmethod
    def of(cls, text: str) -> Tolerance:
        """From `N` or `P%`."""
        try:
            if text.endswith("%"):
                share = share_of(text)
                if 0 <= share <= 1:
                    return cls(share=share)
            elif (count := int(text)) >= 0:
                return cls(count=count)
        except ValueError:
            pass
        raise InvalidValue(f"{text!r} is not a number of bad records or a share such as 5%")

    def check(self, bad: int, records: int | None, last: Bad | None = None) -> None:
        """Raise if *bad* is too many; a share is checked only when the number of *records* is known."""
        if self.count is not None and bad > self.count:
            one = "" if last is None else f"{shown(last.file)}, line {last.line}, {last.reason}: "
            raise LimitReached(
                f"{one}more than {self.count} records are bad; see the quarantine file, or allow more"
            )
        if self.share is not None and records and bad > self.share * records:
            raise LimitReached(
                f"{bad} of {records} records are bad, more than {self.share:.4g} of all; "
                "see the quarantine file, or allow more"
            )


ANY: Final = Tolerance()


def size(count: int) -> str:
    """A number of bytes as people say it.

    >>> size(64 << 20), size(1500)
    ('64.0 MiB', '1500 bytes')
    """
    for unit, name in ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB")):
        if count >= unit:
            return f"{count / unit:.1f} {name}"
    return f"{count} bytes"
