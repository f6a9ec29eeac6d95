"""Checkpoints: the finished parts of a run, so that a killed one goes on where it stopped.

A part is an Arrow file that appears when it is complete. It carries the key of its run (the
settings and the inputs): parts of another run are not used.
"""

from __future__ import annotations

import os
import shutil
from typing import Any

import pyarrow as pa

from neardup.sinks.atomic import atomic_file

_KEY = b"neardup.run"


class Checkpoints:
    """The parts of one run in a folder; without a folder nothing is kept."""

    def __init__(self, folder: str | None, key: str) -> None:
        self._folder, self._key = folder, key.encode()
        if folder is not None:
            os.makedirs(folder, exist_ok=True)

    def load(self, name: str) -> pa.Table | None:
        """A finished part, or None."""
        if self._folder is None:
            return None
        try:
            with pa.OSFile(self._path(name)) as file:
                table = pa.ipc.open_file(file).read_all()
        except (FileNotFoundError, pa.ArrowInvalid):
            return None
        found = table.schema.metadata or {}
        if found.get(_KEY) != self._key:
            return None
        rest = {key: value for key, value in found.items() if key != _KEY}
        return table.replace_schema_metadata(rest or None)

    def save(self, name: str, table: pa.Table) -> None:
        """Keep a part; it is on the disk when this returns."""
        if self._folder is None:
            return
        table = table.replace_schema_metadata({**(table.schema.metadata or {}), _KEY: self._key})
        with atomic_file(self._path(name), overwrite=True) as file:
            writer: Any = pa.ipc.new_file(pa.PythonFile(file, mode="w"), table.schema)
            writer.write_table(table)
            writer.close()

    def drop(self) -> None:
        """Remove all parts: the run is done."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _path(self, name: str) -> str:
        assert self._folder is not None
        return os.path.join(self._folder, name + ".arrow")
