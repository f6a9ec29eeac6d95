"""Any thread can end a run, in any stage; the same call resumes from what was done."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Event, get_ident

import numpy as np
import pytest

import neardup as nd
from neardup.errors import Cancelled
from neardup.jobs import Job, run_job
from neardup.observers import Advance, Cancellable, Observer, check, watching
from neardup.runs.folders import WORK
from neardup.sizes import Sizes

from .corpus import collection, files_of, write_jsonl

WAIT = 60.0  # seconds after which a test has failed


class Halting(Observer):
    """Stands still at the beginning of one stage until the test goes on."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.reached, self.go_on = Event(), Event()

    @contextmanager
    def stage(
        self, name: str, *, total: int = 0, unit: str = "bytes", what: str = "document"
    ) -> Iterator[Advance]:
        if name == self._name:
            self.reached.set()
            assert self.go_on.wait(WAIT)
        yield lambda documents, at: None


class Asked(Observer):
    """Tells when it was asked, and by which thread."""

    def __init__(self) -> None:
        self.asked, self.by = Event(), 0

    def cancelled(self) -> bool:
        self.by = get_ident()
        self.asked.set()
        return False


@pytest.mark.parametrize("stage", ["read", "fingerprint", "join", "read again", "verify", "write"])
def test_a_run_that_another_thread_cancels_goes_on_when_it_is_called_again(
    tmp_path: Path, stage: str
) -> None:
    always = Sizes(checkpoint_seconds=-1.0)
    path = str(write_jsonl(tmp_path / "in.jsonl", collection()))
    out, whole = str(tmp_path / "out"), str(tmp_path / "whole")
    halting = Halting(stage)
    run = Cancellable(halting)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(run_job, Job([path], out, observer=run, sizes=always))
        assert halting.reached.wait(WAIT)
        run.cancel()
        halting.go_on.set()
        with pytest.raises(Cancelled):
            running.result(WAIT)
    assert not (tmp_path / "out/manifest.json").exists()
    assert not [entry for entry in (tmp_path / "out" / WORK).iterdir() if entry.is_dir()], "texts, set aside"
    run_job(Job([path], out, sizes=always))
    run_job(Job([path], whole))
    assert files_of(tmp_path / "out") == files_of(tmp_path / "whole")


def test_a_long_call_of_the_core_ends_when_another_thread_says_so() -> None:
    prints = np.random.default_rng(1).integers(0, 2**63, (150_000, 4), dtype=np.uint64)
    asked = Asked()
    run = Cancellable(asked)

    def join() -> None:
        with watching(run):
            nd.join(prints, 60, plan="brute", threads=1)

    with ThreadPoolExecutor(1) as pool:
        joining = pool.submit(join)
        assert asked.asked.wait(WAIT)  # so it is at work
        run.cancel()
        with pytest.raises(Cancelled):
            joining.result(WAIT)
    assert asked.by != get_ident()


def test_an_observer_is_asked_only_while_it_watches() -> None:
    first, second = Cancellable(), Cancellable()
    with watching(first):
        with watching(second):
            second.cancel()
        _long_call()
        first.cancel()
        with pytest.raises(Cancelled):
            _long_call()
    _long_call()


def _long_call() -> None:
    """Some tenths of a second in the core."""
    prints = np.random.default_rng(2).integers(0, 2**63, (60_000, 4), dtype=np.uint64)
    nd.join(prints, 60, plan="brute", threads=1)


def test_python_is_told_to_cancel_a_run_in_memory_too() -> None:
    run = Cancellable()
    run.cancel()
    with pytest.raises(Cancelled, match="cancelled"):
        nd.dedupe(collection(), observer=run)
    check(Cancellable())
