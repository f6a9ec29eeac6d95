"""Candidates: pairs of texts that are near enough to be looked at."""

from __future__ import annotations

import numpy as np

from neardup.candidates import Reach, reaches
from neardup.types import TextNumbers

from .stages import candidates


def texts(*numbers: int) -> TextNumbers:
    return TextNumbers(np.array(numbers, dtype=np.int64))


def test_pairs_are_added_at_the_end() -> None:
    found = candidates([0, 1, 3], (0, 1))
    more = found.with_more(texts(1), texts(2), np.array([1], dtype=np.int32))
    assert (len(found), len(more)) == (1, 2)
    assert (more.left.tolist(), more.right.tolist(), more.distance.tolist()) == ([0, 1], [1, 2], [1, 1])


def test_the_reach_of_a_text_is_all_within_the_radius() -> None:
    found = candidates([0, 1, 3, 7, 15], crowded=(0, 3))
    seen = {
        reach.text: dict(zip(reach.others.tolist(), reach.distance.tolist(), strict=True))
        for reach in reaches(found, found.crowded)
    }
    assert seen == {0: {0: 0, 1: 1, 2: 2, 3: 3}, 3: {0: 3, 1: 2, 2: 1, 3: 0, 4: 1}}


def test_a_reach_can_be_cut_and_has_its_lower_number_on_the_left() -> None:
    reach = Reach(2, texts(0, 1, 4), np.array([5, 6, 7], dtype=np.int32))
    less = reach.only(np.array([True, False, True]))
    assert less.distance.tolist() == [5, 7]
    assert [side.tolist() for side in less.pairs] == [[0, 2], [2, 4]]
