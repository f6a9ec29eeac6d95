"""How long deduplication takes, from a JSON Lines file to files on disk, beside tools of the same kind.

    python benchmarks/corpus.py /tmp/bench.jsonl --documents 100000
    python benchmarks/dedupe.py /tmp/bench.jsonl --peers /tmp/bench-venv/bin/python --repeat 3
    python benchmarks/dedupe.py /tmp/bench.jsonl --growth 100000 1000000 --cut 300 --repeat 1

Every engine runs in a process of its own, reads the same file and writes what it found; the engines
take turns, so that a noisy moment hits all of them. Prints the medians as a markdown table. With
--growth, neardup alone runs on the first 10,000, 100,000, ... documents, and the curve is drawn; with
--cut, on pieces of the documents.
"""

from __future__ import annotations

import argparse
import compileall
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

PEER = Path(__file__).parent / "engines" / "minhash_peer.py"
ROOT = Path(__file__).parent.parent
SUBSET = 5_000  # documents for an engine that would take too long; its time is scaled, as it grows in line


@dataclass(frozen=True)
class Run:
    """One run of one engine."""

    seconds: float
    cpu: float
    peak: float
    """Largest resident memory, in MB."""
    pairs: set[frozenset[str]]
    verified: int
    documents: int


@dataclass(frozen=True)
class Engine:
    name: str
    command: Callable[[Path, Path], list[str]]
    read: Callable[[Path], tuple[set[frozenset[str]], int]]
    limit: int | None = None


def timed(command: Sequence[str]) -> tuple[float, float, float]:
    """Wall and processor seconds, and the peak of memory in MB, of a child process."""
    start = time.perf_counter()
    with tempfile.TemporaryFile() as talk:
        child = subprocess.Popen(
            command, stdout=talk, stderr=talk, env={**os.environ, "PYTHONPATH": str(ROOT)}
        )
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.perf_counter() - start
        if child.returncode:
            talk.seek(0)
            said = talk.read().decode(errors="replace")[-800:]
            raise SystemExit(f"{' '.join(command[:5])} ... failed with {child.returncode}: {said}")
    return seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def neardup(*options: str) -> Engine:
    def command(source: Path, out: Path) -> list[str]:
        fixed = ["--overwrite", "--no-guards", "--quiet"]
        return [sys.executable, "-m", "neardup", "dedupe", str(source), "-o", str(out), *fixed, *options]

    def read(out: Path) -> tuple[set[frozenset[str]], int]:
        import pyarrow.parquet as pq

        rows = pq.read_table(out / "annotations.parquet", columns=["id", "cluster"]).to_pylist()
        clusters: dict[str, list[str]] = {}
        for row in rows:
            clusters.setdefault(row["cluster"], []).append(row["id"])
        pairs = {
            frozenset((one, other))
            for ids in clusters.values()
            for at, one in enumerate(ids)
            for other in ids[:at]
        }
        # A pair may be accepted though each of the two has another keeper, which it is more like.
        accepted = pq.read_table(
            out / "evidence.parquet", columns=["keeper", "id"], filters=[("accepted", "=", True)]
        )
        pairs |= {frozenset(row.values()) for row in accepted.to_pylist()}
        counts = json.loads((out / "manifest.json").read_text())["counts"]
        return pairs, counts["measured_pairs"]

    return Engine(" ".join(["neardup", *options]), command, read)


def peer(python: str, name: str, label: str, limit: int | None = None) -> Engine:
    def command(source: Path, out: Path) -> list[str]:
        cut = ["--limit", str(limit)] if limit else []
        return [python, str(PEER), name, str(source), str(out), *cut]

    def read(out: Path) -> tuple[set[frozenset[str]], int]:
        with open(out, encoding="utf-8") as lines:
            return {frozenset(line.split()) for line in lines}, 0

    return Engine(label, command, read, limit)


def run(engine: Engine, source: Path, folder: Path, documents: int) -> Run:
    out = folder / "out"
    if out.is_dir():
        shutil.rmtree(out)
    out.unlink(missing_ok=True)
    seconds, cpu, peak = timed(engine.command(source, out))
    pairs, verified = engine.read(out)
    return Run(seconds, cpu, peak, pairs, verified, min(documents, engine.limit or documents))


def planted_pairs(path: Path) -> list[tuple[str, str, float]]:
    with open(f"{path}.pairs.tsv", encoding="utf-8") as lines:
        return [(one, other, float(share)) for one, other, share in (line.split("\t") for line in lines)]


