# ruff: noqa: B023 - every lambda is called before its loop goes on
"""The Hamming engine against its peers: one run, counts compared, medians of wall and CPU seconds.

    python benchmarks/hamming.py [--data DIR] [--simhash-py PYTHON] [--out results.json] [PART...]

Parts: bounds join10k join1m join10m join100m search1m search10m groups floods real growth.
Peers that are not installed are left out and named. On a shared machine the CPU seconds are the
steadier figure: a peer on one thread and ours on two are compared fairly by them.
PYTHON is the one of an environment that `benchmarks/engines/simhash_py.py build` made.
DIR holds `*.jsonl.gz` files with a `text` field; without it, installed documentation is read.
"""

from __future__ import annotations

import argparse
import glob
import gzip
import json
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import neardup as nd
from neardup.pairs import Pairs

RADIUS = 3
RESULTS: list[dict[str, Any]] = []


def cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def measure(
    work: str, engine: str, call: Callable[[], Any], count: Callable[[Any], int] = len, repeat: int = 5
) -> Any:
    return measure_in_turn({work: call}, engine, count, repeat)[work]


def measure_in_turn(
    calls: dict[str, Callable[[], Any]], engine: str, count: Callable[[Any], int], repeat: int
) -> dict[str, Any]:
    """The answers. A burst of other work on the machine meets all that is compared, not one of it."""
    walls: dict[str, list[float]] = {work: [] for work in calls}
    cpus: dict[str, list[float]] = {work: [] for work in calls}
    answers: dict[str, Any] = {}
    for _ in range(repeat):
        for work, call in calls.items():
            answers.pop(work, None)
            wall, used = time.perf_counter(), cpu()
            answers[work] = call()
            walls[work].append(time.perf_counter() - wall)
            cpus[work].append(cpu() - used)
    for work, answer in answers.items():
        row = {
            "work": work,
            "engine": engine,
            "wall": statistics.median(walls[work]),
            "cpu": statistics.median(cpus[work]),
            "runs": repeat,
            "count": count(answer),
            "load": os.getloadavg()[0],
        }
        RESULTS.append(row)
        print(
            f"{work:34} {engine:26} wall {row['wall']:9.4f} s  cpu {row['cpu']:9.4f} s  "
            f"count {row['count']}  load {row['load']:.1f}",
            flush=True,
        )
    return answers


def same(work: str) -> None:
    """Fail unless every engine of this work found the same number."""
    counts = {row["engine"]: row["count"] for row in RESULTS if row["work"] == work}
    if len(set(counts.values())) > 1:
        raise SystemExit(f"{work}: different counts {counts}")


def frozen(words: np.ndarray) -> np.ndarray:
    words.flags.writeable = False
    return words


def uniform(count: int, width: int = 1, seed: int = 1) -> np.ndarray:
    """Random fingerprints; one in twenty is another with up to three bits flipped."""
    rng = np.random.default_rng(seed)
    words = rng.integers(0, 2**64, (count, width), dtype=np.uint64)
    near = count // 20
    words[-near:] = words[rng.integers(0, count - near, near)]
    for _ in range(RADIUS):
        words[-near:, 0] ^= np.uint64(1) << rng.integers(0, 64, near, dtype=np.uint64)
    return frozen(words[:, 0].copy() if width == 1 else words)


def texts(data: str | None) -> Iterator[str]:
    if data:
        for path in sorted(glob.glob(os.path.join(data, "*.jsonl.gz"))):
            with gzip.open(path, "rt", encoding="utf-8", errors="replace") as lines:
                for line in lines:
                    row = json.loads(line)
                    yield row.get("text") or ""
    for pattern in (
        "/usr/share/doc/**/*",
        "/usr/share/man/man*/*.gz",
        os.path.dirname(os.__file__) + "/**/*.py",
    ):
        for path in sorted(glob.glob(pattern, recursive=True)):
            if not os.path.isfile(path) or os.path.islink(path):
                continue
            opened = gzip.open if path.endswith(".gz") else open
            try:
                with opened(path, "rb") as file:
                    yield file.read(1 << 20).decode("utf-8", "replace")
            except OSError:
                continue


