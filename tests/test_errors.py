"""What neardup raises: one base, and also the built-in that a caller expects."""

from __future__ import annotations

import builtins
import inspect

import pytest

from neardup import errors
from neardup.errors import MissingExtra, NeardupError, shown, unusable

ALL = [one for _, one in inspect.getmembers(errors, inspect.isclass) if issubclass(one, Exception)]


@pytest.mark.parametrize("error", ALL, ids=lambda error: error.__name__)
def test_every_error_is_one_of_ours_and_a_built_in(error: type[Exception]) -> None:
    assert issubclass(error, NeardupError)
    plain = [one for one in error.__mro__ if vars(builtins).get(one.__name__) is one]
    assert error is NeardupError or plain[0] is not Exception


def test_a_value_is_shown_in_one_short_line() -> None:
    assert shown("x" * 99, 9) == "'xxxxx..."
    assert "\n" not in shown([["a\nb"] * 9])
    assert shown(10**9999) == "int"


def test_a_value_that_cannot_be_shown_is_named_by_its_type() -> None:
    class Odd:
        def __repr__(self) -> str:
            raise RuntimeError

    assert shown(Odd()) == "Odd"


def test_a_package_that_is_missing_is_told_apart_from_one_that_does_not_fit() -> None:
    missing = unusable("WARC", "no_such_package", "warc", ImportError("?"))
    broken = unusable("WARC", "json", "warc", ImportError("its\nfault"))
    assert isinstance(missing, MissingExtra)
    assert "installed but" not in str(missing)
    assert "installed but cannot be imported: its fault; install one that fits" in str(broken)