def ids_of(path: Path, count: int) -> set[str]:
    with open(path, encoding="utf-8") as lines:
        return {json.loads(line)["id"] for line in islice(lines, count)}


def compare(engines: Sequence[Engine], source: Path, documents: int, repeat: int, folder: Path) -> list[str]:
    runs: dict[str, list[Run]] = {engine.name: [] for engine in engines}
    for turn in range(repeat):
        for engine in engines:
            done = run(engine, source, folder, documents)
            runs[engine.name].append(done)
            print(f"turn {turn + 1}: {engine.name}: {done.seconds:.1f} s", file=sys.stderr, flush=True)
    planted = planted_pairs(source)
    shares = sorted({share for *_, share in planted})
    head = ["engine", "wall s", "docs/s", "CPU s", "peak MB", "planted pairs found"]
    head += [f"{share:.0%} edits" for share in shares] + ["pairs verified"]
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for engine in engines:
        many = runs[engine.name]
        wall = statistics.median(one.seconds for one in many)
        cpu = statistics.median(one.cpu for one in many)
        count = many[0].documents
        scale = documents / count
        here = ids_of(source, count)
        known = [row for row in planted if row[0] in here and row[1] in here]

        def found(rows: Iterable[tuple[str, str, float]], pairs: set[frozenset[str]] = many[0].pairs) -> str:
            hits = [frozenset(row[:2]) in pairs for row in rows]
            return f"{sum(hits) / len(hits):.3f}" if hits else ""

        cells = [engine.name + (f" ({count:,} documents, scaled)" if scale != 1 else "")]
        cells += [f"{wall * scale:.1f}", f"{count / wall:,.0f}", f"{cpu * scale:.1f}"]
        cells += [f"{statistics.median(one.peak for one in many):,.0f}", found(known)]
        cells += [found(row for row in known if row[2] == share) for share in shares]
        cells.append(f"{many[0].verified:,}" if many[0].verified else "none")
        lines.append("| " + " | ".join(cells) + " |")
    return lines


# --- growth ----------------------------------------------------------------------------------------------


def growth(
    sources: Sequence[tuple[int, Path]], repeat: int, folder: Path
) -> tuple[list[str], list[tuple[int, float]]]:
    engine = neardup()
    lines = [
        "| documents | wall s | CPU s | docs/s | peak MB | exponent, wall | exponent, CPU |",
        "|---|---|---|---|---|---|---|",
    ]
    points: list[tuple[int, float, float]] = []
    # In turn, because what is asked for is a ratio. What was found is not read: a child's peak of memory is
    # at least what its parent has when it begins.
    turns = [[timed(engine.command(source, folder / "out")) for _, source in sources] for _ in range(repeat)]
    for (count, _), many in zip(sources, zip(*turns, strict=True), strict=True):
        wall, cpu, peak = (statistics.median(row) for row in zip(*many, strict=True))
        print(count, *(f"{seconds:.1f}" for seconds, _, _ in many), file=sys.stderr, flush=True)
        exponents = ["", ""]
        if points:
            before, *seconds = points[-1]
            pairs = zip((wall, cpu), seconds, strict=True)
            exponents = [f"{math.log(now / then) / math.log(count / before):.2f}" for now, then in pairs]
        points.append((count, wall, cpu))
        cells = [
            f"{count:,}",
            f"{wall:.1f}",
            f"{cpu:.1f}",
            f"{count / wall:,.0f}",
            f"{peak:,.0f}",
            *exponents,
        ]
        lines.append("| " + " | ".join(cells) + " |")
        print(lines[-1], file=sys.stderr, flush=True)
    return lines, [(count, wall) for count, wall, _ in points]


