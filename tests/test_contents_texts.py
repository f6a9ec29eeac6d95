"""Texts in the flow: how candidates are proposed, and in which parts they are judged."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import neardup as nd
from neardup.contents import Work
from neardup.contents.texts import TextFlow, reach_of
from neardup.pairs import join_nearest
from neardup.radius import radius_for
from neardup.settings import Settings
from neardup.types import TextNumbers

from .corpus import collection
from .stages import representatives

ROWS = [{**row, "half": at % 2} for at, row in enumerate(collection(30)) if row["text"].strip(" .")]


def test_a_radius_that_is_given_is_searched_in_full() -> None:
    assert reach_of(Settings(radius=7), 128) == (7, 1.0)


def test_exact_finds_every_pair_within_a_wider_radius() -> None:
    radius, recall = reach_of(Settings(exact=True), 128)
    assert recall == 1.0
    assert radius > reach_of(Settings(), 128)[0]


def test_the_share_that_the_join_misses_is_made_up_by_the_radius() -> None:
    radius, recall = reach_of(Settings(similarity=0.8, recall=0.9), 128)
    assert radius >= radius_for(0.8, 0.9, 128)
    assert 0.5 <= recall < 0.99


@pytest.mark.parametrize("choices", [{}, {"within": "half"}, {"across": "half"}])
def test_what_is_proposed_comes_back_as_candidates(choices: dict[str, Any]) -> None:
    texts = representatives(ROWS, **choices)
    prints = nd.scheme("text").fingerprints([ROWS[row]["text"] for row in texts.document])
    settings = Settings(radius=44, **choices)
    flow = TextFlow(prints, texts, Work((), settings, threads=1, memory=1 << 20))
    found = flow.candidates(flow.propose(lambda *counts: None))
    assert (found.radius, len(found) > 0) == (44, True)
    assert (found.left < found.right).all()
    assert texts.comparable(found.left, found.right).all()
    every, _, plan = join_nearest(prints, 44, 32)
    assert found.plan == plan.choice
    wanted = texts.comparable(
        TextNumbers(every.left.astype(np.int64)), TextNumbers(every.right.astype(np.int64))
    )
    assert len(found) == int(wanted.sum())
