"""Work ahead: other threads make the pieces, and the reader cannot tell."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from neardup.ahead import ahead, begun_ahead, worked_ahead

WORKED = [begun_ahead, worked_ahead]


def failing() -> Iterator[int]:
    yield 1
    raise OSError("no more")


def test_all_pieces_come_in_their_order() -> None:
    assert list(ahead(iter(range(50)))) == list(range(50))


@pytest.mark.parametrize("worked", WORKED)
def test_each_piece_comes_with_what_was_made_of_it(worked: Callable[..., Any]) -> None:
    assert list(worked(iter(range(50)), str)) == [(at, str(at)) for at in range(50)]


def test_an_error_comes_where_the_piece_would_have_come() -> None:
    pieces = ahead(failing())
    assert next(pieces) == 1
    with pytest.raises(OSError, match="no more"):
        next(pieces)


@pytest.mark.parametrize("worked", WORKED)
def test_an_error_of_the_pieces_and_of_the_work_is_raised(worked: Callable[..., Any]) -> None:
    with pytest.raises(OSError, match="no more"):
        list(worked(failing(), str))
    with pytest.raises(ZeroDivisionError):
        list(worked(iter([1, 0, 2]), lambda piece: 1 // piece))


def test_who_stops_asking_leaves_no_thread_behind() -> None:
    before = threading.active_count()
    pieces = ahead(iter(range(1000)))
    assert next(pieces) == 0
    pieces.close()
    assert threading.active_count() == before


def test_pieces_are_asked_for_in_the_calling_thread() -> None:
    def pieces() -> Iterator[int]:
        yield threading.get_ident()

    assert list(worked_ahead(pieces(), str)) == [(threading.get_ident(), str(threading.get_ident()))]
