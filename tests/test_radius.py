"""From a similarity to a radius: the shares of a binomial distribution."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.radius import _shares, radius_for, recall_at


def plain(similarity: float, recall: float, bits: int) -> int:
    """The same by the coefficients themselves."""
    differ = math.acos(similarity) / math.pi
    total = 0.0
    for distance in range(bits + 1):
        total += math.comb(bits, distance) * differ**distance * (1 - differ) ** (bits - distance)
        if total >= recall:
            return distance
    return bits


@given(st.integers(5, 100), st.integers(50, 99), st.sampled_from([64, 128, 256]))
def test_the_radius_is_the_smallest_that_holds_the_share(percent: int, recall: int, bits: int) -> None:
    assert radius_for(percent / 100, recall / 100, bits) == plain(percent / 100, recall / 100, bits)


def test_all_pairs_are_within_all_bits_and_equal_ones_within_none() -> None:
    assert radius_for(0.64, 1.0, 128) == 128
    assert radius_for(1.0, 0.99, 128) == 0


@pytest.mark.parametrize("bits", [1, 64, 65_536])
def test_shares_of_any_width_add_up_to_1(bits: int) -> None:
    first, shares = _shares(0.3, bits)
    assert math.isclose(sum(shares), 1.0, abs_tol=1e-12)
    assert first >= 0
    assert first + len(shares) <= bits + 1


@given(st.integers(30, 95), st.integers(60, 99))
def test_a_join_need_not_find_more_at_the_radius_than_is_wanted_in_all(percent: int, recall: int) -> None:
    similarity, wanted = percent / 100, recall / 100
    assert 0.5 <= recall_at(radius_for(similarity, wanted, 128), similarity, wanted, 128) <= max(0.5, wanted)
