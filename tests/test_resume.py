"""A run that was killed goes on, and ends with the bytes of a run that was not."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from neardup.runs.folders import WORK

from .corpus import collection, files_of, neardup, write_jsonl
from .killed import CONSTANTS, DATE, Killer

ROOT = Path(__file__).parent.parent
KILLS = 40
WHOLE = {
    "annotations.parquet",
    "evidence.parquet",
    "kept.jsonl",
    "quarantine.jsonl",
    "without_information.jsonl",
    "report.html",
    "manifest.json",
}


def arguments(folder: Path, out: str = "out") -> list[str]:
    report = ["--report", str(folder / out / "report.html")]
    inputs = [str(folder / "a.jsonl"), str(folder / "b.jsonl"), str(folder / "broken.jsonl.gz")]
    return ["dedupe", *inputs, "-o", str(folder / out), "--quiet", *report, "--no-guards", "--threads", "1"]


def make_inputs(folder: Path) -> Path:
    """Two files with documents and bad lines, and one that is refused."""
    rows = collection(40)
    write_jsonl(folder / "a.jsonl", rows[:30])
    path = write_jsonl(folder / "b.jsonl", rows[30:])
    with path.open("a") as file:
        file.write('{"id": "bad", "text": 7}\nnot JSON\n' + json.dumps(rows[3]) + "\n")
    (folder / "broken.jsonl.gz").write_bytes(b"not gzip")
    return folder


@pytest.fixture(scope="module")
def killer() -> Iterator[Killer]:
    with Killer() as made:
        yield made


@pytest.fixture(autouse=True)
def _as_in_the_killed_process(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, constant, value in CONSTANTS:
        monkeypatch.setattr(f"{module}.{constant}", value)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", DATE)


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory, killer: Killer) -> tuple[Path, dict[str, bytes], int]:
    """The inputs, the files of an unbroken run, and its number of steps."""
    folder = make_inputs(tmp_path_factory.mktemp("killed"))
    done = killer.run(arguments(folder))
    assert done.code == 4, done.err  # a file was refused
    found = files_of(folder / "out")
    assert set(found) == WHOLE
    assert sorted(path.name for path in (folder / "out").iterdir()) == sorted(found)
    return folder, found, done.steps


def clear(folder: Path) -> None:
    subprocess.run(["rm", "-rf", str(folder / "out")], check=True)


def check_whole(folder: Path, expected: dict[str, bytes]) -> None:
    """Whatever has its own name there is complete, never half a file."""
    for name, data in files_of(folder / "out").items():
        if not name.startswith("."):
            assert data == expected[name], f"{name} is not complete"


def test_a_run_that_was_killed_anywhere_ends_with_the_same_bytes(
    killer: Killer, unbroken: tuple[Path, dict[str, bytes], int]
) -> None:
    folder, expected, steps = unbroken
    rng = random.Random(20)
    for step in sorted(rng.sample(range(1, steps + 1), min(KILLS, steps))):
        clear(folder)
        done = killer.run(arguments(folder), step=step)
        assert done.code == -signal.SIGKILL, done.err
        check_whole(folder, expected)
        assert neardup(*arguments(folder)).code == 4
        assert files_of(folder / "out") == expected, f"killed at step {step} of {steps}"
        assert not (folder / "out" / WORK).exists()


def test_a_run_that_is_killed_again_and_again_comes_to_its_end(
    killer: Killer, unbroken: tuple[Path, dict[str, bytes], int]
) -> None:
    folder, expected, steps = unbroken
    clear(folder)
    for step in (steps // 3, steps // 4, steps // 5, 9):
        assert killer.run(arguments(folder), step=step).code == -signal.SIGKILL
        check_whole(folder, expected)
    assert neardup(*arguments(folder)).code == 4
    assert files_of(folder / "out") == expected


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_leaves_a_state_to_go_on_from_and_says_so(
    number: int, code: int, killer: Killer, unbroken: tuple[Path, dict[str, bytes], int]
) -> None:
    folder, expected, steps = unbroken
    for step in (3, steps // 2, steps * 3 // 4):
        clear(folder)
        done = killer.run(arguments(folder), step=step, signal=number)
        assert done.code == code, done.err
        assert "the same command resumes from what is in" in done.err
        assert "Traceback" not in done.err
        check_whole(folder, expected)
        left = [path.name for path in (folder / "out").iterdir() if path.name.endswith(".tmp")]
        assert not left
        assert neardup(*arguments(folder)).code == 4
        assert files_of(folder / "out") == expected


def interrupted(killer: Killer, folder: Path, steps: int) -> list[Path]:
    """The finished parts of a run that was killed just before its outputs."""
    clear(folder)
    for step in range(steps * 9 // 10, 0, -5):
        killer.run(arguments(folder), step=step)
        parts = sorted((folder / "out" / WORK).glob("*.arrow"))
        if {"survey.arrow", "fingerprints.arrow", "candidates.arrow"} <= {part.name for part in parts}:
            return parts
        clear(folder)
    raise AssertionError("never killed after the join")


def test_damaged_parts_are_never_trusted(
    killer: Killer, unbroken: tuple[Path, dict[str, bytes], int]
) -> None:
    folder, expected, steps = unbroken
    rng = random.Random(6)
    parts = interrupted(killer, folder, steps)
    saved = {part: part.read_bytes() for part in parts}
    for part, data in saved.items():
        place = rng.randrange(len(data))
        flipped = data[:place] + bytes([data[place] ^ 1 << rng.randrange(8)]) + data[place + 1 :]
        for damage in (flipped, data[: len(data) // 2], b"", data + b"x"):
            (folder / "out" / WORK).mkdir(exist_ok=True, parents=True)
            for other, whole in saved.items():
                other.write_bytes(damage if other == part else whole)
            assert neardup(*arguments(folder)).code == 4
            assert files_of(folder / "out") == expected, part.name
            clear(folder)


def test_the_parts_of_another_run_are_not_used(
    killer: Killer, unbroken: tuple[Path, dict[str, bytes], int]
) -> None:
    folder, expected, steps = unbroken
    interrupted(killer, folder, steps)
    assert neardup(*arguments(folder), "--keep", "shortest").code == 4
    other = files_of(folder / "out")
    assert other["annotations.parquet"] != expected["annotations.parquet"]
    clear(folder)
    neardup(*arguments(folder), "--keep", "shortest")
    assert files_of(folder / "out") == other


def test_an_input_that_changed_is_read_anew(killer: Killer, tmp_path: Path) -> None:
    folder = make_inputs(tmp_path)
    steps = killer.run(arguments(folder)).steps
    interrupted(killer, folder, steps)
    rows = collection(40)
    rows[0]["text"] += " more"
    write_jsonl(folder / "a.jsonl", rows[:30])
    neardup(*arguments(folder))
    neardup(*arguments(folder, "fresh"))
    for name in ("annotations.parquet", "evidence.parquet", "kept.jsonl"):
        assert (folder / "out" / name).read_bytes() == (folder / "fresh" / name).read_bytes()


def test_two_processes_do_not_work_in_one_folder(tmp_path: Path) -> None:
    import fcntl

    folder = make_inputs(tmp_path)
    (folder / "out" / WORK).mkdir(parents=True)
    with (folder / "out" / WORK / "lock").open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        done = neardup(*arguments(folder))
    assert done.code == 5
    assert "another process works in" in done.err
    assert os.listdir(folder / "out") == [WORK]


@pytest.mark.parametrize("scheme", ["file", "memory"])
def test_a_finished_run_over_urls_is_found_until_a_file_changes(tmp_path: Path, scheme: str) -> None:
    import fsspec

    url = f"{scheme}://{tmp_path}/a.jsonl"
    system = fsspec.filesystem(scheme)
    system.makedirs(str(tmp_path), exist_ok=True)
    system.pipe_file(str(tmp_path / "a.jsonl"), b'{"id":"a","text":"some words"}\n')
    run = ["dedupe", url, "-o", tmp_path / "out", "--quiet"]
    assert neardup(*run).code == 0
    before = os.stat(tmp_path / "out/manifest.json").st_mtime_ns
    assert neardup(*run).code == 0
    assert os.stat(tmp_path / "out/manifest.json").st_mtime_ns == before
    system.pipe_file(str(tmp_path / "a.jsonl"), b'{"id":"b","text":"some words"}\n')
    assert "holds another run" in neardup(*run).err


def test_a_run_that_goes_on_says_so(killer: Killer, unbroken: tuple[Path, dict[str, bytes], int]) -> None:
    folder, expected, steps = unbroken
    interrupted(killer, folder, steps)
    done = neardup(*(word for word in arguments(folder) if word != "--quiet"))
    assert "neardup: resuming from what is in" in done.err
    assert "read:" not in done.err
    assert files_of(folder / "out") == expected


def test_a_stopped_run_that_is_killed_ends_with_the_same_bytes(
    killer: Killer, unbroken: tuple[Path, dict[str, bytes], int]
) -> None:
    folder, expected, _ = unbroken
    clear(folder)
    stopping = [*(word for word in arguments(folder) if word != "--no-guards"), "--max-cluster", "1"]
    done = killer.run(stopping)
    assert done.code == 6, done.err
    ending = killer.run(arguments(folder))
    assert ending.code == 4
    # The command names no limit, so that the manifest is that of the run that was never stopped.
    assert files_of(folder / "out") == expected
    rng = random.Random(7)
    for _ in range(8):
        clear(folder)
        killer.run(stopping, step=rng.randint(done.steps * 2 // 3, done.steps))
        assert neardup(*stopping).code == 6
        assert killer.run(arguments(folder), step=rng.randint(1, ending.steps)).code == -signal.SIGKILL
        assert neardup(*arguments(folder)).code == 4
        assert files_of(folder / "out") == expected
