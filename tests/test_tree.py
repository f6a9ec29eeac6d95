"""Tests mirror the package: each module has a test file by its own name, or by that of its package.

`neardup/sources/jsonl.py` is tested by `test_sources_jsonl.py`, by `test_sources.py`, or by any file whose name
begins with one of these. The command line is `cli`. What docs and comments say about the tree is true.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import neardup

ROOT = Path(neardup.__file__).parent
TESTS = Path(__file__).parent
MODULES = sorted(
    path.relative_to(ROOT) for path in ROOT.rglob("*.py") if path.read_text(encoding="utf-8").count("\n") > 1
)
FILES = [path.stem.removeprefix("test_") for path in TESTS.glob("test_*.py")]


def names_of(module: Path) -> list[str]:
    """What the test file of a module may be called, or begin with."""
    parts = [
        part for part in module.with_suffix("").parts if part not in ("__init__", "__main__", "adapters")
    ]
    return ["_".join(parts[:count]) for count in range(len(parts), 0, -1)] or ["cli", "hostile"]


@pytest.mark.parametrize("module", MODULES, ids=str)
def test_a_module_has_a_test_file(module: Path) -> None:
    names = names_of(module)
    assert any(file == name or file.startswith(f"{name}_") for file in FILES for name in names), (
        f"give {module} a test: tests/test_{names[0]}.py"
    )


@pytest.mark.parametrize("path", sorted(TESTS.rglob("*.py")), ids=lambda path: path.name)
def test_no_test_patches_a_name_that_may_not_exist(path: Path) -> None:
    """The test would go on, green and empty, when somebody renames what it patches."""
    lenient = "raising=" + "False"
    assert lenient not in re.sub(r"\s", "", path.read_text(encoding="utf-8"))


# Paths of the repository as docs and comments name them.
NAMED = re.compile(
    r"(?<![\w/.-])(?:src|neardup|tests|tools|docs|benchmarks|examples)/[\w/.-]+\.(?:rs|py|pyi|md|toml|html)\b"
)
PAGES = [
    path
    for folder in ("", "src", "neardup", "tests", "tools", "docs", "benchmarks", "examples")
    for pattern in ("*.md", "*.rs", "*.py", "*.pyi")
    for path in sorted((TESTS.parent / folder).glob(pattern if not folder else f"**/{pattern}"))
]


def test_a_file_that_is_named_is_there() -> None:
    missing = [
        f"{path.relative_to(TESTS.parent)} names {name}"
        for path in PAGES
        for name in NAMED.findall(path.read_text(encoding="utf-8"))
        if not (TESTS.parent / name).exists()
    ]
    assert not missing
