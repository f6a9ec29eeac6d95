"""A scheme: the named recipe from document to fingerprint.

It says everything that decides a bit, and its digest covers all of that: fingerprints of two
digests are never compared.
"""

from __future__ import annotations

import hashlib
import json
import math
import numbers
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import islice
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from neardup import _native
from neardup.arrays import check_dictionary, core_texts
from neardup.checks import check_threads, whole
from neardup.errors import InvalidType, InvalidValue, NeardupError, shown
from neardup.features import FEATURES, NORMALIZATIONS, WEIGHTS, Part, ballots
from neardup.features.image import HASHES as PICTURE_HASHES
from neardup.features.image import SMALL, check_hash, fingerprint_pictures
from neardup.features.vector import fingerprint_vectors
from neardup.fingerprints import FORMS, Fingerprints, check_bits
from neardup.hashes import HASHES
from neardup.registry import plain_number
from neardup.schemes.selections import SELECTIONS, Select

FORMAT: Final = 1  # raised when the same fields begin to mean other bits
BATCH: Final = 10_000
BATCH_BITS: Final = 1 << 25  # bits of different features, a byte each
MAX_FEATURES: Final = 1 << 40
CHOICES: Final = {
    "digest_slice": ("first", "last"),
    "bit_order": ("little", "big"),
    "tie": ("zero", "one"),
    "empty": ("none", "votes", "feature"),
    "form": FORMS,
}
MEANINGS: Final = {
    "digest_slice": {
        "first": "the first bytes of a digest are used",
        "last": "the last bytes of a digest are used",
    },
    "bit_order": {
        "little": "the first byte used holds the lowest bits",
        "big": "the first byte used holds the highest bits",
    },
    "tie": {
        "zero": "as much weight for a bit as against it gives 0",
        "one": "as much weight for a bit as against it gives 1",
    },
    "empty": {
        "none": "a document without features has no fingerprint",
        "votes": "a document without features gets what no votes give",
        "feature": "a document without features gets the hash of the empty feature",
    },
}

Weighted = str | tuple[str, int | float]
Features = Mapping[str, int | float] | Iterable[Weighted]


