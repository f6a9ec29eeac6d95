"""Files of fingerprints: what `neardup fingerprint` writes, and plain lines.

Parquet and Arrow hold `id` and `fingerprint` (fixed-size binary, little-endian); JSONL and CSV
hold the fingerprint as text. Any other file, and standard input, has one fingerprint per line, in
hex or decimal; its id is the line's number, counted from 0.
"""

from __future__ import annotations

import csv
import os
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import orjson
import pyarrow as pa

from neardup.errors import InvalidType, InvalidValue, RefusedInput
from neardup.fingerprints import Fingerprints, check_bits, parse

STDIN = "-"


def read(path: str, bits: int | None = None) -> tuple[list[str] | np.ndarray[Any, Any], Fingerprints]:
    """The ids and fingerprints of a file; *bits* is needed only if the file does not state it."""
    ending = os.path.splitext(path)[1].lower()
    try:
        if ending in (".parquet", ".arrow", ".feather"):
            return _table(path, ending, bits)
        with sys.stdin.buffer if path == STDIN else open(path, "rb") as file:
            data = file.read()
    except pa.ArrowException as error:
        raise RefusedInput(f"{path}: not readable: {str(error).splitlines()[0]}") from None
    try:
        lines = data.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise RefusedInput(f"{path}: not UTF-8 at byte {error.start}") from None
    rows: Iterator[tuple[int, str | None, str | None]]
    if ending in (".jsonl", ".ndjson"):
        rows = _jsonl(path, lines)
    elif ending in (".csv", ".tsv"):
        rows = _csv(path, lines, "\t" if ending == ".tsv" else ",")
    else:
        rows = ((number, None, line.strip()) for number, line in enumerate(lines, 1) if line.strip())
    return _texts(path, rows, bits)


def _texts(
    path: str, rows: Iterator[tuple[int, str | None, str | None]], bits: int | None
) -> tuple[list[str] | np.ndarray[Any, Any], Fingerprints]:
    names: list[str] = []
    values: list[int | None] = []
    for number, name, text in rows:
        if name is not None:
            names.append(name)
        if text is None:
            values.append(None)
            continue
        if bits is None:
            bits = _width(text)
        try:
            values.append(parse(text, bits))
        except (InvalidValue, InvalidType) as error:
            raise RefusedInput(f"{path}, line {number}: {error}") from None
    prints = Fingerprints.of(values, bits=64 if bits is None else check_bits(bits))
    return (names if names else np.arange(len(values), dtype=np.int64)), prints


def _width(text: str) -> int:
    """Hexadecimal digits show the width; decimal ones (or fewer than 16) mean 64 bits."""
    digits = len(text) - 2 if text[:2] in ("0x", "0X") else len(text)
    return digits * 4 if digits >= 16 and digits % 16 == 0 else 64


def _jsonl(path: str, lines: list[str]) -> Iterator[tuple[int, str | None, str | None]]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = orjson.loads(line)
            name, text = row["id"], row["fingerprint"]
        except (ValueError, KeyError, TypeError):
            raise RefusedInput(f"{path}, line {number}: not an object with id and fingerprint") from None
        if isinstance(text, int):
            text = str(text)
        if text is not None and not isinstance(text, str):
            raise RefusedInput(f"{path}, line {number}: the fingerprint must be text, not {text!r}")
        yield number, str(name), text


def _csv(path: str, lines: list[str], comma: str) -> Iterator[tuple[int, str | None, str | None]]:
    reader = csv.DictReader(lines, delimiter=comma)
    if not {"id", "fingerprint"} <= set(reader.fieldnames or ()):
        raise RefusedInput(f"{path}: needs the columns id and fingerprint")
    try:
        for row in reader:
            yield reader.line_num, row["id"] or "", row["fingerprint"] or None
    except csv.Error as error:
        raise RefusedInput(f"{path}, line {reader.line_num}: {error}") from None


def _table(path: str, ending: str, bits: int | None) -> tuple[list[str] | np.ndarray[Any, Any], Fingerprints]:
    if ending == ".parquet":
        import pyarrow.parquet as pq

        table = pq.read_table(path)
    else:
        with pa.OSFile(path) as file:
            table = pa.ipc.open_file(file).read_all()
    if not {"id", "fingerprint"} <= set(table.column_names):
        raise RefusedInput(f"{path}: needs the columns id and fingerprint")
    about = {key.decode(): value.decode() for key, value in (table.schema.metadata or {}).items()}
    column = table.column("fingerprint")
    ids = table.column("id")
    names: list[str] | np.ndarray[Any, Any]
    if pa.types.is_integer(ids.type) and not ids.null_count:
        names = ids.to_numpy()
    else:
        names = [str(name) for name in ids.to_pylist()]
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        texts = ((row, None, text) for row, text in enumerate(column.to_pylist(), 1))
        return names, _texts(path, texts, bits)[1]
    stated = about.get("neardup.bits", "")
    width = int(stated) if stated.isdecimal() else bits
    return names, Fingerprints.from_arrow(column, bits=width, digest=about.get("neardup.digest"))
