"""Counts and sizes in words, for people: one helper for every plural."""

from __future__ import annotations


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """A count and its noun.

    >>> counted(1, "document"), counted(2_000, "bad record"), counted(0, "entry", "entries")
    ('1 document', '2,000 bad records', '0 entries')
    """
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def a(noun: str) -> str:
    """One of them.

    >>> a("document"), a("image")
    ('a document', 'an image')
    """
    return f"{'an' if noun[:1] in 'aeiou' else 'a'} {noun}"


def size(number: int) -> str:
    """Bytes, in the largest unit that leaves a whole one.

    >>> size(1), size(999), size(1_500), size(71_300_000), size(-2_000_000_000)
    ('1 byte', '999 bytes', '1.5 kB', '71.3 MB', '-2.0 GB')
    """
    value, unit = float(number), ""
    for unit in ("", "kB", "MB", "GB", "TB"):
        if abs(value) < 999.95 or unit == "TB":
            break
        value /= 1000
    return f"{value:.1f} {unit}" if unit else counted(number, "byte")
