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
from neardup.files import atomic_file, check_path, is_temporary, sweep, sync_folder
from neardup.store.databases import Values
from neardup.store.locks import Lock, Witness, Witnessed
from neardup.store.tables import FORMAT, Dialect, Row, statements

DIALECT: Final = Dialect("INTEGER", "TEXT", "BLOB")
FILE: Final = "store.sqlite"
HEADER: Final = "collection.toml"
# There until a new folder is a collection: what is in it without a header was never one.
MAKING: Final = "MAKING"
LOCK: Final = "LOCK"
WITNESS: Final = "WITNESS"
# What a collection begins with.
OURS: Final = (FILE, f"{FILE}-wal", f"{FILE}-shm", f"{FILE}-journal", WITNESS)
# Past this many bytes the write-ahead log is emptied after a commit.
LOG_BYTES: Final = 64 << 20
# Seconds to wait for a lock of SQLite.
PATIENCE: Final = 10
_DAMAGE: Final = ("malformed", "not a database", "corrupt", "disk image", "decode")

_WAYS_OUT: Final = {
    "full": "nothing of this was written; make room, then open it again",
    "disk I/O": "the disk fails, or a file may not grow that far (ulimit -f); open it again",
    "readonly": "it cannot be written here; open it with read_only=True",
    "locked": "another program holds it; only neardup may write it",
}

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
        self._witness = Witness(os.path.join(path, WITNESS))
        self._placed = False
        self._still: tuple[int, int] | None = None
        self._turn = 0
        self._file = os.path.join(path, FILE)
        _check_header(path)
        if not os.path.isfile(self._file) or os.path.getsize(self._file) == 0:
            raise DamagedFile(f"{self._file!r} is missing or empty; restore the collection from a backup")
        if not read_only:
            self._lock = _lock(path)
        try:
            self._base = self._said(self._connected)
            self._opened = os.stat(self._file).st_ino
            self._said(self._check_schema)
            if not read_only:
                self._check_place(as_new)
                # What a killed process left.
                for folder in (path, os.path.join(path, "index")):
                    with suppress(OSError):
                        sweep(folder)
                with suppress(OSError):
                    os.unlink(os.path.join(path, MAKING))
        except BaseException:
            self.close()
            raise

    @classmethod
    def create(cls, path: str, insert: str, state: Row) -> Sqlite:
        """Make a new store in the folder *path*, which must be free or empty, with its first state."""
        path = check_path(path)
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
            first = Witnessed(0, bytes(16), os.stat(file).st_ino & (1 << 63) - 1)
            Witness(os.path.join(path, WITNESS)).begin(first)

        with _new(path, f"{path!r} exists and is not a collection; name a new folder"):
            _tried(path, make)
        return cls(path)

    # --- opening ------------------------------------------------------------------------------------------

    def _connected(self) -> sqlite3.Connection:
        place = quote(os.path.abspath(self._file).replace(os.sep, "/"))
        if not self.read_only:
            base = sqlite3.connect(
                f"file:{place}?mode=rw",
                uri=True,
                isolation_level=None,
                check_same_thread=False,
                timeout=PATIENCE,
            )
            for pragma in ("journal_mode=WAL", "synchronous=FULL", "wal_autocheckpoint=1000"):
                base.execute(f"PRAGMA {pragma}")
        else:
            base = self._reader(place)
        for pragma in ("trusted_schema=OFF", "cell_size_check=ON", "temp_store=MEMORY"):
            base.execute(f"PRAGMA {pragma}")
        return base

    def _reader(self, place: str) -> sqlite3.Connection:
        def connected(more: str) -> sqlite3.Connection:
            base = sqlite3.connect(
                f"file:{place}?mode=ro{more}",
                uri=True,
                isolation_level=None,
                check_same_thread=False,
                timeout=PATIENCE,
            )
            try:
                base.execute("PRAGMA query_only=ON")
                base.execute("SELECT COUNT(*) FROM sqlite_master").fetchall()
            except BaseException:
                base.close()
                raise
            return base

        self._still = None
        try:
            return connected("")
        except sqlite3.OperationalError:
            # Without a log, and where this process can make none, it stands still until a writer comes.
            if os.access(self.name, os.W_OK) or self._logged():
                raise
            self._still = self._stamp()
            return connected("&immutable=1")

    def _logged(self) -> bool:
        log = f"{self._file}-wal"
        return os.path.exists(log) and os.path.getsize(log) > 0

    def _stamp(self) -> tuple[int, int]:
        found = os.stat(self._file)
        return found.st_mtime_ns, found.st_size

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
        self._placed = known is not None and known.inode == self._inode()
        if known is not None and not self._placed and not as_new:
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
        if self._replaced():
            raise Gone(f"{self.name!r} was moved, removed or replaced; open it again")
        if self._lock is not None and not self._lock.holds():
            raise Gone(f"somebody removed the file LOCK of {self.name!r}; close it and open it again")
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
        return self._turn, self.select("PRAGMA data_version")[0][0]

    def _replaced(self) -> bool:
        try:
            return self._opened != os.stat(self._file).st_ino
        except FileNotFoundError:
            return True

    def written(self, change: int, chain: bytes) -> None:
        # It is durable by now, so nothing here may stop the caller: an older witness only finds less.
        with suppress(OSError):
            said = Witnessed(change, chain, self._inode())
            if self._placed:
                self._witness.write(said)
            else:
                self._witness.begin(said)
                self._placed = True
        with suppress(OSError):
            if os.path.getsize(f"{self._file}-wal") > LOG_BYTES:
                self._said(self._empty_log)

    def _empty_log(self) -> None:
        """Move the whole log to the database, unless a reader is in the middle of it: nobody waits."""
        self._base.execute("PRAGMA busy_timeout=0")
        try:
            self._base.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        finally:
            self._base.execute(f"PRAGMA busy_timeout={PATIENCE * 1000}")

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
        file = os.path.join(path, FILE)

        def work() -> None:
            target = sqlite3.connect(file, isolation_level=None)
            try:
                self._open().backup(target)
                # What is copied says that it is in WAL mode, as it is to be.
                target.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            finally:
                target.close()
            with open(file, "rb+") as made:
                os.fsync(made.fileno())

        with _new(path, f"{path!r} exists; name a new folder for the copy"):
            _tried(path, work)

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
                    self._empty_log()
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
        still = self._still is not None and not self._base.in_transaction
        if still and (self._logged() or self._still != self._stamp()):  # somebody writes by now
            self._base.close()
            self._base = self._said(self._connected)
            self._turn += 1
        return self._base

    def _said(self, work: Callable[[], T]) -> T:
        return _tried(self.name, work)


