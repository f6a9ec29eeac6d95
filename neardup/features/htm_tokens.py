"""Tokens as the HTM document encoder counts and weighs them, as it is and corrected."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from neardup.errors import InvalidValue

# A weight is multiplied by this, and rounded down, for a token whose letters count as well.
TOKEN_SHARE = 1.5
# Stands between two tokens that make one feature; no token of a text contains it.
BESIDE = b"\0"


@dataclass(frozen=True, slots=True)
class TokenRules:
    """What decides which tokens count, and how much."""

    case_sensitive: bool = False
    excludes: frozenset[bytes] = frozenset()
    vocabulary: Mapping[bytes, int] = field(default_factory=dict)
    orphans: bool = False
    """Whether tokens outside the vocabulary count, with weight 1."""
    floor: int = 0
    ceiling: int = 0
    letters: bool = False
    """Whether the letters of a token count beside it."""
    order: int = 0
    """How much two neighbouring tokens count beside the two; 0 is not at all."""
    corrected: bool = False
    """A ceiling of c keeps c occurrences, not c - 1; a letter is a character, not a byte."""

    @classmethod
    def of(cls, excludes: Iterable[str], vocabulary: Mapping[str, int], **rules: Any) -> TokenRules:
        """From texts; of vocabulary entries that differ in case only, the later in byte order counts."""
        plain = cls(**rules)
        known = {
            plain.folded(token): weight for token, weight in sorted(vocabulary.items(), key=_bytes_first)
        }
        return cls(excludes=frozenset(map(plain.folded, excludes)), vocabulary=known, **rules)

    def folded(self, token: str) -> bytes:
        """The bytes of a token, A to Z in lower case unless case counts."""
        data = token.encode("utf-8", "replace")
        return data if self.case_sensitive else data.lower()

    def weighted(self, tokens: Iterable[str]) -> Iterator[tuple[bytes, int]]:
        """The features of a document with their weights.

        >>> rules = TokenRules.of([], {"fish": 3}, orphans=True)
        >>> list(rules.weighted(["Fish", "man"]))
        [(b'fish', 3), (b'man', 1)]
        """
        counts: Counter[bytes] = Counter()
        kept: list[tuple[bytes, int]] = []
        for text in tokens:
            token = self.folded(text)
            weight = self._weight(token)
            if weight is None:
                continue
            counts[token] += 1
            if (self.floor and counts[token] <= self.floor) or self._above(counts[token]):
                continue
            kept.append((token, weight))
            if self.letters:
                yield from self._letters(token, weight)
                weight = int(weight * TOKEN_SHARE)
            yield token, weight
        if self.order:
            for (left, weight), (right, other) in pairwise(kept):
                yield left + BESIDE + right, self.order * min(weight, other)

    def _weight(self, token: bytes) -> int | None:
        if token in self.excludes:
            return None
        if not self.vocabulary or token in self.vocabulary:
            return self.vocabulary.get(token, 1)
        return 1 if self.orphans else None

    def _above(self, count: int) -> bool:
        return bool(self.ceiling) and (count > self.ceiling if self.corrected else count >= self.ceiling)

    def _letters(self, token: bytes, weight: int) -> Iterator[tuple[bytes, int]]:
        letters = [letter.encode() for letter in token.decode()] if self.corrected else _single_bytes(token)
        counts: Counter[bytes] = Counter()
        for letter in letters:
            counts[letter] += 1
            if not self._above(counts[letter]):
                yield letter, self.vocabulary.get(letter, weight)


def check_rules(floor: int, ceiling: int, orphans: bool, vocabulary: Mapping[str, int]) -> None:
    """Raise unless the rules fit each other, in the words of the original."""
    if floor and ceiling and ceiling <= floor:
        raise InvalidValue("Argument 'frequencyCeiling' should be greater than argument 'frequencyFloor'.")
    if orphans and not vocabulary:
        raise InvalidValue("Argument 'encodeOrphans' requires argument 'vocabulary'.")


def _single_bytes(token: bytes) -> list[bytes]:
    return [token[at : at + 1] for at in range(len(token))]


def _bytes_first(item: tuple[str, int]) -> bytes:
    return item[0].encode("utf-8", "replace")
