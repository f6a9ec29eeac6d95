"""The originals and neardup on the same input in one run; a result that differs stops it.

    python benchmarks/compat.py

It makes benchmarks/data/peer, a virtual environment with simhash 2.1.2 and numpy < 2.

The original takes a minute for 10,000 texts and a loop minutes for 100,000 articles; where they get a part of
the input, the table says so and the time is for the whole: a multiple for texts, by the square for articles.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import resource
import subprocess
import sys
import time
import venv
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
DATA = ROOT / "benchmarks" / "data"
PEER = DATA / "peer"
TEXTS, TEXT_WORDS = 10_000, 470
ENTRIES, QUERIES = 1_000_000, 100_000
ARTICLES, LOOPED = 100_000, 10_000


def texts(count: int) -> list[str]:
    """Texts of about 3 kB."""
    chance = random.Random(1)
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = ["".join(chance.choices(letters, k=chance.randint(2, 9))) for _ in range(5000)]
    return [" ".join(chance.choices(words, k=TEXT_WORDS)) for _ in range(count)]


def near_values(count: int, seed: int) -> list[int]:
    """Half of them random, the others with one or two bits of such a one flipped."""
    chance = random.Random(seed)
    values = [chance.getrandbits(64) for _ in range(count // 2)]
    flips = (1 << chance.randrange(64) | 1 << chance.randrange(64) for _ in range(count - count // 2))
    return values + [value ^ flip for value, flip in zip(values, flips, strict=True)]


def text_values(count: int) -> list[int]:
    """Fingerprints of short texts, two and two of them near; their bits are far from random."""
    import numpy as np

    from neardup.compat.simhash import values

    chance = np.random.default_rng(6)
    words = ["".join(map(chr, chance.integers(97, 123, chance.integers(2, 10)))) for _ in range(20_000)]
    share = 1 / np.arange(1, len(words) + 1)
    many = []
    for row in chance.choice(len(words), size=(count // 2, 40), p=share / share.sum()):
        many.append(" ".join(words[at] for at in row))
        row[chance.integers(40)] = chance.integers(len(words))
        many.append(" ".join(words[at] for at in row))
    return values(many).tolist()


def memory() -> float:
    """Megabytes this process holds now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


# --- what both sides run: the same program but for the import ----------------------------------------------


def one_by_one(simhash: Any, count: int) -> dict[str, Any]:
    many = texts(count)
    simhash.Simhash(many[0])
    start = time.perf_counter()
    values = [simhash.Simhash(text).value for text in many]
    return {"seconds": time.perf_counter() - start, "result": values}


def index(simhash: Any, count: int, k: int = 2) -> dict[str, Any]:
    values = json.loads((DATA / "values.json").read_text())[:count]
    objects = [(str(at), simhash.Simhash(value)) for at, value in enumerate(values)]
    queries = [obj for _, obj in random.Random(3).sample(objects, QUERIES)]
    before = memory()
    found = simhash.SimhashIndex([], k=k)
    start = time.perf_counter()
    for name, obj in objects:
        found.add(name, obj)
    found.get_near_dups(queries[0])  # what was added late is paid for here
    added = time.perf_counter() - start
    held = memory() - before
    # A program that asks has just made its question; the stored objects lie scattered in memory.
    new = [simhash.Simhash(query.value) for query in queries]
    gc.collect()  # or one of the two loops pays for walking through the million objects of this program
    start = time.perf_counter()
    answers = [found.get_near_dups(query) for query in new]
    asked = time.perf_counter() - start
    result = [sorted(answer) for answer in answers]
    del answers
    gc.collect()
    start = time.perf_counter()
    answers = [found.get_near_dups(query) for query in queries]
    stored = time.perf_counter() - start
    if [sorted(answer) for answer in answers] != result:
        raise SystemExit("the same question got another answer")
    return {"add": added, "query": asked, "stored": stored, "megabytes": held, "result": result}


def index_of_3(simhash: Any, count: int) -> dict[str, Any]:
    return index(simhash, count, 3)


def worker(task: str, side: str, count: int) -> None:
    if side == "original":
        import simhash
    else:
        from neardup.compat import simhash
    print(json.dumps({"one": one_by_one, "index": index, "index3": index_of_3}[task](simhash, count)))


def run(python: Path | str, task: str, side: str, count: int) -> dict[str, Any]:
    command = [str(python), __file__, "--worker", task, "--side", side, "--count", str(count)]
    environment = {"PYTHONPATH": str(ROOT)} if side == "neardup" else {}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout)


