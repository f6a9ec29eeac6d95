"""Run workloads, fail on a wrong result, and write what was measured with date, machine and commit.

    pip install -r requirements/bench.txt
    python benchmarks/run.py                          # all of benchmarks/definitions/
    python benchmarks/run.py hamming "join 1 M"       # a file, a workload
    python benchmarks/run.py levels --level all       # what tables.py needs, at every level of the machine
    python benchmarks/run.py --quick                  # small inputs, each engine once: does it all work?

Each workload says what must be found; see workloads.py. Peers that are not installed are left out and
named. Shown are medians of wall-clock and CPU seconds; on a shared machine the CPU seconds are the steadier
figure: a peer on one thread and neardup on two are compared fairly by them. Exit 1 if an engine found
something else.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import inputs
import results
from engines import Task, dedupe, hamming, models
from workloads import DEFINITIONS, EQUAL, Definition, Engine, Goal, Workload, load, quick


@dataclass
class Measured:
    """One engine of one workload: its task, and what its calls took and found."""

    work: Workload
    engine: Engine
    level: str | None
    """Of the instructions that it uses, if it is ours."""
    task: Task
    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    figures: list[dict[str, float]] = field(default_factory=list)
    found: int | str | None = None

    def row(self) -> dict[str, Any]:
        names = dict.fromkeys(name for one in self.figures for name in one)
        figures = {
            name: statistics.median(one[name] for one in self.figures if name in one) for name in names
        }
        times = {"wall": statistics.median(self.wall), "cpu": statistics.median(self.cpu)}
        return {
            "work": self.work.name,
            "engine": self.engine.label,
            "level": self.level,
            "runs": len(self.wall),
            "items": self.task.items,
            **times,
            **figures,
            "found": self.found,
            "expected": self.work.expects(self.engine),
            "load": os.getloadavg()[0],
        }


def cpu() -> float:
    both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in both)


@contextmanager
def at(level: str | None) -> Iterator[None]:
    """Have the core use the instructions of *level*, here and in processes that are started."""
    from neardup import _native

    before = os.environ.get("NEARDUP_SIMD", "")
    os.environ["NEARDUP_SIMD"] = level or before
    _native.set_simd("")  # as the environment says
    try:
        yield
    finally:
        os.environ["NEARDUP_SIMD"] = before
        _native.set_simd("")


def call(one: Measured) -> None:
    with at(one.level):
        wall, used = time.perf_counter(), cpu()
        answer = one.task.call()
        one.wall.append(time.perf_counter() - wall)
        one.cpu.append(cpu() - used)
    one.figures.append(one.task.figures(answer))
    if one.found is None:
        one.found = one.task.found(answer)


def growth(work: Callable[[], Any]) -> float:
    """By how many GB the resident memory grows while *work* runs."""
    page, done = os.sysconf("SC_PAGESIZE"), threading.Event()

    def resident() -> int:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * page

    before = top = resident()

    def watch() -> None:
        nonlocal top
        while not done.wait(0.02):
            top = max(top, resident())

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        work()
    finally:
        done.set()
        watcher.join()
    return (top - before) / 1e9


def prepared(work: Workload, engine: Engine, level: str | None, given: Any) -> Measured | None:
    """The engine with its task; None, and a line, where what it needs is not here."""
    known = models().get(work.model, {})
    if engine.name not in known:
        raise SystemExit(
            f"{work.name}: model {work.model!r} has no engine {engine.name!r}; it has {list(known)}"
        )
    if level is not None and level not in results.levels():
        print(f"{work.name}: {engine.label} is left out: this processor has no {level}", flush=True)
        return None
    try:
        with at(level):
            return Measured(work, engine, level, known[engine.name](given, work, **engine.options))
    except ImportError as error:
        print(f"{work.name}: {engine.label} is left out: {error}", flush=True)
        return None


def levels_of(engine: Engine, levels: Sequence[str]) -> Sequence[str | None]:
    """The levels at which an engine is measured; what is not ours does not know them."""
    if engine.level is not None:
        return [engine.level]
    return levels if engine.is_ours else [None]


def measure(works: Sequence[Workload], *, rounds: bool, levels: Sequence[str]) -> list[Measured]:
    """Workloads that share a turn: engine after engine, or all in rounds; each engine at its levels."""
    given = {work.name: inputs.make(dict(work.input)) for work in works}
    empty = [work for work in works if not len(given[work.name])]
    for work in empty:
        print(f"{work.name} is left out: there is no such text here; --data DIR", flush=True)
    pairs = [(work, engine) for work in works if work not in empty for engine in work.engines]
    if rounds:
        turns = [pairs]
    else:
        labels = dict.fromkeys(engine.label for _, engine in pairs)
        turns = [[one for one in pairs if one[1].label == label] for label in labels]
    done = []
    for turn in turns:
        found = [
            prepared(work, engine, level, given[work.name])
            for work, engine in turn
            for level in levels_of(engine, levels)
        ]
        tasks = [one for one in found if one]
        for one in tasks:
            if one.work.watch:
                with at(one.level):
                    one.figures.append({"grown_gb": growth(one.task.call)})
        for count in range(max((one.engine.repeat for one in tasks), default=0)):
            for one in tasks:
                if count < one.engine.repeat:
                    call(one)
        done += tasks
    return done


def show(row: dict[str, Any]) -> None:
    known = ("work", "engine", "level", "runs", "items", "wall", "cpu", "found", "expected", "load")
    more = "".join(f"  {name} {value:.4g}" for name, value in row.items() if name not in known)
    rate = row["items"] / row["wall"] if row["wall"] > 0 else 0
    print(
        f"{row['work']:42} {row['engine']:38} {row['level'] or '':11} "
        f"wall {row['wall']:9.4f} s  cpu {row['cpu']:9.4f} s  "
        f"{rate:9.3g}/s  found {row['found']}{more}",
        flush=True,
    )


def wrong(rows: Iterable[dict[str, Any]]) -> list[str]:
    """What was found and not expected."""
    said = []
    first: dict[str, dict[str, Any]] = {}
    for row in rows:
        expected = row["expected"]
        if expected == EQUAL:
            expected = first.setdefault(row["work"], row)["found"]
        if str(expected).startswith(">="):
            right = float(row["found"]) >= float(str(expected)[2:])
        else:
            right = row["found"] == expected
        if not right:
            engine = f"{row['engine']} at {row['level']}" if row["level"] else row["engine"]
            said.append(f"{row['work']}: {engine} found {row['found']}, expected {expected}")
    return said


def show_goals(goals: Iterable[Goal], rows: Sequence[dict[str, Any]]) -> None:
    lines = []
    for goal in goals:
        for level in goal.levels(rows):
            found = goal.ratio(rows, level)
            if found is None:
                continue
            used = goal.ratio(rows, level, "cpu") if goal.figure == "wall" else None
            least, most = goal.limits(level)
            limit = f"at least {least:g}" if least is not None else ""
            limit = f"at most {most:g}" if most is not None else limit
            missed = (least is not None and found < least) or (most is not None and found > most)
            cells = [
                goal.name,
                level or "",
                f"{found:,.2f}",
                f"{used:,.2f}" if used else "",
                limit,
                "missed" if missed else "",
            ]
            lines.append("| " + " | ".join(cells) + " |")
    if lines:
        print(
            "\n| ratio | level | by wall | by CPU | goal | |\n|---|---|---|---|---|---|\n" + "\n".join(lines)
        )


def chosen_of(definitions: Sequence[Definition], names: Sequence[str]) -> dict[str, list[Workload]]:
    """File -> the workloads that are named: by themselves, their turn, their file or `levels`; else all."""
    if "levels" in names:
        goals = [goal for one in definitions for goal in one.goals if goal.by_level]
        names = [name for name in names if name != "levels"]
        names += sorted({side[0] for goal in goals for side in (goal.of, goal.over)})
    known = {
        name for one in definitions for work in one.workloads for name in (one.name, work.name, work.turn)
    }
    if unknown := [name for name in names if name not in known]:
        raise SystemExit(f"unknown {unknown[0]!r}; known: {', '.join(sorted(filter(None, known)))}")
    return {
        one.name: [
            work
            for work in one.workloads
            if {work.name, work.turn} & set(names) or (not work.by_name and (not names or one.name in names))
        ]
        for one in definitions
    }


def groups(works: Iterable[Workload]) -> list[list[Workload]]:
    """Workloads by their turn."""
    found: dict[str, list[Workload]] = {}
    for work in works:
        found.setdefault(work.turn or work.name, []).append(work)
    return list(found.values())


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "names",
        nargs="*",
        help="files of benchmarks/definitions/, workloads or turns; `levels` are those with goals by level",
    )
    parser.add_argument("--definitions", type=Path, default=DEFINITIONS, metavar="DIR")
    parser.add_argument("--data", type=Path, metavar="DIR", help="folder of .jsonl.gz files with real text")
    parser.add_argument(
        "--simhash-py", metavar="PYTHON", help="Python of an environment made by simhash_py.py"
    )
    parser.add_argument(
        "--peers", metavar="PYTHON", help="Python of an environment with requirements/bench.txt"
    )
    parser.add_argument(
        "--level",
        action="append",
        choices=["all", *results.levels()],
        help="level of instructions for neardup, or all that this machine has; may be given several times",
    )
    parser.add_argument("--quick", action="store_true", help="small inputs, each engine once")
    results.add_out(parser)
    chosen = parser.parse_args(arguments)
    inputs.data, hamming.simhash_py, dedupe.peers = chosen.data, chosen.simhash_py, chosen.peers
    levels = results.levels() if "all" in (chosen.level or ()) else chosen.level or [results.level()]
    definitions = [load(path) for path in sorted(chosen.definitions.glob("*.toml"))]
    wanted = chosen_of(definitions, chosen.names)
    rows: list[dict[str, Any]] = []
    for definition in definitions:
        works = wanted[definition.name]
        if chosen.quick:
            works = [small for work in works if (small := quick(work))]
        for group in [works] if definition.rounds and works else groups(works):
            for one in measure(group, rounds=definition.rounds, levels=levels):
                rows.append(one.row())
                show(rows[-1])
        if not chosen.quick:  # of small inputs, ratios say nothing
            show_goals(definition.goals, rows)
    if not chosen.quick or chosen.out:
        print(f"\nwritten to {results.write(rows, chosen.out)}")
    said = wrong(rows)
    for line in said:
        print(line, file=sys.stderr)
    return 1 if said else 0


if __name__ == "__main__":
    sys.exit(main())
