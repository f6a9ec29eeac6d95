"""The tables of a store: what a row of each holds, and the SQL that makes them.

Every row carries a checksum of its table, its columns and its key; the one row of `state` holds how many
rows there are in all and the sum of their checksums, so that a row that is gone is missed too.
"""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, get_type_hints

# Raised when the tables, or the meaning of a column, change.
FORMAT: Final = 1

Row = tuple[Any, ...]


class Document(NamedTuple):
    """One document: its id, its bank, and the number of its content."""

    number: int
    id: str
    bank: str
    content: int
    fields: bytes
    """JSON."""
    added: int
    """Seconds since 1970 of the write that brought it."""
    expires: int | None
    """From this second on it is not found any more."""
    change: int
    """The last change of it."""


class Content(NamedTuple):
    """What one or several documents hold: a text, or the thumbnail of an image."""

    number: int
    kind: str
    digest: bytes
    """Of the content as it was given: equal digests are one content."""
    size: int
    """Bytes of *data* when decompressed."""
    data: bytes
    uses: int
    """How many documents have it."""
    cluster: int
    keeper: int
    """The content of its cluster that it was compared with and accepted: itself if it keeps the cluster."""
    change: int


class Print(NamedTuple):
    """A fingerprint of a content; an image with borders has two."""

    generation: int
    content: int
    part: int
    words: bytes


class Evidence(NamedTuple):
    """What was measured of two contents when the later one came."""

    low: int
    high: int
    distance: int
    similarity: int
    """In ten-thousandths, as the next two."""
    weighted: int
    rare: int
    accepted: int
    reason: str
    generation: int
    change: int


class Verdict(NamedTuple):
    """What a person said of two contents, by their digests."""

    low: bytes
    high: bytes
    verdict: str
    by: str
    note: str
    at: int
    change: int


class Bank(NamedTuple):
    """A name space of documents."""

    name: str
    expires_after: int | None
    """Seconds after which its documents expire, unless they say otherwise."""
    suppresses: str
    """Globs of the banks whose matches are left out where a document of this bank matches; JSON."""
    enabled: int
    change: int


class Generation(NamedTuple):
    """A fitted scheme of one kind of content, with all fingerprints that it made."""

    number: int
    kind: str
    digest: str
    documents: int
    """How many the scheme was fitted on."""
    live: int
    """1 once it is in use; one that never was is removed when the store is opened."""
    change: int


class Piece(NamedTuple):
    """A part of a file that is kept in the store, such as the table of a scheme."""

    name: str
    part: int
    data: bytes


class Change(NamedTuple):
    """One entry of the log. Each chain is a hash over the one before it and the entry."""

    number: int
    kind: str
    document: int
    """The number of the document, or 0."""
    content: int
    """The number of the content that came, went or was placed anew, or 0."""
    body: bytes
    """JSON for whoever reads the log."""
    at: int
    chain: bytes


class State(NamedTuple):
    """The one row that every write changes."""

    one: int
    uuid: str
    format: int
    change: int
    chain: bytes
    at: int
    """Seconds since 1970 of the last write: no clock goes back behind it."""
    number: int
    """The highest number given to a document, a content, a cluster or a generation."""
    documents: int
    contents: int
    prints: int
    verdicts: int
    rows: int
    total: bytes
    """The sum, modulo 2**128, of the checksums of all rows but those of this table and of the log."""
    settings: bytes
    """What the collection was created with; JSON."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table: its row, its key, and the columns by which it is looked up."""

    name: str
    row: Any
    key: tuple[str, ...]
    unique: tuple[tuple[str, ...], ...] = ()
    indexes: tuple[str, ...] = ()
    """Columns with an index; of one that may be null only the others are in it."""
    counted: bool = True
    """Whether its rows are among those that the state counts."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns without the checksum."""
        found: tuple[str, ...] = self.row._fields
        return found


