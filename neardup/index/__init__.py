"""The index: fingerprints that are added and removed, and what is within a radius of a query.

An id may be given to several fingerprints; `remove` takes all of them. Ids are all integers
(64 bits, signed) or all str. Fingerprints without information are never stored or found.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from neardup import _native
from neardup._native import SimhashValue as SimhashValue
from neardup._native import StreamIndex as StreamIndex
from neardup.checks import check_flag, check_threads, whole
from neardup.errors import ChangedFile, InvalidType, InvalidValue, SchemeMismatch, shown
from neardup.files import atomic_file, check_free, check_path, locked
from neardup.fingerprints import Fingerprints, check_bits, check_value
from neardup.pairs import Prints, arrays, as_prints, check_radius, unshared

Id = int | str


class Matches:
    """What was found: `query` (row of the queries), `id` and `distance`, parallel arrays.

    Sorted by query, then distance, then id. `id` is an int64 array, or an object array of str.
    """

    __slots__ = ("distance", "id", "query")

    def __init__(self, query: npt.NDArray[np.uint32], ids: Any, distance: npt.NDArray[np.uint16]) -> None:
        self.query = query
        self.id: npt.NDArray[Any] = ids if isinstance(ids, np.ndarray) else np.array(ids, dtype=object)
        self.distance = distance

    def __len__(self) -> int:
        return len(self.query)

    def __iter__(self) -> Iterator[tuple[int, Any, int]]:
        return zip(self.query.tolist(), self.id.tolist(), self.distance.tolist(), strict=True)

    def __repr__(self) -> str:
        return f"<{len(self)} matches>"


class _Origin(NamedTuple):
    """The file that an index was loaded from: by the given name, and with all links resolved."""

    path: str
    real: str
    stamp: bytes

    @classmethod
    def of(cls, path: str, stamp: bytes) -> _Origin:
        return cls(os.path.abspath(path), os.path.realpath(path), stamp)

    def names(self, path: str) -> bool:
        return os.path.abspath(path) == self.path or os.path.realpath(path) == self.real


class Index:
    """Fingerprints by id, searched exactly.

    What a search costs depends on the bits and the radius; which tables it looks at is chosen when
    fingerprints are added, and `segments` tells it. Without tables it compares with every fingerprint:
    so at radii that most fingerprints are nearly within, and where there are few of them.

    Many threads may search while one adds or removes; each search sees one state. An index can be
    pickled and copied: it travels as the bytes of its file, and is checked like a file.

    >>> index = Index(bits=64, radius=3)
    >>> index.add(["a", "b"], np.array([0b1010, 0b1111], dtype=np.uint64))
    >>> list(index.search(np.array([0b1011], dtype=np.uint64)))
    [(0, 'a', 1), (0, 'b', 1)]
    >>> index.remove(["a"]), index.search_one(0b1011)
    (1, [('b', 1)])
    """

    __slots__ = ("_index", "_origin", "bits", "digest", "radius")

    def __init__(self, bits: int = 64, radius: int = 3, *, digest: str | None = None) -> None:
        """An empty index. *radius* is the largest that `search` answers; *digest* names the scheme."""
        self.bits: int
        self.radius: int
        self.bits = check_bits(bits)
        self.radius = check_radius(radius, self.bits)
        if digest is not None and not isinstance(digest, str):
            raise InvalidType(f"digest must be a str, not {shown(digest)}")
        self._index = _native.HammingIndex(self.bits, self.radius)
        self._origin: _Origin | None = None
        self.digest: str | None = digest

    def __len__(self) -> int:
        return len(self._index)

    def __repr__(self) -> str:
        return f"<Index of {len(self)} fingerprints of {self.bits} bits, radius {self.radius}>"

    @property
    def nbytes(self) -> int:
        """Bytes of the fingerprints, their tables and the ids, mapped ones included."""
        return self._index.nbytes()

    @property
    def segments(self) -> list[tuple[int, list[tuple[int, int]]]]:
        """For each frozen segment its rows and its tables: bits of the key, radius of the block."""
        return self._index.segments()

    def add(self, ids: Iterable[Id], prints: Prints, *, threads: int | None = None) -> None:
        """Add one fingerprint for each id."""
        self._add(ids, prints, threads, replace=False)

    def add_one(self, id: Id, value: int) -> None:
        """Add one fingerprint, given as an integer."""
        name = _id(id)
        try:
            self._index.add_one(name, value)
        except (OverflowError, TypeError, AttributeError):
            check_value(value, self.bits)
            raise

    def update(self, ids: Iterable[Id], prints: Prints, *, threads: int | None = None) -> None:
        """Give each id this fingerprint in place of those it had, in one step."""
        self._add(ids, prints, threads, replace=True)

    def _add(self, ids: Iterable[Id], prints: Prints, threads: int | None, *, replace: bool) -> None:
        own = self._comparable(prints)
        names = every = _ids(ids)
        if len(names) != len(own):
            raise InvalidValue(f"{len(names)} ids for {len(own)} fingerprints; give one id for each")
        words, valid = arrays(own)
        if valid is not None:
            words = np.ascontiguousarray(words[valid])
            names = names[valid] if isinstance(names, np.ndarray) else _kept(names, valid)
        names = unshared(names) if isinstance(names, np.ndarray) else names
        if replace:
            every = unshared(every) if isinstance(every, np.ndarray) else every
            self._index.add(names, (words, None), check_threads(threads), every)
        else:
            self._index.add(names, (words, None), check_threads(threads), None)
        self.digest = self.digest or own.digest

    def remove(self, ids: Iterable[Id]) -> int:
        """Remove all fingerprints of these ids; returns how many there were. Unknown ids do not count."""
        return self._index.remove(_ids(ids))

    def remove_one(self, id: Id, value: int) -> int:
        """Remove one fingerprint of an id; returns how many there were."""
        name = _id(id)
        try:
            return self._index.remove_one(name, value)
        except (OverflowError, TypeError, AttributeError):
            check_value(value, self.bits)
            raise

    def search(self, prints: Prints, radius: int | None = None, *, threads: int | None = None) -> Matches:
        """Everything within *radius* of each query: the index's radius, or a smaller one."""
        own = self._comparable(prints)
        return Matches(*self._index.search(arrays(own), self._radius(radius), check_threads(threads)))

    def search_one(self, value: int, radius: int | None = None) -> list[tuple[Any, int]]:
        """(id, distance) of everything within *radius* of one integer, nearest first."""
        try:
            return self._index.search_one(value, self.radius if radius is None else self._radius(radius))
        except (OverflowError, TypeError, AttributeError):
            check_value(value, self.bits)
            raise

    def nearest(self, prints: Prints, n: int = 10, *, threads: int | None = None) -> Matches:
        """The *n* nearest of each query, at any distance; ties by id."""
        count = min(whole("n", n, 0), 2**32)
        own = self._comparable(prints)
        return Matches(*self._index.nearest(arrays(own), count, check_threads(threads)))

    def items(self) -> tuple[list[Any], Fingerprints]:
        """The ids and the fingerprints of everything in the index, in the order in which they came."""
        ids, words = self._index.items()
        names = ids.tolist() if isinstance(ids, np.ndarray) else ids
        return names, Fingerprints(words.reshape(-1, (self.bits + 63) // 64), bits=self.bits)

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = True) -> None:
        """Write the index to a file, whole or not at all; docs/formats/index.md describes it.

        An index that was loaded from *path* is saved there only if the file is still the one that was
        loaded or last saved; otherwise another program's changes would be lost: ChangedFile. Load it
        again and repeat the changes, or make them in `edit`, where nothing can come between. Any
        other file at *path* is replaced; with *overwrite* False it is an error. A link at *path* is
        replaced by the file, and what it points to stays.
        """
        name = check_path(path)
        check_free(name, overwrite=check_flag("overwrite", overwrite))
        with locked(name) as there:
            self._replace(name, there, overwrite)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, map: bool = True) -> Index:
        """The index of a file: every byte checked, then mapped into memory, not copied.

        While a mapped index is in use, its file must not be changed in place (`cp new.idx old.idx`
        does so); `save`, `mv` and other ways of putting a new file in its place do no harm. A call
        that finds the size or time of the file changed raises ChangedFile. What no program can
        detect is a file that is truncated in the middle of a call: the system ends the process (SIGBUS). With
        *map* False the file is read into memory, and what happens to it after that does not matter.
        """
        name = check_path(path)
        return cls._of(*_native.HammingIndex.load(name, check_flag("map", map)), path=name)

    @classmethod
    @contextmanager
    def edit(cls, path: str | os.PathLike[str], *, wait: bool = True) -> Iterator[Index]:
        """The index of a file, to be changed in a `with` block, and saved when the block ends.

        No other call of `edit` or `save` comes between: others wait for their turn, or with *wait*
        False get an error. A block that raises changes nothing.

            with Index.edit("news.idx") as index:
                index.add(ids, prints)
        """
        name = check_path(path)
        with locked(name, wait=check_flag("wait", wait)) as there:
            index = cls.load(name)
            yield index
            index._replace(name, there)

    def _replace(self, name: str, there: bool, overwrite: bool = True) -> None:
        """Put the index in the place of a file. Call it while holding its lock."""
        origin = self._origin if self._origin is not None and self._origin.names(name) else None
        if there and origin is not None and _native.index_stamp(name) != origin.stamp:
            raise ChangedFile(
                f"{name!r} was changed by another program since it was loaded; load it again and repeat"
            )
        with atomic_file(name, overwrite=overwrite) as file:
            stamp = self._index.write_to(file, self.digest or "")
        if origin is not None:
            self._origin = _Origin.of(name, stamp)

    @classmethod
    def _of(
        cls, native: _native.HammingIndex, digest: str, stamp: bytes, *, path: str | None = None
    ) -> Index:
        index = cls.__new__(cls)
        index._index, index.bits, index.radius = native, native.bits, native.radius
        index.digest = digest or None
        index._origin = None if path is None else _Origin.of(path, stamp)
        return index

    @classmethod
    def _restored(cls, data: bytes, origin: tuple[str, str, bytes] | None) -> Index:
        if not isinstance(data, bytes):
            raise InvalidType(f"an index is made of bytes, not {shown(data)}")
        index = cls._of(*_native.HammingIndex.read_from(data))
        index._origin = None if origin is None else _Origin(*origin)
        return index

    def __reduce__(self) -> tuple[Any, ...]:
        file = io.BytesIO()
        self._index.write_to(file, self.digest or "")
        origin = None if self._origin is None else tuple(self._origin)
        return type(self)._restored, (file.getvalue(), origin), getattr(self, "__dict__", None) or None

    def _comparable(self, prints: Prints) -> Fingerprints:
        own = as_prints(prints)
        if own.bits != self.bits:
            raise SchemeMismatch(
                f"the index holds {self.bits}-bit fingerprints, these have {own.bits} bits; "
                "fingerprint both with the same scheme"
            )
        if own.digest and self.digest and own.digest != self.digest:
            raise SchemeMismatch(
                f"the index was built with scheme {self.digest}, these fingerprints with {own.digest}; "
                "fingerprint both with the same scheme, or rebuild the index"
            )
        return own

    def _radius(self, radius: int | None) -> int:
        if radius is None:
            return self.radius
        radius = check_radius(radius, self.bits)
        if radius > self.radius:
            raise InvalidValue(
                f"the index answers up to radius {self.radius}, not {radius}; "
                f"build it with radius={radius}, or use nearest"
            )
        return radius


