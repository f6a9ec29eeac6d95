"""neardup fingerprint: files in, fingerprints out, and an exit code for each ending."""

from __future__ import annotations

import json
import sys
import types
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from neardup.adapters.cli import run
from neardup.fingerprints import Fingerprints


class Lengths:
    """A stand-in for a scheme: the fingerprint of a text is its length."""

    name, features, bits, digest = "lengths", "length", 64, "d1"

    def fingerprints(self, texts: pa.Array, threads: int | None = None) -> Fingerprints:
        lengths = np.array([len(text) for text in texts.to_pylist()], dtype=np.uint64)
        return Fingerprints(lengths, valid=lengths > 0, digest=self.digest)


@pytest.fixture(autouse=True)
def schemes(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("neardup.schemes")
    vars(module)["scheme"] = lambda name, **overrides: Lengths()
    monkeypatch.setitem(sys.modules, "neardup.schemes", module)


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "in.jsonl"
    path.write_bytes(b'{"id":"a","text":"four"}\n{"id":"b","text":""}\n')
    return path


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    path = tmp_path / "broken.jsonl"
    path.write_bytes(b'{"id":"a","text":"four"}\nnot json\n')
    return path


def test_results_go_to_standard_output_and_talk_to_standard_error(
    corpus: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert run(["fingerprint", str(corpus)]) == 0
    out, err = capfdbinary.readouterr()
    assert out == b'{"id":"a","fingerprint":"0000000000000004"}\n{"id":"b","fingerprint":null}\n'
    assert err.startswith(b"fingerprint: 2 documents in")


def test_parquet_has_the_words_and_says_whose_they_are(corpus: Path, tmp_path: Path) -> None:
    assert run(["fingerprint", str(corpus), "-o", str(tmp_path / "out.parquet")]) == 0
    table = pq.read_table(tmp_path / "out.parquet")
    assert table.column("fingerprint").to_pylist() == [(4).to_bytes(8, "little"), None]
    about = {b"neardup.bits": b"64", b"neardup.scheme": b"lengths", b"neardup.digest": b"d1"}
    assert about.items() <= table.schema.metadata.items()


def test_csv_takes_any_form(corpus: Path, tmp_path: Path) -> None:
    assert run(["fingerprint", str(corpus), "-o", str(tmp_path / "out.csv"), "--form", "decimal"]) == 0
    assert (tmp_path / "out.csv").read_text() == "id,fingerprint\na,4\nb,\n"


def test_bad_records_are_kept_apart_and_told(
    broken: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    out, quarantine = tmp_path / "out.jsonl", tmp_path / "bad.jsonl"
    assert run(["fingerprint", str(broken), "-o", str(out), "--quarantine", str(quarantine)]) == 3
    assert f"1 of 2 records are bad; they are in {quarantine}" in capfd.readouterr().err
    assert json.loads(quarantine.read_text())["raw"] == "not json"
    assert len(out.read_text().splitlines()) == 1


@pytest.mark.parametrize("option", [["--strict"], ["--max-bad", "0"], ["--max-bad", "10%"]])
def test_too_many_bad_records_stop_the_run_without_output(
    broken: Path, tmp_path: Path, option: list[str]
) -> None:
    out, quarantine = tmp_path / "out.jsonl", tmp_path / "bad.jsonl"
    assert run(["fingerprint", str(broken), "-o", str(out), "--quarantine", str(quarantine), *option]) == 5
    assert not out.exists()
    assert quarantine.exists()


def test_a_refused_file_is_named_and_the_others_are_read(
    corpus: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    bad = tmp_path / "x\x1b[31m.parquet"
    bad.write_bytes(b"PAR1")
    assert run(["fingerprint", str(bad), str(corpus), "-o", str(tmp_path / "out.jsonl"), "--json"]) == 4
    err = capfd.readouterr().err
    assert r"x\x1b[31m.parquet: is damaged Parquet" in err
    assert "\x1b" not in err
    summary = json.loads(next(line for line in err.splitlines() if line.startswith("{")))
    assert (summary["documents"], summary["without_information"], summary["refused"]) == (2, 1, [str(bad)])


def test_a_missing_file_ends_at_once(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["fingerprint", str(tmp_path / "none.jsonl")]) == 4
    assert "No such file" in capfd.readouterr().err


def test_an_existing_output_is_left_alone(corpus: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    out.write_text("old")
    assert run(["fingerprint", str(corpus), "-o", str(out)]) == 2
    assert out.read_text() == "old"
    assert run(["fingerprint", str(corpus), "-o", str(out), "--overwrite"]) == 0


def test_an_output_that_cannot_be_written_is_a_limit(corpus: Path, tmp_path: Path) -> None:
    assert run(["fingerprint", str(corpus), "-o", str(tmp_path / "none" / "out.jsonl")]) == 5


@pytest.mark.parametrize(
    "arguments", [["--max-bad", "many"], ["-o", "out.xyz"], ["--form", "roman"], ["--nonsense"]]
)
def test_a_wrong_argument_is_a_usage_error(corpus: Path, arguments: list[str]) -> None:
    assert run(["fingerprint", str(corpus), *arguments]) == 2
