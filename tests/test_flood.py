"""Input that somebody chose to make the core slow: time grows with its size, not with the square of it."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import neardup as nd
from neardup import _native, naive
from neardup.schemes.files import _HEAD, MAGIC, VERSION, _check, to_toml

Hashes = npt.NDArray[np.uint64]

# Four times the input may take five times the time: caches have an end. Four times that, and it is this; where time
# grows with the square it is 256.
LINEAR = 5 * 5

# The seeds of the hashes of words: among features, and in the order of a text.
FEATURE, TOKEN = naive.SECOND * naive.WORD, 0


def table_of(keys: Any, count: int = 2) -> bytes:
    """A table of frequencies that holds each of the *keys* with *count* (docs/formats/scheme.md)."""
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


def finish(x: Hashes) -> Hashes:
    x = (x ^ x >> np.uint64(30)) * np.uint64(naive.FIRST)
    x = (x ^ x >> np.uint64(27)) * np.uint64(naive.SECOND)
    return x ^ x >> np.uint64(31)


def unfinish(x: Hashes) -> Hashes:
    x = (x ^ x >> np.uint64(31) ^ x >> np.uint64(62)) * np.uint64(pow(naive.SECOND, -1, 2**64))
    x = (x ^ x >> np.uint64(27) ^ x >> np.uint64(54)) * np.uint64(pow(naive.FIRST, -1, 2**64))
    return x ^ x >> np.uint64(30) ^ x >> np.uint64(60)


def words_of(hashes: Hashes, seed: int) -> list[str]:
    """Words of sixteen letters that have some of the *hashes*: two in a hundred of two million.

    The hash of such a word is finish(finish(start ^ first half) ^ second half), and *finish* can be undone. So any
    first half and any hash give a second half, which is of letters once in ninety million times; but what the
    first half gives and what the hash gives need only be sorted by the bits that all letters share.
    """
    random = np.random.default_rng(1)
    halves = random.integers(ord("a"), ord("z") + 1, (len(hashes), 8), dtype=np.uint8).view(np.uint64).ravel()
    begun = finish(halves ^ np.uint64((seed + naive.GAMMA * 16) % 2**64))
    wanted = unfinish(hashes)
    alike, letter = np.uint64(0xE0E0E0E0E0E0E0E0), np.uint64(0x6060606060606060)
    _, one, other = np.intersect1d((begun ^ letter) & alike, wanted & alike, return_indices=True)
    words = np.stack([halves[one], begun[one] ^ wanted[other]], axis=1).view(np.uint8)
    words = words[((words >= ord("a")) & (words <= ord("z"))).all(axis=1)]
    return [word.tobytes().decode() for word in words]


def halves_exchanged(x: Hashes) -> Hashes:
    return x << np.uint64(32) | x >> np.uint64(32)


@cache
def chosen_words(keys: Callable[[int], Hashes]) -> list[str]:
    return words_of(keys(1 << 21), FEATURE)


@cache
def ordinary_words() -> list[str]:
    letters = np.random.default_rng(2).integers(ord("a"), ord("z") + 1, (40_000, 16), dtype=np.uint8)
    return [word.tobytes().decode() for word in letters]


def pages(words: list[str], count: int) -> list[str]:
    """Documents of five hundred of the words each, every one twice, so that no word is alone."""
    texts = [" ".join(words[begin : begin + 500]) for begin in range(0, count, 500)]
    return texts * 2


def costs(*works: Callable[[], object]) -> list[float]:
    """The processor time of each: the least of five, taken in turn, as other processes only add to it."""
    times: list[list[float]] = [[] for _ in works]
    for _ in range(5):
        for own, work in zip(times, works, strict=True):
            begin = time.process_time()  # of all threads: long work goes on in a second one
            work()
            own.append(time.process_time() - begin)
    return [min(own) for own in times]


@pytest.mark.parametrize("keys", [one_line, one_bucket])
def test_a_scheme_file_of_chosen_features_loads_in_linear_time(tmp_path: Path, keys: Any) -> None:
    def use(path: Path) -> Callable[[], object]:
        return lambda: nd.scheme(str(path)).fingerprint("the quick brown fox jumps over the lazy dog")

    ordinary_keys = np.random.default_rng(1).integers(1, 2**64, 80_000, dtype=np.uint64)
    files = {"small": keys(5_000), "large": keys(80_000), "ordinary": ordinary_keys}
    small, large, ordinary = costs(*(use(scheme_file(tmp_path / name, own)) for name, own in files.items()))
    assert large <= LINEAR * small
    assert large <= 5 * ordinary


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

    small, large = costs(*(use(table_of(keys(count))) for count in (5_000, 80_000)))
    assert large <= LINEAR * small


@pytest.mark.parametrize("keys", [one_line, one_bucket])
def test_words_can_be_chosen_by_their_hash(keys: Any) -> None:
    """Or else the tests below have nothing to show."""
    words = chosen_words(keys)
    assert len(set(words)) >= 40_000
    listed = nd.scheme("text").recipe.features(" ".join(words[:1000]))
    hashes = [hash for kind, _, hash in listed if kind == naive.WORD]
    assert len(hashes) == 1000
    assert np.isin(hashes, keys(1 << 21)).all()


@pytest.mark.parametrize(
    ("what", "keys"), [("fit", one_line), ("fingerprints", one_line), ("fingerprints", one_bucket)]
)
def test_documents_of_chosen_words_take_linear_time(what: str, keys: Any) -> None:
    def use(texts: list[str]) -> Callable[[], object]:
        scheme = nd.scheme("text")
        if what == "fit":
            return lambda: scheme.fit(texts, threads=1)
        fitted = scheme.fit(texts, threads=1)
        return lambda: fitted.fingerprints(texts, threads=1)

    words = chosen_words(keys)
    texts = pages(words, 2_500), pages(words, 40_000), pages(ordinary_words(), 40_000)
    small, large, ordinary = costs(*map(use, texts))
    assert large <= LINEAR * small
    assert large <= 5 * ordinary


def test_pairs_of_chosen_words_are_looked_up_in_linear_time() -> None:
    """Verification looks for the pairs of neighbouring words of one text in the other, if both are long."""
    # What a pair is known by is finish(hash of the first ^ that of the second, its halves exchanged).
    first = np.array([naive.mix(b"word")], np.uint64)
    wanted = halves_exchanged(unfinish(one_line(1 << 21)) ^ first)
    words = words_of(wanted, TOKEN)
    assert len(words) >= 40_000
    second = np.array([naive.mix(word.encode()) for word in words[:1000]], np.uint64)
    assert np.isin(finish(first ^ halves_exchanged(second)), one_line(1 << 21)).all()

    def use(words: list[str]) -> Callable[[], object]:
        one = " ".join(f"word {word}" for at, word in enumerate(words) if at % 4 != 0)
        other = " ".join(f"word {word}" for at, word in enumerate(words) if at % 4 != 1)

        def work() -> None:
            assert nd.dedupe(iter([one, other]), threads=1).summary["measured_pairs"] == 1

        return work

    small, large, ordinary = costs(*map(use, (words[:2_500], words[:40_000], ordinary_words())))
    assert large <= LINEAR * small
    assert large <= 5 * ordinary


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
