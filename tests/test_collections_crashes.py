"""A collection after kills, power cuts and damage: what was acknowledged is there, whole; damage is found.

`NEARDUP_CRASHES=2000 pytest tests/test_collections_crashes.py` does so many of each.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from neardup.collections import Collection
from neardup.errors import DamagedFile, InvalidValue, NeardupError, NotWritten
from neardup.store import Store

from .articles import article, documents
from .damage import damage
from .ingest import BATCH, Ingest
from .powercut import POLICIES, PowerCut

CRASHES = int(os.environ.get("NEARDUP_CRASHES", "6"))
SEED = int(os.environ.get("NEARDUP_SEED", "1"))
linux = pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("cc") is None, reason="needs Linux and a C compiler"
)


class Promised:
    """What writers acknowledged so far."""

    def __init__(self) -> None:
        self.added: set[int] = set()
        self.removed: set[int] = set()
        self.copies: list[str] = []
        self.next = 0

    def note(self, lines: list[str]) -> None:
        for line in lines:
            word, _, rest = line.partition(" ")
            if word == "add":
                self.added.add(int(rest))
            elif word == "remove":
                self.removed.add(int(rest))
            elif word == "backup":
                self.copies.append(rest)

    def check(self, path: Path) -> None:
        """Nothing is lost, torn, changed, or back again."""
        with Collection.open(path, create=True) as news:
            assert news.check() == []
            held: dict[int, dict[str, str]] = {}
            for row in news.documents():
                held.setdefault(int(row["fields"]["n"]), {})[row["id"]] = row["text"]
            for number, rows in held.items():
                assert rows == {f"{number}.{part}": article(number, part) for part in range(BATCH)}
            assert self.added - self.removed <= held.keys() | self._in_flight()
            assert not self.removed & held.keys()
            self.next = max([-1, *held, *self.added]) + 1
            if held:
                number = max(held)
                assert f"{number}.0" in [match.id for match in news.search(text=article(number))]
        for copy in self.copies:
            with Collection.open(copy, read_only=True) as opened:
                assert opened.check() == []
            shutil.rmtree(copy)
        self.copies.clear()

    def _in_flight(self) -> set[int]:
        """What a removal that was not acknowledged may have removed."""
        return {number - 1 for number in self.added if number % 5 == 2}


def crash(ingest: Ingest, path: Path, rng: random.Random, after: Callable[[], int]) -> tuple[int, int]:
    """Let writers end at any moment; how many ended in the middle, and how much was taken back."""
    promised, killed, undone = Promised(), 0, 0
    for _ in range(CRASHES):
        lines, ended = ingest.run(path, promised.next, rng.uniform(1, 300))
        killed += ended == -signal.SIGPROF
        promised.note(lines)
        undone += after()
        for left in path.parent.glob(f"{path.name}-copy-*"):
            if str(left) not in promised.copies:
                shutil.rmtree(left)
        if path.exists() and not (path / "collection.toml").exists():
            shutil.rmtree(path)  # the very first writer ended before it was a collection
        promised.check(path)
    assert promised.added
    return killed, undone


@linux
def test_what_was_acknowledged_survives_a_kill_at_any_moment(tmp_path: Path) -> None:
    with Ingest(tmp_path / "acks") as ingest:
        killed, _ = crash(ingest, tmp_path / "news.nd", random.Random(SEED), lambda: 0)
    assert killed


@linux
def test_what_was_acknowledged_survives_a_power_cut_at_any_moment(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder, work = tmp_path_factory.mktemp("machine"), tmp_path_factory.mktemp("power")
    power, rng = PowerCut(folder, work), random.Random(SEED)

    def cut() -> int:
        for shared in folder.rglob("*-shm"):
            shared.write_bytes(rng.randbytes(32_768))  # of memory that was mapped, anything may be there
        return power.cut(rng.choice(POLICIES), rng)

    with Ingest(work / "acks", **power.env) as ingest:
        killed, undone = crash(ingest, folder / "news.nd", rng, cut)
    assert killed
    assert undone


# --- damage ----------------------------------------------------------------------------------------------


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    path = tmp_path / "whole.nd"
    with Collection.open(path, create=True) as news:
        news.add(documents(12, 4))
        news.verdict("d0", "d1", "different")
    return path


def answers(path: Path) -> Any:
    """Everything that a reader can tell."""
    with Collection.open(path, read_only=True) as news:
        return list(news.documents()), news.verdicts(), news.clusters(), news.search(text=article(1))


def sure(path: Path) -> Any:
    """The same without what an index of the database alone finds: which verdicts are stale."""
    documents, _, clusters, matches = answers(path)
    return documents, clusters, matches


def damaged(whole: Path, path: Path, seed: int, told: Callable[[Path], Any] = answers) -> tuple[str, str]:
    """Damage one file of a copy; what was done, and what became of what is *told* then."""
    rng = random.Random(seed)
    if path.exists():
        shutil.rmtree(path)
    shutil.copytree(whole, path)
    files = sorted(file for file in path.rglob("*") if file.is_file() and file.stat().st_size)
    weights = [max(file.stat().st_size, 2000) for file in files]
    file = rng.choices(files, weights)[0]
    said = f"{file.name}: {damage(file, rng)}"
    try:
        found = told(path)
    except NeardupError as error:
        return said, f"detected: {error}"
    return said, "harmless" if found == told(whole) else "silent"


def test_no_damage_changes_an_answer(whole: Path, tmp_path: Path) -> None:
    told = [damaged(whole, tmp_path / "copy.nd", seed) for seed in range(20 * CRASHES)]
    assert [one for one in told if one[1] == "silent"] == []
    assert any(one[1].startswith("detected") for one in told)


def test_no_damage_changes_an_answer_of_a_collection_that_is_not_checked_whole(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("neardup.store.stores.SMALL", 0)
    told = [damaged(whole, tmp_path / "copy.nd", 1000 + seed, sure) for seed in range(20 * CRASHES)]
    assert [one for one in told if one[1] == "silent"] == []
    assert any(one[1].startswith("detected") for one in told)


def test_no_damage_to_the_log_of_a_killed_writer_takes_back_what_it_wrote(tmp_path: Path) -> None:
    path = tmp_path / "news.nd"
    with Collection.open(path, create=True) as news:
        news.add(documents(6, 3))
        before = tmp_path / "killed.nd"
        shutil.copytree(path, before)  # as a kill would leave it
    expected = answers(before)
    log = before / "store.sqlite-wal"
    size = log.stat().st_size
    assert size
    silent = []
    rng = random.Random(SEED)
    for seed in range(20 * CRASHES):
        copy = tmp_path / "copy.nd"
        if copy.exists():
            shutil.rmtree(copy)
        shutil.copytree(before, copy)
        data = bytearray(log.read_bytes())
        place = rng.randrange(size * 8)
        data[place // 8] ^= 1 << place % 8
        (copy / log.name).write_bytes(data)
        try:
            if answers(copy) != expected:
                silent.append((seed, place))
        except NeardupError:
            pass
    assert silent == []


# --- what a machine may do -------------------------------------------------------------------------------


def test_a_full_disk_is_one_clear_line_and_nothing_is_lost(tmp_path: Path) -> None:
    with Collection.open(tmp_path / "news.nd", create=True) as news:
        news.add(documents(10, 5))
        base: Any = news._store.base
        pages = base.select("PRAGMA page_count")[0][0]
        base._base.execute(f"PRAGMA max_page_count={pages + 2}")
        with pytest.raises(NotWritten, match=r"cannot use .*news.nd.*full"):
            news.add([{"id": f"x{row}", "text": article(100 + row, words=500)} for row in range(50)])
        assert len(news) == 10
        assert news.check() == []
        base._base.execute("PRAGMA max_page_count=1000000")
        assert news.add([{"id": "x", "text": article(100)}])[0].status == "new"


def test_a_copy_that_does_not_fit_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Collection.open(tmp_path / "news.nd", create=True) as news:
        news.add(documents(10, 5))

        def broken(self: Store) -> list[str]:
            return ["a page is damaged"]

        monkeypatch.setattr(Store, "problems", broken)
        with pytest.raises(DamagedFile, match="damaged: a page"):
            news.backup(tmp_path / "copy.nd")
        assert not (tmp_path / "copy.nd").exists()


def test_the_folder_of_a_collection_may_not_be_made_twice(tmp_path: Path) -> None:
    path = tmp_path / "news.nd"
    Collection.open(path, create=True).close()
    Collection.open(path, create=True).close()
    (path / "collection.toml").unlink()
    with pytest.raises(InvalidValue, match="exists and is not a collection"):
        Collection.open(path, create=True)


def test_another_program_that_holds_the_database_is_told_of(tmp_path: Path) -> None:
    path = tmp_path / "news.nd"
    with Collection.open(path, create=True) as news:
        other = sqlite3.connect(path / "store.sqlite", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        base: Any = news._store.base
        base._base.execute("PRAGMA busy_timeout=1")
        with pytest.raises(NotWritten, match="database is locked"):
            news.add([{"id": "a", "text": article(1)}])
        other.execute("ROLLBACK")
        other.close()
        assert news.add([{"id": "a", "text": article(1)}])[0].status == "new"
