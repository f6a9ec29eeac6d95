"""groups and components: the results of the plain loops, without their cost."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import neardup as nd
from neardup import naive
from neardup.errors import InvalidType, InvalidValue
from tests.hamming import LEVELS, at_level, fingerprints, near_words


def test_the_first_in_order_becomes_the_centre() -> None:
    words = np.array([0b000, 0b001, 0b011], dtype=np.uint64)
    assert list(nd.groups(words, 1)) == [[0, 1], [2]]
    assert list(nd.groups(words, 1, order=[1, 0, 2])) == [[1, 0, 2]]


def test_a_group_says_centre_member_and_distance() -> None:
    found = nd.groups(np.array([5, 9, 5, 4], dtype=np.uint64), 1)
    assert found.label.tolist() == [0, 1, 0, 0]
    assert found.centers.tolist() == [0, 1]
    assert (found.center.tolist(), found.member.tolist(), found.distance.tolist()) == ([0, 0], [2, 3], [0, 1])


def test_rows_without_information_stay_alone() -> None:
    assert list(nd.groups(nd.Fingerprints.of([None, 1, None, 1]), 64)) == [[0], [1, 3], [2]]


@given(st.data(), fingerprints(), st.integers(0, 20), st.sampled_from(LEVELS))
@settings(max_examples=150)
def test_groups_are_those_of_the_plain_loop(
    data: st.DataObject, prints: nd.Fingerprints, radius: int, level: str
) -> None:
    order = data.draw(st.one_of(st.none(), st.permutations(range(len(prints)))))
    with at_level(level):
        found = [sorted(group) for group in nd.groups(prints, radius, order)]
    assert found == [sorted(group) for group in naive.groups(list(prints), radius, order)]


def plain_groups(words: np.ndarray, radius: int) -> list[int]:
    """The centre of each row, by the O(n^2) loop in numpy."""
    center = np.full(len(words), -1)
    for row in range(len(words)):
        if center[row] < 0:
            near = np.bitwise_count(words ^ words[row]).sum(axis=1) <= radius
            center[near & (center < 0)] = row
    return center.tolist()


@pytest.mark.parametrize(("width", "count"), [(1, 8000), (2, 8000), (33, 1500), (100, 600), (1024, 150)])
@pytest.mark.parametrize("flips", [3, 12])
def test_groups_of_many_rows_are_those_of_the_plain_loop(width: int, count: int, flips: int) -> None:
    # Many flips around few centres make far more pairs than rows: the dividing walk.
    rng = np.random.default_rng(flips)
    words = rng.integers(0, 2**64, (5, width), dtype=np.uint64)[rng.integers(0, 5, count)]
    for _ in range(flips):
        words[np.arange(count), rng.integers(0, width, count)] ^= np.uint64(1) << rng.integers(
            0, 64, count, dtype=np.uint64
        )
    for radius in (3, 8, 16):
        found = nd.groups(words, radius)
        assert found.centers[found.label].tolist() == plain_groups(words, radius)


@pytest.mark.parametrize(
    ("order", "error"),
    [
        ([0, 1], InvalidValue),
        ([0, 0, 1], InvalidValue),
        ([0, 1, 3], InvalidValue),
        ([-1, 0, 1], InvalidValue),
        ([0.5, 1, 2], InvalidType),
        (["a", "b", "c"], InvalidType),
        ([[0, 1, 2]], InvalidType),
    ],
)
def test_a_wrong_order_is_refused(order: list[Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        nd.groups(np.arange(3, dtype=np.uint64), 1, order)


def floods(count: int) -> dict[str, np.ndarray]:
    """What makes buckets of other designs quadratic."""
    rng = np.random.default_rng(1)
    random = rng.integers(0, 2**64, count, dtype=np.uint64)
    tenth = random.copy()
    tenth[: count // 10] = 7
    return {
        "all equal": np.full(count, 7, dtype=np.uint64),
        "a tenth equal": tenth,
        "one shared block": random >> np.uint64(16),
        "within one bit of a centre": np.uint64(1) << rng.integers(0, 64, count, dtype=np.uint64),
    }


@pytest.mark.parametrize("kind", list(floods(10)))
def test_a_flood_of_like_fingerprints_is_grouped(kind: str) -> None:
    words = floods(200_000)[kind]
    found = nd.groups(words, 3)
    assert found.centers[found.label][:50].tolist() == [
        int(np.flatnonzero(np.bitwise_count(words ^ words[row]) <= 3)[0]) for row in range(50)
    ]


@given(st.integers(1, 40), st.data())
def test_components_are_those_of_the_plain_loop(count: int, data: st.DataObject) -> None:
    rows = st.integers(0, count - 1)
    edges = data.draw(st.lists(st.tuples(rows, rows), max_size=40))
    left, right = (np.array([edge[side] for edge in edges], dtype=np.uint32) for side in (0, 1))
    pairs = nd.pairs.Pairs(left, right, np.zeros(len(edges), dtype=np.uint16))
    assert nd.components(pairs, count).tolist() == naive.components(edges, count)


def test_components_refuse_rows_beyond_n() -> None:
    pairs = nd.join(np.array([1, 1, 1], dtype=np.uint64), 0)
    with pytest.raises(InvalidValue, match="beyond the 2 rows"):
        nd.components(pairs, 2)
    with pytest.raises(InvalidType):
        nd.components([(0, 1)], 2)  # type: ignore[arg-type]
    with pytest.raises(InvalidValue):
        nd.components(pairs, -1)


def test_groups_do_not_depend_on_threads() -> None:
    words = near_words(50_000, 1, 8)
    assert nd.groups(words, 3, threads=1).label.tolist() == nd.groups(words, 3, threads=3).label.tolist()
