"""`python -m tests.fuzz [TARGET ...] [--runs N] [--seed N] [--input FILE]`."""

from __future__ import annotations

import argparse
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

from neardup.errors import NeardupError
from tests.fuzz.mutations import mutated
from tests.fuzz.targets import TARGETS, Target

HANG = 60  # seconds without an answer
KEPT = 512  # inputs that gave another answer than those before, which are changed further


def fuzz(target: Target, runs: int, seed: int, last: Path | None = None) -> Counter[str]:
    """Feed *target* with *runs* inputs; how many had which answer. *last* always holds the present one.

    An input with an answer that none before had becomes one to start from.
    """
    rng = random.Random(seed)
    pool, answers = list(target.seeds), Counter[str]()
    handle = None if last is None else os.open(last, os.O_RDWR | os.O_CREAT)
    for seed_input in target.seeds:
        target.run(seed_input)
    for _ in range(runs):
        data = mutated(rng.choice(pool), rng, pool, target.words)
        if rng.randrange(8):
            data = target.seal(data)
        if handle is not None:
            os.pwrite(handle, len(data).to_bytes(8, "little") + data, 0)
        try:
            answer = target.run(data)
        except (NeardupError, MemoryError) as error:
            answer = f"{type(error).__name__} {error}"
        answer = shape(answer)
        answers[answer] += 1
        if answers[answer] == 1 and len(pool) < KEPT:
            pool.append(data)
    if handle is not None:
        os.close(handle)
    return answers


def shape(message: str) -> str:
    """An answer without the values in it."""
    return re.sub(r"[^a-z ]+", "", message.lower())[:80]


def _child(name: str, runs: int, seed: int, folder: str) -> None:
    target = TARGETS[name](Path(folder))
    begun = time.process_time()
    answers = fuzz(target, runs, seed, Path(folder) / "last")
    spent = time.process_time() - begun
    print(f"{name}: {runs:,} executions, {len(answers):,} kinds of answers, {spent:.0f} s CPU", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description="Feed what reads foreign bytes with damaged ones.")
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"of {', '.join(TARGETS)}; all if none")
    parser.add_argument("--runs", type=int, default=100_000, help="executions of each target")
    parser.add_argument("--seed", type=int, default=None, help="the same seed gives the same inputs")
    parser.add_argument("--input", type=Path, help="run one target on this file, and nothing else")
    parser.add_argument("--child", metavar="FOLDER", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    names = chosen.targets or list(TARGETS)
    if unknown := [name for name in names if name not in TARGETS]:
        parser.error(f"unknown target {unknown[0]!r}; known: {', '.join(TARGETS)}")
    seed = random.SystemRandom().randrange(1 << 32) if chosen.seed is None else chosen.seed
    if chosen.child is not None:
        _child(names[0], chosen.runs, seed, chosen.child)
        return 0
    if chosen.input is not None:
        with tempfile.TemporaryDirectory() as folder:
            TARGETS[names[0]](Path(folder)).run(chosen.input.read_bytes())
        return 0
    failed = 0
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            last = Path(folder) / "last"
            command = [sys.executable, "-m", "tests.fuzz", name, "--child", folder]
            child = subprocess.Popen([*command, "--runs", str(chosen.runs), "--seed", str(seed)])
            # Looks are counted, not seconds on a clock: a machine that was suspended, or a job that was stopped and
            # goes on, has not hung.
            seen, looks = b"", 0
            while child.poll() is None:
                with suppress(subprocess.TimeoutExpired):
                    child.wait(1)
                now = last.read_bytes() if last.exists() else b""
                seen, looks = now, looks + 1 if now == seen else 0
                if looks > HANG:
                    child.kill()
                    child.wait()
            if child.returncode != 0:
                failed += 1
                kept = Path(f"fuzz-{name}-{seed}.input")
                data = last.read_bytes() if last.exists() else b""
                kept.write_bytes(data[8 : 8 + int.from_bytes(data[:8], "little")])
                print(
                    f"{name}: ended with {child.returncode} (seed {seed}); the input is in {kept}",
                    file=sys.stderr,
                )
    print(f"{len(names) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
