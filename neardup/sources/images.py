"""Image files: each is one document, its path is its id.

A document's text is the SHA-256 of its file; what is compared is the thumbnail. What was decoded
once is remembered in the user's cache by path, size, time and inode, so that a second reading, or a
second run, decodes only what changed.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import groupby, islice
from typing import Any, Final

import numpy as np
import pyarrow as pa

from neardup.checks import cores
from neardup.images.sharpness import sharpness
from neardup.images.thumbs import THUMB, WHOLE, BadImage, Box, NoDecoder, border_share, decode, inner_pixels
from neardup.sources.files import File
from neardup.sources.limits import DEFAULT, size
from neardup.sources.options import Request
from neardup.sources.reading import Report, batch_of
from neardup.sources.streams import Broken
from neardup.threads import Pool
from neardup.types import Bad, Batch

VERSION: Final = 6  # raised when the same file gives another thumbnail
CHUNK: Final = 256
FIELDS: Final = {
    "pixels": pa.int64(),
    "inner_pixels": pa.int64(),
    "width": pa.int64(),
    "height": pa.int64(),
    "bytes": pa.int64(),
    "exif": pa.string(),
    "sharpness": pa.int64(),
    "border": pa.int64(),
    "modified": pa.float64(),
    "path": pa.string(),
}


@dataclass(frozen=True, slots=True)
class Known:
    """What is remembered of a file; *fault* says why it is not an image."""

    sha256: str
    width: int = 0
    height: int = 0
    taken: str | None = None
    reduced: bool = False
    thumb: bytes = b""
    box: Box = WHOLE
    fault: str | None = None


Key = tuple[bytes, int, int, int]  # path, size, time, inode


def read(file: File, request: Request, bad: Report) -> Iterator[Batch]:
    """The one image of *file*."""
    return read_all([file], request, bad)


def read_all(files: Iterable[File], request: Request, bad: Report) -> Iterator[Batch]:
    """The images of many files, in batches. An image's place is its file's number below the root."""
    cache = Cache()
    workers = Pool(cores())
    try:
        for root, found in groupby(files, key=lambda file: file.root):
            numbered = enumerate(found, 1)
            while chunk := list(islice(numbered, CHUNK)):
                batch = _batch(chunk, root, request, bad, cache, workers)
                if len(batch):
                    yield batch
    finally:
        workers.shutdown()
        cache.close()


def _batch(
    chunk: Sequence[tuple[int, File]],
    root: str,
    request: Request,
    bad: Report,
    cache: Cache,
    workers: Pool,
) -> Batch:
    keys = [_key(file) for _, file in chunk]
    known = cache.get([key for key in keys if key is not None])
    missing = [
        (key, file) for key, (_, file) in zip(keys, chunk, strict=True) if key is None or key not in known
    ]
    made = list(workers.map(lambda pair: _look(pair[1], request), missing))
    fresh: dict[int, Known | Broken] = {id(file): one for (_, file), one in zip(missing, made, strict=True)}
    cache.put(
        [(key, one) for (key, _), one in zip(missing, made, strict=True) if key and isinstance(one, Known)]
    )
    rows: list[tuple[int, File, Known, Key | None]] = []
    for key, (number, file) in zip(keys, chunk, strict=True):
        one = fresh.get(id(file)) or known[key]  # type: ignore[index]
        if isinstance(one, Broken):
            bad(Bad(file.name, None, None, one.reason))
            continue
        file.digest = one.sha256
        file.reduced = None if one.fault is not None else one.reduced
        file.bytes = key[1] if key else file.bytes
        if one.fault is not None or one.width * one.height > request.limits.pixels:
            fault = (
                one.fault or f"has {one.width * one.height:,} pixels; the limit is {request.limits.pixels:,}"
            )
            bad(Bad(file.name, None, None, fault))
        else:
            rows.append((number, file, one, key))
    fields = None
    if request.fields:
        values = [_fields(file, one, key) for _, file, one, key in rows]
        if "sharpness" in request.fields:
            measured = _sharpness(
                [(file, one, key) for _, file, one, key in rows], request.limits.text, cache, workers
            )
            values = [row | {"sharpness": value} for row, value in zip(values, measured, strict=True)]
        columns = [
            pa.array([row.get(name) for row in values], FIELDS.get(name, pa.null()))
            for name in request.fields
        ]
        fields = pa.RecordBatch.from_arrays(columns, list(request.fields))
    thumbs = np.frombuffer(b"".join(one.thumb for _, _, one, _ in rows), dtype=np.uint8)
    batch = batch_of(
        [file.id for _, file, _, _ in rows],
        [one.sha256 for _, _, one, _ in rows],
        [number for number, _, _, _ in rows],
        file=root,
        fields=fields,
    )
    return replace(batch, format="image", images=thumbs.reshape(-1, THUMB))


def _fields(file: File, one: Known, key: Key | None) -> dict[str, Any]:
    return {
        "pixels": one.width * one.height,
        "inner_pixels": inner_pixels(one.width, one.height, one.box),
        "border": border_share(one.box),
        "width": one.width,
        "height": one.height,
        "bytes": file.bytes,
        "exif": one.taken,
        "modified": None if key is None else key[2] / 1e9,
        "path": file.path if file.path.isprintable() else file.id,
    }


def _sharpness(
    rows: Sequence[tuple[File, Known, Key | None]], limit: int, cache: Cache, workers: Pool
) -> list[int | None]:
    """How sharp images are: another decoding, at a larger scale, done only where it is wanted."""
    known = cache.sharpness([key for _, _, key in rows if key is not None])
    missing = [row for row in rows if row[2] is None or row[2] not in known]

    def look(row: tuple[File, Known, Key | None]) -> int | None:
        try:
            return sharpness(_data(row[0], limit), row[1].box)
        except (Broken, OSError):
            return None  # it was there a moment ago; whoever reads it next will say so

    fresh = dict(zip((id(file) for file, _, _ in missing), workers.map(look, missing), strict=True))
    cache.put_sharpness([(key, fresh[id(file)]) for file, _, key in missing if key is not None])
    return [fresh[id(file)] if id(file) in fresh else known[key] for file, _, key in rows]  # type: ignore[index]


def _key(file: File) -> Key | None:
    try:
        status = os.lstat(file.path) if file.walked else os.stat(file.path)
    except (OSError, ValueError):
        return None
    path = os.fsencode(os.path.abspath(file.path))
    return path, status.st_size, status.st_mtime_ns, status.st_ino


def _look(file: File, request: Request) -> Known | Broken:
    """Read and decode a file."""
    try:
        data = _data(file, request.limits.text)
    except Broken as error:
        return error
    except OSError as error:
        return Broken(f"cannot be read: {error.strerror}")
    digest = hashlib.sha256(data).hexdigest()
    if not data:
        return Known(digest, fault="is empty")
    try:
        found = decode(data, limit=request.limits.pixels)
    except NoDecoder as error:
        return Broken(str(error))  # not remembered: it may be installed
    except BadImage as error:
        if request.limits.pixels != DEFAULT.pixels:
            return Broken(str(error))  # another limit may say otherwise: not remembered
        return Known(digest, fault=str(error))
    return Known(digest, found.width, found.height, found.taken, found.reduced, found.thumb, found.box)


def _data(file: File, limit: int) -> bytes:
    """The bytes of a file; raises what is wrong with it."""
    if file.size > limit:
        raise Broken(f"is {size(file.size)}; the limit is {size(limit)} for an image")
    with file.open() as stream:
        pieces = []
        while piece := stream.read(1 << 22):
            pieces.append(piece)
    return b"".join(pieces)


def cache_folder() -> str:
    """Where images are remembered: NEARDUP_CACHE, or the user's cache folder."""
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.environ.get("NEARDUP_CACHE") or os.path.join(home, "neardup")


