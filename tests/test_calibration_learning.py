"""A rule from labels: the same whatever order they come in, figures from labels that it had not seen."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import neardup as nd
from neardup.adapters.cli import run
from neardup.calibration import Choices, Label, calibrate, read_answers, read_labels
from neardup.calibration.labels import one_each
from neardup.calibration.learning import (
    FOLDS,
    HELD,
    ONE,
    REACH,
    SPREAD,
    STEPS,
    Answers,
    _chances,
    _logistic,
    fit,
    folds_of,
    in_order,
    learn,
    share_of,
    unseen,
)
from neardup.errors import InvalidValue
from neardup.verifiers import FIGURES, read_rule
from neardup.verifiers.figures import NAMES
from neardup.verifiers.learned import LARGEST

from .corpus import write_jsonl

COUNT = len(FIGURES)


def answers(count: int, seed: int = 1) -> Answers:
    """Pairs that are the same if two of their figures together are high, with some noise."""
    chance = random.Random(seed)
    rows, same, pairs = [], [], []
    for at in range(count):
        row = [chance.randint(0, 10_000) for _ in range(COUNT)]
        rows.append(row)
        same.append(row[4] + row[6] + chance.randint(-1500, 1500) > 10_000)
        pairs.append((f"a{at}", f"b{at}"))
    figures = np.array(rows, np.uint16)
    return Answers(pairs, figures, np.array(same), figures[:, 4] > 5000)


def test_the_logistic_function_of_whole_numbers_is_that_of_fractions() -> None:
    table = _logistic()
    assert len(table) == 2 * REACH * STEPS + 1
    for at, value in enumerate(table.tolist()):
        assert abs(value / ONE - 1 / (1 + math.exp(REACH - at / STEPS))) < 2e-6
    assert (np.diff(table) >= 0).all()
    assert _chances(np.array([-(1 << 40), 0, 1 << 40])).tolist() == [table[0], ONE // 2, table[-1]]


def test_weights_are_those_of_a_fit_in_fractions() -> None:
    some = answers(120)
    fitted = fit(some.figures, some.same)
    x = some.figures.astype(float)
    middle, spread = x.mean(axis=0), np.maximum(x.std(axis=0), SPREAD)
    z = np.append(np.clip((x - middle) / spread, -4, 4), np.ones((len(x), 1)), axis=1)
    held = np.append(np.full(COUNT, float(HELD)), 0.0)
    weight = np.zeros(COUNT + 1)
    for _ in range(50):  # Newton's way to the same minimum
        chance = 1 / (1 + np.exp(-(z @ weight)))
        slope = z.T @ (chance - some.same) + held * weight
        curve = (z.T * (chance * (1 - chance))) @ z + np.diag(held)
        weight -= np.linalg.solve(curve, slope)
    expected = weight[:-1] / spread
    expected *= LARGEST / np.abs(expected).max()
    assert np.abs(np.array(fitted.weights) - expected).max() <= 0.02 * LARGEST
    assert max(map(abs, fitted.weights)) == LARGEST
    scores = z @ weight
    assert (np.sign(fitted.scores(some.figures)) == np.sign(scores))[np.abs(scores) > 0.1].all()


@given(st.randoms(use_true_random=False))
def test_the_order_of_the_labels_and_of_each_pair_changes_nothing(chance: random.Random) -> None:
    some = answers(30)
    rows = list(range(30))
    chance.shuffle(rows)
    other = some.rows(np.array(rows + rows[:3]))
    turned = [pair if chance.random() < 0.5 else pair[::-1] for pair in other.pairs]
    mixed = Answers(turned, other.figures, other.same, other.default)
    assert [set(pair) for pair in in_order(mixed).pairs] == [set(pair) for pair in in_order(some).pairs]
    assert (in_order(mixed).figures == in_order(some).figures).all()


def test_a_rule_is_the_same_in_any_order_to_the_digest() -> None:
    some = answers(60)
    assert learn(some.rows(np.arange(60)[::-1])).digest == learn(some).digest


def test_a_rule_is_the_same_on_every_machine() -> None:
    # Whole numbers alone: where this digest is another one, some machine computes them otherwise.
    assert [one.weight for one in learn(answers(60)).weights] == PINNED


PINNED = [-61, 166, 179, -161, 686, -38, 1000, -274, 172, -51, 335, 306, 179, 28, 133, 3, 260, -123]
PINNED += [-326, 104, -185, -94, -12]


def test_what_was_learned_holds_for_pairs_that_were_not_seen() -> None:
    rule, other = learn(answers(150)), answers(400, seed=2)
    right = ((rule.scores(other.figures) >= 0) == other.same).mean()
    assert right > 0.85
    assert rule.learned.labels == 150
    assert abs(rule.learned.precision.share / 10_000 - right) < 0.12
    assert rule.learned.default_precision.share < rule.learned.precision.share


def test_labels_of_chance_teach_nothing_and_the_figures_say_so() -> None:
    some = answers(200)
    shuffled = np.random.default_rng(1).permutation(some.same)
    rule = learn(Answers(some.pairs, some.figures, shuffled, some.default))
    assert abs(rule.learned.precision.share - 10_000 * int(shuffled.sum()) // 200) < 1500


def test_what_is_judged_was_not_learned_from() -> None:
    # A pair with a figure of its own, which no other has: a rule that had seen it would know it.
    some = answers(40)
    figures = np.full_like(some.figures, 5000)
    same = np.zeros(40, bool)
    same[::2] = True
    figures[:, 3] = np.where(same, 8000, 2000)
    odd = figures.copy()
    odd[0, 3], same[0] = 2000, True  # a label that contradicts the others
    found = unseen(Answers(some.pairs, odd, same, some.default))
    assert not found[0]
    assert (found[1:] == same[1:]).all()


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), max_size=40))
def test_no_document_is_in_two_parts(numbers: list[tuple[int, int]]) -> None:
    pairs = [(str(one), str(other)) for one, other in numbers]
    parts: dict[str, set[int]] = {}
    for (one, other), part in zip(pairs, folds_of(pairs), strict=True):
        assert 0 <= part < FOLDS
        for id in (one, other):
            parts.setdefault(id, set()).add(part)
    assert all(len(met) == 1 for met in parts.values())


@given(st.integers(1, 500).flatmap(lambda of: st.tuples(st.integers(0, of), st.just(of))))
def test_the_interval_is_wilsons(counts: tuple[int, int]) -> None:
    right, of = counts
    found, z = share_of(right, of), 1.96
    share = right / of
    middle = (share + z * z / (2 * of)) / (1 + z * z / of)
    half = z * math.sqrt(share * (1 - share) / of + z * z / (4 * of * of)) / (1 + z * z / of)
    assert found.low / 10_000 == pytest.approx(max(middle - half, 0), abs=3e-4)
    assert found.high / 10_000 == pytest.approx(min(middle + half, 1), abs=3e-4)
    assert found.low <= found.share <= found.high


def test_of_nothing_everything_may_be() -> None:
    assert (share_of(0, 0).low, share_of(0, 0).high) == (0, 10_000)


# --- labels ----------------------------------------------------------------------------------------------


def test_labels_that_contradict_each_other_are_named() -> None:
    labels = [Label("a", "b", True), Label("b", "a", True), Label("c", "d", False)]
    assert one_each(labels) == [labels[0], labels[2]]
    with pytest.raises(InvalidValue, match="'d' and 'c' are called the same and different"):
        one_each([*labels, Label("d", "c", True)])
    with pytest.raises(InvalidValue, match="'a' is paired with itself"):
        one_each([Label("a", "a", True)])


def test_what_was_not_answered_is_no_label(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text('id1,id2,label,reason\na,b,1,"x, y"\nc,d,,\ne,f,?,\n"g,\nh",i,0,\n')
    assert read_labels(path) == [Label("a", "b", True), Label("g,\nh", "i", False)]
    assert [same for *_, same in read_answers(path)] == [True, None, None, False]


def test_a_file_of_labels_that_is_none_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    for text, message in ((b"a,b,2\n", "line 1"), (b"a,b,1\nc,d\n", "line 2"), (b"\xff\xfea", "not UTF-8")):
        path.write_bytes(text)
        with pytest.raises(InvalidValue, match=message):
            read_labels(path)


# --- calibrate -------------------------------------------------------------------------------------------


def stubs(count: int) -> tuple[list[dict[str, str]], list[Label]]:
    """Pages of which the first words say what they are about, and which the default takes for a revision."""
    chance = random.Random(4)
    words = ["".join(chance.choices("abdegiklmnoprstu", k=6)) for _ in range(900)]
    rows, labels = [], []
    for at in range(count):
        body = " ".join(chance.choices(words, k=34))
        other = body.split()
        other[at % 34] = words[(at * 7) % 900]
        same = at % 2 == 0
        names = [
            f"about {words[at]} {words[at + 1]} {words[at + 2]}",
            f"about {words[at + 300]} {words[at + 301]}",
        ]
        rows.append({"id": f"p{at}", "text": f"{names[0]} {body}"})
        rows.append({"id": f"q{at}", "text": f"{names[0] if same else names[1]} {' '.join(other)}"})
        labels.append(Label(f"p{at}", f"q{at}", same))
    return rows, labels


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with documents and labels."""
    folder = tmp_path_factory.mktemp("stubs")
    rows, labels = stubs(60)
    write_jsonl(folder / "a.jsonl", rows)
    lines = "".join(f"{one.one},{one.other},{int(one.same)}\n" for one in labels[:40])
    (folder / "pairs.csv").write_text("id1,id2,label\n" + lines)
    return folder


