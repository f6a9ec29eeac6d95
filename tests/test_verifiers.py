"""Measures, reasons and the tests of the rule are rows; pages and the core say the same."""

from __future__ import annotations

import importlib.util
from dataclasses import asdict, replace
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import neardup as nd
from neardup import _native
from neardup.errors import InvalidValue, NeardupError
from neardup.settings import Settings
from neardup.verifiers import (
    IDENTICAL,
    MEASURES,
    NO_INFORMATION,
    PRECISIONS,
    RULES,
    SPELLED,
    TESTS,
    TextRule,
    Verifier,
    parse_measure,
    rule_named,
    write_rule,
)
from neardup.verifiers.reasons import MEASURED, TABLE

from .corpus import collection, edited, words
from .test_naive_flow import STORIES
from .test_verifiers_learned import rule as a_rule

TOOL = Path(__file__).parent.parent / "tools" / "quality_tables.py"


def test_the_tables_of_the_quality_page_are_printed_from_the_code() -> None:
    spec = importlib.util.spec_from_file_location("quality_tables", TOOL)
    assert spec is not None
    assert spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    page = tool.PAGE.read_text(encoding="utf-8")
    assert page == tool.printed(page), f"run python {TOOL} --write"


def test_reasons_that_accept_come_first_and_no_name_or_wording_is_used_twice() -> None:
    accepts = [reason.accepts for reason in MEASURED]
    assert accepts == sorted(accepts, reverse=True)
    assert len({reason.name for reason in TABLE}) == len({reason.words for reason in TABLE}) == len(TABLE)


def test_every_test_of_the_rule_gives_a_known_reason() -> None:
    assert {test.reason for test in TESTS} == {reason.name for reason in MEASURED}


@pytest.mark.parametrize("name", MEASURES)
def test_every_measure_can_be_named(name: str, tmp_path: Path) -> None:
    argument = {"jaccard": ":0.5", "containment": ":0.5", "rule": f":{tmp_path / 'rule.toml'}"}.get(name, "")
    write_rule(a_rule(), tmp_path / "rule.toml")
    measure = parse_measure(name + argument, 0.8)
    assert measure.name == name
    assert measure.verifies == (name != "none")
    assert (measure.rule is not None) == (name in RULES or name == "rule")
    assert (measure.learned is not None) == (name == "rule")
    assert measure.rule is None or measure.rule.floor == 8000


@pytest.mark.parametrize("text", ["jaccard", "jaccard:0", "containment:2", "default:1", "none:1", "x", ""])
def test_a_measure_that_is_none_is_refused_in_its_own_words(text: str) -> None:
    with pytest.raises(NeardupError, match=repr(text.partition(":")[0])[:-1]):
        parse_measure(text)


def test_the_core_has_the_same_settings_reasons_and_tests() -> None:
    settings, reasons, tests = _native.text_rule()
    assert dict(settings) == {name: int(value) for name, value in asdict(TextRule()).items()}
    assert reasons == [(reason.name, reason.accepts) for reason in MEASURED]
    assert sorted(tests) == sorted((test.name, test.reason) for test in TESTS)


def test_what_no_document_had_counts_if_two_of_the_texts_have_it() -> None:
    table = nd.scheme("text").fit(["something else entirely", "something else again"])
    known = "something else " + " ".join(words(1, 40))
    texts = [known, known.replace(words(1, 40)[7], "other")]
    closed, opened = Verifier("default", table), Verifier("default", table, open=True)
    for verifier in (closed, opened):
        verifier.add("ab", texts)
    assert closed.judge("a", "b")[0].similarity < 0.1
    assert opened.judge("a", "b")[0].similarity > 0.9


@given(told=st.lists(st.sampled_from(sorted(STORIES)), min_size=1, max_size=3), seed=st.integers(0, 10**6))
@settings(max_examples=25)
def test_what_a_stricter_rule_accepts_a_looser_one_accepts(told: list[str], seed: int) -> None:
    texts = [text for at, reason in enumerate(told) for text in STORIES[reason][1](seed + 10 * at)]
    pairs = list(combinations(texts[:16], 2))
    accepted = [nd.verify(pairs, measure=name).accepted for name in RULES]
    for stricter, looser in pairwise(accepted):
        assert not (stricter & ~looser).any()


def test_a_precision_names_a_rule_and_stands_alone() -> None:
    assert [rule_named(name) for name in PRECISIONS] == list(RULES)
    assert Settings(precision="high").verify == "high"
    assert Settings(precision="low", verify="loose") == Settings(verify="loose")
    assert replace(Settings(precision="low"), similarity=0.7).verify == "loose"
    with pytest.raises(NeardupError, match="unknown precision 'higher'; known: highest, high, default, low"):
        Settings(precision="higher")
    with pytest.raises(NeardupError, match="choose one of precision and verify"):
        Settings(precision="high", verify="none")


# --- pairs of texts --------------------------------------------------------------------------------------


