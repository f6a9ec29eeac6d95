"""What a job does to files that were there before it, and what it says before it begins."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import neardup as nd
from neardup.errors import InvalidValue
from neardup.wording import size

from .corpus import Rows, collection, files_of, neardup, words, write_jsonl
from .rundirs import make_run

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
    assert "'a.jsonl' is not a folder" in done.err
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
    for out, what in (("a.jsonl", "'a.jsonl' is not a folder"), ("file:///x", "is an address")):
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
        "without_information.jsonl",
    }


def test_overwrite_does_not_delete_an_input_that_the_run_before_wrote(data: Path) -> None:
    assert neardup("dedupe", data, "-o", "o", "--quiet", "--report", "o/page.html").code == 0
    before = files_of(Path("o"))
    done = neardup("dedupe", "o/page.html", "-o", "o", "--quiet", "--overwrite")
    assert (done.code, files_of(Path("o"))) == (2, before)
    assert "is an input, and an output would replace it" in done.err


@pytest.mark.parametrize(
    ("rows", "options", "code"),
    [(COPIES, ["--max-cluster", "2"], 6), (collection(5), ["--keep", "max:nosuch"], 2)],
)
def test_overwrite_keeps_the_run_before_until_the_new_one_is_done(
    data: Path, rows: Rows, options: list[str], code: int
) -> None:
    assert neardup("dedupe", data, "-o", "o", "--quiet", "--report", "o/report.html").code == 0
    before = files_of(Path("o"))
    other = write_jsonl(Path("b.jsonl"), rows)
    command = ["dedupe", other, "-o", "o", "--quiet", "--overwrite"]
    assert neardup(*command, *options).code == code
    after = {name: data for name, data in files_of(Path("o")).items() if not name.startswith(".neardup")}
    assert ("stopped.html" in after) == (code == 6)
    after.pop("stopped.html", None)
    assert after == before
    assert neardup("check", "o", "o").code == 0, "it is still a whole run"
    assert neardup(*command, "--no-guards").code == 0
    assert json.loads(Path("o/manifest.json").read_text())["counts"]["documents"] == len(rows)
    assert not {"stopped.html", "report.html"} & set(files_of(Path("o")))


def test_the_page_of_a_stop_replaces_nothing_of_others(data: Path) -> None:
    assert neardup("dedupe", data, "-o", "o", "--quiet", "--report", "o/stopped.html").code == 0
    Path("o/2-stopped.html").write_text("mine")
    before = files_of(Path("o"))
    stopping = ["dedupe", write_jsonl(Path("b.jsonl"), COPIES), "-o", "o", "--quiet", "--overwrite"]
    for _ in range(2):
        done = neardup(*stopping)
        assert done.code == 6
        assert "3-stopped.html" in done.err
        left = {name: data for name, data in files_of(Path("o")).items() if not name.startswith(".neardup")}
        assert left.pop("3-stopped.html")
        assert left == before
    assert neardup("dedupe", data, "-o", "o", "--quiet", "--report", "o/stopped.html").code == 0  # it is done
    assert files_of(Path("o")) == before


def test_bad_records_of_a_run_that_replaces_another_are_found(data: Path) -> None:
    Path("bad.jsonl").write_text("{\n" * 3)
    assert neardup("dedupe", data, "bad.jsonl", "-o", "o", "--quiet").code == 3
    before = files_of(Path("o"))
    done = neardup("dedupe", "bad.jsonl", "-o", "o", "--quiet", "--overwrite", "--max-bad", "1")
    assert done.code == 5
    assert "it is 'o/.neardup/quarantine.jsonl'" in done.err
    assert Path("o/.neardup/quarantine.jsonl").read_bytes().count(b"\n") == 2
    assert {name: data for name, data in files_of(Path("o")).items() if name in before} == before


# --- fields ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("option", "value"),
    [("--within", "scr"), ("--across", "scr"), ("--source-field", "scr"), ("--keep", "newest:scr")],
)
def test_a_field_that_no_document_has_ends_the_run_after_the_survey(
    data: Path, option: str, value: str
) -> None:
    table = Path("a.csv")
    table.write_text("id,text,source\n1,one text,a\n2,another text,b\n")
    notes = Path("notes")
    notes.mkdir()
    (notes / "n.txt").write_text("a text without fields")
    for path in (data, table, notes):
        done = neardup("dedupe", path, "-o", "o", option, value, "--quiet")
        assert done.code == 2
        assert done.err.startswith(f"neardup: no document has a value in the field 'scr' of {option}")
        assert done.err.count("\n") == 1
        assert not Path("o/annotations.parquet").exists()
    choices: dict[str, Any] = {option[2:].replace("-", "_"): value}
    with pytest.raises(InvalidValue, match="field 'scr'"):
        nd.dedupe(collection(5), **choices)


def test_a_field_that_some_documents_or_protected_ones_lack_is_used(data: Path) -> None:
    rows = [{"id": "x", "text": "one"}, {"id": "y", "text": "two", "source": "a"}]
    write_jsonl(Path("b.jsonl"), rows)
    write_jsonl(Path("ref.jsonl"), [{"id": "ref", "text": "a text of no source"}])
    Path("note.txt").write_text("a text without fields")
    command = ["dedupe", data, "b.jsonl", "note.txt", "--protect", "ref.jsonl", "--keep", "max:rank,longest"]
    done = neardup(*command, "-o", "o", "--within", "source", "--quiet")
    assert done.code == 0
    assert "2 of 18 documents have no 'source'" in done.err


@pytest.mark.parametrize(
    ("options", "what"),
    [
        (["--keep", "resolution"], "keep rule 'resolution' is for images"),
        (["--keep", "longest,size"], "keep rule 'size' is for images"),
        (["--radius", 257], "radius must be from 0 to 256, not 257"),
        (["--bits", 64, "--radius", 65], "radius must be from 0 to 64, not 65"),
        (["--threads", 100_000], "threads must be from 1 to 1024, not 100000"),
    ],
)
def test_what_cannot_be_is_said_before_the_work_begins(data: Path, options: list[object], what: str) -> None:
    assert neardup("dedupe", data, "-o", "o", "--quiet").code == 0
    before = files_of(Path("o"))
    done = neardup("dedupe", data, "-o", "o", "--overwrite", *options)
    assert done.code == 2
    assert done.err.startswith(f"neardup: {what}")
    assert files_of(Path("o")) == before


# --- the report of a finished run ------------------------------------------------------------------------


@pytest.fixture
def dated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")


@pytest.mark.parametrize("page", ["o/report.html", "elsewhere/page.html"])
@pytest.mark.usefixtures("dated")
def test_a_report_that_is_asked_for_later_is_made_from_the_finished_run(data: Path, page: str) -> None:
    (data.parent / "ref.jsonl").write_text('{"id": "ref", "text": "another text"}\n')
    command = ["dedupe", data, "-o", "o", "--protect", "ref.jsonl"]
    assert neardup(*command, "--quiet").code == 0
    done = neardup(*command, "--report", page)
    assert done.code == 0, done.err
    assert "read:" not in done.err
    late, folder = Path(page).read_bytes(), files_of(Path("o"))
    assert neardup(*command, "--report", page, "--quiet").code == 0  # it is there
    assert files_of(Path("o")) == folder
    assert neardup("check", "o").code == 0
    # The same bytes as of a run that was asked for its report at once.
    assert neardup(*command, "--report", page, "--quiet", "--overwrite").code == 0
    assert Path(page).read_bytes() == late
    assert files_of(Path("o")) == folder
    assert ("report.html" in folder) == page.startswith("o/")
    Path(page).unlink()
    assert neardup(*command, "--report", page, "--quiet").code == 0
    assert Path(page).read_bytes() == late


@pytest.mark.usefixtures("dated")
def test_neardup_report_writes_the_page_of_a_finished_run(data: Path) -> None:
    command = ["dedupe", data, "-o", "o", "--quiet"]
    assert neardup(*command, "--report", "o/report.html").code == 0
    before = files_of(Path("o"))
    assert neardup("report", "o", "-o", "o/report.html").code == 0  # its own page may be replaced
    assert files_of(Path("o")) == before
    assert neardup("report", "o", "-o", "new/page.html").code == 0
    assert Path("new/page.html").read_bytes() == before["report.html"]
    for page in (data, "o/manifest.json", "o/kept.jsonl"):
        for more in ([], ["--overwrite"]):
            assert neardup("report", "o", "-o", page, *more).code == 2
    assert files_of(Path("o")) == before
    Path("mine.html").write_text("mine")
    assert neardup("report", "o", "-o", "mine.html").code == 2
    assert neardup("report", "o", "-o", "mine.html", "--overwrite").code == 0
    write_jsonl(data, collection(11))
    done = neardup("report", "o", "-o", "p.html")
    assert done.code == 4
    assert "changed since the run" in done.err
    assert neardup("report", "o", "-o", "p.html", "--input", data).code == 0
    data.unlink()
    assert neardup("report", "o", "-o", "q.html").code == 4
    assert not Path("q.html").exists()


def test_a_report_that_cannot_be_written_costs_no_results(data: Path) -> None:
    page = f"{'n' * 253}.html"  # longer than any file system takes
    command = ["dedupe", data, "-o", "o", "--quiet"]
    done = neardup(*command, "--report", page)
    assert done.code == 5
    assert "the results are complete in 'o', but there is no report" in done.err
    assert "`neardup report o -o PAGE`" in done.err
    assert neardup("check", "o").code == 0
    assert not Path("o/.neardup").exists()
    assert neardup("report", "o", "-o", "page.html").code == 0
    assert neardup(*command).code == 0


def test_the_page_tells_what_it_is_of(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    assert neardup("dedupe", data, "-o", "o", "--keep", "longest", "--report", "p.html", "--quiet").code == 0
    page = Path("p.html").read_text()
    assert "<h1>Near-duplicates in a.jsonl</h1>" in page
    assert "<title>Near-duplicates in a.jsonl · neardup</title>" in page
    assert "<time>2023-11-14 22:13 UTC</time>" in page
    assert f"neardup dedupe {data} --keep longest -o o" in page
    saved = data.stat().st_size - Path("o/kept.jsonl").stat().st_size
    assert f"<dt>saved</dt><dd>{size(saved)}</dd>" in page
    assert "neardup explain d0000-1 d0000-0 --run o" in page
    assert neardup("explain", "d0000-1", "d0000-0", "--run", "o").code == 0
    assert "--strict" in page


def test_the_command_of_a_manifest_gives_the_same_run(data: Path) -> None:
    write_jsonl(Path("ref.jsonl"), [{"id": "ref", "text": "another text"}])
    options = [
        "--protect",
        "ref.jsonl",
        "--keep",
        "newest:date,longest",
        "--similarity",
        "70%",
        "--no-guards",
    ]
    command = ["dedupe", data, *options, "--bits", 64, "--threads", 1, "--within", "source"]
    assert neardup(*command, "-o", "o", "--quiet", "--report", "p.html").code == 0
    manifest = json.loads(Path("o/manifest.json").read_text())
    said = manifest["command"]
    assert said[:2] == ["neardup", "dedupe"]
    assert not {"-o", "--threads", "--report", "--quiet"} & set(said)
    again = neardup(*said[1:], "-o", "again", "--quiet")
    assert again.code == 0, again.err
    assert files_of(Path("again")) == files_of(Path("o"))


def test_a_stopped_page_says_what_to_give(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "a.jsonl", COPIES)
    assert neardup("dedupe", path, "-o", tmp_path / "out", "--quiet").code == 6
    page = (tmp_path / "out/report.html").read_text()
    assert 'with <code>--max-loss 75%</code>, or with <code class="option">--no-guards</code>' in page
    assert "<dt>saved</dt>" not in page


def test_copies_are_no_close_call(tmp_path: Path) -> None:
    text = " ".join(words(1))
    rows: Rows = [{"id": f"c{at}", "text": text} for at in range(3)]
    rows += [{"id": "upper", "text": text.upper()}, {"id": "other", "text": " ".join(words(2))}]
    path = write_jsonl(tmp_path / "a.jsonl", rows)
    out = tmp_path / "out"
    assert neardup("dedupe", path, "-o", out, "--no-guards", "--report", out / "r.html", "--quiet").code == 0
    page = (out / "r.html").read_text()
    assert "Accepted, but only just" not in page
    assert "Pairs accepted, by reason" in page


def test_a_manifest_that_no_run_wrote_gives_no_page(data: Path) -> None:
    make_run(Path("o"), [str(data)], {"d0000-0": None})
    done = neardup("report", "o", "-o", "p.html")
    assert done.code == 2
    assert "manifest.json' is not as a run writes it" in done.err
