"""Many threads and processes that save indexes to one path, and what a reader finds there meanwhile."""

from __future__ import annotations

import multiprocessing
import threading
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import neardup as nd


class Tally(NamedTuple):
    saves: int
    failed: int
    damaged: int
    loads: int


def _index(rows: int) -> nd.Index:
    index = nd.Index(64, 3)
    index.add([f"row {row}" for row in range(rows)], np.arange(rows, dtype=np.uint64))
    return index


def _process(path: str, threads: int, saves: int, rows: int, told: Any) -> None:
    wrong: list[str] = []
    loads = 0

    def work(number: int) -> None:
        nonlocal loads
        size = rows * (number % 2 + 1)
        index = _index(size)
        for _ in range(saves):
            try:
                index.save(path)
            except Exception as error:
                wrong.append(f"failed: {error!r}")
            try:
                loaded = nd.Index.load(path)
                if len(loaded) not in (rows, 2 * rows) or loaded.search_one(7, 0) != [("row 7", 0)]:
                    wrong.append("damaged: wrong entries")
                loads += 1
            except Exception as error:
                wrong.append(f"damaged: {error!r}")

    workers = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    told.put((loads, wrong))


def save_together(path: Path, processes: int, threads: int, saves: int, rows: int) -> tuple[Tally, list[str]]:
    """Let *threads* threads in each of *processes* processes save *saves* times and load after each."""
    context = multiprocessing.get_context("spawn")
    told = context.Queue()
    given = (str(path), threads, saves, rows, told)
    children = [context.Process(target=_process, args=given) for _ in range(processes - 1)]
    for child in children:
        child.start()
    _process(*given)
    found = [told.get() for _ in range(processes)]
    for child in children:
        child.join()
    wrong = [line for _, lines in found for line in lines]
    failed = sum(line.startswith("failed") for line in wrong)
    tally = Tally(processes * threads * saves, failed, len(wrong) - failed, sum(loads for loads, _ in found))
    return tally, wrong