def _lock(path: str) -> Lock:
    try:
        return Lock(os.path.join(path, LOCK), path)
    except OSError as error:
        if isinstance(error, NotWritten):
            raise
        if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise NotWritten(f"cannot write {path!r}: {error.strerror}") from None
        raise LimitReached(
            f"{path!r} cannot be written here: {error.strerror}; open it with read_only=True"
        ) from None


# --- making a folder --------------------------------------------------------------------------------------


@contextmanager
def _new(path: str, taken: str) -> Iterator[None]:
    """A block that makes a store in the folder *path*: a collection when it ends, and nothing before.

    What a killed process left of one is taken away; *taken* is said of anything else that is there.
    """
    _check_free(path, taken)
    made = _tried(path, lambda: _make_folders(path))
    try:
        lock = _tried(path, lambda: _begun(path))
    except BaseException:
        _unmake(made)
        raise
    try:
        _check_free(path, taken)  # another one may have made it in this moment
        _tried(path, lambda: sweep(path))
        _tried(path, lambda: _remove(path, OURS))
        yield
        sync_folder(path)
        # The header makes it a collection, so it comes last.
        with atomic_file(os.path.join(path, HEADER)) as header:
            header.write(
                f"# A collection of neardup (docs/formats/collection.md)\nformat = {FORMAT}\n".encode()
            )
        with suppress(OSError):
            os.unlink(os.path.join(path, MAKING))
    except BaseException:
        with suppress(OSError):
            if not is_store(path):
                _remove(path, (*OURS, LOCK, MAKING))
        lock.release()
        _unmake(made)
        raise
    lock.release()


def _check_free(path: str, taken: str) -> None:
    if not os.path.lexists(path):
        return
    there = set(_tried(path, lambda: os.listdir(path))) if os.path.isdir(path) else {""}
    there = {name for name in there if not is_temporary(name)}
    if HEADER in there or (there and not (MAKING in there and there <= {*OURS, LOCK, MAKING})):
        raise InvalidValue(taken)


def _make_folders(path: str) -> list[str]:
    """Make the folder, and those above it, durable; the ones that were not there, the lowest first."""
    at, made = os.path.abspath(path), []
    while not os.path.isdir(at):
        made.append(at)
        at = os.path.dirname(at)
    for folder in reversed(made):
        with suppress(FileExistsError):
            os.mkdir(folder)
        sync_folder(os.path.dirname(folder))
    return made


def _unmake(folders: list[str]) -> None:
    with suppress(OSError):
        for folder in folders:
            os.rmdir(folder)


def _begun(path: str) -> Lock:
    os.close(os.open(os.path.join(path, MAKING), os.O_WRONLY | os.O_CREAT, 0o666))
    sync_folder(path)
    return Lock(os.path.join(path, LOCK), path)


def _remove(path: str, names: Iterable[str]) -> None:
    for name in names:
        with suppress(FileNotFoundError):
            os.unlink(os.path.join(path, name))


# --- errors -----------------------------------------------------------------------------------------------


def _tried(name: str, work: Callable[[], T]) -> T:
    """What *work* gives; what SQLite or the system says against it, in our words."""
    try:
        return work()
    except sqlite3.DatabaseError as error:
        said = str(error)
        if any(word in said for word in _DAMAGE) or type(error) is sqlite3.DatabaseError:
            raise DamagedFile(f"{name!r} is damaged: {said}; restore it from a backup") from None
        if isinstance(error, sqlite3.OperationalError):
            raise NotWritten(f"cannot use {name!r}: {said}{_way_out(said)}") from None
        raise
    except UnicodeDecodeError:
        raise DamagedFile(f"{name!r} is damaged: a text is not UTF-8; restore it from a backup") from None
    except OSError as error:
        if isinstance(error, NotWritten):
            raise
        raise NotWritten(f"cannot write {name!r}: {error.strerror or error}") from None


def _way_out(said: str) -> str:
    for words, way in _WAYS_OUT.items():
        if words in said:
            return f"; {way}"
    return ""


def _check_header(path: str) -> None:
    """Raise if the folder is not a collection that this version reads."""
    header = os.path.join(path, HEADER)
    try:
        with open(header, "rb") as file:
            data = file.read(1 << 12)
    except (FileNotFoundError, NotADirectoryError):
        if os.path.exists(os.path.join(path, FILE)) and not os.path.exists(os.path.join(path, MAKING)):
            raise DamagedFile(f"{header!r} is missing; restore the collection from a backup") from None
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
