"""Graded edits: a known kind and amount of change."""

from __future__ import annotations

import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.edits import CHANGES, EDITS, Edit, Vocabulary, edited, word_count

from .corpus import words

TEXT = "".join(" ".join(words(seed, 20)) + f", {seed}.\n" for seed in range(12))
OTHER = " ".join(words(99, 240))
VOCABULARY = Vocabulary([TEXT, OTHER])


def changed(kind: str, percent: int, text: str = TEXT) -> str:
    return edited(text, Edit(kind, percent), VOCABULARY, OTHER, random.Random(1))


@pytest.mark.parametrize("edit", EDITS, ids=lambda edit: edit.name)
def test_the_same_chance_makes_the_same_copy_and_another_one_than_the_text(edit: Edit) -> None:
    assert changed(edit.kind, edit.percent) == changed(edit.kind, edit.percent) != TEXT


def test_as_many_words_are_replaced_as_was_said() -> None:
    pairs = zip(TEXT.split(), changed("words", 10).split(), strict=True)
    assert sum(one != other for one, other in pairs) == 24  # of 240 that are not numbers


def test_numbers_are_left_alone() -> None:
    assert re.findall(r"\d+", changed("words", 50)) == re.findall(r"\d+", TEXT)


def test_moved_lines_are_all_there() -> None:
    assert sorted(changed("moved", 30).splitlines()) == sorted(TEXT.splitlines())


def test_what_is_cut_off_is_the_end() -> None:
    cut = changed("cut", 40)
    assert TEXT.startswith(cut)
    assert word_count(cut) == round(0.6 * word_count(TEXT))


def test_another_frame_leaves_the_middle() -> None:
    found = changed("frame", 20)
    assert found.startswith(OTHER[:20])
    assert TEXT[len(TEXT) // 2 - 50 : len(TEXT) // 2 + 50] in found


def test_words_are_those_of_verification_each_cjk_character_is_one() -> None:
    assert word_count("one two_three, 4") == 3
    assert word_count("漢字 kana かな") == 5


@given(st.text(max_size=60), st.sampled_from(sorted(CHANGES)), st.integers(1, 90), st.integers(0, 99))
def test_any_text_can_be_edited(text: str, kind: str, percent: int, seed: int) -> None:
    made = edited(text, Edit(kind, percent), VOCABULARY, text[::-1], random.Random(seed))
    assert isinstance(made, str)
