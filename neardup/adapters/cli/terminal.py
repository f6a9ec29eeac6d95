"""The terminal as an observer: a moving bar where somebody looks, else one line when a stage is done."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from neardup.adapters.cli.spelling import spelled
from neardup.observers import SILENT, Advance, Observer
from neardup.wording import counted


class Terminal(Observer):
    """Progress and notes on standard error; *quiet* leaves the progress out."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet

    def stage(
        self, name: str, *, total: int = 0, unit: str = "bytes", what: str = "document"
    ) -> AbstractContextManager[Advance]:
        if self._quiet:
            return SILENT.stage(name)
        return _stage(name, total, unit, what)

    def note(self, text: str, *, minor: bool = False) -> None:
        if not (self._quiet and minor):
            print(f"neardup: {spelled(text)}", file=sys.stderr, flush=True)


@contextmanager
def _stage(name: str, total: int, unit: str, what: str) -> Iterator[Advance]:
    start = time.monotonic()
    done = 0

    def advance(documents: int, at: int) -> None:
        nonlocal done
        done = documents
        if show is not None:
            show(documents, at)

    show: Advance | None = None
    if sys.stderr.isatty():
        with _bar(name, total, unit) as show:
            yield advance
    else:
        yield advance
    took = time.monotonic() - start
    print(f"{name}: {counted(done, what)} in {took:.1f} s", file=sys.stderr, flush=True)


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
