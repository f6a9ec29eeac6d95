"""The memory of `neardup dedupe`: the peak of a process that deduplicates a file of a given size.

    python benchmarks/memory.py --megabytes 1024

The documents are made: 400 words each, of 200,000 that are as frequent as words are, every tenth a
near-duplicate. The file is removed afterwards.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent

RUN = """
import sys
from neardup.adapters.cli import run
from tests.peak import peak
code = run(["dedupe", sys.argv[1], "-o", sys.argv[2], "--no-guards", "--annotate-only", "--quiet"])
print(code, peak())
"""


def write(path: Path, megabytes: int) -> int:
    """Documents up to that size; how many."""
    rng = random.Random(1)
    letters = "etaoinshrdlucmfwypvbgkjqxz"
    vocabulary = ["".join(rng.choices(letters, k=rng.randint(3, 10))) for _ in range(200_000)]
    weights = list(itertools.accumulate(1 / (rank + 10) for rank in range(len(vocabulary))))
    written = count = 0
    last: list[str] = []
    with path.open("w", encoding="utf-8") as file:
        while written < megabytes << 20:
            words = rng.choices(vocabulary, cum_weights=weights, k=400)
            if count % 10 == 9:
                words = [*last[:200], *rng.choices(vocabulary, k=3), *last[203:]]
            written += file.write(json.dumps({"id": f"doc-{count:09}", "text": " ".join(words)}) + "\n")
            count, last = count + 1, words
    return count


def main() -> int:
    """Print the peak."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=1024)
    parser.add_argument("--limit", type=int, default=1024, help="Fail above this many MB.")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        path = Path(name, "corpus.jsonl")
        count = write(path, chosen.megabytes)
        start = time.monotonic()
        command = [sys.executable, "-c", RUN, str(path), str(Path(name, "out"))]
        done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True)
        code, peak = done.stdout.split()[-2:]
        counts = json.loads(Path(name, "out/manifest.json").read_text())["counts"]
    print(
        f"{chosen.megabytes} MB, {count:,} documents: peak {float(peak):.0f} MB, exit {code}, "
        f"{counts['removed']:,} removed, {counts['candidate_pairs']:,} candidate pairs, "
        f"{time.monotonic() - start:.0f} s"
    )
    return int(float(peak) > chosen.limit)


if __name__ == "__main__":
    sys.exit(main())
