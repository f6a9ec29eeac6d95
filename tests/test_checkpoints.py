"""The finished parts of a run: whole, and of this run, or not used."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest

from neardup.checkpoints import REMEMBERED, Checkpoints

TABLE = pa.table({"n": [1, 2, 3]}).replace_schema_metadata({"own": "kept"})


def test_a_part_comes_back_as_it_was(tmp_path: Path) -> None:
    Checkpoints(str(tmp_path / "work"), "key").save("part", TABLE)
    again = Checkpoints(str(tmp_path / "work"), "key")
    for found in (again.load("part"), again.opened("part")):
        assert found is not None
        assert found.equals(TABLE, check_metadata=True)
    assert again.load("other") is None


def test_a_part_of_another_run_is_not_used(tmp_path: Path) -> None:
    Checkpoints(str(tmp_path), "key").save("part", TABLE)
    other = Checkpoints(str(tmp_path), "other")
    assert (other.load("part"), other.opened("part")) == (None, None)


@pytest.mark.parametrize("place", [0, 100, -40, -1])
def test_a_damaged_part_is_not_used(tmp_path: Path, place: int) -> None:
    kept = Checkpoints(str(tmp_path), "key")
    kept.save("part", TABLE)
    data = bytearray((tmp_path / "part.arrow").read_bytes())
    data[place] ^= 1
    (tmp_path / "part.arrow").write_bytes(data)
    assert (kept.load("part"), kept.opened("part")) == (None, None)
    (tmp_path / "part.arrow").write_bytes(data[:20])
    assert (kept.load("part"), kept.opened("part")) == (None, None)


def test_without_a_folder_nothing_is_kept() -> None:
    kept = Checkpoints(None, "key")
    kept.save("part", TABLE)
    assert (kept.load("part"), kept.opened("part"), kept.due(complete=True)) == (None, None, False)


def test_parts_go_when_the_run_is_done(tmp_path: Path) -> None:
    kept = Checkpoints(str(tmp_path / "work"), "key")
    kept.save("part", TABLE)
    kept.forget("part")
    assert kept.load("part") is None
    kept.drop()
    assert not (tmp_path / "work").exists()


def test_remembered_parts_serve_the_same_run_again(tmp_path: Path) -> None:
    for number in range(2):
        kept = Checkpoints(str(tmp_path / f"work{number}"), "key")
        kept.remember(str(tmp_path / "runs/one"))
        assert kept.due(complete=True)
        assert (kept.load("part") is None) == (number == 0)
        kept.save("part", TABLE)
        kept.drop()


def test_only_the_latest_runs_are_remembered(tmp_path: Path) -> None:
    for number in range(REMEMBERED + 1):
        folder = tmp_path / "runs" / str(number)
        folder.mkdir(parents=True)
        os.utime(folder, (number, number))
    kept = Checkpoints(str(tmp_path / "work"), "key")
    kept.remember(str(tmp_path / "runs/new"))
    kept.save("part", TABLE)
    kept.drop()
    left = {path.name for path in (tmp_path / "runs").iterdir()}
    assert left == {"new", *(str(number) for number in range(2, REMEMBERED + 1))}
