"""neardup collection: every command on a real folder, as a user types it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from neardup.adapters.cli import run
from neardup.collections import Collection

from .articles import article


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rows = [
        {"id": "a", "text": article(1), "date": "2026-11-18"},
        {"id": "b", "text": article(1, 1)},
        {"id": "c", "text": article(2)},
    ]
    Path("in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert run(["collection", "create", "desk.nd", "--bank", "wire"]) == 0
    assert run(["collection", "add", "desk.nd", "in.jsonl", "--field", "date"]) == 0
    return tmp_path / "desk.nd"


def told(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> list[Any]:
    capsys.readouterr()
    assert run(["collection", *words]) == code
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_add_says_what_each_document_is(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = told(capsys, "add", "desk.nd", "in.jsonl", "--field", "date", "--json")
    assert [(row["id"], row["status"]) for row in rows] == [(id, "unchanged") for id in "abc"]
    Path("more.jsonl").write_text(json.dumps({"id": "d", "text": article(2, 1)}) + "\n{}\n")
    rows = told(capsys, "add", "desk.nd", "more.jsonl", "--near", "skip", "--bank", "wire", "--json", code=3)
    assert {row["status"]: row["stored"] for row in rows} == {"near-duplicate": False, "bad": False}
    assert rows[-1]["matches"][0]["id"] == "c"
    assert run(["collection", "add", "desk.nd", "more.jsonl"]) == 3
    assert "d\tnear-duplicate\tc\t0.9" in capsys.readouterr().out


def test_search_tells_what_is_near_and_why(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("question.txt").write_text(article(1, 2))
    for question in (["question.txt"], [article(1, 2)]):
        rows = told(capsys, "search", "desk.nd", *question, "--json")
        assert [row["id"] for row in rows] == ["a"] or [row["id"] for row in rows] == ["a", "b"]
        assert rows[0]["fields"] == {"date": "2026-11-18"}
    assert [row["id"] for row in told(capsys, "search", "desk.nd", "--id", "a", "--json")] == ["b"]
    assert told(capsys, "search", "desk.nd", "--id", "a", "--bank", "wire", "--json") == []
    assert len(told(capsys, "search", "desk.nd", article(5), "--nearest", "-n", "2", "--json")) == 2
    assert run(["collection", "search", "desk.nd", "--id", "a"]) == 0
    assert "b\tmain\t0.9" in capsys.readouterr().out
    assert run(["collection", "search", "desk.nd"]) == 2
    assert "ask with a text or a file, or with --id" in capsys.readouterr().err


def test_documents_are_changed_and_removed(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        run(["collection", "update", "desk.nd", "a", "--set", "seen=3", "--set", "by=ana", "--unset", "date"])
        == 0
    )
    with Collection.open(desk, read_only=True) as opened:
        assert opened.get("a")["fields"] == {"seen": 3, "by": "ana"}
    assert run(["collection", "update", "desk.nd", "a", "--set", "seen"]) == 2
    assert run(["collection", "remove", "desk.nd", "a", "nobody"]) == 0
    assert "1 removed" in capsys.readouterr().err
    assert run(["collection", "expire", "desk.nd"]) == 0
    assert "0 removed" in capsys.readouterr().err


def test_banks_are_listed_made_and_removed(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = told(capsys, "banks", "desk.nd", "--make", "noise", "--suppress", "*", "--disable", "--json")
    assert [row["bank"] for row in rows] == ["main", "noise", "wire"]
    assert rows[1]["suppresses"] == ["*"]
    assert not rows[1]["enabled"]
    rows = told(capsys, "banks", "desk.nd", "--remove", "noise", "--json")
    assert [row["bank"] for row in rows] == ["main", "wire"]


def test_verdicts_are_said_and_bind(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    clusters = told(capsys, "clusters", "desk.nd", "--json")
    assert [[member["id"] for member in one["members"]] for one in clusters] == [["a", "b"]]
    words = ("verdicts", "desk.nd", "--say", "a", "b", "different", "--by", "ana", "--json")
    assert told(capsys, *words)[0]["verdict"] == "different"
    assert told(capsys, "clusters", "desk.nd", "--json") == []
    assert told(capsys, "labels", "desk.nd")[0]["label"] == 0
    assert run(["collection", "verdicts", "desk.nd"]) == 0
    assert capsys.readouterr().out in ("different\ta\tb\tana\t\n", "different\tb\ta\tana\t\n")


def test_a_collection_is_checked_rebuilt_and_refitted(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["collection", "refit", "desk.nd"]) == 0
    assert "fitted on 3 texts" in capsys.readouterr().err
    assert run(["collection", "rebuild", "desk.nd"]) == 0
    rows = told(capsys, "check", "desk.nd", "--json")
    assert rows[0]["problems"] == []
    assert rows[0]["documents"] == 3
    database = desk / "store.sqlite"
    data = bytearray(database.read_bytes())
    place = data.index(b"2026-11-18")
    data[place] ^= 1
    database.write_bytes(data)
    assert run(["collection", "check", "desk.nd"]) == 4
    assert "is not what was written" in capsys.readouterr().out
    assert run(["collection", "search", "desk.nd", "--id", "a"]) == 2


def test_a_backup_becomes_a_collection_again(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["collection", "backup", "desk.nd", "copy.nd"]) == 0
    assert run(["collection", "restore", "copy.nd", "again.nd"]) == 0
    assert run(["collection", "remove", "again.nd", "a"]) == 0
    assert told(capsys, "search", "copy.nd", "--id", "b", "--json")[0]["id"] == "a"
    assert run(["collection", "restore", "copy.nd", "again.nd"]) == 2
    assert "name a new folder" in capsys.readouterr().err


def test_an_export_and_the_log_tell_everything(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["collection", "export", "desk.nd", "out.jsonl"]) == 0
    assert [json.loads(line)["id"] for line in Path("out.jsonl").read_text().splitlines()] == ["a", "b", "c"]
    assert run(["collection", "export", "desk.nd", "out.jsonl"]) == 2
    assert run(["collection", "export", "desk.nd", "out.parquet"]) == 0
    rows = told(capsys, "changes", "desk.nd")
    assert [row["change"] for row in rows] == list(range(1, len(rows) + 1))
    assert [row["id"] for row in rows if row["kind"] == "add"] == ["a", "b", "c"]
    assert told(capsys, "changes", "desk.nd", "--since", str(len(rows))) == []


def test_a_command_that_would_write_says_who_writes(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Collection.open(desk):
        assert run(["collection", "remove", "desk.nd", "a"]) == 5
        assert "is being written by process" in capsys.readouterr().err
        assert run(["collection", "search", "desk.nd", "--id", "a"]) == 0
    assert run(["collection", "create", "desk.nd"]) == 2
    assert run(["collection", "search", "nowhere.nd", "a text"]) == 2
    assert "is not a collection" in capsys.readouterr().err
