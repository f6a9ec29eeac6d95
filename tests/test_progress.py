"""Progress: on a terminal every stage shows its rate and what is left, elsewhere a line when it is done."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import numpy as np
import pytest

import neardup as nd
from neardup.adapters.cli import run
from neardup.adapters.cli.terminal import Terminal
from neardup.observers import Advance, Observer, by_share
from tests.corpus import collection, write_jsonl


class Screen(io.StringIO):
    """A standard error that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def shares(join: Callable[[Callable[[float], None]], object]) -> list[float]:
    """What a join tells while it works."""
    told: list[float] = []
    join(told.append)
    return told


def rows(count: int) -> np.ndarray:
    rng = np.random.default_rng(count)
    return rng.integers(0, 2**63, (count, 4), dtype=np.uint64)


@pytest.mark.parametrize("plan", ["brute", "sampling"])
def test_a_long_join_tells_shares_that_rise_to_the_whole(plan: str) -> None:
    prints = rows(60_000)
    told = shares(lambda tell: nd.join(prints, 80, recall=0.99, plan=plan, threads=1, tell=tell))
    assert told == sorted(told)
    assert all(0 <= share <= 1 for share in told)
    assert any(share > 0 for share in told)


def test_a_join_of_two_sets_tells_shares_too() -> None:
    told = shares(
        lambda tell: nd.join(rows(40_000), 40, other=rows(41_000), plan="brute", threads=1, tell=tell)
    )
    assert told == sorted(told)
    assert any(share > 0 for share in told)


def test_what_tell_raises_ends_the_join() -> None:
    def stop(share: float) -> None:
        raise KeyError("enough")

    with pytest.raises(KeyError, match="enough"):
        nd.join(rows(60_000), 60, plan="brute", threads=1, tell=stop)


def test_a_share_of_a_step_is_so_many_documents() -> None:
    told: list[tuple[int, int]] = []
    tell = by_share(lambda *done: told.append(done), 100, step=1, steps=4)
    tell(0.5)
    tell(1.0)
    assert told == [(37, 37), (50, 50)]


def test_a_terminal_sees_rate_and_remaining_time(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen()
    monkeypatch.setattr("sys.stderr", screen)
    with Terminal().stage("join", total=1000, unit="documents") as advance:
        for done in range(0, 1001, 100):
            advance(done, done)
    assert re.search(r"documents/s", screen.getvalue())
    assert re.search(r"\d:\d\d:\d\d", screen.getvalue())
    assert re.search(r"join: 1,000 documents in [\d.]+ s\n$", screen.getvalue())


class Listener(Observer):
    """Remembers the totals of all stages, and what they were told of the unit that they count."""

    def __init__(self) -> None:
        self.totals: dict[str, int] = {}
        self.told: dict[str, list[int]] = {}

    def stage(
        self, name: str, *, total: int = 0, unit: str = "bytes", what: str = "document"
    ) -> AbstractContextManager[Advance]:
        self.totals[name] = total
        told = self.told.setdefault(name, [])
        return nullcontext(lambda documents, at: told.append(at))


@pytest.mark.parametrize("verify", ["default", "jaccard:0.5", "containment:0.5"])
def test_every_verification_tells_of_its_pairs(verify: str) -> None:
    heard = Listener()
    result = nd.dedupe(collection(), verify=verify, observer=heard)
    told, totals = heard.told, heard.totals
    assert totals["verify"] == told["verify"][-1] > 0
    assert told["verify"] == sorted(told["verify"])
    assert len(told["verify"]) >= 2, "before the end, too"
    assert told["join"][-1] == totals["join"]
    assert result.summary["measured_pairs"] <= told["verify"][-1]


def test_writing_is_a_stage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_jsonl(tmp_path / "in.jsonl", collection())
    assert run(["dedupe", str(path), "-o", str(tmp_path / "out")]) == 0
    assert f"write: {len(collection()):,} documents in " in capsys.readouterr().err


def test_images_tell_of_their_pairs(tmp_path: Path) -> None:
    from PIL import Image

    rng = np.random.default_rng(1)
    for number in range(4):
        noise = Image.fromarray(rng.integers(0, 256, (12, 16, 3), dtype=np.uint8)).resize((160, 120))
        noise.save(tmp_path / f"{number}.png")
        noise.resize((120, 90)).save(tmp_path / f"{number}-small.png")
    heard = Listener()
    result = nd.dedupe(str(tmp_path), observer=heard)
    assert result.summary["removed"] == 4
    assert heard.told["join"] == [2, 4, 8]
    assert heard.told["verify"][0] > 0
