"""The memory of `neardup dedupe`: the peak of a process that deduplicates a file of a given size.

    python benchmarks/memory.py --megabytes 1024
    python benchmarks/memory.py --each 2000000 8000000

The documents are those of `inputs.made_lines`. With --each, the memory that each further document costs,
from the first number of documents to the second, stage by stage: documents of 14 words of 1,000, whose
features are soon all known, with nothing to verify. The C library is told to give back at once what is freed:
what it would keep differs by tens of megabytes from run to run. The files are removed afterwards.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))
sys.path.insert(0, str(Path(__file__).parent))

import results
from inputs import made_lines

from tests.peak import stages

ROOT = Path(__file__).parent.parent

RUN = """
import sys
from neardup.adapters.cli import run
from tests.peak import peak
code = run(["dedupe", sys.argv[1], "-o", sys.argv[2], "--no-guards", "--annotate-only", "--quiet"])
print(code, peak())
"""


def write_short(path: Path, count: int) -> None:
    """*count* documents of 14 words, with ids of 8 characters."""
    rng = random.Random(count)
    vocabulary = [f"{number:x}" for number in range(256, 1280)]
    with path.open("w", encoding="utf-8") as file:
        for number in range(count):
            row = {"id": f"{number:08}", "text": " ".join(rng.choices(vocabulary, k=14))}
            file.write(json.dumps(row) + "\n")


def growth(few: int, many: int) -> list[dict[str, Any]]:
    """Bytes per document, held after each stage and at its peak."""
    found = []
    with tempfile.TemporaryDirectory() as name:
        for count in (few, many):
            path = Path(name, f"{count}.jsonl")
            write_short(path, count)
            found.append(stages(path, Path(name, f"out-{count}"), "--memory", "16M", "--radius", "30"))
            path.unlink()
    rows = []
    print("| after | held, bytes per document | at the peak |\n|---|---|---|")
    for (stage, *small), (_, *large) in zip(*found, strict=True):
        held, peak = ((b - a) / (many - few) for a, b in zip(small, large, strict=True))
        print(f"| {stage} | {held:.0f} | {peak:.0f} |")
        figures = {"held_bytes": held, "peak_bytes": peak}
        rows.append({"work": f"memory per document after {stage}", "engine": "neardup", **figures})
    return rows


def write(path: Path, megabytes: int) -> int:
    """Documents up to that size; how many."""
    written = count = 0
    with path.open("w", encoding="utf-8") as file:
        for line in made_lines():
            if written >= megabytes << 20:
                break
            written += file.write(line)
            count += 1
    return count


def main() -> int:
    """Print the peak."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=1024)
    parser.add_argument("--limit", type=int, default=1024, help="Fail above this many MB.")
    parser.add_argument("--each", type=int, nargs=2, metavar="N", help="Growth per document (Linux).")
    results.add_out(parser)
    chosen = parser.parse_args()
    if chosen.each:
        results.write(growth(*chosen.each), chosen.out)
        return 0
    with tempfile.TemporaryDirectory() as name:
        path = Path(name, "corpus.jsonl")
        count = write(path, chosen.megabytes)
        start = time.monotonic()
        command = [sys.executable, "-c", RUN, str(path), str(Path(name, "out"))]
        done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True)
        code, peak = done.stdout.split()[-2:]
        counts = json.loads(Path(name, "out/manifest.json").read_text())["counts"]
    seconds = time.monotonic() - start
    print(
        f"{chosen.megabytes} MB, {count:,} documents: peak {float(peak):.0f} MB, exit {code}, "
        f"{counts['removed']:,} removed, {counts['candidate_pairs']:,} candidate pairs, {seconds:.0f} s"
    )
    figures = {"items": count, "wall": seconds, "peak_mb": float(peak), "limit_mb": chosen.limit}
    row = {
        "work": f"memory of {chosen.megabytes} MB",
        "engine": "neardup",
        **figures,
        "found": counts["removed"],
    }
    results.write([row], chosen.out)
    return int(float(peak) > chosen.limit)


if __name__ == "__main__":
    sys.exit(main())
