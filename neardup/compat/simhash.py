"""The PyPI package `simhash` 2.1.2: `from neardup.compat.simhash import Simhash, SimhashIndex`.

Values are the original's, bit for bit; `version=` gives those of its 1.x versions. What it gets wrong is
fixed: a weight above 255 works with any NumPy, and a hash that is too short is an error.
"""

from __future__ import annotations

import hashlib
import logging
import numbers
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.blocks import block_keys, block_masks, block_offsets
from neardup.checks import whole
from neardup.errors import DamagedFile, InvalidType, InvalidValue
from neardup.features import WEIGHTS, ballots
from neardup.features.shingles import char_shingles
from neardup.index import SimhashValue, StreamIndex
from neardup.schemes import Scheme, scheme

__all__ = ["Simhash", "SimhashIndex", "bytes_to_int", "int_to_bytes", "simhashes", "values"]

REG: Final = r"[\w\u4e00-\u9fcc]+"
VERSIONS: Final = (  # the first version of each scheme
    ((2, 0), "simhash"),
    ((1, 8), "simhash-1.8"),
    ((1, 3), "simhash-1.3"),
    ((0, 0), "simhash-1.1"),
)

BIG_BUCKET: Final = 200
MAX_BITS: Final = 1 << 24  # of an index; each block has a mask, which costs as much as a fingerprint
MAX_RADIUS: Final = (1 << 16) - 1  # of an index; it has one block more, and every call looks at each

HashFunction = Callable[[bytes], "bytes | int"]


@cache
def _scheme(f: int, version: str) -> Scheme:
    try:
        number = tuple(int(part) for part in version.split("."))[:2]
    except ValueError:
        raise InvalidValue(f"version must look like '2.1.2', not {version!r}") from None
    name = next(name for first, name in VERSIONS if number >= first)
    if name == "simhash" and f % 8:
        raise InvalidValue("f must be a multiple of 8")
    return scheme(name, bits=f)


class _Options(NamedTuple):
    """What a `Simhash` was made with; nearly all of them have `PLAIN`, and none of their own."""

    reg: str | re.Pattern[str] = REG
    hashfunc: HashFunction | None = None
    log: logging.Logger | None = None
    version: str = "2.1.2"
    hashfunc_returns_int: bool = False


PLAIN: Final = _Options()


def int_to_bytes(n: int, length: int) -> bytes:
    """An integer as bytes, the highest first."""
    return n.to_bytes(length, "big")


def bytes_to_int(b: bytes) -> int:
    """The reverse."""
    return int.from_bytes(b, "big")


def _hashfunc(x: bytes) -> bytes:
    """The hash where none is given; a `Simhash` that has it is made in the core."""
    return hashlib.md5(x, usedforsecurity=False).digest()


def _option(name: str, unset: Any = None) -> Any:
    def get(self: Simhash) -> Any:
        found = getattr(self._options or PLAIN, name)
        return unset if found is None else found

    def put(self: Simhash, value: Any) -> None:
        self._options = (self._options or PLAIN)._replace(**{name: value})

    return property(get, put)


