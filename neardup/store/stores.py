"""A store: rows that are what was written, or an error; and the log of every change.

It knows no similarity. What is read is checked row by row; a write is one transaction with its entries in
the log and the new state, or nothing.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any, Final, TypeVar

from neardup.errors import DamagedFile, Gone, InvalidValue
from neardup.registry import Registry
from neardup.store.databases import Database, Transaction
from neardup.store.sqlite import Sqlite
from neardup.store.tables import (
    CHANGES,
    COUNTS,
    FORMAT,
    STATE,
    TABLES,
    Change,
    Row,
    State,
    Table,
    added,
    chained,
    checksum,
)

# Below this many bytes every row is checked when a store is opened.
SMALL: Final = 16 << 20
# Values in one query.
MANY: Final = 500
NOTHING: Final = bytes(16)

STORES: Final[Registry[type[Sqlite]]] = Registry("store", {"sqlite": lambda: Sqlite})
"""The databases that a store can live in."""

R = TypeVar("R", bound=Row)


class Store:
    """An open store. It is used by one thread at a time."""

    def __init__(self, base: Database) -> None:
        """The store in *base*, checked as far as opening it allows: all of it where it is small."""
        self.base = base
        self._writing: Writing | None = None
        self.sure = True
        """Whether `state` is what this writer left: not after a write that was interrupted."""
        try:
            known = base.witnessed()  # before the state: a writer may go on meanwhile
            with base.reading():
                self.state = self.last_state()
                self._check_witness(known)
                if base.size() < SMALL and (found := self.problems()):
                    raise DamagedFile(f"{self.name!r} is damaged: {found[0]}; restore it from a backup")
        except BaseException:
            base.close()
            raise

    @classmethod
    def open(cls, path: str, *, read_only: bool = False, as_new: bool = False) -> Store:
        """The store in the folder *path*."""
        store = cls(STORES.part("sqlite")(path, read_only=read_only, as_new=as_new))
        if as_new:
            with store.write(0) as writing:
                writing.state = writing.state._replace(uuid=uuid.uuid4().hex)
        return store

    @classmethod
    def create(cls, path: str, settings: Mapping[str, Any]) -> Store:
        """A new store in the folder *path*."""
        said = json.dumps(settings, sort_keys=True).encode()
        state = State(1, uuid.uuid4().hex, FORMAT, 0, NOTHING, 0, 0, 0, 0, 0, 0, 0, NOTHING, said)
        row = (*state, checksum(STATE, state))
        return cls(STORES.part("sqlite").create(path, _insert(STATE), row))

    @property
    def name(self) -> str:
        """As the user named it."""
        return self.base.name

    @property
    def coming(self) -> State:
        """The state with what the transaction under way has done."""
        return self.state if self._writing is None else self._writing.state

    @property
    def settings(self) -> dict[str, Any]:
        """What it was created with."""
        found: dict[str, Any] = json.loads(self.state.settings)
        return found

    def close(self) -> None:
        """Let go of it."""
        self.base.close()

    # --- reading ------------------------------------------------------------------------------------------

    def find(
        self,
        table: Table,
        column: str,
        values: Iterable[Any],
        *,
        where: str = "",
        with_values: Sequence[Any] = (),
    ) -> list[Any]:
        """The rows whose *column* has one of *values*, in the order of their keys; checked.

        *where* is more SQL, with values of its own.
        """
        found: list[Any] = []
        rest = iter(values)
        more = f" AND {where}" if where else ""
        while part := list(islice(rest, MANY)):
            marks = ", ".join("?" * len(part))
            found += self.rows(table, f"{column} IN ({marks}){more}", [*part, *with_values])
        return found if len(found) < 2 else sorted(found, key=lambda row: _key(table, row))

    def get(self, table: Table, *key: Any) -> Any:
        """The row with that key, checked; None if there is none."""
        found = self.rows(table, _where(table.key), key)
        return found[0] if found else None

    def need(self, table: Table, *key: Any) -> Any:
        """The row with that key, which must be there."""
        found = self.get(table, *key)
        if found is None:
            raise self.damaged(f"its {table.name} {', '.join(map(str, key))} is missing")
        return found

    def scan(
        self,
        table: Table,
        *,
        by: str | None = None,
        where: str = "1 = 1",
        values: Sequence[Any] = (),
        step: int = 2000,
    ) -> Iterator[Any]:
        """All rows in the order of a column of numbers, the first of the key unless *by* says another.

        They are read some at a time and checked; what is written meanwhile may be seen or not.
        """
        column = by or table.key[0]
        last = -1
        while True:
            found = self.rows(
                table, f"({where}) AND {column} > ?", [*values, last], f"ORDER BY {column} LIMIT {step}"
            )
            if len(found) == step:
                # The last one may have more rows than were read.
                last = getattr(found[-1], column)
                found = [row for row in found if getattr(row, column) != last]
                yield from found
                yield from self.rows(table, f"({where}) AND {column} = ?", [*values, last])
                continue
            yield from found
            return

    def scan_all(self, table: Table) -> list[Any]:
        """All rows of a small table, in the order of their keys."""
        return self.rows(table, "1 = 1", (), f"ORDER BY {', '.join(table.key)}")

    def count(self, table: Table, where: str = "1 = 1", values: Sequence[Any] = ()) -> int:
        """How many rows there are."""
        self._flush()
        return int(self.base.select(f"SELECT COUNT(*) FROM {table.name} WHERE {where}", values)[0][0])

    def rows(self, table: Table, where: str, values: Sequence[Any], end: str = "") -> list[Any]:
        """The rows of which some SQL is true, checked; *end* orders or limits them."""
        self._flush()
        columns = ", ".join(table.columns)
        rows = self.base.select(
            f"SELECT {columns}, checksum FROM {table.name} WHERE {where} {end}", list(values)
        )
        return [self._checked(table, row) for row in rows]

    def _checked(self, table: Table, row: Row) -> Any:
        try:
            if checksum(table, row[:-1]) == row[-1]:
                return table.row(*row[:-1])
        except (TypeError, ValueError, OverflowError):  # a value of another type
            pass
        raise self.damaged(f"a row of {table.name} is not what was written ({table.key[0]} {row[0]!r:.40})")

    def last_state(self) -> State:
        """The state as it is in the database now, whoever wrote it."""
        rows = self.rows(STATE, "1 = 1", ())
        if len(rows) != 1:
            raise self.damaged(f"it has {len(rows)} states")
        state: State = rows[0]
        if state.format > FORMAT:
            raise InvalidValue(
                f"{self.name!r} has format {state.format}, made by a newer neardup; "
                f"this one reads up to {FORMAT}"
            )
        return state

    def damaged(self, what: str) -> DamagedFile:
        """The error that says so."""
        return DamagedFile(f"{self.name!r} is damaged: {what}; restore it from a backup")

    def _check_witness(self, known: tuple[int, bytes] | None) -> None:
        if known is None:
            return
        change, chain = known
        if change > self.state.change:
            raise self.damaged(
                f"it ends with change {self.state.change}, and change {change} was written to it"
            )
        there = self.state.chain if change == self.state.change else NOTHING
        if 0 < change < self.state.change:
            there = self.need(CHANGES, change).chain
        if chain != there:
            raise self.damaged(f"its change {change} is not the one that was written")

    # --- what others wrote --------------------------------------------------------------------------------

    def refresh(self) -> bool:
        """See what another process wrote; whether there was anything."""
        state = self.last_state()
        if state.uuid != self.state.uuid or state.change < self.state.change:
            raise Gone(f"{self.name!r} was replaced by another collection; open it again")
        changed = state != self.state
        self.state = state
        return changed

    def changes(self, since: int = 0, step: int = 2000) -> Iterator[Change]:
        """The changes after number *since*, each checked against the one before it."""
        chain = NOTHING
        if since > 0:
            chain = self.need(CHANGES, since).chain
        last, end = since, self.state.change
        while last < end:
            rows = self.rows(
                CHANGES, "number > ? AND number <= ?", (last, end), f"ORDER BY number LIMIT {step}"
            )
            for row in rows or [None]:
                if row is None or row.number != last + 1 or chained(chain, row) != row.chain:
                    raise self.damaged(f"its log breaks after change {last}")
                last, chain = row.number, row.chain
                yield row
        if chain != self.state.chain and since <= end:
            raise self.damaged(f"its log does not end as it was written (change {end})")

    # --- writing ------------------------------------------------------------------------------------------

    @contextmanager
    def write(self, now: int, *, follows: bool = False) -> Iterator[Writing]:
        """A block whose changes are durable when it ends, or nothing of them is. *now* is in seconds.

        With *follows* the caller has something to do afterwards before what it knows is what is stored, and
        sets `sure` then.
        """
        if self._writing is not None:
            raise InvalidValue(f"{self.name!r} is being changed here already")
        with self.base.writing() as transaction:
            before = self.last_state()
            writing = self._writing = Writing(self, transaction, before, now)
            try:
                yield writing
                after = writing.finish()
                self.sure = False  # whatever interrupts us from here on, it may be durable
            finally:
                self._writing = None
        self.state = after
        self.sure = not follows
        self.base.written(after.change, after.chain)

    def _flush(self) -> None:
        if self._writing is not None:
            self._writing.flush()

    # --- checking -----------------------------------------------------------------------------------------

    def problems(self) -> list[str]:
        """Every byte is read: what is not as it was written, in words; nothing if all is well."""
        found = self.base.problems()
        rows, total, counts = 0, NOTHING, dict.fromkeys(COUNTS, 0)
        for table in TABLES:
            columns = ", ".join(table.columns)
            last: list[Any] = []
            while True:
                after = _after(table.key) if last else "1 = 1"
                try:
                    part = self.base.select(
                        f"SELECT {columns}, checksum FROM {table.name} WHERE {after} "
                        f"ORDER BY {', '.join(table.key)} LIMIT 5000",
                        _after_values(last),
                    )
                    for row in part:
                        self._checked(table, row)
                        if table.counted:
                            rows, total = rows + 1, added(total, row[-1])
                except DamagedFile as error:
                    found.append(_plain(str(error), self.name))
                    break
                if table.name in counts:
                    counts[table.name] += len(part)
                if len(part) < 5000:
                    break
                last = [part[-1][table.columns.index(name)] for name in table.key]
        state = self.state
        whole = all(getattr(state, COUNTS[name]) == count for name, count in counts.items())
        if not found and (not whole or (rows, total) != (state.rows, state.total)):
            found.append(f"it has {rows:,} rows where {state.rows:,} were written, or others than those")
        try:
            for _ in self.changes():
                pass
            if self.count(CHANGES) != state.change:
                found.append(f"its log has more than the {state.change:,} changes that were written")
        except DamagedFile as error:
            found.append(_plain(str(error), self.name))
        return found


class Writing:
    """One transaction: what it changes, and what it says in the log."""

    def __init__(self, store: Store, transaction: Transaction, state: State, now: int) -> None:
        self.state = state._replace(at=max(now, state.at))
        self._store, self._transaction = store, transaction
        self._before = state
        self._pending: dict[str, tuple[Table, list[Row]]] = {}
        self._total = int.from_bytes(state.total, "little")
        self._rows = state.rows

    @property
    def now(self) -> int:
        """The moment of this write; never before that of an earlier one."""
        return self.state.at

    def next(self) -> int:
        """A number that was never given before."""
        self.state = self.state._replace(number=self.state.number + 1)
        return self.state.number

    def insert(self, table: Table, row: Row) -> None:
        """Add a row whose key is new."""
        check = checksum(table, row)
        self._note(table, check, 1)
        self._pending.setdefault(table.name, (table, []))[1].append((*row, check))

    def delete(self, table: Table, *key: Any) -> None:
        """Remove the row with that key."""
        self.flush()
        gone = self._old(table, key)
        self._note(table, gone, -1)
        self._transaction.execute(f"DELETE FROM {table.name} WHERE {_where(table.key)}", key)

    def drop(self, table: Table, rows: Sequence[Any]) -> None:
        """Remove rows that were read in this transaction."""
        self.flush()
        for row in rows:
            self._note(table, checksum(table, row), -1)
        sql = f"DELETE FROM {table.name} WHERE {_where(table.key)}"
        self._transaction.many(sql, [_key(table, row) for row in rows])

    def replace(self, table: Table, row: Row) -> None:
        """Put a row in the place of the one with its key."""
        self.flush()
        key = _key(table, row)
        gone, check = self._old(table, key), checksum(table, row)
        self._note(table, gone, -1)
        self._note(table, check, 1)
        others = ", ".join(f"{name} = ?" for name in (*table.columns, "checksum"))
        self._transaction.execute(
            f"UPDATE {table.name} SET {others} WHERE {_where(table.key)}", (*row, check, *key)
        )

    def put(self, table: Table, row: Row) -> None:
        """Insert a row, or replace the one with its key."""
        if self._store.get(table, *_key(table, row)) is None:
            self.insert(table, row)
        else:
            self.replace(table, row)

    def log(self, kind: str, *, document: int = 0, content: int = 0, **body: Any) -> int:
        """Say in the log what is changed; the number of the entry."""
        number = self.state.change + 1
        said = json.dumps(body, sort_keys=True, ensure_ascii=False).encode()
        change = Change(number, kind, document, content, said, self.now, NOTHING)
        change = change._replace(chain=chained(self.state.chain, change))
        self.state = self.state._replace(change=number, chain=change.chain)
        self.insert(CHANGES, change)
        return number

    def flush(self) -> None:
        """Hand to the database what waits."""
        for table, rows in self._pending.values():
            if rows:
                self._transaction.many(_insert(table), rows)
                rows.clear()

    def finish(self) -> State:
        """Write the new state; called once, at the end."""
        self.flush()
        total = (self._total % (1 << 128)).to_bytes(16, "little")
        after = self.state._replace(rows=self._rows, total=total)
        sets = ", ".join(f"{name} = ?" for name in (*STATE.columns, "checksum"))
        values = (*after, checksum(STATE, after), self._before.change, self._before.chain)
        sql = f"UPDATE state SET {sets} WHERE change = ? AND chain = ?"
        if self._transaction.execute(sql, values) != 1:
            raise self._store.damaged("its state changed in the middle of a write")
        return after

    def _old(self, table: Table, key: Sequence[Any]) -> bytes:
        """The checksum of the row with that key, which must be as it was written."""
        row = self._store.need(table, *key)
        return checksum(table, row)

    def _note(self, table: Table, check: bytes, sign: int) -> None:
        if table.counted:
            self._total += sign * int.from_bytes(check, "little")
            self._rows += sign
        if table.name in COUNTS:
            name = COUNTS[table.name]
            self.state = self.state._replace(**{name: getattr(self.state, name) + sign})


def _insert(table: Table) -> str:
    marks = ", ".join("?" * (len(table.columns) + 1))
    return f"INSERT INTO {table.name}({', '.join(table.columns)}, checksum) VALUES ({marks})"


def _where(names: Sequence[str]) -> str:
    return " AND ".join(f"{name} = ?" for name in names)


def _key(table: Table, row: Any) -> Row:
    return tuple(getattr(row, name) for name in table.key)


def _after(names: Sequence[str]) -> str:
    """The rows behind a key, in the order of keys."""
    parts = []
    for at in range(len(names)):
        same = [f"{name} = ?" for name in names[:at]]
        parts.append(" AND ".join([*same, f"{names[at]} > ?"]))
    return "(" + ") OR (".join(parts) + ")"


def _after_values(key: Sequence[Any]) -> list[Any]:
    return [value for at in range(len(key)) for value in (*key[:at], key[at])]


def _plain(message: str, name: str) -> str:
    """What is wrong, without the name and the way out."""
    return message.removeprefix(f"{name!r} is damaged: ").partition("; restore")[0]
