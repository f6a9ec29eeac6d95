"""Keep rules: which document of a cluster stays.

A rule is a total order: ties are broken by id, so the order of the input decides nothing,
except under `first` and `last`. Rules stand after each other, separated by commas: the next
one decides where the one before does not.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime, timezone
from functools import lru_cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup import _native
from neardup.arrays import core_texts
from neardup.errors import InvalidValue
from neardup.registry import Registry
from neardup.types import label

Scores = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Rule:
    """One step of an order: the field it looks at, and a score of which the higher stays."""

    name: str
    field: str | None
    score: Callable[[Any], float | int] | None


def _plain(name: str) -> Callable[[], Rule]:
    return lambda: Rule(name, None, None)


def _by_field(name: str, score: Callable[[Any], float | int]) -> Callable[[str], Rule]:
    def rule(field: str) -> Rule:
        if not field:
            raise InvalidValue(f"keep rule '{name}:' names no field; write {name}:FIELD")
        return Rule(f"{name}:{field}", field, score)

    return rule


def _prefer(argument: str) -> Rule:
    field, equals, values = argument.partition("=")
    ranks = {value.strip(): -rank for rank, value in enumerate(values.split(">"))}
    if not field or not equals or "" in ranks:
        raise InvalidValue(f"keep rule 'prefer:{argument}' is not of the form prefer:FIELD=a>b>c")
    last = -float(len(ranks))
    return Rule(f"prefer:{argument}", field, lambda value: ranks.get(label(value) or "", last))


def _path(prefix: str) -> Rule:
    if not prefix:
        raise InvalidValue("keep rule 'path:' names no folder; write path:PREFIX")
    return Rule(f"path:{prefix}", "path", lambda value: float(str(value).startswith(prefix)))


def number(value: Any) -> float | int:
    """A number, also one written as text; what is none comes last."""
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
    """Seconds since 1970 of a date, a time or a number; what is none comes last. Without a zone it is UTC.

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
        # ISO 8601 as it is met: 2024-05-01T10:00:00Z, 2024-5-1, 2024/05/01 10:00 UTC, 2024-05
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


# From here on a float no longer tells neighbours apart.
_EXACT: Final = 1 << 53


RULES: Registry[Rule] = Registry(
    "keep rule",
    {
        "central": _plain("central"),
        "longest": _plain("longest"),
        "shortest": _plain("shortest"),
        "first": _plain("first"),
        "last": _plain("last"),
        "newest": _by_field("newest", moment),
        "oldest": _by_field("oldest", lambda value: _reversed(moment(value))),
        "max": _by_field("max", number),
        "min": _by_field("min", lambda value: _reversed(number(value))),
        "prefer": _prefer,
        # Of pictures: most pixels, most bytes, files below a folder. oldest:exif looks at when it was taken.
        # A border makes a picture larger, not better: its pixels do not count.
        "resolution": lambda: Rule("resolution", "inner_pixels", number),
        "size": lambda: Rule("size", "bytes", number),
        "path": _path,
    },
)


def _reversed(score: float | int) -> float | int:
    return score if score == -math.inf else -score


@dataclass(frozen=True, slots=True)
class Keep:
    """A whole keep rule."""

    text: str
    rules: tuple[Rule, ...]
    none: bool = False
    """Whether nothing of a cluster stays."""

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields that the rules look at."""
        return tuple(dict.fromkeys(rule.field for rule in self.rules if rule.field is not None))


def parse_keep(text: str) -> Keep:
    """The keep rule that *text* writes.

    >>> parse_keep("prefer:source=wiki>web,newest:date").fields
    ('source', 'date')
    >>> parse_keep("biggest")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    neardup.errors.UnknownName: unknown keep rule 'biggest'; known: central, first, ...
    """
    parts = [part.strip() for part in text.split(",")]
    none = "none" in parts
    return Keep(text, tuple(RULES.part(part) for part in parts if part != "none"), none)


def undated(keep: Keep, fields: Callable[[str], Sequence[Any]]) -> Iterator[tuple[Rule, list[Any]]]:
    """The values that newest: and oldest: find in their fields and do not understand."""
    for rule in keep.rules:
        if rule.field is not None and rule.name.startswith(("newest:", "oldest:")):
            odd = [value for value in fields(rule.field) if value not in (None, "")]
            if odd := [value for value in odd if moment(value) == -math.inf]:
                yield rule, odd


def _ranked(scores: list[float | int]) -> npt.NDArray[np.uint32]:
    """Places in the order of *scores*, compared as they are: a float cannot hold every integer."""
    places = {score: place for place, score in enumerate(sorted(set(scores)))}
    return np.array([places[score] for score in scores], dtype=np.uint32)


def keep_order(
    keep: Keep,
    ids: pa.LargeStringArray,
    lengths: npt.NDArray[Any],
    fields: Mapping[str, Sequence[Any]],
    *,
    rows: npt.NDArray[np.int32] | None = None,
    pairs: npt.NDArray[np.uint32] | None = None,
    fixed: npt.NDArray[np.bool_] | None = None,
    threads: int | None = None,
) -> npt.NDArray[np.int32]:
    """The documents' positions, the one to keep first.

    With *rows* the places of those in it. *pairs* says in how many verified pairs each document is, for
    `central`; *fixed* ones come first.

    >>> ids = pa.array(["b", "a", "c"], pa.large_string())
    >>> keep_order(parse_keep("longest"), ids, np.array([5, 5, 9]), {}).tolist()
    [2, 1, 0]
    """
    # Each key is a number of 32 bits, and whether the highest comes first.
    keys: list[tuple[npt.NDArray[np.uint32], bool]] = []
    if fixed is not None and fixed.any():
        keys.append((fixed.astype(np.uint32), True))
    for rule in keep.rules:
        if rule.field is not None and rule.score is not None:
            keys.append((_ranked([rule.score(value) for value in fields[rule.field]]), True))
        elif rule.name == "central":
            keys += [] if pairs is None else [(pairs, True)]
        elif rule.name in ("longest", "shortest"):
            keys.append((lengths.astype(np.uint32, copy=False), rule.name == "longest"))
        else:
            keys.append((np.arange(len(ids), dtype=np.uint32), rule.name == "last"))
    return _native.ordered(core_texts(ids), rows, keys, threads)
