"""Settings: what can be chosen together, and what is taken where nothing is chosen."""

from __future__ import annotations

from typing import Any

import pytest

import neardup as nd
from neardup.errors import InvalidType, InvalidValue, NeardupError
from neardup.guards import OFF, Limits
from neardup.settings import NARROW, Settings, check_choices, default_scheme


@pytest.mark.parametrize(
    "choices",
    [
        {"similarity": 0}, {"similarity": "high"}, {"recall": 1.1}, {"radius": -1}, {"radius": 2.5}, {"exact": 1},
        {"within": 7}, {"within": "a", "across": "b"}, {"guards": "none"}, {"keep": "biggest"}, {"keep": None},
        {"verify": "magic"}, {"verify": "jaccard:2"},
    ],
)  # fmt: skip
def test_a_choice_that_cannot_be_is_refused_at_once(choices: dict[str, Any]) -> None:
    with pytest.raises(NeardupError):
        Settings(**choices)


@pytest.mark.parametrize(("given", "found"), [(True, Limits()), (False, OFF), (None, OFF)])
def test_guards_are_on_or_off(given: Any, found: Limits) -> None:
    assert Settings(guards=given).guards == found


def test_the_fields_are_those_that_any_choice_looks_at_each_once() -> None:
    settings = Settings(keep="newest:date,max:rank", across="source", source_field="date")
    assert settings.fields == ("date", "rank", "source")


def test_a_larger_collection_has_wider_fingerprints() -> None:
    assert [default_scheme(count).bits for count in (0, NARROW, NARROW + 1)] == [128, 128, 256]


def test_a_radius_fits_the_scheme_that_will_be_taken() -> None:
    check_choices(Settings(radius=256), None, None)
    check_choices(Settings(radius=64), nd.scheme("news"), None)
    with pytest.raises(InvalidValue, match="from 0 to 64"):
        check_choices(Settings(radius=65), nd.scheme("news"), None)


def test_a_number_of_threads_is_a_number() -> None:
    with pytest.raises(InvalidType):
        check_choices(Settings(), None, "two")  # type: ignore[arg-type]