class Simhash(SimhashValue):
    """The fingerprint of a text, of tokens, of (token, weight) pairs, of a dict; or one that is known.

    >>> Simhash("Good job").distance(Simhash("Good job, Ray"))
    14
    """

    large_weight_cutoff = 50
    batch_size = 200

    __slots__ = ()

    reg, version, hashfunc_returns_int = map(_option, ("reg", "version", "hashfunc_returns_int"))
    hashfunc = _option("hashfunc", _hashfunc)
    log = _option("log", logging.getLogger("simhash"))

    def __init__(
        self,
        value: Any,
        f: int = 64,
        reg: str | re.Pattern[str] = REG,
        hashfunc: HashFunction | None = None,
        log: logging.Logger | None = None,
        *,
        version: str = "2.1.2",
    ) -> None:
        self.f = f
        hashfunc = None if hashfunc is _hashfunc else hashfunc
        if f % 8 and hashfunc is None:
            _scheme(f, version)  # says what is wrong
        elif f % 8:
            raise InvalidValue("f must be a multiple of 8")
        if reg is not REG or hashfunc is not None or log is not None or version != PLAIN.version:
            returns_int = hashfunc is not None and isinstance(hashfunc(b"test"), numbers.Integral)
            self._options = _Options(reg, hashfunc, log, version, returns_int)
        elif self._options:
            self._options = PLAIN
        if type(value) is int:
            self.value = value
        elif isinstance(value, str):
            self.build_by_text(value)
        elif isinstance(value, Simhash):
            self.value = value.value
        elif isinstance(value, Iterable):
            self.build_by_features(value)
        elif isinstance(value, numbers.Integral):
            self.value = value  # type: ignore[assignment]
        else:
            raise InvalidType(f"Bad parameter with type {type(value)}")

    @property
    def f_bytes(self) -> int:
        """Its bytes."""
        return self.f // 8

    def build_by_text(self, content: str) -> None:
        """Set the value to the fingerprint of a text."""
        kind = type(self)
        own = kind is not Simhash and any(
            getattr(kind, name) is not getattr(Simhash, name)
            for name in ("_tokenize", "_slide", "build_by_features")
        )
        if self.reg == REG and self._own_hash() is None and not own:
            self.value = _known(_scheme(self.f, self.version).fingerprint(content))
        else:
            self.build_by_features(Counter(self._tokenize(content)))

    def _tokenize(self, content: str) -> list[str]:
        """The features of a text; a subclass may have others."""
        return self._slide("".join(re.findall(self.reg, content.lower())))

    def _slide(self, content: str, width: int | None = None) -> list[str]:
        if width is None:
            bits = self.f if self._own_hash() is None else 64
            width = int(_scheme(bits, self.version).features.partition(":")[2])
        return char_shingles(content, width)

    def _own_hash(self) -> HashFunction | None:
        return (self._options or PLAIN).hashfunc

    def build_by_features(self, features: Any) -> None:
        """Set the value to the fingerprint of tokens, (token, weight) pairs or a dict of weights."""
        if self._own_hash() is None:
            self.value = _known(_scheme(self.f, self.version).fingerprint(features))
            return
        row = _scheme(64, self.version)
        ballot = WEIGHTS.part(row.weights).ballot
        assert ballot is not None
        pairs = ballot.pairs(features)
        digests = [self._digest(token) for token, _ in pairs]
        bits = ballots.digest_bits(digests, self.f)
        weights = [weight for _, weight in pairs]
        self.value = ballots.fingerprint(bits, weights, ballot, row.tie == "one")

    def _digest(self, token: str) -> bytes:
        hash: bytes | int = self.hashfunc(token.encode("utf-8"))
        if isinstance(hash, bytes):
            return hash
        return int_to_bytes(int(hash) & ((1 << self.f) - 1), self.f_bytes)

    def distance(self, another: Simhash) -> int:
        """In how many of the f bits the two differ."""
        assert self.f == another.f, f"cannot compare {self.f} bits with {another.f}"
        return ((self.value ^ another.value) & ((1 << self.f) - 1)).bit_count()

    def __eq__(self, other: object) -> bool:
        return self.value == other.value if isinstance(other, Simhash) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.value)

    def __repr__(self) -> str:
        return f"Simhash({self.value}, f={self.f})"

    def __getstate__(self) -> tuple[Any, ...]:
        return self.value, self.f, tuple(self._options or PLAIN), getattr(self, "__dict__", {})

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        try:
            value, f, options, own = state
            if not isinstance(value, numbers.Integral):
                raise ValueError("its value is not an integer")
            self.value, self.f = value, whole("f", f, 0)  # type: ignore[assignment]
            self._options = _Options(*options)
            if own:
                self.__dict__.update(own)
        except (ValueError, TypeError, AttributeError) as error:
            raise DamagedFile(f"this is not the state of a Simhash: {error}") from None


def _known(value: int | None) -> int:
    assert value is not None  # these schemes give every document a fingerprint
    return value


def values(
    texts: Any, f: int = 64, *, version: str = "2.1.2", threads: int | None = None
) -> npt.NDArray[np.uint64]:
    """The values of many texts at once, on all cores: numpy uint64, two columns and more above 64 bits.

    >>> values(["Good job", "Good job, Ray"]).tolist()
    [111839687530783184, 9929651692982303640]
    """
    words = _scheme(f, version).fingerprints(texts, threads=threads).words
    return words[:, 0] if words.shape[1] == 1 else words


def simhashes(
    texts: Any, f: int = 64, *, version: str = "2.1.2", threads: int | None = None
) -> list[Simhash]:
    """As `[Simhash(text, f) for text in texts]`, at once and on all cores."""
    prints = _scheme(f, version).fingerprints(texts, threads=threads)
    numbers = prints.words[:, 0].tolist() if f <= 64 else list(prints)
    return [Simhash(value, f, version=version) for value in numbers]


