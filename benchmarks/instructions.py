"""Count the instructions of every kernel, and fail where there are more than there were.

    python benchmarks/instructions.py            # what `make instructions` does
    python benchmarks/instructions.py --store    # store what is counted now

valgrind counts them while benchmarks/instructions.rs calls each kernel once, on one thread: the same numbers
on every machine, whatever else it does. So this sees what no timing in CI can: a loop that is no longer
vectorised, a bounds check that came back. It is done at the levels that valgrind knows, scalar and avx2.

Stored counts are in instructions.json. More than 10 % above one of them is an error, and more than 10 % below
it is named, so that it can be stored. Another compiler than the one that they were stored with makes other
code: then only a quarter more is an error, which a lost vectorisation mostly is in some kernel. memcpy and
malloc are those of the system's C library, so a kernel that does little else may differ between systems.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
STORED = Path(__file__).with_suffix(".json")
LEVELS = ("scalar", "avx2")
SAME_COMPILER, OTHER_COMPILER = 0.10, 0.25

Counts = dict[str, dict[str, int]]
"""Level -> kernel -> instructions."""


def lacking() -> str | None:
    """Why nothing can be counted here."""
    if platform.machine() not in ("x86_64", "AMD64"):
        return f"counts are stored for x86-64, and this is {platform.machine()}"
    missing = [name for name in ("valgrind", "cargo") if shutil.which(name) is None]
    return f"{' and '.join(missing)} not installed" if missing else None


def compiler() -> str:
    return subprocess.run(["rustc", "--version"], capture_output=True, text=True, check=True).stdout.strip()


def built() -> Path:
    """The program, compiled as the core is, but without Python."""
    profile = ["--profile", "instructions", "--no-default-features", "--features", "instructions"]
    subprocess.run(
        ["cargo", "build", "--quiet", "--locked", *profile, "--example", "instructions"], cwd=ROOT, check=True
    )
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    return target / "instructions" / "examples" / "instructions"


def counted(program: Path, levels: Sequence[str] = LEVELS) -> Counts:
    """What each kernel takes at each level that the machine has."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        running = {}
        for level in levels:
            command = ["valgrind", "--quiet", "--tool=callgrind", "--instr-atstart=no"]
            running[level] = subprocess.Popen(
                [*command, f"--callgrind-out-file={folder / level}", program],
                env={**os.environ, "NEARDUP_SIMD": level},
                stdout=subprocess.PIPE,
                text=True,
            )
        counts = {}
        for level, process in running.items():
            said, _ = process.communicate()
            if process.returncode:
                raise SystemExit(f"the program ended with {process.returncode} at level {level}")
            if said.split() == ["level", level]:
                counts[level] = dict(read(path.read_text()) for path in parts(folder, level))
            else:
                print(f"{level} is left out: the best here is {said.strip()}")
        return counts


def parts(folder: Path, level: str) -> list[Path]:
    """What callgrind wrote of a level, in the order of the calls."""
    found = [path for path in folder.glob(f"{level}.*") if path.suffix[1:].isdigit()]
    return sorted(found, key=lambda path: int(path.suffix[1:]))


def read(text: str) -> tuple[str, int]:
    """A kernel and its instructions, as callgrind writes them."""
    name = re.search(r"^desc: Trigger: Client Request: (.*)$", text, re.MULTILINE)
    total = re.search(r"^totals: (\d+)", text, re.MULTILINE)
    if not name or not total:
        raise SystemExit(f"callgrind wrote something else: {text[:300]}")
    return name[1], int(total[1])


def told(
    counts: Mapping[str, Mapping[str, int]], stored: Mapping[str, Mapping[str, int]], within: float
) -> Iterator[tuple[bool, str]]:
    """What is to be said of *counts*, and whether it is an error."""
    for level, own in counts.items():
        before = stored.get(level, {})
        for name in sorted(own.keys() | before.keys()):
            now, then = own.get(name), before.get(name)
            if now is None or then is None:
                yield (
                    True,
                    f"{level:6}  {name}: {'not stored' if then is None else 'no longer there'}; --store",
                )
            elif now > then * (1 + within):
                yield True, f"{level:6}  {name}: {now:,} instructions, {now / then - 1:.0%} above {then:,}"
            elif now < then * (1 - within):
                yield (
                    False,
                    f"{level:6}  {name}: {now:,} instructions, {1 - now / then:.0%} below {then:,}; --store",
                )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--store", action="store_true", help="store what is counted")
    chosen = parser.parse_args(arguments)
    if why := lacking():
        print(f"instructions are not counted: {why}")
        return 0
    counts, own = counted(built()), compiler()
    if chosen.store:
        STORED.write_text(json.dumps({"compiler": own, "counts": counts}, indent=1) + "\n")
        print(f"written to {STORED.relative_to(ROOT)}")
        return 0
    known: dict[str, Any] = json.loads(STORED.read_text())
    within = SAME_COMPILER if known["compiler"] == own else OTHER_COMPILER
    if within != SAME_COMPILER:
        print(f"compiled by {own}, stored with {known['compiler']}: up to {within:.0%} more is no error")
    said = list(told(counts, known["counts"], within))
    for _, line in said:
        print(line)
    worse = any(is_error for is_error, _ in said)
    if not worse:
        count = sum(map(len, counts.values()))
        print(f"{count} counts of instructions, none more than {within:.0%} above what is stored")
    return int(worse)


if __name__ == "__main__":
    sys.exit(main())
