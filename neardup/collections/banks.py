"""Banks: name spaces of documents, and which of them a question is about.

A choice is a list of names and globs; what begins with a minus is left out. Without a choice all banks that
are enabled are meant; a bank that is not enabled is searched only if it is named in full.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from fnmatch import fnmatchcase
from typing import Any, Final

from neardup.checks import whole
from neardup.errors import InvalidType, InvalidValue, UnknownName, shown
from neardup.store import Bank

MAIN: Final = "main"
_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,63}", re.ASCII)
_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_LONGEST: Final = 1 << 40


def check_bank(name: Any) -> str:
    """*name* if a bank can have it."""
    if not isinstance(name, str):
        raise InvalidType(f"bank must be a str, not {shown(name)}")
    if _NAME.fullmatch(name) is None:
        raise InvalidValue(
            f"{shown(name)} cannot be the name of a bank; use up to 64 letters, digits and . _ -, and begin "
            "with a letter, a digit or _"
        )
    return name


def seconds_of(name: str, value: Any) -> int | None:
    """How many seconds *value* is: a number, a timedelta, or a text such as 30d, 12h, 90m.

    >>> seconds_of("expires_after", "30d"), seconds_of("expires_after", 90)
    (2592000, 90)
    """
    if value is None:
        return None
    if isinstance(value, timedelta):
        value = int(value.total_seconds())
    if isinstance(value, str):
        number, unit = value[:-1], value[-1:]
        if not (number.isascii() and number.isdecimal() and unit in _UNITS and len(number) < 12):
            raise InvalidValue(f"{name} {shown(value)} is not a time such as 30d, 12h, 90m or 45s")
        value = int(number) * _UNITS[unit]
    return whole(name, value, 1, _LONGEST)


def chosen(banks: Any, known: Mapping[str, Bank]) -> frozenset[str]:
    """The names of the banks that a choice means.

    >>> known = {name: Bank(name, None, "[]", 1, 0) for name in ("wire", "agency-a", "agency-b", "own")}
    >>> sorted(chosen(["agency-*", "wire", "-agency-b"], known))
    ['agency-a', 'wire']
    """
    if banks is None:
        return frozenset(name for name, bank in known.items() if bank.enabled)
    words = [banks] if isinstance(banks, str) else banks
    words = list(words) if isinstance(words, Iterable) else [None]
    if not all(isinstance(word, str) and word for word in words):
        raise InvalidType(f"banks must be names or globs, not {shown(banks)}")
    found: set[str] = set()
    if not any(not word.startswith("-") for word in words):
        found = {name for name, bank in known.items() if bank.enabled}
    for word in words:
        if word.startswith("-"):
            found -= {name for name in known if fnmatchcase(name, word[1:])}
            continue
        if word in known:
            found.add(word)
            continue
        matching = {name for name, bank in known.items() if bank.enabled and fnmatchcase(name, word)}
        if not matching and not set(word) & set("*?["):
            names = ", ".join(sorted(known)) or "none yet"
            raise UnknownName(f"unknown bank {shown(word)}; known: {names}")
        found |= matching
    return frozenset(found)


def suppressed(found: Mapping[str, Any], known: Mapping[str, Bank]) -> frozenset[str]:
    """The banks whose matches are left out because of those in which something was *found*."""
    gone: set[str] = set()
    for name in found:
        globs: Sequence[str] = json.loads(known[name].suppresses)
        gone |= {
            other for other in known if other != name and any(fnmatchcase(other, glob) for glob in globs)
        }
    return frozenset(gone)
