"""A store in a folder: SQLite, with one connection in the world that writes.

Every other connection is opened so that it cannot write, not even a checkpoint: two connections that write
and checkpoint at the same instant can destroy a database of SQLite before 3.51.3. The schema must be ours to
the letter, because a trigger or a view is code.
"""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final, TypeVar
from urllib.parse import quote

from neardup.errors import DamagedFile, Gone, InvalidValue, LimitReached, NotWritten
from neardup.files import atomic_file, check_path, sync_folder
from neardup.store.databases import Values
from neardup.store.locks import Lock, Witness, Witnessed
from neardup.store.tables import FORMAT, Dialect, Row, statements

DIALECT: Final = Dialect("INTEGER", "TEXT", "BLOB")
FILE: Final = "store.sqlite"
HEADER: Final = "collection.toml"
# What belongs to a collection; anything else in its folder is not ours.
OURS: Final = {FILE, HEADER, "LOCK", "WITNESS", "index", f"{FILE}-wal", f"{FILE}-shm"}
# Past this many bytes the write-ahead log is emptied after a commit.
LOG_BYTES: Final = 64 << 20
_DAMAGE: Final = ("malformed", "not a database", "corrupt", "disk image", "decode")

T = TypeVar("T")


def is_store(path: str) -> bool:
    """Whether *path* is a folder that holds a collection."""
    return os.path.exists(os.path.join(path, HEADER))