def real(data: str | None, count: int) -> np.ndarray:
    """64-bit fingerprints of unweighted words of real text, cut in pieces of about 60 words."""
    pieces: list[str] = []
    for text in texts(data):
        words = re.findall(r"\w+", text.lower())
        pieces.extend(" ".join(words[at : at + 60]) for at in range(0, max(len(words) - 30, 0), 60))
        if len(pieces) >= count:
            break
    prints = nd.scheme("words:1", bits=64).fingerprints(pieces[:count])
    return frozen(prints.words[prints.valid][:, 0].copy())


def numpy_join(words: np.ndarray) -> int:
    """Sort per block, compare with the 1st, 2nd, ... next while the block agrees."""
    found = []
    for block in range(4):
        key = (words >> np.uint64(16 * block)).astype(np.uint16)
        order = np.argsort(key, kind="stable")
        key, value = key[order], words[order]
        at = np.arange(len(words))
        shift = 1
        while True:
            at = at[at + shift < len(words)]
            at = at[key[at] == key[at + shift]]
            if not len(at):
                break
            near = at[np.bitwise_count(value[at] ^ value[at + shift]) <= RADIUS]
            one, two = order[near], order[near + shift]
            found.append(np.minimum(one, two) * len(words) + np.maximum(one, two))
            shift += 1
    return len(np.unique(np.concatenate(found)))


