"""Damage to index files, in full: every bit of a 64 KiB file, and mixed damages of a larger one.

    python benchmarks/damage.py [--trials 2000]

Each damaged file must be refused, or give the answers of the sound one: none may be silent, crash,
hang, or make the loader take more than 1.2 times the file and 64 MiB. The mixed damages are those of
tests/damage.py, on files, loaded and searched in a process of their own with limited memory.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

import results

import neardup as nd
from neardup import _native
from neardup.errors import DamagedFile


def saved(path: Path, rows: int) -> bytes:
    rng = np.random.default_rng(1)
    words = rng.integers(0, 2**64, rows, dtype=np.uint64)
    index = nd.Index(64, 3, digest="scheme")
    index.add([f"document-{row}" for row in range(rows)], words)
    index.save(path)
    return path.read_bytes()


def row(work: str, trials: int, silent: int, **figures: float) -> dict[str, Any]:
    return {"work": work, "engine": "neardup", "runs": trials, **figures, "found": silent, "expected": 0}


def every_bit(folder: Path, size: int) -> dict[str, Any]:
    rows = 100
    data = saved(folder / "small", rows)
    while len(data) < size:
        rows += 20
        data = saved(folder / "small", rows)
    start, silent = time.perf_counter(), 0
    damaged = bytearray(data)
    for bit in range(len(data) * 8):
        damaged[bit // 8] ^= 1 << bit % 8
        try:
            _native.check_index(bytes(damaged))
            silent += 1
        except DamagedFile:
            pass
        damaged[bit // 8] ^= 1 << bit % 8
    spent = time.perf_counter() - start
    print(
        f"every bit of {len(data):,} bytes: {len(data) * 8:,} trials, {silent} not detected, {spent:.0f} s",
        flush=True,
    )
    return row("every bit of an index", len(data) * 8, silent, wall=spent)


def private() -> int:
    """Bytes of memory of this process that it may write and shares with nobody: what the limit counts."""
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) << 10 for line in file if line.startswith("VmData:"))


def mixed(folder: Path, trials: int) -> dict[str, Any]:
    sys.path.insert(0, str(Path(__file__).parent.parent))
    from tests.damage import damage

    data = saved(folder / "large", 300_000)
    asked = np.random.default_rng(1).integers(0, 2**64, 500, dtype=np.uint64)
    right = list(nd.Index.load(folder / "large").search(asked))
    rng = random.Random(1)
    tally = {"detected": 0, "harmless": 0, "SILENT": 0, "CRASH": 0, "HANG": 0}
    room = int(len(data) * 1.2) + (64 << 20)
    for _ in range(trials):
        path = folder / "damaged"
        path.write_bytes(data)
        damage(path, rng)
        child = os.fork()
        if child == 0:
            limit = private() + room
            resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
            resource.setrlimit(resource.RLIMIT_CPU, (20, 20))
            try:
                found = list(nd.Index.load(path).search(asked, threads=1))
                os._exit(0 if found == right else 2)
            except DamagedFile:
                os._exit(1)
            except BaseException as error:
                print(repr(error), file=sys.stderr, flush=True)
                os._exit(3)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        verdict = {0: "harmless", 1: "detected", 2: "SILENT", -24: "HANG"}.get(code, "CRASH")
        tally[verdict] += 1
    print(f"mixed damages of {len(data):,} bytes: {trials:,} trials, {tally}", flush=True)
    return row("mixed damages of an index", trials, tally["SILENT"] + tally["CRASH"] + tally["HANG"])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trials", type=int, default=2000)
    parser.add_argument(
        "--size", type=int, default=65536, help="least bytes of the file of which every bit is damaged"
    )
    results.add_out(parser)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = [every_bit(Path(folder), asked.size), mixed(Path(folder), asked.trials)]
    results.write(rows, asked.out)
    if any(one["found"] for one in rows):
        raise SystemExit("a damaged file was accepted, or ended or stopped the process")


if __name__ == "__main__":
    main()
