"""Where memory ends a call raises MemoryError, and the process lives on."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="RLIMIT_AS is kept on Linux only")
ROOT = Path(__file__).parent.parent

CALLS = """
import os, resource, sys, tempfile
import numpy as np, pyarrow as pa
import neardup as nd
from neardup import _native
from neardup.arrays import core_texts
from neardup.errors import LimitReached
from neardup.verifiers import measuring_scheme

extra = int(sys.argv[1])
words = [f"w{number:x}" for number in range(60_000)]
many = [" ".join(words[at : at + 12]) for at in range(0, 48_000)]
long = " ".join(words) * 12
odd = "Ωμέγα ﬁn № \\u0301x 漢字 " * 100_000
column, lines = pa.array(many), "\\n".join('{"id": "%d", "text": "%s"}' % both for both in enumerate(many)).encode()
broken = pa.array([odd.encode()[1:]], pa.binary()).view(pa.string())
ids = [f"id-{number}" for number in range(300_000)]
names, numbers = pa.array(ids, pa.large_string()), np.arange(300_000, dtype=np.int64)
scheme, recipe = nd.scheme("text"), nd.scheme("text").recipe
hashed = nd.Scheme("test", features="words:1", hash="md5", weights="set", bits=128)
fitted = scheme.fit(many[:200])
table = scheme.fit(many).frequencies.to_bytes()
folder = tempfile.mkdtemp()

def verify():
    verifier = _native.Verifier(measuring_scheme().recipe, None, 1 << 30, folder + "/spill")
    verifier.add(numbers[: len(many)], core_texts(column))
    left, right = numbers[: len(many) - 1], numbers[1 : len(many)]
    _native.walk_pairs(len(many), left, right, 100)
    verifier.measure(left, right, 2)
    os.unlink(folder + "/spill") if os.path.exists(folder + "/spill") else None

calls = {
    "strings": lambda: scheme.fingerprints(many),
    "arrow": lambda: scheme.fingerprints(column),
    "long": lambda: scheme.fingerprints([long, long + "x"]),
    "one": lambda: scheme.fingerprint(long),
    "odd": lambda: scheme.fingerprints([odd, odd[1:]]),
    "broken": lambda: scheme.fingerprints(broken),
    "hashed": lambda: hashed.fingerprints([long]),
    "fit": lambda: scheme.fit(many),
    "fitted": lambda: fitted.fingerprints(many),
    "table": lambda: _native.Frequencies.from_bytes(table).to_bytes(),
    "digest": lambda: _native.Frequencies.from_bytes(table).digest,
    "survey": lambda: _native.survey(recipe, core_texts(column), _native.Frequencies(), bytes(32), 2),
    "lines": lambda: _native.read_jsonl(lines, "text", "id"),
    "fields": lambda: _native.read_jsonl_fields(lines, ["text", "id", "text"], "id", "  ", 1 << 30),
    "ids": lambda: _native.Uniques().add(ids, numbers),
    "order": lambda: _native.ordered(core_texts(names), None, [], 2),
    "one of each": lambda: _native.one_of_each(np.ones((300_000, 2), np.uint64), None, np.arange(300_000, dtype=np.int32)),
    "features": lambda: recipe.features(long),
    "verify": verify,
    "dedupe": lambda: nd.dedupe(iter(many[:8_000])),
}
scheme.fingerprints(many[:3000])  # whatever is made once
nd.dedupe(iter(many[:50]))
used = int(open("/proc/self/statm").read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
resource.setrlimit(resource.RLIMIT_AS, (used + extra, resource.RLIM_INFINITY))
ended = 0
for name, call in calls.items():
    try:
        call()
    except MemoryError:
        ended += 1
    except (LimitReached, RuntimeError) as error:
        assert "thread" in str(error), (name, error)
        ended += 1
    except OSError as error:
        assert error.errno == 12 or "allocate" in str(error), (name, error)
        ended += 1
resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
assert list(scheme.fingerprints(many[:3])) == [scheme.fingerprint(text) for text in many[:3]]
print("ended", ended)
"""


@pytest.mark.parametrize("megabytes", [0, 2, 6, 9, 12, 17, 24, 40, 64])
def test_calls_that_get_no_memory_raise_and_the_process_lives_on(megabytes: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CALLS, str(megabytes << 20)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=600,
    )
    assert done.returncode == 0, f"exit {done.returncode}: {done.stderr[-2000:]}"
    assert "panicked" not in done.stderr
    (ended,) = [int(line.split()[1]) for line in done.stdout.splitlines() if line.startswith("ended")]
    assert megabytes >= 24 or ended > 0


NOTHING_LEFT = """
import ctypes, os, resource
import neardup as nd

recipe = nd.scheme("text").recipe
expected = recipe.features("some words of a text")  # whatever is made once, and the reserve
malloc = ctypes.CDLL(None).malloc
malloc.restype, malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
used = int(open("/proc/self/statm").read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
said, size = [None] * 4, 1 << 20
resource.setrlimit(resource.RLIMIT_AS, (used, resource.RLIM_INFINITY))
while size:
    while malloc(size):
        pass
    size = size // 2 if size > 2048 else size - 16
for at in range(len(said)):
    try:
        recipe.features("some words of a text")
    except BaseException as error:
        said[at] = type(error)
resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
assert said == [MemoryError] * 4, said
assert recipe.features("some words of a text") == expected
print("lives")
"""


def test_not_a_byte_for_something_small_raises_and_the_process_lives_on() -> None:
    """The first call gets what was set aside, so that it can end; those after it have nothing to set aside."""
    done = subprocess.run([sys.executable, "-c", NOTHING_LEFT], capture_output=True, text=True, cwd=ROOT)
    assert (done.returncode, done.stdout) == (0, "lives\n"), f"exit {done.returncode}: {done.stderr[-2000:]}"


@pytest.mark.parametrize("megabytes", [330, 400, 500, 700])
def test_a_command_that_gets_no_memory_says_so(tmp_path: Path, megabytes: int) -> None:
    path = tmp_path / "many.jsonl"
    with path.open("w") as file:
        for number in range(40_000):
            text = " ".join(f"w{number * step % 65_537:x}" for step in range(1, 60))
            file.write(json.dumps({"id": str(number), "text": text}) + "\n")

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20, megabytes << 20))

    done = subprocess.run(
        [sys.executable, "-m", "neardup", "dedupe", str(path), "-o", str(tmp_path / "run"), "--quiet"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=600,
        preexec_fn=limit,
    )
    assert done.returncode in (0, 5), f"exit {done.returncode}: {done.stderr[-2000:]}"
    assert done.returncode == 0 or done.stderr.splitlines()[-1].startswith("neardup: "), done.stderr
