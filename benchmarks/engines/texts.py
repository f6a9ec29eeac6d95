"""Engines that make fingerprints of texts: neardup, its plain twin, and peers."""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable
from hashlib import blake2b
from typing import Any

import numpy as np
import pyarrow as pa
from workloads import Workload

from engines import Engine, Task
from neardup import naive
from neardup.schemes import Scheme, scheme

THREADS = 2
COMPAT = Scheme(
    "simhash", normalize="word-chars", hash="md5", digest_slice="last", bit_order="big", empty="feature"
)


def size(texts: list[str]) -> int:
    return sum(len(text.encode()) for text in texts)


def digest(values: Any) -> str:
    """Of fingerprints as integers, None where there is none."""
    return blake2b(",".join(map(str, values)).encode(), digest_size=8).hexdigest()


def digest_of_words(prints: Any) -> str:
    """Of many fingerprints, without making integers of them."""
    return blake2b(np.ascontiguousarray(prints.words).tobytes(), digest_size=8).hexdigest()


def row_of(name: str, fitted: int = 0, texts: list[str] | None = None) -> Scheme:
    if name == "simhash's values":
        return COMPAT
    if fitted:
        return scheme(name).fit((texts or [])[:fitted])
    return scheme(name, weights="log") if name == "text" else scheme(name)


def neardup(
    texts: list[str],
    _: Workload,
    scheme: str,
    threads: int = THREADS,
    form: str = "Arrow",
    fitted: int = 0,
    limit: int | None = None,
) -> Task:
    texts = texts[:limit]
    row, given = row_of(scheme, fitted, texts), pa.array(texts) if form == "Arrow" else texts
    return Task(lambda: row.fingerprints(given, threads=threads), size(texts), digest_of_words)


def neardup_each(texts: list[str], _: Workload, scheme: str, limit: int | None = None) -> Task:
    """One text at a time."""
    texts, row = texts[:limit], row_of(scheme)
    return Task(lambda: [row.fingerprint(text) for text in texts], size(texts), digest)


def neardup_list(texts: list[str], _: Workload, scheme: str) -> Task:
    """Many at once, as integers."""
    row = row_of(scheme)
    return Task(lambda: list(row.fingerprints(texts)), size(texts), digest)


def twin(texts: list[str], _: Workload, scheme: str) -> Task:
    """The same in plain Python."""
    row = row_of(scheme)

    def one(text: str) -> int | None:
        return naive.fingerprint(text, features=row.features, weights=row.weights, bits=row.bits)

    return Task(lambda: list(map(one, texts)), size(texts), digest)


def simhash(texts: list[str], _: Workload, limit: int | None = None) -> Task:
    from simhash import Simhash

    texts = texts[:limit]
    return Task(lambda: [Simhash(text).value for text in texts], size(texts), digest)


def gaoya_index(analyzer: str, n: int) -> Any:
    from gaoya.simhash import SimHashStringIndex

    return SimHashStringIndex(64, 6, 5, analyzer, True, (n, n)).index


def gaoya(texts: list[str], _: Workload, analyzer: str, n: int, limit: int) -> Task:
    """Its fingerprints of many documents, on all cores."""
    index, texts = gaoya_index(analyzer, n), texts[:limit]
    return Task(lambda: index.par_bulk_doc2signatures(texts), size(texts))


def shingles(text: str) -> list[str]:
    words = text.lower().split()
    return [" ".join(words[at : at + 3]) for at in range(len(words) - 2)]


def rensa(texts: list[str], _: Workload, limit: int, lists: str = "timed") -> Task:
    """MinHash of shingles of three words; its lists are made within the time, or before."""
    from rensa import RMinHash

    texts = texts[:limit]
    before = [shingles(text) for text in texts] if lists == "made before" else None

    def sketches() -> int:
        count = 0
        for tokens in before if before is not None else map(shingles, texts):
            sketch = RMinHash(num_perm=128, seed=42)
            sketch.update(tokens)
            sketch.digest()
            count += 1
        return count

    return Task(sketches, size(texts), int)


def nearness(texts: list[str], fingerprint: Callable[[str], int]) -> Task:
    """1 if a copy with 5 % of its words changed is nearer than another document; and the mean distances."""

    def distances() -> tuple[float, float]:
        chance = random.Random(2)
        copies, others = [], []
        for text, other in zip(texts[:300:2], texts[1:300:2], strict=False):
            words = text.split()
            edited = " ".join(chance.choice(words) if chance.random() < 0.05 else word for word in words)
            copies.append(bin(fingerprint(text) ^ fingerprint(edited)).count("1"))
            others.append(bin(fingerprint(text) ^ fingerprint(other)).count("1"))
        return statistics.mean(copies), statistics.mean(others)

    return Task(
        distances,
        len(texts[:300]),
        lambda means: int(means[0] < means[1]),
        lambda means: {"to_a_copy": means[0], "to_another": means[1]},
    )


def neardup_nearness(texts: list[str], _: Workload) -> Task:
    row = scheme("chars:4")
    return nearness(texts, lambda text: row.fingerprint(text) or 0)


def gaoya_nearness(texts: list[str], _: Workload) -> Task:
    return nearness(texts, gaoya_index("char", 4).doc2signature)


MODELS: dict[str, dict[str, Engine]] = {
    "fingerprint": {
        "neardup": neardup,
        "neardup, one by one": neardup_each,
        "neardup, as integers": neardup_list,
        "plain twin": twin,
        "simhash": simhash,
        "gaoya": gaoya,
        "rensa": rensa,
    },
    "nearness": {"neardup": neardup_nearness, "gaoya": gaoya_nearness},
}
