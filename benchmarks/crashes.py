"""Kill collections, or cut their power, at random writes and syncs; compare what is left with what was said.

    python benchmarks/crashes.py --kills 2000 --cuts 500

A collection is made, used by four threads of one process (documents, verdicts, banks, refits, rebuilds,
backups and their restoring), crashes, is opened again, which may crash as well, and is checked; after some
crashes the next one begins.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent.parent))

import results

from tests.crashing import Crasher

# Crashes of one collection.
ROUNDS = 12


def main() -> int:
    """Print what was lost, and what was done in all; 1 if anything was."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--cuts", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", help="where to do it; a folder in memory is faster")
    parser.add_argument("--verbose", action="store_true", help="count on the way")
    results.add_out(parser)
    chosen = parser.parse_args()
    rows, wrong = [], 0
    for work, cuts, wanted in (("killed", False, chosen.kills), ("power cut", True, chosen.cuts)):
        start = time.monotonic()
        with tempfile.TemporaryDirectory(dir=chosen.folder) as name:
            folder, beside = Path(name, "folder"), Path(name, "beside")
            folder.mkdir()
            beside.mkdir()
            with Crasher(folder, beside, seed=chosen.seed) as crasher:
                tally, told = crasher.tally, 0
                while (tally.cuts if cuts else tally.kills) < wanted:
                    crasher.life(ROUNDS, cuts=cuts)
                    for fault in tally.faults[told:]:
                        print(f"seed {chosen.seed}, {work}: {fault}", flush=True)
                    told = len(tally.faults)
                    if chosen.verbose:
                        print(work, tally.rounds, tally.kills, tally.cuts, told, flush=True)
        seconds = time.monotonic() - start
        print(
            f"{tally.kills} kills, {tally.cuts} power cuts of which {tally.undone} took something back, in "
            f"{tally.rounds} rounds: {tally.acknowledged} calls acknowledged, {tally.unfinished} more had "
            f"happened, {len(tally.faults)} faults; {seconds:.0f} s",
            flush=True,
        )
        figures = {"kills": tally.kills, "cuts": tally.cuts, "undone": tally.undone, "wall": seconds}
        figures |= {"acknowledged": tally.acknowledged, "unfinished": tally.unfinished}
        right = tally.rounds - len(tally.faults)
        rows.append(
            {"work": f"collections, {work}", "engine": "neardup", **figures, "found": right,
             "expected": tally.rounds}
        )  # fmt: skip
        wrong += len(tally.faults)
    results.write(rows, chosen.out)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
