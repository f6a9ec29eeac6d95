"""A join of one billion 64-bit fingerprints at radius 3, exact, on one machine.

    python benchmarks/billion.py [--count 1e9] [--threads 2]

Needs 8 GB for the input and at most 8 GB more. Not part of CI. The input is random, with one
fingerprint in twenty planted within three bits of another; every planted pair must be found.
Random fingerprints also meet by chance: about n^2 / 2 x 43745 / 2^64 pairs, which is the second check.
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np

import neardup as nd

RADIUS = 3
STEP = 1 << 24


def made(count: int) -> np.ndarray:
    """Fingerprints made piece by piece, so that the input is all the memory they take."""
    words = np.empty(count, dtype=np.uint64)
    rng = np.random.default_rng(1)
    for start in range(0, count, STEP):
        part = words[start : start + STEP]
        part[:] = rng.integers(0, 2**64, len(part), dtype=np.uint64)
        near = len(part) // 20
        part[-near:] = part[:near]
        for _ in range(RADIUS):
            part[-near:] ^= np.uint64(1) << rng.integers(0, 64, near, dtype=np.uint64)
    words.flags.writeable = False
    return words


def planted(count: int) -> int:
    return sum(min(STEP, count - start) // 20 for start in range(0, count, STEP))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=lambda text: int(float(text)), default=10**9)
    parser.add_argument("--threads", type=int, default=2)
    asked = parser.parse_args()
    words = made(asked.count)
    print(f"{asked.count:,} fingerprints made; {nd.plan(words, RADIUS)}", flush=True)
    wall, before = time.perf_counter(), time.process_time()
    pairs = nd.join(words, RADIUS, threads=asked.threads)
    wall, cpu = time.perf_counter() - wall, time.process_time() - before
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    chance = asked.count**2 / 2 * 43745 / 2**64
    least = planted(asked.count)
    print(f"{len(pairs):,} pairs; {least:,} planted, about {chance:,.0f} more by chance", flush=True)
    print(f"wall {wall:.1f} s, CPU {cpu:.1f} s, peak {peak:.2f} GiB", flush=True)
    if len(pairs) < least:
        raise SystemExit("planted pairs are missing")


if __name__ == "__main__":
    main()
