"""`neardup dedupe`: keep rules, protection, guards, verification, and the files of a run."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import neardup as nd
from neardup.errors import InvalidValue, UnknownName
from neardup.verifiers import REASONS, UNVERIFIED

from .corpus import (
    BASE,
    UNIQUE,
    Rows,
    collection,
    copies,
    edited,
    files_of,
    kept,
    neardup,
    words,
    write_jsonl,
)

# --- protect, within, across -----------------------------------------------------------------------------


def test_protected_documents_keep_and_never_go(tmp_path: Path) -> None:
    rows = copies(x=[1, 2, 3])
    reference = [{**rows[0], "id": "ref"}, {**rows[0], "id": "ref copy"}]
    result = nd.dedupe(rows, protect=reference, keep="max:x")
    assert result.annotations.column("keep").to_pylist() == [False] * 3
    assert set(result.annotations.column("duplicate_of").to_pylist()) <= {
        "protected:ref",
        "protected:ref copy",
    }
    assert result.annotations.column("id").to_pylist() == ["c0", "c1", "c2"]
    path, ref = write_jsonl(tmp_path / "a.jsonl", rows), write_jsonl(tmp_path / "ref.jsonl", reference)
    done = neardup("dedupe", path, "--protect", ref, "-o", tmp_path / "out", "--no-guards", "--quiet")
    assert done.code == 0
    manifest = json.loads((tmp_path / "out/manifest.json").read_text())
    assert [row["name"] for row in manifest["protected"]] == [str(ref)]
    assert manifest["counts"]["protected"] == 2


def test_an_id_in_the_input_and_in_what_is_protected_means_two_documents(tmp_path: Path) -> None:
    rows = collection(5)
    path = write_jsonl(tmp_path / "a.jsonl", rows)
    same = {"id": rows[0]["id"], "text": rows[0]["text"]}  # in train and in test
    other = {
        "id": rows[-1]["id"],
        "text": "quite another text that has nothing to do with the one of that id",
    }
    ref = write_jsonl(tmp_path / "ref.jsonl", [same, other])
    done = neardup("dedupe", path, "--protect", ref, "-o", tmp_path / "out", "--quiet", "--no-guards")
    assert done.code == 0
    found = {row["id"]: row for row in pq.read_table(tmp_path / "out/annotations.parquet").to_pylist()}
    assert set(found) == {row["id"] for row in rows}
    assert found[same["id"]]["duplicate_of"] == f"protected:{same['id']}"
    assert found[other["id"]]["duplicate_of"] != f"protected:{other['id']}"


def test_a_file_that_is_protected_and_in_the_folder_is_no_duplicate_of_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = " ".join(words(3, 40))
    for name in ("in/a.txt", "in/best/a.txt", "in/b.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(" ".join(words(9, 40)) if name == "in/b.txt" else text)
    done = neardup("dedupe", "in", "--protect", "in/best", "-o", "out", "--quiet", "--no-guards")
    assert done.code == 0
    found = {
        row["id"]: row["duplicate_of"]
        for row in pq.read_table(tmp_path / "out/annotations.parquet").to_pylist()
    }
    assert found == {"in/a.txt": "protected:in/best/a.txt", "in/b.txt": None}
    done = neardup("dedupe", "in/b.txt", "--protect", "in/b.txt", "-o", "out2", "--quiet")
    assert done.code == 2
    assert "'in/b.txt' is in the input and protected" in done.err


def test_bad_records_of_what_is_protected_are_told(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "a.jsonl", collection(5))
    ref = tmp_path / "ref.jsonl"
    ref.write_text('{"id": "r", "text": "x"}\nnonsense\n')
    done = neardup("dedupe", path, "--protect", ref, "-o", tmp_path / "out", "--quiet")
    assert done.code == 3
    assert json.loads((tmp_path / "out/quarantine.jsonl").read_text())["file"] == str(ref)


def test_within_and_across_compare_only_what_they_say() -> None:
    rows = copies(source=["a", "a", "b", "b", None, "None"])
    rows.append({**rows[0], "id": "same in a"})
    rows.append({**rows[2], "id": "same in b"})
    source = {row["id"]: row["source"] for row in rows}
    within = nd.dedupe(rows, within="source", keep="first").annotations.to_pylist()
    assert sorted(row["id"] for row in within if row["keep"]) == ["c0", "c2", "c4", "c5"]
    for row in nd.dedupe(rows, across="source", keep="first").annotations.to_pylist():
        if row["duplicate_of"] is not None:
            assert source[row["id"]] != source[row["duplicate_of"]]
    # Identical copies inside one source are not compared with each other.
    both = [rows[0], rows[6]]
    assert kept(both, across="source") == ["c0", "same in a"]
    across = nd.dedupe(
        [rows[0], rows[6], {**rows[0], "id": "z", "source": "b"}], across="source", keep="first"
    )
    assert across.annotations.column("keep").to_pylist() == [True, True, False]
    assert across.evidence.column("reason").to_pylist()[0] == "identical text"


def test_across_with_keep_none_also_takes_second_copies() -> None:
    rows = copies(source=["a", "b"])
    twice = [{**row, "id": row["id"] + " again"} for row in rows[:2]]
    other = [{**rows[0], "id": name, "text": "quite another text"} for name in ("alone", "alone again")]
    found = nd.dedupe([*rows, *twice, *other], across="source", keep="none").annotations
    assert [row["id"] for row in found.to_pylist() if row["keep"]] == ["alone", "alone again"]
    removed = found.filter(pc.invert(found.column("keep")))
    assert len(set(removed.column("cluster").to_pylist())) == 1


# --- verification ----------------------------------------------------------------------------------------


def near(changes: int) -> Rows:
    return [{"id": "a", "text": " ".join(BASE)}, {"id": "b", "text": " ".join(edited(BASE, 3, changes))}]


@pytest.mark.parametrize(
    ("verify", "changes", "removed"),
    [("jaccard:0.5", 10, 1), ("jaccard:0.99", 10, 0), ("containment:0.5", 10, 1), ("none", 10, 1), ("strict", 1, 1), ("strict", 60, 0)],
)  # fmt: skip
def test_what_decides_is_the_users_to_choose(verify: str, changes: int, removed: int) -> None:
    result = nd.dedupe(near(changes), verify=verify, similarity=0.5)
    assert result.summary["removed"] == removed
    rules = set(result.evidence.column("reason").to_pylist())
    assert rules <= ({UNVERIFIED} if verify == "none" else set(REASONS))


@pytest.mark.parametrize("name", ["jaccard", "containment"])
def test_the_evidence_shows_the_figure_that_decided(name: str) -> None:
    texts = ["one two three four five six seven eight", "one two three four five six seven nine ten"]
    rows = [{"id": "a", "text": texts[0]}, {"id": "b", "text": texts[1]}]
    a, b = ({one for _, _, one in nd.scheme("text").feature_list(text)} for text in texts)
    share = len(a & b) / (len(a | b) if name == "jaccard" else min(len(a), len(b)))
    shown = int(share * 10_000) / 10_000
    for least, accepted in ((shown, True), (shown + 0.0001, False)):
        result = nd.dedupe(rows, verify=f"{name}:{least:.4f}", similarity=0.3)
        (pair,) = result.evidence.to_pylist()
        assert (pair["similarity"], pair["accepted"]) == (shown, accepted)
        assert pair["weighted"] != pair["similarity"] != pair["rare"]
        shown_beside = [row["similarity"] for row in result.annotations.to_pylist() if not row["keep"]]
        assert shown_beside == [shown] * accepted


def test_a_similarity_that_nobody_measured_is_empty_and_not_0(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "in.jsonl", [*near(10), {"id": "c", "text": " ".join(BASE)}])
    out = tmp_path / "out"
    options = ["--keep", "first", "--verify", "none", "--quiet", "--no-guards", "--report"]
    assert neardup("dedupe", path, "-o", out, *options, out / "report.html").code == 0
    figures = {}
    for row in pq.read_table(out / "evidence.parquet").to_pylist():
        figures[row["reason"]] = [row["similarity"], row["weighted"], row["rare"]]
    assert figures == {UNVERIFIED: [None] * 3, "identical text": [1.0] * 3}
    goes = pq.read_table(out / "annotations.parquet", filters=[("keep", "=", False)])
    assert sorted(goes.column("similarity").to_pylist(), key=str) == [1.0, None]
    assert neardup("check", out, out).code == 0
    assert '<span class="score">–</span>' in (out / "report.html").read_text()


def test_a_part_of_a_text_is_contained_and_not_similar() -> None:
    rows = [{"id": "whole", "text": " ".join(BASE)}, {"id": "part", "text": " ".join(BASE[:140])}]
    assert nd.dedupe(rows, verify="containment:0.9", similarity=0.5).summary["removed"] == 1
    assert nd.dedupe(rows, verify="jaccard:0.9", similarity=0.5).summary["removed"] == 0


def test_a_higher_similarity_removes_no_more() -> None:
    rows = [row for number in range(0, 60, 4) for row in near(number)[1:]]
    rows = [{"id": f"{at:02}", "text": row["text"]} for at, row in enumerate(rows)]
    removed = [nd.dedupe(rows, similarity=s, keep="first", verify="loose").summary["removed"] for s in (0.5, 0.8, 0.95, 1.0)]  # fmt: skip
    assert removed == sorted(removed, reverse=True)
    assert removed[0] > removed[-1]


@pytest.mark.parametrize("verify", ["jaccard", "jaccard:0", "jaccard:2", "jaccard:x", "cosine", "none:1", ""])
def test_a_verification_that_is_none_is_an_error(verify: str) -> None:
    with pytest.raises((InvalidValue, UnknownName)):
        nd.Settings(verify=verify)


def test_strict_loose_and_verify_exclude_each_other(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "a.jsonl", UNIQUE)
    for options in (["--strict", "--verify", "none"], ["--strict", "--loose"], ["--loose", "--strict"]):
        assert neardup("dedupe", path, "-o", tmp_path / "out", *options).code == 2
    assert neardup("dedupe", path, "-o", tmp_path / "out", "--strict", "--quiet").code == 0


# --- the files of a run ----------------------------------------------------------------------------------


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run over lines with odd spacing, unknown fields and one bad line."""
    lines = [
        json.dumps(row) if at % 2 else json.dumps(row, separators=(" ,", " : "))
        for at, row in enumerate(collection(20))
    ]
    lines[3] = lines[3][:-1] + ', "z": 1.50, "\\u00e9": [1,  2]}'
    (tmp_path / "a.jsonl").write_text("\r\n".join([*lines, "not JSON"]))
    done = neardup("dedupe", tmp_path / "a.jsonl", "-o", tmp_path / "out", "--quiet")
    assert done.code == 3, done.err
    return tmp_path