def pairs_of(rows: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return list(combinations([row["text"] for row in rows], 2))


def forms(count: int) -> list[str]:
    """Texts of one frame, each with its own word in the same places."""
    found = []
    for number in range(count):
        text = words(1, 200)
        text[::10] = words(10 + number, 20)
        found.append(" ".join(text))
    return found


def test_pairs_of_texts_have_the_verdicts_that_a_run_gives_them() -> None:
    rows = collection(30) + [{"id": f"form-{at}", "text": text} for at, text in enumerate(forms(9))]
    result = nd.dedupe(rows, guards=False)
    text = {row["id"]: row["text"] for row in rows}
    evidence = [row for row in result.evidence.to_pylist() if row["similarity"] < 1]
    pairs = [(text[row["keeper"]], text[row["id"]]) for row in evidence]
    found = nd.verify(pairs, frequencies=nd.scheme("text").fit(list(text.values())))
    assert len(found) == len(evidence) > 30
    assert 0 < found.accepted.sum() < len(found)
    for row, verdict in zip(evidence, found, strict=True):
        assert verdict.accepted == row["accepted"], row
        assert verdict.similarity == pytest.approx(row["similarity"], abs=1e-9)
        assert verdict.rare == pytest.approx(row["rare"], abs=1e-9)


def test_equal_texts_and_texts_without_information_are_told_without_measuring() -> None:
    found = nd.verify([("One two.", "One two."), ("One two.", "one TWO"), ("!", "one two"), ("", "")])
    assert [verdict.reason for verdict in found] == [IDENTICAL, SPELLED, NO_INFORMATION, NO_INFORMATION]
    assert [verdict.accepted for verdict in found] == [True, True, False, False]
    assert found.similarity.tolist() == [1.0, 1.0, 0.0, 0.0]


def test_a_text_that_is_paired_with_others_has_them_as_neighbours() -> None:
    texts = forms(6)
    (alone,) = nd.verify([(texts[0], texts[1])])
    among = nd.verify(list(combinations(texts, 2)))
    assert alone.accepted
    assert not among.accepted.any()


def test_the_order_of_the_pairs_and_of_each_pair_decides_nothing() -> None:
    pairs = pairs_of(collection(12))
    found = list(nd.verify(pairs))
    turned = nd.verify([(other, one) for one, other in reversed(pairs)])
    assert list(turned)[::-1] == found
    assert list(nd.verify([*pairs, *pairs]))[: len(pairs)] == found


def test_a_share_decides_where_it_is_asked_for() -> None:
    (verdict,) = nd.verify([("one two three four", "one two five six")], measure="jaccard:0.2")
    assert verdict.accepted
    assert 0.2 <= verdict.similarity < 0.64


def test_verdicts_are_a_sequence() -> None:
    found = nd.verify([("one two", "one two"), ("one two", "three"), ("four", "five")])
    assert len(found) == 3
    assert found[0].reason == IDENTICAL
    assert found[-1] == list(found)[2]
    assert list(found[1:]) == list(found)[1:]
    with pytest.raises(IndexError):
        found[3]
    assert repr(found) == "<3 verdicts, 1 accepted>"
    assert len(nd.verify([])) == 0


@pytest.mark.parametrize(
    ("pairs", "options", "message"),
    [
        (["ab"], {}, "pair 0 must be two texts"),
        ([("a", "b"), ("a",)], {}, "pair 1 must be two texts"),
        ("ab", {}, "pairs must be an iterable"),
        ([("a", "b")], {"measure": "none"}, "verifies nothing"),
        ([("a", "b")], {"frequencies": nd.scheme("text")}, "counted no document"),
        ([("a", "b")], {"frequencies": nd.scheme("chars:3", weights="log-df").fit(["a"])}, "did not count"),
    ],
)
def test_what_cannot_be_verified_is_told(pairs: Any, options: Any, message: str) -> None:
    with pytest.raises(NeardupError, match=message):
        nd.verify(pairs, **options)


# --- a verifier that grows -------------------------------------------------------------------------------


def test_a_verifier_judges_what_was_added_last_and_nothing_that_was_removed() -> None:
    verifier = Verifier()
    text = " ".join(words(1, 100))
    verifier.add(["a", "b"], [text, " ".join(edited(words(1, 100), 2, 2))])
    assert verifier.judge(["a"], ["b"])[0].accepted
    verifier.add(["c"], ["something else"])
    assert verifier.judge(["a", "a"], ["b", "c"]).accepted.tolist() == [True, False]
    verifier.remove(["b"])
    with pytest.raises(InvalidValue, match="no text was set aside for document 'b'"):
        verifier.judge(["a"], ["b"])
    verifier.add(["d", "c"], [text, text + " more"])
    assert verifier.judge(["a", "c"], ["d", "d"]).similarity.tolist() == pytest.approx([1.0, 0.99], abs=0.01)


def test_a_verifier_that_grew_says_what_one_says_that_knew_all_before() -> None:
    texts = [row["text"] for row in collection(40)]
    count = len(texts)
    table = nd.scheme("text").fit(texts)
    left, right = (np.array(side) for side in zip(*combinations(range(count), 2), strict=True))
    grown, known = Verifier("default", table), Verifier("default", table)
    for number in range(count):
        grown.add(np.array([number]), [texts[number]])
    known.expect(count, np.arange(count))
    known.add(np.arange(count), texts)
    one, other = grown.judge_together(left, right), known.judge_together(left, right)
    assert list(one) == list(other)
    grown.meet(left, right)
    assert list(grown.judge(left, right)) == list(one)
