"""A guard that stops a run keeps what was found: another limit ends it, without looking again."""

from __future__ import annotations

import json
import os
import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import neardup as nd
from neardup.errors import GuardStopped, InvalidType
from neardup.guards import Limits, Trip
from neardup.runs.folders import WORK

from .corpus import At, Finished, Rows, collection, files_of, neardup, words, write_jsonl

STAGES = ("read:", "fingerprint:", "join:", "read again:", "verify:")


def copies() -> Rows:
    """Twelve documents of three texts, two without information, one of the second file."""
    rows: Rows = [{"id": f"c{at}", "text": " ".join(words(at % 3)), "n": at} for at in range(12)]
    rows[5]["text"] += " and one more word"
    return [*rows, {"id": "e0", "text": "..."}, {"id": "e1", "text": ""}]


def option_of(stopped: Finished) -> list[str]:
    """What the message says to give."""
    found = re.search(r"if this is what you want, give (.+), or --no-guards", stopped.err)
    assert found, stopped.err
    return shlex.split(found[1])


def images(folder: Path) -> Path:
    folder.mkdir()
    rng = np.random.default_rng(1)
    for number in range(2):
        noise = Image.fromarray(rng.integers(0, 256, (12, 16, 3), dtype=np.uint8)).resize((160, 120))
        for size in (160, 120, 100, 80):
            noise.resize((size, size * 3 // 4)).save(folder / f"{number}-{size}.png")
    return folder


@pytest.mark.parametrize("kind", ["texts", "images", "texts that were protected", "a fitted scheme"])
def test_another_limit_ends_a_stopped_run_without_looking_again(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    data = images(tmp_path / "in") if kind == "images" else write_jsonl(tmp_path / "a.jsonl", copies())
    more: list[Any] = []
    if kind == "texts that were protected":
        more = ["--protect", write_jsonl(tmp_path / "ref.jsonl", [{"id": "r", "text": " ".join(words(2))}])]
    if kind == "a fitted scheme":
        more = ["--annotate-only", "--save-scheme", "--scheme", "text", "--bits", 64]
    command = ["dedupe", data, "-o", tmp_path / "out", *more]
    stopped = neardup(*command)
    assert stopped.code == 6, stopped.err
    assert not (tmp_path / "out/manifest.json").exists()
    ended = neardup(*command, *option_of(stopped), "--report", tmp_path / "out/report.html")
    assert ended.code == 0, ended.err
    assert not [line for line in ended.err.splitlines() if line.startswith(STAGES)]
    assert "resuming from what is in" in ended.err
    found = files_of(tmp_path / "out")
    assert not (tmp_path / "out" / WORK).exists()
    # The same command, never stopped, in the same place.
    (tmp_path / "out").rename(tmp_path / "first")
    fresh = neardup(*command, *option_of(stopped), "--report", tmp_path / "out/report.html")
    assert fresh.code == 0, fresh.err
    assert files_of(tmp_path / "out") == found
    assert fresh.out == ended.out


def test_a_stopped_run_ends_without_guards_and_tells_of_bad_records(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "a.jsonl", copies())
    with path.open("a") as file:
        file.write("not JSON\n")
    command = ["dedupe", path, "-o", tmp_path / "out"]
    assert neardup(*command).code == 6
    ended = neardup(*command, "--no-guards")
    assert ended.code == 3
    assert not [line for line in ended.err.splitlines() if line.startswith(STAGES)]
    assert json.loads((tmp_path / "out/quarantine.jsonl").read_text())["raw"] == "not JSON"
    assert neardup(*command, "--no-guards").code == 3  # it is done


def test_a_stopped_run_stops_again_below_what_it_met(tmp_path: Path) -> None:
    command = ["dedupe", write_jsonl(tmp_path / "a.jsonl", copies()), "-o", tmp_path / "out"]
    first = neardup(*command, "--max-cluster", 3)
    assert first.code == 6
    again = neardup(*command, "--max-cluster", 2, "--max-loss", "20%")
    assert again.code == 6
    assert "(limit 2;" in again.err
    assert "(limit 20%;" in again.err
    assert not [line for line in again.err.splitlines() if line.startswith(STAGES)]


@pytest.mark.parametrize("part", ["input-0", "annotations", "evidence", "fitted", "stopped"])
def test_damaged_parts_of_a_stopped_run_are_not_trusted(tmp_path: Path, part: str) -> None:
    command = ["dedupe", write_jsonl(tmp_path / "a.jsonl", copies()), "-o", tmp_path / "out", "--quiet"]
    assert neardup(*command).code == 6
    path = tmp_path / "out" / WORK / f"{part}.arrow"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    assert neardup(*command, "--no-guards").code == 0
    assert neardup(*command[:2], "-o", tmp_path / "fresh", "--quiet", "--no-guards").code == 0
    assert files_of(tmp_path / "out") == files_of(tmp_path / "fresh")


def test_an_input_that_changed_after_a_stop_is_looked_at_again(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "a.jsonl", copies())
    command = ["dedupe", path, "-o", tmp_path / "out", "--json"]
    assert neardup(*command).code == 6
    write_jsonl(path, [*copies(), *collection(10)])
    ended = neardup(*command, "--no-guards")
    assert json.loads(ended.out)["documents"] == len(copies()) + len(collection(10))
    assert "read:" in ended.err


def test_an_input_that_changed_behind_its_time_after_a_stop_is_refused(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "a.jsonl", copies())
    command = ["dedupe", path, "-o", tmp_path / "out", "--quiet"]
    assert neardup(*command).code == 6
    status = path.stat()
    data = path.read_bytes()
    path.write_bytes(data.replace(b"more word", b"last word"))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert (path.stat().st_size, path.read_bytes() == data) == (status.st_size, False)
    done = neardup(*command, "--no-guards")
    assert done.code == 4
    assert "changed while it was read" in done.err
    assert not (tmp_path / "out/manifest.json").exists()


@pytest.mark.parametrize(
    ("rows", "options"),
    [
        (copies(), []),
        (copies(), ["--max-cluster", "2"]),
        ([{"id": f"s{n}", "text": "one and the same text"} for n in range(1100)], []),
        ([{"id": f"s{n}", "text": "one text" if n < 71 else " ".join(words(n, 9))} for n in range(1001)], []),
    ],
    ids=["loss", "cluster and loss", "all three", "same"],
)
def test_the_message_names_the_least_limits_that_let_the_run_pass(
    tmp_path: Path, rows: Rows, options: list[str]
) -> None:
    command = ["dedupe", write_jsonl(tmp_path / "a.jsonl", rows), "-o", tmp_path / "out", *options, "--quiet"]
    stopped = neardup(*command)
    assert stopped.code == 6
    found = option_of(stopped)
    for name, value in zip(found[::2], found[1::2], strict=True):
        # One step less of any of them stops.
        less = (
            str(int(value) - 1)
            if value.isdigit()
            else f"{float(value[:-1]) - (0.1 if '.' in value else 1):g}%"
        )
        assert neardup(*command, *found, name, less).code == 6
    assert neardup(*command, *found).code == 0


def test_python_is_told_the_limits_that_let_the_run_pass(tmp_path: Path) -> None:
    every: list[dict[str, Any]] = [
        {},
        {"guards": Limits(max_cluster=2)},
        {"guards": Limits(max_cluster=None)},
    ]
    for given in every:
        result = nd.dedupe(copies(), **given, work=str(tmp_path))
        with pytest.raises(GuardStopped, match="guards=") as stopped:
            _ = result.kept
        said = re.search(r"pass guards=neardup\.guards\.(Limits\(.*\)), or guards=False", str(stopped.value))
        assert said
        names = {
            name: json.loads(value.replace("None", "null"))
            for name, value in re.findall(r"(\w+)=([\w.]+)", said[1])
        }
        if given.get("guards") == Limits(max_cluster=None):
            assert names["max_cluster"] is None
        again = nd.dedupe(copies(), guards=Limits(**names), work=str(tmp_path))
        assert len(again.kept) == result.summary["kept"]


@pytest.mark.parametrize("off", [False, None])
def test_no_guards_in_python_is_false_or_none(off: bool | None) -> None:
    result = nd.dedupe(copies(), guards=off)
    assert len(result.kept) == result.summary["kept"]
    assert nd.Settings(guards=off) == nd.Settings(guards=Limits(None, None, None))  # type: ignore[arg-type]
    with pytest.raises(InvalidType, match="or False for none, not 7"):
        nd.dedupe(copies(), guards=7)


def test_a_stopped_run_in_python_is_used_again_from_its_work_folder(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "a.jsonl", copies())
    first = nd.dedupe(path, work=str(tmp_path / "work"))
    unread = At("read", lambda: pytest.fail("read again"))
    again = nd.dedupe(path, work=str(tmp_path / "work"), guards=False, observer=unread)
    assert again.annotations.equals(first.annotations)
    assert again.evidence.equals(first.evidence)
    assert again.summary == first.summary
    assert again.kept.column("id").to_pylist() == [
        row["id"]
        for row in copies()
        if row["id"] in {one["id"] for one in first.annotations.to_pylist() if one["keep"]}
    ]


@pytest.mark.parametrize("removed", range(1, 400, 7))
def test_a_least_share_passes_as_the_option_is_read(removed: int) -> None:
    share = removed / 400
    trip = Trip("max_loss", 0.0, share, "", ())
    assert trip.least >= share
    assert float(trip.option.removeprefix("--max-loss ").removesuffix("%")) / 100 >= share
    assert trip.least - share < 0.01
