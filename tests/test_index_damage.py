"""Damage to an index file is found before a wrong answer leaves the library.

`benchmarks/damage.py` runs the long form: every bit of a 64 KiB file and 2,000 mixed damages.
"""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import neardup as nd
from neardup import _native
from neardup.errors import DamagedFile
from tests.damage import damage
from tests.hamming import near_words


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("index") / "index"
    index = nd.Index(bits=64, radius=3, digest="some-scheme")
    index.add([f"document {row}" for row in range(1000)], near_words(1000, 1, 1))
    index.save(path)
    return path.read_bytes()


def test_the_file_itself_is_sound(saved: bytes) -> None:
    _native.check_index(saved)


def test_no_single_bit_can_be_wrong(saved: bytes) -> None:
    rng = random.Random(1)
    header = range(min(len(saved), 512) * 8)
    for bit in {*header, *rng.sample(range(len(saved) * 8), 20_000)}:
        damaged = bytearray(saved)
        damaged[bit // 8] ^= 1 << bit % 8
        with pytest.raises(DamagedFile):
            _native.check_index(bytes(damaged))


def test_no_length_but_the_right_one_is_accepted(saved: bytes) -> None:
    for length in range(0, len(saved), 97):
        with pytest.raises(DamagedFile):
            _native.check_index(saved[:length])
    for more in (1, 7, 64, 4096):
        with pytest.raises(DamagedFile):
            _native.check_index(saved + bytes(more))


def test_a_damaged_file_is_named_with_the_place(saved: bytes, tmp_path: Path) -> None:
    damaged = bytearray(saved)
    damaged[-100] ^= 1
    (tmp_path / "broken").write_bytes(damaged)
    with pytest.raises(DamagedFile, match=r"broken: section \d+ is damaged \(offset \d+ to \d+\)"):
        nd.Index.load(tmp_path / "broken")
    (tmp_path / "empty").write_bytes(b"")
    with pytest.raises(DamagedFile, match="empty"):
        nd.Index.load(tmp_path / "empty")


LIMITED = """
import resource, sys
import numpy as np
import neardup as nd
from neardup.errors import DamagedFile
with open("/proc/self/status") as file:
    own = next(int(line.split()[1]) << 10 for line in file if line.startswith("VmData:"))
limit = own + int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
try:
    np.ones(int(sys.argv[1]) + (1 << 20), dtype=np.uint8)
    print("no limit")
except MemoryError:
    print("limited")
for path in sys.argv[2:]:
    try:
        print(len(nd.Index.load(path).search(np.zeros(1, dtype=np.uint64))))
    except DamagedFile:
        print("found")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere no limit counts private memory alone")
def test_a_damaged_file_takes_no_more_memory_than_its_size_allows(saved: bytes, tmp_path: Path) -> None:
    rng, paths = random.Random(3), []
    for trial in range(60):
        paths.append(tmp_path / f"damaged-{trial}")
        paths[-1].write_bytes(saved)
        damage(paths[-1], rng)
    room = int(len(saved) * 1.2) + (64 << 20)
    told = subprocess.run(
        [sys.executable, "-c", LIMITED, str(room), *paths], capture_output=True, text=True, check=True
    )
    assert told.stdout.split() == ["limited"] + ["found"] * 60


def test_a_foreign_file_is_refused(tmp_path: Path) -> None:
    for data in (b"x", b"\x80\x04\x95" + bytes(500), b"NDINDEX\n" + b"\xff" * 500, np.arange(500).tobytes()):
        (tmp_path / "foreign").write_bytes(data)
        with pytest.raises(DamagedFile):
            nd.Index.load(tmp_path / "foreign")
