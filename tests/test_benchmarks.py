"""Benchmarks are workloads as data: their definitions hold together, and a wrong result fails the run."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from neardup import _native

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
    levels = {row["level"] for row in found["rows"] if row["engine"].startswith("neardup")}
    assert levels == {found["simd"], *_native.simd_levels()}
    assert {row["level"] for row in found["rows"] if not row["engine"].startswith("neardup")} == {None}
    assert {"date", "cpu", "simd", "commit", "command"} <= set(found)


def test_a_wrong_count_fails_the_run(definitions: Path) -> None:
    done = run("--definitions", definitions, "groups 1 M")
    assert done.returncode == 1
    level = _native.simd_level()
    assert done.stderr == f"groups 1 M: neardup at {level} found 9500, expected 9501\n"


def test_each_engine_of_ours_is_measured_at_every_level_and_finds_the_same(tmp_path: Path) -> None:
    done = run("join 10 k", "--level", "all", "--out", tmp_path / "results.json")
    assert done.returncode == 0, done.stderr
    [found] = json.loads((tmp_path / "results.json").read_text())["runs"]
    rows = [row for row in found["rows"] if row["engine"] == "neardup"]
    assert [row["level"] for row in rows] == _native.simd_levels()
    assert {row["found"] for row in rows} == {100}


# --- tables by level -----------------------------------------------------------------------------------

GOAL = """
[[workload]]
name = "join"
model = "join"
input = { make = "uniform", count = 10 }
engines = [{ name = "neardup" }, { name = "numpy blocks" }]

[[goal]]
name = "join against numpy"
of = ["join", "numpy blocks"]
over = ["join", "neardup"]
least = { scalar = 8, avx2 = 15 }

[[goal]]
name = "scalar over avx2"
of = ["join", "neardup", "scalar"]
over = ["join", "neardup", "avx2"]
most = 2
"""


def row(engine: str, level: str | None, wall: float) -> dict[str, object]:
    times = {"items": 10, "wall": wall, "cpu": 2 * wall}
    return {"work": "join", "engine": engine, "level": level, **times}


ROWS = [row("numpy blocks", None, 60.0), row("neardup", "scalar", 10.0), row("neardup", "avx2", 3.0)]


def of_benchmarks(code: str, *given: object) -> str:
    """What *code* prints, which imports from benchmarks/ and reads what is *given* as `given`."""
    begin = "import json, sys; sys.path.insert(0, sys.argv[1]); given = json.loads(sys.argv[2])\n"
    command = [sys.executable, "-c", begin + code, str(BENCHMARKS), json.dumps(given)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_goal_by_level_is_a_row_of_ratios_by_wall_and_cpu_and_what_missed_it_stands_out(
    tmp_path: Path,
) -> None:
    (tmp_path / "own.toml").write_text(GOAL)
    code = (
        "from pathlib import Path\n"
        "from tables import page\n"
        "from workloads import load\n"
        "goals = load(Path(given[0])).goals\n"
        "print([goal.by_level for goal in goals], goals[1].ratio(given[1], None))\n"
        "print(*page(goals[:1], [[], given[1]]), sep='\\n')\n"
    )
    shown = of_benchmarks(code, str(tmp_path / "own.toml"), ROWS).splitlines()
    assert shown[0] == f"[True, False] {10 / 3}"
    assert shown[1:3] == ["| work | `scalar` | `avx2` |", "|---|---|---|"]
    assert shown[3] == "| join against numpy | **6** / 6 (8) | 20 / 20 (15) |"


def test_the_tables_by_level_have_their_places_and_replace_only_these() -> None:
    pages = [BENCHMARKS.parent / "README.md", BENCHMARKS.parent / "docs" / "benchmarks.md"]
    code = (
        "from tables import SHORT, goals_by_level, replaced\n"
        "for page in given:\n"
        "    made = replaced(page, 'new')\n"
        "    assert made != page and replaced(made, 'new') == made\n"
        "    assert replaced(made, 'old') == made.replace('\\nnew\\n', '\\nold\\n')\n"
        "assert set(SHORT) <= {goal.name for goal in goals_by_level()}\n"
    )
    of_benchmarks(code, *(page.read_text(encoding="utf-8") for page in pages))


# --- instructions --------------------------------------------------------------------------------------


def told(counts: dict[str, int], within: float) -> list[list[object]]:
    """What is said of counts at level avx2 where 1,000 are stored of `kernel`."""
    code = "from instructions import told; print(json.dumps(list(told(*given))))"
    found: list[list[object]] = json.loads(
        of_benchmarks(code, {"avx2": counts}, {"avx2": {"kernel": 1000}, "scalar": {"kernel": 9}}, within)
    )
    return found


def test_more_than_a_tenth_above_the_stored_count_is_an_error_and_below_it_is_named() -> None:
    assert told({"kernel": 1100}, 0.1) == []
    assert told({"kernel": 1101}, 0.1) == [[True, "avx2    kernel: 1,101 instructions, 10% above 1,000"]]
    assert told({"kernel": 900}, 0.1) == []
    assert told({"kernel": 500}, 0.1) == [
        [False, "avx2    kernel: 500 instructions, 50% below 1,000; --store"]
    ]


def test_another_compiler_may_need_a_quarter_more() -> None:
    assert of_benchmarks("from instructions import OTHER_COMPILER; print(OTHER_COMPILER)") == "0.25\n"
    assert told({"kernel": 1250}, 0.25) == []
    assert told({"kernel": 1251}, 0.25)[0][0] is True


def test_a_kernel_that_was_never_stored_or_is_gone_is_an_error() -> None:
    assert told({"other": 5}, 0.1) == [
        [True, "avx2    kernel: no longer there; --store"],
        [True, "avx2    other: not stored; --store"],
    ]


def test_what_callgrind_writes_is_read() -> None:
    text = "desc: I1 cache: \ndesc: Trigger: Client Request: cut, words:3\n\nsummary: 0\n\ntotals: 1180252\n"
    code = "from instructions import read; print(*read(given[0]))"
    assert of_benchmarks(code, text) == "cut, words:3 1180252\n"


def test_every_stored_count_is_of_both_levels() -> None:
    stored = json.loads((BENCHMARKS / "instructions.json").read_text())
    scalar, avx2 = (stored["counts"][level] for level in ("scalar", "avx2"))
    assert scalar.keys() == avx2.keys()
    assert all(count > 0 for count in [*scalar.values(), *avx2.values()])
    assert stored["compiler"].startswith("rustc ")


def test_many_short_documents_are_made_and_deduplicated(tmp_path: Path) -> None:
    command = [
        sys.executable,
        str(BENCHMARKS / "ten_million.py"),
        "--documents",
        "2000",
        "--work",
        str(tmp_path),
    ]
    for limit, code in (("8", 0), ("0.001", 1)):
        out = tmp_path / f"{code}.json"
        done = subprocess.run(
            [*command, "--limit-gb", limit, "--out", str(out)], capture_output=True, text=True, check=False
        )
        assert done.returncode == code, done.stderr
        [row] = json.loads(out.read_text())["runs"][0]["rows"]
        assert (row["items"], row["removed"]) == (2000, 200)


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
