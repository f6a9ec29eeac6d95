"""What it costs when the table of document frequencies is a sketch: weights, fingerprints, candidates, F1.

    python benchmarks/sketch.py --data DIR

A collection has D different features. `fit` counts them exactly up to max_features and goes over to a
sketch beyond; the load is D / max_features. Verification always counts exactly, so a sketch can only
change which pairs are compared.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

import neardup as nd

sys.path.insert(0, str(Path(__file__).parent))
import results
from labelled import add_data
from quality import documents, score

T2 = (32, 23, 16, 11, 8, 6, 4, 3, 2, 1, 1, 1)
RADIUS = 44
LOADS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0)


def weight(frequency: int, knee: int) -> int:
    """The weight, in a fingerprint, of a feature that this many documents have."""
    if frequency < 2:
        return 0
    place = 0 if frequency < knee else (frequency // knee).bit_length() - 1
    return T2[place] if place < len(T2) else 0


def true_pairs(path: Path) -> list[tuple[int, int]]:
    import gzip
    import json

    clusters: dict[Any, list[int]] = defaultdict(list)
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for at, row in enumerate(map(json.loads, lines)):
            clusters[row["cluster"]].append(at)
    return [pair for rows in clusters.values() for pair in combinations(rows, 2)]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    add_data(parser, "score.py and data/")
    results.add_out(parser)
    parser.add_argument("--set", action="append", default=[])
    chosen = parser.parse_args(arguments)
    head = [
        "set",
        "load",
        "max_features",
        "weights changed",
        "bits changed",
        "candidate recall",
        "candidates a document",
        "F1",
        "precision",
    ]
    print("| " + " | ".join(head) + " |\n" + "|---" * len(head) + "|")
    rows: list[dict[str, Any]] = []
    for name in chosen.set or ["web", "dblp_acm"]:
        path = chosen.data / "data" / f"{name}.jsonl.gz"
        texts = [row["text"] for row in documents(path)]
        pairs = np.array(true_pairs(path))
        exact = nd.scheme("text").fit(texts)
        assert exact.frequencies is not None
        count = exact.frequencies.features
        assert count is not None
        seen = sorted(
            {hash for text in texts[:: max(1, len(texts) // 200)] for *_, hash in exact.feature_list(text)}
        )
        usual = exact.fingerprints(texts)
        for load in (None, *LOADS):
            limit = None if load is None else int(count / load) - 1
            fitted = exact if limit is None else nd.scheme("text").fit(texts, max_features=limit)
            table = fitted.frequencies
            assert table is not None
            changed = sum(
                weight(exact.frequencies.get(hash), table.knee) != weight(table.get(hash), table.knee)
                for hash in seen
            )
            prints = fitted.fingerprints(texts)
            apart = np.unpackbits((prints.words ^ usual.words).view(np.uint8)).sum() / len(texts)
            near = np.unpackbits(
                (prints.words[pairs[:, 0]] ^ prints.words[pairs[:, 1]]).view(np.uint8), axis=1
            ).sum(axis=1)
            candidates = len(nd.join(prints, RADIUS)) / len(texts)
            found = score(chosen.data, name, {"scheme": fitted}, None)
            cells = [name, "exact" if load is None else f"{load:g}", "" if limit is None else f"{limit:,}"]
            cells += [f"{changed / len(seen):.1%}", f"{apart:.1f} of 128", f"{(near <= RADIUS).mean():.3f}"]
            cells += [f"{candidates:.2f}", f"{found.f1:.4f}", f"{found.precision:.4f}"]
            print("| " + " | ".join(cells) + " |", flush=True)
            rows.append({"work": "sketch", "engine": "neardup", **dict(zip(head, cells, strict=True))})
    results.write(rows, chosen.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
