"""The commands join, plan and index."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from neardup.adapters.cli import cli, run

PRINTS = "0000000000000000\n0000000000000001\n00000000ffffffff\n0000000000000001\n"


@pytest.fixture
def written(tmp_path: Path) -> Path:
    rows = [{"id": name, "fingerprint": text} for name, text in zip("abcd", PRINTS.split(), strict=True)]
    path = tmp_path / "prints.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in [*rows, {"id": "e", "fingerprint": None}]))
    return path


def call(*arguments: object, stdin: str = "") -> str:
    done = CliRunner().invoke(
        cli, [str(argument) for argument in arguments], input=stdin, catch_exceptions=False
    )
    assert done.exit_code == 0
    return done.stdout


def test_pairs_are_written_with_ids_by_value(written: Path, tmp_path: Path) -> None:
    call("join", written, "-o", tmp_path / "pairs.parquet", "--radius", 3)
    rows = pq.read_table(tmp_path / "pairs.parquet").to_pylist()
    assert [tuple(row.values()) for row in rows] == [("a", "b", 1), ("a", "d", 1), ("b", "d", 0)]


def test_lines_on_standard_input_are_numbered(tmp_path: Path) -> None:
    assert call("join", stdin="5\n4\n0x0000000000000005\n") == (
        '{"left":0,"right":1,"distance":1}\n{"left":0,"right":2,"distance":0}\n{"left":1,"right":2,"distance":1}\n'
    )


def test_what_fingerprint_writes_can_be_joined(tmp_path: Path) -> None:
    (tmp_path / "texts.jsonl").write_text(
        '{"id": "x", "text": "the quick brown fox jumps over the lazy dog"}\n'
        '{"id": "y", "text": "the quick brown fox jumps over the lazy dog"}\n'
    )
    for ending in ("parquet", "csv", "jsonl", "arrow"):
        prints = tmp_path / f"prints.{ending}"
        call("fingerprint", tmp_path / "texts.jsonl", "--scheme", "words:1", "-o", prints)
        assert call("join", prints) == '{"left":"x","right":"y","distance":0}\n'


def test_two_files_are_joined_with_each_other(written: Path) -> None:
    out = call("join", written, "--other", written, "--radius", 0)
    assert len(out.splitlines()) == 6


def test_an_output_that_exists_is_kept(
    written: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "pairs.csv").write_text("mine")
    assert run(["join", str(written), "-o", str(tmp_path / "pairs.csv")]) == 2
    assert (tmp_path / "pairs.csv").read_text() == "mine"
    assert "exists" in capsys.readouterr().err


@pytest.mark.parametrize(
    "line", ['{"id": 1}', "nothing", '{"id": 1, "fingerprint": "xyz"}', '{"id": 1, "fingerprint": [1]}']
)
def test_a_broken_line_is_refused_with_its_number(
    line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "prints.jsonl").write_text('{"id": 0, "fingerprint": "0000000000000000"}\n' + line + "\n")
    assert run(["join", str(tmp_path / "prints.jsonl")]) == 4
    assert "line 2" in capsys.readouterr().err


def test_a_plan_is_printed_or_given_as_json(written: Path) -> None:
    assert call("plan", written).startswith("brute: 5 fingerprints of 64 bits, radius 3, exact")
    assert json.loads(call("plan", written, "--json"))["method"] == "brute"


def test_an_index_is_built_changed_and_searched(written: Path, tmp_path: Path) -> None:
    index = tmp_path / "index"
    call("index", "build", index, written, "--radius", 2)
    assert call("index", "search", index, stdin="0\n") == "0\ta\t0\n0\tb\t1\n0\td\t1\n"
    call("index", "remove", index, "b", "unknown")
    (tmp_path / "more.csv").write_text("id,fingerprint\nf,0000000000000003\na,ffffffffffffffff\n")
    call("index", "add", index, tmp_path / "more.csv", "--update")
    found = [json.loads(line) for line in call("index", "search", index, "--json", stdin="0\n").splitlines()]
    assert [(row["id"], row["distance"]) for row in found] == [("d", 1), ("f", 2)]
    assert call("index", "search", index, "--nearest", 1, stdin="18446744073709551615\n") == "0\ta\t0\n"


def test_a_damaged_index_is_refused(
    written: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    index = tmp_path / "index"
    call("index", "build", index, written)
    data = bytearray(index.read_bytes())
    data[-1] ^= 1
    index.write_bytes(data)
    assert run(["index", "search", str(index), str(written)]) != 0
    assert "damaged" in capsys.readouterr().err


def test_help_loads_no_heavy_package() -> None:
    program = "import sys; from neardup.adapters.cli import run; run(['join', '--help']); print(sorted({'numpy', 'pyarrow'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("[]\n")