class Sqlite:
    """The database of one folder."""

    def __init__(self, path: str, *, read_only: bool = False, as_new: bool = False) -> None:
        """Open the folder *path*; to write unless *read_only*. A copied folder needs *as_new*."""
        self.name, self.read_only = check_path(path), read_only
        self._closed = self._poisoned = False
        self._pid = os.getpid()
        self._lock: Lock | None = None
        self._witness = Witness(os.path.join(path, "WITNESS"))
        self._file = os.path.join(path, FILE)
        _check_header(path)
        if not os.path.isfile(self._file) or os.path.getsize(self._file) == 0:
            raise DamagedFile(f"{self._file!r} is missing or empty; restore the collection from a backup")
        if not read_only:
            try:
                self._lock = Lock(os.path.join(path, "LOCK"), path)
            except OSError as error:
                if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
                    raise
                raise LimitReached(
                    f"{path!r} cannot be written here: {error.strerror}; open it with read_only=True"
                ) from None
        try:
            self._base = self._said(self._connected)
            self._opened = os.stat(self._file).st_ino
            self._said(self._check_schema)
            if not read_only:
                self._check_place(as_new)
        except BaseException:
            self.close()
            raise

    @classmethod
    def create(cls, path: str, insert: str, state: Row) -> Sqlite:
        """Make a new store in the folder *path*, which must be free or empty, with its first state."""
        path = check_path(path)
        if os.path.exists(path) and (not os.path.isdir(path) or os.listdir(path)):
            raise InvalidValue(f"{path!r} exists and is not a collection; name a new folder")
        _tried(path, lambda: os.makedirs(path, exist_ok=True))
        file = os.path.join(path, FILE)

        def make() -> None:
            base = sqlite3.connect(file, isolation_level=None)
            try:
                base.execute("PRAGMA journal_mode=WAL")
                base.execute("PRAGMA synchronous=FULL")
                base.execute("BEGIN IMMEDIATE")
                for statement in statements(DIALECT):
                    base.execute(statement)
                base.execute(insert, state)
                base.execute("COMMIT")
            finally:
                base.close()
            witness = Witness(os.path.join(path, "WITNESS"))
            witness.write(Witnessed(0, bytes(16), os.stat(file).st_ino & (1 << 63) - 1), sync=True)
            witness.close()

        _tried(path, make)
        # The header makes it a collection, so it comes last.
        sync_folder(path)
        sync_folder(os.path.dirname(os.path.abspath(path)))
        with atomic_file(os.path.join(path, HEADER)) as header:
            header.write(
                f"# A collection of neardup (docs/formats/collection.md)\nformat = {FORMAT}\n".encode()
            )
        return cls(path)

    # --- opening ------------------------------------------------------------------------------------------

    def _connected(self) -> sqlite3.Connection:
        place = quote(os.path.abspath(self._file).replace(os.sep, "/"))
        if not self.read_only:
            base = sqlite3.connect(
                f"file:{place}?mode=rw", uri=True, isolation_level=None, check_same_thread=False, timeout=10
            )
            for pragma in ("journal_mode=WAL", "synchronous=FULL", "wal_autocheckpoint=1000"):
                base.execute(f"PRAGMA {pragma}")
        else:
            # Without a log, and where none can be made, nobody writes.
            log = f"{self._file}-wal"
            empty = not os.path.exists(log) or os.path.getsize(log) == 0
            still = "&immutable=1" if empty and not os.access(self.name, os.W_OK) else ""
            base = sqlite3.connect(
                f"file:{place}?mode=ro{still}",
                uri=True,
                isolation_level=None,
                check_same_thread=False,
                timeout=10,
            )
            base.execute("PRAGMA query_only=ON")
        for pragma in ("trusted_schema=OFF", "cell_size_check=ON", "temp_store=MEMORY"):
            base.execute(f"PRAGMA {pragma}")
        return base

    def _check_schema(self) -> None:
        found = self._base.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
        if sorted(row[0] for row in found) != sorted(statements(DIALECT)):
            raise DamagedFile(
                f"{self._file!r} has other tables than a collection of format {FORMAT}; "
                "restore the collection from a backup"
            )

    def _check_place(self, as_new: bool) -> None:
        """Raise if this is a copy: two that go on from one state must not be taken for each other."""
        known = self._witness.read()
        if known is not None and known.inode != self._inode() and not as_new:
            raise InvalidValue(
                f"{self.name!r} was copied or moved here by another program; if it is whole, open it with "
                "as_new=True (neardup collection restore does that) and it becomes a collection of its own"
            )

    def _inode(self) -> int:
        return os.stat(self._file).st_ino & (1 << 63) - 1

    # --- the verbs ----------------------------------------------------------------------------------------

    def select(self, sql: str, values: Values = ()) -> list[Row]:
        return self._said(lambda: self._open().execute(sql, values).fetchall())

    @contextmanager
    def reading(self) -> Iterator[None]:
        base = self._open()
        if base.in_transaction:  # part of a block that sees one state already
            yield
            return
        self._said(lambda: base.execute("BEGIN"))
        try:
            yield
        finally:
            if base.in_transaction:
                base.execute("ROLLBACK")

    @contextmanager
    def writing(self) -> Iterator[Sqlite]:
        base = self._open()
        if self.read_only:
            raise InvalidValue(f"{self.name!r} was opened with read_only=True; open it without to change it")
        if self._poisoned:
            raise LimitReached(f"a write to {self.name!r} failed before; close it and open it again")
        self._said(lambda: base.execute("BEGIN IMMEDIATE"))
        try:
            yield self
            try:
                self._said(lambda: base.execute("COMMIT"))
            except BaseException:
                # After a failed sync the system may have dropped what it did not write: no later one counts.
                self._poisoned = True
                raise
        except BaseException:
            with suppress(sqlite3.Error):
                if base.in_transaction:
                    base.execute("ROLLBACK")
            raise

    def execute(self, sql: str, values: Values = ()) -> int:
        """Part of a transaction."""
        return self._said(lambda: self._base.execute(sql, values).rowcount)

    def many(self, sql: str, rows: Iterable[Row]) -> None:
        """Part of a transaction."""
        self._said(lambda: self._base.executemany(sql, rows))

    def fresh(self) -> Any:
        if self.read_only and self._replaced():
            raise Gone(f"{self.name!r} was replaced by another collection; open it again")
        return self.select("PRAGMA data_version")[0][0]

    def _replaced(self) -> bool:
        try:
            return self._opened != os.stat(self._file).st_ino
        except FileNotFoundError:
            return True

    def written(self, change: int, chain: bytes) -> None:
        self._witness.write(Witnessed(change, chain, self._inode()))
        with suppress(OSError):
            if os.path.getsize(f"{self._file}-wal") > LOG_BYTES:
                self._said(lambda: self._base.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall())

    def witnessed(self) -> tuple[int, bytes] | None:
        found = self._witness.read()
        return None if found is None else (found.change, found.chain)

    def size(self) -> int:
        log = f"{self._file}-wal"
        return os.path.getsize(self._file) + (os.path.getsize(log) if os.path.exists(log) else 0)

    def problems(self) -> list[str]:
        try:
            found = [str(row[0]) for row in self.select("PRAGMA integrity_check")]
        except DamagedFile as error:
            return [str(error)]
        return [] if found == ["ok"] else [" ".join(one.split()) for one in found]

    def copy(self, path: str) -> None:
        path = check_path(path)
        if os.path.exists(path) and (not os.path.isdir(path) or os.listdir(path)):
            raise InvalidValue(f"{path!r} exists; name a new folder for the copy")
        _tried(path, lambda: os.makedirs(path, exist_ok=True))
        file = os.path.join(path, FILE)
        target = sqlite3.connect(file, isolation_level=None)
        try:
            _tried(path, lambda: self._open().backup(target))
            # What is copied says that it is in WAL mode, as it is to be.
            _tried(path, lambda: target.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall())
        finally:
            target.close()
        with open(file, "rb+") as made:
            os.fsync(made.fileno())
        sync_folder(path)
        with (
            atomic_file(os.path.join(path, HEADER)) as header,
            open(os.path.join(self.name, HEADER), "rb") as own,
        ):
            header.write(own.read())

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        base = getattr(self, "_base", None)
        if base is not None and os.getpid() == self._pid:
            with suppress(sqlite3.Error):
                if base.in_transaction:
                    base.execute("ROLLBACK")
            with suppress(sqlite3.Error):
                if not self.read_only and not self._poisoned:
                    # Damage in what is left of the log would be silent.
                    base.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            with suppress(sqlite3.Error):
                base.close()
        self._witness.close()
        if self._lock is not None:
            self._lock.release()

    # --- what can go wrong --------------------------------------------------------------------------------

    def _open(self) -> sqlite3.Connection:
        if self._closed:
            raise InvalidValue(f"{self.name!r} is closed; open it again")
        if os.getpid() != self._pid:
            raise InvalidValue(f"{self.name!r} was opened by another process; open it in each process")
        return self._base

    def _said(self, work: Callable[[], T]) -> T:
        return _tried(self.name, work)


