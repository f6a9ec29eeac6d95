"""Collections after crashes and in bad company: what was acknowledged is there, and what is wrong is told."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from neardup.collections import Collection
from neardup.errors import DamagedFile, Gone, InvalidValue, Locked
from neardup.store import locks
from neardup.store.locks import Witness, Witnessed
from neardup.store.sqlite import FILE, HEADER, LOCK, MAKING, Sqlite

from .articles import article
from .crashing import Crasher

linux = pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("cc") is None, reason="needs Linux and a C compiler"
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.nd"


@pytest.fixture
def news(path: Path) -> Iterator[Collection]:
    with Collection.open(path, create=True, clock=lambda: 1000) as news:
        news.add([{"id": f"d{row}", "text": article(row)} for row in range(5)])
        yield news


def before(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, work: Callable[[], object]) -> None:
    """Let *work* be done, once, before a method."""
    method, waiting = getattr(owner, name), [work]

    def changed(*positional: Any, **keywords: Any) -> Any:
        if waiting:
            waiting.pop()()
        return method(*positional, **keywords)

    monkeypatch.setattr(owner, name, changed)


# --- crashes ---------------------------------------------------------------------------------------------


@linux
@pytest.mark.parametrize("cuts", [False, True], ids=["killed", "power cut"])
def test_four_threads_lose_nothing_they_were_promised(
    tmp_path_factory: pytest.TempPathFactory, cuts: bool
) -> None:
    folder, work = tmp_path_factory.mktemp("machine"), tmp_path_factory.mktemp("work")
    with Crasher(folder, work, seed=3) as crasher:
        crasher.life(5, cuts=cuts)
        assert crasher.tally.faults == []
        assert crasher.tally.acknowledged > 0
        assert crasher.tally.kills > 0
        assert (crasher.tally.undone > 0) == cuts


# --- folders that were never finished --------------------------------------------------------------------


def test_a_folder_whose_making_was_killed_is_made_anew(path: Path) -> None:
    path.mkdir()
    for name in (MAKING, FILE, f"{FILE}-wal", LOCK, ".neardup-0123456789abcdef.tmp"):
        (path / name).write_bytes(b"half")
    with pytest.raises(InvalidValue, match="not a collection"):
        Collection.open(path)
    with Collection.open(path, create=True) as made:
        assert len(made) == 0
    assert {file.name for file in path.iterdir()} <= {FILE, HEADER, LOCK, "WITNESS"}


def test_a_folder_with_a_file_of_somebody_else_is_never_cleared(path: Path) -> None:
    path.mkdir()
    (path / MAKING).touch()
    (path / "mine").write_text("mine")
    with pytest.raises(InvalidValue, match="name a new folder"):
        Collection.open(path, create=True)
    assert (path / "mine").read_text() == "mine"


def test_a_collection_that_lost_its_header_is_damaged_and_not_made_anew(path: Path, news: Collection) -> None:
    news.close()
    (path / HEADER).unlink()
    with pytest.raises(DamagedFile, match="is missing"):
        Collection.open(path)
    with pytest.raises(InvalidValue, match="name a new folder"):
        Collection.open(path, create=True)
    assert (path / FILE).stat().st_size > 0


def test_a_backup_that_was_killed_can_be_made_again(tmp_path: Path, news: Collection) -> None:
    copy = tmp_path / "copy.nd"
    copy.mkdir()
    for name in (MAKING, FILE, LOCK):
        (copy / name).write_bytes(b"half")
    news.backup(copy)
    with Collection.open(copy, read_only=True) as made:
        assert len(made) == 5


def test_two_that_make_one_folder_at_once_do_not_meet_in_it(path: Path) -> None:
    path.mkdir()
    (path / MAKING).touch()
    held = locks.Lock(str(path / LOCK), str(path))
    with pytest.raises(Locked, match="is being written by process"):
        Collection.open(path, create=True)
    held.release()
    Collection.open(path, create=True).close()


# --- a reader beside a writer ----------------------------------------------------------------------------


def test_a_reader_that_opens_while_the_writer_commits_does_not_call_it_damage(
    path: Path, news: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    before(monkeypatch, Sqlite, "witnessed", lambda: news.add([{"id": "x", "text": article(50)}]))
    with Collection.open(path, read_only=True) as reader:
        assert len(reader) == 6


@pytest.mark.parametrize("ask", ["search", "check", "get", "clusters"])
def test_a_write_in_the_middle_of_a_question_is_not_seen_by_half(
    path: Path, news: Collection, monkeypatch: pytest.MonkeyPatch, ask: str
) -> None:
    with Collection.open(path, read_only=True) as reader:
        refresh, waiting = reader._shelf.refresh, [1]

        def refreshed() -> None:
            refresh()
            if waiting:
                waiting.pop()
                news.remove(["d1"])

        monkeypatch.setattr(reader._shelf, "refresh", refreshed)
        asked = {"search": {"text": article(1)}, "get": {"id": "d1"}}.get(ask, {})
        first = getattr(reader, ask)(**asked)
        if ask == "search":
            assert [match.id for match in first] == ["d1"]
            assert reader.search(text=article(1)) == []
        if ask == "check":
            assert first == []
        assert reader.check() == []


def test_a_look_that_was_interrupted_is_made_up_for(
    path: Path, news: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Collection.open(path, read_only=True) as reader:
        news.add([{"id": "x", "text": article(50)}])
        live = reader._shelf.lives["text"]
        with monkeypatch.context() as patch:

            def stopped(*_: object) -> None:
                raise KeyboardInterrupt

            patch.setattr(live, "replay", stopped)
            with pytest.raises(KeyboardInterrupt):
                reader.search(text=article(50))
        assert [match.id for match in reader.search(text=article(50))] == ["x"]


# --- after the commit ------------------------------------------------------------------------------------


def test_a_writer_that_is_interrupted_after_its_commit_finds_what_it_wrote(
    news: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(news._store.base, "written", stopped)
        with pytest.raises(KeyboardInterrupt):
            news.add([{"id": "x", "text": article(50)}], bank="other")
    assert [match.id for match in news.search(text=article(50))] == ["x"]
    news.add([{"id": "y", "text": article(51)}], bank="other")
    assert news.check() == []


def test_a_witness_that_cannot_be_written_does_not_undo_what_is_durable(
    path: Path, news: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Witness, "write", full)
    assert news.add([{"id": "x", "text": article(50)}])[0].status == "new"
    assert [match.id for match in news.search(text=article(50))] == ["x"]
    news.close()
    with Collection.open(path) as again:
        assert len(again) == 6


def test_no_bit_of_a_witness_can_change_unseen(tmp_path: Path) -> None:
    file = tmp_path / "WITNESS"
    witness = Witness(str(file))
    witness.begin(Witnessed(7, b"0123456789abcdef", 99))
    whole = file.read_bytes()
    for bit in range(len(whole) * 8):
        data = bytearray(whole)
        data[bit // 8] ^= 1 << bit % 8
        file.write_bytes(data)
        with pytest.raises(DamagedFile):
            witness.read()


# --- a writer whose folder is not its own any more -------------------------------------------------------


def test_a_writer_does_not_write_to_a_folder_that_was_replaced(path: Path, news: Collection) -> None:
    shutil.rmtree(path)
    Collection.open(path, create=True).close()
    with pytest.raises(Gone, match="moved, removed or replaced"):
        news.add([{"id": "x", "text": article(50)}])


def test_a_writer_whose_lock_was_removed_stops(path: Path, news: Collection) -> None:
    (path / LOCK).unlink()
    with pytest.raises(Gone, match="LOCK"):
        news.add([{"id": "x", "text": article(50)}])


def test_a_clock_that_goes_back_brings_nothing_back(path: Path) -> None:
    now = [1000]
    with Collection.open(path, create=True, clock=lambda: now[0]) as news:
        news.add([{"id": "short", "text": article(1)}], expires_after=10)
        now[0] = 2000
        news.add([{"id": "later", "text": article(2)}])
        now[0] = 5
        assert news.search(text=article(1)) == []
        assert news.status()["clock_behind"] == 1995
        news.add([{"id": "last", "text": article(3)}])
        assert [row["at"] for row in news.changes()][-1] == 2000


# --- the disk --------------------------------------------------------------------------------------------

ADD = """
import resource, signal, sys
from neardup.adapters.cli import main
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]),) * 2)
main(sys.argv[2:])
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no limits of files there")
def test_a_disk_without_room_is_one_line_and_the_next_writer_goes_on(path: Path, news: Collection) -> None:
    size = os.path.getsize(path / FILE)
    news.close()
    more = path.parent / "more.jsonl"
    text = " ".join(article(row, words=200) for row in range(600))
    more.write_text(f'{{"id": "x", "text": "{text}"}}\n')
    command = [sys.executable, "-c", ADD, str(size), "collection", "add", str(path), str(more)]
    ended = subprocess.run(
        command, capture_output=True, text=True, cwd=Path(__file__).parent.parent, check=False
    )
    assert ended.returncode == 5, ended.stderr
    assert ended.stderr.count("\n") == 1
    assert "cannot use" in ended.stderr
    with Collection.open(path) as again:
        assert len(again) == 5
        assert again.check() == []
        assert again.add([{"id": "x", "text": text}])[0].status == "new"
