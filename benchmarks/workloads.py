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
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

DEFINITIONS = Path(__file__).parent / "definitions"
EQUAL = "equal"


@dataclass(frozen=True, slots=True)
class Engine:
    """One engine of a workload. *options* are those of its function in engines/."""

    name: str
    repeat: int = 1
    expected: int | str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """The name, and the options that tell two engines of one name apart."""
        return ", ".join([self.name, *(f"{key} {value}" for key, value in self.options.items())])


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
    of: tuple[str, str]
    over: tuple[str, str]
    figure: str = "wall"
    times: float = 1.0
    """What `of` is multiplied by, where it got another size and its time does not grow in line."""
    least: float | None = None
    most: float | None = None


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
            if side not in known:
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
    return Engine(name, repeat, expected, row)


def _goal(row: dict[str, Any], path: Path) -> Goal:
    known = {one.name for one in fields(Goal)}
    if unknown := set(row) - known:
        raise SystemExit(f"{path.name}: goal {row.get('name')!r} has unknown keys {sorted(unknown)}")
    of, over = tuple(row.pop("of")), tuple(row.pop("over"))
    return Goal(of=of, over=over, **row)
