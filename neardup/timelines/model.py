"""What a timeline says: pages, their captures in the order of time, and how each differs from others.

A state is one content of a page. A capture belongs to the state whose first capture it was compared with
and found the same as: never to one by way of a third capture, so a page that changes little by little gets
a new state as soon as it is too far from where the last one began.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import pyarrow as pa

from neardup.checks import check_share, check_text
from neardup.diffs import Shown
from neardup.verifiers import parse_measure


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """What a user may choose about a timeline.

    `within` is the field that names the page of a capture, `order` the one with its date. Two captures are
    the same from `similarity` on, if the rule that `verify` names has no objection.
    """

    within: str = "url"
    order: str = "date"
    similarity: float = 0.99
    verify: str = "default"

    def __post_init__(self) -> None:
        for name in ("within", "order", "verify"):
            check_text(name, getattr(self, name))
        parse_measure(self.verify, check_share("similarity", self.similarity))

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields of a document that are needed."""
        return tuple(dict.fromkeys((self.within, self.order)))


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two captures compared. Distance and similarity are None if one of them says nothing."""

    distance: int | None
    similarity: float | None
    same: bool
    reason: str


@dataclass(frozen=True, slots=True)
class Capture:
    """One capture of a page, compared with the one before and with the first one (None for the first)."""

    number: int
    """Its place in the page's captures, from 1."""
    id: str
    date: str
    """As it was written."""
    time: str
    """The same in UTC."""
    state: int
    """States are numbered as they appear, from 1."""
    run: int
    """Captures after each other that have one state; runs are numbered from 1."""
    returned: bool
    """Whether its state was there before, with another one in between, and comes back with this capture."""
    words: int
    fingerprint: str | None
    before: Comparison | None = None
    first: Comparison | None = None
    added: int = 0
    """Words that the capture before did not have there."""
    removed: int = 0
    passages: int = 0
    """Places where words were added, removed or replaced."""
    diff: tuple[Shown, ...] = ()
    """What is worth showing of that: the first passages, with some words around them."""

    @property
    def changes(self) -> list[dict[str, str]]:
        """The passages that are shown, without what is around them."""
        return [
            {"removed": piece.left.strip(), "added": piece.right.strip()}
            for piece in self.diff
            if piece.op == "change"
        ]


@dataclass(frozen=True, eq=False)
class Page:
    """The captures of one page, by time."""

    name: str
    captures: tuple[Capture, ...]
    repeated: int = 0
    """Captures that were left out because the same one was there already."""

    @cached_property
    def states(self) -> int:
        """How many different ones there are."""
        return max(capture.state for capture in self.captures)

    @cached_property
    def runs(self) -> tuple[tuple[Capture, ...], ...]:
        """Captures after each other that have one state."""
        found: list[list[Capture]] = []
        for capture in self.captures:
            if len(found) < capture.run:
                found.append([])
            found[-1].append(capture)
        return tuple(map(tuple, found))

    @property
    def changes(self) -> int:
        """How often the state changed from one capture to the next."""
        return len(self.runs) - 1

    @cached_property
    def changed(self) -> float:
        """How much changed in all: 1 minus the similarity to the one before, added up."""
        known = [one.before.similarity for one in self.captures if one.before is not None]
        return sum(1 - similarity for similarity in known if similarity is not None)

    @property
    def rank(self) -> tuple[Any, ...]:
        """Where it is among pages, the one that changed most first."""
        return -self.changes, -round(self.changed, 6), -len(self.captures), self.name


CHANGES: Final = pa.list_(pa.struct([("removed", pa.string()), ("added", pa.string())]))
SCHEMA: Final = pa.schema(
    [
        ("page", pa.string()),
        ("capture", pa.int64()),
        ("id", pa.string()),
        ("date", pa.string()),
        ("time", pa.string()),
        ("state", pa.int64()),
        ("run", pa.int64()),
        ("returned", pa.bool_()),
        ("before_distance", pa.int64()),
        ("before_similarity", pa.float64()),
        ("before_reason", pa.string()),
        ("first_distance", pa.int64()),
        ("first_similarity", pa.float64()),
        ("first_reason", pa.string()),
        ("words", pa.int64()),
        ("added", pa.int64()),
        ("removed", pa.int64()),
        ("passages", pa.int64()),
        ("changes", CHANGES),
        ("fingerprint", pa.string()),
    ]
)


def rows(page: Page) -> Iterable[dict[str, Any]]:
    """A row of `SCHEMA` for each capture."""
    for one in page.captures:
        row = {
            "page": page.name,
            "capture": one.number,
            "id": one.id,
            "date": one.date,
            "time": one.time,
            "state": one.state,
            "run": one.run,
            "returned": one.returned,
        }
        for name, compared in (("before", one.before), ("first", one.first)):
            row[f"{name}_distance"] = None if compared is None else compared.distance
            row[f"{name}_similarity"] = None if compared is None else compared.similarity
            row[f"{name}_reason"] = None if compared is None else compared.reason
        yield row | {
            "words": one.words,
            "added": one.added,
            "removed": one.removed,
            "passages": one.passages,
            "changes": one.changes,
            "fingerprint": one.fingerprint,
        }


def table(pages: Iterable[Page]) -> pa.RecordBatch:
    """The rows of some pages."""
    return pa.RecordBatch.from_pylist([row for page in pages for row in rows(page)], schema=SCHEMA)
