"""Files below a folder, reached without following a link."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from neardup.places import folder_of, is_below, reached


def test_a_file_is_reached_read_and_renamed_in_its_folder(tmp_path: Path) -> None:
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "a/b/file").write_text("words")
    with reached(str(tmp_path / "a/b/file"), str(tmp_path)) as place:
        assert place.exists()
        with os.fdopen(place.open(os.O_RDONLY)) as file:
            assert file.read() == "words"
        other = place.beside("other")
        place.rename(other)
        assert (place.exists(), other.exists()) == (False, True)
    assert (tmp_path / "a/b/other").read_text() == "words"


def test_a_link_on_the_way_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real/file").write_text("words")
    (tmp_path / "link").symlink_to("real")
    with (
        pytest.raises(OSError, match="symbolic link") as error,
        reached(str(tmp_path / "link/file"), str(tmp_path)),
    ):
        pass
    assert error.value.errno == errno.ELOOP


def test_a_file_that_is_a_link_is_not_opened(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("words")
    (tmp_path / "link").symlink_to("real")
    with reached(str(tmp_path / "link"), str(tmp_path)) as place, pytest.raises(OSError) as error:
        place.open(os.O_RDONLY)
    assert error.value.errno in (errno.ELOOP, errno.EMLINK)


def test_the_folder_that_was_chosen_may_be_named_by_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    with reached(str(tmp_path / "link/file"), str(tmp_path / "link")) as place:
        os.close(place.open(os.O_WRONLY | os.O_CREAT))
    assert (tmp_path / "real/file").exists()


def test_folders_on_the_way_are_made_when_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "trash/a/b/file"
    with pytest.raises(FileNotFoundError), reached(str(path), str(tmp_path)):
        pass
    with reached(str(path), str(tmp_path / "trash"), make=True) as place:
        os.close(place.open(os.O_WRONLY | os.O_CREAT))
    assert path.exists()


@pytest.mark.parametrize("path", ["/a/b", "/ab/c", "/"])
def test_what_is_not_below_is_refused(path: str) -> None:
    with pytest.raises(OSError, match="is not below"), reached(path, "/a/b/c"):
        pass


def test_the_nearest_folder_is_told_by_whole_names() -> None:
    assert is_below("/a/b", "/a/b")
    assert not is_below("/a/bc", "/a/b")
    assert folder_of("/a/b/c", ["/", "/a", "/a/b", "/a/bc"]) == "/a/b"
    assert folder_of("/a", ["/b"]) is None
