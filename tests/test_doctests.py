"""Every example in a docstring of the package runs and shows what it says."""

from __future__ import annotations

import doctest
import pkgutil
from importlib import import_module

import pytest

import neardup

OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
MODULES = sorted(
    found.name
    for found in pkgutil.walk_packages(neardup.__path__, "neardup.")
    if not found.name.endswith(("__main__", "_native"))
)


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module_run(name: str, tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(str(tmp_path))
    failed, _ = doctest.testmod(import_module(name), optionflags=OPTIONS)
    assert failed == 0


def test_the_package_has_examples() -> None:
    finder = doctest.DocTestFinder(exclude_empty=True)
    count = sum(bool(test.examples) for name in MODULES for test in finder.find(import_module(name)))
    assert count > 30
