"""The store: rows on disk with their checksums, the log of all changes, one writer and many readers.

It keeps what it is given and knows nothing of similarity; `collections` does. docs/formats/collection.md
describes the files.
"""

from __future__ import annotations

from neardup.store.databases import Database
from neardup.store.sqlite import is_store
from neardup.store.stores import SMALL, STORES, Store, Writing
from neardup.store.tables import (
    BANKS,
    CHANGES,
    CONTENTS,
    DOCUMENTS,
    EVIDENCE,
    FORMAT,
    GENERATIONS,
    PIECES,
    PRINTS,
    TABLES,
    VERDICTS,
    Bank,
    Change,
    Content,
    Document,
    Evidence,
    Generation,
    Piece,
    Print,
    State,
    Verdict,
)

__all__ = [
    "BANKS",
    "CHANGES",
    "CONTENTS",
    "DOCUMENTS",
    "EVIDENCE",
    "FORMAT",
    "GENERATIONS",
    "PIECES",
    "PRINTS",
    "SMALL",
    "STORES",
    "TABLES",
    "VERDICTS",
    "Bank",
    "Change",
    "Content",
    "Database",
    "Document",
    "Evidence",
    "Generation",
    "Piece",
    "Print",
    "State",
    "Store",
    "Verdict",
    "Writing",
    "is_store",
]
