"""neardup rejudge: what it decides is what a new run over the same pairs decides."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from neardup.adapters.cli import run
from neardup.errors import InvalidValue, NeardupError, RefusedInput
from neardup.rejudging import by_figures, earlier_of, settings_of
from neardup.runs import Run, compare_runs
from neardup.settings import Settings
from neardup.verifiers import parse_measure, write_rule

from .corpus import BASE, collection, edited, words, write_jsonl
from .test_verifiers_learned import rule

RULE = rule(bias=-100, similarity=(3, 9000), triples=(2, 6000), default=(1, 5000))


def documents() -> list[dict[str, Any]]:
    """Copies, revisions and forms, of which settings say different things."""
    rows: list[dict[str, Any]] = list(collection(40))
    rows += [{"id": f"e{at}", "text": " ".join(edited(BASE, at, 3 * at)), "source": "a"} for at in range(12)]
    for at in range(8):
        text = words(5, 120)
        text[::12] = words(50 + at, 10)
        rows.append({"id": f"form{at}", "text": " ".join(text), "source": "b"})
    return rows


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("rejudge")
    write_jsonl(made / "a.jsonl", documents())
    write_rule(RULE, made / "rule.toml")
    done(["dedupe", str(made / "a.jsonl"), "-o", str(made / "run"), "--radius", "50", "--no-guards"])
    return made


def done(arguments: list[str], code: int = 0) -> None:
    assert run([*arguments, "--quiet"]) == code


SETTINGS = [
    ["--similarity", "0.8"],
    ["--similarity", "93%"],
    ["--strict"],
    ["--precision", "high"],
    ["--loose"],
    ["--strict", "--similarity", "0.96"],
    ["--verify", "jaccard:0.6"],
    ["--verify", "containment:0.9"],
    ["--rule", "RULE"],
    ["--rule", "RULE", "--similarity", "0.9"],
]


@pytest.mark.parametrize("options", SETTINGS, ids=" ".join)
def test_a_run_that_is_rejudged_is_the_new_run_with_that_setting(
    folder: Path, tmp_path: Path, options: list[str]
) -> None:
    options = [str(folder / "rule.toml") if one == "RULE" else one for one in options]
    again, new = tmp_path / "again", tmp_path / "new"
    done(["rejudge", str(folder / "run"), "-o", str(again), *options])
    done(["dedupe", str(folder / "a.jsonl"), "-o", str(new), "--radius", "50", "--no-guards", *options])
    found = compare_runs(Run(again), Run(new))
    assert found.equal, found.examples
    assert (again / "kept.jsonl").read_bytes() == (new / "kept.jsonl").read_bytes()
    ours, theirs = (json.loads((one / "manifest.json").read_text()) for one in (again, new))
    for key in ("counts", "settings", "scheme", "guards", "sources", "inputs"):
        assert ours[key] == theirs[key], key
    assert ours["rejudged"]["run"] == Run(folder / "run").manifest["run"]
    assert ours["run"] != theirs["run"]


def test_settings_change_what_is_decided(folder: Path, tmp_path: Path) -> None:
    before = Run(folder / "run").manifest["counts"]["removed"]
    for option in ("--strict", "--similarity=0.95"):
        done(["rejudge", str(folder / "run"), "-o", str(tmp_path / option), option])
        assert Run(tmp_path / option).manifest["counts"]["removed"] < before
    done(["rejudge", str(folder / "run"), "-o", str(tmp_path / "r"), "--rule", str(folder / "rule.toml")])
    reasons = set(Run(tmp_path / "r").evidence.column("reason").to_pylist())
    assert any(words.startswith("learned, same: ") for words in reasons)
    assert any(words.startswith("learned, other: ") for words in reasons)


def test_the_run_stays_and_the_new_one_is_beside_it(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    done(["dedupe", str(folder / "a.jsonl"), "-o", str(tmp_path / "r"), "--no-guards"])
    before = {one.name: one.read_bytes() for one in (tmp_path / "r").iterdir()}
    assert run(["rejudge", str(tmp_path / "r"), "--strict"]) == 0
    assert "r-rejudged" in capsys.readouterr().err
    assert {one.name: one.read_bytes() for one in (tmp_path / "r").iterdir()} == before
    assert Run(tmp_path / "r-rejudged").problems() == []
    done(["rejudge", str(tmp_path / "r"), "--strict"])  # the same again: it is there
    done(["rejudge", str(tmp_path / "r"), "--loose"], code=2)
    done(["rejudge", str(tmp_path / "r"), "--loose", "--overwrite"])
    done(["rejudge", str(tmp_path / "r"), "--loose", "-o", str(tmp_path / "r")], code=2)


def test_what_is_rejudged_can_be_rejudged_explained_reported_and_applied(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    done(["rejudge", str(folder / "run"), "-o", str(first), "--rule", str(folder / "rule.toml")])
    done(["rejudge", str(first), "-o", str(second), "--similarity", "0.9"])
    assert run(["check", str(second)]) == 0
    row = next(row for row in Run(second).annotations.to_pylist() if not row["keep"])
    capsys.readouterr()
    assert run(["explain", row["id"], row["duplicate_of"], "--run", str(second)]) == 0
    said = capsys.readouterr().out
    assert "accepted" in said
    assert "what weighed most for the learned rule" in said
    assert RULE.digest in said
    assert run(["report", str(second), "-o", str(tmp_path / "page.html")]) == 0
    assert run(["apply", str(second), "-o", str(tmp_path / "kept")]) == 0
    assert (tmp_path / "kept" / "kept.jsonl").read_bytes() == (second / "kept.jsonl").read_bytes()


def test_files_of_a_rejudged_run_are_removed_and_come_back(tmp_path: Path) -> None:
    pages = tmp_path / "pages"
    pages.mkdir()
    for row in documents()[-20:]:
        (pages / f"{row['id']}.txt").write_text(row["text"])
    done(["dedupe", str(pages), "-o", str(tmp_path / "run"), "--no-guards"])
    accepts = tmp_path / "rule.toml"
    write_rule(rule(bias=1, weighted=(1, 0), rare=(-1, 10_000)), accepts)
    done(["rejudge", str(tmp_path / "run"), "--rule", str(accepts), "-o", str(tmp_path / "again")])
    gone = [row for row in Run(tmp_path / "again").annotations.to_pylist() if not row["keep"]]
    assert len(gone) > 5
    assert run(["apply", str(tmp_path / "again"), "--trash", str(tmp_path / "trash"), "--yes"]) == 0
    assert len(list(pages.iterdir())) == 20 - len(gone)
    (log,) = (tmp_path / "again").glob("undo-*.jsonl")
    assert run(["undo", str(log)]) == 0
    assert len(list(pages.iterdir())) == 20


def test_a_guard_of_the_run_stops_the_new_one(tmp_path: Path) -> None:
    rows = [{"id": f"e{at}", "text": " ".join(edited(BASE, at, 6))} for at in range(10)]
    corpus = write_jsonl(tmp_path / "a.jsonl", rows)
    accepts, rejects = tmp_path / "yes.toml", tmp_path / "no.toml"
    write_rule(rule(bias=1), accepts)
    write_rule(rule(bias=-1), rejects)
    done(["dedupe", str(corpus), "-o", str(tmp_path / "run"), "--rule", str(rejects)])
    arguments = ["rejudge", str(tmp_path / "run"), "-o", str(tmp_path / "again"), "--rule", str(accepts)]
    done(arguments, code=6)
    done([*arguments, "--no-guards"])


def test_protected_documents_and_fields_are_as_they_were(folder: Path, tmp_path: Path) -> None:
    rows = documents()
    corpus = write_jsonl(tmp_path / "a.jsonl", rows[10:])
    guarded = write_jsonl(tmp_path / "b.jsonl", rows[:14])
    options = [
        "--protect",
        str(guarded),
        "--across",
        "source",
        "--keep",
        "newest:date",
        "--no-guards",
        "--radius",
        "50",
    ]
    done(["dedupe", str(corpus), "-o", str(tmp_path / "run"), *options])
    done(["rejudge", str(tmp_path / "run"), "-o", str(tmp_path / "again"), "--loose"])
    done(["dedupe", str(corpus), "-o", str(tmp_path / "new"), "--loose", *options])
    assert compare_runs(Run(tmp_path / "again"), Run(tmp_path / "new")).equal


def test_figures_decide_where_they_can_and_texts_where_they_must() -> None:
    default, strict = parse_measure("default", 0.64), parse_measure("strict", 0.64)
    assert by_figures(default, parse_measure("default", 0.8))
    assert not by_figures(default, parse_measure("default", 0.6))
    assert not by_figures(default, strict)
    assert by_figures(parse_measure("jaccard:0.5"), parse_measure("jaccard:0.7"))
    assert not by_figures(parse_measure("jaccard:0.5"), parse_measure("jaccard:0.4"))
    assert not by_figures(parse_measure("jaccard:0.5"), parse_measure("containment:0.7"))
    assert not by_figures(default, Settings(rule=RULE).measure)
    assert by_figures(Settings(rule=RULE).measure, Settings(rule=RULE, similarity=0.9).measure)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--similarity", "0.5"], "asks for more"),
        (["--verify", "none"], "decides by fingerprints alone"),
        ([], "say what is to be decided anew"),
        (["--strict", "--loose"], "choose one of"),
        (["--precision", "low", "--loose"], "choose one of"),
        (["--rule", "missing.toml"], "missing.toml"),
    ],
)
def test_what_the_run_cannot_answer_is_refused_with_the_way_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], message: str
) -> None:
    corpus = write_jsonl(tmp_path / "a.jsonl", collection(6))
    done(["dedupe", str(corpus), "-o", str(tmp_path / "run"), "--no-guards"])
    capsys.readouterr()
    assert run(["rejudge", str(tmp_path / "run"), "-o", str(tmp_path / "again"), *options]) in (2, 4)
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1
    assert not (tmp_path / "again").exists()


def test_a_run_that_measured_nothing_has_nothing_to_decide(tmp_path: Path) -> None:
    corpus = write_jsonl(tmp_path / "a.jsonl", collection(6))
    done(["dedupe", str(corpus), "-o", str(tmp_path / "run"), "--verify", "none", "--no-guards"])
    found = Run(tmp_path / "run")
    with pytest.raises(InvalidValue, match="measured nothing"):
        earlier_of(found, Settings())
    assert settings_of(found).verify == "none"


def test_inputs_that_changed_since_are_refused(tmp_path: Path) -> None:
    rows = collection(10)
    corpus = write_jsonl(tmp_path / "a.jsonl", rows)
    done(["dedupe", str(corpus), "-o", str(tmp_path / "run"), "--no-guards"])
    moved = corpus.rename(tmp_path / "b.jsonl")
    done(["rejudge", str(tmp_path / "run"), "-o", str(tmp_path / "x"), "--strict"], code=4)
    done(["rejudge", str(tmp_path / "run"), "-o", str(tmp_path / "y"), "--strict", "--input", str(moved)])
    rows[3]["text"] += " more"
    write_jsonl(corpus, rows)
    for number, more in enumerate(([], ["--input", str(corpus)])):
        out = tmp_path / f"z{number}"
        for option in ("--strict", "--similarity=0.9"):
            done(["rejudge", str(tmp_path / "run"), "-o", str(out), option, *more], code=4)
            assert not (out / "manifest.json").exists()


def test_a_scheme_that_is_not_fitted_and_spells_otherwise_is_rejudged_too(tmp_path: Path) -> None:
    rows = documents()
    rows += [{**row, "id": f"{row['id']}-shouted", "text": row["text"].upper()} for row in rows[:9]]
    corpus = write_jsonl(tmp_path / "a.jsonl", rows)
    options = ["--scheme", "pbtk", "--radius", "30", "--no-guards"]
    done(["dedupe", str(corpus), "-o", str(tmp_path / "run"), *options])
    done(["dedupe", str(corpus), "-o", str(tmp_path / "new"), *options, "--similarity", "0.8"])
    done(["rejudge", str(tmp_path / "run"), "-o", str(tmp_path / "again"), "--similarity", "0.8"])
    assert compare_runs(Run(tmp_path / "again"), Run(tmp_path / "new")).equal
    # Its digest says nothing of the documents: those of the files do.
    rows[3]["text"] += " more"
    other = write_jsonl(tmp_path / "b.jsonl", rows)
    arguments = ["rejudge", str(tmp_path / "run"), "-o", str(tmp_path / "x"), "--input", str(other)]
    done([*arguments, "--similarity", "0.8"], code=4)
    assert not (tmp_path / "x" / "manifest.json").exists()


def test_evidence_that_was_forged_is_not_believed(tmp_path: Path) -> None:
    corpus = write_jsonl(tmp_path / "a.jsonl", collection(10))
    done(["dedupe", str(corpus), "-o", str(tmp_path / "run"), "--no-guards"])
    evidence = tmp_path / "run" / "evidence.parquet"
    evidence.write_bytes(evidence.read_bytes()[:-1] + b"?")
    with pytest.raises(NeardupError, match="cannot be trusted"):
        earlier_of(Run(tmp_path / "run"), Settings())
    assert issubclass(RefusedInput, NeardupError)