class Cache:
    """Images that were decoded before. Without a place to write it, every reading decodes anew."""

    def __init__(self, path: str | None = None) -> None:
        self._base: sqlite3.Connection | None = None
        path = os.path.join(cache_folder(), f"pictures-{VERSION}.sqlite") if path is None else path
        with suppress(OSError, sqlite3.Error):
            os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
            base = sqlite3.connect(path, timeout=10, isolation_level=None, check_same_thread=False)
            base.execute("pragma journal_mode = wal")
            base.execute("pragma synchronous = normal")
            base.execute(
                "create table if not exists pictures (path blob primary key, size, modified, inode, sha256, "
                "width, height, taken, reduced, thumb blob, fault, left, top, right, bottom) without rowid"
            )
            base.execute(
                "create table if not exists sharpness (path blob primary key, size, modified, inode, value) "
                "without rowid"
            )
            self._base = base

    def get(self, keys: Sequence[Key]) -> dict[Key, Known]:
        """What is known of files that did not change."""
        found: dict[Key, Known] = {}
        if self._base is None:
            return found
        with suppress(sqlite3.Error):
            for key in keys:
                row = self._base.execute(
                    "select sha256, width, height, taken, reduced, thumb, fault, left, top, right, bottom "
                    "from pictures "
                    "where path = ? and size = ? and modified = ? and inode = ?",
                    key,
                ).fetchone()
                if row is not None and (row[6] is not None or len(row[5]) == THUMB):
                    found[key] = Known(row[0], row[1], row[2], row[3], bool(row[4]), row[5], row[7:], row[6])
        return found

    def put(self, rows: Sequence[tuple[Key, Known]]) -> None:
        """Remember files."""
        if self._base is None or not rows:
            return
        with suppress(sqlite3.Error):
            self._base.execute("begin")
            self._base.executemany(
                f"insert or replace into pictures values ({', '.join('?' * 15)})",
                [
                    (
                        *key,
                        *(one.sha256, one.width, one.height, one.taken, one.reduced, one.thumb, one.fault),
                        *one.box,
                    )
                    for key, one in rows
                ],
            )
            self._base.execute("commit")

    def sharpness(self, keys: Sequence[Key]) -> dict[Key, int | None]:
        """How sharp files are that did not change since that was measured."""
        found: dict[Key, int | None] = {}
        if self._base is None:
            return found
        with suppress(sqlite3.Error):
            for key in keys:
                row = self._base.execute(
                    "select value from sharpness where path = ? and size = ? and modified = ? and inode = ?",
                    key,
                ).fetchone()
                if row is not None:
                    found[key] = row[0]
        return found

    def put_sharpness(self, rows: Sequence[tuple[Key, int | None]]) -> None:
        """Remember how sharp files are."""
        if self._base is None or not rows:
            return
        with suppress(sqlite3.Error):
            self._base.execute("begin")
            self._base.executemany(
                "insert or replace into sharpness values (?, ?, ?, ?, ?)",
                [(*key, value) for key, value in rows],
            )
            self._base.execute("commit")

    def close(self) -> None:
        if self._base is not None:
            self._base.close()
            self._base = None
