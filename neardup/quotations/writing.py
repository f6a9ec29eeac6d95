"""The folder of what was found: tables, a page, and the summary, which comes last (docs/formats/leaks.md)."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa

from neardup import __version__
from neardup.checks import check_flag, check_text
from neardup.errors import InvalidValue, LimitReached, Said, Setting, UnknownName
from neardup.files import atomic_file, check_folder, check_path
from neardup.quotations.defaults import FORMATS
from neardup.quotations.model import Leaks
from neardup.quotations.page import render
from neardup.sinks.tables import open_sink

SUMMARY: Final = "summary.json"
PAGE: Final = "report.html"
TABLES: Final = ("leaks", "test", "train")
# Rows that are written at a time.
STEP: Final = 1 << 14


def names_of(format: str) -> list[str]:
    """The files of a folder, the last one the summary.

    >>> names_of("jsonl")
    ['leaks.jsonl', 'test.jsonl', 'train.jsonl', 'report.html', 'summary.json']
    """
    if format not in FORMATS:
        raise UnknownName(f"unknown format {format!r} of tables; known: {', '.join(FORMATS)}")
    return [*(f"{name}.{format}" for name in TABLES), PAGE, SUMMARY]


def check_out(folder: str, format: str = "parquet", *, overwrite: bool = False) -> None:
    """Raise if the results cannot go to *folder*; before the work begins."""
    check_folder(folder)
    names_of(format)
    every = {name for one in FORMATS for name in names_of(one)}
    there = sorted(every & set(os.listdir(folder))) if os.path.isdir(folder) else []
    if there and not overwrite:
        raise InvalidValue(
            Said(
                f"{os.path.join(folder, there[0])!r} exists; choose another folder, or use ",
                Setting("overwrite"),
            )
        )
    if there and not _is_ours(folder):
        raise InvalidValue(
            f"{os.path.join(folder, there[0])!r} exists and was not written by leaks; choose another folder"
        )


def _is_ours(folder: str) -> bool:
    """Whether the summary in *folder* says that its files are of an earlier search."""
    try:
        with open(os.path.join(folder, SUMMARY), "rb") as file:
            found = json.load(file)
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(found, dict) and found.get("kind") == "leaks"


def write_leaks(
    found: Leaks,
    folder: str | os.PathLike[str],
    *,
    format: str = "parquet",
    overwrite: bool = False,
    inputs: Mapping[str, Any] | None = None,
) -> None:
    """Write the tables, the page and the summary to *folder*; *inputs* is added to the summary."""
    out = check_path(folder)
    check_text("format", format)
    check_flag("overwrite", overwrite)
    check_out(out, format, overwrite=overwrite)
    try:
        os.makedirs(out, exist_ok=True)
    except OSError as error:
        raise LimitReached(f"no folder can be made at {out!r}: {error.strerror}") from None
    # Without a summary the folder is not finished; tables of another format would be of another search.
    for name in {name for one in FORMATS for name in names_of(one)} if overwrite else ():
        if os.path.lexists(os.path.join(out, name)) and name != SUMMARY:
            os.unlink(os.path.join(out, name))
    names = names_of(format)
    tables: tuple[pa.Table, ...] = (found.leaks, found.test, found.train)
    for name, table in zip(names, tables, strict=False):
        with open_sink(os.path.join(out, name), table.schema, overwrite=overwrite) as sink:
            for batch in table.to_batches(max_chunksize=STEP):
                sink.write(batch)
    with atomic_file(os.path.join(out, PAGE), overwrite=overwrite) as file:
        file.write(render(found).encode())
    told = {"kind": "leaks", "neardup": __version__, **found.summary, **(inputs or {}), "outputs": names[:-1]}
    with atomic_file(os.path.join(out, SUMMARY), overwrite=overwrite) as file:
        file.write(
            (json.dumps(told, indent=2, ensure_ascii=False) + "\n").encode("utf-8", "backslashreplace")
        )
