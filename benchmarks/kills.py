"""Kill a run at random steps, let it resume, and compare every byte with an uninterrupted run.

    python benchmarks/kills.py --kills 200

Half of the runs are killed once, half up to three times before they may end.
"""

from __future__ import annotations

import argparse
import random
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent.parent))

import results

from tests.corpus import files_of
from tests.killed import Killer
from tests.test_resume import arguments, make_inputs


def main() -> int:
    """Print how many runs ended with the same bytes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    results.add_out(parser)
    chosen = parser.parse_args()
    rng, start = random.Random(chosen.seed), time.monotonic()
    equal = half = runs = kills = 0
    with tempfile.TemporaryDirectory() as name, Killer() as killer:
        folder = make_inputs(Path(name))
        steps = killer.run(arguments(folder)).steps
        expected = files_of(folder / "out")
        while kills < chosen.kills:
            shutil.rmtree(folder / "out")
            for _ in range(rng.choice((1, 1, 1, 3))):
                done = killer.run(arguments(folder), step=rng.randint(1, steps))
                kills += done.code == -signal.SIGKILL
                found = files_of(folder / "out") if (folder / "out").exists() else {}
                half += any(data != expected.get(key) for key, data in found.items() if key[0] != ".")
            killer.run(arguments(folder))
            runs += 1
            equal += files_of(folder / "out") == expected
    seconds = time.monotonic() - start
    print(
        f"{kills} kills in {runs} runs over {steps} steps: {equal} of {runs} ended with the same bytes, "
        f"{half} half files were seen; {seconds:.0f} s"
    )
    figures = {"runs": runs, "kills": kills, "steps": steps, "half_files": half, "wall": seconds}
    results.write(
        [{"work": "killed runs", "engine": "neardup", **figures, "found": equal, "expected": runs}],
        chosen.out,
    )
    return int(equal < runs or half > 0)


if __name__ == "__main__":
    sys.exit(main())
