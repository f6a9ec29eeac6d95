"""Weights by how often a feature occurs in a document and in how many documents it occurs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from neardup.errors import InvalidValue


@dataclass(frozen=True, slots=True)
class Idf:
    """In how many of *documents* each feature occurs.

    >>> idf = Idf.of([["a", "b"], ["a"]])
    >>> round(idf.weight("a"), 3), round(idf.weight("b"), 3), round(idf.weight("never"), 3)
    (1.0, 1.405, 2.099)
    """

    documents: int
    frequencies: Mapping[str, int]

    @classmethod
    def of(cls, documents: Iterable[Iterable[str]]) -> Idf:
        """Counted from the features of many documents."""
        frequencies: Counter[str] = Counter()
        count = 0
        for features in documents:
            frequencies.update(set(features))
            count += 1
        return cls(count, frequencies)

    def weight(self, feature: str) -> float:
        """log((1 + documents) / (1 + frequency)) + 1: never 0, so that no feature is lost."""
        return math.log((1 + self.documents) / (1 + self.frequencies.get(feature, 0))) + 1


def top_tfidf(counts: Sequence[float], common: Sequence[Sequence[float]], top: int) -> list[int]:
    """The positions of the *top* highest tf-idf values of *counts* against *common* documents; of equal
    ones the first. Positions that count nothing are left out, and without common documents all are.

    >>> top_tfidf([5, 3, 10, 11], [[1, 0, 0, 1], [0, 1, 0, 1], [0, 0, 0, 1]], top=2)
    [2, 0]
    """
    if any(len(document) < len(counts) for document in common):
        raise InvalidValue(f"a common document has fewer than the {len(counts)} positions of the document")
    if not common:
        return []
    total = sum(counts)
    scores = {
        at: count / total * math.log2((len(common) + 1) / (sum(doc[at] > 0 for doc in common) + 1))
        for at, count in enumerate(counts)
        if count > 0
    }
    return sorted(scores, key=lambda at: -scores[at])[: max(top, 0)]
