"""The short form of `make fuzz`: every target with some damaged inputs."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

from neardup import _native
from neardup.errors import NeardupError

from .fuzz.__main__ import fuzz
from .fuzz.targets import TARGETS

FOUND = sorted((Path(__file__).parent / "fuzz/found").iterdir())


@pytest.mark.parametrize("path", FOUND, ids=lambda path: path.name)
def test_what_fuzzing_found_has_a_documented_answer(path: Path, tmp_path: Path) -> None:
    with suppress(NeardupError):
        TARGETS[path.name.partition("-")[0]](tmp_path).run(path.read_bytes())


@pytest.mark.parametrize("name", TARGETS)
def test_damaged_inputs_have_documented_answers(name: str, tmp_path: Path) -> None:
    answers = fuzz(TARGETS[name](tmp_path), 2_000, seed=1)
    _native.set_simd("")
    assert answers.total() == 2_000
    assert len(answers) > 1 or name == "levels"