# --- articles ----------------------------------------------------------------------------------------------


def articles(count: int) -> list[dict[str, str]]:
    chance = random.Random(4)
    days = [f"2024-{chance.randint(1, 12):02}-{chance.randint(1, 28):02}" for _ in range(count)]
    hashes = near_values(count, 5)
    return [
        {"id": f"a{at}", "simHash": f"{value:016x}", "publishedAt": day}
        for at, (value, day) in enumerate(zip(hashes, days, strict=True))
    ]


def loop(given: list[dict[str, str]], threshold: int = 3) -> list[list[str]]:
    """The original's algorithm as a straight Python loop."""
    order = sorted(given, key=lambda article: article["publishedAt"], reverse=True)
    values = [int(article["simHash"], 16) for article in order]
    taken = [False] * len(order)
    groups = []
    for center, value in enumerate(values):
        if taken[center]:
            continue
        members = [order[center]["id"]]
        for row in range(center + 1, len(order)):
            if not taken[row] and (value ^ values[row]).bit_count() <= threshold:
                taken[row] = True
                members.append(order[row]["id"])
        groups.append(members)
    return groups


def grouped(count: int, looped: int) -> tuple[float, float]:
    """Seconds of the loop (for *count*, from *looped*) and of neardup."""
    from neardup.compat.news import group_articles_by_similarity

    few = articles(looped)
    start = time.perf_counter()
    expected = loop(few)
    slow = (time.perf_counter() - start) * (count / looped) ** 2
    if [group.member_ids for group in group_articles_by_similarity(few)] != expected:
        raise SystemExit("groups differ")
    many = articles(count)
    start = time.perf_counter()
    group_articles_by_similarity(many)
    return slow, time.perf_counter() - start


def peer() -> Path:
    """The interpreter that has the original."""
    python = PEER / "bin" / "python"
    if not python.exists():
        venv.create(PEER, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "numpy<2", "simhash==2.1.2"], check=True)
    return python


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worker", choices=["one", "index", "index3"])
    parser.add_argument("--side", choices=["original", "neardup"], default="neardup")
    parser.add_argument("--count", type=int, default=0)
    parser.add_argument("--part", type=int, default=500, help="how many of the texts the original gets")
    options = parser.parse_args()
    if options.worker:
        worker(options.worker, options.side, options.count)
        return
    python = peer()
    print(f"{'':52} {'original':>12} {'neardup':>12} {'times':>8} {'wanted':>8}")

    def row(name: str, original: float, ours: float, wanted: float, unit: str = "s") -> None:
        print(f"{name:52} {original:10.2f} {unit} {ours:10.3f} {unit} {original / ours:8.1f} {wanted:8.0f}")

    old = run(python, "one", "original", options.part)
    new = run(sys.executable, "one", "neardup", TEXTS)
    if new["result"][: options.part] != old["result"]:
        raise SystemExit("values differ")
    slow = old["seconds"] * TEXTS / options.part
    row(f"{TEXTS:,} texts, one by one ({options.part} x {TEXTS // options.part})", slow, new["seconds"], 20)

    from neardup.compat.simhash import values

    many = texts(TEXTS)
    start = time.perf_counter()
    batch = values(many)
    row(f"{TEXTS:,} texts at once", slow, time.perf_counter() - start, 150)
    if batch.tolist() != new["result"]:
        raise SystemExit("values differ")

    def random_values(count: int) -> list[int]:
        return near_values(count, 2)

    kinds = (("texts", "index", text_values), ("random", "index", random_values))
    for kind, task, make in (*kinds, ("random, k = 3", "index3", random_values)):
        (DATA / "values.json").write_text(json.dumps(make(ENTRIES)))
        old = run(python, task, "original", ENTRIES)
        new = run(sys.executable, task, "neardup", ENTRIES)
        if new["result"] != old["result"]:
            raise SystemExit("near duplicates differ")
        row(f"SimhashIndex, {ENTRIES:,} ({kind}): add", old["add"], new["add"], 10)
        row(f"SimhashIndex, {QUERIES:,} questions ({kind})", old["query"], new["query"], 30)
        row(f"SimhashIndex, the stored objects asked ({kind})", old["stored"], new["stored"], 30)
        row(f"SimhashIndex, memory ({kind})", old["megabytes"], new["megabytes"], 5, "MB")

    slow, fast = grouped(ARTICLES, LOOPED)
    row(f"{ARTICLES:,} articles in groups ({LOOPED:,} looped)", slow, fast, 100)


if __name__ == "__main__":
    main()
