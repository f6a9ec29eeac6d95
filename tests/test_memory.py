"""The memory of a run: bookkeeping for every document, texts for none."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

from tests.peak import ROOT, stages

RUN = """
import sys
from neardup.adapters.cli import run
from tests.peak import peak
assert run(["dedupe", sys.argv[1], "-o", sys.argv[2], "--annotate-only", "--quiet", "--threads", "1", *sys.argv[3:]]) == 0
print(peak())
"""


def peak_of(path: Path, *options: str) -> float:
    """Bytes."""
    command = [sys.executable, "-c", RUN, str(path), str(path.with_suffix(".out")), *options]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=300)
    assert done.returncode == 0, done.stderr
    return float(done.stdout.split()[-1]) * (1 << 20)


def write(path: Path, count: int, size: int) -> Path:
    """Documents of *size* words that have nothing to do with each other, of few different features."""
    rng = random.Random(count)
    vocabulary = [f"{number:x}" for number in range(256, 1280)]
    with path.open("w") as file:
        for number in range(count):
            file.write(
                json.dumps({"id": f"{number:08}", "text": " ".join(rng.choices(vocabulary, k=size))}) + "\n"
            )
    return path


# Bytes that a further document may cost at the peak of each stage, with its id: 16 bytes, and about 30 more while ids are
# told apart. 89, 72, 67, 76 and 80 are measured, within two bytes, run after run; benchmarks/memory.py --each does the same
# over more documents.
LIMITS = {"survey": 105, "fingerprint": 82, "candidates": 75, "verify": 84, "write_run": 88}


@pytest.mark.skipif(sys.platform != "linux", reason="the peak of a stage is told by Linux")
def test_a_document_costs_its_bookkeeping_and_not_its_text(tmp_path: Path) -> None:
    # Radius 0: no pairs, so that what grows is what is kept of each document; what is read ahead no longer grows.
    few, many = 150_000, 450_000
    small, large = (
        stages(
            write(tmp_path / f"{count}.jsonl", count, 12),
            tmp_path / f"{count}",
            "--radius",
            "0",
            "--threads",
            "1",
        )
        for count in (few, many)
    )
    grown = {
        name: (most - before) / (many - few)
        for (name, _, before), (_, _, most) in zip(small, large, strict=True)
    }
    assert {name: cost for name, cost in grown.items() if cost > LIMITS[name]} == {}


def test_longer_texts_cost_no_more(tmp_path: Path) -> None:
    short, long = (write(tmp_path / f"{size}.jsonl", 6000, size) for size in (20, 400))
    more = peak_of(long, "--radius", "0") - peak_of(short, "--radius", "0")
    # 12 MB of text against 0.6: batches in flight may be larger, the collection is not held.
    assert more < 40 << 20, f"{more / (1 << 20):.0f} MB"
