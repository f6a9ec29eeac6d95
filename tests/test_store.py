"""The store: what was written is what is read, or an error; one writer, and readers that see it at once."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.errors import DamagedFile, Gone, InvalidValue, LimitReached, Locked, NeardupError, NotWritten
from neardup.store import (
    CHANGES,
    CONTENTS,
    DOCUMENTS,
    PRINTS,
    STORES,
    TABLES,
    Content,
    Document,
    Print,
    Store,
    is_store,
)
from neardup.store.tables import added, checksum, packed


def fill(store: Store, first: int, count: int) -> None:
    """Documents with contents and fingerprints, in one transaction."""
    with store.write(1000) as writing:
        for at in range(first, first + count):
            number = writing.next()
            change = writing.log("add", document=number, content=number, id=f"d{at}")
            digest = at.to_bytes(32, "big")
            data = b"some bytes %d" % at
            writing.insert(
                CONTENTS, Content(number, "text", digest, len(data), data, 1, number, number, change)
            )
            writing.insert(DOCUMENTS, Document(number, f"d{at}", "main", number, b"{}", 1000, None, change))
            writing.insert(PRINTS, Print(1, number, 0, b"12345678"))


def ids(store: Store) -> list[str]:
    return [row.id for row in store.scan(DOCUMENTS)]


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "a.nd")


@pytest.fixture
def store(path: str) -> Iterator[Store]:
    store = Store.create(path, {"a": 1})
    fill(store, 0, 20)
    yield store
    store.close()


# --- what is written --------------------------------------------------------------------------------------


def test_what_was_written_is_there_after_opening_again(store: Store, path: str) -> None:
    state = store.state
    store.close()
    with_it = Store.open(path)
    assert ids(with_it) == [f"d{at}" for at in range(20)]
    assert with_it.state == state
    assert with_it.settings == {"a": 1}
    with_it.close()


def test_a_block_that_raises_changes_nothing(store: Store) -> None:
    before = store.state

    def fail() -> None:
        with store.write(2000) as writing:
            writing.delete(DOCUMENTS, 1)
            writing.log("remove", document=1)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert store.state == before
    assert len(ids(store)) == 20
    assert store.problems() == []


def test_rows_are_read_in_parts_whole_and_in_order(store: Store) -> None:
    for step in (1, 2, 7, 20, 21):
        assert [row.number for row in store.scan(DOCUMENTS, step=step)] == list(range(1, 21))
        assert len(list(store.scan(PRINTS, by="content", step=step))) == 20


def test_the_log_says_what_was_done_and_in_which_order(store: Store) -> None:
    assert [row.number for row in store.changes()] == list(range(1, 21))
    assert [row.document for row in store.changes(18)] == [19, 20]
    assert list(store.changes(20)) == []


def test_time_never_goes_back(store: Store) -> None:
    with store.write(5) as writing:
        writing.log("nothing")
        assert writing.now == 1000


@given(st.lists(st.none() | st.integers(-(2**63), 2**63 - 1) | st.text() | st.binary(), max_size=5))
def test_two_rows_have_the_same_bytes_only_if_they_are_equal(row: list[object]) -> None:
    try:
        data = packed(tuple(row))
    except UnicodeEncodeError:
        return
    others = [*row[:-1], None], [*row, None], [str(one) for one in row]
    for other in others:
        if other != row:
            assert packed(tuple(other)) != data


@given(st.lists(st.binary(min_size=16, max_size=16), max_size=6), st.randoms())
def test_a_sum_does_not_depend_on_the_order_and_goes_back(checks: list[bytes], random: object) -> None:
    total = start = bytes(16)
    for one in checks:
        total = added(total, one)
    for one in reversed(checks):
        total = added(total, one, -1)
    assert total == start


# --- one writer, many readers -----------------------------------------------------------------------------


def test_a_reader_sees_a_write_at_its_next_look(store: Store, path: str) -> None:
    reader = Store.open(path, read_only=True)
    fresh = reader.base.fresh()
    assert reader.base.fresh() == fresh
    fill(store, 20, 1)
    assert reader.base.fresh() != fresh
    assert reader.refresh()
    assert ids(reader)[-1] == "d20"
    reader.close()


def test_a_reader_cannot_write(store: Store, path: str) -> None:
    reader = Store.open(path, read_only=True)
    with pytest.raises(InvalidValue, match="read_only"), reader.write(1):
        pass
    with pytest.raises(NeardupError):
        reader.base.select("DELETE FROM document")
    reader.close()


def test_a_second_writer_is_told_who_the_first_is(store: Store, path: str) -> None:
    with pytest.raises(Locked, match=f"process {os.getpid()} on .* since"):
        Store.open(path)


def test_a_writer_may_come_after_another_closed(store: Store, path: str) -> None:
    store.close()
    Store.open(path).close()


def _hold(path: str, ready: object, done: object) -> None:
    Store.open(path)
    ready.set()  # type: ignore[attr-defined]
    done.wait()  # type: ignore[attr-defined]


def test_a_killed_writer_leaves_the_way_open(store: Store, path: str) -> None:
    store.close()
    context = multiprocessing.get_context("spawn")
    ready, done = context.Event(), context.Event()
    process = context.Process(target=_hold, args=(path, ready, done))
    process.start()
    assert ready.wait(60)
    with pytest.raises(Locked, match=f"process {process.pid} "):
        Store.open(path)
    process.kill()
    process.join()
    again = Store.open(path)
    assert len(ids(again)) == 20
    again.close()


def test_a_child_process_is_told_to_open_it_itself(store: Store, path: str) -> None:
    if not hasattr(os, "fork"):
        pytest.skip("no fork here")
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            store.get(DOCUMENTS, 1)
        except InvalidValue as error:
            os.write(write, str(error).encode())
        os._exit(0)
    os.close(write)
    os.waitpid(child, 0)
    with os.fdopen(read) as said:
        assert "open it in each process" in said.read()
    # The child had the lock file open; the parent has it still.
    with pytest.raises(Locked):
        Store.open(path)


def test_a_reader_is_told_when_the_folder_is_another_collection(
    store: Store, path: str, tmp_path: Path
) -> None:
    reader = Store.open(path, read_only=True)
    store.close()
    shutil.rmtree(path)
    Store.create(path, {}).close()
    with pytest.raises(Gone, match="open it again"):
        reader.base.fresh()
    reader.close()


# --- what is refused --------------------------------------------------------------------------------------


def test_a_folder_that_is_no_collection_is_told_from_one(tmp_path: Path, path: str, store: Store) -> None:
    assert is_store(path)
    assert not is_store(str(tmp_path))
    with pytest.raises(InvalidValue, match="not a collection"):
        Store.open(str(tmp_path))
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").write_text("mine")
    with pytest.raises(InvalidValue, match="exists and is not a collection"):
        Store.create(str(tmp_path / "other"), {})


def test_a_newer_format_is_told_from_damage(store: Store, path: str) -> None:
    store.close()
    header = Path(path, "collection.toml")
    header.write_text("format = 2\n")
    with pytest.raises(InvalidValue, match="newer neardup"):
        Store.open(path)
    header.write_text("nonsense\n")
    with pytest.raises(DamagedFile, match="names no format"):
        Store.open(path)


def test_an_empty_database_is_damage_and_not_an_empty_collection(store: Store, path: str) -> None:
    store.close()
    Path(path, "store.sqlite").write_bytes(b"")
    with pytest.raises(DamagedFile, match="missing or empty"):
        Store.open(path)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE content SET data = x'00' WHERE number = 7",
        "UPDATE document SET id = 'other' WHERE number = 7",
        "DELETE FROM document WHERE number = 7",
        "DELETE FROM print WHERE content = 7",
        "UPDATE change SET body = x'7b7d' WHERE number = 7",
        "DELETE FROM change WHERE number = 20",
        "UPDATE state SET documents = 19",
        "INSERT INTO piece VALUES ('a', 1, x'00', x'00')",
        "CREATE TRIGGER t AFTER INSERT ON document BEGIN DELETE FROM document; END",
        "CREATE VIEW v AS SELECT 1",
        "DROP INDEX document_content",
    ],
)
def test_what_another_program_changed_is_found_when_it_is_opened(
    store: Store, path: str, statement: str
) -> None:
    store.close()
    base = sqlite3.connect(os.path.join(path, "store.sqlite"))
    with base:
        base.execute(statement)
    base.close()
    with pytest.raises(DamagedFile, match="restore"):
        Store.open(path)


def test_a_store_that_lost_its_last_commits_is_refused(store: Store, path: str, tmp_path: Path) -> None:
    before = str(tmp_path / "before")
    store.base.copy(before)
    fill(store, 20, 1)
    store.close()
    # A write-ahead log whose end is damaged has the same effect.
    for name in os.listdir(path):
        if name.startswith("store.sqlite"):
            os.unlink(os.path.join(path, name))
    shutil.copy(os.path.join(before, "store.sqlite"), path)
    with pytest.raises(DamagedFile, match="change 21 was written"):
        Store.open(path, read_only=True)


def test_a_copied_folder_is_written_only_as_a_new_collection(store: Store, path: str, tmp_path: Path) -> None:
    first = store.state.uuid
    store.close()
    copy = str(tmp_path / "copy")
    shutil.copytree(path, copy)
    with pytest.raises(InvalidValue, match="copied or moved"):
        Store.open(copy)
    new = Store.open(copy, as_new=True)
    assert new.state.uuid != first
    assert ids(new)[0] == "d0"
    new.close()
    Store.open(copy).close()


def test_a_damaged_witness_is_found(store: Store, path: str) -> None:
    store.close()
    witness = Path(path, "WITNESS")
    data = bytearray(witness.read_bytes())
    data[10] ^= 1
    witness.write_bytes(data)
    with pytest.raises(DamagedFile, match="WITNESS"):
        Store.open(path)


def test_a_folder_that_may_not_be_written_can_be_read(store: Store, path: str) -> None:
    store.close()
    if os.geteuid() == 0:
        pytest.skip("root may write everywhere")
    os.chmod(path, 0o555)
    try:
        with pytest.raises(LimitReached, match="read_only=True"):
            Store.open(path)
        reader = Store.open(path, read_only=True)
        assert len(ids(reader)) == 20
        reader.close()
    finally:
        os.chmod(path, 0o755)


def test_after_a_failed_commit_nothing_is_written_any_more(store: Store) -> None:
    class Failing:
        def __init__(self, base: sqlite3.Connection) -> None:
            self.base = base

        def __getattr__(self, name: str) -> object:
            return getattr(self.base, name)

        def execute(self, sql: str, values: object = ()) -> object:
            if sql == "COMMIT":
                raise sqlite3.OperationalError("disk I/O error")
            return self.base.execute(sql, values)  # type: ignore[arg-type]

    base = store.base
    base._base = Failing(base._base)  # type: ignore[attr-defined]
    with pytest.raises(NotWritten, match="disk I/O error"):
        fill(store, 20, 1)
    with pytest.raises(LimitReached, match="failed before"):
        fill(store, 21, 1)
    base._base = base._base.base  # type: ignore[attr-defined]
    assert len(ids(store)) == 20


# --- copies and the check ---------------------------------------------------------------------------------


def test_a_copy_of_a_store_in_use_is_whole(store: Store, tmp_path: Path) -> None:
    copy = str(tmp_path / "copy")
    store.base.copy(copy)
    fill(store, 20, 5)
    made = Store.open(copy)
    assert len(ids(made)) == 20
    assert made.problems() == []
    made.close()


def test_no_bit_of_a_row_is_without_a_checksum(store: Store) -> None:
    for table in TABLES:
        for row in store.scan_all(table):
            check = checksum(table, row)
            for at, value in enumerate(row):
                other = {int: lambda v: v ^ 1, str: lambda v: v + "x", bytes: lambda v: v + b"x"}
                changed = 0 if value is None else other[type(value)](value)
                assert checksum(table, (*row[:at], changed, *row[at + 1 :])) != check


def test_the_writer_syncs_every_commit_and_is_the_only_one_that_checkpoints(store: Store, path: str) -> None:
    assert store.base.select("PRAGMA synchronous") == [(2,)]
    assert store.base.select("PRAGMA journal_mode") == [("wal",)]
    assert store.base.select("PRAGMA trusted_schema") == [(0,)]
    reader = Store.open(path, read_only=True)
    assert reader.base.select("PRAGMA query_only") == [(1,)]
    log = os.path.getsize(os.path.join(path, "store.sqlite-wal"))
    reader.close()
    assert os.path.getsize(os.path.join(path, "store.sqlite-wal")) == log > 0


def test_a_row_is_named_in_the_table_of_stores() -> None:
    assert list(STORES) == ["sqlite"]
    assert CHANGES.name == "change"
