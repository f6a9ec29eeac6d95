"""What a store needs of a database: five verbs, and nothing that knows what the rows mean.

`select` reads, `writing` is one transaction, `fresh` says cheaply whether another process wrote, `copy` makes
a whole copy of a database in use, `problems` lets it look for damage of its own. To add a database, write
these and add its row to `STORES`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from neardup.store.tables import Row

Values = Sequence[Any]


class Transaction(Protocol):
    """What may be done in a transaction."""

    def execute(self, sql: str, values: Values = ()) -> int:
        """Run one statement; how many rows it changed."""

    def many(self, sql: str, rows: Iterable[Row]) -> None:
        """Run one statement for each row."""


class Database(Protocol):
    """An open database."""

    name: str
    """As the user named it."""
    read_only: bool

    def select(self, sql: str, values: Values = ()) -> list[Row]:
        """The rows of a query, all of them: an open cursor would hold the log of the database."""

    def reading(self) -> AbstractContextManager[None]:
        """A block whose queries see one state."""

    def writing(self) -> AbstractContextManager[Transaction]:
        """A block that is one transaction: done and durable when it ends, or not at all."""

    def fresh(self) -> Any:
        """A value that differs after any other connection has written."""

    def written(self, change: int, chain: bytes) -> None:
        """Note, outside the database, that this change is durable."""

    def witnessed(self) -> tuple[int, bytes] | None:
        """What was last noted so."""

    def size(self) -> int:
        """Bytes of the database."""

    def problems(self) -> list[str]:
        """What the database finds wrong with itself."""

    def copy(self, path: str) -> None:
        """Write a whole copy as a store of its own to the new folder *path*."""

    def close(self) -> None:
        """Let go of it, and of the right to write."""
