"""What was found of a test set in a training set: the tables, and what each row says."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa

from neardup.types import Bad
from neardup.wording import counted

DOCUMENT: Final = "document"
PASSAGE: Final = "passage"

LEAKS: Final = pa.schema(
    [
        ("test", pa.string()),
        ("train", pa.string()),
        ("kind", pa.string()),
        ("reason", pa.string()),
        ("similarity", pa.float64()),
        ("words", pa.int64()),
        ("test_start", pa.int64()),
        ("test_end", pa.int64()),
        ("train_start", pa.int64()),
        ("train_end", pa.int64()),
        ("train_documents", pa.int64()),
        ("passage", pa.string()),
    ]
)
TEST: Final = pa.schema(
    [
        ("id", pa.string()),
        ("words", pa.int64()),
        ("leaked_words", pa.int64()),
        ("passages", pa.int64()),
        ("train_documents", pa.int64()),
        ("document", pa.bool_()),
        ("train", pa.string()),
    ]
)
TRAIN: Final = pa.schema(
    [("id", pa.string()), ("words", pa.int64()), ("leaked_words", pa.int64()), ("document", pa.bool_())]
)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a passage stands in a training document, in characters."""

    id: str
    start: int
    end: int
    words: int


@dataclass(frozen=True, slots=True)
class StretchView:
    """Words of a test document that training documents have, and what stands around them."""

    before: str
    text: str
    after: str
    left_out: int
    """Characters of a long one that are not shown."""
    words: int
    start: int
    end: int
    train_documents: int
    first: str
    """The first training document that has its most common run."""
    places: Sequence[Place]


@dataclass(frozen=True, slots=True)
class TestView:
    """A test document, as the page shows it."""

    id: str
    words: int
    leaked_words: int
    documents: Sequence[tuple[str, str, float]]
    """Training documents that are nearly the same: id, reason, similarity."""
    stretches: Sequence[StretchView]
    more: int
    """Stretches that are not shown."""


@dataclass(frozen=True, slots=True, eq=False)
class Leaks:
    """What of a test set is in a training set."""

    summary: Mapping[str, Any]
    leaks: pa.Table
    """One row for each training document that is a near-duplicate of a test document, and per passage."""
    test: pa.Table
    """One row for each test document, in their order."""
    train: pa.Table
    """One row for each training document that shares something, in their order."""
    views: Sequence[TestView] = field(default=(), repr=False)
    """What the page shows: the test documents of which most was found."""
    bad: Sequence[Bad] = field(default=(), repr=False)
    """The first 1,000 records that could not be used."""

    @property
    def found(self) -> bool:
        """Whether anything of the test set is in the training set."""
        return bool(self.summary["test_leaked"])

    def report(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write a page that shows what was found."""
        from neardup.quotations.page import write_page

        write_page(self, path, overwrite=overwrite)

    def write(
        self, folder: str | os.PathLike[str], *, table: str = "parquet", overwrite: bool = False
    ) -> None:
        """Write the tables, the page and a summary, as the command line does."""
        from neardup.quotations.writing import write_leaks

        write_leaks(self, folder, format=table, overwrite=overwrite)

    def __repr__(self) -> str:
        summary = self.summary
        return (
            f"<Leaks: {summary['test_leaked']:,} of {counted(summary['test_documents'], 'test document')} in "
            f"{counted(summary['train_leaking'], 'training document')}>"
        )
