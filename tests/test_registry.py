"""Tables of named parts."""

from __future__ import annotations

import pytest

from neardup.errors import InvalidValue, UnknownName
from neardup.registry import Registry, plain_number
from neardup.verifiers.measures import MEASURES

SIZES: Registry[int] = Registry("size", {"small": lambda: 1, "of": lambda text: int(text)})


def test_a_name_gives_its_part_and_a_colon_its_argument() -> None:
    assert (SIZES.part("small"), SIZES.part("of:7")) == (1, 7)


def test_an_unknown_name_is_told_the_known_ones() -> None:
    with pytest.raises(UnknownName, match="unknown size 'huge'; known: of, small"):
        SIZES.part("huge")


def test_an_unknown_name_is_told_how_to_write_the_known_ones() -> None:
    sizes = Registry("size", {"of": lambda text: int(text)}, written={"of": "of:N"})
    with pytest.raises(UnknownName, match=r"known: of:N$"):
        sizes.part("huge")
    with pytest.raises(
        UnknownName,
        match=r"known: containment:S, default, high, jaccard:S, loose, none, preserving, "
        r"rule:FILE, strict$",
    ):
        MEASURES.part("minhash")


@pytest.mark.parametrize(("text", "reason"), [("small:3", "takes no argument"), ("of", "needs an argument")])
def test_an_argument_too_many_or_too_few_is_told(text: str, reason: str) -> None:
    with pytest.raises(InvalidValue, match=reason):
        SIZES.part(text)


def test_a_table_lists_its_names_in_the_order_of_its_rows() -> None:
    assert (list(SIZES), len(SIZES), "of" in SIZES, "of:7" in SIZES) == (["small", "of"], 2, True, False)


@pytest.mark.parametrize("text", ["", "-1", "+1", " 1", "1_0", "٣", "²", "0", "10", "0001"])
def test_a_number_in_a_name_is_plain_digits_within_its_range(text: str) -> None:
    assert plain_number(text, 1, 9) is None
    assert plain_number("9", 1, 9) == 9
