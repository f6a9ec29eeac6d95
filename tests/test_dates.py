"""Numbers and moments as fields write them."""

from __future__ import annotations

import math
from datetime import date, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.dates import moment, number

FIRST_OF_MAY = 1_714_521_600.0  # 2024, in UTC


@pytest.mark.parametrize("value", [None, "x", "", float("nan"), "nan", [1], {}])
def test_what_is_no_number_comes_last(value: Any) -> None:
    assert number(value) == -math.inf


@pytest.mark.parametrize(
    ("value", "found"), [(7, 7), ("7", 7), (" -0.5 ", -0.5), (10**400, 10**400), (str(2**60 + 1), 2**60 + 1)]
)
def test_a_number_keeps_every_digit(value: Any, found: float) -> None:
    assert number(value) == found


@pytest.mark.parametrize(
    "value",
    [
        "2024-05-01", "2024-5-1", "2024/05/01", "2024-05", "2024-W18-3", "20240501", 20240501, 20240501000000,
        "2024-05-01T00:00:00Z", "2024-05-01 02:00 +02:00", "20240430T220000-0200", "2024-04-30T23:59:60Z",
        "Wed, 01 May 2024 00:00:00 GMT", "30 Apr 2024 19:00:00 EST", "Wed, 01 May 2024 02:00:00 +0200 (CEST)",
        1714521600, 1714521600000, 1714521600000000, date(2024, 5, 1), datetime(2024, 5, 1),
        datetime(2024, 5, 1, 2, tzinfo=timezone(timedelta(hours=2))),
    ],
)  # fmt: skip
def test_a_moment_is_the_same_in_every_form(value: Any) -> None:
    assert moment(value) == FIRST_OF_MAY


@pytest.mark.parametrize(
    "value",
    [
        None,
        "soon",
        "",
        {},
        "2024-13-01",
        "2024-02-30",
        "2024-05-01T25:00",
        "01/05/2024",
        "inf",
        10**400,
        "1" * 999,
    ],
)
def test_what_is_no_moment_comes_last(value: Any) -> None:
    assert moment(value) == -math.inf


@given(st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30)), st.integers(-12 * 60, 14 * 60))
def test_a_written_moment_is_read_as_it_was(when: datetime, minutes: int) -> None:
    when = when.replace(microsecond=0, tzinfo=timezone(timedelta(minutes=minutes)))
    assert moment(when.isoformat()) == moment(when) == when.timestamp()


@given(st.text(max_size=30))
def test_any_text_has_a_moment_or_none(text: str) -> None:
    assert isinstance(moment(text), float | int)
