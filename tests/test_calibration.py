"""neardup calibrate: what it predicts is what a run then finds, and it says the same every time."""

from __future__ import annotations

import json
import random
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import neardup as nd
from neardup import edits
from neardup.adapters.cli import run
from neardup.calibration import (
    MODES,
    SIMILARITIES,
    Calibration,
    Choices,
    Label,
    Row,
    advice,
    calibrate,
    read_labels,
    recommend,
    sampling,
)
from neardup.errors import InvalidValue

# A made-up language: common words are short and frequent, as in real ones.
CHANCE = random.Random(5)
LANGUAGE = ["".join(CHANCE.choices("aeioubcdfglmnprstv", k=CHANCE.randint(2, 9))) for _ in range(6000)]
Pairs = list[tuple[str, str]]

ODDS = [1 / (rank + 3) for rank in range(len(LANGUAGE))]


def sentences(chance: random.Random, words: int) -> str:
    text = chance.choices(LANGUAGE, ODDS, k=words)
    return "\n".join(" ".join(text[at : at + 12]) + "." for at in range(0, words, 12))


def collection(seed: int, count: int, words: int = 180) -> dict[str, str]:
    chance = random.Random(seed)
    return {
        f"{seed}-{at}": sentences(chance, chance.randint(words // 2 + 60, words * 2)) for at in range(count)
    }


def documents(texts: dict[str, str]) -> list[dict[str, str]]:
    return [{"id": id, "text": text} for id, text in texts.items()]


def with_copies(texts: dict[str, str], percent: float, seed: int) -> tuple[dict[str, str], Pairs]:
    """Every other document once more, with that share of its words replaced: not by the code under test."""
    chance = random.Random(seed)
    made, pairs = dict(texts), []
    for id, text in list(texts.items())[::2]:
        words = re.split(r"(\W+)", text)
        places = range(0, len(words) - 1, 2)
        for at in chance.sample(places, round(len(places) * percent / 100)):
            words[at] = chance.choice(
                [other for other in chance.choices(LANGUAGE, ODDS, k=4) if other != words[at]]
            )
        made[f"{id}+"] = "".join(words)
        pairs.append((id, f"{id}+"))
    return made, pairs


@pytest.fixture(scope="module")
def found() -> Calibration:
    return calibrate(documents(collection(1, 300)), choices=Choices(copies=800))


LEVELS = (5, 10, 20)


@pytest.fixture(scope="module")
def held_out() -> tuple[dict[str, str], Pairs, Calibration]:
    """Documents with copies of known kind among them, and what is predicted without knowing which."""
    made, pairs = {}, []
    for percent in LEVELS:
        part, known = with_copies(collection(percent, 300), percent, seed=3)
        made.update(part)
        pairs += known
    with pytest.MonkeyPatch.context() as patch:
        levels = tuple(edits.Edit("words", percent) for percent in LEVELS)
        for module in (sampling, advice):
            patch.setattr(module, "EDITS", levels)
        return made, pairs, calibrate(documents(made), choices=Choices(copies=1300))


@pytest.mark.parametrize("mode", ["default", "strict", "loose"])
@pytest.mark.parametrize("similarity", [0.64, 0.80, 0.92])
def test_predicted_recall_is_within_three_points_of_the_measured_one(
    held_out: tuple[dict[str, str], Pairs, Calibration], mode: str, similarity: float
) -> None:
    made, pairs, predicted = held_out
    result = nd.dedupe(documents(made), similarity=similarity, verify=mode)
    cluster = {row["id"]: row["cluster"] for row in result.annotations.to_pylist()}
    measured = sum(cluster[a] == cluster[b] for a, b in pairs) / len(pairs)
    row = predicted.of(mode)[SIMILARITIES.index(similarity)]
    assert abs(row.recall - measured) <= 0.03, (row.recall, measured)


def share(row: Row) -> float:
    assert row.recall is not None
    return row.recall


def test_recall_falls_with_the_similarity_that_is_asked_for_and_strict_finds_least(
    found: Calibration,
) -> None:
    for mode in MODES:
        shares = [share(row) for row in found.of(mode)]
        assert shares == sorted(shares, reverse=True)
    for default, strict, loose in zip(*(found.of(mode) for mode in MODES), strict=True):
        assert share(strict) <= share(default) <= share(loose)


def test_documents_that_nobody_copied_give_no_pairs(found: Calibration) -> None:
    assert all(row.pairs == 0 and row.precision is None for row in found.rows)
    assert found.recommended is not None
    assert (found.recommended.mode, found.recommended.similarity) == ("default", 0.64)


def test_labelled_pairs_give_measured_figures() -> None:
    made, pairs = with_copies(collection(4, 300), 10, seed=3)
    labels = [Label(a, b, True) for a, b in pairs]
    labels += [Label(a, c, False) for (a, _), (c, _) in pairwise(pairs)]
    result = calibrate(documents(made), labels=labels, choices=Choices(copies=40))
    (row,) = [row for row in result.rows if (row.mode, row.similarity) == ("default", 0.64)]
    assert row.measured_precision == 1.0
    assert (row.measured_recall or 0) >= 0.97
    assert result.labels == len(labels)


def test_wrong_labels_show_as_low_precision_and_change_the_advice() -> None:
    made, pairs = with_copies(collection(4, 300), 20, seed=3)
    close, _ = with_copies(collection(6, 300), 1, seed=3)
    labels = [Label(a, b, False) for a, b in pairs]
    labels += [Label(id, f"{id}+", True) for id in close if f"{id}+" in close]
    result = calibrate(documents({**made, **close}), labels=labels, choices=Choices(copies=40))
    best = result.recommended
    assert best is not None
    assert (best.measured_precision or 0) >= 0.95
    assert (best.mode, best.similarity) != ("default", 0.64)
    assert "below 0.95" in result.why


def test_the_order_of_the_input_changes_nothing() -> None:
    texts = documents(collection(1, 120))
    shuffled = random.Random(1).sample(texts, len(texts))
    one, other = (calibrate(data, choices=Choices(copies=60, sample=80)) for data in (texts, shuffled))
    assert one.facts() == other.facts()
    assert calibrate(texts, choices=Choices(copies=60, sample=80, seed=1)).facts() != one.facts()


def test_a_larger_collection_is_sampled() -> None:
    result = calibrate(documents(collection(1, 120)), choices=Choices(copies=30, sample=50))
    assert (result.documents, result.sampled) == (120, 50)


@pytest.mark.parametrize("edit", edits.EDITS, ids=lambda edit: edit.name)
def test_an_edit_changes_about_as_much_as_it_says(edit: edits.Edit) -> None:
    texts = list(collection(7, 40).values())
    vocabulary = edits.Vocabulary(texts)
    text = texts[0] + " in 1984 or 42 times"
    copy = edits.edited(text, edit, vocabulary, texts[1], random.Random(1))
    words, other = re.findall(r"\w+", text), re.findall(r"\w+", copy)
    if edit.kind == "moved":
        assert sorted(words) == sorted(other)
        assert words != other
    elif edit.kind == "cut":
        assert other == words[: len(other)]
        assert len(other) == pytest.approx(len(words) * (1 - edit.percent / 100), abs=2)
    elif edit.kind == "words":
        changed = sum(a != b for a, b in zip(words, other, strict=True))
        assert changed == pytest.approx(len(words) * edit.percent / 100, abs=3)
        assert {"1984", "42"} <= set(other)
    elif edit.kind == "misread":
        assert copy != text
        assert {"1984", "42"} <= set(other)
    else:
        assert len(other) == pytest.approx(len(words), abs=3)


def test_scripts_without_spaces_are_edited_by_character() -> None:
    text = "近似重複の文書を見つけて証明したものだけを取り除く道具です。" * 4
    copy = edits.edited(text, edits.Edit("words", 10), edits.Vocabulary([text[::-1]]), text, random.Random(2))
    assert len(copy) == len(text)
    assert 5 < sum(a != b for a, b in zip(copy, text, strict=True)) < 14


# --- the command -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    path = tmp_path_factory.mktemp("calibrate") / "in.jsonl"
    made, pairs = with_copies(collection(8, 90), 10, seed=3)
    path.write_text("".join(json.dumps(row) + "\n" for row in documents(made)))
    labels = path.with_name("pairs.csv")
    labels.write_text("one,other,same\n" + "".join(f"{a},{b},1\n" for a, b in pairs))
    return path, labels


def test_the_command_recommends_a_command(
    corpus: tuple[Path, Path], capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(["calibrate", str(corpus[0]), "--copies", "60", "--quiet"]) == 0
    out = capfd.readouterr().out
    assert re.search(r"recommended: neardup dedupe --similarity 0\.\d+( --\w+)?\n", out)
    assert "words 10 %" in out


def test_json_holds_everything(corpus: tuple[Path, Path], capfd: pytest.CaptureFixture[str]) -> None:
    path, labels = corpus
    assert run(["calibrate", str(path), "--labels", str(labels), "--copies", "60", "--json", "--quiet"]) == 0
    facts = json.loads(capfd.readouterr().out)
    assert len(facts["rows"]) == len(MODES) * len(SIMILARITIES)
    assert facts["labels"] == 45
    assert facts["recommended"]["measured_recall"] > 0.9


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "no labelled pair"),
        ("a,b,1\nc,d\n", "line 2"),
        ("a,b,1\nc,d,yes\n", "line 2"),
        ("8-0,nobody,1\n", "nobody"),
        ("8-0,8-1\n8-0,8-1,1\n", "line 1"),
        ("8-0,8-1,yes\n8-0,8-1,1\n", "line 1"),
        ("8-0;8-1;1\n8-0,8-1,1\n", "line 1"),
        ("id1,id2,2\n8-0,8-1,1\n", "line 1"),
    ],
)
def test_labels_that_cannot_be_used_are_named(
    corpus: tuple[Path, Path], tmp_path: Path, capfd: pytest.CaptureFixture[str], content: str, said: str
) -> None:
    path = tmp_path / "labels.csv"
    path.write_text(content)
    assert run(["calibrate", str(corpus[0]), "--labels", str(path), "--quiet"]) == 2
    assert said in capfd.readouterr().err


