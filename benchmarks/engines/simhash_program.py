"""A program that uses simhash: `simhash_program.py original|neardup texts|index INPUT.json OPTIONS`.

It is run by engines/originals.py, once with each side; only the import differs. It prints its figures as
JSON.
"""

from __future__ import annotations

import gc
import json
import random
import resource
import sys
import time
from collections.abc import Iterable
from hashlib import blake2b
from pathlib import Path
from typing import Any


def digest(values: Iterable[object]) -> str:
    return blake2b(",".join(map(str, values)).encode(), digest_size=8).hexdigest()


def memory() -> float:
    """Megabytes this process holds now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


def texts(simhash: Any, many: list[str]) -> dict[str, Any]:
    simhash.Simhash(many[0])
    start = time.perf_counter()
    values = [simhash.Simhash(text).value for text in many]
    seconds = time.perf_counter() - start
    return {"figures": {"wall": seconds, "cpu": seconds}, "digest": digest(values)}


def index(simhash: Any, values: list[int], k: int, asked: int) -> dict[str, Any]:
    objects = [(str(at), simhash.Simhash(value)) for at, value in enumerate(values)]
    queries = [obj for _, obj in random.Random(3).sample(objects, asked)]
    before = memory()
    found = simhash.SimhashIndex([], k=k)
    start = time.perf_counter()
    for name, obj in objects:
        found.add(name, obj)
    found.get_near_dups(queries[0])  # what was added late is paid for here
    added = time.perf_counter() - start
    held = memory() - before
    # A program that asks has just made its query; the stored objects lie scattered in memory.
    new = [simhash.Simhash(query.value) for query in queries]
    gc.collect()  # or one of the two loops pays for walking through the million objects of this program
    start = time.perf_counter()
    answers = [found.get_near_dups(query) for query in new]
    query = time.perf_counter() - start
    result = [sorted(answer) for answer in answers]
    del answers
    gc.collect()
    start = time.perf_counter()
    answers = [found.get_near_dups(query) for query in queries]
    stored = time.perf_counter() - start
    if [sorted(answer) for answer in answers] != result:
        raise SystemExit("the same query got another answer")
    figures = {"add": added, "query": query, "stored": stored, "megabytes": held}
    return {"figures": figures, "digest": digest(result)}


def main() -> None:
    side, task, source, options = sys.argv[1:5]
    sys.path.pop(0)  # this folder
    if side == "original":
        import simhash
    else:
        from neardup.compat import simhash
    with open(source, encoding="utf-8") as file:
        given = json.load(file)
    run: Any = {"texts": texts, "index": index}[task]
    print(json.dumps(run(simhash, given, **json.loads(options))))


if __name__ == "__main__":
    main()
