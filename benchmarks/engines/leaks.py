"""Leaks: a test set in a training set, from JSON Lines files to tables on disk.

What is counted are test documents with a passage: as many as were planted, or the run fails.
"""

from __future__ import annotations

import json
import shutil
import sys
from typing import Any

from inputs import Quotations
from workloads import Workload

from engines import Engine, Task
from engines.dedupe import timed


def neardup(given: Quotations, _: Workload, options: str = "") -> Task:
    out = given.train.with_name("out")
    command = [sys.executable, "-m", "neardup", "leaks", str(given.train), "--against", str(given.test)]
    command += ["-o", str(out), "--quiet", *options.split()]
    megabytes = given.train.stat().st_size / 1e6

    def call() -> dict[str, float]:
        shutil.rmtree(out, ignore_errors=True)
        return timed(command)

    def found(_: Any) -> int:
        summary = json.loads((out / "summary.json").read_text())
        return int(summary["test_documents_quoted"])

    def figures(times: dict[str, float]) -> dict[str, float]:
        return {**times, "mb_per_s": megabytes / times["wall"]}

    return Task(call, given.train.stat().st_size, found, figures)


MODELS: dict[str, dict[str, Engine]] = {"leaks": {"neardup": neardup}}
