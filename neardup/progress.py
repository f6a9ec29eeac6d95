"""Progress on standard error: a moving bar on a terminal, else one line when a stage is done."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from neardup.wording import counted

Advance = Callable[[int, int], None]
"""Documents, and of another unit how much, that are done so far."""


@contextmanager
def stage(
    name: str, *, total: int = 0, unit: str = "bytes", what: str = "document", quiet: bool = False
) -> Iterator[Advance]:
    """Call the result with the documents, and the bytes or another *unit*, that are done so far.

    *total* of the unit are to do, 0 if unknown. *what* is what is counted instead of documents.
    """
    start = time.monotonic()
    done = 0

    def advance(documents: int, at: int) -> None:
        nonlocal done
        done = documents
        if show is not None:
            show(documents, at)

    show: Advance | None = None
    if quiet:
        yield advance
        return
    if sys.stderr.isatty():
        with _bar(name, total, unit) as show:
            yield advance
    else:
        yield advance
    took = time.monotonic() - start
    print(f"{name}: {counted(done, what)} in {took:.1f} s", file=sys.stderr, flush=True)


def by_share(advance: Advance, documents: int, step: int = 0, steps: int = 1) -> Callable[[float], None]:
    """*advance* for who knows what share is done, of one of several *steps*, and whose unit is documents."""

    def tell(share: float) -> None:
        done = int(documents * (step + share) / steps)
        advance(done, done)

    return tell


def note(text: str) -> None:
    """Say something that a person should know, and that ends nothing."""
    print(f"neardup: {text}", file=sys.stderr, flush=True)


@contextmanager
def _bar(name: str, total: int, unit: str) -> Iterator[Advance]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    speed = TransferSpeedColumn() if unit == "bytes" else TextColumn("{task.fields[rate]}")
    columns = (TextColumn("{task.description}"), BarColumn(), speed, TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(name, total=total or None, rate="")

        def show(documents: int, at: int) -> None:
            a_second = bar.tasks[0].speed
            rate = "" if a_second is None else f"{a_second:,.0f} {unit}/s"
            bar.update(task, completed=at, description=f"{name} {documents:,}", rate=rate)

        yield show
