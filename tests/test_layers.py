"""Which way imports point: a module imports only from what is to the left of it.

This is the list that docs/architecture.md explains. A new module or package gets its place here.
Imports inside functions count as well: being lazy makes them cheaper, not right.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import neardup

ROOT = Path(neardup.__file__).parent
MODULES = sorted(path for path in ROOT.rglob("*.py"))

# Left to right. Parts of one layer do not import each other.
LAYERS = [
    {"errors", "naive", "_native", "wording", "cjk"},
    {"threads"},
    {"types", "checks", "registry", "arrays", "files", "observers", "diffs", "blocks", "edits"}
    | {"ahead", "dates", "machine", "memory", "numbering", "sizes"},
    {"fingerprints", "radius", "places", "seals"},
    {"distances", "features", "hashes", "pairs"},
    {"images"},
    {"schemes", "sources"},
    {"survey", "planner", "index", "store"},
    {"verifiers"},
    {"clusters", "guards"},
    {"keep", "explain"},
    {"settings"},
    {"representatives"},
    {"candidates"},
    {"verdicts"},
    {"contents"},
    {"requests", "fields"},
    {"results"},
    {"stars"},
    {"conclusions"},
    {"report", "sinks"},
    {"checkpoints", "runs"},
    {"parts", "proofs", "rejudging", "summaries", "undologs"},
    {"passes", "actions", "search", "timelines"},
    {"pipeline"},
    {"jobs", "calibration", "quotations", "collections"},
    {"adapters", "compat"},
]
PLACE = {name: number for number, layer in enumerate(LAYERS) for name in layer}

# The core is called from here only: elsewhere the Python functions are the way to it.
CALLS_NATIVE = {
    "threads",
    "hashes",
    "schemes",
    "survey",
    "planner",
    "pairs",
    "index",
}
CALLS_NATIVE |= {"sources", "verifiers", "clusters", "keep", "memory", "representatives", "conclusions"}
CALLS_NATIVE |= {
    "contents",
    "images",
    "machine",
    "parts",
    "passes",
    "summaries",
    "observers",
    "stars",
    "quotations",
}

# What runs code that came with data. `compile` and `__import__` are not needed either.
RUNS_CODE_MODULES = {"pickle", "cPickle", "marshal", "shelve", "dill", "joblib", "cloudpickle", "jsonpickle"}
RUNS_CODE_CALLS = {"eval", "exec", "compile", "__import__"}


def part_of(path: Path) -> str:
    """The name in LAYERS of the module in that file; "" for the package's own face."""
    first = path.relative_to(ROOT).parts[0].removesuffix(".py")
    return "" if first in ("__init__", "__main__") else first


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """Every import of a file: its line and the full name of the module."""
    package = ["neardup", *path.relative_to(ROOT).parent.parts]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                base = ".".join([*package[: len(package) - node.level + 1], *filter(None, [node.module])])
            # `from neardup import x` may name a module or something of the package's face.
            yield from ((node.lineno, f"{base}.{alias.name}") for alias in node.names)


def ours(path: Path) -> Iterator[tuple[int, str]]:
    """The parts of neardup that a file imports, but for its own."""
    for line, name in imports(path):
        words = name.split(".")
        if words[0] == "neardup" and len(words) > 1 and words[1] not in (part_of(path), "__version__"):
            yield line, words[1]


def test_every_module_has_a_place() -> None:
    missing = sorted({part_of(path) for path in MODULES} - {"", *PLACE})
    assert not missing, (
        f"give {', '.join(missing)} a place in LAYERS of {__file__} and in docs/architecture.md"
    )


def test_the_docs_have_the_same_list() -> None:
    page = (ROOT.parent / "docs" / "architecture.md").read_text(encoding="utf-8")
    told = page.partition("## Which way imports point")[2].partition("\n\n    ")[2].partition("\n\n")[0]
    assert [set(layer.replace(",", " ").split()) for layer in told.split("->")] == LAYERS


def test_the_list_has_no_part_twice_and_none_that_is_gone() -> None:
    names = [name for layer in LAYERS for name in layer]
    assert sorted(names) == sorted({part_of(path) for path in MODULES} - {""} | {"_native"})


def test_the_list_of_those_who_call_the_core_has_no_other() -> None:
    calling = {part_of(path) for path in MODULES for _, name in ours(path) if name == "_native"}
    assert calling - {""} == CALLS_NATIVE


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_imports_only_from_the_left(path: Path) -> None:
    own = part_of(path)
    for line, name in ours(path):
        where = f"{path}:{line}"
        if own == "":
            continue  # the face may show everything
        assert name in PLACE, f"{where} imports neardup.{name}, which has no place in LAYERS of {__file__}"
        assert PLACE[name] < PLACE[own], (
            f"{where}: {own} must not import {name}, which does not stand left of it"
        )
        if name == "_native":
            assert own in CALLS_NATIVE, (
                f"{where}: {own} must call the core through {', '.join(sorted(CALLS_NATIVE))}"
            )


def test_the_files_of_a_package_import_each_other_without_a_circle() -> None:
    known = {".".join(("neardup", *path.relative_to(ROOT).with_suffix("").parts)): path for path in MODULES}
    known = {name.removesuffix(".__init__"): path for name, path in known.items()}

    def module_of(name: str) -> str | None:
        while name and name not in known:
            name = name.rpartition(".")[0]
        return name or None

    graph = {
        name: {found for _, imported in top_level(path) if (found := module_of(imported)) and found != name}
        for name, path in known.items()
    }
    done: set[str] = set()

    def walk(name: str, way: tuple[str, ...]) -> None:
        assert name not in way, f"a circle of imports: {' -> '.join((*way, name))}"
        if name not in done:
            for following in sorted(graph[name]):
                walk(following, (*way, name))
            done.add(name)

    for name in sorted(graph):
        walk(name, ())


def top_level(path: Path) -> Iterator[tuple[int, str]]:
    """The imports that run when the file is loaded."""
    lazy: set[int] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) or (
            isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        ):
            lazy.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    yield from ((line, name) for line, name in imports(path) if line not in lazy)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_nothing_runs_code_that_came_with_data(path: Path) -> None:
    for line, name in imports(path):
        assert name.split(".")[0] not in RUNS_CODE_MODULES, f"{path}:{line} imports {name}"
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Call):
            continue
        if isinstance(node.func, ast.Name):
            assert node.func.id not in RUNS_CODE_CALLS, f"{path}:{node.lineno} calls {node.func.id}"
        for keyword in node.keywords:
            assert keyword.arg != "allow_pickle" or ast.unparse(keyword.value) == "False", (
                f"{path}:{node.lineno}"
            )


HEAVY = {"numpy", "pyarrow", "PIL", "rich", "jinja2", "orjson", "neardup._native"}


@pytest.mark.parametrize(
    "code",
    [
        "import neardup",
        "import neardup; dir(neardup)",
        "from neardup.adapters.cli import run; assert run(['--help']) == 0",
        "from neardup.adapters.cli import run; assert run(['--version']) == 0",
        "from neardup.adapters.cli import run; assert run(['nonsense']) == 2",
    ],
)
def test_a_light_start_loads_no_heavy_package(code: str) -> None:
    check = f"{code}\nimport sys; print('loaded:', *sorted(sys.modules.keys() & {HEAVY!r}))"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "loaded:"
