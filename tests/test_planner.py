"""plan: what join would do, from what was measured on the data."""

from __future__ import annotations

import math

import numpy as np
import pytest

import neardup as nd
from neardup.errors import InvalidValue
from neardup.pairs import join_nearest
from neardup.radius import KEY, radius_for, recall_at
from tests.hamming import LEVELS, at_level, near_words


def uniform(count: int, width: int = 1) -> np.ndarray:
    return np.random.default_rng(1).integers(0, 2**64, (count, width), dtype=np.uint64)


def test_few_fingerprints_are_compared_one_by_one() -> None:
    assert nd.plan(uniform(500), 3).method == "brute"


def test_many_fingerprints_of_a_small_radius_go_by_blocks() -> None:
    plan = nd.plan(uniform(200_000), 3)
    assert (plan.method, plan.recall, plan.tables) == ("blocks", 1.0, 4)
    assert [block[:2] for block in plan.blocks] == [(16, 0)] * 4


def test_a_large_radius_is_sampled_only_when_recall_allows() -> None:
    words = uniform(100_000, 2)
    assert nd.plan(words, 40).method == "brute"
    sampled = nd.plan(words, 40, recall=0.95)
    assert (sampled.method, sampled.recall) == ("sampling", 0.95)
    assert nd.plan(words, 2, recall=0.95).recall == 1.0


def test_the_radii_of_the_blocks_obey_the_pigeonhole() -> None:
    words = uniform(100_000, 2)
    for radius in (3, 6, 8, 12):
        plan = nd.plan(words, radius, plan="blocks")
        assert sum(block_radius + 1 for _, block_radius, _ in plan.blocks) == radius + 1
        assert sum(bits for bits, _, _ in plan.blocks) == 128


def test_biased_bits_are_seen_in_the_measured_collisions() -> None:
    words = uniform(100_000)
    biased = words & np.roll(words, 1) & np.roll(words, 2)  # a bit is set one time in eight
    one, two = (nd.plan(data, 3, plan="blocks:4,1") for data in (words, biased))
    assert two.collision > 50 * one.collision
    assert two.seconds > one.seconds


def test_a_plan_is_printed_for_people() -> None:
    text = str(nd.plan(uniform(200_000), 3))
    assert text.startswith("blocks: 200000 fingerprints of 64 bits, radius 3, exact")
    assert "4 tables" in text
    assert "MB beside the input" in text


def test_a_join_says_by_which_plan_it_was_done() -> None:
    words = uniform(3000, 2)
    words[7] = words[8]
    prints = nd.Fingerprints(words, bits=128)
    for forced in (None, "blocks", "blocks:4,1", "sampling"):
        said = nd.plan(prints, 20, recall=0.9, threads=2, plan=forced)
        assert join_nearest(prints, 20, 4, recall=0.9, threads=2, plan=forced).plan == said


def test_a_plan_that_join_would_refuse_is_refused() -> None:
    with pytest.raises(InvalidValue):
        nd.plan(uniform(10), 65)
    with pytest.raises(InvalidValue):
        nd.plan(uniform(10), 3, plan="sampling")


def test_sampled_bits_find_the_wanted_share_of_all_pairs_of_a_similarity() -> None:
    """Where the join is asked for less at the radius, because most pairs are nearer."""
    bits, similarity, planted = 256, 0.64, 40_000
    radius = radius_for(similarity, 0.96, bits)
    rng = np.random.default_rng(11)
    left = rng.integers(0, 2, (planted, bits), dtype=np.uint8)
    right = left ^ (rng.random((planted, bits)) < math.acos(similarity) / math.pi)
    words = np.packbits(np.concatenate([left, right]), axis=1).view(np.uint64)
    recall = recall_at(radius, similarity, 0.99, bits)
    assert recall < 0.99
    plan = nd.plan(words, radius, recall=recall)
    assert plan.method == "sampling"
    assert plan.key_bits >= KEY
    found = nd.join(words, radius, recall=recall)
    within = int(((left != right).sum(axis=1) <= radius).sum())
    met = int((found.left.astype(np.int64) + planted == found.right).sum())
    assert met / within >= 0.99 - 3 * math.sqrt(0.99 * 0.01 / within)


# What runs of these widths looked within before wide ones could be computed at all.
@pytest.mark.parametrize(
    ("bits", "radii"),
    [
        (64, [28, 24, 19, 14, 10]),
        (128, [52, 44, 34, 25, 17]),
        (256, [98, 83, 63, 46, 31]),
        (512, [188, 160, 120, 87, 57]),
        (1024, [366, 309, 231, 166, 108]),
    ],
)
def test_the_radius_of_a_similarity_never_changes(bits: int, radii: list[int]) -> None:
    assert [radius_for(similarity, 0.95, bits) for similarity in (0.5, 0.64, 0.8, 0.9, 0.96)] == radii


@pytest.mark.parametrize("bits", [1_200, 2_048, 4_096, 16_384, 65_536])
def test_wide_fingerprints_have_a_radius_and_no_overflow(bits: int) -> None:
    differ = math.acos(0.64) / math.pi
    # With this many bits, the distance is all but normally distributed.
    expected = bits * differ + 1.645 * math.sqrt(bits * differ * (1 - differ))
    radius = radius_for(0.64, 0.95, bits)
    assert abs(radius - expected) < 2
    assert 0.95 <= recall_at(radius, 0.64, 0.99, bits) <= 0.99


@pytest.mark.parametrize("radius", [3, 20, 84])
def test_a_plan_that_may_miss_pairs_is_the_same_at_every_level(radius: int) -> None:
    words = near_words(20_000, 4, seed=5)
    plans, found = [], []
    for level in LEVELS:
        with at_level(level):
            plans.append(nd.plan(words, radius, recall=0.9).choice)
            found.append(nd.join(words[:5000], radius, recall=0.9))
    assert plans == plans[:1] * len(LEVELS)
    assert found == found[:1] * len(LEVELS)


def test_only_exact_plans_cost_what_the_level_costs() -> None:
    words = near_words(2000, 4, seed=5)
    exact, fixed = [], []
    for level in LEVELS:
        with at_level(level):
            exact.append(nd.plan(words, 84, plan="brute", threads=1).seconds)
            fixed.append(nd.plan(words, 84, plan="brute", recall=0.9, threads=1).seconds)
    assert exact == sorted(exact, reverse=True)
    assert fixed == fixed[:1] * len(LEVELS)
    assert fixed[0] < exact[0]
