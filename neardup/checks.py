"""Numbers from a caller: the value if it can be used, an error with the way out if not."""

from __future__ import annotations

import numbers
import operator
import os
from typing import Any, Final

from neardup.errors import InvalidType, InvalidValue, shown

MAX_THREADS: Final = 1024


def whole(name: str, value: object, lowest: int, highest: int | None = None) -> int:
    """*value* as an int, if it is an integer from *lowest* to *highest*.

    >>> whole("radius", 3, 0, 64)
    3
    >>> whole("radius", -1, 0, 64)
    Traceback (most recent call last):
    neardup.errors.InvalidValue: radius must be from 0 to 64, not -1
    """
    try:
        if isinstance(value, bool):
            raise TypeError
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:  # an array claims that it can be an index, and then cannot
        raise InvalidType(f"{name} must be an integer, not {shown(value)}") from None
    if number < lowest or (highest is not None and number > highest):
        span = f"at least {lowest}" if highest is None else f"from {lowest} to {highest}"
        raise InvalidValue(f"{name} must be {span}, not {shown(value)}")
    return number


def check_share(name: str, value: Any) -> float:
    """*value* if it is a number above 0 and at most 1."""
    real = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not real:
        raise InvalidType(f"{name} must be a number, not {shown(value)}")
    if not 0 < value <= 1:
        raise InvalidValue(f"{name} must be above 0 and at most 1, not {shown(value)}")
    return float(value)


def share_of(text: str) -> float:
    """The number that *text* says, also in per cent; whether it is a share is for others to say.

    >>> share_of("0.05"), share_of("5%")
    (0.05, 0.05)
    """
    return float(text[:-1]) / 100 if text.endswith("%") else float(text)


def check_text(name: str, value: object) -> str:
    """*value* if it is a str."""
    if not isinstance(value, str):
        raise InvalidType(f"{name} must be a str, not {shown(value)}")
    return value


def check_flag(name: str, value: object) -> bool:
    """*value* if it is True or False."""
    if not isinstance(value, bool):
        raise InvalidType(f"{name} must be True or False, not {shown(value)}")
    return value


def check_threads(threads: int | None) -> int | None:
    """*threads* if there can be this many; None asks for as many as the machine has."""
    return None if threads is None else whole("threads", threads, 1, MAX_THREADS)


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