def _id(id: Id) -> Id:
    """One id, if it can be one; texts that cannot be stored would otherwise be taken for each other."""
    if type(id) is str and id.isascii():
        return id
    name = _ids([id])[0]
    return name if isinstance(name, str) else int(name)


def _ids(ids: Iterable[Id]) -> npt.NDArray[np.int64] | list[str]:
    """Ids as one int64 array, or one list of str."""
    if isinstance(ids, (str, bytes)):
        raise InvalidType(f"ids must be several, not one {type(ids).__name__}; use [{shown(ids)}]")
    if isinstance(ids, np.ndarray) and ids.ndim != 1:
        raise InvalidValue(f"ids must have shape (n,), not {ids.shape}")
    if isinstance(ids, np.ndarray) and ids.dtype.kind in "iu":
        if ids.dtype == np.dtype(np.uint64) and len(ids) and int(ids.max()) >= 2**63:
            raise InvalidValue(f"an id must be below 2**63, not {int(ids.max())}; use str for larger ones")
        return np.ascontiguousarray(ids, dtype=np.int64)
    try:
        names: list[Any] = ids.tolist() if isinstance(ids, np.ndarray) else list(ids)
    except TypeError:
        raise InvalidType(f"ids must be integers or str, not {type(ids).__name__}") from None
    if names and not isinstance(names[0], (str, int, np.integer)) and hasattr(names[0], "as_py"):
        names = [name.as_py() for name in names]  # Arrow scalars
    if all(isinstance(name, str) for name in names):
        for name in names:
            if not name.isascii():
                try:
                    name.encode()
                except UnicodeEncodeError:
                    raise InvalidValue(
                        f"the id {shown(name)} is not valid text; it cannot be stored"
                    ) from None
        return names if names else np.zeros(0, dtype=np.int64)
    for name in names:
        if isinstance(name, bool) or not isinstance(name, (int, np.integer)):
            raise InvalidType(f"ids must be all integers or all str, not {shown(name)}")
        if not -(2**63) <= name < 2**63:
            raise InvalidValue(
                f"an id must be a signed 64-bit integer, not {shown(name)}; use str for larger ones"
            )
    return np.array(names, dtype=np.int64)


def _kept(names: list[str], valid: npt.NDArray[np.bool_]) -> list[str]:
    return [name for name, keep in zip(names, valid.tolist(), strict=True) if keep]