class SimhashIndex(StreamIndex):
    """Finds what is within *k* bits of a fingerprint. Ids come back as text, as from the original.

    >>> index = SimhashIndex([("a", Simhash(0b0000)), ("b", Simhash(0b0111))], k=2)
    >>> index.get_near_dups(Simhash(0b0001)), index.offsets
    (['a', 'b'], [0, 21, 42])
    """

    def __init__(
        self,
        objs: Sequence[tuple[Any, Simhash]],
        f: int = 64,
        k: int = 2,
        log: logging.Logger | None = None,
    ) -> None:
        self.f = f
        self.k = k
        self.log = log or logging.getLogger("simhash")
        self._begin()
        count = len(objs)
        self.log.info("Initializing %s data.", count)
        for at, (obj_id, simhash) in enumerate(objs):
            if at % 10000 == 0 or at == count - 1:
                self.log.info("%s/%s", at + 1, count)
            self.add(obj_id, simhash)

    def _begin(self) -> None:
        self.f, self.k = whole("f", self.f, 1, MAX_BITS), whole("k", self.k, 0, MAX_RADIUS)
        self._offsets = block_offsets(self.f, self.k + 1)
        self._masks = block_masks(self.f, self._offsets)
        ends = [*self._offsets[1:], self.f]
        blocks = list(zip(self._offsets, ends, strict=True))
        self._start(Simhash, self.f, min(self.k, self.f), blocks, BIG_BUCKET)

    def get_keys(self, simhash: Simhash) -> Iterator[str]:
        """The name of each block of a fingerprint."""
        for at, (offset, mask) in enumerate(zip(self._offsets, self._masks, strict=True)):
            yield f"{simhash.value >> offset & mask:x}:{at:x}"

    @property
    def offsets(self) -> list[int]:
        """Where each block begins."""
        return list(self._offsets)

    @property
    def bucket(self) -> defaultdict[str, set[str]]:
        """What shares each block, made on access; a block that was only queried is empty."""
        seen = {f"{key:x}:{at:x}": set[str]() for at, keys in self._blocks() for key in keys}
        buckets = defaultdict(set, seen)
        names, words = self._entries()
        for name, value in zip(names, self._values(words), strict=True):
            for key in self.get_keys(Simhash(value, self.f)):
                buckets[key].add(f"{value:x},{name}")
        return buckets

    def bucket_size(self) -> int:
        """How many different blocks there are or were, in entries and in queries."""
        return sum(len(keys) for _, keys in self._blocks())

    def _blocks(self) -> Iterator[tuple[int, list[int]]]:
        """The number of each block and all values it was seen with."""
        words = self._rows(np.concatenate([self._entries()[1], self._asked()]))
        for at, (offset, mask) in enumerate(zip(self._offsets, self._masks, strict=True)):
            yield at, np.unique(block_keys(words, offset, mask.bit_length())).tolist()

    def _rows(self, words: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
        return words.reshape(-1, (self.f + 63) // 64)

    def _values(self, words: npt.NDArray[np.uint64]) -> Iterator[int]:
        return (int.from_bytes(row.tobytes(), "little") for row in self._rows(words.astype("<u8")))

    def _warn(self, simhash: Simhash, crowds: list[tuple[int, int]]) -> None:
        keys = list(self.get_keys(simhash))
        for at, count in crowds:
            self.log.warning("Big bucket found. key:%s, len:%s", keys[at], count)

    def __getstate__(self) -> tuple[Any, ...]:
        return self.__dict__, self._entries(), self._asked()

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        try:
            own, (names, words), asked = state
            if not all(isinstance(part, np.ndarray) and part.dtype == np.uint64 for part in (words, asked)):
                raise ValueError("its fingerprints are not an array of uint64")
            self.__dict__.update(own)
            self._begin()
            wide = (self.f + 63) // 64
            if words.size != len(names) * wide or asked.size % wide:
                raise ValueError(f"its fingerprints do not have {self.f} bits each")
            if not all(isinstance(name, str) for name in names):
                raise ValueError("an id is not a str")
        except (ValueError, TypeError, AttributeError) as error:
            raise DamagedFile(f"this is not the state of a SimhashIndex: {error}") from None
        for value in self._values(asked):  # while there is nothing to delete
            StreamIndex.delete(self, "", Simhash(value, self.f))
        for name, value in zip(names, self._values(words), strict=True):
            StreamIndex.add(self, name, Simhash(value, self.f))
