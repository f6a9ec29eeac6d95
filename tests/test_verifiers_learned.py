"""Learned rules: how they decide, what they say, and files that are not as they were written."""

from __future__ import annotations

import random
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import neardup as nd
from neardup.adapters.cli import run
from neardup.contents import CONTENTS
from neardup.errors import DamagedFile, InvalidType, InvalidValue
from neardup.runs import Run
from neardup.verifiers import FIGURES, LearnedRule, read_rule, write_rule
from neardup.verifiers.figures import NAMES
from neardup.verifiers.learned import (
    FLOOR,
    Learned,
    Share,
    Weight,
    check_rule,
    parse_rule,
    to_toml,
    weighed,
)
from neardup.verifiers.reasons import TABLE, code_of

from .corpus import write_jsonl

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

SHARE = Share(9, 10, 9000, 5958, 9821)
LEARNED = Learned(100, 40, 10, SHARE, SHARE, SHARE, SHARE)
COUNT = len(FIGURES)


def rule(bias: int = 0, **weights: tuple[int, int]) -> LearnedRule:
    """A rule with these weights and middles; the others are 0."""
    named = {name.replace("_", "-"): value for name, value in weights.items()}
    return LearnedRule(tuple(Weight(name, *named.get(name, (0, 5000))) for name in NAMES), bias, LEARNED)


ACCEPTS = rule(bias=1)
REJECTS = rule(bias=-1)

weights = st.lists(
    st.tuples(st.integers(-1000, 1000), st.integers(0, 10_000)), min_size=COUNT, max_size=COUNT
)
rules = st.builds(
    lambda bias, rows: LearnedRule(tuple(map(Weight, NAMES, *zip(*rows, strict=True))), bias, LEARNED),
    st.integers(-(10**9), 10**9),
    weights,
)
figures = st.lists(
    st.lists(st.integers(0, 10_000), min_size=COUNT, max_size=COUNT), min_size=1, max_size=5
).map(lambda rows: np.array(rows, np.uint16))


def naive_verdict(rule: LearnedRule, row: list[int], *, low: bool) -> tuple[bool, str]:
    """Whether a pair is accepted, and why, one figure after the other."""
    if low:
        return False, "too different"
    parts = [(row[at] - one.middle) * one.weight for at, one in enumerate(rule.weights)] + [rule.bias]
    accepted = sum(parts) >= 0
    best = 0
    for at, part in enumerate(parts):
        if (part if accepted else -part) > (parts[best] if accepted else -parts[best]):
            best = at
    side = "same" if accepted else "other"
    if best == COUNT:
        return accepted, f"learned, {side}: as most pairs"
    figure = FIGURES[best]
    more = row[best] >= rule.weights[best].middle
    return accepted, f"learned, {side}: {figure.more if more else figure.less}"


@given(rules, figures, st.booleans())
def test_the_sum_of_the_weighed_figures_decides_and_the_largest_part_is_the_reason(
    rule: LearnedRule, figures: np.ndarray, low: bool
) -> None:
    code = np.full(len(figures), code_of("too-different" if low else "revision"), np.uint8)
    accepted, reasons = rule.judge(figures, code)
    for row, yes, reason in zip(figures.tolist(), accepted.tolist(), reasons.tolist(), strict=True):
        assert (yes, TABLE[reason].words) == naive_verdict(rule, row, low=low)
        assert TABLE[reason].accepts == yes


def test_what_weighed_most_is_told_first() -> None:
    found = weighed(rule(words=(3, 4000), opening=(-1, 0)), np.full(COUNT, 5000, np.uint16), 2)
    assert found == [("the same opening", -62), ("most words shared", 38)]


# --- in a run --------------------------------------------------------------------------------------------

DOCUMENTS = [
    {"id": "a", "text": "the old house by the sea has rooms with a view"},
    {"id": "b", "text": "the old house by the sea has rooms with a garden"},
    {"id": "c", "text": "quite another text about mountains"},
    {"id": "d", "text": "The old house by the sea has rooms with a view!"},
]


