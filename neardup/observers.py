"""Observers: told how far a run is and what a person should know, and asked whether it continues.

A run asks its observer between batches, and every 50 ms inside long calls of the core. A run that
is cancelled ends with `Cancelled` and leaves what a kill leaves: the same call again resumes from there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from threading import Event
from typing import Final, Protocol, TypeVar

from neardup.errors import Cancelled

T = TypeVar("T")
Advance = Callable[[int, int], None]
"""How many documents, and how much of another unit, are done so far."""


class Observer:
    """Hears everything and does nothing; an observer of a run overrides what it needs.

    `cancelled` is asked by whichever thread does the work, so it must be quick and may be called by
    several at once.
    """

    def stage(
        self, name: str, *, total: int = 0, unit: str = "bytes", what: str = "document"
    ) -> AbstractContextManager[Advance]:
        """One stage; call the result with the documents, and the bytes or another *unit*, done so far.

        *total* of the unit are to do, 0 if unknown. *what* is what is counted instead of documents.
        """
        return nullcontext(_ignore)

    def note(self, text: str, *, minor: bool = False) -> None:
        """Something that a person should know, and that ends nothing; *minor* notes belong to progress."""

    def cancelled(self) -> bool:
        """Whether the run is to end now."""
        return False


def _ignore(documents: int, at: int) -> None:
    pass


SILENT: Final = Observer()


class Cancellable(Observer):
    """Another observer, and a switch that any thread may turn.

    >>> run = Cancellable()
    >>> run.cancel()
    >>> check(run)
    Traceback (most recent call last):
    ...
    neardup.errors.Cancelled: cancelled; the same call resumes from what was done, if it had a folder
    """

    def __init__(self, inner: Observer = SILENT) -> None:
        self._inner, self._cancel = inner, Event()

    def cancel(self) -> None:
        """End the run, soon."""
        self._cancel.set()

    def stage(
        self, name: str, *, total: int = 0, unit: str = "bytes", what: str = "document"
    ) -> AbstractContextManager[Advance]:
        return self._inner.stage(name, total=total, unit=unit, what=what)

    def note(self, text: str, *, minor: bool = False) -> None:
        self._inner.note(text, minor=minor)

    def cancelled(self) -> bool:
        return self._cancel.is_set() or self._inner.cancelled()


class Observed(Protocol):
    """Something that asks an observer while it works, such as a source between its batches."""

    observer: Observer


def check(observer: Observer) -> None:
    """Raise Cancelled if the run is to end."""
    if observer.cancelled():
        raise Cancelled("cancelled; the same call resumes from what was done, if it had a folder")


def checked(things: Iterable[T], observer: Observer) -> Iterator[T]:
    """The same *things*, until the run is cancelled."""
    for thing in things:
        check(observer)
        yield thing


@contextmanager
def watching(observer: Observer, *observed: Observed | None) -> Iterator[None]:
    """Meanwhile this thread's long calls of the core ask whether to continue, and those that are *observed*
    also between any two of their steps.
    """
    from neardup import _native  # printing progress needs no core

    before = [(one, one.observer) for one in observed if one is not None]
    called = _native.watch(partial(check, observer))
    try:
        for one, _ in before:
            one.observer = observer
        yield
    finally:
        _native.watch(called)
        for one, own in before:
            one.observer = own


def by_share(advance: Advance, documents: int, step: int = 0, steps: int = 1) -> Callable[[float], None]:
    """Turns a share from 0 to 1 of one of several *steps* into a call of *advance*, counted in documents."""

    def tell(share: float) -> None:
        done = int(documents * (step + share) / steps)
        advance(done, done)

    return tell
