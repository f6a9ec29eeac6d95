"""Workloads as data: what benchmarks/definitions/*.toml say, read and checked.

A workload names its input and the input's size, what is done with it (the model), the result that is
expected, and the engines that do it:

    [[workload]]
    name = "join 1 M"
    model = "join"                                  # a row of engines.MODELS
    input = { make = "uniform", count = 1_000_000 } # a row of inputs.INPUTS and its arguments
    bits = 64
    radius = 3
    expected = 50_015                               # a count, a digest, "equal" or ">=SHARE"
    quick = { count = 10_000, expected = 500 }      # with --quick; without this the workload is left out
    engines = [
        { name = "neardup", repeat = 25 },
        { name = "numpy blocks", repeat = 3 },
    ]

`expected = "equal"` is for inputs that differ from machine to machine: all engines must find the same;
`expected = ">=0.99"` is for a share that must be reached. An engine may have its own `expected`, where it
gets less (`limit`) or answers something else. Workloads with one `turn` are measured in turn, so that a
burst of other work on the machine meets all of them; a file that says `rounds = true` measures all of its
engines in turn. `by_name = true` is left out unless it is named.

A goal compares two engines: `of` over `over`, by wall-clock seconds (or another `figure`) of one item of
the input:

    [[goal]]
    name = "join 1 M against numpy"
    of = ["join 1 M", "numpy blocks"]
    over = ["join 1 M", "neardup"]
    least = 6                                       # or `most`; without either the ratio is shown only

Engines that use neardup are measured at the level of instructions in use, or at each that `--level` names;
an engine with a `level` of its own only at that one. A goal that differs by level is a table,
`least = { scalar = 8, avx2 = 15, avx512 = 19 }`, and a side may name the level that it means:
`of = ["dedupe", "neardup", "scalar"]`. Goals by level make the tables that tables.py writes.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Row = dict[str, Any]
"""What was measured of one engine at one level (run.Measured.row)."""

DEFINITIONS = Path(__file__).parent / "definitions"
EQUAL = "equal"


@dataclass(frozen=True, slots=True)
class Engine:
    """One engine of a workload. *options* are those of its function in engines/."""

    name: str
    repeat: int = 1
    expected: int | str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    level: str | None = None
    """The only level of instructions at which it is measured."""

    @property
    def label(self) -> str:
        """The name, and the options that tell two engines of one name apart."""
        return ", ".join([self.name, *(f"{key} {value}" for key, value in self.options.items())])

    @property
    def is_ours(self) -> bool:
        return self.name.split(",")[0] == "neardup"


@dataclass(frozen=True, slots=True)
class Workload:
    name: str
    model: str
    input: Mapping[str, Any]
    engines: tuple[Engine, ...]
    expected: int | str = EQUAL
    bits: int = 64
    radius: int = 3
    turn: str | None = None
    by_name: bool = False
    watch: bool = False
    """Call each engine once more before, and note by how many GB the resident memory grows."""
    quick: Mapping[str, Any] | None = None

    def expects(self, engine: Engine) -> int | str:
        return self.expected if engine.expected is None else engine.expected


@dataclass(frozen=True, slots=True)
class Goal:
    name: str
    of: tuple[str, ...]
    """A workload and an engine, and a level where it is not the one that is looked at."""
    over: tuple[str, ...]
    figure: str = "wall"
    times: float = 1.0
    """What `of` is multiplied by, where it got another size and its time does not grow in line."""
    least: float | Mapping[str, float] | None = None
    most: float | Mapping[str, float] | None = None

    @property
    def by_level(self) -> bool:
        return isinstance(self.least, Mapping) or isinstance(self.most, Mapping)

    def levels(self, rows: Sequence[Row]) -> list[str | None]:
        """Those of the rows that it looks at; None if these have none."""
        sides = (self.of, self.over)
        found = [row["level"] for row in rows for side in sides if (row["work"], row["engine"]) == side[:2]]
        named = all(len(side) > 2 for side in sides)
        return [None] if named else list(dict.fromkeys(filter(None, found))) or [None]

    def ratio(self, rows: Sequence[Row], level: str | None, figure: str | None = None) -> float | None:
        """How often the seconds of an item of `over` go into those of `of`; other figures are per run."""
        figure = figure or self.figure
        of, over = (_row(rows, side, level) for side in (self.of, self.over))
        if not of or not over or not of.get(figure) or not over.get(figure):
            return None
        each = over["items"] / of["items"] if figure in ("wall", "cpu") else 1.0
        return float(self.times * each * of[figure] / over[figure])

    def limits(self, level: str | None) -> tuple[float | None, float | None]:
        """The least and the most at that level."""
        return _limit(self.least, level), _limit(self.most, level)


def _row(rows: Sequence[Row], side: tuple[str, ...], level: str | None) -> Row | None:
    """The row of a side: at its own level, at the one that is looked at, or of what knows no levels."""
    wanted = {side[2]} if len(side) > 2 else {level, None}
    for row in rows:
        if (row["work"], row["engine"]) == side[:2] and row["level"] in wanted:
            return row
    return None


def _limit(limit: float | Mapping[str, float] | None, level: str | None) -> float | None:
    return limit.get(level or "") if isinstance(limit, Mapping) else limit


@dataclass(frozen=True, slots=True)
class Definition:
    """A file of workloads."""

    name: str
    workloads: tuple[Workload, ...]
    goals: tuple[Goal, ...]
    rounds: bool = False


def load(path: Path) -> Definition:
    with open(path, "rb") as file:
        rows = tomllib.load(file)
    workloads = tuple(_workload(row, path) for row in rows.pop("workload", []))
    goals = tuple(_goal(row, path) for row in rows.pop("goal", []))
    rounds = rows.pop("rounds", False)
    if rows:
        raise SystemExit(f"{path.name}: unknown keys {', '.join(rows)}")
    names = [one.name for one in workloads]
    if twice := {name for name in names if names.count(name) > 1}:
        raise SystemExit(f"{path.name}: two workloads are called {sorted(twice)[0]!r}")
    known = {(one.name, engine.label) for one in workloads for engine in one.engines}
    for goal in goals:
        for side in (goal.of, goal.over):
            if side[:2] not in known:
                raise SystemExit(f"{path.name}: goal {goal.name!r} names {side}, which no workload has")
    return Definition(path.stem, workloads, goals, rounds)


def quick(workload: Workload) -> Workload | None:
    """The small form of a workload, if it has one: each engine once."""
    if workload.quick is None:
        return None
    given = dict(workload.quick)
    expected = given.pop("expected", workload.expected)
    only = given.pop("engines", {})
    engines = tuple(
        replace(
            engine,
            repeat=1,
            expected=only.get(engine.label, {}).get("expected", engine.expected),
            options={
                **engine.options,
                **{k: v for k, v in only.get(engine.label, {}).items() if k != "expected"},
            },
        )
        for engine in workload.engines
    )
    return replace(workload, input={**workload.input, **given}, expected=expected, engines=engines)


def _workload(row: dict[str, Any], path: Path) -> Workload:
    known = {one.name for one in fields(Workload)}
    if unknown := set(row) - known:
        raise SystemExit(f"{path.name}: workload {row.get('name')!r} has unknown keys {sorted(unknown)}")
    engines = tuple(_engine(dict(engine)) for engine in row.pop("engines"))
    return Workload(engines=engines, **row)


def _engine(row: dict[str, Any]) -> Engine:
    name, repeat, expected = row.pop("name"), row.pop("repeat", 1), row.pop("expected", None)
    return Engine(name, repeat, expected, level=row.pop("level", None), options=row)


def _goal(row: dict[str, Any], path: Path) -> Goal:
    known = {one.name for one in fields(Goal)}
    if unknown := set(row) - known:
        raise SystemExit(f"{path.name}: goal {row.get('name')!r} has unknown keys {sorted(unknown)}")
    of, over = tuple(row.pop("of")), tuple(row.pop("over"))
    return Goal(of=of, over=over, **row)