def test_the_columns_are_the_documented_ones(run: Path) -> None:
    annotations = pq.read_schema(run / "out/annotations.parquet")
    assert [(one.name, one.type) for one in annotations] == [
        ("id", pa.string()), ("cluster", pa.string()), ("keep", pa.bool_()), ("duplicate_of", pa.string()),
        ("distance", pa.int32()), ("similarity", pa.float64()),
    ]  # fmt: skip
    evidence = pq.read_schema(run / "out/evidence.parquet")
    assert [(one.name, one.type) for one in evidence] == [
        ("keeper", pa.string()), ("id", pa.string()), ("distance", pa.int32()), ("similarity", pa.float64()),
        ("weighted", pa.float64()), ("rare", pa.float64()), ("accepted", pa.bool_()), ("reason", pa.string()),
        ("scheme", pa.string()), ("radius", pa.int32()),
    ]  # fmt: skip
    page = (Path(__file__).parent.parent / "docs/formats/run.md").read_text()
    for one in (*annotations, *evidence):
        assert f"`{one.name}`" in page


def test_kept_lines_are_those_of_the_input_byte_for_byte(run: Path) -> None:
    keep = {row["id"]: row["keep"] for row in pq.read_table(run / "out/annotations.parquet").to_pylist()}
    lines = (run / "a.jsonl").read_bytes().splitlines(keepends=True)[:-1]
    assert (run / "out/kept.jsonl").read_bytes() == b"".join(
        line for line in lines if keep[json.loads(line)["id"]]
    )


