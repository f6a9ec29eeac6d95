"""Run directories: read, checked, compared."""

import json
import re
from dataclasses import asdict
from pathlib import Path

import pytest

import neardup as nd
from neardup.adapters.cli import run as cli
from neardup.errors import DamagedFile, InvalidValue, RefusedInput
from neardup.explain import judge
from neardup.runs import Run, compare_runs
from neardup.verify import NEIGHBOURS

from .corpus import collection, words, write_jsonl
from .rundirs import make_run

TEXTS = {
    "a": "the old house by the sea was sold to a painter in the spring of that year",
    "b": "the old house by the sea was sold to a writer in the spring of that year",
    "c": "quite another text about bridges, rivers and the men who built them",
}


@pytest.fixture
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    lines = [json.dumps({"id": id, "text": text, "n": 1}) for id, text in TEXTS.items()]
    (tmp_path / "corpus.jsonl").write_text("\n".join(lines) + "\n")
    return "corpus.jsonl"


def test_a_whole_run_has_no_problems(tmp_path: Path, corpus: str) -> None:
    run = Run(make_run(tmp_path / "out", [corpus], {"a": None, "b": "a", "c": None}))
    assert run.problems() == []
    assert run.inputs[0].path == corpus
    pair = run.pair("b", "a")
    assert pair is not None
    assert pair["rule"] == "revision"
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


