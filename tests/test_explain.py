"""neardup explain: why two documents are near-duplicates, or not."""

from __future__ import annotations

import json
import re
from dataclasses import asdict
from pathlib import Path

import pytest
from PIL import ImageDraw, ImageOps

import neardup as nd
from neardup.adapters.cli import run
from neardup.explain import judge
from neardup.runs import Run
from neardup.verifiers import NEIGHBOURS

from .corpus import collection, words, write_jsonl
from .rundirs import TEXTS, lay_out, make_run
from .scenes import dedupe, print_of, saved, scene


@pytest.fixture
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    return lay_out(tmp_path)


def test_two_image_files_are_explained(
    library: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    changed = ImageOps.mirror(scene(1))
    ImageDraw.Draw(changed).rectangle((240, 180, 319, 239), fill="white")  # at the left when mirrored back
    other = saved(changed, tmp_path / "changed.png")
    assert run(["explain", str(library / "1.png"), str(other)]) == 0
    lines = capsys.readouterr().out.splitlines()
    told = dict(line.split("  ", 1) for line in lines if "  " in line)
    assert told["left"].split()[0] == nd.format(print_of(scene(1)), 256)
    assert told["verdict"].strip() == "accepted: same image: mirror"
    assert told["distance"].split()[0] == str(nd.distance(print_of(scene(1)), print_of(changed)))
    assert 0.8 < float(told["similarity"]) < 1
    blocks = [line[3:-1] for line in lines if line.startswith("  |")]
    assert "".join(row[:2] for row in blocks[-2:]).count("#") >= 3
    assert sum(row.count("#") for row in blocks) <= 6


def test_a_damaged_image_is_not_explained(library: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", str(library / "1.png"), str(library / "broken.jpg")]) == 4
    assert "the right one is not an image of a known format" in capsys.readouterr().err


def test_two_ids_of_a_image_run_are_explained(
    library: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dedupe(library, tmp_path / "out", "--keep", "resolution")
    ids = [str(library / "1.png"), str(library / "sub/mirror.webp")]
    capsys.readouterr()
    assert run(["explain", *ids, "--run", str(tmp_path / "out"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["evidence"]["reason"] == told["reason"] == "same image: mirror"
    assert told["similarity"] == pytest.approx(told["evidence"]["similarity"], abs=0.02)
    assert told["sizes"] == [[320, 240], [320, 240]]
    assert sum("stays" in note for note in told["notes"]) == 1
    assert run(["explain", ids[0], str(library / "3.png"), "--run", str(tmp_path / "out")]) == 0
    assert "rejected: does not show the same" in capsys.readouterr().out
    saved(scene(70), library / "1.png")
    assert run(["explain", *ids, "--run", str(tmp_path / "out")]) == 0
    assert "1.png changed since the run" in capsys.readouterr().out


def test_explain_uses_the_evidence_of_a_run(
    tmp_path: Path, corpus: str, capsys: pytest.CaptureFixture[str]
) -> None:
    make_run(tmp_path / "out", [corpus], {"a": None, "b": "a", "c": None})
    assert run(["explain", "a", "b", "--run", "out"]) == 0
    shown = capsys.readouterr().out
    assert "accepted: revision" in shown
    assert "[-only right, which goes-] {+only left+}" in shown
    assert "[-writer-]{+painter+}" in shown, "what is struck through is what goes"
    assert run(["explain", "a", "c", "--run", "out", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["evidence"] is None
    assert facts["distance"] == nd.distance(*(nd.scheme("text").fingerprint(TEXTS[id]) or 0 for id in "ac"))
    assert run(["explain", "a", "nobody", "--run", "out"]) == 2


def test_explain_gives_verdict_and_figures_of_a_pair_that_the_run_did_not_measure(
    corpus: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["dedupe", corpus, "-o", "out", "--quiet"]) == 0
    capsys.readouterr()
    assert run(["explain", "a", "c", "--run", "out"]) == 0
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
    assert run(["dedupe", "in.jsonl", "-o", "out", "--quiet", "--no-guards"]) == 0
    finished = Run("out")
    texts, scheme, whole = finished.texts([row["id"] for row in rows], whole=True)
    rules = set()
    for row in finished.evidence.to_pylist():
        pair = row["keeper"], row["id"]
        others = {id for one in pair for id in finished.neighbours(one, NEIGHBOURS)} - {*pair}
        asked = [texts[id] for id in (*pair, *sorted(others))]
        found = judge(finished.measure, scheme, finished.radius or 0, whole, asked)
        assert found is not None
        assert asdict(found) == {name: row[name] for name in asdict(found)}
        rules.add(found.reason)
    assert {"nearly identical", "identical text", "same template, different content"} <= rules


@pytest.mark.parametrize("verify", ["none", "jaccard:0.5"])
def test_explain_names_the_measure_of_the_run(
    corpus: str, verify: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["dedupe", corpus, "-o", "out", "--quiet", "--verify", verify]) == 0
    capsys.readouterr()
    assert run(["explain", "a", "b", "--run", "out"]) == 0
    shown = capsys.readouterr().out
    if verify == "none":
        assert re.search(r"similarity +0\.\d+ \(measured now\)", shown)
    else:
        assert re.search(r"jaccard +0\.\d+\n", shown)
    assert run(["explain", "a", "c", "--run", "out", "--json"]) == 0
    judged = json.loads(capsys.readouterr().out)["judged"]
    assert (judged is None) == (verify == "none")


@pytest.fixture
def guarded(tmp_path: Path, corpus: str) -> Path:
    """A run in which a and b duplicate the protected document ref1."""
    rows = [{"id": "ref1", "text": TEXTS["a"]}, {"id": "ref2", "text": words(7, 20)[0]}]
    write_jsonl(tmp_path / "ref.jsonl", rows)
    assert run(["dedupe", corpus, "--protect", "ref.jsonl", "-o", "out", "--quiet", "--no-guards"]) == 0
    return tmp_path


def test_explain_finds_protected_documents(guarded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert run(["explain", "b", "ref1", "--run", "out"]) == 0
    shown = capsys.readouterr().out
    assert "note: b goes; it duplicates protected:ref1" in shown
    assert "note: protected:ref1 is protected and stays" in shown
    assert "accepted: " in shown
    assert "{+painter+}" in shown
    assert run(["explain", "ref1", "ref2", "--run", "out", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["evidence"] is None
    assert facts["judged"]["accepted"] is False
    assert run(["explain", "b", "ref3", "--run", "out"]) == 2
    assert "no document 'ref3' in run 'out', nor in what it protected" in capsys.readouterr().err


def test_explain_of_a_keeper_that_goes_names_no_other(
    corpus: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["dedupe", corpus, "-o", "out", "--quiet", "--no-guards", "--keep", "none"]) == 0
    capsys.readouterr()
    assert run(["explain", "a", "b", "--run", "out"]) == 0
    shown = capsys.readouterr().out
    assert "goes with its cluster" in shown
    assert "None" not in shown


def test_explain_calls_no_document_protected_that_came_later(
    guarded: Path, corpus: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with (guarded / corpus).open("a") as file:
        file.write('{"id": "new", "text": "a new text"}\n')
    assert run(["explain", "b", "new", "--run", "out"]) == 2
    assert "no document 'new'" in capsys.readouterr().err


def test_explain_says_how_to_name_inputs_that_are_elsewhere(
    guarded: Path, corpus: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (guarded / "elsewhere").mkdir()
    monkeypatch.chdir(guarded / "elsewhere")
    assert run(["explain", "b", "ref1", "--run", "../out"]) == 4
    assert "--input" in capsys.readouterr().err
    inputs = ["--input", f"../{corpus}", "--input", "../ref.jsonl"]
    assert run(["explain", "b", "ref1", "--run", "../out", *inputs]) == 0
    assert "changed since the run" not in capsys.readouterr().out
    assert run(["explain", "b", "c", "--run", "../out", *inputs[:2]]) == 0  # no protected one is asked for


def test_explain_gives_two_files_the_verdict_of_a_run_over_them_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    others = {"b": TEXTS["b"], "copy": TEXTS["a"], "upper": TEXTS["a"].upper()}
    Path("a.txt").write_text(TEXTS["a"])
    for name, text in others.items():
        Path(f"{name}.txt").write_text(text)
        files = ["a.txt", f"{name}.txt"]
        assert run(["dedupe", *files, "-o", name, "--quiet", "--no-guards"]) == 0
        row = Run(name).pair(*files)
        assert row is not None
        capsys.readouterr()
        assert run(["explain", *files, "--json"]) == 0
        judged = json.loads(capsys.readouterr().out)["judged"]
        assert judged == {key: row[key] for key in judged}
        assert run(["explain", *files]) == 0
        assert f"accepted: {row['reason']} (the default rule, the two alone)" in capsys.readouterr().out


def test_explain_rejects_two_other_files_and_judges_no_empty_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in {**TEXTS, "empty": "..."}.items():
        Path(name).write_text(text)
    assert run(["explain", "a", "c"]) == 0
    assert "rejected: too different" in capsys.readouterr().out
    assert run(["explain", "a", "empty"]) == 0
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
    assert run(["explain", "a", "b", "--run", "out", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["digest"] == fitted.digest
    assert not any("changed" in note for note in facts["notes"])


def test_explain_two_files_never_commands_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "one.txt").write_text("plain \x1b[31mred\x07 text\nwith lines")
    (tmp_path / "two.txt").write_text("plain \x1b[32mgreen text\nwith lines")
    assert run(["explain", str(tmp_path / "one.txt"), str(tmp_path / "two.txt")]) == 0
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert "\x07" not in shown
    assert "similarity" in shown
    assert run(["explain", str(tmp_path / "one.txt"), str(tmp_path / "missing.txt")]) == 4
