"""Copies of a collection: backup and restore, export, and the check of every byte."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from neardup.collections.kinds import kind_of
from neardup.collections.shelves import Shelf
from neardup.errors import DamagedFile, InvalidValue, NeardupError, shown
from neardup.files import atomic_file
from neardup.store import CONTENTS, DOCUMENTS, PRINTS, Content, Document, Store

STEP: Final = 500
FORMATS: Final = {".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet"}


def stored(shelf: Shelf, banks: frozenset[str], now: int, lock: Any) -> Iterator[tuple[Document, Content]]:
    """The documents of some banks that have not expired at *now*, each with its content, as they came."""
    last, count, first = 0, 0, None
    while True:
        with lock, shelf.store.base.reading():
            rows = shelf.store.rows(DOCUMENTS, "number > ?", [last], f"ORDER BY number LIMIT {STEP}")
            count += len(rows)
            state = shelf.store.last_state()
            first = state if first is None else first
            contents = {
                row.number: row for row in shelf.store.find(CONTENTS, "number", {one.content for one in rows})
            }
        for row in rows:
            if row.bank in banks and (row.expires is None or row.expires > now):
                if row.content not in contents:
                    raise shelf.store.damaged(f"the content of document {row.id!r} is missing")
                yield row, contents[row.content]
        if len(rows) < STEP:
            if state == first and count != state.documents:
                raise shelf.store.damaged(f"it has {state.documents:,} documents, and {count:,} are found")
            return
        last = rows[-1].number


# --- export ----------------------------------------------------------------------------------------------


def export(
    shelf: Shelf, path: str, banks: frozenset[str], format: str | None, lock: Any, *, overwrite: bool
) -> int:
    """Write documents to a file; how many they are."""
    if format is None:
        format = FORMATS.get(os.path.splitext(path)[1].lower(), "")
    if format not in FORMATS.values():
        raise InvalidValue(f"{shown(path)} is written as .jsonl or .parquet; name it so, or say the format")
    rows = stored(shelf, banks, shelf.now, lock)
    count = 0
    with atomic_file(path, overwrite=overwrite) as file:
        if format == "jsonl":
            for row, content in rows:
                file.write(json.dumps(record_of(shelf, row, content), ensure_ascii=False).encode() + b"\n")
                count += 1
            return count
        # The fields of documents differ, so they are one column of JSON.
        schema = pa.schema(
            [(name, pa.large_string()) for name in ("id", "bank", "kind", "text", "image", "fields")]
            + [("cluster", pa.int64())]
        )
        with pq.ParquetWriter(file, schema) as writer:
            while part := list(islice(rows, STEP)):
                count += len(part)
                writer.write_table(pa.Table.from_pylist([_columns(shelf, *one) for one in part], schema))
    return count


def record_of(shelf: Shelf, row: Document, content: Content) -> dict[str, Any]:
    """A document as a record: what neardup knows of it, and its fields, which go before that."""
    found: dict[str, Any] = {"bank": row.bank, "cluster": content.cluster, **json.loads(row.fields)}
    return found | {"id": row.id, content.kind: _value(shelf, content)}


def _value(shelf: Shelf, content: Content) -> Any:
    data = shelf.data(content)
    return data.decode() if content.kind == "text" else kind_of(content.kind).fields(data)


def _columns(shelf: Shelf, row: Document, content: Content) -> dict[str, Any]:
    value = _value(shelf, content)
    return {
        "id": row.id,
        "bank": row.bank,
        "kind": content.kind,
        content.kind: value if isinstance(value, str) else json.dumps(value),
        "fields": row.fields.decode(),
        "cluster": content.cluster,
    }


# --- backup ----------------------------------------------------------------------------------------------


def backup(shelf: Shelf, path: str) -> None:
    """Write a whole copy to a new folder, and check it."""
    if shelf.store.base.read_only:
        raise InvalidValue(
            f"{shelf.store.name!r} was opened with read_only=True; the one that writes it makes the backup"
        )
    there = os.path.isdir(path)
    try:
        shelf.store.base.copy(path)
        made = Store.open(path, read_only=True)
        try:
            if found := made.problems():
                raise DamagedFile(f"the copy {path!r} is damaged: {found[0]}; is {shelf.store.name!r} whole?")
        finally:
            made.close()
    except BaseException:
        if not there:
            shutil.rmtree(path, ignore_errors=True)
        raise


def restore(source: str, path: str) -> None:
    """Make a new collection in the folder *path* of a backup, every byte of which is checked first."""
    store = Store.open(source, read_only=True)
    try:
        if found := store.problems():
            raise DamagedFile(f"{source!r} is damaged: {found[0]}; take another backup")
        store.base.copy(path)
    finally:
        store.close()
    Store.open(path, as_new=True).close()


# --- check -----------------------------------------------------------------------------------------------


def problems(shelf: Shelf) -> list[str]:
    """What is not as it was written; and what does not fit together, row by row."""
    store = shelf.store
    found = list(store.problems())
    if found:
        return found
    try:
        uses: dict[int, int] = {}
        for row in store.scan(DOCUMENTS):
            uses[row.content] = uses.get(row.content, 0) + 1
        for content in store.scan(CONTENTS):
            if uses.pop(content.number, 0) != content.uses:
                found.append(f"content {content.number} has another number of documents than it says")
            shelf.data(content)
        found += [f"content {number} is missing" for number in uses]
        for live in shelf.lives.values():
            own = [
                row for row in store.scan(PRINTS, by="content") if row.generation == live.generation.number
            ]
            if len(own) != len(live.index):
                found.append(f"the index has {len(live.index):,} fingerprints and the store {len(own):,}")
    except NeardupError as error:
        found.append(str(error))
    return found