def test_the_manifest_tells_what_was_read_and_written_and_no_time(run: Path) -> None:
    manifest = json.loads((run / "out/manifest.json").read_text())
    data = (run / "a.jsonl").read_bytes()
    assert manifest["inputs"] == [
        {
            "name": str(run / "a.jsonl"),
            "bytes": len(data),
            "sha256": hashlib.sha256(data).hexdigest(),
            "modified": (run / "a.jsonl").stat().st_mtime_ns,  # of the input; nothing else has a time
        }
    ]
    found = {row["name"]: row for row in manifest["outputs"]}
    assert set(found) == {
        "annotations.parquet",
        "evidence.parquet",
        "kept.jsonl",
        "quarantine.jsonl",
        "without_information.jsonl",
    }
    for name, row in found.items():
        data = (run / "out" / name).read_bytes()
        assert (row["bytes"], row["sha256"]) == (len(data), hashlib.sha256(data).hexdigest())
    assert manifest["counts"]["bad"] == 1
    again = neardup("dedupe", run / "a.jsonl", "-o", run / "again", "--quiet")
    assert again.code == 3
    assert files_of(run / "again") == files_of(run / "out")
    assert neardup("check", run / "out", run / "again").code == 0


def test_the_quarantine_tells_place_and_reason(run: Path) -> None:
    row = json.loads((run / "out/quarantine.jsonl").read_text())
    assert (row["file"], row["raw"]) == (str(run / "a.jsonl"), "not JSON")
    data = (run / "a.jsonl").read_bytes()
    assert data[row["offset"] :] == b"not JSON"
    assert row["line"] == data.count(b"\n") + 1


