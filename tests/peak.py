"""The most memory that this process had, in MB, whatever its parent had.

`ru_maxrss` is inherited over fork and exec, so a large test process makes every child look large.
"""

import resource
from pathlib import Path


def peak() -> float:
    """MB; `VmHWM` where the system has it."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
