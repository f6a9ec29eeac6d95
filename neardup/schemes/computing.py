"""What a scheme does: documents to fingerprints, votes and frequencies, by the core or, for the quirks of the
originals, by `features.ballots`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from neardup import _native
from neardup.arrays import BATCH, batches, core_texts
from neardup.checks import check_threads
from neardup.errors import InvalidType, InvalidValue, shown
from neardup.features import ballots
from neardup.features.vector import fingerprint_vectors
from neardup.fingerprints import Fingerprints
from neardup.hashes import HASHES
from neardup.images.hashes import fingerprint_images
from neardup.registry import plain_number
from neardup.schemes.selections import SELECTIONS, Select
from neardup.schemes.weighted import Features, byte_features, encodable, weighted_features
from neardup.types import Bands

if TYPE_CHECKING:
    from neardup.schemes.model import Scheme

BATCH_BITS: Final = 1 << 25  # bits of different features, one byte each


def fingerprint(scheme: Scheme, document: str | Features) -> int | None:
    """The fingerprint of a text, or of features that you give: tokens, (token, weight) pairs or a dict.

    None if there is no information in it.
    """
    if scheme.features in OTHERS and OTHERS[scheme.features].each:
        return fingerprints(scheme, [document])[0]
    needs_text(scheme)
    if not isinstance(document, str):
        return _of_features(scheme, document)
    if not scheme.direct:
        return _of_features(scheme, _cut(scheme, document) or ([""] if scheme.empty == "feature" else []))
    return _joined(scheme.recipe.fingerprint_one(document))


def _cut(scheme: Scheme, text: str) -> list[str]:
    if scheme.feature_part.cut:
        return scheme.feature_part.cut(scheme.recipe.normalized(text))
    return [feature for _, feature, _ in scheme.recipe.features(text)]


def _of_features(scheme: Scheme, features: Features) -> int | None:
    ballot = scheme.weight_part.ballot
    weighted = weighted_features(features) if ballot is None else ballot.pairs(features)
    if not weighted and scheme.empty == "none":
        return None
    if scheme.select != "sign":
        return sum(1 << bit for bit in selected(scheme, scheme.recipe.votes(weighted)))
    if ballot is not None:
        weights = [weight for _, weight in weighted]
        if not ballot.plain(weights):
            tie_gives_one = scheme.tie == "one"
            return ballots.fingerprint(_hash_bits(scheme, weighted), weights, ballot, tie_gives_one)
        weighted = weighted_features(weighted)
    return _joined(scheme.recipe.fingerprint_of_features(weighted))


def _hash_bits(scheme: Scheme, weighted: list[tuple[str, Any]]) -> ballots.Bits:
    """A row of bits for each feature, lowest first."""
    rows = [scheme.recipe.votes([(encodable(feature), 1)]) > 0 for feature, _ in weighted]
    return np.array(rows, dtype=bool).reshape(-1, scheme.bits)


def fingerprints(scheme: Scheme, documents: Any, threads: int | None = None) -> Fingerprints:
    """The fingerprints of many documents: a list or any iterable of texts (or of features), an Arrow
    string array or chunked array, or, for a vector scheme, a two-dimensional array of numbers.

    Uses all cores unless *threads* says how many.
    """
    threads = check_threads(threads)
    if scheme.features in OTHERS:
        words, valid = OTHERS[scheme.features].make(scheme, documents, threads)
        return Fingerprints(words, bits=scheme.bits, valid=valid, digest=scheme.digest)
    parts = [_batch(scheme, batch, threads) for batch in batches(documents)]
    if len(parts) == 1:
        words, valid = parts[0]
    else:
        empty = np.zeros((0, (scheme.bits + 63) // 64), dtype=np.uint64)
        words = np.concatenate([empty, *(part[0] for part in parts)])
        valid = np.concatenate([np.zeros(0, dtype=bool), *(part[1] for part in parts)])
    return Fingerprints(words, bits=scheme.bits, valid=valid, digest=scheme.digest)


def banded(scheme: Scheme, batch: Any, threads: int | None = None) -> tuple[Fingerprints, Bands]:
    """The fingerprints of the texts of an Arrow array, and the bands of each."""
    (words, valid), bands = scheme.recipe.banded(core_texts(batch), check_threads(threads))
    return Fingerprints(words, bits=scheme.bits, valid=valid, digest=scheme.digest), bands


def _batch(scheme: Scheme, batch: Any, threads: int | None) -> tuple[Any, Any]:
    if scheme.direct:
        if not isinstance(batch, list):
            return scheme.recipe.fingerprints(core_texts(batch), threads)
        if all(isinstance(item, str) for item in batch):
            return scheme.recipe.fingerprints(batch, threads)
    items = batch if isinstance(batch, list) else batch.to_pylist()
    prints = Fingerprints.of(
        (None if item is None else fingerprint(scheme, item) for item in items), scheme.bits
    )
    return prints.words, prints.valid


def count(scheme: Scheme, batch: Any, table: _native.Frequencies, threads: int | None = None) -> None:
    """Add the documents of one batch (a list of texts or an Arrow string array) to *table*."""
    needs_text(scheme)
    if scheme.weights not in ("log-df", "log-df-open"):
        raise InvalidValue(
            f"scheme {scheme.name!r} has weights {scheme.weights!r}, which use no document frequencies"
        )
    if not isinstance(table, _native.Frequencies) or table is scheme.frequencies:
        raise InvalidType(f"count into a new Frequencies table, not {shown(table)}")
    threads = check_threads(threads)
    for part in [batch] if isinstance(batch, list) else batches(batch):
        scheme.recipe.count(part if isinstance(part, list) else core_texts(part), table, threads)


def added(scheme: Scheme, other: Scheme) -> Scheme:
    """Two schemes fitted on parts of a collection, as if fitted on the whole."""
    if scheme.frequencies is None or other.frequencies is None:
        raise InvalidValue("only fitted schemes can be added; call fit first")
    if replace(scheme, frequencies=None).digest != replace(other, frequencies=None).digest:
        raise InvalidValue(
            f"cannot add schemes {scheme.name!r} and {other.name!r}: they differ in more than their tables"
        )
    table = _native.Frequencies(scheme.frequencies.max_features)
    try:
        table.merge(scheme.frequencies)
        table.merge(other.frequencies)
    except ValueError as error:
        raise InvalidValue(str(error)) from None
    return replace(scheme, frequencies=table)


def votes_of_many(
    scheme: Scheme, documents: Iterable[Iterable[tuple[bytes, int]]]
) -> Iterator[np.ndarray[Any, np.dtype[np.int64]]]:
    """The same for each of many documents; a feature that several have is hashed once."""
    needs_text(scheme)
    if not isinstance(documents, Iterable):
        raise InvalidType(f"documents must be an iterable of features, not {shown(documents)}")
    waiting: list[list[tuple[bytes, int]]] = []
    rows: dict[bytes, int] = {}
    for features in documents:
        waiting.append(byte_features(features))
        for feature, _ in waiting[-1]:
            rows.setdefault(feature, len(rows))
        if len(waiting) == BATCH or len(rows) * scheme.bits >= BATCH_BITS:
            yield from _votes_of(scheme, waiting, rows)
            waiting, rows = [], {}
    yield from _votes_of(scheme, waiting, rows)


def _votes_of(
    scheme: Scheme, documents: list[list[tuple[bytes, int]]], rows: dict[bytes, int]
) -> Iterator[np.ndarray[Any, np.dtype[np.int64]]]:
    row, size = HASHES.part(scheme.hash), (scheme.bits + 7) // 8
    length = row.bits // 8 if scheme.digest_slice == "last" and row.bits else size
    key = None if scheme.key is None else scheme.key.encode()
    digests = [row.digest(feature, length, key)[-size:] for feature in rows]
    if scheme.bit_order == "little":
        digests = [digest[::-1] for digest in digests]
    bits = ballots.digest_bits(digests, scheme.bits)
    for pairs in documents:
        chosen = np.array([rows[feature] for feature, _ in pairs], dtype=np.intp)
        yield ballots.plain_votes(bits[chosen], [weight for _, weight in pairs])


def selected(scheme: Scheme, votes: npt.NDArray[Any]) -> list[int]:
    """The bits that *votes* set, lowest first."""
    if not isinstance(votes, np.ndarray) or votes.dtype.kind not in "if" or votes.shape != (scheme.bits,):
        raise InvalidType(f"votes must be an array of {scheme.bits} numbers, not {shown(votes)}")
    if scheme.select == "sign":
        return [int(bit) for bit in np.flatnonzero(votes >= 0 if scheme.tie == "one" else votes > 0)]
    choose, count = selection(scheme.select, scheme.bits)
    return sorted(int(bit) for bit in choose(votes, count))


def needs_text(scheme: Scheme) -> None:
    """Raise if the scheme takes anything but texts."""
    if scheme.features in OTHERS:
        raise InvalidType(f"scheme {scheme.name!r} takes {OTHERS[scheme.features].taken}")


def seed_of(hash: str) -> int:
    """The seed of the projections that *hash* names."""
    name, _, argument = hash.partition(":")
    seed = plain_number(argument, 0, (1 << 64) - 1)
    if name != "projection" or seed is None:
        raise InvalidValue(f"hash {shown(hash)} is not for vectors; write projection:SEED")
    return seed


@dataclass(frozen=True, slots=True)
class Other:
    """How fingerprints are made of what is not text."""

    make: Callable[[Scheme, Any, int | None], tuple[npt.NDArray[np.uint64], npt.NDArray[np.bool_]]]
    """Words and validity of many documents."""
    each: bool
    """Whether one document may be given alone."""
    taken: str
    """What it takes, and how to give it."""


OTHERS: Final = {
    "vector": Other(
        lambda scheme, documents, threads: fingerprint_vectors(documents, scheme.bits, seed_of(scheme.hash)),
        each=False,
        taken="arrays of numbers; call fingerprints with a 2-D array",
    ),
    "picture": Other(
        lambda scheme, documents, threads: fingerprint_images(documents, scheme.hash, scheme.bits, threads),
        each=True,
        taken="images; call fingerprint or fingerprints with them",
    ),
}


def selection(select: str, bits: int) -> tuple[Select, int]:
    """How bits are chosen by votes, and how many."""
    name, _, argument = select.partition(":")
    count = plain_number(argument, 1, bits - 1)
    if name not in SELECTIONS or count is None:
        known = ", ".join(f"'{known}:N'" for known in SELECTIONS)
        raise InvalidValue(
            f"select {shown(select)} is neither 'sign' nor {known} with N from 1 to {bits - 1}"
        )
    return SELECTIONS[name].choose, count


def _joined(words: list[int] | None) -> int | None:
    return None if words is None else sum(word << 64 * at for at, word in enumerate(words))
