"""Benchmarks are workloads as data: their definitions hold together, and a wrong result fails the run."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="times of processes need the resource module")
SMALL = ("join 10 k", "groups 1 M", "check words:3")


def run(*words: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(BENCHMARKS / "run.py"), "--quick", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def definitions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The definitions of the Hamming engine, with one count that is off by one."""
    folder = tmp_path_factory.mktemp("definitions")
    shutil.copy(BENCHMARKS / "definitions" / "hamming.toml", folder)
    path = folder / "hamming.toml"
    given = path.read_text()
    path.write_text(
        given.replace("{ count = 10_000, expected = 9_500 }", "{ count = 10_000, expected = 9_501 }")
    )
    assert path.read_text() != given
    return folder


def test_small_workloads_find_what_their_definitions_expect(tmp_path: Path) -> None:
    done = run(*SMALL, "--out", tmp_path / "results.json")
    assert done.returncode == 0, done.stderr
    [found] = json.loads((tmp_path / "results.json").read_text())["runs"]
    assert {row["work"] for row in found["rows"]} == set(SMALL)
    assert all(row["found"] == row["expected"] for row in found["rows"])
    assert {"date", "cpu", "simd", "commit", "command"} <= set(found)


def test_a_wrong_count_fails_the_run(definitions: Path) -> None:
    done = run("--definitions", definitions, "groups 1 M")
    assert done.returncode == 1
    assert done.stderr == "groups 1 M: neardup found 9500, expected 9501\n"


def test_a_misspelt_key_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text('[[workload]]\nname = "a"\nmodle = "join"\nengines = []\n')
    done = run("--definitions", tmp_path)
    assert done.returncode == 1
    assert done.stderr == "own.toml: workload 'a' has unknown keys ['modle']\n"


def test_every_workload_has_an_expectation_and_engines_that_exist() -> None:
    check = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from engines import models\n"
        "from inputs import INPUTS\n"
        "from workloads import DEFINITIONS, load\n"
        "for path in sorted(DEFINITIONS.glob('*.toml')):\n"
        "    for work in load(path).workloads:\n"
        "        assert work.input['make'] in INPUTS, work.name\n"
        "        assert work.quick is not None, work.name\n"
        "        assert {one.name for one in work.engines} <= set(models()[work.model]), work.name\n"
        "print(len(INPUTS))\n"
    )
    command = [sys.executable, "-c", check, str(BENCHMARKS)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
