"""The figures of a pair: the core, the table and the naive twin have the same, and say the same."""

from __future__ import annotations

from dataclasses import asdict
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import neardup as nd
from neardup import _native, naive
from neardup.errors import InvalidValue
from neardup.naive.figures import figures as naive_figures
from neardup.verifiers import FIGURES, RULES, Verifier
from neardup.verifiers.figures import NAMES, VERSION
from neardup.verifiers.reasons import LEARNED, MEASURED, TABLE, learned_code
from neardup.verifiers.verdicts import Verdicts

from .corpus import collection

RULE = {name: int(value) for name, value in asdict(RULES["default"]).items()}

# Texts of few words are near each other, and have numbers, other scripts and repetitions.
WORDS = [
    "the",
    "old",
    "house",
    "by",
    "sea",
    "has",
    "12",
    "7",
    "2024",
    "rooms",
    "and",
    "view",
    "café",
    "漢字",
    "кот",
    "No.",
    "1.2",
    "x",
]
texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=60).map(" ".join)


def figures_of(left: str, right: str) -> tuple[Verdicts, dict[str, int]]:
    verifier = Verifier()
    verifier.add(["left", "right"], [left, right])
    found, rows = verifier.figures(["left"], ["right"])
    return found, dict(zip(NAMES, rows[0].tolist(), strict=True))


def test_the_core_has_the_figures_of_the_table_in_its_order() -> None:
    assert tuple(_native.figure_names()) == NAMES == tuple(figure.name for figure in FIGURES)


@given(texts, texts)
def test_figures_are_those_of_the_naive_twin(left: str, right: str) -> None:
    found, figures = figures_of(left, right)
    one, other = naive.Profile.of(left), naive.Profile.of(right)
    reason, seen = naive.judge(one, other, RULE)
    accepted = reason in naive.ACCEPTING
    expected = naive_figures(one, other, seen, alone=accepted, accepted=accepted)
    if reason == "too different":
        expected = dict.fromkeys(NAMES, 0)
    assert found[0].reason == reason
    assert figures == expected


@given(texts, texts)
def test_figures_are_shares_and_the_same_whichever_text_comes_first(left: str, right: str) -> None:
    _, figures = figures_of(left, right)
    assert figures == figures_of(right, left)[1]
    assert all(0 <= value <= 10_000 for value in figures.values())


def test_the_default_is_asked_among_the_neighbours_and_without_them() -> None:
    rows = [
        f"letter to {name} about the {name} of the year with kind regards from the office"
        for name in "abcdef"
    ]
    verifier = Verifier("default", nd.scheme("text").fit(rows))
    verifier.add(np.arange(6), rows)
    left, right = (np.array(side) for side in zip(*combinations(range(6), 2), strict=True))
    found, figures = verifier.figures(left, right, together=True)
    assert list(found) == list(verifier.judge_together(left, right))
    assert (figures[:, NAMES.index("default")] == np.where(found.accepted, 10_000, 0)).all()
    verifier.meet(left, right)
    met, again = verifier.figures(left, right)
    assert list(met) == list(found)
    assert (again == figures).all()


def test_how_many_threads_there_are_changes_no_figure() -> None:
    rows = [row["text"] for row in collection(40)]
    left, right = (np.array(side) for side in zip(*combinations(range(len(rows)), 2), strict=True))
    tables = []
    for threads in (1, 3):
        verifier = Verifier(threads=threads)
        verifier.add(np.arange(len(rows)), rows)
        tables.append(verifier.figures(left, right, together=True)[1])
    assert (tables[0] == tables[1]).all()


def test_only_a_rule_has_figures() -> None:
    verifier = Verifier("jaccard:0.5")
    verifier.add("ab", ["one two", "one three"])
    with pytest.raises(InvalidValue, match="only a rule has figures"):
        verifier.figures("a", "b")


def test_each_figure_has_four_reasons_and_pairs_without_one_have_two() -> None:
    place = np.arange(len(FIGURES) + 1)
    met = set()
    for accepted in (True, False):
        for above in (True, False):
            flags = (np.full(len(place), value) for value in (accepted, above))
            same, more = flags
            codes = learned_code(place, accepted=same, above=more)
            assert [TABLE[code].accepts for code in codes.tolist()] == [accepted] * len(place)
            met |= set(codes.tolist())
    assert len(met) == 4 * len(FIGURES) + 2 == len(LEARNED)
    assert min(met) > len(MEASURED)
    assert len(TABLE) < 250  # places of reasons have eight bits


def test_what_the_figures_mean_is_pinned_to_their_version() -> None:
    # A change here makes rules that were learned before mean something else: give VERSION another number.
    assert VERSION == 1
    text = "The old house by the sea has 12 rooms and a view of the harbour, since 1907."
    other = "The old house by the lake has 12 rooms, and a view of the hills and the church, since 1911."
    _, figures = figures_of(text, other)
    assert list(figures.values()) == PINNED


PINNED = [
    7583,
    7583,
    7583,
    5714,
    6315,
    4583,
    3750,
    6000,
    2352,
    3500,
    1764,
    8500,
    2539,
    3333,
    5000,
    5000,
    4166,
]
PINNED += [8333, 6666, 7500, 0, 0, 0]
