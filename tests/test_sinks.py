"""Sinks: files appear whole, cells run nothing, kept records are the original ones."""

from __future__ import annotations

import base64
import errno
import gzip
import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from neardup.errors import InvalidValue, LimitReached, UnknownName
from neardup.files import Digested, atomic_file, file_digest
from neardup.sinks.kept import copy_kept
from neardup.sinks.quarantine import Quarantine, row
from neardup.sinks.tables import open_sink
from neardup.sources import open_source
from neardup.types import Bad

TABLE = pa.table({"id": ["a", "=cmd()", "c"], "n": [1, None, 3], "bytes": [b"\x01", None, b"\xff"]})


def test_a_file_appears_when_it_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "out"
    with atomic_file(path) as file:
        file.write(b"all of it")
        assert not path.exists()
    assert path.read_bytes() == b"all of it"
    assert os.listdir(tmp_path) == ["out"]


def test_a_failure_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), atomic_file(tmp_path / "out"):
        raise ZeroDivisionError
    assert os.listdir(tmp_path) == []


def test_a_failure_keeps_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_bytes(b"old")
    with pytest.raises(ZeroDivisionError), atomic_file(path, overwrite=True) as file:
        file.write(b"new" * (1 // 0))
    assert path.read_bytes() == b"old"


def test_an_existing_file_is_not_replaced_unasked(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_bytes(b"old")
    with pytest.raises(InvalidValue, match="exists; choose another name"), atomic_file(path):
        pass
    with atomic_file(path, overwrite=True) as file:
        file.write(b"new")
    assert path.read_bytes() == b"new"


def test_a_file_that_came_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "out"
    with pytest.raises(InvalidValue, match="exists"), atomic_file(path):
        path.write_bytes(b"another's")
    assert path.read_bytes() == b"another's"
    assert os.listdir(tmp_path) == ["out"]


def test_new_files_have_the_usual_mode(tmp_path: Path) -> None:
    with atomic_file(tmp_path / "out"):
        pass
    (tmp_path / "plain").touch()
    assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == stat.S_IMODE(
        (tmp_path / "plain").stat().st_mode
    )


def test_a_folder_that_is_not_there_is_one_clear_line(tmp_path: Path) -> None:
    with (
        pytest.raises(LimitReached, match=r"cannot write '.*none/out': No such file"),
        atomic_file(tmp_path / "none/out"),
    ):
        pass


def test_a_full_disk_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(LimitReached, match="No space left on device"), atomic_file(tmp_path / "out"):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert os.listdir(tmp_path) == []


def test_a_file_too_large_for_its_limit_is_one_clear_line(tmp_path: Path) -> None:
    code = """
import resource, signal, sys
from neardup.errors import LimitReached
from neardup.files import Digested, atomic_file, file_digest
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    with atomic_file(sys.argv[1]) as file:
        file.write(b"x" * 100_000)
except LimitReached as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "out"], check=True, capture_output=True, text=True
    )
    assert "File too large" in done.stdout
    assert os.listdir(tmp_path) == []


def written(path: Path, table: pa.Table = TABLE, **options: Any) -> Path:
    with open_sink(path, table.schema, **options) as sink:
        for batch in table.to_batches(max_chunksize=2):
            sink.write(batch)
    return path


def test_jsonl_has_an_object_a_row(tmp_path: Path) -> None:
    lines = written(tmp_path / "a.jsonl").read_text().splitlines()
    assert json.loads(lines[1]) == {"id": "=cmd()", "n": None, "bytes": None}
    assert json.loads(lines[2]) == {"id": "c", "n": 3, "bytes": "ff"}


def test_csv_cells_run_nothing_in_a_spreadsheet(tmp_path: Path) -> None:
    assert written(tmp_path / "a.csv").read_text() == "id,n,bytes\na,1,01\n'=cmd(),,\nc,3,ff\n"


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow"])
def test_tables_come_back_as_they_were(tmp_path: Path, name: str) -> None:
    table = TABLE.replace_schema_metadata({"neardup.bits": "64"})
    path = written(tmp_path / name, table)
    back = pq.read_table(path) if name.endswith("parquet") else pa.ipc.open_file(str(path)).read_all()
    assert back.equals(table)
    assert back.schema.metadata[b"neardup.bits"] == b"64"


@pytest.mark.parametrize("ending", [".gz", ".zst", ".xz", ".bz2"])
def test_compressed_files_come_back_and_are_the_same_every_time(tmp_path: Path, ending: str) -> None:
    table = pa.table({"id": ["a"], "text": ["some words"]})
    first = written(tmp_path / f"a.jsonl{ending}", table)
    again = written(tmp_path / f"b.jsonl{ending}", table)
    assert first.read_bytes() == again.read_bytes()
    assert [one.content for batch in open_source(first) for one in batch] == ["some words"]


@pytest.mark.parametrize("name", ["a.txt", "a", "a.parquet.gz"])
def test_an_unknown_ending_is_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(UnknownName, match=r"known endings: \.jsonl"):
        written(tmp_path / name)


def test_the_quarantine_holds_the_bytes_of_every_record(tmp_path: Path) -> None:
    with Quarantine(tmp_path / "q.jsonl") as quarantine:
        quarantine.add(Bad("a\udcff.jsonl", 1, 0, "why", b"text"))
        quarantine.add(Bad("b.jsonl", 2, 5, "why", b"\xff\xfe", 1000))
    first, second = map(json.loads, (tmp_path / "q.jsonl").read_text().splitlines())
    assert first == {"file": "file:a%FF.jsonl", "line": 1, "offset": 0, "reason": "why", "raw": "text"}
    assert base64.b64decode(second["raw_base64"]) == b"\xff\xfe"
    assert second["length"] == 1000


def test_an_empty_quarantine_makes_no_file(tmp_path: Path) -> None:
    with Quarantine(tmp_path / "q.jsonl"):
        pass
    assert os.listdir(tmp_path) == []


def test_the_quarantine_is_written_when_the_run_fails(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), Quarantine(tmp_path / "q.jsonl") as quarantine:
        quarantine.add(Bad("a", 1, 0, "why")) or 1 // 0
    assert (tmp_path / "q.jsonl").read_bytes() == row(Bad("a", 1, 0, "why"))


def kept(folder: Path, paths: Any, mask: list[bool], **options: Any) -> list[str]:
    source = open_source(paths, **options)
    assert sum(map(len, source)) == len(mask)
    made = copy_kept(source, np.array(mask), folder)
    assert made == {name: file_digest(name) for name in made}
    return [os.path.basename(name) for name in made]


def test_kept_lines_are_the_original_bytes(tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    lines = [
        b'{ "text" : "x", "id":"a", "n": 1.0 }\r\n',
        b"broken\n",
        b'{"id":"b","text":"\\u00e9"}\n',
        b'{"id":"c","text":"z"}',
    ]
    path.write_bytes(b"".join(lines))
    assert kept(tmp_path, path, [True, False, True]) == ["kept.jsonl"]
    assert (tmp_path / "kept.jsonl").read_bytes() == lines[0] + lines[3] + b"\n"


def test_kept_files_are_compressed_as_the_input_was(tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"id":"a","text":"x"}\n'))
    assert kept(tmp_path, path, [True]) == ["kept.jsonl.gz"]
    assert gzip.decompress((tmp_path / "kept.jsonl.gz").read_bytes()) == b'{"id":"a","text":"x"}\n'


def test_kept_rows_have_every_column_and_the_metadata(tmp_path: Path) -> None:
    table = pa.table({"id": ["a", "b", "c"], "text": ["x", None, "z"], "deep": [[1], [2], [3]]})
    table = table.replace_schema_metadata({"made": "by hand"})
    pq.write_table(table, tmp_path / "in.parquet")
    assert kept(tmp_path, tmp_path / "in.parquet", [False, True]) == ["kept.parquet"]
    back = pq.read_table(tmp_path / "kept.parquet")
    assert back.equals(table.slice(2))
    assert back.schema.metadata[b"made"] == b"by hand"


def arrow(path: Path, table: pa.Table, make: Callable[..., Any] = pa.ipc.new_file) -> Path:
    with make(str(path), table.schema) as file:
        file.write_table(table)
    return path


def test_kept_arrow_rows_are_in_an_arrow_file(tmp_path: Path) -> None:
    table = pa.table({"id": ["a", "b"], "text": ["x", "y"], "deep": [{"n": 1}, None]})
    assert kept(tmp_path, arrow(tmp_path / "in.feather", table), [False, True]) == ["kept.arrow"]
    assert pa.ipc.open_file(str(tmp_path / "kept.arrow")).read_all().equals(table.slice(1))
    stream = arrow(tmp_path / "in.ipc", table, pa.ipc.new_stream)
    assert kept(tmp_path, stream, [True, False]) == ["kept.arrows"]
    assert pa.ipc.open_stream(str(tmp_path / "kept.arrows")).read_all().equals(table.slice(0, 1))


def test_arrow_files_with_dictionaries_of_their_own_get_a_file_each(tmp_path: Path) -> None:
    def table(id: str, kind: str) -> pa.Table:
        return pa.table({"id": [id], "text": ["x"], "kind": [[kind]]}).cast(
            pa.schema(
                [
                    ("id", pa.string()),
                    ("text", pa.string()),
                    ("kind", pa.list_(pa.dictionary(pa.int8(), pa.string()))),
                ]
            )
        )

    tables = {f"{id}.arrow": table(id, kind) for id, kind in (("a", "red"), ("b", "blue"))}
    paths = [arrow(tmp_path / name, one) for name, one in tables.items()]
    assert kept(tmp_path, paths, [True, True]) == ["kept.arrow", "kept-2.arrow"]
    assert pa.ipc.open_file(str(tmp_path / "kept-2.arrow")).read_all().equals(tables["b.arrow"])


def test_parts_that_pandas_wrote_share_one_kept_file(tmp_path: Path) -> None:
    for number in range(3):
        rows = {"id": [f"{number}a", f"{number}b"], "text": ["x", "y"], "kind": [f"kind {number}"] * 2}
        part = pd.DataFrame(rows, index=range(2 * number, 2 * number + 2)).astype({"kind": "category"})
        part.to_parquet(tmp_path / f"{number}.parquet")
    mask = [True, False, True, True, False, True]
    assert kept(tmp_path, sorted(tmp_path.glob("*.parquet")), mask) == ["kept.parquet"]
    back = pd.read_parquet(tmp_path / "kept.parquet")
    assert back["id"].tolist() == ["0a", "1a", "1b", "2b"]
    assert back["kind"].tolist() == ["kind 0", "kind 1", "kind 1", "kind 2"]


def test_arrow_files_that_differ_in_metadata_share_one_kept_file(tmp_path: Path) -> None:
    tables = [pa.table({"id": [name], "text": ["x"]}).replace_schema_metadata({"n": name}) for name in "ab"]
    paths = [arrow(tmp_path / f"{number}.arrow", table) for number, table in enumerate(tables)]
    assert kept(tmp_path, paths, [True, True]) == ["kept.arrow"]
    back = pa.ipc.open_file(str(tmp_path / "kept.arrow")).read_all()
    assert (back["id"].to_pylist(), back.schema.metadata) == (["a", "b"], {b"n": b"a"})


def warc_record(
    number: int, kind: str, body: bytes, content: str = "application/http; msgtype=response"
) -> bytes:
    head = f"WARC/1.1\r\nWARC-Type: {kind}\r\nWARC-Target-URI: http://a/{number}\r\n"
    head += f"WARC-Date: 2024-01-01T00:00:00Z\r\nWARC-Record-ID: <urn:uuid:{number}>\r\nx-odd :  spaced \r\n"
    return (
        f"{head}Content-Type: {content}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body + b"\r\n\r\n"
    )


@pytest.mark.parametrize("ending", ["", ".gz", ".zst"])
def test_kept_pages_of_a_warc_are_the_original_records(tmp_path: Path, ending: str) -> None:
    page = b"HTTP/1.1 200 OK\r\nServer:  x\r\nContent-Type: text/html\r\n\r\n<p>Page \xc3\xa9 "
    pages = [warc_record(number, "response", page + b"word " * 50 * number) for number in range(1, 4)]
    other = warc_record(9, "request", b"GET / HTTP/1.1\r\n\r\n" + b" " * 100_000)
    records = [pages[0], other, pages[1], other, pages[2], other]

    def pack(record: bytes) -> bytes:
        return {"": record, ".gz": gzip.compress(record)}.get(ending) or pa.compress(
            record, "zstd", asbytes=True
        )

    path = tmp_path / f"in.warc{ending}"
    path.write_bytes(b"".join(map(pack, records)))
    assert kept(tmp_path, path, [True, False, True]) == [f"kept.warc{ending}"]
    found = (tmp_path / f"kept.warc{ending}").read_bytes()
    if ending == ".gz":
        assert found.count(b"\x1f\x8b\x08") == 2  # each record by itself, as WARC wants it
        found = gzip.decompress(found)
    elif ending == ".zst":
        found = pa.CompressedInputStream(pa.BufferReader(found), "zstd").read()
    assert found == pages[0] + pages[2]


def test_a_page_of_a_warc_that_is_cut_off_is_bad(tmp_path: Path) -> None:
    page = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>" + b"word " * 400
    whole = [warc_record(number, "response", page) for number in range(2)]
    (tmp_path / "a.warc").write_bytes(b"".join(whole)[:-700])
    (tmp_path / "b.warc").write_bytes(warc_record(2, "response", page))
    bad: list[Bad] = []
    paths = [tmp_path / "a.warc", tmp_path / "b.warc"]
    assert kept(tmp_path, paths, [True, True], on_bad=bad.append) == ["kept.warc"]
    assert (tmp_path / "kept.warc").read_bytes() == whole[0] + warc_record(2, "response", page)
    assert [one.reason.split(":")[0] for one in bad] == ["is cut off"]


def test_a_damaged_warc_is_refused_and_the_others_are_read(tmp_path: Path) -> None:
    page = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>" + b"word " * 400
    (tmp_path / "a.warc").write_bytes(b"WARC/1.1 this is none\n" * 30)
    (tmp_path / "b.warc").write_bytes(warc_record(2, "response", page))
    source = open_source([tmp_path / "a.warc", tmp_path / "b.warc"])
    assert sum(map(len, source)) == 1
    assert [one.file for one in source.refused] == [str(tmp_path / "a.warc")]


def test_a_digest_that_fails_stops_nobody_and_is_told() -> None:
    class Unable:
        def write(self, data: bytes) -> int:
            return len(data)

        flush = tell = None

    with Digested(cast("IO[bytes]", Unable())) as file:
        for _ in range(20):
            file.write("no bytes")
    with pytest.raises(TypeError):
        file.digest()


def test_kept_csv_rows_have_their_header_and_quotes(tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    path.write_bytes(b'id,text,n\na,"x\ny",1\nb,ragged\nc,"z",3\n')
    assert kept(tmp_path, path, [True, False]) == ["kept.csv"]
    assert (tmp_path / "kept.csv").read_bytes() == b'id,text,n\na,"x\ny",1\n'


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_a_csv_file_without_its_last_line_end_is_not_glued_to_the_next_one(
    tmp_path: Path, end: bytes
) -> None:
    (tmp_path / "1.csv").write_bytes(b"id,text" + end + b"a,wool")
    (tmp_path / "2.csv").write_bytes(b"id,text" + end + b"b,lava")
    assert kept(tmp_path, [tmp_path / "1.csv", tmp_path / "2.csv"], [True, True]) == ["kept.csv"]
    assert (tmp_path / "kept.csv").read_bytes() == end.join([b"id,text", b"a,wool", b"b,lava", b""])


def test_inputs_of_several_shapes_get_a_file_each(tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_bytes(b"id,text\na,x\n")
    (tmp_path / "2.csv").write_bytes(b"text,id\ny,b\n")
    (tmp_path / "3.txt").write_bytes(b"words")
    paths = sorted(tmp_path.iterdir())
    assert kept(tmp_path, paths, [True, True, True]) == ["kept.csv", "kept-2.csv", "kept-3.txt"]
    assert (tmp_path / "kept-3.txt").read_text() == f"{tmp_path / '3.txt'}\n"


def test_repeated_ids_are_not_kept(tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    path.write_bytes(b'{"id":"a","text":"x"}\n{"id":"a","text":"y"}\n{"id":"b","text":"z"}\n')
    assert kept(tmp_path, path, [True, True], unique=True) == ["kept.jsonl"]
    assert (tmp_path / "kept.jsonl").read_bytes() == b'{"id":"a","text":"x"}\n{"id":"b","text":"z"}\n'


def test_marks_of_another_input_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    path.write_bytes(b'{"id":"a","text":"x"}\n')
    for marks in ([], [True, True]):
        with pytest.raises(InvalidValue, match="not the input that was judged"):
            copy_kept(open_source(path), np.array(marks, dtype=bool), tmp_path)
    assert sorted(os.listdir(tmp_path)) == ["in.jsonl"]
