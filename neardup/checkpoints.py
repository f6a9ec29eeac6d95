"""Checkpoints: the finished parts of a run, so that a killed one resumes where it stopped.

A part is an Arrow file that appears when it is complete, followed by a checksum of all its
bytes. It carries the key of its run (the settings and the inputs): parts of another run, and damaged
ones, are not used. A run may leave its parts to be remembered: the same run over unchanged inputs
then has nothing left to find out.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Final

import pyarrow as pa

from neardup.files import atomic_file
from neardup.sizes import USUAL

_KEY: Final = b"neardup.run"
_SUM: Final = 32
REMEMBERED: Final = 32  # runs, the latest ones


class Checkpoints:
    """The parts of one run in a folder; without a folder nothing is kept."""

    def __init__(self, folder: str | None, key: str, *, seconds: float = USUAL.checkpoint_seconds) -> None:
        """A part is due when the last one is *seconds* old."""
        self.folder = folder
        self._seconds = seconds
        self._key = key.encode()
        self._remembered: str | None = None
        self._saved = time.monotonic()
        if folder is not None:
            os.makedirs(folder, exist_ok=True)

    def remember(self, folder: str) -> None:
        """Leave the parts in *folder* when the run is done, and use what the same run left there."""
        self._remembered = folder

    @property
    def remembers(self) -> bool:
        """Whether the parts outlive their run."""
        return self._remembered is not None

    def due(self, *, complete: bool) -> bool:
        """Whether a part is worth writing: for what a kill would cost, or for the next run."""
        if self.folder is None:
            return False
        old = time.monotonic() - self._saved > self._seconds
        return old or (complete and self.remembers)

    def load(self, name: str) -> pa.Table | None:
        """A finished part, or None."""
        found = None if self.folder is None else self._read(self._path(name))
        if found is None and self._remembered is not None:
            found = self._read(os.path.join(self._remembered, name + ".arrow"))
        return found

    def opened(self, name: str) -> pa.Table | None:
        """A finished part, mapped from its file: it need not fit into memory."""
        if self.folder is None:
            return None
        try:
            with open(self._path(name), "rb") as file:
                size = os.fstat(file.fileno()).st_size - _SUM
                found, left = hashlib.blake2b(digest_size=_SUM), size
                while left > 0 and (piece := file.read(min(left, 1 << 20))):
                    found.update(piece)
                    left -= len(piece)
                if found.digest() != file.read():
                    return None
            mapped = pa.memory_map(self._path(name))
            return self._own(pa.ipc.open_file(pa.BufferReader(mapped.read_buffer(size))).read_all())
        except (OSError, ValueError, pa.ArrowException):
            return None

    def _read(self, path: str) -> pa.Table | None:
        try:
            with open(path, "rb") as file:
                data = memoryview(file.read())
            if hashlib.blake2b(data[:-_SUM], digest_size=_SUM).digest() != data[-_SUM:]:
                return None
            table = pa.ipc.open_file(pa.py_buffer(data[:-_SUM])).read_all()
        except (OSError, pa.ArrowException):
            return None
        return self._own(table)

    def _own(self, table: pa.Table) -> pa.Table | None:
        """*table* without the key that it carries, if that is the key of this run."""
        found = table.schema.metadata or {}
        if found.get(_KEY) != self._key:
            return None
        rest = {key: value for key, value in found.items() if key != _KEY}
        return table.replace_schema_metadata(rest or None)

    def save(self, name: str, table: pa.Table) -> None:
        """Keep a part; it is on the disk when this returns."""
        self.save_batches(name, table.schema, table.to_batches())

    def save_batches(self, name: str, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
        """The same for a part that is made piece by piece."""
        if self.folder is None:
            return
        schema = schema.with_metadata({**(schema.metadata or {}), _KEY: self._key})
        with atomic_file(self._path(name), overwrite=True) as file:
            writer: Any = pa.ipc.new_file(pa.PythonFile(file, mode="w"), schema)
            for batch in batches:
                writer.write_batch(batch)
            writer.close()
            file.seek(0)
            found = hashlib.blake2b(digest_size=_SUM)
            while piece := file.read(1 << 20):
                found.update(piece)
            file.write(found.digest())
        self._saved = time.monotonic()

    def forget(self, name: str) -> None:
        """Remove a part that another one has replaced."""
        if self.folder is not None:
            with suppress(OSError):
                os.unlink(self._path(name))

    def forget_others(self, prefix: str, name: str) -> None:
        """Remove the parts whose names begin with *prefix* and a hyphen, except the one called *name*."""
        for file in os.listdir(self.folder) if self.folder is not None else ():
            part = file.removesuffix(".arrow")
            if part.startswith(prefix + "-") and part != name and part != file:
                self.forget(part)

    def drop(self) -> None:
        """Remove all parts, or remember them: the run is done."""
        if self._remembered is not None and self.folder is not None:
            with suppress(OSError):  # without a place to write it, nothing is remembered
                _keep(self.folder, self._remembered)
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _path(self, name: str) -> str:
        assert self.folder is not None
        return os.path.join(self.folder, name + ".arrow")


def _keep(folder: str, remembered: str) -> None:
    os.makedirs(remembered, mode=0o700, exist_ok=True)
    for name in os.listdir(folder):
        if name.endswith(".arrow"):
            shutil.move(os.path.join(folder, name), os.path.join(remembered, name))
    os.utime(remembered)
    runs = sorted(os.scandir(os.path.dirname(remembered)), key=lambda one: one.stat().st_mtime_ns)
    for old in runs[:-REMEMBERED]:
        shutil.rmtree(old.path, ignore_errors=True)
