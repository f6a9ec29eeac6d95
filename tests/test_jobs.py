"""What a job does to files that were there before it, and what it says before it begins."""

from __future__ import annotations

from pathlib import Path

import pytest

from .corpus import Rows, collection, files_of, neardup, words, write_jsonl

# Nine of twelve documents are copies: the guard of losses stops.
COPIES: Rows = [{"id": f"c{at}", "text": " ".join(words(at % 3))} for at in range(12)]


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to stand in, with an input."""
    monkeypatch.chdir(tmp_path)
    return write_jsonl(tmp_path / "a.jsonl", collection(10))


# --- the report ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [[], ["--overwrite"]])
@pytest.mark.parametrize(
    "report", ["a.jsonl", "ref.jsonl", "linked.html", "o/manifest.json", "o/kept.jsonl", "o/.neardup/r.html"]
)
def test_a_report_does_not_replace_an_input_or_a_file_of_the_run(
    data: Path, report: str, options: list[str]
) -> None:
    write_jsonl(Path("ref.jsonl"), [{"id": "ref", "text": "another text"}])
    Path("linked.html").symlink_to("a.jsonl")
    before = files_of(Path())
    done = neardup("dedupe", data, "--protect", "ref.jsonl", "-o", "o", "--report", report, *options)
    assert done.code == 2
    assert f"--report {report!r} is" in done.err
    assert files_of(Path()) == before
    assert not Path("o").exists()


def test_a_report_replaces_a_file_of_others_only_when_asked(data: Path) -> None:
    Path("page.html").write_text("mine")
    command = ["dedupe", data, "-o", "o", "--report", "page.html", "--quiet"]
    done = neardup(*command)
    assert (done.code, Path("page.html").read_text()) == (2, "mine")
    assert "--overwrite" in done.err
    assert neardup(*command, "--overwrite").code == 0
    assert Path("page.html").read_text() != "mine"
    assert neardup(*command).code == 0  # the same run, which is done


def test_the_folder_of_a_report_is_made_before_the_work_begins(data: Path) -> None:
    assert neardup("dedupe", data, "-o", "o", "--report", "new/folder/r.html", "--quiet").code == 0
    assert Path("new/folder/r.html").exists()
    done = neardup("dedupe", data, "-o", "other", "--report", "a.jsonl/r.html", "--quiet")
    assert done.code == 2
    assert "'a.jsonl' is no folder" in done.err
    assert not Path("other").exists()


def test_a_guard_that_stops_replaces_no_report_of_others(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "a.jsonl", COPIES)
    out = tmp_path / "out"
    out.mkdir()
    (out / "report.html").write_text("mine")
    assert neardup("dedupe", path, "-o", out, "--quiet").code == 2
    assert (out / "report.html").read_text() == "mine"


def test_the_report_of_a_stop_does_not_stay_beside_the_results(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "a.jsonl", COPIES)
    out = tmp_path / "out"
    command = ["dedupe", path, "-o", out, "--quiet"]
    for _ in range(2):
        assert neardup(*command).code == 6
        assert "A guard stopped this run" in (out / "report.html").read_text()
    assert neardup(*command, "--no-guards").code == 0
    assert not (out / "report.html").exists()
    out = tmp_path / "shown"
    command = ["dedupe", path, "-o", out, "--quiet", "--report", out / "page.html"]
    assert neardup(*command).code == 6
    assert neardup(*command, "--no-guards").code == 0
    assert "A guard stopped this run" not in (out / "page.html").read_text()
    assert neardup("check", out).code == 0


# --- the folder of the results ---------------------------------------------------------------------------


def test_a_file_or_an_address_is_no_folder_for_results(data: Path) -> None:
    before = files_of(Path())
    for out, what in (("a.jsonl", "'a.jsonl' is no folder"), ("file:///x", "is an address")):
        done = neardup("dedupe", data, "-o", out, "--quiet")
        assert done.code == 2
        assert what in done.err
    assert files_of(Path()) == before
    assert not Path("file:").exists()


def test_overwrite_removes_what_the_run_before_listed_and_nothing_else(data: Path) -> None:
    command = ["dedupe", data, "-o", "o", "--quiet", "--overwrite"]
    assert neardup(*command, "--report", "o/page.html").code == 0
    for name in ("kept.old.bak", "kept.notes", "mine.html"):
        Path("o", name).write_text("mine")
    assert neardup(*command).code == 0
    assert set(files_of(Path("o"))) == {
        "annotations.parquet",
        "evidence.parquet",
        "kept.jsonl",
        "kept.notes",
        "kept.old.bak",
        "manifest.json",
        "mine.html",
    }
