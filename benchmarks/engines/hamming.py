"""Engines that find near fingerprints: neardup, and what people use instead."""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from workloads import Workload

import neardup as nd
from engines import Engine, Task
from neardup.pairs import Pairs

THREADS = 2
simhash_py: str | None = None
"""The Python of an environment that engines/simhash_py.py built."""


def integer(answer: Any) -> int:
    return int(answer)


def width_of(words: np.ndarray) -> int:
    """Words of a fingerprint."""
    return 1 if words.ndim == 1 else words.shape[1]


def as_codes(words: np.ndarray) -> np.ndarray:
    return words.view(np.uint8).reshape(-1, 8 * width_of(words))


# --- join ------------------------------------------------------------------------------------------------


def neardup_join(words: np.ndarray, work: Workload, threads: int = THREADS, plan: str | None = None) -> Task:
    return Task(lambda: nd.join(words, work.radius, threads=threads, plan=plan), len(words))


def neardup_brute(words: np.ndarray, work: Workload, threads: int = THREADS) -> Task:
    compares = len(words) * (len(words) - 1) // 2 * (work.bits // 64)
    return Task(lambda: nd.join(words, work.radius, plan="brute", threads=threads), compares)


def numpy_copy(source: np.ndarray, _: Workload) -> Task:
    target = np.empty_like(source)
    return Task(lambda: np.copyto(target, source), source.nbytes, lambda _: 0)


def numpy_join(words: np.ndarray, work: Workload) -> Task:
    """Sort per block, compare with the 1st, 2nd, ... next while the block agrees."""

    def join() -> int:
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
                near = at[np.bitwise_count(value[at] ^ value[at + shift]) <= work.radius]
                one, two = order[near], order[near + shift]
                found.append(np.minimum(one, two) * len(words) + np.maximum(one, two))
                shift += 1
        return len(np.unique(np.concatenate(found)))

    return Task(join, len(words), integer)


