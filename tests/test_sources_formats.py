"""Formats, folders, pipes and tables: the same documents from all of them."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import json
import lzma
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import neardup as nd
from neardup._native import Uniques
from neardup.errors import InvalidType, RefusedInput
from neardup.sources import FORMATS, Source, id_path, open_source, path_id
from neardup.sources.delimited import header_line
from neardup.types import Bad, Document

ROWS = [("a", "first text"), ("b", 'with "quotes",\nand lines'), ("c", "häßlich 漢字")]
TABLE = pa.table({"id": [name for name, _ in ROWS], "text": [text for _, text in ROWS], "n": [1, 2, 3]})
JSONL = b"".join(json.dumps({"id": name, "text": text}).encode() + b"\n" for name, text in ROWS)


def rows(source: Source) -> list[tuple[str, str]]:
    return [(row.id, row.content) for batch in source for row in batch]


def written(path: Path) -> Path:
    """*path* with the three documents in the format its name tells."""
    if path.suffix == ".parquet":
        pq.write_table(TABLE, path)
    elif path.suffix == ".arrow":
        with pa.ipc.new_file(str(path), TABLE.schema) as writer:
            writer.write_table(TABLE)
    elif path.suffix == ".arrows":
        with pa.ipc.new_stream(str(path), TABLE.schema) as writer:
            writer.write_table(TABLE)
    elif path.suffix in (".csv", ".tsv"):
        options = pa.csv.WriteOptions(delimiter="\t" if path.suffix == ".tsv" else ",")
        pa.csv.write_csv(TABLE, path, options)
    elif path.suffix == ".zst":
        with pa.CompressedOutputStream(str(path), "zstd") as file:
            file.write(JSONL)
    else:
        packing: dict[str, Callable[[bytes], bytes]]
        packing = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}
        path.write_bytes(packing.get(path.suffix, bytes)(JSONL))
    return path


NAMES = [
    "a.jsonl",
    "a.ndjson",
    "a.jsonl.gz",
    "a.jsonl.bz2",
    "a.jsonl.xz",
    "a.jsonl.zst",
    "a.parquet",
    "a.arrow",
    "a.arrows",
    "a.csv",
    "a.tsv",
]


@pytest.mark.parametrize("name", NAMES)
def test_every_format_gives_the_same_documents_twice(tmp_path: Path, name: str) -> None:
    source = open_source(written(tmp_path / name), fields=["n"] if "json" not in name else [])
    assert rows(source) == ROWS
    assert rows(source) == ROWS
    assert len(source.digests) == 1


@pytest.mark.parametrize("name", NAMES)
def test_the_content_tells_what_the_name_hides(tmp_path: Path, name: str) -> None:
    if name.split(".")[1] in ("csv", "tsv", "arrows"):
        return  # these have no first bytes of their own
    path = written(tmp_path / name).rename(tmp_path / "renamed.jsonl")
    assert rows(open_source(path)) == ROWS


@pytest.mark.parametrize(
    "name", sorted({"a.jsonl.gz", "a.jsonl.xz", "a.jsonl.bz2", "a.jsonl.zst", "a.parquet", "a.arrow"})
)
def test_a_file_cut_or_turned_anywhere_never_raises(tmp_path: Path, name: str) -> None:
    data = written(tmp_path / name).read_bytes()
    path = tmp_path / f"damaged{name[1:]}"
    random = np.random.default_rng(7)
    for trial in range(120):
        hurt = bytearray(data)
        if trial % 2:
            del hurt[random.integers(len(hurt)) :]
        else:
            hurt[random.integers(len(hurt))] ^= 1 << random.integers(8)
        path.write_bytes(hurt)
        source = open_source(path)
        found = rows(source)
        assert len(found) == source.documents
        if len(found) < len(ROWS) and hurt:
            assert source.bad or source.refused or trial % 2


def test_rows_without_ids_are_counted_from_one_in_files(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"text": ["x", "y"]}), path)
    assert rows(open_source(path)) == [(f"{path}:1", "x"), (f"{path}:2", "y")]


def test_a_dictionary_that_stands_for_gigabytes_is_unfolded_in_parts(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    long = "x" * (1 << 20)
    table = pa.table({"text": pa.DictionaryArray.from_arrays(pa.array([0] * 3000, pa.int32()), [long])})
    pq.write_table(table, path)
    sizes = [batch.texts.nbytes for batch in open_source(path)]
    assert sum(sizes) > 3000 << 20
    assert max(sizes) < 16 << 20


@pytest.mark.parametrize("column", [pa.array([1.5]), pa.array([[1]]), pa.array([None], pa.timestamp("s"))])
def test_a_text_column_of_another_type_refuses_the_file(tmp_path: Path, column: Any) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"text": column}), path)
    source = open_source(path)
    assert rows(source) == []
    assert "its column 'text' is" in source.refused[0].reason


def test_semicolons_and_a_header_in_any_order_are_csv_too(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("text;id\r\nx;1\r\n\r\ny;2\r\n")
    assert rows(open_source(path)) == [("1", "x"), ("2", "y")]


def test_an_array_of_json_is_refused_with_the_way_out(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('[{"id":"a","text":"x"}]')
    source = open_source(path)
    assert rows(source) == []
    assert "jq -c" in source.refused[0].reason


def test_one_refused_file_does_not_stop_the_others(tmp_path: Path) -> None:
    bad, good = tmp_path / "bad.parquet", tmp_path / "good.jsonl"
    bad.write_bytes(b"PAR1")
    good.write_bytes(JSONL)
    source = open_source([bad, good])
    assert rows(source) == ROWS
    assert [one.file for one in source.refused] == [str(bad)]


def test_a_folder_is_walked_in_order_with_every_format_in_it(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b/two.txt").write_text("two")
    (tmp_path / "a.md").write_text("one")
    (tmp_path / "c.jsonl").write_bytes(JSONL)
    (tmp_path / "d.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    (tmp_path / "e.txt").write_text("three", encoding="utf-16")
    source = open_source(tmp_path)
    assert [text for _, text in rows(source)] == ["one", "two", *(text for _, text in ROWS), "three"]
    assert [(os.path.basename(one.file), one.reason) for one in source.skipped] == [("d.png", "is an image")]


def test_a_file_named_twice_is_read_once(tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl")
    os.symlink(path, tmp_path / "link.jsonl")
    assert rows(open_source([path, tmp_path / "link.jsonl", path, tmp_path])) == ROWS


def test_html_gives_its_main_text(tmp_path: Path) -> None:
    path = tmp_path / "a.html"
    path.write_text("<html><body><nav>menu</nav><main><p>The <b>main</b> text.</p></main></body></html>")
    assert rows(open_source(path, html=True)) == [(str(path), "The main text.")]
    assert rows(open_source(path))[0][1].startswith("<html>")


def warc(*pages: tuple[str, bytes]) -> bytes:
    body = b""
    for address, page in pages:
        http = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n" + page
        head = f"WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: {address}\r\n"
        head += "WARC-Date: 2024-01-01T00:00:00Z\r\n"
        head += "WARC-Record-ID: <urn:uuid:0>\r\nContent-Type: application/http; msgtype=response\r\n"
        body += head.encode() + b"Content-Length: %d\r\n\r\n" % len(http) + http + b"\r\n\r\n"
    return body


def test_warc_gives_the_pages_of_its_responses(tmp_path: Path) -> None:
    path = tmp_path / "a.warc.gz"
    page = b"<html><body><main><p>Some page.</p></main></body></html>"
    path.write_bytes(gzip.compress(warc(("http://a/", page))) + gzip.compress(warc(("http://b/", page))))
    found = rows(open_source(path))
    assert found == [
        ("http://a/ 2024-01-01T00:00:00Z", "Some page."),
        ("http://b/ 2024-01-01T00:00:00Z", "Some page."),
    ]


def test_a_url_is_read_through_fsspec() -> None:
    import fsspec

    with fsspec.open("memory://a.jsonl.gz", "wb") as file:
        file.write(gzip.compress(JSONL))
    source = open_source("memory://a.jsonl.gz")
    assert rows(source) == ROWS
    assert rows(source) == ROWS


def test_a_url_of_a_text_is_one_document() -> None:
    import fsspec

    for name in ("a.txt", "a"):
        fsspec.filesystem("memory").pipe_file(f"/{name}", JSONL)
    assert rows(open_source("memory://a.txt")) == [("memory://a.txt", JSONL.decode())]
    assert rows(open_source("memory://a")) == ROWS


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("memory://none.jsonl", "no such file"),
        ("file:///none/none.jsonl", "no such file"),
        ("file:///none/*.jsonl", "no such file; patterns are not expanded"),
        ("file:///", "is a folder"),
    ],
)
def test_a_url_that_cannot_be_read_is_one_clear_line(url: str, reason: str) -> None:
    with pytest.raises(RefusedInput) as error:
        rows(open_source(url))
    assert str(error.value) == f"{url!r} cannot be read: {reason}"


def test_standard_input_can_be_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(JSONL))))
    source = open_source("-")
    assert rows(source) == ROWS
    assert rows(source) == ROWS


def test_standard_input_can_be_text_or_csv(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"some words")))
    assert rows(open_source("-", format="text")) == [("stdin", "some words")]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"id,text\na,x\n")))
    assert rows(open_source("-", format="csv")) == [("a", "x")]


def test_a_pipe_that_the_user_names_is_read(tmp_path: Path) -> None:
    path = tmp_path / "pipe.jsonl"
    os.mkfifo(path)
    writer = threading.Thread(target=lambda: path.write_bytes(JSONL))
    writer.start()
    source = open_source(path)
    assert rows(source) == ROWS
    writer.join()
    assert rows(source) == ROWS


def piped(path: Path, data: bytes | bytearray) -> Path:
    """A pipe at *path* that gives *data* to whoever opens it first."""
    os.mkfifo(path)

    def write() -> None:
        while True:
            with contextlib.suppress(OSError):  # nobody reads it yet
                handle = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
                break
        os.set_blocking(handle, True)
        with os.fdopen(handle, "wb") as file, contextlib.suppress(BrokenPipeError):
            file.write(data)

    threading.Thread(target=write, daemon=True).start()
    return path


@pytest.mark.parametrize("again", [True, False])
@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_a_table_in_a_pipe_is_recognised_by_its_first_bytes(tmp_path: Path, kind: str, again: bool) -> None:
    data = written(tmp_path / f"a.{kind}").read_bytes()
    source = open_source(piped(tmp_path / "pipe", data), again=again)
    assert rows(source) == ROWS
    if again:
        assert rows(source) == ROWS


def test_pages_on_standard_input_are_recognised_by_their_first_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    page = b"<html><body><main><p>Some page.</p></main></body></html>"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(warc(("http://a/", page)))))
    assert rows(open_source("-")) == [("http://a/ 2024-01-01T00:00:00Z", "Some page.")]


def test_an_arrow_stream_can_come_through_a_pipe(tmp_path: Path) -> None:
    data = written(tmp_path / "a.arrows").read_bytes()
    assert rows(open_source(piped(tmp_path / "pipe", data), format="arrow")) == ROWS


def test_a_pipe_that_breaks_gives_the_same_documents_again(tmp_path: Path) -> None:
    random = np.random.default_rng(7)
    lines = [{"id": str(number), "text": random.bytes(50).hex()} for number in range(10_000)]
    data = bytearray(gzip.compress("".join(json.dumps(line) + "\n" for line in lines).encode()))
    data[len(data) // 2] ^= 0xFF
    source = open_source(piped(tmp_path / "pipe.jsonl.gz", data))
    first, bad = rows(source), source.bad
    assert len(first) > 1000
    assert bad
    assert (rows(source), source.bad) == (first, bad)


def test_a_pipe_can_be_read_by_two_at_the_same_time(tmp_path: Path) -> None:
    data = b"id,text\n" + b"".join(b"%d,%b\n" % (number, b"x" * 1000) for number in range(10_000))
    source = open_source(piped(tmp_path / "pipe.csv", data))
    assert len(rows(source)) == 10_000
    batches = iter(source)
    count = len(next(batches))
    assert header_line(source.file(source.inputs[0].name), source.request) == b"id,text\n"
    assert count + sum(map(len, batches)) == 10_000


class DataSet:
    """What we ask of a Hugging Face data set."""

    def with_format(self, name: str) -> DataSet:
        assert name == "arrow"
        return self

    def select(self, rows: object) -> Any:
        raise NotImplementedError

    def iter(self, batch_size: int) -> Iterator[pa.Table]:
        return iter([TABLE.slice(0, 2), TABLE.slice(2)])


@pytest.mark.parametrize(
    "make",
    [
        lambda: TABLE,
        lambda: TABLE.combine_chunks().to_batches()[0],
        lambda: TABLE.to_reader(),
        lambda: pl.DataFrame(TABLE),
        lambda: pd.DataFrame(ROWS, columns=["id", "text"]),
        lambda: [{"id": name, "text": text} for name, text in ROWS],
        lambda: iter(ROWS),
        lambda: [Document(name, text) for name, text in ROWS],
        DataSet,
    ],
)
def test_what_a_program_holds_is_read_like_a_file(make: Callable[[], Any]) -> None:
    source = open_source(make())
    assert rows(source) == ROWS
    assert rows(source) == ROWS


def test_documents_in_memory_without_ids_are_counted_from_zero() -> None:
    assert rows(open_source(pa.table({"text": ["x", "y"]}))) == [("0", "x"), ("1", "y")]
    assert rows(open_source(iter(["x", "y"]))) == [("0", "x"), ("1", "y")]


@pytest.mark.parametrize(
    "column", [pd.Series, pl.Series, pa.array, lambda texts: pa.chunked_array([texts]), np.array]
)
def test_a_column_of_texts_is_read_as_texts(column: Any) -> None:
    assert rows(open_source(column(["x", "y"]))) == [("0", "x"), ("1", "y")]


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame({"id": ["a", "b", "c"], "text": ["x", "y", None]}).astype("category"),
        pl.DataFrame({"id": ["a", "b", "c"], "text": ["x", "y", None]}).cast(pl.Categorical),
        pd.DataFrame({"id": [7, 8, 9], "text": ["x", "y", None]}).astype("category"),
    ],
)
def test_a_categorical_column_is_read_as_its_values(table: Any) -> None:
    bad: list[Bad] = []
    found = rows(open_source(table, on_bad=bad.append))
    assert found == [(str(name), text) for name, text in zip(table["id"], ["x", "y"], strict=False)]
    assert (bad[0].reason, json.loads(bad[0].raw)["id"]) == ("its text is null", table["id"][2])


def test_a_table_that_arrow_cannot_hold_is_one_clear_line() -> None:
    with pytest.raises(RefusedInput, match=r"its column 'id' cannot be read: "):
        nd.dedupe(pd.DataFrame({"id": ["a", 1], "text": ["x", "y"]}))


def test_texts_that_are_taken_as_paths_name_the_way_out() -> None:
    with pytest.raises(RefusedInput, match=r"give texts as iter\(texts\)$"):
        open_source(["some words", "other words"])
    with pytest.raises(RefusedInput, match=r"No such file or directory$"):
        open_source(["no such file.jsonl"])


def test_lone_surrogates_of_a_program_become_replacement_characters() -> None:
    assert rows(open_source(iter(["x\ud800y"]))) == [("0", "x\ufffdy")]


def test_hostile_documents_of_a_program_are_bad_records() -> None:
    items = [{"text": 1}, 7, ("a", None), {"id": [], "text": "x"}, (10**5000, "x"), ("b", "good")]
    source = open_source(iter(items))
    assert rows(source) == [("b", "good")]
    assert source.bad == 5


def test_what_is_no_input_is_a_type_error() -> None:
    with pytest.raises(InvalidType, match="not int"):
        open_source(7)


@given(st.binary(min_size=1).filter(lambda name: b"\0" not in name))
def test_every_name_makes_an_id_that_leads_back(name: bytes) -> None:
    path = os.fsdecode(name)
    text = path_id(path)
    assert text.isprintable()
    assert text.encode()
    assert os.fsencode(id_path(text)) == name


@given(st.lists(st.lists(st.integers(0, 60), max_size=40), max_size=20))
def test_uniques_remember_as_a_dict_does(batches: list[list[int]]) -> None:
    uniques, place = Uniques(), 0
    plain: dict[str, int] = {}
    for numbers in batches:
        names = [f"id-{number}" for number in numbers]
        places = np.arange(place, place + len(names))
        place += len(names)
        expected = [plain.setdefault(name, where) for name, where in zip(names, places.tolist(), strict=True)]
        assert uniques.add(names, places).tolist() == expected


def test_uniques_take_at_most_40_bytes_an_id() -> None:
    uniques, count = Uniques(), 200_000
    for start in range(0, count, 10_000):
        names = [f"id-{number}" for number in range(start, start + 10_000)]
        places = np.arange(start, start + 10_000)
        assert (uniques.add(names, places) == places).all()
    assert uniques.add(["id-7"], np.array([count])).tolist() == [7]
    assert uniques.nbytes <= 40 * count


def test_every_format_has_its_reader() -> None:
    for row in FORMATS.values():
        assert callable(getattr(__import__(f"neardup.sources.{row.module}", fromlist=["read"]), "read", None))


def test_help_loads_no_heavy_package() -> None:
    code = "import sys; from neardup.adapters.cli import run; run(['--help']); "
    code += "print({'numpy', 'pyarrow'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.endswith("set()\n")


def test_an_interrupt_is_answered_while_a_pipe_is_silent() -> None:
    code = "import sys; from neardup.sources import open_source; source = open_source('-'); "
    code += "print('ready', flush=True); list(source)"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b"ready\n"
        process.stdin.write(b'{"id":"a","text":"x"}\n')
        process.stdin.flush()
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=10) == -signal.SIGINT
        assert b"KeyboardInterrupt" in process.stderr.read()


def test_a_bad_row_of_a_table_keeps_its_other_cells(tmp_path: Path) -> None:
    columns = {
        "id": ["a", "b"],
        "text": ["words", None],
        "n": [1.5, 2.5],
        "list": [[1], [2, 3]],
        "bytes": [b"\xff", b"\xfe"],
        "far": pa.array([1, 1 << 60], pa.timestamp("s")),
    }
    for data in (pa.table(columns), tmp_path / "t.arrow"):
        if isinstance(data, Path):
            with pa.ipc.new_file(data, pa.table(columns).schema) as file:
                file.write_table(pa.table(columns))
        bad: list[Bad] = []
        source = open_source(str(data) if isinstance(data, Path) else data, on_bad=bad.append)
        assert sum(len(batch) for batch in source) == 1
        cells = json.loads(bad[0].raw)
        assert {name: cells[name] for name in ("id", "text", "n", "list")} == {
            "id": "b",
            "text": None,
            "n": 2.5,
            "list": [2, 3],
        }
        assert cells["bytes"] == "\\xfe"
        assert "1152921504606846976" in cells["far"]
