"""Candidates: pairs of texts whose fingerprints are near enough for the texts to be compared."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from neardup.fingerprints import Fingerprints
from neardup.pairs import join_batches
from neardup.types import TextNumbers

Distances = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """Pairs of texts within the radius, each once, the lower number on the left."""

    left: TextNumbers
    right: TextNumbers
    distance: Distances
    radius: int
    plan: str
    prints: Fingerprints
    """Those of the texts."""
    crowded: TextNumbers
    """Texts with more candidates than were considered: only the nearest are among the pairs."""

    def __len__(self) -> int:
        return len(self.left)

    def with_more(self, left: TextNumbers, right: TextNumbers, distance: Distances) -> Candidates:
        """The same with pairs added at the end."""
        return replace(
            self,
            left=TextNumbers(np.concatenate([self.left, left])),
            right=TextNumbers(np.concatenate([self.right, right])),
            distance=np.concatenate([self.distance, distance]),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Reach:
    """One text, and others within the radius of it."""

    text: int
    others: TextNumbers
    distance: Distances

    def only(self, wanted: npt.NDArray[np.bool_]) -> Reach:
        """The others that are *wanted*."""
        return Reach(self.text, TextNumbers(self.others[wanted]), self.distance[wanted])

    @property
    def pairs(self) -> tuple[TextNumbers, TextNumbers]:
        """The pair of each with the text, the lower number on the left."""
        one, other = np.minimum(self.others, self.text), np.maximum(self.others, self.text)
        return TextNumbers(one), TextNumbers(other)


def reaches(found: Candidates, texts: TextNumbers) -> Iterator[Reach]:
    """Everything within the radius of each of some *texts*, one after another."""
    prints = Fingerprints(found.prints.words[texts], bits=found.prints.bits)
    for pairs in join_batches(prints, found.radius, other=found.prints):
        low, high = int(pairs.left[0]), int(pairs.left[-1])
        ends = np.searchsorted(pairs.left, np.arange(low, high + 2)).tolist()
        for text, begin, end in zip(texts[low : high + 1].tolist(), ends[:-1], ends[1:], strict=True):
            others = TextNumbers(pairs.right[begin:end].astype(np.int64))
            yield Reach(text, others, pairs.distance[begin:end].astype(np.int32))