def polars_join(words: np.ndarray, work: Workload, slices: int = 1) -> Task:
    """In slices of the keys where the whole would not fit the memory."""
    import polars as pl

    def join() -> int:
        table = pl.DataFrame({"id": np.arange(len(words), dtype=np.uint32), "fp": words})
        parts = []
        for block in range(4):
            key = ((pl.col("fp") // (1 << 16 * block)) % 65536).cast(pl.UInt16).alias("key")
            keyed = table.with_columns(key)
            for part in range(slices):
                own = keyed.filter(pl.col("key") % slices == part) if slices > 1 else keyed
                near = (pl.col("fp") ^ pl.col("fp_right")).bitwise_count_ones() <= work.radius
                parts.append(
                    own.lazy()
                    .join(own.lazy(), on="key")
                    .filter(pl.col("id") < pl.col("id_right"))
                    .filter(near)
                    .select("id", "id_right")
                    .collect()
                )
        return len(pl.concat(parts).unique())

    return Task(join, len(words), integer)


def duckdb_join(words: np.ndarray, work: Workload) -> Task:
    import duckdb
    import pyarrow as pa

    def join() -> int:
        table = pa.table({"id": np.arange(len(words)), "fp": words})
        base = duckdb.connect()
        base.execute(f"set threads to {THREADS}")
        base.register("given", table)
        keys = ", ".join(f"(fp >> {16 * block}) & 65535 as k{block}" for block in range(4))
        base.execute(f"create table t as select id, fp, {keys} from given")
        near = f"a.id < b.id and bit_count(xor(a.fp, b.fp)) <= {work.radius}"
        query = " union ".join(
            f"select a.id, b.id from t a join t b on a.k{block} = b.k{block} where {near}"
            for block in range(4)
        )
        return int(base.execute(f"select count(*) from ({query})").fetchall()[0][0])

    return Task(join, len(words), integer)


def simhash_join(words: np.ndarray, work: Workload) -> Task:
    from simhash import Simhash, SimhashIndex

    def join() -> int:
        items = [(str(row), Simhash(value)) for row, value in enumerate(words.tolist())]
        index = SimhashIndex(items, k=work.radius)
        return sum(
            sum(int(other) > row for other in index.get_near_dups(item))
            for row, (_, item) in enumerate(items)
        )

    return Task(join, len(words), integer)


def faiss_flat_join(words: np.ndarray, work: Workload) -> Task:
    import faiss

    def join() -> int:
        index = faiss.IndexBinaryFlat(64)
        index.add(as_codes(words))
        limits, _, _ = index.range_search(as_codes(words), work.radius + 1)
        return int((limits[-1] - len(words)) // 2)

    return Task(join, len(words), integer)


def simhash_py_join(words: np.ndarray, work: Workload) -> Task:
    """simhash-py's own time, without making its list from our array, in a process of its own."""
    if simhash_py is None:
        raise ImportError("--simhash-py names no environment")
    engine = str(Path(__file__).with_name("simhash_py.py"))

    def join() -> dict[str, Any]:
        with tempfile.NamedTemporaryFile(suffix=".npy") as file:
            np.save(file.name, words)
            command = [str(simhash_py), engine, "find", file.name, str(work.radius)]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    return Task(
        join,
        len(words),
        lambda found: int(found["pairs"]),
        lambda found: {"wall": found["seconds"], "cpu": found["seconds"], "blocks": found["blocks"]},
    )


# --- groups ----------------------------------------------------------------------------------------------


def neardup_groups(words: np.ndarray, work: Workload) -> Task:
    return Task(lambda: nd.groups(words, work.radius, threads=THREADS), len(words))


def neardup_components(words: np.ndarray, work: Workload) -> Task:
    """Of the pairs of centre and member that the groups have."""
    groups = nd.groups(words, work.radius, threads=THREADS)
    pairs = Pairs(groups.center, groups.member, groups.distance)
    return Task(lambda: nd.components(pairs, len(words)), len(words), lambda labels: len(np.unique(labels)))


# --- index -----------------------------------------------------------------------------------------------


def _index(words: np.ndarray, radius: int) -> nd.Index:
    index = nd.Index(64 * width_of(words), radius)
    index.add(np.arange(len(words)), words, threads=THREADS)
    return index


def queries(words: np.ndarray, count: int, radius: int) -> np.ndarray:
    """Half of them fingerprints of the index with flipped bits, the others random."""
    rng, width = np.random.default_rng(5), width_of(words)
    asked = words[rng.integers(0, len(words), count)].reshape(count, width).copy()
    rows = np.arange(0, count, 2)
    for _ in range(radius):
        bits = rng.integers(0, 64 * width, len(rows), dtype=np.uint64)
        asked[rows, bits // np.uint64(64)] ^= np.uint64(1) << bits % np.uint64(64)
    asked[1::2] = rng.integers(0, 2**64, asked[1::2].shape, dtype=np.uint64)
    asked.flags.writeable = False
    return np.asarray(asked[:, 0] if width == 1 else asked)


def neardup_build(words: np.ndarray, work: Workload) -> Task:
    return Task(
        lambda: _index(words, work.radius),
        len(words),
        figures=lambda index: {"bytes_per_fingerprint": index.nbytes / len(words)},
    )


def neardup_search(
    words: np.ndarray, work: Workload, asked: int = 1_000_000, limit: int | None = None
) -> Task:
    index, given = _index(words, work.radius), queries(words, asked, work.radius)[:limit].copy()
    given.flags.writeable = False
    per_print = index.nbytes / len(words)
    return Task(
        lambda: index.search(given, threads=THREADS),
        len(given),
        figures=lambda _: {"bytes_per_fingerprint": per_print},
    )


def neardup_after_load(words: np.ndarray, work: Workload, change: str) -> Task:
    """The first change of an index that was loaded a moment ago."""
    folder = tempfile.TemporaryDirectory()
    path = Path(folder.name) / "index"
    index, names = nd.Index(64 * width_of(words), work.radius), np.arange(len(words))[::-1].copy()
    index.add(names, words, threads=THREADS)
    index.save(path)
    del index
    changes = {"remove": lambda one: one.remove([7]), "add_one": lambda one: one.add_one(-1, 5)}

    def first() -> tuple[nd.Index, float, float]:
        assert folder  # it goes with the last who needs it
        one = nd.Index.load(path)
        wall, cpu = time.perf_counter(), time.process_time()
        changes[change](one)
        return one, time.perf_counter() - wall, time.process_time() - cpu

    return Task(first, 1, lambda answer: len(answer[0]), lambda answer: {"wall": answer[1], "cpu": answer[2]})


def _multi_hash(words: np.ndarray, hashes: int, bits: int, flips: int) -> Any:
    import faiss

    faiss.omp_set_num_threads(THREADS)
    index = faiss.IndexBinaryMultiHash(64 * width_of(words), hashes, bits)
    index.nflip = flips
    index.add(as_codes(words))
    return index


def faiss_build(words: np.ndarray, _: Workload, hashes: int, bits: int, flips: int) -> Task:
    import faiss  # noqa: F401

    return Task(lambda: _multi_hash(words, hashes, bits, flips), len(words), lambda index: int(index.ntotal))


def faiss_search(
    words: np.ndarray, work: Workload, hashes: int, bits: int, flips: int, limit: int, asked: int = 1_000_000
) -> Task:
    index = _multi_hash(words, hashes, bits, flips)
    some = as_codes(queries(words, asked, work.radius)[:limit].copy())
    return Task(lambda: index.range_search(some, work.radius + 1), len(some), lambda found: int(found[0][-1]))


def faiss_flat_search(words: np.ndarray, work: Workload, limit: int, asked: int = 1_000_000) -> Task:
    import faiss

    faiss.omp_set_num_threads(THREADS)
    index = faiss.IndexBinaryFlat(64 * width_of(words))
    index.add(as_codes(words))
    some = as_codes(queries(words, asked, work.radius)[:limit].copy())
    return Task(lambda: index.range_search(some, work.radius + 1), len(some), lambda found: int(found[0][-1]))


def neardup_text_search(texts: list[str], work: Workload) -> Task:
    """Every text must find itself."""
    prints = nd.scheme("text", bits=64).fingerprints(texts)
    index = nd.Index(64, work.radius)
    index.add(np.arange(len(texts)), prints, threads=THREADS)

    def themselves(found: Any) -> int:
        return len(np.unique(found.query[found.query == found.id]))

    return Task(lambda: index.search(prints, threads=THREADS), len(texts), themselves)


def gaoya_text_search(texts: list[str], work: Workload, limit: int) -> Task:
    """gaoya takes only texts and makes its own fingerprints of them: what it needs to answer with one text in
    the index is taken off, so that only the search is left."""
    from gaoya.simhash import SimHashStringIndex

    def built(texts: list[str]) -> Any:
        index = SimHashStringIndex(hash_size=64, num_blocks=4, hamming_distance=work.radius)
        for at, text in enumerate(texts):
            index.insert_document(at, text)
        return index

    index, alone, some = built(texts), built(texts[:1]), texts[:limit]

    def search() -> tuple[list[list[int]], float, float]:
        seconds = []
        for one in (alone, index):
            wall, cpu = time.perf_counter(), time.process_time()
            found = one.par_bulk_query(some)
            seconds.append((time.perf_counter() - wall, time.process_time() - cpu))
        return found, seconds[1][0] - seconds[0][0], seconds[1][1] - seconds[0][1]

    return Task(
        search,
        len(some),
        lambda answer: sum(at in near for at, near in enumerate(answer[0])),
        lambda answer: {"wall": answer[1], "cpu": answer[2]},
    )


MODELS: dict[str, dict[str, Engine]] = {
    "join": {
        "neardup": neardup_join,
        "numpy blocks": numpy_join,
        "polars blocks": polars_join,
        "duckdb blocks": duckdb_join,
        "simhash": simhash_join,
        "faiss BinaryFlat": faiss_flat_join,
        "simhash-py": simhash_py_join,
    },
    "brute force": {"neardup": neardup_brute},
    "copy": {"numpy": numpy_copy},
    "groups": {"neardup": neardup_groups},
    "components": {"neardup": neardup_components},
    "index build": {"neardup": neardup_build, "faiss MultiHash": faiss_build},
    "index search": {
        "neardup": neardup_search,
        "faiss MultiHash": faiss_search,
        "faiss BinaryFlat": faiss_flat_search,
    },
    "index after load": {"neardup": neardup_after_load},
    "text search": {"neardup": neardup_text_search, "gaoya": gaoya_text_search},
}
