"""Write the tables by level of docs/benchmarks.md and README.md from a file of results.

    python benchmarks/run.py LEVELS... --level all      # make bench-levels
    python benchmarks/tables.py benchmarks/results/DATE-MACHINE.json

Each goal that differs by level (definitions/*.toml) is a row: how many times as fast neardup is as its peer,
at each level. Of each figure the latest run in the file counts. What is between the marks `<!-- levels -->`
and `<!-- end of levels -->` is replaced.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from workloads import DEFINITIONS, Goal, Row, load

ROOT = Path(__file__).parent.parent
LEVELS = {
    "scalar": "any other processor",
    "neon": "Apple M, AWS Graviton, Ampere",
    "avx2": "Intel client processors since Haswell, AMD Zen 1 to 3",
    "avx512-base": "Intel Skylake-SP and Cascade Lake servers",
    "avx512": "Intel servers since Ice Lake, AMD Zen 4 and 5",
}
"""Each level, and where it is the best."""

SHORT = {
    "chars:4, 3 kB, against gaoya": "`chars:4` {} x gaoya",
    "words:3 against gaoya": "`words:3` {} x gaoya",
    "text, fitted, against rensa from texts": "`text` {} x rensa",
    "dedupe against gaoya": "`dedupe` {} x gaoya",
    "join 1 M against numpy": "a join {} x numpy",
    "index search 1 M against faiss": "a search {} x faiss",
}
"""The goals that README names, and how."""


def goals_by_level() -> list[Goal]:
    return [goal for path in sorted(DEFINITIONS.glob("*.toml")) for goal in load(path).goals if goal.by_level]


def ratio(goal: Goal, runs: Sequence[Sequence[Row]], level: str, figure: str) -> float | None:
    """That of the latest run that has one: what is compared was measured together."""
    found = (goal.ratio(rows, level, figure) for rows in reversed(runs) if level in goal.levels(rows))
    return next((one for one in found if one is not None), None)


def number(value: float) -> str:
    """Three digits."""
    return f"{value:,.0f}" if value >= 99.5 else f"{value:.3g}"


def cell(goal: Goal, runs: Sequence[Sequence[Row]], level: str) -> str:
    wall, used = (ratio(goal, runs, level, figure) for figure in ("wall", "cpu"))
    if wall is None or used is None:
        return ""
    least, most = goal.limits(level)
    limit = least if least is not None else most
    missed = (least is not None and wall < least) or (most is not None and wall > most)
    shown = f"**{number(wall)}**" if missed else number(wall)
    return f"{shown} / {number(used)}" + (f" ({limit:g})" if limit is not None else "")


def page(goals: Sequence[Goal], runs: Sequence[Sequence[Row]]) -> Iterator[str]:
    """The table of docs/benchmarks.md."""
    levels = [level for level in LEVELS if any(cell(goal, runs, level) for goal in goals)]
    yield f"| work | {' | '.join(f'`{level}`' for level in levels)} |"
    yield "|---" * (len(levels) + 1) + "|"
    for goal in goals:
        cells = [cell(goal, runs, level) for level in levels]
        if any(cells):
            yield f"| {goal.name} | {' | '.join(cells)} |"


def lines(goals: Sequence[Goal], runs: Sequence[Sequence[Row]]) -> Iterator[str]:
    """Those of README.md, the best level first."""
    named = {goal.name: goal for goal in goals}
    for level, where in reversed(LEVELS.items()):
        found = [
            form.format(number(value))
            for name, form in SHORT.items()
            if name in named and (value := ratio(named[name], runs, level, "wall")) is not None
        ]
        if found:
            yield f"- `{level}` ({where}): {', '.join(found)}"


def replaced(text: str, new: str) -> str:
    """*text* with *new* between the marks."""
    marks = re.compile(r"(<!-- levels -->\n).*?(<!-- end of levels -->)", re.DOTALL)
    found, count = marks.subn(lambda match: f"{match[1]}{new}\n{match[2]}", text)
    if count != 1:
        raise SystemExit(f"the page has {count} places between <!-- levels --> and <!-- end of levels -->")
    return found


def main(source: str) -> None:
    runs = [run["rows"] for run in json.loads(Path(source).read_text())["runs"]]
    runs = [[{"level": None, **row} for row in rows] for rows in runs]
    goals = goals_by_level()
    for path, made in ((ROOT / "docs" / "benchmarks.md", page), (ROOT / "README.md", lines)):
        path.write_text(replaced(path.read_text(), "\n".join(made(goals, runs))))
        print(f"written to {path.relative_to(ROOT)}")


if __name__ == "__main__":
    main(*sys.argv[1:])
