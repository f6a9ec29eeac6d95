"""The distance of two fingerprints, and the similarity that it speaks for."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import neardup as nd
from neardup import naive
from neardup.errors import InvalidType, InvalidValue

prints = st.integers(0, 2**128 - 1)


@given(prints, prints)
def test_the_distance_is_that_of_the_plain_twin(left: int, right: int) -> None:
    assert nd.distance(left, right) == naive.distance(left, right)


@given(prints, prints, prints)
def test_no_way_round_is_shorter(one: int, two: int, three: int) -> None:
    assert nd.distance(one, three) <= nd.distance(one, two) + nd.distance(two, three)


def test_the_similarity_falls_from_1_to_minus_1() -> None:
    found = [nd.similarity(distance, 64) for distance in range(65)]
    assert (found[0], round(found[32], 12), found[64]) == (1.0, 0.0, -1.0)
    assert found == sorted(found, reverse=True)


@pytest.mark.parametrize(
    ("given", "error"), [((-1, 2), InvalidValue), ((1.0, 2), InvalidType), ((None, 2), InvalidType)]
)
def test_what_is_no_fingerprint_has_no_distance(given: tuple[Any, Any], error: type[Exception]) -> None:
    with pytest.raises(error, match="a fingerprint"):
        nd.distance(*given)


@pytest.mark.parametrize("distance", [-1, 65, True, "3"])
def test_a_distance_is_a_number_of_bits(distance: Any) -> None:
    with pytest.raises((InvalidValue, InvalidType), match="distance must be"):
        nd.similarity(distance, 64)
