"""The undo log: what a stranger writes is not believed, and what is damaged is not used."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from neardup.errors import DamagedFile, InvalidValue, LimitReached
from neardup.seals import own_key
from neardup.undologs import Writer, inside, parse_log

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the paths of these logs are those of POSIX")

SHA = "0" * 64
BEGIN: dict[str, Any] = {
    "step": "begin", "number": 1, "path": "/home/in/b.txt", "keeper": "/home/in/a.txt", "root": "/home/in",
    "aside": "/home/in/.neardup-0123456789abcdef.aside", "target": None, "sha256": SHA, "keeper_sha256": SHA,
    "size": 5, "modified": 1, "mode": 0o644, "owner": [0, 0],
}  # fmt: skip


def log(tmp_path: Path, *rows: dict[str, Any], action: str = "delete", trash: str | None = None) -> bytes:
    path = tmp_path / f"{len(os.listdir(tmp_path))}.jsonl"
    with Writer(path, action, trash) as writer:
        for row in rows:
            writer.write(**row)
    return path.read_bytes()


def test_what_was_written_is_read(tmp_path: Path) -> None:
    found = parse_log(log(tmp_path, BEGIN, {"step": "done", "number": 1}))
    (entry,) = found.entries
    assert (found.action, entry.path, entry.keeper, entry.owner) == (
        "delete",
        "/home/in/b.txt",
        "/home/in/a.txt",
        (0, 0),
    )
    assert entry.paths == (BEGIN["path"], BEGIN["aside"], BEGIN["keeper"])


def test_what_was_taken_back_at_once_is_no_entry(tmp_path: Path) -> None:
    left = {"step": "left", "number": 1, "path": BEGIN["path"]}
    assert parse_log(log(tmp_path, BEGIN, left)).entries == ()


def test_a_last_line_that_is_cut_had_not_begun(tmp_path: Path) -> None:
    data = log(tmp_path, BEGIN)
    assert len(parse_log(data).entries) == 1
    for cut in range(data.index(b"\n") + 2, len(data) - 1):
        assert parse_log(data[:cut]).entries == ()


def test_a_log_that_exists_or_cannot_be_written_is_not_begun(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("mine")
    with pytest.raises(InvalidValue, match="exists"):
        Writer(tmp_path / "log", "delete", None)
    with pytest.raises(LimitReached, match="cannot write the log"):
        Writer(tmp_path / "none" / "log", "delete", None)


@pytest.mark.parametrize(
    "data", [b"", b"{}\n", b'{"log": 3, "action": "delete"}\n', b'{"log": 2, "action": "burn"}\n']
)
def test_what_is_no_log_is_called_so(data: bytes) -> None:
    with pytest.raises(InvalidValue, match="not an undo log"):
        parse_log(data)


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        ({"path": "/home/in/../b.txt"}, "is not a whole path"),
        ({"path": "b.txt"}, "is not a whole path"),
        (
            {"path": "/home/other/b.txt", "aside": "/home/other/.neardup-0123456789abcdef.aside"},
            "is not below 'root'",
        ),
        ({"aside": "/home/.neardup-0123456789abcdef.aside"}, "is not a name beside"),
        ({"aside": "/home/in/b.aside"}, "is not a name beside"),
        ({"keeper": "/home/in/b.txt"}, "is its own keeper"),
        ({"target": "/bin/home/in/b.txt"}, "does not belong to this action"),
        ({"sha256": "F" * 64}, "is not a SHA-256"),
        ({"size": -1}, "out of range"),
        ({"size": True}, "does not belong there"),
        ({"mode": 0o10000}, "out of range"),
        ({"owner": [0]}, "is not two numbers"),
        ({"more": 1}, "does not belong there"),
        ({"step": "undone"}, "none that is known"),
    ],
)
def test_a_cell_that_is_not_what_it_should_be_is_named(
    tmp_path: Path, cells: dict[str, Any], reason: str
) -> None:
    with pytest.raises(DamagedFile, match=reason):
        parse_log(log(tmp_path, {**BEGIN, **cells}))


@pytest.mark.parametrize("target", ["/bin/home/in/b.txt", "/bin/home/in/b.txt~2"])
def test_a_place_in_the_trash_is_that_of_its_path(tmp_path: Path, target: str) -> None:
    (entry,) = parse_log(log(tmp_path, {**BEGIN, "target": target}, action="trash", trash="/bin")).entries
    assert (entry.target, entry.trash) == (target, "/bin")
    with pytest.raises(DamagedFile, match="not the place of 'path'"):
        parse_log(log(tmp_path, {**BEGIN, "target": target + "x"}, action="trash", trash="/bin"))


def test_steps_come_in_their_order(tmp_path: Path) -> None:
    done = {"step": "done", "number": 1}
    for rows, reason in (
        ((done,), "did not begin"),
        ((BEGIN, BEGIN), "a second time"),
        ((BEGIN, done, done), "did not begin"),
    ):
        with pytest.raises(DamagedFile, match=reason):
            parse_log(log(tmp_path, *rows))


def test_a_log_is_ones_own_as_long_as_no_line_is_changed_moved_or_missing(tmp_path: Path) -> None:
    second = {**BEGIN, "number": 2}
    head, *lines = log(tmp_path, BEGIN, {"step": "done", "number": 1}, second).splitlines(keepends=True)
    assert parse_log(head + b"".join(lines)).is_own(own_key())
    assert not parse_log(head + b"".join(lines)).is_own(bytes(32))
    assert not parse_log(head + b"".join(lines).replace(b"/home/in/a.txt", b"/home/in/c.txt")).is_own(
        own_key()
    )
    assert not parse_log(head + lines[2] + lines[0] + lines[1]).is_own(own_key())
    assert not parse_log(head + lines[2]).is_own(own_key())


def test_a_whole_path_stands_below_the_trash() -> None:
    assert inside("/home/in/b.txt") == "home/in/b.txt"
