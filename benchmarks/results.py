"""Results with what they depend on: benchmarks/results/DATE-MACHINE.json.

A file has the date, the machine, the level of vector instructions, the commit and the command, and one row
for each figure that was measured. A second run on the same day adds its own entry to the list `runs`.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results"


def processor() -> str:
    try:
        found = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    except OSError:
        found = None
    return found[1].strip() if found else platform.processor() or platform.machine()


def cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def level() -> str:
    """The widest vector instructions that the core uses here."""
    try:
        from neardup import _native
    except ImportError:
        return "unknown"
    return str(_native.simd_level())


def levels() -> list[str]:
    """The levels that this processor has, the best last."""
    try:
        from neardup import _native
    except ImportError:
        return []
    return list(_native.simd_levels())


def commit() -> str:
    """The commit of the working tree; with a plus where it was changed."""

    def git(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout

    try:
        return git("rev-parse", "--short=12", "HEAD").strip() + (
            "+" if git("status", "--porcelain", "-uno") else ""
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def circumstances() -> dict[str, Any]:
    """What the figures of a run depend on."""
    return {
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "cpu": processor(),
        "cores": cores(),
        "simd": level(),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "commit": commit(),
        "command": shlex.join(["python", *sys.orig_argv[1:]]),
        "load": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
    }


def add_out(parser: argparse.ArgumentParser) -> None:
    """The option `--out`."""
    parser.add_argument(
        "--out", type=Path, help="where to write; default: benchmarks/results/DATE-MACHINE.json"
    )


def write(rows: Sequence[Mapping[str, Any]], out: Path | None = None) -> Path:
    """Add a run with these rows to *out*, or to the file of this day and machine."""
    run = {**circumstances(), "rows": list(rows)}
    if out is None:
        machine = re.sub(r"[^a-z0-9]+", "-", f"{run['cpu']}-{run['cores']}-cores".lower()).strip("-")
        out = RESULTS / f"{run['date'][:10]}-{machine}.json"
    runs = json.loads(out.read_text())["runs"] if out.exists() else []
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps({"runs": [*runs, run]}, indent=1) + "\n")
    return out