def polars_join(words: np.ndarray, slices: int = 1) -> int:
    """In slices of the keys where the whole would not fit the memory."""
    import polars as pl

    table = pl.DataFrame({"id": np.arange(len(words), dtype=np.uint32), "fp": words})
    parts = []
    for block in range(4):
        keyed = table.with_columns(((pl.col("fp") // (1 << 16 * block)) % 65536).cast(pl.UInt16).alias("key"))
        for part in range(slices):
            own = keyed.filter(pl.col("key") % slices == part) if slices > 1 else keyed
            parts.append(
                own.lazy()
                .join(own.lazy(), on="key")
                .filter(pl.col("id") < pl.col("id_right"))
                .filter((pl.col("fp") ^ pl.col("fp_right")).bitwise_count_ones() <= RADIUS)
                .select("id", "id_right")
                .collect()
            )
    return len(pl.concat(parts).unique())


def duckdb_join(words: np.ndarray) -> int:
    import duckdb
    import pyarrow as pa

    table = pa.table({"id": np.arange(len(words)), "fp": words})
    base = duckdb.connect()
    base.execute("set threads to 2")
    base.register("given", table)
    base.execute(
        "create table t as select id, fp, "
        + ", ".join(f"(fp >> {16 * b}) & 65535 as k{b}" for b in range(4))
        + " from given"
    )
    near = f"a.id < b.id and bit_count(xor(a.fp, b.fp)) <= {RADIUS}"
    query = " union ".join(
        f"select a.id, b.id from t a join t b on a.k{block} = b.k{block} where {near}" for block in range(4)
    )
    return int(base.execute(f"select count(*) from ({query})").fetchone()[0])


def simhash_join(words: np.ndarray) -> int:
    from simhash import Simhash, SimhashIndex

    items = [(str(row), Simhash(value)) for row, value in enumerate(words.tolist())]
    index = SimhashIndex(items, k=RADIUS)
    return sum(
        sum(int(other) > row for other in index.get_near_dups(item)) for row, (_, item) in enumerate(items)
    )


def faiss_flat_join(words: np.ndarray) -> int:
    import faiss

    index = faiss.IndexBinaryFlat(64)
    codes = words.view(np.uint8).reshape(-1, 8)
    index.add(codes)
    limits, _, _ = index.range_search(codes, RADIUS + 1)
    return int((limits[-1] - len(words)) // 2)


def installed(name: str) -> bool:
    try:
        __import__(name)
    except ImportError:
        print(f"{name}: not installed, left out", flush=True)
        return False
    return True


def joins(
    label: str,
    words: np.ndarray,
    peers: list[tuple[str, str, Callable[[np.ndarray], int], int]],
    repeat: int = 5,
) -> None:
    work = f"join {label}"
    if len(words) <= 1_000_000:
        repeat = max(repeat, 25)  # short calls: what else the machine does weighs more
    measure(work, "neardup", lambda: nd.join(words, RADIUS, threads=2), repeat=repeat)
    for module, engine, call, times in peers:
        if installed(module):
            measure(work, engine, lambda call=call: call(words), count=int, repeat=times)
    same(work)


def simhash_py_join(label: str, words: np.ndarray, python: str) -> None:
    """simhash-py's own time, without its list from our array, in a process of its own."""
    with tempfile.NamedTemporaryFile(suffix=".npy") as file:
        np.save(file.name, words)
        engine = os.path.join(os.path.dirname(__file__), "engines", "simhash_py.py")
        done = subprocess.run(
            [python, engine, "find", file.name, str(RADIUS)], check=True, capture_output=True, text=True
        )
    found = json.loads(done.stdout)
    row = {
        "work": f"join {label}",
        "engine": f"simhash-py, {found['blocks']} blocks",
        "count": found["pairs"],
    }
    RESULTS.append(
        {**row, "wall": found["seconds"], "cpu": found["seconds"], "runs": 1, "load": os.getloadavg()[0]}
    )
    print(
        f"{row['work']:34} {row['engine']:26} wall {found['seconds']:9.4f} s  count {row['count']}",
        flush=True,
    )
    same(f"join {label}")


def search(label: str, count: int, queries: int, repeat: int = 3) -> None:
    words = uniform(count)
    rng = np.random.default_rng(5)
    asked = words[rng.integers(0, count, queries)].copy()
    for _ in range(RADIUS):
        asked[::2] ^= np.uint64(1) << rng.integers(0, 64, len(asked[::2]), dtype=np.uint64)
    asked[1::2] = rng.integers(0, 2**64, len(asked[1::2]), dtype=np.uint64)
    frozen(asked)
    ids = frozen(np.arange(count))
    build, work = f"index build {label}", f"index search {label}, {queries:,}"

    def built() -> nd.Index:
        index = nd.Index(64, RADIUS)
        index.add(ids, words, threads=2)
        return index

    index = measure(build, "neardup", built, repeat=9)
    RESULTS[-1]["bytes_per_fingerprint"] = index.nbytes / count
    measure(work, "neardup", lambda: index.search(asked, threads=2), repeat=repeat)
    codes, asked_codes = words.view(np.uint8).reshape(-1, 8), asked.view(np.uint8).reshape(-1, 8)
    if installed("faiss"):
        import faiss

        faiss.omp_set_num_threads(2)

        def multi_hash(hashes: int, bits: int, flips: int) -> Any:
            other = faiss.IndexBinaryMultiHash(64, hashes, bits)
            other.nflip = flips
            other.add(codes)
            return other

        settings = [(4, 16, 0)] if count > 2_000_000 else [(4, 16, 0), (3, 21, 1)]
        for hashes, bits, flips in settings:
            name = f"faiss MultiHash {hashes}x{bits} flips {flips}"
            other = measure(
                build, name, lambda: multi_hash(hashes, bits, flips), count=lambda made: made.ntotal, repeat=1
            )
            some = asked_codes[: max(queries // 10, 1000)]
            found = measure(
                f"{work} (faiss: a tenth)",
                name,
                lambda: other.range_search(some, RADIUS + 1),
                count=lambda got: int(got[0][-1]),
                repeat=1,
            )
            ours = index.search(frozen(asked[: len(some)].copy()))
            if len(ours) != int(found[0][-1]):
                raise SystemExit(f"{work}: {name} found {int(found[0][-1])}, neardup {len(ours)}")
            del other
    if installed("usearch") and count <= 1_000_000:
        from usearch.index import Index as Usearch

        other = Usearch(ndim=64, metric="hamming", dtype="b1")
        few = 20_000
        measure(
            f"index build {few:,} (usearch)",
            "usearch HNSW",
            lambda: other.add(np.arange(few), codes[:few], threads=2),
            repeat=1,
        )
        measure(
            f"search {few:,}, 10,000 (usearch)",
            "usearch HNSW",
            lambda: other.search(asked_codes[:10_000], 10, threads=2),
            repeat=1,
        )
    if installed("gaoya") and count <= 1_000_000:
        gaoya_search(count)


def gaoya_search(count: int) -> None:
    """gaoya takes texts only and makes its own fingerprints of them. What it needs to answer with one text in
    the index is taken off, so that only the search is left. As with faiss, it gets a tenth of the questions.
    Each side must find every text itself."""
    from gaoya.simhash import SimHashStringIndex

    rng = np.random.default_rng(4)
    words = ["".join(map(chr, rng.integers(97, 123, rng.integers(3, 9)))) for _ in range(50_000)]
    texts = [" ".join(words[at] for at in row) for row in rng.integers(0, len(words), (count, 12))]
    some = texts[: count // 10]

    def built(texts: list[str]) -> Any:
        index = SimHashStringIndex(hash_size=64, num_blocks=4, hamming_distance=RADIUS)
        for at, text in enumerate(texts):
            index.insert_document(at, text)
        return index

    def count_of(found: list[list[int]]) -> int:
        return sum(at in near for at, near in enumerate(found))

    work = f"search {count:,} texts, {len(some):,}"
    index, alone = built(texts), built(texts[:1])
    measure(work, "gaoya SimHashStringIndex", lambda: index.par_bulk_query(some), count_of, repeat=3)
    whole = RESULTS[-1]
    if whole["count"] != len(some):
        raise SystemExit(f"{work}: gaoya found {whole['count']}")
    measure(f"{work}, one in it", "gaoya", lambda: alone.par_bulk_query(some), lambda _: 0, repeat=3)
    apart = {key: whole[key] - RESULTS[-1][key] for key in ("wall", "cpu")}
    ours, prints = nd.Index(64, RADIUS), nd.scheme("text", bits=64).fingerprints(texts)
    ours.add(np.arange(count), prints, threads=2)
    work = f"search {count:,} texts, {count:,}"
    found = measure(work, "neardup, fingerprints", lambda: ours.search(prints, threads=2), repeat=5)
    if not np.array_equal(np.unique(found.query[found.query == found.id]), np.arange(count)):
        raise SystemExit(f"{work}: neardup missed a text")
    times = apart["wall"] * 10 / RESULTS[-1]["wall"]
    print(f"gaoya without its fingerprints {apart}, {times:.1f} x", flush=True)


def plans(words: np.ndarray, label: str) -> None:
    """The planner's choice against every plan forced by hand."""
    work = f"plans {label}"
    measure(
        work,
        "chosen: " + str(nd.plan(words, RADIUS)).split("\n")[1].strip()[:60],
        lambda: nd.join(words, RADIUS, threads=2),
        repeat=3,
    )
    for blocks in (1, 2, 3, 4):
        for extra in (1, 2, 3, 4):
            plan = f"blocks:{blocks},{extra}"
            measure(work, plan, lambda plan=plan: nd.join(words, RADIUS, threads=2, plan=plan), repeat=3)
    same(work)


def floods(count: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    random = rng.integers(0, 2**64, count, dtype=np.uint64)
    tenth = random.copy()
    tenth[: count // 10] = 7
    return {
        "all equal": np.full(count, 7, dtype=np.uint64),
        "10 % equal": tenth,
        "one shared block": random >> np.uint64(16),
        "within 1 of a centre": np.uint64(1) << rng.integers(0, 64, count, dtype=np.uint64),
    }


def flood(kind: str) -> None:
    """Growth where a bucket, or a ball, holds all: what is asked is the ratio of the sizes."""
    sizes = {f"{kind}, {count:,}": frozen(floods(count)[kind]) for count in (250_000, 1_000_000, 4_000_000)}

    def grouping(words: np.ndarray) -> Callable[[], Any]:
        return lambda: nd.groups(words, RADIUS, threads=2)

    def clustering(grouped: Any, count: int) -> Callable[[], Any]:
        pairs = Pairs(grouped.center, grouped.member, grouped.distance)
        return lambda: nd.components(pairs, count)

    found = measure_in_turn(
        {f"groups, {size}": grouping(words) for size, words in sizes.items()}, "neardup", len, 31
    )
    clusterings = {
        f"clustering, {size}": clustering(found[f"groups, {size}"], len(words))
        for size, words in sizes.items()
    }
    measure_in_turn(clusterings, "neardup", lambda labels: len(np.unique(labels)), 101)


def peak(call: Callable[[], Any]) -> tuple[Any, float]:
    """The answer, and by how many GB the resident memory grew while it was made."""
    page, before, top, done = os.sysconf("SC_PAGESIZE"), 0, 0, threading.Event()

    def resident() -> int:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * page

    def watch() -> None:
        nonlocal top
        while not done.wait(0.02):
            top = max(top, resident())

    before = top = resident()
    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        answer = call()
    finally:
        done.set()
        watcher.join()
    return answer, (top - before) / 1e9


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*")
    parser.add_argument("--data")
    parser.add_argument("--simhash-py", metavar="PYTHON")
    parser.add_argument("--out")
    asked = parser.parse_args()
    every = [
        "bounds",
        "join10k",
        "join1m",
        "join10m",
        "join100m",
        "search1m",
        "search10m",
        "groups",
        "floods",
        "real",
        "growth",
    ]
    for part in asked.parts or every:
        if part == "bounds":
            words = uniform(100_000, 2)
            for threads in (1, 2):
                row = measure(
                    f"brute 128 bit, {threads} threads",
                    "neardup",
                    lambda: nd.join(words, 3, plan="brute", threads=threads),
                    repeat=3,
                )
                compares = len(words) * (len(words) - 1) / 2 * 2
                RESULTS[-1]["g_compares_per_second"] = compares / RESULTS[-1]["wall"] / 1e9
                RESULTS[-1]["g_compares_per_cpu_second"] = compares / RESULTS[-1]["cpu"] / 1e9
                print(
                    {key: round(value, 1) for key, value in RESULTS[-1].items() if key.startswith("g_")},
                    len(row),
                    flush=True,
                )
            source = np.zeros(1 << 27, dtype=np.uint64)
            target = np.empty_like(source)
            measure(
                "copy 1 GiB, 1 thread",
                "numpy",
                lambda: np.copyto(target, source),
                count=lambda _: 0,
                repeat=3,
            )
        elif part == "growth":
            sizes = [uniform(10**exponent) for exponent in range(4, 9)]
            calls = {
                f"growth {len(words):,}": lambda words=words: nd.join(words, RADIUS, threads=2)
                for words in sizes
            }
            measure_in_turn(calls, "neardup", len, 5)
            del sizes, calls
        elif part == "join10k":
            joins(
                "10 k",
                uniform(10_000),
                [
                    ("numpy", "numpy blocks", numpy_join, 3),
                    ("simhash", "simhash 1e0ng", simhash_join, 1),
                    ("faiss", "faiss BinaryFlat", faiss_flat_join, 3),
                ],
            )
        elif part == "join1m":
            joins(
                "1 M",
                uniform(1_000_000),
                [
                    ("numpy", "numpy blocks", numpy_join, 3),
                    ("polars", "polars blocks", polars_join, 1),
                    ("duckdb", "duckdb blocks", duckdb_join, 1),
                ],
            )
            if asked.simhash_py:
                simhash_py_join("1 M", uniform(1_000_000), asked.simhash_py)
        elif part == "join10m":
            joins(
                "10 M",
                uniform(10_000_000),
                [
                    ("numpy", "numpy blocks", numpy_join, 1),
                    ("polars", "polars blocks, 64 slices", lambda words: polars_join(words, 64), 1),
                ],
                repeat=3,
            )
        elif part == "join100m":
            words = uniform(100_000_000)
            nd.join(words[:1_000_000], RADIUS)
            _, grown = peak(lambda: nd.join(words, RADIUS, threads=2))
            print(f"grew by {grown:.2f} GB beside the input of {words.nbytes / 1e9:.1f} GB", flush=True)
            less = uniform(10_000_000)
            calls = {
                "join 10 M, in turn": lambda: nd.join(less, RADIUS, threads=2),
                "join 100 M": lambda: nd.join(words, RADIUS, threads=2),
            }
            measure_in_turn(calls, "neardup", len, 5)
            RESULTS[-1]["grown_gb"] = grown
            del words, less, calls
        elif part == "search1m":
            search("1 M", 1_000_000, 1_000_000)
        elif part == "search10m":
            search("10 M", 10_000_000, 1_000_000)
        elif part == "groups":
            words = uniform(1_000_000)
            measure("groups 1 M", "join, for scale", lambda: nd.join(words, RADIUS, threads=2))
            measure("groups 1 M ", "neardup", lambda: nd.groups(words, RADIUS, threads=2))
        elif part == "floods":
            for kind in floods(10):
                flood(kind)
        elif part == "real":
            words = real(asked.data, 200_000)
            plans(words, f"real, {len(words):,} documents")
            joins(f"real, {len(words):,}", words, [("duckdb", "duckdb blocks", duckdb_join, 1)], repeat=3)
        else:
            raise SystemExit(f"unknown part {part!r}; known: {', '.join(every)}")
        if asked.out:
            with open(asked.out, "w") as file:
                json.dump(RESULTS, file, indent=1)


if __name__ == "__main__":
    sys.exit(main())