@dataclass(frozen=True)
class Scheme:
    """One row of the table, or one of your own.

    >>> jobs = Scheme("jobs", normalize="word-chars", features="chars:3", hash="md5",
    ...               digest_slice="last", bit_order="big", empty="feature")
    >>> jobs.fingerprint("Hello, world")
    13548364882372308181
    """

    name: str
    normalize: str = "text"
    features: str = "chars:4"
    weights: str = "count"
    hash: str = "mix"
    bits: int = 64
    digest_slice: str = "first"
    bit_order: str = "little"
    tie: str = "zero"
    empty: str = "none"
    select: str = "sign"
    form: str = "hex"
    key: str | None = field(default=None, repr=False)
    frequencies: _native.Frequencies | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            if item.name not in ("bits", "key", "frequencies") and not isinstance(value, str):
                raise InvalidType(f"scheme {shown(self.name)}: {item.name} must be a str, not {shown(value)}")
        try:
            self._check()
        except NeardupError as error:
            raise type(error)(f"scheme {shown(self.name)}: {error}") from None

    def _check(self) -> None:
        check_bits(self.bits)
        for name, choices in CHOICES.items():
            value = getattr(self, name)
            if value not in choices:
                raise InvalidValue(f"{name} {shown(value)} is none of: {', '.join(choices)}")
        if not self.name or not self.name.isprintable():
            raise InvalidValue(f"the name {shown(self.name)} must be printable text")
        features = FEATURES.part(self.features)
        NORMALIZATIONS.part(self.normalize)
        WEIGHTS.part(self.weights)
        if features.name == "vector":
            _seed_of(self.hash)
        elif features.name == "picture":
            check_hash(self.hash, self.bits)
        elif self.hash in PICTURE_HASHES:
            raise InvalidValue(f"hash {shown(self.hash)} is for pictures; use features='picture' with it")
        elif self.hash.startswith("projection"):
            raise InvalidValue(f"hash {shown(self.hash)} is for vectors; use features='vector' with it")
        else:
            row = HASHES.part(self.hash)
            if row.bits is not None and row.bits < self.bits:
                raise InvalidValue(
                    f"hash {self.hash!r} has {row.bits} bits, too few for a fingerprint of {self.bits}"
                )
            if row.keyed != (self.key is not None):
                need = "needs a secret; pass key=..." if row.keyed else "takes no key"
                raise InvalidValue(f"hash {self.hash!r} {need}")
        if self.key is not None and not _is_key(self.key):
            raise InvalidValue("the key must be a str of 8 characters or more, without lone surrogates")
        if self.select != "sign":
            _selection(self.select, self.bits)
        if self.frequencies is not None and not isinstance(self.frequencies, _native.Frequencies):
            raise InvalidType(f"frequencies must come from fit, not be {shown(self.frequencies)}")
        if self.frequencies is not None and self.weights != "log-df":
            raise InvalidValue(f"weights {self.weights!r} use no document frequencies; use log-df")

    # --- what it is ------------------------------------------------------------------------------------

    @cached_property
    def digest(self) -> str:
        """32 hexadecimal digits that stand for everything that decides a bit."""
        facts: dict[str, Any] = {**self.facts(), "name": None, "form": None, "format": FORMAT}
        facts["unicode"] = _native.UNICODE_VERSION
        if self.hash == "dct-signs":
            facts["small"] = SMALL
        if self.key is not None:
            facts["key"] = hashlib.blake2b(self.key.encode(), key=b"neardup scheme key").hexdigest()
        if self.frequencies is not None:
            facts["frequencies"] = self.frequencies.digest
        text = json.dumps(facts, sort_keys=True, ensure_ascii=True)
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()

    def facts(self) -> dict[str, str | int]:
        """The fields that a scheme file holds: all but the secret and the table."""
        return {
            item.name: getattr(self, item.name)
            for item in fields(self)
            if item.name not in ("key", "frequencies")
        }

    def describe(self) -> dict[str, str]:
        """Every field and rule in words, for people."""
        other = {"vector": "seeded random projections", "picture": "bits of a picture made small"}
        parts = {
            "name": self.name,
            "digest": self.digest,
            "bits": str(self.bits),
            "normalize": f"{self.normalize}: {NORMALIZATIONS.part(self.normalize).summary}",
            "features": f"{self.features}: {FEATURES.part(self.features).summary}",
            "weights": f"{self.weights}: {WEIGHTS.part(self.weights).summary}",
            "hash": f"{self.hash}: "
            + (other[self.features] if self.features in other else HASHES.part(self.hash).summary),
        }
        for name, meanings in MEANINGS.items():
            value = getattr(self, name)
            parts[name] = f"{value}: {meanings[value]}"
        if self.empty == "none":
            parts["empty"] += "; so has one of white space, punctuation or marks only"
        parts["select"] = f"{self.select}: " + (
            "a bit is set when more weight is for it than against it"
            if self.select == "sign"
            else SELECTIONS[self.select.partition(":")[0]].summary
        )
        parts["form"] = self.form
        if self.key is not None:
            parts["key"] = "secret, not shown"
        if self.frequencies is not None:
            count = self.frequencies.features
            shown = "a sketch" if count is None else f"{count} features"
            parts["frequencies"] = f"{shown} of {self.frequencies.documents} documents"
        return parts

    @cached_property
    def recipe(self) -> _native.Recipe:
        """The scheme as the core runs it."""
        return _native.Recipe(
            normalize=self.normalize,
            features="words:1" if self._features.cut else self._features.name,
            weights="count" if self._weights.ballot else self.weights,
            hash=self.hash,
            key=None if self.key is None else self.key.encode(),
            bits=self.bits,
            digest_slice=self.digest_slice,
            bit_order=self.bit_order,
            tie=self.tie,
            empty=self.empty,
            frequencies=self.frequencies,
        )

    @cached_property
    def _features(self) -> Part:
        return FEATURES.part(self.features)

    @cached_property
    def _weights(self) -> Part:
        return WEIGHTS.part(self.weights)

    @cached_property
    def _direct(self) -> bool:
        """Whether the core takes a text to its fingerprint in one go."""
        ballot = self._weights.ballot
        return self.select == "sign" and not self._features.cut and (ballot is None or ballot.plain([1]))

    # --- what it does ----------------------------------------------------------------------------------

    def fingerprint(self, document: str | Features) -> int | None:
        """The fingerprint of a text, or of features that you give: tokens, (token, weight) pairs or a dict.

        None when there is no information in it.

        >>> scheme = Scheme("words", features="words:1")
        >>> scheme.fingerprint("to be or not") == scheme.fingerprint(["to", "be", "or", "not"])
        True
        """
        if self.features == "picture":
            return self.fingerprints([document])[0]
        self._needs_text()
        if not isinstance(document, str):
            return self._of_features(document)
        if not self._direct:
            return self._of_features(self._cut(document) or ([""] if self.empty == "feature" else []))
        return _joined(self.recipe.fingerprint_one(document))

    def _cut(self, text: str) -> list[str]:
        if self._features.cut:
            return self._features.cut(self.recipe.normalized(text))
        return [feature for _, feature, _ in self.recipe.features(text)]

    def _of_features(self, features: Features) -> int | None:
        ballot = self._weights.ballot
        weighted = weighted_features(features) if ballot is None else ballot.pairs(features)
        if not weighted and self.empty == "none":
            return None
        if self.select != "sign":
            return sum(1 << bit for bit in self.selected(self.recipe.votes(weighted)))
        if ballot is not None:
            weights = [weight for _, weight in weighted]
            if not ballot.plain(weights):
                tie_gives_one = self.tie == "one"
                return ballots.fingerprint(self._hash_bits(weighted), weights, ballot, tie_gives_one)
            weighted = weighted_features(weighted)
        return _joined(self.recipe.fingerprint_of_features(weighted))

    def _hash_bits(self, weighted: list[tuple[str, Any]]) -> ballots.Bits:
        """A row of bits for each feature, lowest first."""
        rows = [self.recipe.votes([(_encodable(feature), 1)]) > 0 for feature, _ in weighted]
        return np.array(rows, dtype=bool).reshape(-1, self.bits)

    def fingerprints(self, documents: Any, *, threads: int | None = None) -> Fingerprints:
        """The fingerprints of many documents: a list or any iterable of texts (or of features), an Arrow
        string array or chunked array, or, for a vector scheme, a two-dimensional array of numbers.

        Uses all cores unless *threads* says how many.
        """
        threads = check_threads(threads)
        if self.features == "vector":
            words, valid = fingerprint_vectors(documents, self.bits, _seed_of(self.hash))
            return Fingerprints(words, bits=self.bits, valid=valid, digest=self.digest)
        if self.features == "picture":
            words, valid = fingerprint_pictures(documents, self.hash, self.bits, threads)
            return Fingerprints(words, bits=self.bits, valid=valid, digest=self.digest)
        parts = [self._batch(batch, threads) for batch in batches(documents)]
        if len(parts) == 1:
            words, valid = parts[0]
        else:
            empty = np.zeros((0, (self.bits + 63) // 64), dtype=np.uint64)
            words = np.concatenate([empty, *(part[0] for part in parts)])
            valid = np.concatenate([np.zeros(0, dtype=bool), *(part[1] for part in parts)])
        return Fingerprints(words, bits=self.bits, valid=valid, digest=self.digest)

    def _batch(self, batch: Any, threads: int | None) -> tuple[Any, Any]:
        if self._direct:
            if not isinstance(batch, list):
                return self.recipe.fingerprints_of_arrow(core_texts(batch), threads)
            if all(isinstance(item, str) for item in batch):
                return self.recipe.fingerprints_of_strings(batch, threads)
        items = batch if isinstance(batch, list) else batch.to_pylist()
        prints = Fingerprints.of(
            (None if item is None else self.fingerprint(item) for item in items), self.bits
        )
        return prints.words, prints.valid

    def fit(self, documents: Any, *, max_features: int | None = None, threads: int | None = None) -> Scheme:
        """This scheme with the document frequencies of *documents*, which are read once.

        The table is exact up to *max_features* different features (33,554,432 unless said; about
        1.1 GB); beyond that it is a sketch of fixed size that may say too much, never too little.
        """
        most = () if max_features is None else (whole("max_features", max_features, 1, MAX_FEATURES),)
        table = _native.Frequencies(*most)
        for batch in batches(documents):
            self.count(batch, table, threads=threads)
        return replace(self, frequencies=table)

    def count(self, batch: Any, table: _native.Frequencies, *, threads: int | None = None) -> None:
        """Add the documents of one batch (a list of texts or an Arrow string array) to *table*."""
        self._needs_text()
        if self.weights != "log-df":
            raise InvalidValue(
                f"scheme {self.name!r} has weights {self.weights!r}, which use no document frequencies"
            )
        if not isinstance(table, _native.Frequencies) or table is self.frequencies:
            raise InvalidType(f"count into a new Frequencies table, not {shown(table)}")
        threads = check_threads(threads)
        for part in [batch] if isinstance(batch, list) else batches(batch):
            if isinstance(part, list):
                self.recipe.count_strings(part, table, threads)
            else:
                self.recipe.count_arrow(core_texts(part), table, threads)

    def __add__(self, other: Scheme) -> Scheme:
        """Two schemes fitted on parts of a collection, as if fitted on the whole."""
        if not isinstance(other, Scheme):
            return NotImplemented
        if self.frequencies is None or other.frequencies is None:
            raise InvalidValue("only fitted schemes can be added; call fit first")
        if replace(self, frequencies=None).digest != replace(other, frequencies=None).digest:
            raise InvalidValue(
                f"cannot add schemes {self.name!r} and {other.name!r}: they differ in more than their tables"
            )
        table = _native.Frequencies(self.frequencies.max_features)
        try:
            table.merge(self.frequencies)
            table.merge(other.frequencies)
        except ValueError as error:
            raise InvalidValue(str(error)) from None
        return replace(self, frequencies=table)

    def votes(self, features: Features) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Weight for minus weight against, a bit at a time, lowest bit first."""
        self._needs_text()
        return self.recipe.votes(weighted_features(features))

    def votes_of_bytes(self, features: Iterable[tuple[bytes, int]]) -> np.ndarray[Any, np.dtype[np.int64]]:
        """The same for features that need not be text."""
        return next(self.votes_of_many([features]))

    def votes_of_many(
        self, documents: Iterable[Iterable[tuple[bytes, int]]]
    ) -> Iterator[np.ndarray[Any, np.dtype[np.int64]]]:
        """The same for each of many documents; a feature that several have is hashed once."""
        self._needs_text()
        if not isinstance(documents, Iterable):
            raise InvalidType(f"documents must be an iterable of features, not {shown(documents)}")
        waiting: list[list[tuple[bytes, int]]] = []
        rows: dict[bytes, int] = {}
        for features in documents:
            waiting.append(_byte_features(features))
            for feature, _ in waiting[-1]:
                rows.setdefault(feature, len(rows))
            if len(waiting) == BATCH or len(rows) * self.bits >= BATCH_BITS:
                yield from self._votes_of(waiting, rows)
                waiting, rows = [], {}
        yield from self._votes_of(waiting, rows)

    def _votes_of(
        self, documents: list[list[tuple[bytes, int]]], rows: dict[bytes, int]
    ) -> Iterator[np.ndarray[Any, np.dtype[np.int64]]]:
        row, size = HASHES.part(self.hash), (self.bits + 7) // 8
        length = row.bits // 8 if self.digest_slice == "last" and row.bits else size
        key = None if self.key is None else self.key.encode()
        digests = [row.digest(feature, length, key)[-size:] for feature in rows]
        if self.bit_order == "little":
            digests = [digest[::-1] for digest in digests]
        bits = ballots.digest_bits(digests, self.bits)
        for pairs in documents:
            chosen = np.array([rows[feature] for feature, _ in pairs], dtype=np.intp)
            yield ballots.plain_votes(bits[chosen], [weight for _, weight in pairs])

    def selected(self, votes: npt.NDArray[Any]) -> list[int]:
        """The bits that *votes* set, lowest first."""
        if not isinstance(votes, np.ndarray) or votes.dtype.kind not in "if" or votes.shape != (self.bits,):
            raise InvalidType(f"votes must be an array of {self.bits} numbers, not {shown(votes)}")
        if self.select == "sign":
            return [int(bit) for bit in np.flatnonzero(votes >= 0 if self.tie == "one" else votes > 0)]
        choose, count = _selection(self.select, self.bits)
        return sorted(int(bit) for bit in choose(votes, count))

    def normalized(self, text: str) -> str:
        """The text as features are cut from it."""
        self._needs_text()
        return self.recipe.normalized(_text(text))

    def feature_list(self, text: str) -> list[tuple[int, str, int]]:
        """Every feature of a text in order: its kind, its text, its 64-bit hash."""
        self._needs_text()
        return self.recipe.features(_text(text))

    def save(self, path: Any) -> None:
        """Write it to a file that `nd.scheme` reads: TOML, with the table behind it where it is fitted."""
        from neardup.schemes.files import write

        write(self, path)

    def __reduce__(self) -> tuple[Callable[..., Scheme], tuple[bytes, str | None]]:
        """To pickle it: the bytes of its file, and its key, which a worker needs and no file holds."""
        from neardup.schemes.files import from_bytes, to_bytes

        return from_bytes, (to_bytes(self), self.key)

    def __copy__(self) -> Scheme:
        return replace(self)

    def __eq__(self, other: object) -> bool:
        """Whether they give the same bits, under the same name and in the same form."""
        if not isinstance(other, Scheme):
            return NotImplemented
        return (self.name, self.form, self.digest) == (other.name, other.form, other.digest)

    def __hash__(self) -> int:
        return hash((self.name, self.form, self.digest))

    def _needs_text(self) -> None:
        if self.features == "picture":
            raise InvalidType(
                f"scheme {self.name!r} takes pictures; call fingerprint or fingerprints with them"
            )
        if self.features == "vector":
            raise InvalidType(
                f"scheme {self.name!r} takes arrays of numbers; call fingerprints with a 2-D array"
            )


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise InvalidType(f"a text must be a str, not {type(value).__name__}")
    return value


def _seed_of(hash: str) -> int:
    name, _, argument = hash.partition(":")
    seed = plain_number(argument, 0, (1 << 64) - 1)
    if name != "projection" or seed is None:
        raise InvalidValue(f"hash {shown(hash)} is not for vectors; write projection:SEED")
    return seed


def _selection(select: str, bits: int) -> tuple[Select, int]:
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


def _is_key(value: object) -> bool:
    return isinstance(value, str) and len(value) >= 8 and not any("\ud800" <= at <= "\udfff" for at in value)


def weighted_features(features: Features) -> list[tuple[str, int]]:
    """Features with integer weights. Floats are scaled to integers that keep 53 bits of the largest one.

    >>> weighted_features({"a": 2, "b": 1}), weighted_features(["a", ("b", 3)])
    ([('a', 2), ('b', 1)], [('a', 1), ('b', 3)])
    """
    try:
        if isinstance(features, (str, bytes)):
            raise TypeError
        items = iter(features.items() if isinstance(features, Mapping) else features)
    except TypeError:
        raise InvalidType(
            f"a document must be a str, tokens, (token, weight) pairs or a dict, not {shown(features)}"
        ) from None
    pairs: list[tuple[str, int | float]] = []
    for item in items:
        token, weight = item if isinstance(item, tuple) and len(item) == 2 else (item, 1)
        if not isinstance(token, str):
            raise InvalidType(f"a feature must be a str or a (str, weight) pair, not {shown(item)}")
        pairs.append((token, _weight(token, weight)))
    largest = max((abs(weight) for _, weight in pairs), default=0)
    if all(isinstance(weight, int) for _, weight in pairs):
        if largest >= 1 << 62:
            raise InvalidValue(f"a weight must be below 2**62, not {shown(largest)}")
        return [(_encodable(token), int(weight)) for token, weight in pairs]
    pairs = [(token, _float(token, weight)) for token, weight in pairs]
    largest = max(abs(weight) for _, weight in pairs)
    shift = 53 - math.frexp(largest)[1]
    return [(_encodable(token), round(math.ldexp(weight, shift))) for token, weight in pairs]


def _byte_features(features: Iterable[tuple[bytes, int]]) -> list[tuple[bytes, int]]:
    try:
        pairs = [(feature, weight) for feature, weight in features]
    except (TypeError, ValueError):
        raise InvalidType(f"features must be (bytes, weight) pairs, not {shown(features)}") from None
    for feature, _ in pairs:
        if not isinstance(feature, bytes):
            raise InvalidType(f"a feature must be bytes here, not {shown(feature)}")
    largest = (1 << 62) // max(len(pairs), 1)
    return [(feature, whole("a weight", weight, -largest, largest)) for feature, weight in pairs]


def _weight(token: str, weight: object) -> int | float:
    if isinstance(weight, bool) or not isinstance(weight, numbers.Real):
        raise InvalidType(f"the weight of {shown(token)} must be a number, not {shown(weight)}")
    if isinstance(weight, numbers.Integral):
        return int(weight)
    return _float(token, weight)


def _float(token: str, weight: numbers.Real | float) -> float:
    try:
        value = float(weight)
    except OverflowError:
        value = math.inf
    if not math.isfinite(value):
        raise InvalidValue(f"the weight of {shown(token)} must be finite, not {value}")
    return value


def _encodable(token: str) -> str:
    return (
        token.encode("utf-16", "surrogatepass").decode("utf-16", "replace") if not token.isascii() else token
    )


def batches(documents: Any) -> Iterator[Any]:
    """Lists of documents, or the chunks of an Arrow array as they are."""
    if isinstance(documents, (str, bytes, Mapping)) or not isinstance(documents, Iterable):
        if not hasattr(documents, "__arrow_c_stream__") and not hasattr(documents, "__arrow_c_array__"):
            raise InvalidType(
                f"documents must be a list, an iterable or an Arrow array of texts, not {shown(documents)}"
            )
    elif isinstance(documents, (list, tuple)):
        for begin in range(0, len(documents), BATCH * 100):
            yield list(documents[begin : begin + BATCH * 100])
        return
    if hasattr(documents, "__arrow_c_stream__") or hasattr(documents, "__arrow_c_array__"):
        yield from _arrow_chunks(documents)
        return
    try:
        iterator = iter(documents)
    except TypeError:  # an array of no dimension says that it is iterable
        raise InvalidType(f"documents must be a list of texts, not {shown(documents)}") from None
    while batch := list(islice(iterator, BATCH)):
        yield batch


def _arrow_chunks(documents: Any) -> Iterator[Any]:
    import pyarrow as pa

    if not isinstance(documents, (pa.Array, pa.ChunkedArray)):
        stream = hasattr(documents, "__arrow_c_stream__")
        try:
            documents = pa.chunked_array(documents) if stream else pa.array(documents)
        except (pa.ArrowException, TypeError, ValueError):
            raise InvalidType(f"not an Arrow array of texts: {shown(documents)}") from None
    chunks = documents.chunks if isinstance(documents, pa.ChunkedArray) else [documents]
    for chunk in chunks:
        if pa.types.is_dictionary(chunk.type):
            check_dictionary(chunk)
            chunk = chunk.dictionary_decode()
        if pa.types.is_null(chunk.type):
            chunk = chunk.cast(pa.string())
        if str(chunk.type) not in ("string", "large_string", "string_view"):
            raise InvalidType(f"an Arrow array of texts must hold strings, not {chunk.type}; cast it first")
        yield chunk
