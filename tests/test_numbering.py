"""Numbers of documents and texts."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from neardup.numbering import STEP, either, inverse, look_up

some = st.lists(st.integers(0, 30), max_size=20)


@given(some, some)
def test_either_is_the_union_in_ascending_order(one: list[int], other: list[int]) -> None:
    found = either(31, np.array(one, dtype=np.int64), np.array(other, dtype=np.int64))
    assert found.tolist() == sorted({*one, *other})


def test_the_inverse_tells_the_place_of_each_also_beyond_one_step() -> None:
    order = np.random.default_rng(1).permutation(STEP + 5).astype(np.int32)
    assert np.array_equal(order[inverse(order)], np.arange(STEP + 5))


def test_values_are_looked_up_also_beyond_one_step() -> None:
    values = np.arange(STEP + 5, dtype=np.int32) * 2
    places = values[::-1] // 2
    assert np.array_equal(look_up(values, places, into=np.empty_like(values)), values[::-1])
