"""The main job on the example collection: which documents are near-duplicates, and of what."""

from __future__ import annotations

import time
from itertools import groupby
from pathlib import Path

import neardup as nd

CORPUS = Path(__file__).parent / "corpus"


def main() -> None:
    begin = time.perf_counter()
    result = nd.dedupe(sorted(map(str, CORPUS.glob("*.jsonl"))), keep="newest:date,longest")
    seconds = time.perf_counter() - begin

    rows = result.annotations.to_pylist()
    removed = sorted(
        (row for row in rows if not row["keep"]), key=lambda row: (row["duplicate_of"], row["id"])
    )
    for keeper, members in groupby(removed, key=lambda row: row["duplicate_of"]):
        print(keeper)
        for row in members:
            print(f"  {row['id']:<18} similarity {row['similarity']:.2f}, distance {row['distance']}")

    kept = len(rows) - len(removed)
    found = f"{kept} stay, {len(removed)} are near-duplicates of one that does"
    print(f"\n{len(rows)} documents in {seconds:.2f} s: {found}")


if __name__ == "__main__":
    main()
