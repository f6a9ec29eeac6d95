"""Verdicts: what was found of each candidate pair."""

from __future__ import annotations

import numpy as np

from neardup.types import PairNumbers, TextNumbers
from neardup.verdicts import Judgements, Unverified

from .stages import candidates, verdicts

FOUND = candidates([0, 1, 3, 7], (0, 1), (0, 2), (1, 2))


def pairs(*numbers: int) -> PairNumbers:
    return PairNumbers(np.array(numbers))


def judged() -> Judgements:
    judgements = Judgements(FOUND, verified=True)
    judgements.note(pairs(0, 2), verdicts((True, 3, 0.9), (False, 7, 0.1234)))
    return judgements


def test_what_is_judged_is_known_and_the_rest_is_not_accepted() -> None:
    judgements = judged()
    assert judgements.judged.tolist() == [True, False, True]
    assert judgements.accepted.tolist() == [True, False, False]
    assert judgements.reason.tolist() == [3, 0, 7]
    assert judgements.measured[2].tolist() == [1234, 1234, 1234]


def test_what_is_not_verified_is_accepted_and_was_not_measured() -> None:
    judgements = Judgements(FOUND, verified=False)
    judgements.note(pairs(0), Unverified().judge(TextNumbers(FOUND.left[:1]), TextNumbers(FOUND.right[:1])))
    assert judgements.accepted.all()
    assert not judgements.judged.any()
    assert list(Unverified().parts(FOUND)) == []


def test_pairs_that_are_added_come_with_their_verdicts() -> None:
    judgements = judged()
    more = FOUND.with_more(
        TextNumbers(np.array([2])), TextNumbers(np.array([3])), np.array([1], dtype=np.int32)
    )
    judgements.learn(more, [verdicts((True, 5, 0.5))])
    assert judgements.accepted.tolist() == [True, False, False, True]
    assert judgements.right.tolist() == [1, 2, 2, 3]


def test_a_checkpoint_is_taken_over_for_the_same_pairs_alone() -> None:
    table = judged().table()
    again = Judgements(FOUND, verified=True)
    assert again.restore(table) == 2
    assert again.table().equals(table)
    other = Judgements(candidates([0, 1, 3, 7], (0, 1), (0, 2), (1, 3)), verified=True)
    assert other.restore(table) == 0
    assert not other.judged.any()
