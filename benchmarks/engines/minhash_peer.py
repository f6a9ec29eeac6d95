"""A peer on the corpus of benchmarks/corpus.py: JSON Lines in, matched ids out. Runs in the peers' venv.

    python minhash_peer.py gaoya|rensa|datasketch IN.jsonl OUT.tsv [--limit N]

Each does what its documentation shows for deduplication: MinHash with 126 or 128 hashes of the
lower-cased words (gaoya: of shingles of three words), LSH at threshold 0.5. A line of OUT is a
document and another one that the index holds to be similar. None of them looks at a text again.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import orjson

THRESHOLD = 0.5


def read(path: str, limit: int | None) -> tuple[list[str], list[str]]:
    ids, texts = [], []
    with open(path, "rb") as lines:
        for line in lines:
            row = orjson.loads(line)
            ids.append(row["id"])
            texts.append(row["text"])
            if len(ids) == limit:
                break
    return ids, texts


def gaoya(texts: list[str]) -> Iterator[tuple[int, int]]:
    from gaoya.minhash import MinHashStringIndex

    # The signature of the example in its documentation.
    index = MinHashStringIndex(32, THRESHOLD, 42, 3, None, "word", True, (3, 3), "smallvec")
    index.par_bulk_insert_docs(list(range(len(texts))), texts)
    for at, found in enumerate(index.par_bulk_query(texts)):
        yield from ((at, other) for other in found if other > at)


def rensa(texts: list[str]) -> Iterator[tuple[int, int]]:
    from rensa import RMinHash, RMinHashLSH

    index = RMinHashLSH(threshold=THRESHOLD, num_perm=128, num_bands=32)
    prints = []
    for begin in range(0, len(texts), 1000):
        prints += RMinHash.from_token_sets(
            [text.lower().split() for text in texts[begin : begin + 1000]], num_perm=128, seed=42
        )
    for at, one in enumerate(prints):
        index.insert(at, one)
    for at, one in enumerate(prints):
        for other in index.query(one):
            if other > at and one.jaccard(prints[other]) >= THRESHOLD:
                yield at, other


def datasketch(texts: list[str]) -> Iterator[tuple[int, int]]:
    from datasketch import MinHash, MinHashLSH

    index = MinHashLSH(threshold=THRESHOLD, num_perm=128)
    for at, text in enumerate(texts):
        one = MinHash(num_perm=128)
        one.update_batch([word.encode() for word in set(text.lower().split())])
        for other in index.query(one):
            yield other, at
        index.insert(at, one)


def main() -> None:
    name, source, target = sys.argv[1:4]
    limit = int(sys.argv[5]) if len(sys.argv) > 5 else None
    ids, texts = read(source, limit)
    pairs = {
        "gaoya": lambda: gaoya(texts),
        "rensa": lambda: rensa(texts),
        "datasketch": lambda: datasketch(texts),
    }[name]()
    with open(target, "w", encoding="utf-8") as out:
        for one, other in pairs:
            out.write(f"{ids[one]}\t{ids[other]}\n")


if __name__ == "__main__":
    main()
