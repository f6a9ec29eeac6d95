"""Mistakes that are easily made on the command line: each is told in one line, with the way out."""

from __future__ import annotations

import gzip
import json
import re
import resource
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

import neardup as nd
from neardup.errors import InvalidType
from neardup.sources import open_source

from .corpus import collection, files_of, neardup, process, words, write_jsonl


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def image(path: Path, seed: int, size: int = 160) -> Path:
    path.parent.mkdir(exist_ok=True)
    noise = np.random.default_rng(seed).integers(0, 256, (12, 16, 3), dtype=np.uint8)
    Image.fromarray(noise).resize((size, size * 3 // 4)).save(path)
    return path


# --- inputs from which no document comes -------------------------------------------------------------------


def make_input(kind: str) -> tuple[list[str], list[str], str]:
    """An input that cannot be used as it is asked for, the options that mend it, and words of the reason."""
    rows = collection(10)
    write_jsonl(Path("a.jsonl"), rows)
    if kind == "a wrong column of Parquet":
        pq.write_table(pa.table({"text": [row["text"] for row in rows]}), "a.parquet")
        return ["a.parquet", "--text-field", "body"], ["a.parquet"], "has no column 'body'"
    if kind == "a wrong column of CSV":
        Path("a.csv").write_text("text\none text\nanother text\n")
        return ["a.csv", "--text-field", "body"], ["a.csv"], "has no column 'body'"
    if kind == "a wrong field of JSONL":
        return (
            ["a.jsonl", "--id-field", "uri"],
            ["a.jsonl"],
            f"{len(rows)} bad records, such as line 1 of 'a.jsonl'",
        )
    if kind == "a cut Parquet file":
        pq.write_table(pa.table({"text": ["one"]}), "a.parquet")
        Path("a.parquet").write_bytes(Path("a.parquet").read_bytes()[:-9])
        return ["a.parquet"], ["a.jsonl"], "'a.parquet'"
    if kind == "an empty file":
        Path("b.jsonl").write_bytes(b"")
        return ["b.jsonl"], ["a.jsonl"], "no document came from 'b.jsonl'; there is no result"
    Path("pics").mkdir()
    image(Path("pics/a.png"), 1)
    Path("pics/b.txt").write_text("")
    Path("pics/b.txt").unlink()
    return ["pics", "--format", "jsonl"], ["a.jsonl"], "no document came from"


@pytest.mark.parametrize(
    "kind",
    [
        "a wrong column of Parquet",
        "a wrong column of CSV",
        "a wrong field of JSONL",
        "a cut Parquet file",
        "an empty file",
        "what is not text",
    ],
)
def test_an_input_without_a_document_leaves_no_run_and_blocks_none(kind: str) -> None:
    wrong, right, reason = make_input(kind)
    done = neardup("dedupe", *wrong, "-o", "out", "--quiet")
    assert done.code == 4
    assert done.out == ""
    assert reason in done.err
    assert done.err.count("\n") == 1
    assert not Path("out/manifest.json").exists()
    assert not Path("out/annotations.parquet").exists()
    if "quarantine" in done.err:
        assert Path("out/quarantine.jsonl").read_text().count("\n") > 1
    else:
        assert not Path("out").exists()
    again = neardup("dedupe", *right, "-o", "out", "--quiet")
    assert again.code == 0, again.err
    assert not Path("out/quarantine.jsonl").exists()
    assert neardup("check", "out").code == 0


def test_an_input_without_a_document_does_not_replace_a_run(tmp_path: Path) -> None:
    write_jsonl(Path("a.jsonl"), collection(10))
    assert neardup("dedupe", "a.jsonl", "-o", "out", "--quiet").code == 0
    before = files_of(Path("out"))
    done = neardup("dedupe", "a.jsonl", "-o", "out", "--quiet", "--overwrite", "--id-field", "uri")
    assert done.code == 4
    assert "out/.neardup/quarantine.jsonl has all that was bad" in done.err
    assert files_of(Path("out")) == before
    assert neardup("check", "out").code == 0


def test_a_good_file_and_a_refused_one_make_a_run() -> None:
    write_jsonl(Path("a.jsonl"), collection(10))
    Path("b.jsonl.gz").write_bytes(b"not gzip")
    done = neardup("dedupe", "a.jsonl", "b.jsonl.gz", "-o", "out", "--quiet")
    assert done.code == 4
    assert "refused b.jsonl.gz" in done.err
    assert neardup("check", "out").code == 0


# --- names of inputs and outputs -----------------------------------------------------------------------------


def test_a_pattern_in_quotes_is_expanded_in_sorted_order() -> None:
    rows = collection(10)
    Path("crawl").mkdir()
    write_jsonl(Path("crawl/b.jsonl"), rows[6:])
    write_jsonl(Path("crawl/a.jsonl"), rows[:6])
    Path("crawl/note.txt").write_text("not meant")
    done = neardup("dedupe", "crawl/*.jsonl", "-o", "out", "--quiet", "--json")
    assert (done.code, json.loads(done.out)["documents"]) == (0, len(rows))
    assert [row["name"] for row in json.loads(Path("out/manifest.json").read_text())["inputs"]] == [
        "crawl/a.jsonl",
        "crawl/b.jsonl",
    ]
    assert (
        neardup("dedupe", "crawl/[ab].jsonl", "-o", "out", "--quiet").code == 0
    )  # the same run, which is done
    none = neardup("dedupe", "crawl/*.parquet", "-o", "other", "--quiet")
    assert none.code == 4
    assert none.err == "neardup: no file matches 'crawl/*.parquet'\n"
    assert not Path("other").exists()


def test_a_file_whose_name_looks_like_a_pattern_is_that_file() -> None:
    write_jsonl(Path("a[1].jsonl"), [{"id": "x", "text": "one"}])
    write_jsonl(Path("a1.jsonl"), [{"id": "y", "text": "two"}])
    ids = [id for batch in open_source("a[1].jsonl") for id in batch.ids.to_pylist()]
    assert ids == ["x"]


def test_a_dash_is_no_folder_for_results() -> None:
    write_jsonl(Path("a.jsonl"), collection(5))
    done = neardup("dedupe", "a.jsonl", "-o", "-")
    assert done.code == 2
    assert "-o names a folder" in done.err
    assert not Path("-").exists()


def test_a_misspelt_command_names_the_one_that_was_meant() -> None:
    done = neardup("dedup", "a.jsonl", "-o", "out")
    assert done.code == 2
    assert "Did you mean dedupe?" in done.err
    assert "Did you mean" not in neardup("nonsense").err


def test_the_version_has_a_short_option() -> None:
    assert neardup("-V").out == neardup("--version").out != ""


@pytest.mark.parametrize(("text", "value"), [("85%", 0.85), ("0.85", 0.85), ("100%", 1.0)])
def test_a_share_is_also_given_in_per_cent(text: str, value: float) -> None:
    write_jsonl(Path("a.jsonl"), collection(5))
    done = neardup("dedupe", "a.jsonl", "-o", "out", "--similarity", text, "--recall", "90%", "--quiet")
    assert done.code == 0, done.err
    settings = json.loads(Path("out/manifest.json").read_text())["settings"]
    assert (settings["similarity"], settings["recall"]) == (value, 0.9)


@pytest.mark.parametrize("text", ["much", "85 %%", "%", "850%"])
def test_what_is_no_share_is_told(text: str) -> None:
    write_jsonl(Path("a.jsonl"), collection(5))
    done = neardup("dedupe", "a.jsonl", "-o", "out", "--similarity", text, "--quiet")
    assert done.code == 2
    assert done.err.count("\n") == 1


def test_an_unknown_setting_is_told_among_all_that_are_known() -> None:
    with pytest.raises(InvalidType, match="unknown setting 'text_column'") as told:
        nd.dedupe(collection(5), text_column="body")
    for name in ("text_field", "id_field", "protect", "similarity", "scheme"):
        assert name in str(told.value)


def test_pages_without_html_are_hinted_at() -> None:
    Path("site").mkdir()
    for number in range(3):
        Path(f"site/{number}.html").write_text(f"<p>{' '.join(words(number))}</p>")
    done = neardup("dedupe", "site", "-o", "out", "--quiet")
    assert done.code == 0
    assert "3 inputs are HTML, compared with all tags; --html takes" in done.err


# --- what is said at the end --------------------------------------------------------------------------------


def said(rows: list[dict[str, Any]], *options: object) -> tuple[str, str]:
    write_jsonl(Path("a.jsonl"), rows)
    done = neardup("dedupe", "a.jsonl", "-o", "out", "--overwrite", "--no-guards", *options)
    assert done.code in (0, 3), done.err
    return done.out, done.err


def test_one_is_not_are() -> None:
    text = " ".join(words(1))
    out, err = said(
        [{"id": "a", "text": text}, {"id": "b", "text": text}, {"id": "e", "text": "..."}, {"id": "f"}]
    )
    assert out.splitlines()[0] == (
        "3 documents: 2 stay, 1 is a near-duplicate of one that stays, in 1 cluster"
    )
    assert "1 document without information was kept; without_information.jsonl lists it" in out
    assert "1 bad record is in out/quarantine.jsonl" in err
    assert said([{"id": "a", "text": text}])[0] == "1 document: no near-duplicates, it stays\n"


def test_stages_count_what_they_count() -> None:
    rows = collection(30)
    _, err = said(rows)
    evidence = json.loads(Path("out/manifest.json").read_text())["counts"]
    assert re.search(rf"^read: {len(rows)} documents in", err, re.M)
    assert re.search(
        rf"^join: {len(rows) - 3 - 2} distinct texts in", err, re.M
    )  # three copies, two of nothing
    assert re.search(rf"^verify: {evidence['candidate_pairs']} pairs in", err, re.M)
    assert evidence["copies"] == 3
    assert evidence["removed"] == 9


def test_images_are_called_images() -> None:
    for number in range(2):
        image(Path(f"pics/{number}.png"), number)
        image(Path(f"pics/{number}-small.png"), number, 120)
    done = neardup("dedupe", "pics", "-o", "out", "--report", "out/report.html")
    assert done.code == 0, done.err
    assert done.out.startswith("4 images: 2 stay, 2 are near-duplicates")
    for words_of_it in (
        "read: 4 images in",
        "join: 4 distinct images in",
        "verify: 2 pairs in",
        "write: 4 images",
    ):
        assert words_of_it in done.err
    assert "documents" not in done.out + done.err
    page = re.sub(r"<pre.*?</pre>|<style>.*?</style>", "", Path("out/report.html").read_text(), flags=re.S)
    assert "document" not in page


def test_the_last_lines_say_where_the_results_are_and_what_to_do_next() -> None:
    _, err = said(collection(10))
    assert "neardup: the results are in out; out/kept.jsonl has what stays" in err
    commands = re.findall(r"  +(neardup .*)", err)
    assert len(commands) == 2
    for one in commands:
        assert neardup(*one.split()[1:]).code == 0, one
    assert Path("out/report.html").exists()
    assert "fingerprints of 128 bits" not in err
    assert "fingerprints of 128 bits" in said(collection(10), "--verbose")[1]
    assert said(collection(10), "--quiet")[1] == ""


def test_the_last_lines_name_apply_where_documents_are_files() -> None:
    for number in range(3):
        image(Path(f"pics/{number}.png"), number)
    image(Path("pics/0-small.png"), 0, 120)
    done = neardup("dedupe", "pics", "-o", "out")
    (command,) = re.findall(r"(neardup apply out --trash DIR)", done.err)
    listed = neardup(*command.split()[1:])
    assert listed.code == 0, listed.err


# --- search -------------------------------------------------------------------------------------------------


def test_an_image_that_is_not_there_is_not_searched_as_a_text() -> None:
    image(Path("pics/a.png"), 1)
    for name in ("nosuch.jpg", "nosuch", "pics/no such.png", "no/such.txt"):
        done = neardup("search", name, "--in", "pics")
        assert (done.code, done.out) == (2, "")
        assert done.err == f"neardup: no file {name!r}\n"
    done = neardup("search", "pics", "--in", "pics")
    assert done.code == 2
    assert "'pics' is a folder" in done.err


def test_a_search_that_finds_nothing_says_so() -> None:
    image(Path("pics/a.png"), 1)
    image(Path("b.png"), 2)
    write_jsonl(Path("m.jsonl"), collection(10))
    for question, data in (("b.png", "pics"), ("a text that nothing is near to", "m.jsonl")):
        for more in ([], ["--json"]):
            done = neardup("search", question, "--in", data, *more)
            assert (done.code, done.out) == (0, "")
            assert re.fullmatch(rf"neardup: nothing within .+ in {data}\n", done.err)


def test_a_file_of_many_documents_is_no_question() -> None:
    write_jsonl(Path("m.jsonl"), collection(10))
    done = neardup("search", "m.jsonl", "--in", "m.jsonl")
    assert done.code == 2
    assert "holds documents of its own (jsonl)" in done.err
    assert "neardup dedupe m.jsonl --protect" in done.err


def test_an_image_that_is_searched_for_is_found_as_the_identical_file() -> None:
    image(Path("pics/a.png"), 1)
    image(Path("pics/b.png"), 1, 120)
    done = neardup("search", "pics/a.png", "--in", "pics")
    first, second = (line.split("\t") for line in done.out.splitlines())
    assert first == ["0", "1.0000", "identical file", "pics/a.png"]
    assert second[3] == "pics/b.png"
    assert second[2] != "identical file"


# --- compression, memory ------------------------------------------------------------------------------------


def frame(data: bytes) -> bytes:
    return bytes(pa.compress(data, codec="zstd", asbytes=True))


@pytest.mark.parametrize("low", [0x50, 0x5F])
def test_frames_to_skip_are_skipped_wherever_they_stand(low: int) -> None:
    rows = [json.dumps(row).encode() + b"\n" for row in collection(10)]
    skipped = bytes([low, 0x2A, 0x4D, 0x18]) + (5).to_bytes(4, "little") + b"index"
    whole = (
        skipped + frame(b"".join(rows[:5])) + frame(b"".join(rows[5:9])) + skipped + frame(b"".join(rows[9:]))
    )
    for data in (whole, whole + skipped, skipped + whole):
        Path("a.jsonl.zst").write_bytes(data)
        source = open_source("a.jsonl.zst")
        assert sum(len(batch) for batch in source) == len(rows)
        assert not source.refused
        assert not source.bad
    Path("cut.jsonl.zst").write_bytes(whole[:-7])
    source = open_source("cut.jsonl.zst")
    assert sum(len(batch) for batch in source) < len(rows)
    assert source.bad + len(source.refused) == 1
    Path("gz.jsonl.zst").write_bytes(gzip.compress(rows[0]))  # what it is tells more than its name
    assert sum(len(batch) for batch in open_source("gz.jsonl.zst")) == 1


@pytest.mark.parametrize("mib", [160, 200, 250, 400])
def test_too_little_address_space_is_one_line(mib: int) -> None:
    write_jsonl(Path("a.jsonl"), collection(5))

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (mib << 20, mib << 20))

    done = process("dedupe", "a.jsonl", "-o", "out", preexec_fn=limited)
    assert done.returncode == 5, done.stderr
    assert done.stderr.startswith("neardup: not enough memory")
    assert done.stderr.count("\n") == 1
