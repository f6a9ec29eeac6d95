"""Work ahead: other threads make, or examine, the next pieces while the last one is used."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future
from contextlib import closing
from queue import Full, Queue
from threading import Event
from typing import Final, TypeVar

from neardup.threads import Pool, started

WORKERS: Final = 2  # threads that examine pieces before they are needed

T = TypeVar("T")
U = TypeVar("U")


def ahead(pieces: Iterator[T]) -> Generator[T, None, None]:
    """The same pieces, made by another thread while the last one is used."""
    ready: Queue[T | BaseException | None] = Queue(maxsize=1)
    stopped = Event()

    def put(value: T | BaseException | None) -> bool:
        while not stopped.is_set():
            try:
                ready.put(value, timeout=0.1)
                return True
            except Full:
                continue
        return False

    def work() -> None:
        try:
            for piece in pieces:
                if not put(piece):
                    return
            put(None)
        except BaseException as error:
            put(error)

    thread = started(work)
    try:
        while (piece := ready.get()) is not None:
            if isinstance(piece, BaseException):
                raise piece
            yield piece
    finally:
        stopped.set()
        thread.join(timeout=0.2)  # longer only if it waits for a pipe; then it is left waiting


def begun_ahead(
    pieces: Iterator[T], work: Callable[[T], U], workers: int = WORKERS
) -> Generator[tuple[T, U], None, None]:
    """All pieces, each with what *work* makes of it, as soon as it is made; other threads make both."""
    with (
        Pool(workers) as pool,
        closing(ahead((piece, pool.submit(work, piece)) for piece in pieces)) as begun,
    ):
        for piece, made in begun:
            yield piece, made.result()


def worked_ahead(
    pieces: Iterator[T], work: Callable[[T], U], workers: int = WORKERS
) -> Generator[tuple[T, U], None, None]:
    """All pieces, each with what *work* makes of it: other threads do that while the last ones are used.

    The pieces themselves are taken in the calling thread, as their maker may expect.
    """
    with Pool(workers) as pool:
        begun: deque[tuple[T, Future[U]]] = deque()
        try:
            for piece in pieces:
                begun.append((piece, pool.submit(work, piece)))
                if len(begun) > workers:
                    first, made = begun.popleft()
                    yield first, made.result()
            for last, made in begun:
                yield last, made.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)  # leaving waits for work in progress
