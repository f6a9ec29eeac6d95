import subprocess
import sys
from pathlib import Path

import pytest

from neardup.threads import Pool, started

ROOT = Path(__file__).parent.parent

FEW = """
import os, resource, sys
from neardup.threads import Pool, started
used = int(open("/proc/self/statm").read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
resource.setrlimit(resource.RLIMIT_AS, (used + int(sys.argv[1]), resource.RLIM_INFINITY))
try:
    started(lambda: None).join()
    with Pool(4) as pool:
        [made.result() for made in [pool.submit(int, number) for number in range(8)]]
    print("done")
except MemoryError:
    print("MemoryError")
"""


def test_a_thread_and_a_pool_do_what_is_handed_in() -> None:
    done: list[int] = []
    started(lambda: done.append(1)).join()
    with Pool(2) as pool:
        assert (done, pool.submit(int, "7", base=8).result()) == ([1], 7)


@pytest.mark.skipif(sys.platform != "linux", reason="needs a limit of memory")
@pytest.mark.parametrize("megabytes", [0, 4, 8, 9, 10, 12, 15, 17, 20, 24])
def test_a_thread_without_memory_raises_and_is_not_waited_for(megabytes: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FEW, str(megabytes << 20)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=60,
    )
    assert done.stdout in ("MemoryError\n", "done\n"), done.stderr
    assert megabytes > 15 or done.stdout == "MemoryError\n"
