"""Texts in the flow: how candidates are proposed, and in which parts they are judged."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import neardup as nd
from neardup.contents import TEXT, Work
from neardup.contents.texts import BANDED, BANDS, TextFlow, reach_of
from neardup.pairs import join_nearest
from neardup.radius import radius_for
from neardup.schemes.computing import banded
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


def test_many_texts_are_compared_by_their_bands_where_these_find_enough() -> None:
    text, many = nd.scheme("text"), BANDED
    assert 0 < TEXT.bands(text, Settings(similarity=0.9), many) < TEXT.bands(text, Settings(), many) == BANDS
    assert banded(text, pa.array(["a text"]))[1].shape == (1, BANDS)
    assert TEXT.bands(text, Settings(), many - 1) == 0
    for settings in (
        Settings(exact=True),
        Settings(radius=9),
        Settings(similarity=0.5),
        Settings(recall=0.99),
    ):
        assert TEXT.bands(text, settings, many) == 0
    assert TEXT.bands(nd.scheme("chars:4"), Settings(), many) == 0


@pytest.mark.parametrize("similarity", [0.64, 0.8, 0.95])
def test_bands_and_radius_find_together_what_is_asked_for(similarity: float) -> None:
    settings = Settings(similarity=similarity)
    found = 1 - (1 - (similarity / (2 - similarity)) ** 2) ** TEXT.bands(nd.scheme("text"), settings, BANDED)
    radius, recall = reach_of(settings, 256, banded=True)
    assert found >= recall
    near = sum(share for far, share in enumerate(distances(similarity, 256)) if far <= radius)
    assert near * found >= settings.recall


def distances(similarity: float, bits: int) -> list[float]:
    """The share of the pairs of that similarity at each distance."""
    differ = math.acos(similarity) / math.pi
    return [math.comb(bits, far) * differ**far * (1 - differ) ** (bits - far) for far in range(bits + 1)]


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
    assert plan is not None
    assert found.plan == plan.choice
    wanted = texts.comparable(
        TextNumbers(every.left.astype(np.int64)), TextNumbers(every.right.astype(np.int64))
    )
    assert len(found) == int(wanted.sum())


def test_with_bands_only_texts_that_share_one_are_proposed() -> None:
    texts = representatives(ROWS)
    scheme = nd.scheme("text")
    written = pa.array([ROWS[row]["text"] for row in texts.document], pa.string())
    prints, bands = banded(scheme, written)
    flow = TextFlow(prints, texts, Work((), threads=1))
    found = flow.candidates(flow.propose(lambda *counts: None, bands))
    assert found.plan.endswith(f"that share one of {BANDS} bands")
    assert (found.radius, len(found) > 0) == (reach_of(Settings(), 128, banded=True)[0], True)
    assert (bands[found.left] == bands[found.right]).any(axis=1).all()
