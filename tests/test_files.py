"""Files that appear whole or not at all."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from neardup.errors import InvalidType, InvalidValue, LimitReached, NotWritten
from neardup.files import atomic_file, check_folder, check_path, file_digest, locked, spare_path, sweep


def test_a_file_has_its_name_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with atomic_file(path) as file:
        file.write(b"words")
        assert not path.exists()
    assert path.read_bytes() == b"words"
    assert os.listdir(tmp_path) == ["file"]


def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    with pytest.raises(ZeroDivisionError), atomic_file(path, overwrite=True) as file:
        file.write(b"new" * (1 // 0))
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["file"]


def test_a_file_that_exists_is_only_replaced_when_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    with pytest.raises(InvalidValue, match="exists"), atomic_file(path) as file:
        file.write(b"new")
    path.chmod(0o640)
    with atomic_file(path, overwrite=True) as file:
        file.write(b"new")
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("new", 0o640 if os.name != "nt" else 0o666)


def test_one_who_came_first_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with pytest.raises(InvalidValue, match="exists"), atomic_file(path):
        path.write_text("theirs")
    assert path.read_text() == "theirs"


def test_a_link_is_replaced_and_not_what_it_points_to(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    with atomic_file(tmp_path / "link", overwrite=True) as file:
        file.write(b"new")
    assert ((tmp_path / "real").read_text(), (tmp_path / "link").is_symlink()) == ("old", False)


def test_a_folder_that_is_missing_is_told_as_such(tmp_path: Path) -> None:
    with pytest.raises(NotWritten, match="No such file"), atomic_file(tmp_path / "none/file"):
        pass


@pytest.mark.parametrize(("path", "error"), [(7, InvalidType), ("", InvalidValue), ("a\0b", InvalidValue)])
def test_what_cannot_name_a_file_is_refused(path: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        check_path(path)


def test_a_folder_cannot_stand_below_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    check_folder(tmp_path / "new/folder")
    with pytest.raises(InvalidValue, match="is not a folder"):
        check_folder(tmp_path / "file/folder")


def test_a_lock_is_held_by_one(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with locked(path) as there:
        assert not there
    path.write_text("")
    with locked(path) as there:
        assert there
        with pytest.raises(LimitReached, match="already"), locked(path):
            pass


def test_a_digest_is_that_of_the_bytes_and_a_sweep_takes_only_what_is_ours(tmp_path: Path) -> None:
    (tmp_path / ".neardup-0123456789abcdef.tmp").write_text("left by a kill")
    (tmp_path / ".neardup-mine.tmp").write_text("words")
    sweep(str(tmp_path))
    assert os.listdir(tmp_path) == [".neardup-mine.tmp"]
    assert file_digest(tmp_path / ".neardup-mine.tmp") == hashlib.sha256(b"words").hexdigest()


def test_a_spare_file_goes_with_its_folder(tmp_path: Path) -> None:
    with spare_path(str(tmp_path)) as path:
        assert not Path(path).exists()
        Path(path).write_bytes(b"more than fits")
        assert Path(path).is_relative_to(tmp_path)
    assert not list(tmp_path.iterdir())
