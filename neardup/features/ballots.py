"""Ballots: how given weights count where an original does not plainly add them.

The plain rule is in the core: every weight is an integer, for a bit or against it. An original's rule works
on a matrix with a row for each feature and a column for each bit, lowest first. None of them depends on the
hash, so they also serve hash functions that a caller brings along.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from neardup.errors import InvalidType, InvalidValue

Bits = npt.NDArray[np.bool_]
Pairs = list[tuple[str, Any]]

SMALL: Final = 50  # up to here simhash 2.x repeats a hash instead of multiplying
BATCH: Final = 200  # it adds this many repeated hashes at a time


@dataclass(frozen=True, slots=True)
class Ballot:
    """A rule: features to weighted pairs, and the votes of pairs to bits."""

    pairs: Callable[[Any], Pairs]
    votes: Callable[[Bits, Sequence[Any]], npt.NDArray[Any]]
    """Weight for minus weight against, a bit at a time."""
    plain: Callable[[Sequence[Any]], bool]
    """Whether plainly adding such weights gives the same."""


def fingerprint(bits: Bits, weights: Sequence[Any], ballot: Ballot, tie_gives_one: bool = False) -> int:
    """The fingerprint that features of those hash *bits* and *weights* vote for."""
    votes = ballot.votes(bits, weights)
    return packed(votes >= 0 if tie_gives_one else votes > 0)


def packed(bits: npt.NDArray[Any]) -> int:
    """Bits as an integer, lowest first.

    >>> packed(np.array([False, True, True]))
    6
    """
    return int.from_bytes(np.packbits(bits, bitorder="little").tobytes(), "little")


def plain_votes(bits: Bits, weights: Sequence[int]) -> npt.NDArray[np.int64]:
    """Weight for minus weight against, a bit at a time.

    >>> plain_votes(np.array([[True, False], [True, True]]), [1, 2]).tolist()
    [3, 1]
    """
    given = np.asarray(weights, dtype=np.int64)
    largest = np.abs(given).sum()
    # Floats that are exact for such sums are added by much faster code than integers are.
    exact = np.float32 if largest < 1 << 24 else np.float64 if largest < 1 << 53 else np.int64
    ones = (given.astype(exact) @ bits.astype(exact)).astype(np.int64)
    return np.asarray(2 * ones - given.sum())


def digest_bits(digests: Sequence[bytes], width: int) -> Bits:
    """The last *width* bits of each digest, the last byte lowest: a row for each."""
    size = (width + 7) // 8
    if any(len(digest) < size for digest in digests):
        short = min(map(len, digests))
        raise InvalidValue(
            f"a hash of {short * 8} bits is too short for a fingerprint of {width} bits; take a longer hash"
        )
    joined = b"".join(digest[: -size - 1 : -1] for digest in digests)
    block = np.frombuffer(joined, dtype=np.uint8).reshape(len(digests), size)
    return np.unpackbits(block, axis=1, bitorder="little")[:, :width].astype(bool)


def _items(features: Any) -> Iterable[Any]:
    if isinstance(features, (str, bytes)) or not isinstance(features, Iterable):
        raise InvalidType(f"features must be tokens, (token, weight) pairs or a dict, not {type(features)}")
    return features.items() if isinstance(features, Mapping) else features


def _pair(item: Any) -> tuple[str, Any]:
    if not isinstance(item, Iterable):
        raise InvalidType(f"a feature must be a str or a (str, weight) pair, not {item!r}")
    pair = tuple(item)
    if len(pair) != 2:
        raise InvalidValue(f"a feature must be a str or a (str, weight) pair, not {item!r}")
    if not isinstance(pair[0], str):
        raise InvalidType(f"a feature must be a str, not {pair[0]!r}")
    return pair


def _is_whole(weight: Any) -> bool:
    return isinstance(weight, (int, np.integer))


# --- simhash 1.x -----------------------------------------------------------------------------------------


def _pairs_of_1(features: Any) -> Pairs:
    pairs = [(item, 1) if isinstance(item, str) else _pair(item) for item in _items(features)]
    return [(token, int(weight) if _is_whole(weight) else weight) for token, weight in pairs]


def _votes_of_1(bits: Bits, weights: Sequence[Any]) -> npt.NDArray[Any]:
    # One after the other in float64, in the order of the features: 0.1 + 0.2 - 0.3 is not 0, and the
    # originals' values show it.
    votes = np.zeros(bits.shape[1])
    for row, weight in zip(bits, weights, strict=True):
        votes += np.where(row, weight, -weight)
    return votes


# --- simhash 2.x -----------------------------------------------------------------------------------------


def _pairs_of_2(features: Any) -> Pairs:
    # The original forgets to set the weight back: a plain token repeats that of the pair before it.
    pairs: Pairs = []
    weight: Any = 1
    for item in _items(features):
        if isinstance(item, str):
            pairs.append((item, weight))
        else:
            token, weight = _pair(item)
            weight = int(weight) if _is_whole(weight) else weight
            pairs.append((token, weight))
    return pairs


def _votes_of_2(bits: Bits, weights: Sequence[Any]) -> npt.NDArray[Any]:
    # A hash is repeated `weight` times, so that a negative whole number adds nothing for a bit, but lowers
    # the total.
    if all(map(_is_whole, weights)):
        exact = np.int64 if sum(map(abs, weights)) < 1 << 61 else object
        counts = np.array([max(weight, 0) for weight in weights], dtype=exact)
        return np.asarray(2 * (counts @ bits.astype(exact)) - sum(weights))
    # Other numbers are added in float64, in their order; small whole ones wait until there are 200 of them,
    # or for the end.
    total: Any = 0
    ones = np.zeros(bits.shape[1])
    batch: list[int] = []
    for at, weight in enumerate(weights):
        total += weight
        if not _is_whole(weight) or weight > SMALL:
            ones += bits[at] * weight
            continue
        batch.append(at)
        if len(batch) == BATCH:
            ones += _repeated(bits, weights, batch)
            batch = []
    ones += _repeated(bits, weights, batch)
    return np.asarray(ones - total / 2)


def _repeated(bits: Bits, weights: Sequence[Any], rows: list[int]) -> npt.NDArray[Any]:
    counts = np.array([max(weights[at], 0) for at in rows], dtype=np.int64)
    return np.asarray(counts @ bits[rows].astype(np.int64))


# --- qyoki -----------------------------------------------------------------------------------------------


def _votes_of_qyoki(bits: Bits, weights: Sequence[Any]) -> npt.NDArray[Any]:
    # The original writes a hash without its leading zeros and pads with votes of 0.
    voted = np.logical_or.accumulate(bits[:, ::-1], axis=1)[:, ::-1]
    signs = np.where(bits, 1, -1) * voted
    return np.asarray(signs.T @ np.asarray(weights, dtype=np.int64))


def text_votes(hashes: Sequence[str], width: int) -> npt.NDArray[np.int64]:
    """The votes of hashes written as digits, highest first: 1 is for a bit, any other character against it;
    a bit in front of a short hash gets no vote from it.

    >>> text_votes(["0101", "11"], 4).tolist()
    [-1, 1, 0, 2]
    """
    votes = np.zeros(width, dtype=np.int64)
    for hash in hashes:
        if len(hash) > width:
            raise InvalidValue(f"a hash of {len(hash)} digits is too long for a fingerprint of {width} bits")
        if hash:
            ones = np.frombuffer(hash.encode("utf-32-le"), dtype="<u4") == ord("1")
            votes[width - len(hash) :] += np.where(ones, 1, -1)
    return votes


SIMHASH_1: Final = Ballot(_pairs_of_1, _votes_of_1, lambda weights: all(map(_is_whole, weights)))
SIMHASH_2: Final = Ballot(
    _pairs_of_2, _votes_of_2, lambda weights: all(_is_whole(weight) and weight >= 0 for weight in weights)
)
ABSTAIN: Final = Ballot(_pairs_of_1, _votes_of_qyoki, lambda weights: not weights)
