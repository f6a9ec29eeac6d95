"""The originals that neardup.compat stands in for, on the same input as the originals themselves.

The programs of engines/simhash_program.py run in a process of their own: with the package simhash 2.1.2, in
an environment that is made in benchmarks/data/peer, and with neardup.compat.simhash. Only the import
differs.
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

from workloads import Workload

from engines import Engine, Task
from engines.texts import digest

ROOT = Path(__file__).parent.parent.parent
DATA = ROOT / "benchmarks" / "data"
PROGRAM = Path(__file__).with_name("simhash_program.py")


@functools.cache
def peer() -> Path:
    """The interpreter that has the original."""
    folder = DATA / "peer"
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "numpy<2", "simhash==2.1.2"], check=True)
    return python


def program(side: str, given: Any, task: str, **options: Any) -> dict[str, Any]:
    """What the program says: its figures, and the digest of its results."""
    DATA.mkdir(parents=True, exist_ok=True)
    source = DATA / "input.json"
    source.write_text(json.dumps(given))
    python = peer() if side == "original" else sys.executable
    command = [str(python), str(PROGRAM), side, task, str(source), json.dumps(options)]
    environment = (
        {"PYTHONPATH": str(ROOT), "NEARDUP_SIMD": os.environ.get("NEARDUP_SIMD", "")}
        if side == "neardup"
        else {}
    )
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _task(side: str, given: Any, task: str, items: int, **options: Any) -> Task:
    if side == "original":
        try:
            peer()
        except subprocess.CalledProcessError as error:
            raise ImportError(f"simhash 2.1.2 cannot be installed: {error}") from error
    return Task(
        lambda: program(side, given, task, **options),
        items,
        lambda found: str(found["digest"]),
        lambda found: dict(found["figures"]),
    )


def original_texts(texts: list[str], _: Workload, limit: int | None = None) -> Task:
    return _task("original", texts[:limit], "texts", len(texts[:limit]))


def neardup_texts(texts: list[str], _: Workload, limit: int | None = None) -> Task:
    return _task("neardup", texts[:limit], "texts", len(texts[:limit]))


def neardup_batch(texts: list[str], _: Workload) -> Task:
    from neardup.compat.simhash import values

    values(texts[:1])
    return Task(lambda: values(texts), len(texts), lambda found: digest(found.tolist()))


def original_index(values: list[int], _: Workload, asked: int, k: int = 2) -> Task:
    return _task("original", values, "index", len(values), k=k, asked=asked)


def neardup_index(values: list[int], _: Workload, asked: int, k: int = 2) -> Task:
    return _task("neardup", values, "index", len(values), k=k, asked=asked)


def loop(given: list[dict[str, str]], threshold: int = 3) -> list[list[str]]:
    """The original's algorithm as a straight Python loop."""
    order = sorted(given, key=lambda article: article["publishedAt"], reverse=True)
    values = [int(article["simHash"], 16) for article in order]
    taken = [False] * len(order)
    groups = []
    for center, value in enumerate(values):
        if taken[center]:
            continue
        members = [order[center]["id"]]
        for row in range(center + 1, len(order)):
            if not taken[row] and bin(value ^ values[row]).count("1") <= threshold:
                taken[row] = True
                members.append(order[row]["id"])
        groups.append(members)
    return groups


def articles_loop(given: list[dict[str, str]], _: Workload) -> Task:
    return Task(lambda: loop(given), len(given), digest)


def neardup_articles(given: list[dict[str, str]], _: Workload) -> Task:
    from neardup.compat.news import group_articles_by_similarity

    return Task(
        lambda: [group.member_ids for group in group_articles_by_similarity(given)], len(given), digest
    )


MODELS: dict[str, dict[str, Engine]] = {
    "values one by one": {
        "original": original_texts,
        "neardup": neardup_texts,
        "neardup, batch": neardup_batch,
    },
    "simhash index": {"original": original_index, "neardup": neardup_index},
    "articles": {"plain loop": articles_loop, "neardup": neardup_articles},
}
