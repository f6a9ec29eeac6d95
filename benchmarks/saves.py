"""Saving one index file from many threads and processes at once: none fails, none is ever damaged.

    python benchmarks/saves.py [--processes 4] [--threads 4] [--saves 1000] [--rows 20000]

Each thread saves an index of its own to the same path, and loads and searches what it finds there.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent.parent))

import results

from tests.saving import save_together


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--threads", type=int, default=4)
    parser.add_argument("--saves", type=int, default=1000, help="in all")
    parser.add_argument("--rows", type=int, default=20_000)
    results.add_out(parser)
    asked = parser.parse_args()
    each = -(-asked.saves // (asked.processes * asked.threads))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "index"
        tally, wrong = save_together(path, asked.processes, asked.threads, each, asked.rows)
        left = [name for name in os.listdir(folder) if name != "index"]
    for line in wrong[:10]:
        print(line, file=sys.stderr)
    print(
        f"{tally.saves:,} saves by {asked.threads} threads in each of {asked.processes} processes: "
        f"{tally.failed} failed, {tally.damaged} of {tally.loads:,} loads damaged, {len(left)} files left"
    )
    found = {"saves": tally.saves, "loads": tally.loads, "failed": tally.failed, "files_left": len(left)}
    row = {"work": "saves of one index", "engine": "neardup", **found, "found": tally.damaged, "expected": 0}
    results.write([row], asked.out)
    if wrong or left:
        raise SystemExit("a promise is broken")


if __name__ == "__main__":
    main()
