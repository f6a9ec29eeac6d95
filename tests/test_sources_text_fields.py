"""Several text fields: one text is made of them, the same in every format and every command."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import neardup as nd
from neardup.calibration import Choices, calibrate
from neardup.errors import InvalidType, InvalidValue, NeardupError, RefusedInput
from neardup.runs import Run
from neardup.sources import Limits, Reading, open_source
from neardup.sources.text_fields import BETWEEN, checked, names_of
from neardup.types import Bad, Document

from .corpus import Rows, edited, files_of, neardup, words, write_jsonl

ROWS: Rows = [
    {"id": "a", "title": "First title", "body": 'and "its" body,\nin two lines', "n": 1},
    {"id": "b", "title": None, "body": "a body alone", "n": 2},
    {"id": "c", "title": "a title alone", "body": "", "n": 3},
    {"id": "d", "title": "häßlich", "body": "漢字", "n": 4},
]
JOINED = [
    ("a", 'First title\n\nand "its" body,\nin two lines'),
    ("b", "a body alone"),
    ("c", "a title alone"),
    ("d", "häßlich\n\n漢字"),
]


def read(
    data: Any, text_field: Any = "title,body", **options: Any
) -> tuple[list[tuple[str, str]], list[str]]:
    """Ids and texts, and the reasons of the bad records."""
    bad: list[Bad] = []
    source = open_source(data, text_field=text_field, on_bad=bad.append, **options)
    return [(row.id, row.content) for batch in source for row in batch], [one.reason for one in bad]


# --- how they are written --------------------------------------------------------------------------------

names = st.lists(st.text(",:\\2a", max_size=5), min_size=1, max_size=8).filter(
    lambda some: some == [""] or "" not in some
)


@given(names)
def test_names_in_a_list_are_taken_as_they_are(some: list[str]) -> None:
    assert names_of(checked(some)) == tuple(some)
    assert checked(checked(some)) == checked(some)


@pytest.mark.parametrize("name", ["text", "dc:title", "a b", "a\\b", "", "x:", ":x", "2", "é"])
def test_an_ordinary_name_is_its_own_spelling(name: str) -> None:
    assert checked(name) == name
    assert names_of(name) == (name,)


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        ("title,", InvalidValue, r"text_field 'title,' has an empty name among others"),
        (["", "title"], InvalidValue, r"has an empty name among others"),
        ([], InvalidValue, r"text_field \[\] names no field"),
        ("title:0,body", InvalidValue, r"a field counts 1 to 64 times, not 0; a colon of the name"),
        ("title:65", InvalidValue, r"a field counts 1 to 64 times, not 65"),
        ("a:40,b:40", InvalidValue, r"makes a text of 80 fields; 64 are the most"),
        (3, InvalidType, r"text_field must be the name of a field, or several, not 3"),
        (["title", 3], InvalidType, r"must be the name of a field, or several"),
        (None, InvalidType, r"not None"),
        (b"text", InvalidType, r"not b'text'"),
    ],
)
def test_what_names_no_fields_is_refused(value: Any, error: type[NeardupError], message: str) -> None:
    with pytest.raises(error, match=message):
        Reading(text_field=value)


def test_the_command_line_spells_the_setting_as_its_option() -> None:
    done = neardup("fit", "-", "-o", "x.nds", "--text-field", "title,")
    assert (done.code, done.err[:33]) == (2, "neardup: --text-field 'title,' ha")


# --- every format ----------------------------------------------------------------------------------------


def _jsonl(folder: Path, rows: Rows) -> Any:
    return write_jsonl(folder / "a.jsonl", rows)


def _csv(folder: Path, rows: Rows) -> Any:
    path = folder / "a.csv"
    pa.csv.write_csv(pa.Table.from_pylist(rows), path)
    return path


def _parquet(folder: Path, rows: Rows) -> Any:
    path = folder / "a.parquet"
    pq.write_table(pa.Table.from_pylist(rows), path)
    return path


def _folded(folder: Path, rows: Rows) -> Any:
    """A dictionary in Parquet whose values are few and rows many."""
    path = folder / "folded.parquet"
    table = pa.Table.from_pylist(rows)
    folded = table.column(1).dictionary_encode()
    pq.write_table(table.set_column(1, table.schema.names[1], folded), path)
    return path


def _arrow(folder: Path, rows: Rows) -> Any:
    path, table = folder / "a.arrow", pa.Table.from_pylist(rows)
    with pa.ipc.new_file(str(path), table.schema) as writer:
        writer.write_table(table)
    return path


FORMS: dict[str, Callable[[Path, Rows], Any]] = {
    "jsonl": _jsonl,
    "csv": _csv,
    "parquet": _parquet,
    "parquet with a dictionary": _folded,
    "arrow": _arrow,
    "pyarrow": lambda folder, rows: pa.Table.from_pylist(rows),
    "pandas": lambda folder, rows: pd.DataFrame(rows),
    "polars": lambda folder, rows: pl.DataFrame(rows),
    "list": lambda folder, rows: rows,
    "iterator": lambda folder, rows: iter(rows),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_format_makes_the_same_texts_again_and_again(tmp_path: Path, form: str) -> None:
    source = open_source(FORMS[form](tmp_path, ROWS), text_field="title,body", fields=["n"])
    for _ in range(2):
        assert [(row.id, row.content) for batch in source for row in batch] == JOINED


@pytest.mark.parametrize("form", FORMS)
def test_a_field_that_counts_twice_is_there_twice(tmp_path: Path, form: str) -> None:
    found, _ = read(FORMS[form](tmp_path, ROWS), "body,title:2")
    assert found[3] == ("d", "漢字\n\nhäßlich\n\nhäßlich")


@pytest.mark.parametrize("form", FORMS)
def test_a_name_with_a_comma_or_a_number_is_a_name(tmp_path: Path, form: str) -> None:
    rows = [{"id": "a", "x,y": "one", "z:2": "two"}]
    for text_field in (["x,y", "z:2"], r"x\,y,z\:2"):
        assert read(FORMS[form](tmp_path, rows), text_field) == ([("a", "one\n\ntwo")], [])


TABLES = sorted(FORMS.keys() - {"jsonl", "list", "iterator"})


@pytest.mark.parametrize("form", TABLES)
def test_a_table_without_one_of_the_columns_is_refused_with_those_that_it_has(
    tmp_path: Path, form: str
) -> None:
    bad = read(FORMS[form](tmp_path, ROWS), "titel,body")[1]
    assert len(bad) == 1
    assert bad[0].startswith("has no column 'titel'")
    assert "'title', 'body'" in bad[0]


@pytest.mark.parametrize("form", ["jsonl", "list", "iterator"])
def test_a_field_that_no_record_has_is_an_error_that_lists_what_there_is(tmp_path: Path, form: str) -> None:
    message = "no document has the field 'titel' of text_field; the first one has: 'id', 'title', 'body', 'n'"
    with pytest.raises(InvalidValue, match=message):
        read(FORMS[form](tmp_path, ROWS), "body,titel")


def test_a_field_that_one_record_of_many_files_has_is_none_that_is_misspelt(tmp_path: Path) -> None:
    for number in range(3):
        write_jsonl(tmp_path / f"{number}.jsonl", [{"body": f"b{number}"}])
    write_jsonl(tmp_path / "3.jsonl", [{"title": "t"}])
    assert [text for _, text in read(tmp_path)[0]] == ["b0", "b1", "b2", "t"]


def test_texts_without_fields_are_texts_all_the_same() -> None:
    given = [("a", "one"), Document("b", "two"), "three"]
    assert [text for _, text in read(iter(given))[0]] == ["one", "two", "three"]


def test_inputs_without_fields_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a text")
    (tmp_path / "a.warc").write_bytes(b"WARC/1.0\r\n\r\n")
    reason = "which has no fields to make a text of: title, body"
    for name in ("a.txt", "a.warc"):
        assert read(tmp_path / name) == ([], [f"is {'text' if name == 'a.txt' else 'warc'}, {reason}"])
    done = neardup("dedupe", tmp_path / "a.txt", "-o", tmp_path / "out", "--text-field", "title,body")
    assert done.code == 4
    assert reason in done.err
    assert not (tmp_path / "out").exists()


def test_a_text_is_no_longer_than_a_text_may_be(tmp_path: Path) -> None:
    rows = [{"id": "a", "x": "é" * 40, "y": "y" * 40}, {"id": "b", "x": "é", "y": "y"}]
    for make in FORMS.values():
        data = make(tmp_path, rows)
        assert read(data, "x:2,y", limits=Limits(line=199))[0] == [("b", "é\n\né\n\ny")]
        assert len(read(make(tmp_path, rows), "x:2,y", limits=Limits(line=210))[0]) == 2


def test_dictionaries_that_stand_for_gigabytes_are_unfolded_in_parts(tmp_path: Path) -> None:
    long = "x" * (1 << 19)
    column = pa.DictionaryArray.from_arrays(pa.array([0] * 1000, pa.int32()), [long])
    pq.write_table(pa.table({"title": column, "body": column}), tmp_path / "a.parquet")
    sizes = [batch.texts.nbytes for batch in open_source(tmp_path / "a.parquet", text_field="title,body")]
    assert sum(sizes) > 1000 << 20
    assert max(sizes) < 16 << 20


# --- hostile records -------------------------------------------------------------------------------------

values: st.SearchStrategy[Any] = st.one_of(
    st.none(), st.sampled_from(["", "x", "title", 'say "title"', "é\n"]), st.just(3), st.just([])
)
records = st.lists(
    st.fixed_dictionaries({"id": st.sampled_from("abc")}, optional={"title": values, "body": values}),
    min_size=1,
    max_size=6,
)


def expected(record: dict[str, Any]) -> str | None:
    """What the text of a record is to be, plainly; None if it is bad."""
    found = [record[name] for name in ("title", "body") if record.get(name) is not None]
    if not found or not all(isinstance(value, str) for value in found):
        return None
    return BETWEEN.join(value for value in found if value)


@settings(max_examples=200)
@given(records)
def test_all_readers_make_of_records_what_they_plainly_say(rows: list[dict[str, Any]]) -> None:
    rows = [*rows, {"id": "z", "title": "", "body": ""}]  # both fields are there
    wanted = [(row["id"], text) for row in rows if (text := expected(row)) is not None]
    lines = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.jsonl"
        path.write_bytes(lines)
        found["core"] = read(path)
        found["python"] = read(path, fields=["n"])  # which the core does not read
    found["memory"] = read(rows)
    assert [rows for rows, _ in found.values()] == [wanted] * 3
    assert len({tuple(bad) for _, bad in found.values()}) == 1


def test_why_a_record_has_no_text_is_told() -> None:
    rows = [
        {"title": 3, "body": "x"},
        {"body": None},
        {"n": 1},
        {"title": "x", "body": ["x"]},
        {"title": "t", "body": "b"},
    ]
    assert read(rows)[1] == [
        "its 'title' is a number, not text",
        "its 'title' and 'body' are null",
        "has no field 'title' or 'body'",
        "its 'body' is a list, not text",
    ]


def test_a_row_of_a_table_that_says_nothing_or_no_text_is_bad() -> None:
    table = pa.table({"title": pa.array(["x", None, None]), "body": pa.array([b"\xff", None, b"y"])})
    found, bad = read(table)
    assert [text for _, text in found] == ["y"]
    assert sorted(bad) == ["its 'body' is not UTF-8", "its 'title' and 'body' are null"]


@pytest.mark.parametrize("extra", [[], ["n"]])
def test_a_key_that_stands_twice_is_bad_whichever_it_is(tmp_path: Path, extra: list[str]) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(
        b'{"id":"a","title":"x","body":"y","title":"z"}\n'
        b'{"id":"b","title":"x","body":"y","body":null}\n'
        b'{"id":"c","title":"x","body":"y","id":"d"}\n'
        b'{"id":"e","title":"says \\"title\\" and \\"id\\"","body":"y","of":{"title":"nested"}}\n'
    )
    found, bad = read(path, fields=extra)
    assert [name for name, _ in found] == ["e"]
    assert bad == [f"has the key {name!r} twice" for name in ("title", "body", "id")]


# --- the same answer in every command --------------------------------------------------------------------


def articles() -> Rows:
    """Every third has a copy with another title, every fifth one with an edited body."""
    rows: Rows = []
    for number in range(30):
        title, body = words(number, 8), words(1000 + number, 80)
        made = [(title, body)]
        made += [(words(2000 + number, 8), body)] if number % 3 == 0 else []
        made += [(title, edited(body, number))] if number % 5 == 0 else []
        rows += [
            {"id": f"{number}-{at}", "title": " ".join(one), "body": " ".join(other), "n": at}
            for at, (one, other) in enumerate(made)
        ]
    return rows


def joined(rows: Rows, times: int = 1) -> Rows:
    return [{"id": row["id"], "text": "\n\n".join([row["title"]] * times + [row["body"]])} for row in rows]


@pytest.mark.parametrize("times", [1, 4])
def test_dedupe_answers_as_for_texts_that_were_joined_before(times: int) -> None:
    rows = articles()
    found = nd.dedupe(rows, text_field=f"title:{times},body")
    plain = nd.dedupe(joined(rows, times))
    assert found.annotations.equals(plain.annotations)
    assert found.evidence.equals(plain.evidence)
    assert found.annotations.column("keep").to_pylist().count(False) > 0
    assert all(row in rows for row in found.kept)
    assert found.annotate()[0].keys() == {*rows[0], "cluster", "keep", "duplicate_of", "similarity"}


def test_a_title_that_counts_more_sets_more_apart() -> None:
    rows = articles()
    figures = [
        {
            (row["keeper"], row["id"]): row["similarity"]
            for row in nd.dedupe(rows, text_field=spec).evidence.to_pylist()
        }
        for spec in ("title,body", "title:4,body")
    ]
    pair = ("0-0", "0-1") if ("0-0", "0-1") in figures[0] else ("0-1", "0-0")
    other = pair if pair in figures[1] else pair[::-1]
    assert figures[1][other] < figures[0][pair] - 0.1


def test_a_run_its_explanation_its_page_and_apply_read_the_same_texts(tmp_path: Path) -> None:
    rows = articles()
    path = write_jsonl(tmp_path / "a.jsonl", rows)
    plain = write_jsonl(tmp_path / "plain.jsonl", joined(rows))
    runs = [tmp_path / "several", tmp_path / "plain"]
    assert neardup("dedupe", path, "-o", runs[0], "--text-field", "title,body", "--quiet").code == 0
    assert neardup("dedupe", plain, "-o", runs[1], "--quiet").code == 0
    for name in ("annotations.parquet", "evidence.parquet"):
        assert files_of(runs[0])[name] == files_of(runs[1])[name]
    lines = path.read_bytes().splitlines()
    assert set(files_of(runs[0])["kept.jsonl"].splitlines()) < set(lines)
    assert Run(runs[0]).settings["text_field"] == "title,body"
    pair = Run(runs[0]).first_pair()
    assert pair is not None
    told = [neardup("explain", *pair, "--run", run) for run in runs]
    assert told[0].out == told[1].out
    assert neardup("apply", runs[0], "-o", tmp_path / "again").code == 0
    assert (tmp_path / "again/kept.jsonl").read_bytes() == files_of(runs[0])["kept.jsonl"]
    assert neardup("report", runs[0], "-o", tmp_path / "page.html").code == 0
    assert rows[0]["title"] in (tmp_path / "page.html").read_text("utf-8")
    again = neardup("dedupe", path, "-o", runs[0], "--text-field", "title:1,body", "--quiet")
    assert again.code == 0, again.err  # the same run, and finished


def test_fit_fingerprint_index_and_search_read_the_same_texts(tmp_path: Path) -> None:
    rows = articles()
    path = write_jsonl(tmp_path / "a.jsonl", rows)
    plain = write_jsonl(tmp_path / "plain.jsonl", joined(rows))
    question = joined(rows)[0]["text"]
    answers = []
    for file, options in ((path, ["--text-field", "title,body"]), (plain, [])):
        scheme, index = tmp_path / f"{file.stem}.nds", tmp_path / f"{file.stem}.idx"
        assert neardup("fit", file, "-o", scheme, *options).code == 0
        printed = neardup("fingerprint", file, "--scheme", scheme, *options)
        assert neardup("index", "build", index, file, "--scheme", "text", *options).code == 0
        assert neardup("index", "add", index, file, "--scheme", "text", *options).code == 0
        searched = neardup("search", question, "--in", file, *options)
        answers.append((scheme.read_bytes(), printed.out, index.read_bytes(), searched.out))
    assert answers[0] == answers[1]
    assert len(answers[0][1].splitlines()) == len(rows)
    assert answers[0][3].splitlines()[0].endswith("\t0-0")


def test_calibrate_plants_copies_of_the_same_texts() -> None:
    rows = articles()
    choices = Choices(sample=60, copies=20)
    assert (
        calibrate(rows, text_field=["title", "body"], choices=choices).facts()
        == calibrate(joined(rows), choices=choices).facts()
    )


def test_all_inputs_refused_is_an_error_in_python_too(tmp_path: Path) -> None:
    with pytest.raises(RefusedInput, match="has no column 'titel'"):
        nd.dedupe(str(_csv(tmp_path, ROWS)), text_field="titel,body")
