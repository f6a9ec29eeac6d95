"""Keep rules: which document of a cluster stays.

A rule is a total order: ties are broken by id, so the order of the input decides nothing,
except under `first` and `last`. Rules follow each other, separated by commas: the next
one decides where the one before does not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup import _native
from neardup.arrays import core_texts
from neardup.dates import moment, number
from neardup.errors import InvalidValue
from neardup.registry import Registry
from neardup.types import label

Scores = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class KeepRule:
    """One step of an order: the field it looks at, and a score of which the higher stays."""

    name: str
    field: str | None
    score: Callable[[Any], float | int] | None


def _plain(name: str) -> Callable[[], KeepRule]:
    return lambda: KeepRule(name, None, None)


def _by_field(name: str, score: Callable[[Any], float | int]) -> Callable[[str], KeepRule]:
    def rule(field: str) -> KeepRule:
        if not field:
            raise InvalidValue(f"keep rule '{name}:' names no field; write {name}:FIELD")
        return KeepRule(f"{name}:{field}", field, score)

    return rule


def _prefer(argument: str) -> KeepRule:
    field, equals, values = argument.partition("=")
    ranks = {value.strip(): -rank for rank, value in enumerate(values.split(">"))}
    if not field or not equals or "" in ranks:
        raise InvalidValue(f"keep rule 'prefer:{argument}' is not of the form prefer:FIELD=a>b>c")
    last = -float(len(ranks))
    return KeepRule(f"prefer:{argument}", field, lambda value: ranks.get(label(value) or "", last))


def _path(prefix: str) -> KeepRule:
    if not prefix:
        raise InvalidValue("keep rule 'path:' names no folder; write path:PREFIX")
    return KeepRule(f"path:{prefix}", "path", lambda value: float(str(value).startswith(prefix)))


RULES: Registry[KeepRule] = Registry(
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
        # For images: most pixels, most bytes, files below a folder. oldest:exif goes by when it was taken.
        # A border makes an image larger, not better: its pixels do not count.
        "resolution": lambda: KeepRule("resolution", "inner_pixels", number),
        "size": lambda: KeepRule("size", "bytes", number),
        "path": _path,
        # Nothing drawn over it, no page around it in most of its pairs; then the least of borders and bars.
        "original": lambda: KeepRule("original", "border", lambda value: _reversed(number(value))),
        # Measured on all images at one scale.
        "sharpest": lambda: KeepRule("sharpest", "sharpness", number),
    },
)


def _reversed(score: float | int) -> float | int:
    return score if score == -math.inf else -score


@dataclass(frozen=True, slots=True)
class Keep:
    """A whole keep rule."""

    text: str
    rules: tuple[KeepRule, ...]
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


def undated(keep: Keep, fields: Callable[[str], Sequence[Any]]) -> Iterator[tuple[KeepRule, list[Any]]]:
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
    added: npt.NDArray[np.uint32] | None = None,
    fixed: npt.NDArray[np.bool_] | None = None,
    threads: int | None = None,
) -> npt.NDArray[np.int32]:
    """The documents' positions, the one to keep first.

    With *rows* the places of those in it. *pairs* says in how many verified pairs each document is, for
    `central`, and *added* in how many of them it is the one that has something added, for `original`. *fixed*
    ones come first.

    >>> ids = pa.array(["b", "a", "c"], pa.large_string())
    >>> keep_order(parse_keep("longest"), ids, np.array([5, 5, 9]), {}).tolist()
    [2, 1, 0]
    """
    # Each key is a number of 32 bits, and whether the highest comes first.
    keys: list[tuple[npt.NDArray[np.uint32], bool]] = []
    if fixed is not None and fixed.any():
        keys.append((fixed.astype(np.uint32), True))
    for rule in keep.rules:
        if rule.name == "original" and added is not None:
            keys.append((added, False))
        if rule.field is not None and rule.score is not None:
            keys.append((_ranked([rule.score(value) for value in fields[rule.field]]), True))
        elif rule.name == "central":
            keys += [] if pairs is None else [(pairs, True)]
        elif rule.name in ("longest", "shortest"):
            keys.append((lengths.astype(np.uint32, copy=False), rule.name == "longest"))
        else:
            keys.append((np.arange(len(ids), dtype=np.uint32), rule.name == "last"))
    return _native.ordered(core_texts(ids), rows, keys, threads)
