"""The short form of `make fuzz`: every target with some damaged inputs."""

from __future__ import annotations

from pathlib import Path

import pytest

from neardup import _native

from .fuzz.__main__ import fuzz
from .fuzz.targets import TARGETS


@pytest.mark.parametrize("name", TARGETS)
def test_damaged_inputs_have_documented_answers(name: str, tmp_path: Path) -> None:
    answers = fuzz(TARGETS[name](tmp_path), 2_000, seed=1)
    _native.set_simd("")
    assert answers.total() == 2_000
    assert len(answers) > 1 or name == "levels"
