"""Run directories: read, checked, compared."""

import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from neardup.adapters.cli import run as cli
from neardup.errors import DamagedFile, InvalidValue, RefusedInput
from neardup.runs import Run, compare_runs

from .rundirs import as_format_1, lay_out, make_run


@pytest.fixture
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    return lay_out(tmp_path)


def test_a_whole_run_has_no_problems(tmp_path: Path, corpus: str) -> None:
    run = Run(make_run(tmp_path / "out", [corpus], {"a": None, "b": "a", "c": None}))
    assert run.problems() == []
    assert run.inputs[0].path == corpus
    pair = run.pair("b", "a")
    assert pair is not None
    assert pair["reason"] == "revision"
    assert run.pair("a", "c") is None
    assert cli(["check", str(tmp_path / "out")]) == 0


@pytest.mark.parametrize("name", ["annotations.parquet", "evidence.parquet"])
def test_a_changed_output_is_found(tmp_path: Path, corpus: str, name: str) -> None:
    folder = make_run(tmp_path / "out", [corpus], {"a": None, "b": "a"})
    data = bytearray((folder / name).read_bytes())
    data[len(data) // 2] ^= 1
    (folder / name).write_bytes(data)
    with pytest.raises(DamagedFile, match=name):
        Run(folder).check()
    assert cli(["check", str(folder)]) == 1


def test_a_run_of_format_1_is_read_by_every_command(corpus: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli(["dedupe", corpus, "-o", "run-now", "--quiet"]) == 0
    shutil.copytree("run-now", "run-old")
    as_format_1(Path("run-old"), {"reason": "rule", "weighted": "common"})
    now, old = Run("run-now"), Run("run-old")
    assert "rule" in pq.read_table("run-old/evidence.parquet").column_names
    assert old.evidence.equals(now.evidence)
    shown = {}
    for name in ("run-now", "run-old"):
        capsys.readouterr()
        assert cli(["check", name]) == 0
        assert cli(["explain", "a", "b", "--run", name]) == 0
        assert cli(["apply", name, "-o", f"kept-{name}"]) == 0
        assert cli(["report", name, "-o", f"{name}.html"]) == 0
        shown[name] = capsys.readouterr().out.replace(name, "")
    assert "revision" in shown["run-old"] or "nearly identical" in shown["run-old"]
    assert shown["run-old"] == shown["run-now"]


def test_an_image_run_of_format_1_has_the_figures_of_images(tmp_path: Path, corpus: str) -> None:
    folder = make_run(tmp_path / "out", [corpus], {"a": None, "b": "a"}, format="image")
    as_format_1(folder, {"reason": "rule", "agreement": "common", "fine_agreement": "rare"})
    row = Run(folder).evidence.to_pylist()[0]
    assert (row["reason"], row["agreement"], row["fine_agreement"]) == ("revision", 0.8, 0.7)


def test_a_run_that_did_not_end_says_how_to_continue(tmp_path: Path) -> None:
    with pytest.raises(InvalidValue, match="continue"):
        _ = Run(tmp_path).manifest


def test_equal_runs_are_equal_whatever_their_inputs_are_called(tmp_path: Path, corpus: str) -> None:
    (tmp_path / "other.jsonl").write_text((tmp_path / corpus).read_text())
    one = make_run(tmp_path / "one", [corpus], {"a": None, "b": "a"})
    two = make_run(tmp_path / "two", ["other.jsonl"], {"a": None, "b": "a"})
    found = compare_runs(Run(one), Run(two))
    assert found.equal
    assert [change.id for change in found.inputs] == ["corpus.jsonl", "other.jsonl"]
    assert cli(["check", str(one), str(two)]) == 0


def test_differences_name_the_documents_and_settings(
    tmp_path: Path, corpus: str, capsys: pytest.CaptureFixture[str]
) -> None:
    one = make_run(tmp_path / "one", [corpus], {"a": None, "b": "a", "c": None})
    two = make_run(tmp_path / "two", [corpus], {"a": "b", "b": None, "d": None}, keep="shortest")
    found = compare_runs(Run(one), Run(two))
    assert (found.only_left, found.only_right, found.changed, found.pairs) == (1, 1, 2, 2)
    assert [change.id for change in found.settings] == ["settings.keep"]
    assert cli(["check", str(one), str(two)]) == 1
    shown = capsys.readouterr().out
    assert "b: keep False -> True" in shown
    assert "settings.keep" in shown


def test_figures_that_differ_are_no_other_decision(
    tmp_path: Path, corpus: str, capsys: pytest.CaptureFixture[str]
) -> None:
    one = make_run(tmp_path / "one", [corpus], {"a": None, "b": "a", "c": None})
    two = make_run(tmp_path / "two", [corpus], {"a": None, "b": "a", "c": None}, similarity=0.8)
    found = compare_runs(Run(one), Run(two))
    assert (found.equal, found.changed, found.figures) == (False, 0, 1)
    assert cli(["check", str(one), str(two)]) == 1
    shown = capsys.readouterr().out
    assert "another decision" not in shown
    assert "1 document with the same decision and another distance or similarity" in shown
    assert "b: similarity 0.9 -> 0.8" in shown


def test_other_decisions_are_shown_before_other_figures(tmp_path: Path, corpus: str) -> None:
    one = make_run(tmp_path / "one", [corpus], {"a": None, "b": "a", "c": None, "d": None})
    two = make_run(tmp_path / "two", [corpus], {"a": None, "b": "a", "c": None, "d": "c"}, similarity=0.8)
    found = compare_runs(Run(one), Run(two), most=1)
    assert (found.changed, found.figures) == (1, 1)
    assert [change.id for change in found.examples] == ["d"]


def test_null_and_value_differ(tmp_path: Path, corpus: str) -> None:
    one = make_run(tmp_path / "one", [corpus], {"a": None, "b": None})
    two = make_run(tmp_path / "two", [corpus], {"a": None, "b": None}, rejected=(("a", "b"),))
    found = compare_runs(Run(one), Run(two))
    assert (found.equal, found.changed, found.pairs) == (False, 0, 1)


def test_apply_writes_the_kept_records_as_they_were(tmp_path: Path, corpus: str) -> None:
    make_run(tmp_path / "out", [corpus], {"a": None, "b": "a", "c": None})
    assert cli(["apply", "out", "-o", "kept"]) == 0
    lines = (tmp_path / corpus).read_text().splitlines(keepends=True)
    assert (tmp_path / "kept/kept.jsonl").read_text() == lines[0] + lines[2]


def test_apply_goes_by_id_not_by_position(tmp_path: Path, corpus: str) -> None:
    make_run(tmp_path / "out", [corpus], {"a": None, "b": "a", "c": None})
    lines = (tmp_path / corpus).read_text().splitlines(keepends=True)
    (tmp_path / "turned.jsonl").write_text("".join(reversed(lines)))
    assert cli(["apply", "out", "turned.jsonl", "-o", "kept"]) == 0
    assert (tmp_path / "kept/kept.jsonl").read_text() == lines[2] + lines[0]


def test_apply_refuses_inputs_that_changed_or_were_not_judged(tmp_path: Path, corpus: str) -> None:
    make_run(tmp_path / "out", [corpus], {"a": None, "b": "a", "c": None})
    with (tmp_path / corpus).open("a") as file:
        file.write('{"id": "d", "text": "new"}\n')
    assert cli(["apply", "out", "-o", "kept"]) == 4
    assert cli(["apply", "out", corpus, "-o", "kept"]) == 4
    assert not (tmp_path / "kept/kept.jsonl").exists()
    (tmp_path / corpus).unlink()
    with pytest.raises(RefusedInput, match="not here"):
        Run("out").source()
