"""The LSH part of the Go library pbtk: shinglers, hashers, SimHash, and the Hamming estimator.

The default is the algorithm that its document describes. Its published program uses only 8 of 64 hash bits;
`published=True` gives its numbers. Beyond it, as its document promises: 128 bits and weights.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from neardup.distances import distance
from neardup.errors import InvalidType, InvalidValue, UnknownName, shown
from neardup.features.shingles import (
    PUNCT,
    SPECIAL,
    char_shingles,
    clean_name,
    decoded,
    word_shingles,
)
from neardup.features.tfidf import Idf
from neardup.hashes import HASHES
from neardup.schemes import Scheme

__all__ = [
    "CLEAN_SET_ALL",
    "CLEAN_SET_PUNCT",
    "CLEAN_SET_SPECIAL",
    "HASHERS",
    "Char",
    "HammingEstimator",
    "Hasher",
    "Idf",
    "Nop",
    "Word",
    "char_shingles",
    "hash64",
    "word_shingles",
]

CLEAN_SET_PUNCT: Final = PUNCT
CLEAN_SET_SPECIAL: Final = SPECIAL
CLEAN_SET_ALL: Final = PUNCT + SPECIAL

HASHERS: Final = {  # their names in its hash library, and ours
    "xxhash64": "xxh64",
    "fnv1_64": "fnv1-64-zero",
    "fnv1a64": "fnv1a64-zero",
    "metro64": "metro64",
    "highway64": "highway64",
    "murmur1": "murmur1",
    "murmur2": "murmur2",
    "murmur2_64a": "murmur2-64a",
    "murmur3_64x64": "murmur3-sum64",
    "xxhash128": "xxh3-128",
    "murmur3_128": "murmur3-128",
}


def hash64(algorithm: str, data: str | bytes) -> int:
    """The 64-bit hash of *data* by that algorithm of the library.

    >>> hash64("xxhash64", "hello")
    2794345569481354659
    """
    data = decoded(data).encode() if isinstance(data, str) else data
    if not isinstance(data, bytes):
        raise InvalidType(f"the data must be a str or bytes, not {shown(data)}")
    return int.from_bytes(HASHES.part(_hash_name(algorithm)).digest(data, 8), "little")


class Shingler(Protocol):
    """What cuts a text into shingles."""

    @property
    def features(self) -> str:
        """Its name in a scheme."""

    def shingle(self, text: str | bytes) -> list[str]:
        """The shingles of a text, in order."""


class _Cut:
    """What every shingler can do; none of them keeps anything."""

    __slots__ = ()

    def shingle(self, text: str | bytes) -> list[str]:
        """The shingles of a text, in order."""
        raise NotImplementedError

    def append_shingle(self, dst: list[str], text: str | bytes) -> list[str]:
        """*dst* with the shingles of a text at its end."""
        dst.extend(self.shingle(text))
        return dst

    def each(self, text: str | bytes, fn: Callable[[str], object]) -> None:
        """Call *fn* with every shingle of a text."""
        for shingle in self.shingle(text):
            fn(shingle)

    def reset(self) -> None:
        """Forget nothing: there is nothing to forget."""


@dataclass(frozen=True, slots=True)
class Char(_Cut):
    """Runs of *k* characters.

    >>> Char(3).shingle("hello")
    ['hel', 'ell', 'llo']
    """

    k: int
    clean_set: str = ""

    @property
    def features(self) -> str:
        clean = clean_name(self.clean_set)
        return f"chars:{self.k}" if self.k and not clean else f"pbtk-chars:{self.k}:{clean}"

    def shingle(self, text: str | bytes) -> list[str]:
        return char_shingles(text, self.k, self.clean_set)


@dataclass(frozen=True, slots=True)
class Word(_Cut):
    """Runs of *k* words.

    >>> Word(2).shingle("to be or not")
    ['to be', 'be or', 'or not']
    """

    k: int
    clean_set: str = ""

    @property
    def features(self) -> str:
        return f"pbtk-words:{self.k}:{clean_name(self.clean_set)}"

    def shingle(self, text: str | bytes) -> list[str]:
        return word_shingles(text, self.k, self.clean_set)


@dataclass(frozen=True, slots=True)
class Nop(_Cut):
    """The text itself."""

    features: str = field(default="pbtk-chars:0:", init=False)

    def shingle(self, text: str | bytes) -> list[str]:
        return [decoded(text)]


class Hasher:
    """SimHash over everything that was added since the last reset.

    *weights* is "count" (a shingle votes as often as it occurs), "binary" (once), or an `Idf` (occurrences
    times inverse document frequency).

    >>> hasher = Hasher("xxhash64", Char(3))
    >>> hasher.add("A sad man is crying")
    >>> hasher.hash()
    14885000786154247845
    """

    def __init__(
        self,
        algorithm: str | None,
        shingler: Shingler | None,
        *,
        bits: int = 64,
        weights: str | Idf = "count",
        published: bool = False,
    ) -> None:
        if algorithm is None:
            raise InvalidValue("no hasher provided")
        if shingler is None:
            raise InvalidValue("no shingler provided")
        if not hasattr(shingler, "shingle") or not hasattr(shingler, "features"):
            raise InvalidType(f"a shingler must be a Char, Word or Nop, not {shown(shingler)}")
        if not isinstance(weights, Idf) and weights not in ("count", "binary"):
            raise InvalidValue(f"weights must be 'count', 'binary' or an Idf, not {weights!r}")
        self.shingler = shingler
        self.weights = weights
        self.published = published
        slip = "slip:" if published else ""
        self.scheme = Scheme(
            f"pbtk {algorithm} {shingler.features}".strip(": "),
            normalize="none",
            features=shingler.features,
            weights="set" if weights == "binary" else "count",
            hash=f"{slip}{_hash_name(algorithm)}",
            bits=bits,
            tie="one",
            empty="feature",
            form="decimal",
        )
        self._counts: Counter[str] = Counter()

    def add(self, text: str | bytes) -> None:
        """Count the shingles of a text."""
        self._counts.update(self.shingler.shingle(text))

    def hash(self) -> int:
        """The fingerprint of what was added; all ones when nothing was."""
        value = self.scheme.fingerprint({feature: self._weight(feature) for feature in self._counts})
        assert value is not None  # the scheme has a fingerprint for everything
        return value

    def append_hash(self, dst: list[int]) -> list[int]:
        """*dst* with the fingerprint at its end."""
        dst.append(self.hash())
        return dst

    def reset(self) -> None:
        """Forget what was added."""
        self._counts.clear()

    def _weight(self, feature: str) -> float:
        if self.weights == "binary":
            return 1
        count = self._counts[feature]
        return count * self.weights.weight(feature) if isinstance(self.weights, Idf) else count


class HammingEstimator:
    """The share of equal bits in the fingerprints of two texts.

    >>> HammingEstimator(Hasher("xxhash64", Char(3))).estimate("A sad man is crying", "A man is screaming")
    0.625
    """

    def __init__(self, lsh: Hasher | None) -> None:
        if lsh is None:
            raise InvalidValue("no LSH provided")
        if not isinstance(lsh, Hasher):
            raise InvalidType(f"an estimator needs a Hasher, not {shown(lsh)}")
        self.lsh = lsh

    def estimate(self, left: Any, right: Any) -> float:
        """1 - distance / bits."""
        prints = []
        for text in (left, right):
            self.lsh.reset()
            self.lsh.add(text)
            prints.append(self.lsh.hash())
        self.lsh.reset()
        return 1 - distance(*prints) / self.lsh.scheme.bits

    def reset(self) -> None:
        """Forget what was added to the hasher."""
        self.lsh.reset()


def _hash_name(algorithm: str) -> str:
    if not isinstance(algorithm, str) or algorithm not in HASHERS:
        raise UnknownName(f"unknown hasher {shown(algorithm)}; known: {', '.join(HASHERS)}")
    return HASHERS[algorithm]
