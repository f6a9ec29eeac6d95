"""Small collections for tests of the main job: every text is made from a seed, and what is planted is known."""

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from neardup.adapters.cli import run
from neardup.observers import Advance, Observer

Rows = list[dict[str, Any]]

_SYLLABLES = [a + b for a in "bdfgklmnprstvz" for b in ("a", "e", "i", "o", "u", "an", "er", "is")]
VOCABULARY = ["".join(random.Random(number).choices(_SYLLABLES, k=2 + number % 3)) for number in range(4000)]


def words(seed: int, count: int = 60) -> list[str]:
    """Words that hardly another seed has together."""
    return random.Random(seed).choices(VOCABULARY, k=count)


def edited(found: list[str], seed: int, changes: int = 2) -> list[str]:
    """The same words but for some."""
    rng = random.Random(seed)
    changed = list(found)
    for place in rng.sample(range(len(found)), changes):
        changed[place] = rng.choice(VOCABULARY)
    return changed


BASE = words(1, 200)


def copies(**fields: list[Any]) -> Rows:
    """Edited copies of one text, one for each value of the fields."""
    count = len(next(iter(fields.values())))
    return [
        {"id": f"c{at}", "text": " ".join(edited(BASE, at, 2)), **{name: values[at] for name, values in fields.items()}}
        for at in range(count)
    ]  # fmt: skip


def kept(rows: Rows, **choices: Any) -> list[str]:
    """The ids of those that stay."""
    import neardup as nd

    table = nd.dedupe(rows, **choices).annotations
    return [row["id"] for row in table.to_pylist() if row["keep"]]


UNIQUE = [{"id": f"u{number}", "text": " ".join(words(900 + number))} for number in range(20)]


def collection(count: int = 60, *, seed: int = 1) -> Rows:
    """Documents of which every fifth has an edited copy, every tenth an identical one, and two say nothing."""
    rows: Rows = []
    for number in range(count):
        text = words(seed * 100_000 + number)
        made = [text]
        if number % 5 == 0:
            made.append(edited(text, number))
        if number % 10 == 0:
            made.append(text)
        for copy, some in enumerate(made):
            row: dict[str, Any] = {
                "id": f"d{number:04}-{copy}",
                "text": " ".join(some),
                "source": "ab"[number % 2],
            }
            rows.append({**row, "rank": number % 7, "date": f"2024-01-{number % 28 + 1:02}"})
    rows += [{"id": "empty-0", "text": "", "source": "a"}, {"id": "empty-1", "text": " ... ", "source": "a"}]
    for row in rows[-2:]:
        row |= {"rank": 0, "date": None}
    return rows


def chain(length: int, *, step: int = 9, size: int = 60) -> Rows:
    """A~B~C~...: each has *step* words that the one before has not; far links have nothing in common."""
    text = words(77, size)
    fresh = iter(words(78, step * length))
    rows = []
    for number in range(length):
        rows.append({"id": f"link-{number:03}", "text": " ".join(text)})
        start = number * step % size
        for place in range(start, start + step):
            text[place % size] = next(fresh)
    return rows


def write_jsonl(path: Path, rows: Rows) -> Path:
    """One object per line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


class Finished:
    """What a command printed, and its exit code."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err


def neardup(*arguments: object) -> Finished:
    """The command line in this process."""
    runner = CliRunner()
    code = -1

    def call() -> None:
        nonlocal code
        code = run([str(one) for one in arguments])

    with runner.isolation() as (out, err, _):
        call()
        return Finished(code, out.getvalue().decode(), err.getvalue().decode())


def process(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    """The command line in a process of its own."""
    command = [sys.executable, "-m", "neardup", *map(str, arguments)]
    root = Path(__file__).parent.parent
    env = {**os.environ, "PYTHONPATH": str(root), **options.pop("env", {})}
    return subprocess.run(command, capture_output=True, text=True, timeout=120, env=env, **options)


def files_of(folder: Path) -> dict[str, bytes]:
    """Every file of a folder and its bytes."""
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file()}


class At(Observer):
    """Calls something when a stage of the run begins."""

    def __init__(self, name: str, call: Callable[[], object]) -> None:
        self._name, self._call = name, call

    def stage(
        self, name: str, *, total: int = 0, unit: str = "bytes", what: str = "document"
    ) -> AbstractContextManager[Advance]:
        if name == self._name:
            self._call()
        return super().stage(name, total=total, unit=unit, what=what)
