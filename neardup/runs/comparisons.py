"""Comparisons: where two runs differ, document by document and pair by pair."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from neardup.results import ANNOTATIONS as COLUMNS
from neardup.runs.run import Run

DECISION: Final = ("keep", "cluster", "duplicate_of")  # columns of the annotations
FIGURES: Final = ("distance", "similarity")


@dataclass(frozen=True, slots=True)
class Change:
    """A document, or pair, that two runs tell differently."""

    id: str
    column: str
    left: Any
    right: Any


@dataclass(frozen=True, slots=True)
class Differences:
    """Where two runs differ. They are equal if they say the same, figures too, of every document and pair.

    Settings and inputs that differ explain a difference and are none by themselves: the same documents
    in other files must give the same result.
    """

    settings: tuple[Change, ...]
    inputs: tuple[Change, ...]
    only_left: int
    only_right: int
    changed: int
    """Documents with another decision: `keep`, `cluster` or `duplicate_of`."""
    figures: int
    """Documents with the same decision, and another `distance` or `similarity`."""
    pairs: int
    examples: tuple[Change, ...]

    @property
    def equal(self) -> bool:
        return not (self.only_left or self.only_right or self.changed or self.figures or self.pairs)


def compare_runs(left: Run, right: Run, *, most: int = 20) -> Differences:
    """Where two runs differ, with at most *most* examples."""
    for run in (left, right):
        run.check()
    a, b = left.annotations.combine_chunks(), right.annotations.combine_chunks()
    examples: list[Change] = []
    in_b = pc.is_in(a.column("id"), value_set=b.column("id"))
    in_a = pc.is_in(b.column("id"), value_set=a.column("id"))
    gone, new = a.filter(pc.invert(in_b)), b.filter(pc.invert(in_a))
    examples += [Change(id, "id", id, None) for id in gone.column("id").slice(0, most).to_pylist()]
    examples += [Change(id, "id", None, id) for id in new.column("id").slice(0, most).to_pylist()]
    a, b = _by(a.filter(in_b), "id"), _by(b.filter(in_a), "id")
    changed = _changed(a, b, DECISION)
    figures = pc.and_not(_changed(a, b, FIGURES), changed)
    rows = [
        row for which in (changed, figures) for row in pc.indices_nonzero(which).slice(0, most).to_pylist()
    ]
    for row in rows[:most]:
        ours, theirs = a.slice(row, 1).to_pylist()[0], b.slice(row, 1).to_pylist()[0]
        examples += [
            Change(ours["id"], column, ours[column], theirs[column])
            for column in COLUMNS.names[1:]
            if ours[column] != theirs[column]
        ]
    pairs = _pairs_apart(left.evidence, right.evidence)
    return Differences(
        settings=_settings_apart(left.manifest, right.manifest),
        inputs=_inputs_apart(left, right),
        only_left=len(gone),
        only_right=len(new),
        changed=pc.sum(changed).as_py() or 0,
        figures=pc.sum(figures).as_py() or 0,
        pairs=pairs,
        examples=tuple(examples[:most]),
    )


def _by(table: pa.Table, *names: str) -> pa.Table:
    return table.sort_by([(name, "ascending") for name in names])


def _changed(a: pa.Table, b: pa.Table, columns: Sequence[str]) -> Any:
    """Which rows differ in a column."""
    found = pa.array([False] * len(a)) if not len(a) else pc.not_equal(a.column("id"), b.column("id"))
    for name in columns:
        ours, theirs = a.column(name), b.column(name)
        other = pc.if_else(
            pc.and_(ours.is_valid(), theirs.is_valid()),
            pc.fill_null(pc.not_equal(ours, theirs), False),
            pc.xor(ours.is_valid(), theirs.is_valid()),
        )
        found = pc.or_(found, other)
    return found


def _pairs_apart(a: pa.Table, b: pa.Table) -> int:
    """How many pairs are in only one table, or differ."""
    a, b = _by(a, "keeper", "id"), _by(b, "keeper", "id")
    if len(a) == len(b) and a.combine_chunks().equals(b.combine_chunks()):
        return 0
    ours, theirs = ({tuple(row.values()) for row in table.to_pylist()} for table in (a, b))
    return len({row[:2] for row in ours ^ theirs})


def _settings_apart(a: Mapping[str, Any], b: Mapping[str, Any]) -> tuple[Change, ...]:
    found = []
    for part in ("neardup", "scheme", "settings"):
        ours, theirs = (
            {part: one} if not isinstance(one, dict) else one for one in (a.get(part), b.get(part))
        )
        for name in sorted(ours.keys() | theirs.keys()):
            if ours.get(name) != theirs.get(name):
                shown = name if name == part else f"{part}.{name}"
                found.append(Change(shown, "setting", *(_short(one.get(name)) for one in (ours, theirs))))
    return tuple(found)


def _short(value: Any) -> Any:
    """A setting as it is shown: of a learned rule its digest."""
    return value.get("digest") if isinstance(value, dict) and "digest" in value else value


def _inputs_apart(a: Run, b: Run) -> tuple[Change, ...]:
    ours, theirs = ({one.path: one.sha256 for one in run.inputs} for run in (a, b))
    return tuple(
        Change(name, "sha256", ours.get(name), theirs.get(name))
        for name in sorted(ours.keys() | theirs.keys())
        if ours.get(name) != theirs.get(name)
    )
