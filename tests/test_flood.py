"""Input that somebody chose to make the core slow: time grows with its size, not with the square of it."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import neardup as nd
from neardup import _native
from neardup.schemes.files import _HEAD, MAGIC, VERSION, _check, to_toml


def table_of(keys: Any, count: int = 2) -> bytes:
    """A table of frequencies in which each of the *keys* stands with *count* (docs/formats/scheme.md)."""
    keys = np.sort(np.asarray(keys, np.uint64))
    head = b"NDFREQ01" + struct.pack("<4Q", 0, 100, 1 << 25, len(keys))
    body = head + keys.astype("<u8").tobytes() + np.full(len(keys), count, "<u4").tobytes()
    return body + _native.digest("xxh3-128", body, 16)


def scheme_file(path: Path, keys: Any) -> Path:
    table = table_of(keys)
    text = to_toml(nd.scheme("text")).splitlines()
    toml = "\n".join(line for line in text if not line.startswith("digest")).encode()
    content = _HEAD.pack(MAGIC, VERSION, len(toml), len(table)) + toml + table
    path.write_bytes(content + _check(content))
    return path


def one_line(count: int) -> Any:
    """Keys that belonged to one shard of the table and to one line of it."""
    return (
        (np.uint64(42) << np.uint64(58)) + (np.arange(count, dtype=np.uint64) << np.uint64(34)) + np.uint64(1)
    )


def one_bucket(count: int) -> Any:
    """Keys that begin alike, and so belonged to one bucket of the table that answers."""
    return (np.uint64(42) << np.uint64(58)) + np.arange(1, count + 1, dtype=np.uint64)


def cost(work: Callable[[], object]) -> float:
    """The processor time of *work*: the least of three, as other processes only add to it."""
    times = []
    for _ in range(3):
        begin = time.thread_time()
        work()
        times.append(time.thread_time() - begin)
    return min(times)


@pytest.mark.parametrize("keys", [one_line, one_bucket])
def test_a_scheme_file_of_chosen_features_loads_in_linear_time(tmp_path: Path, keys: Any) -> None:
    def use(path: Path) -> Callable[[], object]:
        return lambda: nd.scheme(str(path)).fingerprint("the quick brown fox jumps over the lazy dog")

    small, large = (scheme_file(tmp_path / f"{count}.scheme", keys(count)) for count in (80_000, 320_000))
    ordinary = np.random.default_rng(1).integers(1, 2**64, 320_000, dtype=np.uint64)
    crafted = cost(use(large))
    assert crafted <= 5 * cost(use(small)), "time of 4 n features over time of n"
    assert crafted <= 5 * cost(use(scheme_file(tmp_path / "ordinary.scheme", ordinary)))


@pytest.mark.parametrize("keys", [one_line, one_bucket])
def test_a_table_of_chosen_features_is_merged_and_asked_in_linear_time(keys: Any) -> None:
    def use(table: bytes) -> Callable[[], object]:
        own = _native.Frequencies.from_bytes(table)

        def work() -> None:
            sum_of_both = _native.Frequencies()
            sum_of_both.merge(own)
            assert sum_of_both.get(int(keys(1)[0])) == 2
            assert sum_of_both.to_bytes()[40:-16] == table[40:-16]

        return work

    small, large = (cost(use(table_of(keys(count)))) for count in (80_000, 320_000))
    assert large <= 5 * small


def test_the_same_table_is_the_same_bytes_in_every_process() -> None:
    """Features stand where a number of the process says; nothing that leaves it may tell."""
    import subprocess
    import sys

    code = """
import neardup as nd
texts = [f"document {n} has word{n % 7} and word{n % 11}, word{n * n % 101}" for n in range(500)]
scheme = nd.scheme("text").fit(texts)
import hashlib
print(hashlib.sha256(scheme.frequencies.to_bytes()).hexdigest(), scheme.digest, scheme.fingerprints(texts).hex()[:9])
"""
    runs = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        for _ in range(3)
    ]
    assert runs[0] == runs[1] == runs[2]
    assert runs[0]
