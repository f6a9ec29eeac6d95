"""The most memory that a process had, whatever its parent had, and that of each stage of a run.

`ru_maxrss` is inherited over fork and exec, so a large test process makes every child look large.
"""

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent

# For a process whose memory per document is measured: the C library gives back at once what is freed. Left to
# itself it keeps between 0 and 20 MB, another amount in every run, which would count as the cost of documents.
THRIFTY = {
    "MALLOC_ARENA_MAX": "1",
    "MALLOC_MMAP_THRESHOLD_": "65536",
    "MALLOC_TRIM_THRESHOLD_": "65536",
    "ARROW_DEFAULT_MEMORY_POOL": "system",
}

STAGES = """
import json, sys
from neardup import jobs, memory
from neardup.passes import Passes
from neardup.adapters.cli import run
from pathlib import Path

def used(name):
    return int(Path("/proc/self/status").read_text().split(name + ":")[1].split()[0]) << 10

def watched(owner, name):
    inner = getattr(owner, name)

    def outer(*given, **named):
        Path("/proc/self/clear_refs").write_text("5")  # the peak is that of this stage
        found = inner(*given, **named)
        peak = used("VmHWM")
        memory.give_back()
        seen.append((name.strip("_"), used("VmRSS"), peak))
        return found

    setattr(owner, name, outer)

seen = []
for stage in ("survey", "fingerprint", "candidates", "verify"):
    watched(Passes, stage)
watched(jobs, "write_run")
given, out, *options = sys.argv[1:]
assert run(["dedupe", given, "-o", out, "--no-guards", "--annotate-only", "--quiet", *options]) == 0
print(json.dumps(seen))
"""


def peak() -> float:
    """MB; `VmHWM` where the system has it."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def stages(path: Path, out: Path, *options: str) -> list[tuple[str, int, int]]:
    """For each stage of a run over *path*, the bytes held after it and at its peak. For Linux."""
    command = [sys.executable, "-c", STAGES, str(path), str(out), *options]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=ROOT, timeout=600, env={**os.environ, **THRIFTY}
    )
    assert done.returncode == 0, done.stderr
    return [(name, held, most) for name, held, most in json.loads(done.stdout.splitlines()[-1])]