@pytest.mark.parametrize(
    "header", ["id1,id2,label", "left\tright\tsame", "\ufeffLeft_ID,Right_ID,is_duplicate", "a,b,Label,note"]
)
def test_a_line_that_names_columns_is_passed_by(
    corpus: tuple[Path, Path], tmp_path: Path, capfd: pytest.CaptureFixture[str], header: str
) -> None:
    path = tmp_path / "labels.csv"
    pair = corpus[1].read_text().splitlines()[1]
    path.write_text(f"{header}\n{pair.replace(',', chr(9)) if chr(9) in header else pair}\n")
    assert (
        run(["calibrate", str(corpus[0]), "--labels", str(path), "--copies", "20", "--json", "--quiet"]) == 0
    )
    assert json.loads(capfd.readouterr().out)["labels"] == 1


def test_labels_may_be_separated_by_tabs(tmp_path: Path) -> None:
    path = tmp_path / "labels.tsv"
    path.write_text("a, with a comma\tb\t0\n")
    assert read_labels(path) == [Label("a, with a comma", "b", False)]


def test_too_little_text_is_said(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "in.jsonl"
    path.write_text('{"id":"a","text":"a"}\n{"id":"b","text":""}\n')
    assert run(["calibrate", str(path), "--quiet"]) == 2
    assert "8 words" in capfd.readouterr().err


def test_bad_records_are_told_by_the_exit_code(corpus: tuple[Path, Path], tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    path.write_bytes(corpus[0].read_bytes() + b"not json\n")
    assert run(["calibrate", str(path), "--copies", "20", "--quiet"]) == 3
    assert run(["calibrate", str(tmp_path / "missing.jsonl"), "--quiet"]) in (2, 4)


@pytest.mark.parametrize("wrong", [{"precision": 0.0}, {"precision": 1.5}, {"sample": 1}, {"copies": 0}])
def test_choices_that_make_no_sense_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidValue):
        Choices(**wrong)


# --- advice ----------------------------------------------------------------------------------------------


def settings(**figures: Any) -> list[Row]:
    """A row for every setting; a figure is one for all, or one for each mode."""

    def of(mode: str) -> dict[str, Any]:
        return {name: one[mode] if isinstance(one, dict) else one for name, one in figures.items()}

    blank = {"radius": 40, "recall": 0.9, "margin": 0.01, "precision": None}
    blank |= {"pairs": 0, "doubtful": 0, "removed": 0}
    return [
        Row(mode=mode, similarity=similarity, **{**blank, **of(mode)})
        for mode in MODES
        for similarity in SIMILARITIES
    ]


DEFAULT = "--similarity 0.64"
LOOSE_FINDS_MORE = {"default": 0.7, "strict": 0.4, "loose": 0.9}


def test_nothing_looser_than_the_default_is_recommended_without_labels() -> None:
    rows = settings(recall=LOOSE_FINDS_MORE, precision=0.98, pairs=410)
    advice = recommend(rows, Choices(), copies=800, labels=0, same=0)
    assert (advice.row.options, advice.good) == (DEFAULT, True)


def test_something_looser_is_recommended_where_enough_labels_say_that_it_is_right() -> None:
    figures = {"measured_recall": LOOSE_FINDS_MORE, "measured_precision": 0.97}
    many, few = (
        recommend(settings(**figures, labelled=count), Choices(), copies=800, labels=count, same=count)
        for count in (30, 29)
    )
    assert (many.row.options, many.good) == ("--similarity 0.64 --loose", True)
    assert (few.row.options, few.good) == (DEFAULT, True)


def test_a_precision_that_no_setting_reaches_is_recommended_by_none() -> None:
    rows = settings(measured_precision=0.0, labelled=2, measured_recall=None)
    advice = recommend(rows, Choices(), copies=800, labels=2, same=0)
    assert (advice.row.options, advice.good) == ("--similarity 0.96 --strict", False)
    assert "none reaches a precision of 0.95" in advice.why
    assert "recall cannot be measured" in advice.why


def test_a_setting_that_accepts_no_labelled_pair_has_not_passed() -> None:
    precision = {"default": 0.5, "strict": None, "loose": 0.4}
    rows = settings(precision=0.98, measured_precision=precision, measured_recall=0.5)
    advice = recommend(rows, Choices(), copies=800, labels=40, same=20)
    assert (advice.row.options, advice.good) == ("--similarity 0.96", False)


def test_one_document_is_too_little_to_recommend_more_than_the_default() -> None:
    text = next(iter(collection(1, 1).values()))
    found = calibrate([{"id": "a", "text": text}])
    assert found.command == DEFAULT
    assert "too little was measured" in found.why
    assert all((row.margin or 0) > 0.1 for row in found.rows)


def test_pairs_that_a_setting_accepts_among_the_documents_themselves_are_counted_and_shown() -> None:
    made, pairs = with_copies(collection(1, 60), 2, seed=3)
    found = calibrate(documents({**made, "again": made["1-0"]}), choices=Choices(copies=60))
    for mode in MODES:
        row = found.of(mode)[SIMILARITIES.index(0.64)]
        result = nd.dedupe(documents({**made, "again": made["1-0"]}), verify=mode)
        assert (row.pairs, row.removed) == (30, 31) == (len(pairs), result.summary["removed"])
    assert (found.command, found.marked.removed) == (DEFAULT, 31)
    shown = [{pair.one.removesuffix("+"), pair.other.removesuffix("+")} for pair in found.suggestions]
    assert len(shown) == 10
    assert {len(both) for both in shown} == {1}
    similar = [pair.similarity for pair in found.suggestions]
    assert similar == sorted(similar)


def test_the_command_says_that_no_setting_is_recommended_and_what_to_label(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path, labels, page = tmp_path / "in.jsonl", tmp_path / "labels.csv", tmp_path / "cal.html"
    made, pairs = with_copies(collection(1, 60), 2, seed=3)
    path.write_text("".join(json.dumps(row) + "\n" for row in documents(made)))
    labels.write_text("".join(f"{one},{other},0\n" for one, other in pairs[:28]))
    arguments = ["calibrate", str(path), "--copies", "60", "--quiet"]
    assert run([*arguments, "--labels", str(labels), "--report", str(page)]) == 0
    out = capfd.readouterr().out
    assert "no setting is recommended: none reaches a precision of 0.95" in out
    assert "recommended: neardup" not in out
    assert len(re.findall(r"nearly identical  1-\d+  1-\d+\+\n", out)) == 2  # those without a label
    assert "No setting is recommended" in page.read_text()
    assert '<bdi class="id">1-' in page.read_text()
    assert run(arguments) == 0
    assert "accepts 30 pairs, and 30 of 90 documents would go" in capfd.readouterr().out
