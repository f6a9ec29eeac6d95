"""Seals: what a user's neardup wrote itself, it knows again."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from neardup.seals import BYTES, KEY, holds, own_key, seal, state_folder


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NEARDUP_STATE", str(tmp_path / "state"))
    return tmp_path / "state"


def test_a_key_is_drawn_once_and_only_when_it_is_asked_for(state: Path) -> None:
    assert own_key() is None
    assert not state.exists()
    drawn = own_key(make=True)
    assert drawn is not None
    assert len(drawn) == BYTES
    assert (own_key(), own_key(make=True)) == (drawn, drawn)


@pytest.mark.skipif(os.name == "nt", reason="modes are those of POSIX")
def test_nobody_else_can_read_the_key(state: Path) -> None:
    own_key(make=True)
    assert stat.S_IMODE((state / KEY).stat().st_mode) == 0o600
    (state / KEY).chmod(0o640)
    assert own_key() is None


def test_a_key_of_another_length_or_behind_a_link_is_none(state: Path) -> None:
    state.mkdir()
    (state / KEY).write_bytes(bytes(BYTES + 1))
    (state / KEY).chmod(0o600)
    assert own_key() is None
    (state / KEY).rename(state / "other")
    (state / "other").write_bytes(bytes(BYTES))
    assert (state / "other").stat().st_size == BYTES
    (state / KEY).symlink_to(state / "other")
    assert own_key() is None


def test_the_folder_of_the_key_is_named_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NEARDUP_STATE")
    monkeypatch.setenv("XDG_STATE_HOME", os.path.join(os.sep, "state"))
    assert state_folder() == os.path.join(os.sep, "state", "neardup")


def test_a_seal_holds_for_its_parts_its_order_and_its_key_alone() -> None:
    key, other = bytes(BYTES), bytes([1]) * BYTES
    made = seal(key, b"a", b"bc")
    assert holds(key, made, b"a", b"bc")
    for parts in ((b"ab", b"c"), (b"bc", b"a"), (b"a",), (b"a", b"bc", b"")):
        assert not holds(key, made, *parts)
    assert not holds(other, made, b"a", b"bc")
    assert not holds(None, None, b"a", b"bc")
    assert not holds(key, "é" * 64, b"a", b"bc")
    assert not holds(key, 7, b"a", b"bc")