def test_a_learned_rule_decides_instead_of_the_default_and_the_evidence_names_it() -> None:
    for one, expected in ((ACCEPTS, True), (REJECTS, False)):
        result = nd.dedupe(DOCUMENTS, rule=one, exact=True)
        rows = result.evidence.to_pylist()
        row = next(row for row in rows if "b" in (row["keeper"], row["id"]))
        assert row["accepted"] is expected
        assert row["reason"] == f"learned, {'same' if expected else 'other'}: as most pairs"
        assert row["rule"] == one.digest
        kept = {row["id"]: row["keep"] for row in result.annotations.to_pylist()}
        assert sum(kept[id] for id in "abd") == (1 if expected else 2)  # one text stays one text


def test_a_learned_rule_accepts_nothing_below_the_floor_of_the_default() -> None:
    result = nd.dedupe(DOCUMENTS, rule=ACCEPTS, radius=128)
    rows = result.evidence.to_pylist()
    assert any(row["similarity"] < FLOOR / 10_000 for row in rows)
    assert all(row["accepted"] == (row["similarity"] >= FLOOR / 10_000) for row in rows)
    with pytest.raises(InvalidValue, match=r"accepts nothing below a similarity of 0\.64"):
        nd.Settings(rule=ACCEPTS, similarity=0.5)


def test_another_rule_is_another_run_and_the_same_is_finished(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    corpus, path, out = write_jsonl(tmp_path / "a.jsonl", DOCUMENTS), tmp_path / "rule.toml", tmp_path / "out"
    arguments = ["dedupe", str(corpus), "-o", str(out), "--rule", str(path), "--no-guards", "--quiet"]
    write_rule(ACCEPTS, path)
    assert run(arguments) == 0
    before = (out / "manifest.json").read_bytes()
    assert run(arguments) == 0
    assert (out / "manifest.json").read_bytes() == before
    write_rule(REJECTS, path, overwrite=True)
    assert run(arguments) == 2
    assert "holds another run" in capsys.readouterr().err
    assert run([*arguments[:3], str(tmp_path / "other"), *arguments[4:]]) == 0
    assert run(["check", str(out), str(tmp_path / "other")]) == 1
    said = capsys.readouterr().out
    assert f"settings.rule: setting '{ACCEPTS.digest}' -> '{REJECTS.digest}'" in said


def test_a_run_knows_its_rule_without_the_file_and_not_after_a_change(tmp_path: Path) -> None:
    corpus, path, out = write_jsonl(tmp_path / "a.jsonl", DOCUMENTS), tmp_path / "rule.toml", tmp_path / "out"
    write_rule(ACCEPTS, path)
    assert run(["dedupe", str(corpus), "-o", str(out), "--rule", str(path), "--no-guards", "--quiet"]) == 0
    path.unlink()
    assert Run(out).measure.learned == ACCEPTS
    place = out / "manifest.json"
    place.write_text(place.read_text().replace('"bias": 1', '"bias": 2'))
    with pytest.raises(DamagedFile, match="rule of run"):
        _ = Run(out).measure


def test_a_higher_similarity_holds_for_a_learned_rule_too() -> None:
    result = nd.dedupe(DOCUMENTS, rule=ACCEPTS, similarity=0.99, radius=128)
    assert {row["reason"] for row in result.evidence.to_pylist() if not row["accepted"]} == {"too different"}


def test_a_rule_can_be_named_as_a_measure_or_as_a_file(tmp_path: Path) -> None:
    path = tmp_path / "rule.toml"
    write_rule(REJECTS, path)
    pair = (DOCUMENTS[0]["text"], DOCUMENTS[1]["text"])
    assert not nd.verify([pair], measure=f"rule:{path}")[0].accepted
    settings = [nd.Settings(rule=str(path)), nd.Settings(verify=f"rule:{path}"), nd.Settings(rule=path)]
    assert settings == [nd.Settings(rule=REJECTS)] * 3
    with pytest.raises(InvalidValue, match="choose one of rule and verify"):
        nd.Settings(rule=path, verify="strict")
    with pytest.raises(InvalidType, match="rule must be"):
        check_rule(7)


# --- files -----------------------------------------------------------------------------------------------


@given(rules)
def test_a_file_says_the_rule_again(rule: LearnedRule) -> None:
    text = to_toml(rule)
    assert parse_rule(text.encode(), "here") == rule
    said = tomllib.loads(text)
    assert said["digest"] == rule.digest
    assert list(said["weights"]) == list(NAMES)
    assert LearnedRule.of_facts(rule.facts(), "a manifest") == rule


def test_every_value_is_in_the_digest() -> None:
    rules = [
        ACCEPTS,
        REJECTS,
        rule(words=(1, 5000)),
        rule(words=(1, 5001)),
        replace(ACCEPTS, made_by="9"),
        replace(ACCEPTS, learned=replace(LEARNED, same=41)),
    ]
    assert len({one.digest for one in rules}) == len(rules)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("bias = 1\n", "bias = 2\n", "its digest is that of another one"),
        ("bias = 1\n", "", "the rule has no 'bias'"),
        ("bias = 1\n", "bias = 1.0\n", "bias is 1.0"),
        ("bias = 1\n", "bias = 99999999999999999999999\n", "bias is 9999"),
        ("bias = 1\n", "bias = 1\nmore = 1\n", "has 'more', which is unknown"),
        ("words = [0, 5000]\n", "", "its figures are not those"),
        ("words = [0, 5000]\n", "words = [0]\n", "a weight is not a table"),
        ("words = [0, 5000]\n", "words = [0, 50000]\n", "the middle of 'words' is 50000"),
        ("words = [0, 5000]\n", "words = [true, 5000]\n", "the weight of 'words' is True"),
        ("labels = 100\n", "labels = -1\n", "labels is -1"),
        ("neardup-rule = 1", "neardup-rule = 2", "has format 2"),
        ("figures = 1\n", "figures = 7\n", "version 7 of the figures"),
        ("neardup-rule = 1\n", "", "is not a rule of neardup"),
        ("[weights]", "[[weights", "is not a rule"),
    ],
)
def test_a_file_that_was_changed_is_refused_in_one_line(old: str, new: str, message: str) -> None:
    text = to_toml(ACCEPTS)
    assert old in text
    with pytest.raises((DamagedFile, InvalidValue), match=message) as caught:
        parse_rule(text.replace(old, new).encode(), "'rule.toml'")
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith("'rule.toml'")
    assert "neardup calibrate" in str(caught.value)


