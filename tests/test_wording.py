"""Counts and sizes for people."""

from __future__ import annotations

import pytest

from neardup.wording import counted, size


@pytest.mark.parametrize(
    ("number", "said"),
    [(0, "0 documents"), (1, "1 document"), (2, "2 documents"), (12_345, "12,345 documents")],
)
def test_a_count_has_its_noun(number: int, said: str) -> None:
    assert counted(number, "document") == said


def test_an_odd_plural_is_given() -> None:
    assert counted(2, "entry", "entries") == "2 entries"


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (1, "1 byte"),
        (999, "999 bytes"),
        (1000, "1.0 kB"),
        (999_949, "999.9 kB"),
        (999_950, "1.0 MB"),
        (10**16, "10000.0 TB"),
    ],
)
def test_a_size_has_the_largest_unit_that_leaves_a_whole_one(number: int, said: str) -> None:
    assert size(number) == said
