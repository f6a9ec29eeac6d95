"""Texts to fingerprints: neardup and its peers on the same documents in one run.

    pip install -r requirements/bench.txt
    python benchmarks/fingerprint.py [--data DIR] [--rounds 5] [--megabytes 96]

--data is a folder of .jsonl.gz files with `text` and `lang`; documents are cut from them. Without it they
are cut from the documentation on this machine, and rows in other languages are left out. What differs
from the plain twin, or disagrees with a peer on which documents are near, stops the run.

A round runs every engine once, one after the other, so that a noisy minute falls on all of them. Shown
are medians over the rounds: MB/s of wall-clock time, their ratio, and the ratio of CPU seconds per byte,
which other processes on the machine disturb least (and in which a second thread counts twice). Slow peers
get fewer documents.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import re
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from neardup import _native, naive
from neardup.schemes import Scheme, scheme

DOCS = ("/usr/share/doc", "/usr/share/perl", "/usr/lib/python3")
COMPAT = Scheme(
    "simhash", normalize="word-chars", hash="md5", digest_slice="last", bit_order="big", empty="feature"
)


@dataclass
class Work:
    """One engine on one set of documents."""

    name: str
    documents: list[str]
    run: Callable[[], object]
    wall: list[float]
    cpu: list[float]

    @property
    def bytes(self) -> int:
        return sum(len(text.encode()) for text in self.documents)

    @property
    def rate(self) -> float:
        return self.bytes / statistics.median(self.wall) / 1e6

    @property
    def cost(self) -> float:
        """CPU seconds per byte."""
        return statistics.median(self.cpu) / self.bytes


def raw_texts(folder: Path | None, languages: set[str]) -> Iterator[str]:
    if folder is None:
        for root in (*DOCS, os.path.dirname(os.__file__)):
            for path in sorted(Path(root).rglob("*")):
                if path.suffix in (".txt", ".rst", ".md", ".py", ".pod") and path.is_file():
                    yield path.read_text(encoding="utf-8", errors="ignore")
        return
    for path in sorted(folder.glob("*.jsonl.gz")):
        if languages != {"en"} and "multi" not in path.name:
            continue
        if languages == {"en"} and not re.match("revisions|web", path.name):
            continue
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for line in lines:
                row = json.loads(line)
                if languages == {"en"} or row.get("lang") in languages:
                    yield row["text"]


def cut(texts: Iterable[str], size: int, total: int) -> list[str]:
    """Documents of about *size* bytes, *total* bytes of them, each once and then all again."""
    once: list[str] = []
    taken = 0
    for text in texts:
        data = text.encode()
        for begin in range(0, len(data) - size * 4 // 5, size):
            once.append(data[begin : begin + size].decode(errors="ignore"))
            taken += size
        if taken >= total:
            break
    return once * (total // max(taken, 1) + 1) if once else []


def timed(works: list[Work], rounds: int) -> None:
    for _ in range(rounds):
        for work in works:
            wall, cpu = time.perf_counter(), time.process_time()
            work.run()
            work.wall.append(time.perf_counter() - wall)
            work.cpu.append(time.process_time() - cpu)


def ours(row: Scheme, documents: list[str], threads: int, *, arrow: bool = True) -> Work:
    given: Any = pa.array(documents) if arrow else documents
    name = f"neardup {row.name}, {'Arrow' if arrow else 'list[str]'}, {threads} thread{'s'[: threads - 1]}"
    return Work(name, documents, lambda: row.fingerprints(given, threads=threads), [], [])


def gaoya_index(analyzer: str, n: int) -> Any:
    from gaoya.simhash import SimHashStringIndex

    return SimHashStringIndex(64, 6, 5, analyzer, True, (n, n)).index


def gaoya_work(documents: list[str], analyzer: str, n: int) -> Work:
    """Its fingerprints of many documents, on all cores."""
    index = gaoya_index(analyzer, n)
    return Work(
        f"gaoya {analyzer} {n}-grams", documents, lambda: index.par_bulk_doc2signatures(documents), [], []
    )


def shingles(text: str) -> list[str]:
    words = text.lower().split()
    return [" ".join(words[at : at + 3]) for at in range(len(words) - 2)]


def rensa_work(documents: list[str], *, ready: bool) -> Work:
    from rensa import RMinHash

    lists = [shingles(text) for text in documents] if ready else None

    def run() -> None:
        for tokens in lists if lists is not None else map(shingles, documents):
            sketch = RMinHash(num_perm=128, seed=42)
            sketch.update(tokens)
            sketch.digest()

    return Work(f"rensa RMinHash, {'lists made before' if ready else 'from texts'}", documents, run, [], [])


def simhash_work(documents: list[str]) -> Work:
    from simhash import Simhash

    return Work("simhash 2.1.2", documents, lambda: [Simhash(text).value for text in documents], [], [])


def check_twin(documents: list[str], row: Scheme) -> None:
    """A sample equals the plain twin at every level."""
    level = _native.simd_level()
    sample = random.Random(1).sample(documents, min(20, len(documents)))
    expected = [
        naive.fingerprint(text, features=row.features, weights=row.weights, bits=row.bits) for text in sample
    ]
    for wanted in ("scalar", "avx2", "avx512"):
        _native.set_simd(wanted)
        found = list(row.fingerprints(sample))
        if found != expected:
            sys.exit(f"{row.name} at {wanted}: fingerprints differ from the plain twin")
    _native.set_simd(level)


def check_gaoya(documents: list[str]) -> str:
    """Mean distances to an edited copy and to another document; stops where the copy is not nearer."""
    chance = random.Random(2)
    row, index = scheme("chars:4"), gaoya_index("char", 4)
    engines: dict[str, Callable[[str], int]] = {
        "neardup": lambda text: row.fingerprint(text) or 0,
        "gaoya": index.doc2signature,
    }
    means = {}
    for name, engine in engines.items():
        copies, others = [], []
        for text, other in zip(documents[:300:2], documents[1:300:2], strict=False):
            words = text.split()
            edited = " ".join(chance.choice(words) if chance.random() < 0.05 else word for word in words)
            copies.append(bin(engine(text) ^ engine(edited)).count("1"))
            others.append(bin(engine(text) ^ engine(other)).count("1"))
        means[name] = (statistics.mean(copies), statistics.mean(others))
        if means[name][0] >= means[name][1]:
            sys.exit(f"to {name} an edited copy is no nearer than another document: {means[name]}")
    return ", ".join(f"{name} {copy:.1f} and {other:.1f}" for name, (copy, other) in means.items())


def check_simhash(documents: list[str]) -> None:
    from simhash import Simhash

    for text in documents[:50]:
        if Simhash(text).value != COMPAT.fingerprint(text):
            sys.exit("the values of simhash 2.1.2 and of its compatible scheme differ")


def row_of(title: str, one: Work, other: Work, aim: str) -> None:
    wall, cpu = one.rate / other.rate, other.cost / one.cost
    print(
        f"| {title} | {one.rate:,.0f} | {other.rate:,.1f} | {wall:,.1f} x | {cpu:,.1f} x | {aim} |",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--megabytes", type=float, default=96)
    asked = parser.parse_args()
    total = int(asked.megabytes * 1e6)
    english = cut(raw_texts(asked.data, {"en"}), 3000, total)
    short = cut(raw_texts(asked.data, {"en"}), 300, total)
    foreign = {lang: cut(raw_texts(asked.data, {lang}), 3000, total) for lang in ("ru", "zh") if asked.data}
    few, fewer, few_short = english[:800], english[:100], short[:8000]

    print(f"{_native.simd_level()}; {len(english)} documents of 3 kB; load {os.getloadavg()[0]:.1f}")
    for name in ("chars:4", "chars:3", "words:3", "text"):
        check_twin(english, scheme(name, weights="log") if name == "text" else scheme(name))
    for documents in foreign.values():
        check_twin(documents, scheme("chars:3"))
    print("equal to the plain twin at all levels")
    check_simhash(few)
    print("values equal those of simhash 2.1.2")
    print(f"mean distance to a copy with 5 % of its words changed, and to another: {check_gaoya(english)}\n")

    fitted = scheme("text").fit(english[:4000])
    chars, words = ours(scheme("chars:4"), english, 2), ours(scheme("words:3"), english, 2)
    chars_short = ours(scheme("chars:4"), short, 2)
    listed = ours(scheme("chars:4"), english, 2, arrow=False)
    single = ours(scheme("chars:4"), english, 1)
    three = ours(scheme("chars:3"), english, 2)
    text, text_single = ours(fitted, english, 2), ours(fitted, english, 1)
    compat = Work("compat", few, lambda: [COMPAT.fingerprint(item) for item in few], [], [])
    compat_many = ours(COMPAT, english, 2)
    gaoya, gaoya_short = gaoya_work(few, "char", 4), gaoya_work(few_short, "char", 4)
    gaoya_words = gaoya_work(few, "word", 3)
    rensa, rensa_ready = rensa_work(few, ready=False), rensa_work(few, ready=True)
    simhash = simhash_work(fewer)
    others = {lang: ours(scheme("chars:3"), documents, 2) for lang, documents in foreign.items()}
    works = [
        chars, gaoya, chars_short, gaoya_short, words, gaoya_words, listed, single, three, text, text_single,
        rensa, rensa_ready, simhash, compat, compat_many, *others.values(),
    ]  # fmt: skip
    timed(works, asked.rounds)

    print("| work | neardup, MB/s | other, MB/s | ratio | of CPU time | aim |")
    print("|---|---|---|---|---|---|")
    row_of("chars:4, 64 bit, 3 kB, against gaoya", chars, gaoya, "100 x")
    row_of("chars:4, 64 bit, 300 B, against gaoya", chars_short, gaoya_short, "60 x")
    row_of("chars:4, 64 bit, 3 kB, against simhash", chars, simhash, "1,000 x")
    row_of("words:3, 64 bit, against gaoya", words, gaoya_words, "15 x")
    for lang, work in others.items():
        row_of(f"chars:3, {lang}, against our English", work, three, "0.5 x")
    row_of("text, fitted, against rensa from texts", text, rensa, "8 x")
    row_of("text, fitted, against rensa with lists made before", text, rensa_ready, "")
    row_of("list[str] against Arrow", listed, chars, "0.6 x")
    row_of("simhash's values, one text a call, against simhash", compat, simhash, "20 x")
    row_of("simhash's values, Arrow, against simhash", compat_many, simhash, "")
    for title, double, alone in (("chars:4", chars, single), ("text", text, text_single)):
        gain = statistics.median(alone.wall) / statistics.median(double.wall)
        rates = f"{double.rate:,.0f} | {alone.rate:,.0f}"
        print(f"| second thread, {title} | {rates} | {gain:.2f} x | | 1.7 x |")
    print(f"\nload {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
