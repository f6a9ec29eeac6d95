"""Fingerprints for tests: random ones never meet, so most of these are one word with a few flips."""

from __future__ import annotations

import random

import numpy as np
from hypothesis import strategies as st

from neardup import Fingerprints, _native

WIDTHS = (64, 128, 192, 256, 1088, 4096)
WORDS = (1, 2, 3, 4, 5, 16, 17, 33, 64, 129, 511, 1024)
"""Numbers of words, among them one of every size that the engine is compiled for."""
LEVELS = ("scalar", "avx2", "avx512-base", "avx512")


def random_values(bits: int) -> st.SearchStrategy[int]:
    if bits <= 256:
        return st.integers(0, 2**bits - 1)
    return st.integers(0, 2**64 - 1).map(lambda seed: random.Random(seed).getrandbits(bits))


def clustered_values(bits: int) -> st.SearchStrategy[int]:
    flips = st.sets(st.integers(0, bits - 1), max_size=5)
    centers = st.sampled_from([0, 2**bits - 1, int("5" * (bits // 4), 16)])
    return st.builds(lambda center, flips: center ^ sum(1 << bit for bit in flips), centers, flips)


def adversarial_values(bits: int) -> st.SearchStrategy[int]:
    """Only one stretch of 16 bits varies, at the low or the high end."""
    return st.builds(
        lambda low, value: value if low else value << (bits - 16), st.booleans(), st.integers(0, 2**16 - 1)
    )


@st.composite
def fingerprints(draw: st.DrawFn, max_size: int = 60) -> Fingerprints:
    bits = draw(st.sampled_from(WIDTHS))
    kind = draw(st.sampled_from([random_values, clustered_values, adversarial_values]))
    values = draw(
        st.lists(st.one_of(kind(bits), st.none() if draw(st.booleans()) else kind(bits)), max_size=max_size)
    )
    return Fingerprints.of(values, bits=bits)


def near_words(count: int, width: int, seed: int) -> np.ndarray:
    """Half random, half near others of them; shape (count, width)."""
    rng = np.random.default_rng(seed)
    words = rng.integers(0, 2**64, (count, width), dtype=np.uint64)
    half = count // 2
    words[half:] = words[rng.integers(0, half, count - half)]
    for _ in range(3):
        rows = np.arange(half, count)
        words[rows, rng.integers(0, width, len(rows))] ^= np.uint64(1) << rng.integers(
            0, 64, len(rows), dtype=np.uint64
        )
    return words


class at_level:
    """Run at a SIMD level."""

    def __init__(self, level: str) -> None:
        self.level = level

    def __enter__(self) -> None:
        _native.set_simd(self.level)

    def __exit__(self, *rest: object) -> None:
        _native.set_simd("")
