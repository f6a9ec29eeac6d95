"""What each number of the rule for texts is worth: the labelled collections scored with it changed.

    python benchmarks/sweep.py --data DIR [--only short,long] [--try name=value,name=value]

The first row is the rule as it is; each other row is the rule with one setting changed, or its test off. A
cell is F1 and precision. Pairs with a doubtful label count on neither side. docs/quality.md has the summary.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import neardup as nd
from neardup.verifiers import RULES, TextRule

sys.path.insert(0, str(Path(__file__).parent))
from labelled import add_data
from quality import TARGETS, doubtful_pairs

# What else each setting could be; the first one turns its test off, where there is such a value.
SWEEP: dict[str, tuple[int | bool, ...]] = {
    "titles": (False,),
    "high": (8800, 9200),
    "contrast": (0, 5000, 7000),
    "high_contrast": (0, 6000, 8000),
    "weighted": (0, 6600, 7400),
    "rare": (0, 2800, 4000),
    "short": (0, 24, 32),
    "short_rare": (0, 5000, 6500),
    "long": (120, 160),
    "middle_high": (9000, 9400, 9800),
    "middle_words": (20, 30, 60),
    "passage": (0, 7, 14),
    "gap": (1000, 2, 4),
    "drop": (10000, 300, 700),
    "numbers": (0, 40, 80),
    "siblings": (17, 1, 3),
    "slot": (8, 32),
    "fine_slot": (32, 128),
    "subject": (0, 12, 48),
    "clause": (0, 12, 40),
}


@dataclass(frozen=True)
class Labelled:
    """A collection, and which of its pairs are right."""

    rows: list[dict[str, str]]
    cluster: dict[str, str]
    doubtful: set[frozenset[str]]

    @classmethod
    def read(cls, path: Path) -> Labelled:
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            found = list(map(json.loads, lines))
        rows = [{"id": row["id"], "text": row["text"]} for row in found]
        return cls(rows, {row["id"]: row["cluster"] for row in found}, doubtful_pairs(path))

    def score(self, **choices: Any) -> tuple[float, float, float]:
        """F1, precision and recall of all pairs inside the clusters."""
        result = nd.dedupe(self.rows, guards=False, **choices)
        found, true = defaultdict(list), defaultdict(list)
        for row in result.annotations.select(["id", "cluster"]).to_pylist():
            found[row["cluster"]].append(row["id"])
            true[self.cluster[row["id"]]].append(row["id"])
        pairs = [pair for ids in found.values() for pair in combinations(ids, 2) if not self.doubts(pair)]
        right = sum(self.cluster[one] == self.cluster[other] for one, other in pairs)
        there = sum(len(ids) * (len(ids) - 1) // 2 for ids in true.values())
        there -= sum(len({self.cluster[id] for id in pair}) == 1 for pair in self.doubtful)
        precision, recall = right / max(1, len(pairs)), right / max(1, there)
        return 2 * precision * recall / max(1e-9, precision + recall), precision, recall

    def doubts(self, pair: tuple[str, str]) -> bool:
        return bool(self.doubtful) and frozenset(pair) in self.doubtful


def variants(only: Sequence[str]) -> Iterator[tuple[str, TextRule]]:
    """The rule as it is, then with one setting changed."""
    rule = RULES["default"]
    yield "as it is", rule
    for name, values in SWEEP.items():
        for value in values if not only or name in only else ():
            yield f"{name} {getattr(rule, name)} -> {value}", changed(rule, {name: value})


def chosen_rule(words: str) -> tuple[str, TextRule]:
    """The rule with the settings `name=value,...` changed."""
    pairs = (word.partition("=")[::2] for word in words.split(","))
    return words, changed(RULES["default"], {name: int(value) for name, value in pairs})


def changed(rule: TextRule, settings: dict[str, Any]) -> TextRule:
    return replace(rule, **settings)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    add_data(parser, "data/")
    parser.add_argument("--set", action="append", choices=list(TARGETS), help="only these collections")
    parser.add_argument("--only", default="", help="only these settings, separated by commas")
    parser.add_argument("--try", dest="tried", action="append", help="settings to change together")
    chosen = parser.parse_args(arguments)
    names = chosen.set or list(TARGETS)
    sets = {name: Labelled.read(chosen.data / "data" / f"{name}.jsonl.gz") for name in names}
    print("| rule | mean | " + " | ".join(names) + " |\n" + "|---" * (len(names) + 2) + "|")
    own = RULES["default"]
    rows = (
        map(chosen_rule, chosen.tried) if chosen.tried else variants([*filter(None, chosen.only.split(","))])
    )
    for words, rule in rows:
        RULES["default"] = rule
        try:
            scores = [one.score() for one in sets.values()]
        finally:
            RULES["default"] = own
        cells = [f"{f1:.4f} ({precision:.3f})" for f1, precision, _ in scores]
        mean = sum(f1 for f1, _, _ in scores) / len(scores)
        print(f"| {words} | {mean:.4f} | " + " | ".join(cells) + " |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
