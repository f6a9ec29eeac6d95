"""neardup fit: frequencies counted in one go, in parts, exact or as a sketch, are what they must be."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

import neardup as nd
from neardup.adapters.cli import run
from neardup.errors import InvalidValue
from neardup.schemes.fitting import fit_batches

TEXTS = [
    f"document {number} of a small collection, with the words {number % 7} and {number % 3}"
    for number in range(60)
]


def write(path: Path, texts: Iterable[str]) -> Path:
    path.write_text(
        "".join(json.dumps({"id": str(at), "text": text}) + "\n" for at, text in enumerate(texts))
    )
    return path


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    return write(tmp_path / "all.jsonl", TEXTS)


def test_fit_saves_a_scheme_that_gives_the_fingerprints_of_the_fitted_one(
    whole: Path, tmp_path: Path
) -> None:
    out = tmp_path / "s.nds"
    assert run(["fit", str(whole), "-o", str(out), "--quiet"]) == 0
    saved, fitted = nd.scheme(str(out)), nd.scheme("text").fit(TEXTS)
    assert saved.digest == fitted.digest
    assert saved.fingerprints(TEXTS) == fitted.fingerprints(TEXTS)
    assert saved.frequencies is not None
    assert saved.frequencies.documents == 60


@pytest.mark.parametrize("limit", [[], ["--max-features", "100"]], ids=["exact", "sketch"])
def test_parts_added_give_the_same_bytes_as_the_whole(whole: Path, tmp_path: Path, limit: list[str]) -> None:
    parts = []
    for number, begin in enumerate((0, 11, 37)):
        texts = TEXTS[begin : (11, 37, 60)[number]]
        part = tmp_path / f"part{number}.nds"
        source = write(tmp_path / f"part{number}.jsonl", texts)
        assert run(["fit", str(source), "-o", str(part), "--quiet", *limit]) == 0
        parts.append(part)
    one, sum_of, mixed = (tmp_path / name for name in ("one.nds", "sum.nds", "mixed.nds"))
    assert run(["fit", str(whole), "-o", str(one), "--quiet", *limit]) == 0
    assert (
        run(["fit", "-o", str(sum_of), *(word for part in parts for word in ("--add", str(part))), "--quiet"])
        == 0
    )
    rest = str(tmp_path / "part1.jsonl")
    assert (
        run(["fit", rest, "-o", str(mixed), "--add", str(parts[2]), "--add", str(parts[0]), "--quiet"]) == 0
    )
    assert one.read_bytes() == sum_of.read_bytes() == mixed.read_bytes()


def test_several_files_are_one_collection(whole: Path, tmp_path: Path) -> None:
    halves = [
        write(tmp_path / f"{name}.jsonl", texts) for name, texts in (("a", TEXTS[:30]), ("b", TEXTS[30:]))
    ]
    assert run(["fit", str(whole), "-o", str(tmp_path / "1.nds"), "--quiet"]) == 0
    assert run(["fit", *map(str, halves), "-o", str(tmp_path / "2.nds"), "--quiet"]) == 0
    assert (tmp_path / "1.nds").read_bytes() == (tmp_path / "2.nds").read_bytes()


def test_the_summary_says_what_was_counted(
    whole: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert (
        run(["fit", str(whole), "-o", str(tmp_path / "s.nds"), "--quiet", "--json", "--max-features", "100"])
        == 0
    )
    summary = json.loads(capfd.readouterr().err.splitlines()[-1])
    assert (summary["documents"], summary["exact"], summary["features"]) == (60, False, None)


def test_bad_records_are_kept_apart_and_told(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "in.jsonl"
    path.write_text('{"id":"a","text":"a text"}\nnot json\n{"id":"b","text":"a text"}\n')
    kept = tmp_path / "bad.jsonl"
    assert run(["fit", str(path), "-o", str(tmp_path / "s.nds"), "--quarantine", str(kept), "--quiet"]) == 3
    assert json.loads(kept.read_text())["line"] == 2
    saved = nd.scheme(str(tmp_path / "s.nds"))
    assert saved.frequencies is not None
    assert saved.frequencies.documents == 2
    assert run(["fit", str(path), "-o", str(tmp_path / "t.nds"), "--strict", "--quiet"]) != 0
    assert not (tmp_path / "t.nds").exists()


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["-o", "s.nds"], 2),
        (["all.jsonl"], 2),
        (["all.jsonl", "-o", "all.jsonl"], 2),
        (["all.jsonl", "-o", "s.nds", "--scheme", "chars:3"], 2),
        (["all.jsonl", "-o", "s.nds", "--scheme", "fitted.nds"], 2),
        (["all.jsonl", "-o", "s.nds", "--add", "fitted.nds", "--max-features", "7"], 2),
        (["all.jsonl", "-o", "s.nds", "--add", "narrow.nds"], 2),
        (["missing.jsonl", "-o", "s.nds"], 4),
        (["all.jsonl", "-o", "no/such/folder/s.nds"], 5),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(
    whole: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    arguments: list[str],
    code: int,
) -> None:
    monkeypatch.chdir(tmp_path)
    nd.scheme("text").fit(TEXTS).save("fitted.nds")
    nd.scheme("text", bits=64).fit(TEXTS).save("narrow.nds")
    assert run(["fit", *arguments, "--quiet"]) == code
    err = capfd.readouterr().err
    assert "Traceback" not in err
    assert "neardup: " in err
    assert not (tmp_path / "s.nds").exists()


def test_only_what_is_fitted_can_be_added() -> None:
    with pytest.raises(InvalidValue, match="nothing to add"):
        fit_batches(nd.scheme("text"), [], parts=[nd.scheme("text")])


def test_standard_input_is_read(tmp_path: Path, whole: Path) -> None:
    out = tmp_path / "s.nds"
    done = subprocess.run(
        [sys.executable, "-m", "neardup", "fit", "-", "-o", str(out)],
        input=whole.read_bytes(),
        capture_output=True,
    )
    assert done.returncode == 0, done.stderr
    assert b"60 documents" in done.stderr
    assert nd.scheme(str(out)).digest == nd.scheme("text").fit(TEXTS).digest