def _tried(name: str, work: Callable[[], T]) -> T:
    """What *work* gives; what SQLite or the system says against it, in our words."""
    try:
        return work()
    except sqlite3.DatabaseError as error:
        said = str(error)
        if any(word in said for word in _DAMAGE) or type(error) is sqlite3.DatabaseError:
            raise DamagedFile(f"{name!r} is damaged: {said}; restore it from a backup") from None
        if isinstance(error, sqlite3.OperationalError):
            raise NotWritten(f"cannot use {name!r}: {said}") from None
        raise
    except UnicodeDecodeError:
        raise DamagedFile(f"{name!r} is damaged: a text is not UTF-8; restore it from a backup") from None
    except OSError as error:
        if isinstance(error, NotWritten):
            raise
        raise NotWritten(f"cannot write {name!r}: {error.strerror or error}") from None


def _check_header(path: str) -> None:
    """Raise if the folder is not a collection that this version reads."""
    header = os.path.join(path, HEADER)
    try:
        with open(header, "rb") as file:
            data = file.read(1 << 12)
    except (FileNotFoundError, NotADirectoryError):
        raise InvalidValue(
            f"{path!r} is not a collection; make one with create=True (neardup collection create)"
        ) from None
    lines = [line.partition(b"=") for line in data.splitlines() if not line.startswith(b"#")]
    facts = {name.strip(): value.strip() for name, _, value in lines}
    version = facts.get(b"format", b"")
    if not version.isdigit():
        raise DamagedFile(f"{header!r} is damaged: it names no format; restore it from a backup")
    if int(version) > FORMAT:
        raise InvalidValue(
            f"{path!r} has format {int(version)}, made by a newer neardup; this one reads up to {FORMAT}"
        )
    if int(version) != FORMAT:
        raise DamagedFile(f"{header!r} is damaged: there is no format {int(version)}")