def test_no_damage_makes_another_rule_of_a_file() -> None:
    """Bytes that are changed, cut, doubled or put in: the same rule (in a comment), or an error of ours."""
    chance = random.Random(3)
    data = to_toml(rule(words=(7, 4000), rare=(-3, 9000))).encode()
    first = parse_rule(data, "x")
    said: list[str] = []
    for _ in range(1500):
        bad = bytearray(data)
        for _ in range(chance.randint(1, 3)):
            at = chance.randrange(len(bad))
            what = chance.randrange(4)
            if what == 0:
                bad[at] = chance.randrange(256)
            elif what == 1:
                del bad[at : at + chance.randint(1, 40)]
            elif what == 2:
                bad[at:at] = bytes(chance.choices(range(256), k=chance.randint(1, 8)))
            else:
                bad[at:at] = bad[at : at + chance.randint(1, 60)]
        try:
            assert parse_rule(bytes(bad), "x") == first
        except (DamagedFile, InvalidValue) as error:
            said.append(str(error))
    assert len(said) > 1000
    assert not any("\n" in one for one in said)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff\xfe\x00",
        b"x" * (1 << 17),
        b"[" * 5000,
        b'name = "jobs"\n',
        b'{"a": 1}',
        b"neardup-rule = []",
    ],
)
def test_a_foreign_file_is_refused_and_the_command_says_so(
    data: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, corpus = tmp_path / "rule.toml", tmp_path / "a.jsonl"
    path.write_bytes(data)
    corpus.write_text('{"id": "a", "text": "one"}\n')
    with pytest.raises((DamagedFile, InvalidValue)):
        read_rule(path)
    assert run(["dedupe", str(corpus), "-o", str(tmp_path / "out"), "--rule", str(path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_a_missing_file_is_an_input_that_cannot_be_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    corpus = tmp_path / "a.jsonl"
    corpus.write_text('{"id": "a", "text": "one"}\n')
    assert run(["dedupe", str(corpus), "-o", str(tmp_path / "out"), "--rule", str(tmp_path / "no.toml")]) == 4
    assert "no.toml" in capsys.readouterr().err


def test_a_rule_is_for_texts() -> None:
    with pytest.raises(InvalidValue, match="learned on texts"):
        CONTENTS.part("image").check(nd.Settings(rule=ACCEPTS), None)
