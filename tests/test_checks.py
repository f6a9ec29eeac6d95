"""Values of callers: what can be used comes back, what cannot is named."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from neardup.checks import MAX_THREADS, check_flag, check_share, check_text, check_threads, cores, whole
from neardup.errors import InvalidType, InvalidValue


@pytest.mark.parametrize("value", [3, np.uint8(3), np.int64(3)])
def test_a_whole_number_of_any_kind_comes_back_as_an_int(value: Any) -> None:
    found = whole("radius", value, 0, 64)
    assert (found, type(found)) == (3, int)


@pytest.mark.parametrize("value", [True, 3.0, "3", None, np.array([3, 4])])
def test_what_is_not_a_whole_number_is_a_type_error(value: object) -> None:
    with pytest.raises(InvalidType, match="radius must be an integer"):
        whole("radius", value, 0)


@pytest.mark.parametrize(
    ("value", "highest", "said"),
    [(-1, None, "at least 0"), (65, 64, "from 0 to 64"), (10**30, 64, "from 0 to 64")],
)
def test_a_number_out_of_range_is_told_the_range(value: int, highest: int | None, said: str) -> None:
    with pytest.raises(InvalidValue, match=said):
        whole("radius", value, 0, highest)


@pytest.mark.parametrize("value", [0, -0.5, 1.01, float("nan")])
def test_a_share_is_above_0_and_at_most_1(value: float) -> None:
    assert check_share("recall", 1) == 1.0
    with pytest.raises(InvalidValue, match="recall must be above 0 and at most 1"):
        check_share("recall", value)


@pytest.mark.parametrize(
    ("check", "value"), [(check_share, "1"), (check_share, True), (check_text, b"x"), (check_flag, 1)]
)
def test_a_value_of_another_type_is_a_type_error(check: Callable[[str, Any], object], value: object) -> None:
    with pytest.raises(InvalidType, match="choice must be"):
        check("choice", value)


def test_threads_are_some_or_as_many_as_there_are() -> None:
    assert (check_threads(None), check_threads(MAX_THREADS)) == (None, MAX_THREADS)
    with pytest.raises(InvalidValue):
        check_threads(0)
    assert cores() >= 1
