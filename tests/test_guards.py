"""Guards: a run that was about to do something absurd stops, and says what to raise."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from .corpus import (
    UNIQUE,
    Rows,
    copies,
    files_of,
    neardup,
    words,
    write_jsonl,
)


def guarded(tmp_path: Path, rows: Rows, *options: object) -> tuple[int, str, set[str]]:
    path = write_jsonl(tmp_path / "a.jsonl", rows)
    done = neardup("dedupe", path, "-o", tmp_path / "out", "--quiet", *options)
    return done.code, done.err, {name for name in files_of(tmp_path / "out") if not name.startswith(".")}


@pytest.mark.parametrize(
    ("rows", "options", "words_of_it"),
    [
        ([*copies(x=[1, 2, 3, 4, 5, 6]), *UNIQUE], ["--max-cluster", 5], ["the largest cluster has 6 members", "(limit 5", "c0, c1"]),
        ([*copies(x=[1, 2, 3]), UNIQUE[0]], ["--max-loss", "40%"], ["would lose 2 of 4 documents (50.0%)", "a.jsonl", "(limit 40%"]),
        ([{"id": f"s{n}", "text": "one and the same text"} for n in range(30)] + [{"id": f"{n}", "text": " ".join(words(n, 9))} for n in range(980)], [], ["one fingerprint is shared by 30 of 1,010 documents", "(limit 1%", "s0, s1"]),
    ],
    ids=["cluster", "loss", "same"],
)  # fmt: skip
def test_a_guard_stops_with_a_report_and_without_output(
    tmp_path: Path, rows: Rows, options: list[Any], words_of_it: list[str]
) -> None:
    code, err, names = guarded(tmp_path, rows, *options)
    assert code == 6
    for some in words_of_it:
        assert some in err
    assert names == {"report.html"}
    assert "--no-guards" in err
    code, _, names = guarded(tmp_path, rows, *options, "--no-guards")
    assert code == 0
    assert {"annotations.parquet", "evidence.parquet", "kept.jsonl", "manifest.json"} <= names


def test_limits_of_guards_are_the_users_to_set(tmp_path: Path) -> None:
    rows = [{"id": f"s{n}", "text": "one and the same text"} for n in range(1100)]
    code, err, _ = guarded(tmp_path, rows)
    assert code == 6
    assert all(some in err for some in ("largest cluster", "would lose", "one fingerprint"))
    more = ["--max-cluster", 2000, "--max-loss", "100%", "--max-same", "100%"]
    assert guarded(tmp_path, rows, *more)[0] == 0


def test_a_folder_of_text_files_is_one_source(tmp_path: Path) -> None:
    for name in range(6):
        text = " ".join(words(name % 5, 80))
        (tmp_path / f"in/{name}.txt").parent.mkdir(exist_ok=True)
        (tmp_path / f"in/{name}.txt").write_text(text)
    done = neardup("dedupe", tmp_path / "in", "-o", tmp_path / "out", "--quiet", "--json")
    assert (done.code, json.loads(done.out)["removed"]) == (0, 1)


def test_text_files_named_one_by_one_are_of_their_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("notes").mkdir()
    for name in range(6):
        for folder in ("notes", "."):
            Path(folder, f"{name}.txt").write_text(" ".join(words(name % 5 + 10 * len(folder), 80)))
    named = [*sorted(Path("notes").glob("*.txt")), *sorted(Path().glob("*.txt"))]
    done = neardup("dedupe", *named, "-o", "out", "--quiet", "--json")
    assert (done.code, json.loads(done.out)["removed"]) == (0, 2)
    assert json.loads(Path("out/manifest.json").read_text())["sources"] == [
        {"source": "notes", "documents": 6, "removed": 1},
        {"source": ".", "documents": 6, "removed": 1},
    ]


def test_a_source_is_what_the_source_field_names(tmp_path: Path) -> None:
    rows = [*copies(site=["x", "x", "x"]), *({**row, "site": "y"} for row in UNIQUE)]
    assert guarded(tmp_path, rows)[0] == 0
    code, err, _ = guarded(tmp_path, rows, "--source-field", "site", "--overwrite")
    assert code == 6
    assert "source 'x' would lose 2 of 3" in err
