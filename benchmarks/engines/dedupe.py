"""Deduplication, from a JSON Lines file to files on disk, beside tools of the same kind.

Every engine runs in a process of its own, reads the same file and writes what it found. Peers run in the
environment that `--peers` names (requirements/bench.txt); they write pairs of ids, and look at no text
again. What is counted is an option: `planted` is the share of the planted pairs that was found, `documents`
how many were read, `removed` how many go.
"""

from __future__ import annotations

import compileall
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from inputs import Corpus
from workloads import Workload

from engines import Engine, Task

ROOT = Path(__file__).parent.parent.parent
PEER = Path(__file__).with_name("minhash_peer.py")
peers: str | None = None
"""The Python that `--peers` names."""

Pairs = set[frozenset[str]]


def timed(command: Sequence[str]) -> dict[str, float]:
    """Wall and CPU seconds, and the peak of memory in MB, of a child process."""
    start = time.perf_counter()
    with tempfile.TemporaryFile() as talk:
        child = subprocess.Popen(
            command, stdout=talk, stderr=talk, env={**os.environ, "PYTHONPATH": str(ROOT)}
        )
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.perf_counter() - start
        if child.returncode:
            talk.seek(0)
            said = talk.read().decode(errors="replace")[-800:]
            raise SystemExit(f"{' '.join(command[:5])} ... failed with {child.returncode}: {said}")
    return {"wall": seconds, "cpu": usage.ru_utime + usage.ru_stime, "peak_mb": usage.ru_maxrss / 1024}


def found_pairs(out: Path) -> Pairs:
    """The pairs inside clusters, and those that were accepted though each of the two has another keeper."""
    import pyarrow.parquet as pq

    rows = pq.read_table(out / "annotations.parquet", columns=["id", "cluster"]).to_pylist()
    clusters: dict[str, list[str]] = {}
    for row in rows:
        clusters.setdefault(row["cluster"], []).append(row["id"])
    pairs = {
        frozenset((one, other))
        for ids in clusters.values()
        for at, one in enumerate(ids)
        for other in ids[:at]
    }
    accepted = pq.read_table(
        out / "evidence.parquet", columns=["keeper", "id"], filters=[("accepted", "=", True)]
    )
    return pairs | {frozenset(row.values()) for row in accepted.to_pylist()}


def shares(corpus: Corpus, pairs: Pairs, limit: int | None) -> dict[str, float]:
    """How many of the planted pairs were found, in all and by the share of words that was changed."""
    here = corpus.ids(limit)
    planted = [row for row in corpus.planted() if row[0] in here and row[1] in here]
    found: dict[str, list[bool]] = {}
    for one, other, share in planted:
        hit = frozenset((one, other)) in pairs
        found.setdefault("planted", []).append(hit)
        found.setdefault(f"planted_{share:.0%}", []).append(hit)
    return {name: sum(hits) / len(hits) for name, hits in found.items()}


def neardup(corpus: Corpus, _: Workload, count: str = "planted", options: str = "") -> Task:
    compileall.compile_dir(ROOT / "neardup", quiet=2)  # as an installed package is
    out = corpus.path.with_name("out")
    fixed = ["--overwrite", "--no-guards", "--quiet"]
    command = [
        sys.executable,
        "-m",
        "neardup",
        "dedupe",
        str(corpus.path),
        "-o",
        str(out),
        *fixed,
        *options.split(),
    ]

    def call() -> dict[str, float]:
        shutil.rmtree(out, ignore_errors=True)
        return timed(command)

    def counts() -> dict[str, Any]:
        found: dict[str, Any] = json.loads((out / "manifest.json").read_text())["counts"]
        return found

    def figures(times: dict[str, float]) -> dict[str, float]:
        planted = shares(corpus, found_pairs(out), None) if count == "planted" else {}
        return {**times, **planted, "verified": counts()["measured_pairs"]}

    def found(_: Any) -> int | str:
        if count == "planted":
            return f"{shares(corpus, found_pairs(out), None)['planted']:.3f}"
        return int(counts()[count])

    return Task(call, len(corpus), found, figures)


def peer(corpus: Corpus, _: Workload, tool: str, limit: int | None = None) -> Task:
    if peers is None:
        raise ImportError("--peers names no environment")
    out = corpus.path.with_name("peer.tsv")
    cut = ["--limit", str(limit)] if limit else []
    command = [peers, str(PEER), tool, str(corpus.path), str(out), *cut]

    def pairs() -> Pairs:
        with open(out, encoding="utf-8") as lines:
            return {frozenset(line.split()) for line in lines}

    return Task(
        lambda: timed(command),
        min(len(corpus), limit or len(corpus)),
        lambda _: f"{shares(corpus, pairs(), limit)['planted']:.3f}",
        lambda times: {**times, **shares(corpus, pairs(), limit)},
    )


MODELS: dict[str, dict[str, Engine]] = {"dedupe": {"neardup": neardup, "peer": peer}}
