"""What a live collection costs: durable writes, verified adds, questions, opening, readers beside the writer.

    python benchmarks/corpus.py corpus.jsonl --documents 100000
    python benchmarks/live.py corpus.jsonl [--documents 20000] [--readers 16]

Commits are told beside the rate at which the same disk syncs 4 kB, because that rate may differ a hundredfold
from one minute to the next. Processor time counts all threads.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent.parent))

import results

from neardup.collections import Collection
from neardup.sources import open_source

BATCH = 1000


def documents(path: str) -> Iterator[dict[str, Any]]:
    """The documents of a file."""
    for batch in open_source(path):
        for one in batch:
            yield {"id": one.id, "text": one.content}


def raw_rate(folder: str, count: int = 100) -> float:
    """How often a second the disk syncs 4 kB."""
    handle = os.open(os.path.join(folder, "raw"), os.O_CREAT | os.O_WRONLY)
    begin = time.perf_counter()
    for _ in range(count):
        os.write(handle, bytes(4096))
        os.fsync(handle)
    rate = count / (time.perf_counter() - begin)
    os.close(handle)
    return rate


def ask(path: str, text: str, stop: Any) -> None:
    """A reader that asks as fast as it can."""
    with Collection.open(path, read_only=True) as reader:
        while not stop.is_set():
            reader.search(text=text)


def single(news: Collection, docs: Iterator[dict[str, Any]], count: int) -> float:
    """Durable adds of one document, a second."""
    begin = time.perf_counter()
    for one in islice(docs, count):
        news.add([one], near="none")
    return count / (time.perf_counter() - begin)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("corpus")
    parser.add_argument("--documents", type=int, default=20_000)
    parser.add_argument("--readers", type=int, default=16)
    results.add_out(parser)
    asked = parser.parse_args()
    docs = documents(asked.corpus)
    found: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "news.nd")
        news = Collection.open(path, create=True)
        first = next(docs)
        wall, cpu, stored = time.perf_counter(), time.process_time(), 0
        while stored < asked.documents and (part := list(islice(docs, BATCH))):
            news.add(part, near="none")
            stored += len(part)
        found["batch_rate"] = stored / (time.perf_counter() - wall)
        found["batch_cpu_ms"] = 1000 * (time.process_time() - cpu) / stored
        part = list(islice(docs, 500))
        cpu = time.process_time()
        for at in range(0, len(part), 100):
            news.add(part[at : at + 100])
        found["verified_cpu_ms"] = 1000 * (time.process_time() - cpu) / len(part)
        found["single_rate"], found["sync_rate"] = single(news, docs, 100), raw_rate(folder)
        reader = Collection.open(path, read_only=True)
        cpu = time.process_time()
        for _ in range(2000):
            reader.version  # noqa: B018
        found["fresh_us"] = 1e6 * (time.process_time() - cpu) / 2000
        cpu = time.process_time()
        for one in part[:200]:
            reader.search(text=one["text"])
        found["search_cpu_ms"] = 1000 * (time.process_time() - cpu) / 200
        reader.close()
        context = multiprocessing.get_context("spawn")
        stop = context.Event()
        readers = [
            context.Process(target=ask, args=(path, first["text"], stop)) for _ in range(asked.readers)
        ]
        for process in readers:
            process.start()
        found["single_rate_with_readers"] = single(news, docs, 100)
        stop.set()
        for process in readers:
            process.join()
        news.close()
        found["bytes_each"] = os.path.getsize(os.path.join(path, "store.sqlite")) / stored
        wall, cpu = time.perf_counter(), time.process_time()
        news = Collection.open(path)
        found["open_cpu_s"] = time.process_time() - cpu
        problems = news.check()
        news.close()
    for name, value in found.items():
        print(f"{name:26}{value:12,.3f}")
    row = {"work": f"a collection of {stored:,} documents", "engine": "neardup", **found}
    results.write([row | {"found": len(problems), "expected": 0}], asked.out)
    if problems:
        raise SystemExit("a promise is broken")


if __name__ == "__main__":
    main()
