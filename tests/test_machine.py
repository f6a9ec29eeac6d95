"""What is told of a machine is what the core does on it."""

from __future__ import annotations

import platform

from neardup import _native
from neardup.machine import facts


def test_the_facts_are_those_of_the_core_and_of_this_python() -> None:
    found = facts()
    assert list(found) == ["core", "instructions", "unicode", "python", "threads", "system"]
    assert (found["core"], found["unicode"]) == (_native.__version__, _native.UNICODE_VERSION)
    assert found["python"] == platform.python_version()
    assert int(found["threads"]) >= 1


def test_the_level_in_use_is_told_and_all_that_the_processor_has() -> None:
    levels = _native.simd_levels()
    assert levels[0] == "scalar"
    for level in levels:
        _native.set_simd(level)
        try:
            told = facts()["instructions"]
        finally:
            _native.set_simd("")
        assert told == f"{level} (this processor has {', '.join(levels)}; NEARDUP_SIMD chooses)"
