"""Ten million short documents on two cores: the time, and the memory at the peak, of one `neardup dedupe`.

    python benchmarks/ten_million.py [--documents 10000000] [--corpus FILE.jsonl] [--limit-gb 8]

The documents have about 300 characters. With --corpus they are pieces of the real texts of that file, as
far as it goes; the rest is made of words with the frequencies of words, and every tenth of these is a
near-duplicate of the one before. They are written as they are made, to a file that stays for the next time.
Ten million take about 4 GB there and as much for the results, so give --work a disk with room.

Prints a row of figures; exit 1 if the peak is above the limit. It takes too long for CI.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
import inputs
import results
from engines.dedupe import timed

SIZE = 300
WORDS = 45
VOCABULARY = 200_000
BATCH = 10_000


def made(seed: int = 1) -> Iterator[bytes]:
    """Lines of made documents, without end."""
    chance = np.random.default_rng(seed)
    letters = np.array(list("etaoinshrdlucmfwypvbgkjqxz"))
    lengths = chance.integers(3, 11, VOCABULARY)
    known = ["".join(chance.choice(letters, length)) for length in lengths.tolist()]
    share = np.cumsum(1 / (np.arange(VOCABULARY) + 10))
    count = 0
    while True:
        rows = np.searchsorted(share, chance.random((BATCH, WORDS)) * share[-1])
        rows[9::10] = rows[8::10]
        rows[9::10, WORDS // 2] = chance.integers(VOCABULARY, size=BATCH // 10)
        for row in rows.tolist():
            text = " ".join([known[at] for at in row])
            yield b'{"id": "made-%09d", "text": "%s"}\n' % (count, text.encode())
            count += 1


def real(path: Path | None) -> Iterator[bytes]:
    """Lines of pieces of the documents in a file."""
    if path is not None:
        with open(path, "rb") as lines:
            yield from inputs.pieces(lines, SIZE)


def written(work: Path, documents: int, corpus: Path | None) -> Path:
    """The input: made now, unless it is there."""
    path = work / f"{documents}{'-' + corpus.stem if corpus else ''}.jsonl"
    if not path.exists():
        begun = path.with_suffix(".begun")
        with open(begun, "wb") as out:
            out.writelines(islice(chain(real(corpus), made()), documents))
        begun.rename(path)
    return path


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--documents", type=int, default=10_000_000, metavar="N")
    parser.add_argument("--corpus", type=Path, metavar="FILE", help="JSON Lines with real texts")
    parser.add_argument("--work", type=Path, default=inputs.work, metavar="DIR", help="a folder with room")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--limit-gb", type=float, default=8.0, metavar="GB")
    results.add_out(parser)
    chosen = parser.parse_args(arguments)
    work = chosen.work / "ten-million"
    work.mkdir(parents=True, exist_ok=True)
    path, out = written(work, chosen.documents, chosen.corpus), work / "out"
    shutil.rmtree(out, ignore_errors=True)
    command = [sys.executable, "-m", "neardup", "dedupe", str(path), "-o", str(out)]
    figures = timed([*command, "--no-guards", "--quiet", "--threads", str(chosen.threads)])
    manifest = json.loads((out / "manifest.json").read_text())
    counts = manifest["counts"]
    row = {
        "work": f"dedupe {chosen.documents:,} short documents",
        "engine": f"neardup, {chosen.threads} threads",
        "items": counts["documents"],
        "input_gb": os.path.getsize(path) / 1e9,
        "removed": counts["removed"],
        "verified": counts["measured_pairs"],
        **figures,
    }
    print(
        f"{row['items']:,} documents, {row['input_gb']:.2f} GB: wall {figures['wall']:.0f} s, "
        f"CPU {figures['cpu']:.0f} s, peak {figures['peak_mb'] / 1000:.2f} GB; "
        f"{row['removed']:,} go, {row['verified']:,} pairs measured"
    )
    results.write([row], chosen.out)
    if figures["peak_mb"] / 1000 > chosen.limit_gb:
        print(f"the peak is above {chosen.limit_gb:g} GB", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