def test_the_last_line_names_the_reason_that_most_bad_records_have(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "a.jsonl", [{"id": "n", "txt": 7}, *({"text": "no txt"} for _ in range(3))])
    (tmp_path / "b.jsonl.gz").write_bytes(b"not gzip")
    write_jsonl(tmp_path / "c.jsonl", [{"id": "good", "txt": "a text"}])
    inputs = [tmp_path / "b.jsonl.gz", path, tmp_path / "c.jsonl"]
    command = ["dedupe", *inputs, "-o", tmp_path / "out", "--text-field", "txt"]
    for _ in range(2):  # also of a run that was done before
        done = neardup(*command, "--quiet")
        assert done.code == 4
        assert done.err.splitlines()[-1] == (
            f"neardup: 4 bad records are in {tmp_path}/out/quarantine.jsonl, "
            f"such as {str(path)!r} line 2: has no field 'txt'"
        )


def test_the_second_document_with_an_id_is_a_bad_record_that_names_both_places(tmp_path: Path) -> None:
    one = write_jsonl(tmp_path / "a.jsonl", [{"id": "x", "text": "one"}, {"id": "y", "text": "two"}])
    two = write_jsonl(tmp_path / "b.jsonl", [{"id": "z", "text": "three"}, {"id": "x", "text": "four"}])
    done = neardup("dedupe", one, two, "-o", tmp_path / "out", "--quiet")
    assert done.code == 3
    row = json.loads((tmp_path / "out/quarantine.jsonl").read_text())
    assert (row["file"], row["line"]) == (str(two), 2)
    assert row["reason"] == f"duplicate id 'x'; first seen in {str(one)!r}, line 1"
    strict = neardup("dedupe", one, two, "-o", tmp_path / "strict", "--quiet", "--strict-input")
    assert strict.code == 5
    assert not (tmp_path / "strict/manifest.json").exists()


def test_documents_without_information_are_listed_and_not_only_counted(tmp_path: Path) -> None:
    out, report = tmp_path / "out", tmp_path / "out/report.html"
    texts = {"b<": "...", "a": "", "B": " \n", "c": " ".join(BASE), "ref": "!"}
    rows = [{"id": id, "text": text} for id, text in texts.items()]
    path, ref = write_jsonl(tmp_path / "in.jsonl", rows[:-1]), write_jsonl(tmp_path / "ref.jsonl", rows[-1:])
    options = ["-o", out, "--report", report, "--quiet", "--protect", ref]
    assert neardup("dedupe", path, *options).code == 0
    listed = out / "without_information.jsonl"
    assert [json.loads(line) for line in listed.read_text().splitlines()] == [
        {"id": "B"},
        {"id": "a"},
        {"id": "b<"},
    ]
    assert "without_information.jsonl" in [
        row["name"] for row in json.loads((out / "manifest.json").read_text())["outputs"]
    ]
    assert "b&lt;</bdi>; <code>without_information.jsonl</code> lists them all" in report.read_text()
    listed.write_text("")
    assert neardup("check", out).code != 0
    write_jsonl(path, rows[3:-1])
    assert neardup("dedupe", path, *options, "--overwrite").code == 0
    assert not listed.exists()


def test_annotate_only_writes_no_documents_and_apply_writes_them_later(run: Path) -> None:
    done = neardup("dedupe", run / "a.jsonl", "-o", run / "only", "--annotate-only", "--quiet")
    assert done.code == 3
    assert set(files_of(run / "only")) == {
        "annotations.parquet",
        "evidence.parquet",
        "manifest.json",
        "quarantine.jsonl",
        "without_information.jsonl",
    }
    assert neardup("apply", run / "only", "-o", run / "applied").code == 0
    assert (run / "applied/kept.jsonl").read_bytes() == (run / "out/kept.jsonl").read_bytes()