def test_explain_uses_the_evidence_of_a_run(
    tmp_path: Path, corpus: str, capsys: pytest.CaptureFixture[str]
) -> None:
    make_run(tmp_path / "out", [corpus], {"a": None, "b": "a", "c": None})
    assert cli(["explain", "a", "b", "--run", "out"]) == 0
    shown = capsys.readouterr().out
    assert "accepted: revision" in shown
    assert "[-only right, which goes-] {+only left+}" in shown
    assert "[-writer-]{+painter+}" in shown, "what is struck through is what goes"
    assert cli(["explain", "a", "c", "--run", "out", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["evidence"] is None
    assert facts["distance"] == nd.distance(*(nd.scheme("text").fingerprint(TEXTS[id]) for id in "ac"))
    assert cli(["explain", "a", "nobody", "--run", "out"]) == 2


def test_explain_gives_verdict_and_figures_of_a_pair_that_the_run_did_not_measure(
    corpus: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli(["dedupe", corpus, "-o", "out", "--quiet"]) == 0
    capsys.readouterr()
    assert cli(["explain", "a", "c", "--run", "out"]) == 0
    shown = capsys.readouterr().out
    assert "rejected: too different (measured now)" in shown
    assert "rare text only" in shown
    assert re.search(r"not a candidate in this run: distance \d+ is above its radius of \d+", shown)
    assert "{+quite another text" in shown


def test_what_explain_measures_now_is_what_a_run_measures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    form = words(1, 200)
    rows = collection(20)
    for number in range(6):  # siblings, over whose pairs their neighbours decide
        text = [*form[:90], *words(50 + number, 20), *form[90:]]
        rows.append({"id": f"form-{number}", "text": " ".join(text)})
    write_jsonl(tmp_path / "in.jsonl", rows)
    assert cli(["dedupe", "in.jsonl", "-o", "out", "--quiet", "--no-guards"]) == 0
    run = Run("out")
    texts, scheme, whole = run.texts([row["id"] for row in rows], whole=True)
    rules = set()
    for row in run.evidence.to_pylist():
        pair = row["keeper"], row["id"]
        others = {id for one in pair for id in run.neighbours(one, NEIGHBOURS)} - {*pair}
        asked = [texts[id] for id in (*pair, *sorted(others))]
        found = judge(run.measure, scheme, run.radius or 0, whole, asked)
        assert asdict(found) == {name: row[name] for name in asdict(found)}
        rules.add(found.rule)
    assert {"nearly identical", "identical text", "same template, different content"} <= rules


@pytest.mark.parametrize("verify", ["none", "jaccard:0.5"])
def test_explain_names_the_measure_of_the_run(
    corpus: str, verify: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli(["dedupe", corpus, "-o", "out", "--quiet", "--verify", verify]) == 0
    capsys.readouterr()
    assert cli(["explain", "a", "b", "--run", "out"]) == 0
    shown = capsys.readouterr().out
    if verify == "none":
        assert re.search(r"similarity +0\.\d+ \(measured now\)", shown)
    else:
        assert re.search(r"jaccard +0\.\d+\n", shown)
    assert cli(["explain", "a", "c", "--run", "out", "--json"]) == 0
    judged = json.loads(capsys.readouterr().out)["judged"]
    assert (judged is None) == (verify == "none")


@pytest.fixture
def guarded(tmp_path: Path, corpus: str) -> Path:
    """A run in which a and b duplicate the protected document ref1."""
    rows = [{"id": "ref1", "text": TEXTS["a"]}, {"id": "ref2", "text": words(7, 20)[0]}]
    write_jsonl(tmp_path / "ref.jsonl", rows)
    assert cli(["dedupe", corpus, "--protect", "ref.jsonl", "-o", "out", "--quiet", "--no-guards"]) == 0
    return tmp_path


def test_explain_finds_protected_documents(guarded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert cli(["explain", "b", "ref1", "--run", "out"]) == 0
    shown = capsys.readouterr().out
    assert "note: b goes; it duplicates protected:ref1" in shown
    assert "note: protected:ref1 is protected and stays" in shown
    assert "accepted: " in shown
    assert "{+painter+}" in shown
    assert cli(["explain", "ref1", "ref2", "--run", "out", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["evidence"] is None
    assert facts["judged"]["accepted"] is False
    assert cli(["explain", "b", "ref3", "--run", "out"]) == 2
    assert "no document 'ref3' in run 'out', nor in what it protected" in capsys.readouterr().err


def test_explain_of_a_keeper_that_goes_names_no_other(
    corpus: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli(["dedupe", corpus, "-o", "out", "--quiet", "--no-guards", "--keep", "none"]) == 0
    capsys.readouterr()
    assert cli(["explain", "a", "b", "--run", "out"]) == 0
    shown = capsys.readouterr().out
    assert "goes with its cluster" in shown
    assert "None" not in shown


def test_explain_calls_no_document_protected_that_came_later(
    guarded: Path, corpus: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with (guarded / corpus).open("a") as file:
        file.write('{"id": "new", "text": "a new text"}\n')
    assert cli(["explain", "b", "new", "--run", "out"]) == 2
    assert "no document 'new'" in capsys.readouterr().err


def test_explain_says_how_to_name_inputs_that_are_elsewhere(
    guarded: Path, corpus: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (guarded / "elsewhere").mkdir()
    monkeypatch.chdir(guarded / "elsewhere")
    assert cli(["explain", "b", "ref1", "--run", "../out"]) == 4
    assert "--input" in capsys.readouterr().err
    inputs = ["--input", f"../{corpus}", "--input", "../ref.jsonl"]
    assert cli(["explain", "b", "ref1", "--run", "../out", *inputs]) == 0
    assert "changed since the run" not in capsys.readouterr().out
    assert cli(["explain", "b", "c", "--run", "../out", *inputs[:2]]) == 0  # no protected one is asked for


def test_explain_gives_two_files_the_verdict_of_a_run_over_them_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    others = {"b": TEXTS["b"], "copy": TEXTS["a"], "upper": TEXTS["a"].upper()}
    Path("a.txt").write_text(TEXTS["a"])
    for name, text in others.items():
        Path(f"{name}.txt").write_text(text)
        files = ["a.txt", f"{name}.txt"]
        assert cli(["dedupe", *files, "-o", name, "--quiet", "--no-guards"]) == 0
        row = Run(name).pair(*files)
        assert row is not None
        capsys.readouterr()
        assert cli(["explain", *files, "--json"]) == 0
        judged = json.loads(capsys.readouterr().out)["judged"]
        assert judged == {key: row[key] for key in judged}
        assert cli(["explain", *files]) == 0
        assert f"accepted: {row['rule']} (the default rule, the two alone)" in capsys.readouterr().out


def test_explain_rejects_two_other_files_and_judges_no_empty_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in {**TEXTS, "empty": "..."}.items():
        Path(name).write_text(text)
    assert cli(["explain", "a", "c"]) == 0
    assert "rejected: too different" in capsys.readouterr().out
    assert cli(["explain", "a", "empty"]) == 0
    shown = capsys.readouterr().out
    assert "verdict  " not in shown
    assert "note: no verdict: a text without information is compared with nothing" in shown


def test_explain_fits_a_fitted_scheme_again(
    tmp_path: Path, corpus: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = make_run(tmp_path / "out", [corpus], {"a": None, "b": "a", "c": None})
    fitted = nd.scheme("text").fit(list(TEXTS.values()))
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["scheme"]["digest"] = fitted.digest
    (folder / "manifest.json").write_text(json.dumps(manifest))
    assert cli(["explain", "a", "b", "--run", "out", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["digest"] == fitted.digest
    assert not any("changed" in note for note in facts["notes"])


def test_explain_two_files_never_commands_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "one.txt").write_text("plain \x1b[31mred\x07 text\nwith lines")
    (tmp_path / "two.txt").write_text("plain \x1b[32mgreen text\nwith lines")
    assert cli(["explain", str(tmp_path / "one.txt"), str(tmp_path / "two.txt")]) == 0
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert "\x07" not in shown
    assert "similarity" in shown
    assert cli(["explain", str(tmp_path / "one.txt"), str(tmp_path / "missing.txt")]) == 4
