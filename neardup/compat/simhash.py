"""The PyPI package `simhash` 2.1.2: `from neardup.compat.simhash import Simhash, SimhashIndex`.

Values are the original's, bit for bit; `version=` gives those of its 1.x versions. What it gets wrong is
mended: a weight above 255 works with any NumPy, and a hash that is too short is an error.
"""

from __future__ import annotations

import logging
import numbers
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from neardup.blocks import Census, block_masks, block_offsets
from neardup.errors import InvalidType, InvalidValue
from neardup.features import WEIGHTS, ballots
from neardup.features.shingles import char_shingles
from neardup.fingerprints import Fingerprints
from neardup.index import Index
from neardup.schemes import Scheme, scheme

__all__ = ["Simhash", "SimhashIndex", "simhashes", "values"]

REG: Final = r"[\w\u4e00-\u9fcc]+"
VERSIONS: Final = (  # the first version of each scheme
    ((2, 0), "simhash"),
    ((1, 8), "simhash-1.8"),
    ((1, 3), "simhash-1.3"),
    ((0, 0), "simhash-1.1"),
)

BIG_BUCKET: Final = 200
# So many entries, or questions, wait at most before they are taken up.
WAITING: Final = 1 << 19

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


class Simhash:
    """The fingerprint of a text, of tokens, of (token, weight) pairs, of a dict; or one that is known.

    >>> Simhash("Good job").distance(Simhash("Good job, Ray"))
    14
    """

    large_weight_cutoff = 50
    batch_size = 200

    __slots__ = ("f", "f_bytes", "hashfunc", "hashfunc_returns_int", "log", "reg", "value", "version")

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
        self.f_bytes = f // 8
        self.reg = reg
        self.hashfunc = hashfunc
        self.log = log
        self.version = version
        self.value: int
        if f % 8 and hashfunc is None:
            _scheme(f, version)  # says what is wrong
        elif f % 8:
            raise InvalidValue("f must be a multiple of 8")
        self.hashfunc_returns_int = hashfunc is not None and isinstance(hashfunc(b"test"), int)
        if isinstance(value, str):
            self.build_by_text(value)
        elif isinstance(value, Simhash):
            self.value = value.value
        elif isinstance(value, Iterable):
            self.build_by_features(value)
        elif isinstance(value, numbers.Integral):
            self.value = value  # type: ignore[assignment]
        else:
            raise InvalidType(f"Bad parameter with type {type(value)}")

    def build_by_text(self, content: str) -> None:
        """Set the value to the fingerprint of a text."""
        if self.reg == REG and self.hashfunc is None:
            self.value = _known(_scheme(self.f, self.version).fingerprint(content))
            return
        width = int(_scheme(self.f if self.hashfunc is None else 64, self.version).features.partition(":")[2])
        content = "".join(re.findall(self.reg, content.lower()))
        self.build_by_features(Counter(char_shingles(content, width)))

    def build_by_features(self, features: Any) -> None:
        """Set the value to the fingerprint of tokens, (token, weight) pairs or a dict of weights."""
        if self.hashfunc is None:
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
        assert self.hashfunc is not None
        hash = self.hashfunc(token.encode("utf-8"))
        if isinstance(hash, int):
            return (hash & ((1 << self.f) - 1)).to_bytes(self.f_bytes, "big")
        return hash

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