def test_files_that_a_run_proved_to_be_copies_go_to_the_trash_and_come_back(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for name in range(8):
        (folder / f"{name}.txt").write_text(" ".join(words(name % 6, 80)))
    before = files_of(folder)
    assert neardup("dedupe", folder, "-o", tmp_path / "out", "--quiet").code == 0
    log = tmp_path / "log.jsonl"
    assert neardup("apply", tmp_path / "out", "--trash", tmp_path / "trash", "--yes", "--log", log).code == 0
    assert len(files_of(folder)) == 6
    assert neardup("undo", log).code == 0
    assert files_of(folder) == before


def test_another_run_in_the_folder_is_replaced_only_when_asked(run: Path) -> None:
    before = files_of(run / "out")
    other = write_jsonl(run / "b.jsonl", UNIQUE)
    done = neardup("dedupe", other, "-o", run / "out", "--quiet")
    assert done.code == 2
    assert "holds another run" in done.err
    assert neardup("dedupe", run / "a.jsonl", "-o", run / "out", "--quiet", "--annotate-only").code == 2
    assert files_of(run / "out") == before
    assert neardup("dedupe", run / "a.jsonl", "-o", run / "out", "--quiet").code == 3
    assert files_of(run / "out") == before
    assert neardup("dedupe", other, "-o", run / "out", "--quiet", "--overwrite").code == 0
    # Nothing of the run before is left: it had a bad record.
    assert set(files_of(run / "out")) == {
        "annotations.parquet",
        "evidence.parquet",
        "kept.jsonl",
        "manifest.json",
    }


def test_a_run_whose_files_were_touched_is_not_taken_for_done(run: Path) -> None:
    (run / "out/kept.jsonl").unlink()
    done = neardup("dedupe", run / "a.jsonl", "-o", run / "out", "--quiet")
    assert done.code == 2
    assert "kept.jsonl is missing" in done.err


def test_files_of_others_are_not_replaced(tmp_path: Path) -> None:
    rows = collection(5)
    path = write_jsonl(tmp_path / "kept.jsonl", rows)
    before = files_of(tmp_path)
    for options in ([], ["--overwrite"]):
        done = neardup("dedupe", path, "-o", tmp_path, "--quiet", *options)
        assert done.code == 2
        assert "choose another" in done.err
    assert files_of(tmp_path) == before
    other = write_jsonl(tmp_path / "in/a.jsonl", rows)
    assert neardup("dedupe", other, "-o", tmp_path, "--quiet").code == 2
    assert files_of(tmp_path) == before


def test_a_run_does_not_read_its_own_outputs(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "a.jsonl", collection(10))
    first = neardup("dedupe", tmp_path, "-o", tmp_path / "out", "--quiet", "--json")
    again = neardup("dedupe", tmp_path, "-o", tmp_path / "out", "--quiet", "--json", "--overwrite")
    assert (first.code, again.code) == (0, 0)
    assert first.out == again.out
    done = neardup("dedupe", tmp_path, "-o", tmp_path, "--quiet")
    assert done.code == 2


def test_a_work_folder_is_not_taken_for_that_of_other_data(tmp_path: Path) -> None:
    one = nd.dedupe(collection(5), work=str(tmp_path))
    two = nd.dedupe(collection(6), work=str(tmp_path))
    assert (one.summary["documents"], two.summary["documents"]) == (len(collection(5)), len(collection(6)))


def test_a_file_name_that_is_no_text_makes_a_manifest_that_is(tmp_path: Path) -> None:
    name = tmp_path / b"odd-\xff\n.jsonl".decode("utf-8", "surrogateescape")
    write_jsonl(name, collection(5))
    assert neardup("dedupe", name, "-o", tmp_path / "out", "--quiet").code == 0
    manifest = json.loads((tmp_path / "out/manifest.json").read_bytes().decode())
    assert manifest["inputs"][0]["name"] == str(name)
    assert neardup("apply", tmp_path / "out", "-o", tmp_path / "applied").code == 0


def test_the_report_counts_copies_among_the_pairs_that_passed(tmp_path: Path) -> None:
    rows = collection(10)
    path = write_jsonl(tmp_path / "a.jsonl", [*rows, {**rows[0], "id": "copy"}])
    for verify, rule in (("default", None), ("none", UNVERIFIED)):
        out = tmp_path / verify
        options = ["--report", out / "report.html", "--no-guards", "--quiet", "--verify", verify]
        assert neardup("dedupe", path, "-o", out, *options).code == 0
        evidence = pq.read_table(out / "evidence.parquet").to_pylist()
        assert any(row["reason"] == "identical text" for row in evidence)
        passed = sum(row["accepted"] and row["reason"] != rule for row in evidence)
        assert f"<strong>{passed}</strong> passed" in (out / "report.html").read_text()
