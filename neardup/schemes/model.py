"""A scheme: the named recipe from document to fingerprint.

It says everything that decides a bit, and its digest covers all of that: fingerprints of two
digests are never compared.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from neardup import _native
from neardup.arrays import batches
from neardup.checks import whole
from neardup.errors import InvalidType, InvalidValue, NeardupError, shown
from neardup.features import FEATURES, NORMALIZATIONS, WEIGHTS, Part
from neardup.fingerprints import FORMS, Fingerprints, check_bits
from neardup.hashes import HASHES
from neardup.images.hashes import HASHES as IMAGE_HASHES
from neardup.images.hashes import check_hash
from neardup.images.views import SMALL
from neardup.schemes import computing
from neardup.schemes.selections import SELECTIONS
from neardup.schemes.weighted import Features, text_of, weighted_features

# Weights that use document frequencies.
FITTED: Final = ("log-df", "log-df-open")
FORMAT: Final = 1  # raised when the same fields begin to mean other bits
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
            computing.seed_of(self.hash)
        elif features.name == "picture":
            check_hash(self.hash, self.bits)
        elif self.hash in IMAGE_HASHES:
            raise InvalidValue(f"hash {shown(self.hash)} is for images; use features='picture' with it")
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
            computing.selection(self.select, self.bits)
        if self.frequencies is not None and not isinstance(self.frequencies, _native.Frequencies):
            raise InvalidType(f"frequencies must come from fit, not be {shown(self.frequencies)}")
        if self.frequencies is not None and self.weights not in FITTED:
            raise InvalidValue(f"weights {self.weights!r} use no document frequencies; use log-df")

    # --- what it is ------------------------------------------------------------------------------------

    @cached_property
    def digest(self) -> str:
        """32 hexadecimal digits that identify everything that decides a bit."""
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
        other = {"vector": "seeded random projections", "picture": "bits of an image made small"}
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
            features="words:1" if self.feature_part.cut else self.feature_part.name,
            weights="count" if self.weight_part.ballot else self.weights,
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
    def feature_part(self) -> Part:
        """The row of the table that cuts its features."""
        return FEATURES.part(self.features)

    @cached_property
    def weight_part(self) -> Part:
        """The row of the table that weighs them."""
        return WEIGHTS.part(self.weights)

    @cached_property
    def direct(self) -> bool:
        """Whether the core takes a text to its fingerprint in one go."""
        ballot = self.weight_part.ballot
        return self.select == "sign" and not self.feature_part.cut and (ballot is None or ballot.plain([1]))

    @cached_property
    def has_bands(self) -> bool:
        """Whether texts have bands: each feature counts once, and is hashed by `mix`."""
        return self.direct and self.hash == "mix" and self.weights in ("set", "log", *FITTED)

    # --- what it does ----------------------------------------------------------------------------------

    def fingerprint(self, document: str | Features) -> int | None:
        """The fingerprint of a text, or of features that you give: tokens, (token, weight) pairs or a dict.

        None if there is no information in it.

        >>> scheme = Scheme("words", features="words:1")
        >>> scheme.fingerprint("to be or not") == scheme.fingerprint(["to", "be", "or", "not"])
        True
        """
        return computing.fingerprint(self, document)

    def fingerprints(self, documents: Any, *, threads: int | None = None) -> Fingerprints:
        """The fingerprints of many documents: a list or any iterable of texts (or of features), an Arrow
        string array or chunked array, or, for a vector scheme, a two-dimensional array of numbers.

        Uses all cores unless *threads* says how many.
        """
        return computing.fingerprints(self, documents, threads)

    def fit(self, documents: Any, *, max_features: int | None = None, threads: int | None = None) -> Scheme:
        """This scheme with the document frequencies of *documents*, which are read once.

        The table is exact up to *max_features* different features (33,554,432 by default; about
        1.1 GB); beyond that it is a sketch of fixed size that may overestimate, but never underestimates.
        """
        most = () if max_features is None else (whole("max_features", max_features, 1, MAX_FEATURES),)
        table = _native.Frequencies(*most)
        for batch in batches(documents):
            computing.count(self, batch, table, threads)
        return replace(self, frequencies=table)

    def count(self, batch: Any, table: _native.Frequencies, *, threads: int | None = None) -> None:
        """Add the documents of one batch (a list of texts or an Arrow string array) to *table*."""
        computing.count(self, batch, table, threads)

    def __add__(self, other: Scheme) -> Scheme:
        """Two schemes fitted on parts of a collection, as if fitted on the whole."""
        return computing.added(self, other) if isinstance(other, Scheme) else NotImplemented

    def votes(self, features: Features) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Weight for minus weight against, bit by bit, lowest first."""
        computing.needs_text(self)
        return self.recipe.votes(weighted_features(features))

    def votes_of_bytes(self, features: Iterable[tuple[bytes, int]]) -> np.ndarray[Any, np.dtype[np.int64]]:
        """The same for features that need not be text."""
        return next(self.votes_of_many([features]))

    def votes_of_many(
        self, documents: Iterable[Iterable[tuple[bytes, int]]]
    ) -> Iterator[np.ndarray[Any, np.dtype[np.int64]]]:
        """The same for each of many documents; a feature that several have is hashed once."""
        return computing.votes_of_many(self, documents)

    def selected(self, votes: npt.NDArray[Any]) -> list[int]:
        """The bits that *votes* set, lowest first."""
        return computing.selected(self, votes)

    def normalized(self, text: str) -> str:
        """The text as features are cut from it."""
        computing.needs_text(self)
        return self.recipe.normalized(text_of(text))

    def feature_list(self, text: str) -> list[tuple[int, str, int]]:
        """Every feature of a text in order: its kind, its text, its 64-bit hash."""
        computing.needs_text(self)
        return self.recipe.features(text_of(text))

    def save(self, path: Any) -> None:
        """Write it to a file that `nd.scheme` reads: TOML, followed by the table if it is fitted."""
        from neardup.schemes.files import write

        write(self, path)

    def __reduce__(self) -> tuple[Callable[..., Scheme], tuple[bytes, str | None]]:
        """For pickling: the bytes of its file, and its key, which a worker needs and no file holds."""
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


def _is_key(value: object) -> bool:
    return isinstance(value, str) and len(value) >= 8 and not any("\ud800" <= at <= "\udfff" for at in value)