def draw(points: Sequence[tuple[int, float]]) -> str:
    """Time against documents on two logarithmic axes, with the line of exponent 1.3 beside it."""
    width, height, left, top, bottom = 560, 320, 60, 20, 46
    low, high = math.log10(points[0][0]), math.log10(points[-1][0])
    floor = math.floor(math.log10(min(seconds for _, seconds in points)))
    limit = [seconds0 * (count / points[0][0]) ** 1.3 for count, _ in points for seconds0 in [points[0][1]]]
    ceiling = math.ceil(math.log10(max([*limit, *(seconds for _, seconds in points)])))

    def place(count: float, seconds: float) -> tuple[float, float]:
        x = left + (math.log10(count) - low) / ((high - low) or 1) * (width - left - 30)
        y = top + (ceiling - math.log10(seconds)) / (ceiling - floor) * (height - top - bottom)
        return x, y

    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
    ]
    for power in range(floor, ceiling + 1):
        _, y = place(points[0][0], 10**power)
        out.append(f'<line x1="{left}" y1="{y:.1f}" x2="{width - 30}" y2="{y:.1f}" stroke="#ddd"/>')
        out.append(f'<text x="{left - 8}" y="{y + 4:.1f}" text-anchor="end">{10.0**power:g} s</text>')
    for count, seconds in points:
        x, y = place(count, seconds)
        out.append(f'<text x="{x:.1f}" y="{height - 26}" text-anchor="middle">{count:,}</text>')
        out.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="#1f77b4"/>')
        out.append(f'<text x="{x - 8:.1f}" y="{y - 8:.1f}" text-anchor="end">{seconds:.1f} s</text>')
    for values, style in (
        ([seconds for _, seconds in points], 'stroke="#1f77b4"'),
        (limit, 'stroke="#999" stroke-dasharray="5 3"'),
    ):
        line = " ".join(
            "{:.1f},{:.1f}".format(*place(count, value))
            for (count, _), value in zip(points, values, strict=True)
        )
        out.append(f'<polyline points="{line}" fill="none" stroke-width="2" {style}/>')
    caption = "documents; solid: neardup dedupe, dashed: growth with exponent 1.3"
    out.append(f'<text x="{left}" y="{height - 8}">{caption}</text>')
    return "\n".join([*out, "</svg>"]) + "\n"


def cut(source: Path, count: int, target: Path, size: int | None) -> Path:
    """The first *count* documents, or pieces of documents of about *size* characters."""
    with open(source, "rb") as lines, open(target, "wb") as out:
        out.writelines(islice(lines if size is None else pieces(lines, size), count))
    return target


def pieces(lines: Iterable[bytes], size: int) -> Iterator[bytes]:
    for line in lines:
        row = json.loads(line)
        words: list[str] = []
        length = number = 0
        for word in row["text"].split():
            words.append(word)
            length += len(word) + 1
            if length >= size:
                yield json.dumps({"id": f"{row['id']}-{number}", "text": " ".join(words)}).encode() + b"\n"
                words, length, number = [], 0, number + 1


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("corpus", type=Path, help="what benchmarks/corpus.py made")
    parser.add_argument("--peers", help="Python of an environment with requirements/bench.txt")
    parser.add_argument("--engine", action="append", help="only engines whose name holds this")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument(
        "--growth", type=int, nargs="*", metavar="N", help="neardup alone on so many documents"
    )
    parser.add_argument("--cut", type=int, metavar="SIZE", help="grow in pieces of so many characters")
    parser.add_argument("--svg", type=Path, help="draw the growth there")
    parser.add_argument("--work", type=Path, help="folder for what is written")
    chosen = parser.parse_args(arguments)
    compileall.compile_dir(ROOT / "neardup", quiet=2)  # as an installed package is
    with open(chosen.corpus, "rb") as lines:
        documents = sum(1 for _ in lines)
    with tempfile.TemporaryDirectory(prefix="neardup-bench-", dir=chosen.work) as name:
        folder = Path(name)
        if chosen.growth is not None:
            counts = chosen.growth or [10_000, documents]
            sources = [
                (
                    count,
                    chosen.corpus
                    if count >= documents and chosen.cut is None
                    else cut(chosen.corpus, count, folder / f"{count}.jsonl", chosen.cut),
                )
                for count in counts
            ]
            table, points = growth(sources, chosen.repeat, folder)
            if chosen.svg:
                chosen.svg.write_text(draw(points))
        else:
            engines: list[Any] = [neardup(), neardup("--annotate-only")]
            if chosen.peers:
                engines += [
                    peer(chosen.peers, "gaoya", "gaoya MinHash, 3-word shingles"),
                    peer(chosen.peers, "rensa", "rensa RMinHash + LSH, words"),
                    peer(chosen.peers, "datasketch", "datasketch MinHash LSH, words", SUBSET),
                ]
            if chosen.engine:
                engines = [one for one in engines if any(part in one.name for part in chosen.engine)]
            table = compare(engines, chosen.corpus, documents, chosen.repeat, folder)
    print("\n".join(table))
    return 0


if __name__ == "__main__":
    sys.exit(main())