class SimhashIndex:
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
        self._offsets = block_offsets(f, k + 1)
        self._masks = block_masks(f, self._offsets)
        self._ones = (1 << f) - 1
        self._index = Index(bits=f, radius=min(k, f))
        self._census = Census(f, self._offsets, BIG_BUCKET)
        self._search = self._index.search_one
        self._names: list[str] = []
        self._values: list[int] = []
        self._asked: list[int] = []
        self._crowded: bool | None = None  # not known
        count = len(objs)
        self.log.info("Initializing %s data.", count)
        for at, (obj_id, simhash) in enumerate(objs):
            if at % 10000 == 0 or at == count - 1:
                self.log.info("%s/%s", at + 1, count)
            self.add(obj_id, simhash)

    def add(self, obj_id: Any, simhash: Simhash) -> None:
        """Put in a fingerprint; it waits for the next question, or for many others, to go in at once."""
        assert simhash.f == self.f, f"cannot index {simhash.f} bits among {self.f}"
        self._names.append(obj_id if type(obj_id) is str else f"{obj_id}")
        self._values.append(simhash.value)
        if len(self._names) == WAITING:
            self._settle()

    def delete(self, obj_id: Any, simhash: Simhash) -> None:
        """Take out the entry of that id and fingerprint, if there is one."""
        assert simhash.f == self.f, f"cannot index {simhash.f} bits among {self.f}"
        self._settle()
        value = simhash.value & self._ones
        self._asked.append(value)
        if self._index.remove_one(f"{obj_id}", value):
            self._census.remove(self._prints([value]).words)
            self._crowded = None

    def get_near_dups(self, simhash: Simhash) -> list[str]:
        """The ids of what is within k bits, the nearest first."""
        assert simhash.f == self.f, f"cannot index {simhash.f} bits among {self.f}"
        if self._names or len(self._asked) == WAITING:
            self._settle()
        value = simhash.value & self._ones
        self._asked.append(value)
        if self._crowded is None:
            self._crowded = self._census.crowded
        if self._crowded:
            self._warn(simhash, self._census.crowds(value))
        names = [name for name, _ in self._search(value)]
        return names if len(names) < 2 else list(dict.fromkeys(names))

    def get_keys(self, simhash: Simhash) -> Iterator[str]:
        """The name of each block of a fingerprint."""
        for at, (offset, mask) in enumerate(zip(self._offsets, self._masks, strict=True)):
            yield f"{simhash.value >> offset & mask:x}:{at:x}"

    @property
    def offsets(self) -> list[int]:
        """Where each block begins."""
        return list(self._offsets)

    @property
    def bucket(self) -> dict[str, set[str]]:
        """What shares each block, made when asked for; a block that was only asked for is empty."""
        self._settle()
        buckets: dict[str, set[str]] = {
            f"{key:x}:{at:x}": set() for at, keys in self._census.blocks() for key in keys
        }
        names, prints = self._index.items()
        for name, value in zip(names, prints, strict=True):
            for key in self.get_keys(Simhash(value, self.f)):
                buckets[key].add(f"{value:x},{name}")
        return buckets

    def bucket_size(self) -> int:
        """How many different blocks there are or were, in entries and in questions."""
        self._settle()
        return sum(len(keys) for _, keys in self._census.blocks())

    def _settle(self) -> None:
        """Put in what waits, and note what was asked."""
        if self._names:
            names, values = self._names, self._values
            self._names, self._values = [], []
            prints = self._prints(values)
            del values
            new = self._new(names, prints)
            if len(new) < len(names):
                names, prints = [names[row] for row in new], Fingerprints(prints.words[new], bits=self.f)
            self._index.add(names, prints)
            self._census.add(prints.words)
            self._crowded = None
        if self._asked:
            self._census.see(self._prints(self._asked).words)
            self._asked = []

    def _new(self, names: list[str], prints: Fingerprints) -> list[int] | range:
        """The rows that are neither there already nor twice among these: an entry is there once."""
        there: set[tuple[int, str]] = set()
        if len(self._index):
            there.update((int(row), name) for row, name, _ in self._index.search(prints, radius=0))
        order = np.lexsort(prints.words.T)
        ordered = prints.words[order]
        same = (ordered[1:] == ordered[:-1]).all(axis=1)
        if not there and not same.any():
            return range(len(names))
        equal = np.zeros(len(names), dtype=bool)
        equal[order[1:][same]] = equal[order[:-1][same]] = True
        first: dict[tuple[str, int | None], int] = {}
        twice = {
            row
            for row in np.flatnonzero(equal).tolist()
            if first.setdefault((names[row], prints[row]), row) < row
        }
        return [row for row, name in enumerate(names) if row not in twice and (row, name) not in there]

    def _prints(self, values: list[int]) -> Fingerprints:
        try:
            words = np.array(values, dtype=np.uint64) if self.f == 64 else None
        except OverflowError:  # an integer of more than f bits, as the original lets pass
            words = None
        if words is None:
            return Fingerprints.of([value & self._ones for value in values], self.f)
        return Fingerprints(words, bits=self.f)

    def _warn(self, simhash: Simhash, crowds: list[tuple[int, int]]) -> None:
        for at, count in crowds:
            key = list(self.get_keys(simhash))[at]
            self.log.warning("Big bucket found. key:%s, len:%s", key, count)