def test_calibrate_writes_a_rule_by_which_dedupe_judges(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rule, ask, page = tmp_path / "rule.toml", tmp_path / "ask.csv", tmp_path / "cal.html"
    arguments = [
        "calibrate",
        str(made / "a.jsonl"),
        "--labels",
        str(made / "pairs.csv"),
        "--copies",
        "5",
        "--quiet",
    ]
    more = ["--rule", str(rule), "--ask", str(ask), "--report", str(page)]
    assert run([*arguments, *more]) == 0
    said = capsys.readouterr().out
    assert "a rule learned from 40 labelled pairs (20 the same)" in said
    learned = read_rule(rule)
    assert learned.learned.precision.share >= 9000
    out = tmp_path / "out"
    assert (
        run(["dedupe", str(made / "a.jsonl"), "-o", str(out), "--rule", str(rule), "--no-guards", "--quiet"])
        == 0
    )
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["settings"]["rule"]["digest"] == learned.digest
    found = nd.dedupe(str(made / "a.jsonl"), rule=rule, guards=False)
    cluster = {row["id"]: row["cluster"] for row in found.annotations.to_pylist()}
    unseen = stubs(60)[1][40:]
    assert sum((cluster[one.one] == cluster[one.other]) == one.same for one in unseen) >= 18
    asked = read_answers(ask)
    labelled = {frozenset((one.one, one.other)) for one in stubs(60)[1][:40]}
    assert asked
    assert all(same is None for *_, same in asked)
    assert not labelled & {frozenset(pair[:2]) for pair in asked}
    text = page.read_text()
    assert "The rule that your answers make" in text
    assert "What to ask next" in text
    assert text.count('class="diff"') >= 1
    assert run([*arguments, "--rule", str(rule)]) == 2  # it exists


def test_the_pairs_to_ask_can_be_had_with_their_texts(made: Path, tmp_path: Path) -> None:
    ask = tmp_path / "ask.jsonl"
    arguments = ["calibrate", str(made / "a.jsonl"), "--labels", str(made / "pairs.csv"), "--copies", "5"]
    assert run([*arguments, "--ask", str(ask), "--quiet"]) == 0
    rows = [json.loads(line) for line in ask.read_text().splitlines()]
    assert rows
    assert all(row["text1"] and row["text2"] and row["label"] is None for row in rows)


def test_too_few_labels_make_no_rule_and_it_is_said(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    few = tmp_path / "few.csv"
    few.write_text("p0,q0,1\np1,q1,0\n")
    arguments = ["calibrate", str(made / "a.jsonl"), "--labels", str(few), "--copies", "5", "--quiet"]
    assert run(arguments) == 0
    assert "no rule is learned" in capsys.readouterr().out
    assert run([*arguments, "--rule", str(tmp_path / "rule.toml")]) == 2
    assert "20 are needed" in capsys.readouterr().err
    assert not (tmp_path / "rule.toml").exists()
    assert run([*arguments[:2], "--rule", str(tmp_path / "rule.toml")]) == 2
    assert "--labels" in capsys.readouterr().err


def test_the_page_escapes_what_a_text_says(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [dict(row) for row in stubs(24)[0]]
    for at, row in enumerate(rows):
        row["text"] += f" <script>alert(w{at})</script> \u202e"
    corpus, page = write_jsonl(tmp_path / "a.jsonl", rows), tmp_path / "cal.html"
    assert run(["calibrate", str(corpus), "--copies", "5", "--quiet", "--report", str(page)]) == 0
    text = page.read_text()
    assert "&lt;" in text
    assert "alert" in text
    assert "<script" not in text
    assert "\u202e" not in text


def test_calibrating_again_gives_the_same_rule() -> None:
    rows, labels = stubs(60)
    found = [
        calibrate(some, labels=order, choices=Choices(copies=5)).learned
        for some, order in ((rows, labels[:40]), (rows[::-1], labels[39::-1]))
    ]
    assert found[0] == found[1]
    assert found[0] is not None
    assert [one.figure for one in found[0].weights] == list(NAMES)
