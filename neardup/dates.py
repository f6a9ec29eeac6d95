"""Numbers and moments as fields write them: what is compared to order documents by a field."""

from __future__ import annotations

import math
import re
from contextlib import suppress
from datetime import date, datetime, timezone
from functools import lru_cache
from typing import Any, Final

# From here on a float no longer tells neighbours apart.
_EXACT: Final = 1 << 53


def number(value: Any) -> float | int:
    """A number, possibly written as text; anything else comes last."""
    if isinstance(value, int):
        return value
    try:
        found = float(value)
    except (TypeError, ValueError, OverflowError):
        return -math.inf
    if isinstance(value, str) and _EXACT <= abs(found) < math.inf:
        with suppress(ValueError):
            return int(value)
    return -math.inf if math.isnan(found) else found


def moment(value: Any) -> float | int:
    """Seconds since 1970 of a date, a time or a number; anything else comes last. Without a zone it is UTC.

    A number of four digits is a year, of eight a day, of fourteen a second; others count seconds since 1970,
    or what they must count to come before the year 5138: milliseconds, microseconds, nanoseconds.

    >>> moment("2024-05-01T12:00:00Z") - moment("2024-05-01T11:00:00+00:00")
    3600.0
    >>> {moment("Wed, 01 May 2024 00:00:00 GMT"), moment("2024-5-1"), moment(20240501), moment("2024-W18-3")}
    {1714521600.0}
    >>> moment("01/05/2024")  # of January or of May
    -inf
    """
    if isinstance(value, str):
        return _written(value) if len(value) <= 100 else -math.inf
    if isinstance(value, datetime):
        return (value if value.tzinfo else value.replace(tzinfo=timezone.utc)).timestamp()
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day, tzinfo=timezone.utc).timestamp()
    return _counted(number(value))


@lru_cache(1 << 16)
def _written(text: str) -> float:
    text = " ".join(text.split())
    for form in _FORMS:
        if (found := form.fullmatch(text)) is not None:
            return _seconds(found.groupdict())
    return _counted(number(text))


def _counted(found: float | int) -> float:
    if abs(found) >= 10**20:
        return -math.inf
    if int(found) == found and (digits := _DIGITS.fullmatch(str(int(found)))) is not None:
        return _seconds(digits.groupdict())
    while abs(found) >= 10**11:
        found /= 1000
    return float(found)


_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_CLOCK: Final = (
    r"(?P<hour>[0-9]{2})(?::?(?P<minute>[0-9]{2})(?::?(?P<second>[0-9]{2})(?:[.,](?P<part>[0-9]+))?)?)?"
)
_ZONES: Final = r"z|utc?|gmt|[+-][0-9]{2}(?::?[0-9]{2})?"
# Our own forms; not datetime.fromisoformat or email.utils, which read other texts in each version of Python.
_FORMS: Final = tuple(
    re.compile(form, re.ASCII | re.IGNORECASE)
    for form in (
        # ISO 8601 as found in practice: 2024-05-01T10:00:00Z, 2024-5-1, 2024/05/01 10:00 UTC, 2024-05
        r"(?P<year>[0-9]{4})(?P<mark>[-/])(?P<month>[0-9]{1,2})"
        rf"(?:(?P=mark)(?P<day>[0-9]{{1,2}})(?:[t ]{_CLOCK} ?(?P<zone>{_ZONES})?)?)?",
        # 20240501T100000Z
        rf"(?P<year>[0-9]{{4}})(?P<month>[0-9]{{2}})(?P<day>[0-9]{{2}})[t ]{_CLOCK} ?(?P<zone>{_ZONES})?",
        # 2024-W18-3
        r"(?P<year>[0-9]{4})-?w(?P<week>[0-9]{2})(?:-?(?P<weekday>[1-7]))?",
        # RFC 2822, of mails, feeds and HTTP: Wed, 01 May 2024 10:00:00 GMT
        rf"(?:[a-z]{{3}}, ?)?(?P<day>[0-9]{{1,2}}) (?P<name>{'|'.join(_MONTHS)}) (?P<year>[0-9]{{4}})"
        rf"(?: {_CLOCK} ?(?P<zone>{_ZONES}|[ecmp][sd]t)?(?: \([^()]*\))?)?",
    )
)
_DIGITS: Final = re.compile(
    r"(?P<year>[0-9]{4})(?:(?P<month>[0-9]{2})(?P<day>[0-9]{2})"
    r"(?:(?P<hour>[0-9]{2})(?P<minute>[0-9]{2})(?P<second>[0-9]{2}))?)?"
)


def _seconds(part: dict[str, str | None]) -> float:
    """Seconds since 1970 of the parts of a written time; -inf if there is no such day or hour."""
    year, hour, minute, second = (int(part.get(name) or 0) for name in ("year", "hour", "minute", "second"))
    month = _MONTHS.index(name.lower()) + 1 if (name := part.get("name")) else int(part.get("month") or 1)
    try:
        if week := part.get("week"):
            day = date.fromisocalendar(year, int(week), int(part["weekday"] or 1))
        else:
            day = date(year, month, int(part.get("day") or 1))
        whole = datetime(day.year, day.month, day.day, hour, minute, tzinfo=timezone.utc).timestamp()
    except ValueError:
        return -math.inf
    # A leap second, 23:59:60, is the next one.
    return whole + min(second, 60) - _ahead(part.get("zone") or "z") + float(f"0.{part.get('part') or 0}")


def _ahead(zone: str) -> int:
    """By how many seconds the clocks of *zone* are ahead of UTC."""
    if zone[0] in "+-":
        ahead = int(zone[1:3]) * 3600 + int(zone[3:].lstrip(":") or 0) * 60
        return ahead if zone[0] == "+" else -ahead
    zone = zone.lower()
    # EST, EDT ... PDT, which RFC 2822 knows.
    return ("ecmp".index(zone[0]) + 5 - (zone[1] == "d")) * -3600 if zone[0] in "ecmp" else 0