DOCUMENTS: Final = Table("document", Document, ("number",), (("id",),), ("content", "expires"))
CONTENTS: Final = Table("content", Content, ("number",), (("digest",),), ("cluster",))
PRINTS: Final = Table("print", Print, ("generation", "content", "part"))
EVIDENCE: Final = Table("evidence", Evidence, ("low", "high"), (), ("high",))
VERDICTS: Final = Table("verdict", Verdict, ("low", "high"), (), ("high",))
BANKS: Final = Table("bank", Bank, ("name",))
GENERATIONS: Final = Table("generation", Generation, ("number",))
PIECES: Final = Table("piece", Piece, ("name", "part"))
CHANGES: Final = Table("change", Change, ("number",), counted=False)
STATE: Final = Table("state", State, ("one",), counted=False)

# Columns of the state that count the rows of a table by itself.
COUNTS: Final = {"document": "documents", "content": "contents", "print": "prints", "verdict": "verdicts"}

TABLES: Final = (
    STATE,
    BANKS,
    CONTENTS,
    DOCUMENTS,
    PRINTS,
    EVIDENCE,
    VERDICTS,
    GENERATIONS,
    PIECES,
    CHANGES,
)


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a database writes types."""

    number: str
    text: str
    bytes: str
    suffix: str = ""
    """What is behind a table."""


def statements(dialect: Dialect) -> list[str]:
    """The SQL that makes the tables."""
    made = []
    for table in TABLES:
        hints = get_type_hints(table.row)
        columns = [f"{name} {_type(hints[name], dialect)}" for name in table.columns]
        parts = [*columns, f"checksum {dialect.bytes} NOT NULL", f"PRIMARY KEY({', '.join(table.key)})"]
        parts += [f"UNIQUE({', '.join(names)})" for names in table.unique]
        made.append(f"CREATE TABLE {table.name}({', '.join(parts)}){dialect.suffix}")
        for name in table.indexes:
            some = "" if _type(hints[name], dialect).endswith("NOT NULL") else f" WHERE {name} IS NOT NULL"
            made.append(f"CREATE INDEX {table.name}_{name} ON {table.name}({name}){some}")
    return made


def _type(hint: Any, dialect: Dialect) -> str:
    for kind, name in ((int, dialect.number), (str, dialect.text), (bytes, dialect.bytes)):
        if hint is kind:
            return f"{name} NOT NULL"
        if hint == kind | None:
            return name
    raise AssertionError(hint)


# --- checksums -------------------------------------------------------------------------------------------

_NUMBER: Final = struct.Struct("<Bq")
_LENGTH: Final = struct.Struct("<BQ")
MODULUS: Final = 1 << 128


def packed(row: Row) -> bytes:
    """The bytes of a row: each value with its type and length, so that no two rows have the same.

    >>> packed((1, "a", b"a", None)) == packed((1, "a", "a", None))
    False
    """
    parts: list[bytes] = []
    for value in row:
        if value is None:
            parts.append(b"\0")
        elif isinstance(value, int):
            parts.append(_NUMBER.pack(1, value))
        elif isinstance(value, str):
            data = value.encode()
            parts += (_LENGTH.pack(2, len(data)), data)
        else:
            parts += (_LENGTH.pack(3, len(value)), value)
    return b"".join(parts)


def checksum(table: Table, row: Row) -> bytes:
    """The 16 bytes that stand beside a row."""
    return hashlib.blake2b(packed(row), digest_size=16, person=table.name.encode()).digest()


def chained(before: bytes, change: Change) -> bytes:
    """The chain behind *change*, whose own chain is not looked at."""
    return hashlib.blake2b(before + packed(change[:-1]), digest_size=16, person=b"chain").digest()


def added(total: bytes, more: bytes, sign: int = 1) -> bytes:
    """A sum of checksums with one more, or with one less."""
    number = int.from_bytes(total, "little") + sign * int.from_bytes(more, "little")
    return (number % MODULUS).to_bytes(16, "little")
