"""JSON Lines: any bytes are read, and every line is accounted for."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neardup.errors import LimitReached, RefusedInput, UnknownName
from neardup.sources import Limits, Tolerance, open_source
from neardup.sources.limits import DEFAULT
from neardup.sources.lines import Block, blocks
from neardup.types import Bad

Jsonl = Callable[..., Path]


def read(path: str | Path, **options: Any) -> tuple[list[tuple[str, str]], list[tuple[int | None, str]]]:
    """Ids, texts, and the bad lines with their reasons."""
    bad: list[Bad] = []
    source = open_source(str(path), on_bad=bad.append, **options)
    rows = [(row.id, row.content) for batch in source for row in batch]
    return rows, [(one.line, one.reason) for one in bad]


@pytest.fixture
def jsonl(tmp_path: Path) -> Jsonl:
    def make(*lines: Any, name: str = "a.jsonl") -> Path:
        path = tmp_path / name
        path.write_bytes(
            b"".join(line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n" for line in lines)
        )
        return path

    return make


def test_documents_come_with_their_ids(jsonl: Jsonl) -> None:
    assert read(jsonl({"id": "a", "text": "x"}, {"id": "b", "text": "y"})) == ([("a", "x"), ("b", "y")], [])


def test_without_ids_the_place_is_the_id(jsonl: Jsonl) -> None:
    path = jsonl({"text": "x"}, b"\n", {"text": "y"})
    assert read(path) == ([(f"{path}:1", "x"), (f"{path}:3", "y")], [])


def test_where_the_first_has_an_id_all_need_one(jsonl: Jsonl) -> None:
    rows, bad = read(jsonl({"id": "a", "text": "x"}, {"text": "y"}))
    assert (rows, bad) == ([("a", "x")], [(2, "has no field 'id'")])


def test_a_named_id_field_is_needed(jsonl: Jsonl) -> None:
    assert read(jsonl({"id": "a", "text": "x"}), id_field="key") == ([], [(1, "has no field 'key'")])


def test_a_number_as_an_id_becomes_its_digits(jsonl: Jsonl) -> None:
    rows, bad = read(jsonl({"id": 17, "text": "x"}, {"id": 1.5, "text": "y"}, {"id": True, "text": "z"}))
    assert rows == [("17", "x")]
    assert [line for line, _ in bad] == [2, 3]


def test_a_key_that_stands_twice_is_bad_wherever_it_hides(jsonl: Jsonl) -> None:
    path = jsonl(
        b'{"id":"a","text":"long enough to hide the second","text":"x"}\n',
        b'{"id":"b","text":"x","text":"long enough to hide the first"}\n',
        b'{"id":"c","text":"x","id":"d"}\n',
        b'{"id":"e","text":"says \\"text\\" and \\"id\\"","of":{"text":"nested","id":1}}\n',
    )
    rows, bad = read(path)
    assert [name for name, _ in rows] == ["e"]
    assert bad == [
        (1, "has the key 'text' twice"),
        (2, "has the key 'text' twice"),
        (3, "has the key 'id' twice"),
    ]


@pytest.mark.parametrize(("levels", "fits"), [(127, True), (128, False), (1000, False), (100_000, False)])
def test_nesting_has_a_limit(jsonl: Jsonl, levels: int, fits: bool) -> None:
    rows, bad = read(jsonl(b'{"id":"a","text":"x","of":' + b"[" * levels + b"]" * levels + b"}\n"))
    assert (len(rows), len(bad)) == ((1, 0) if fits else (0, 1))


def test_an_offset_leads_to_the_bytes_of_a_bad_line(jsonl: Jsonl) -> None:
    path = jsonl(b"\xef\xbb\xbf", {"id": "a", "text": "é"}, b"\r\n", b"{broken\r\n", {"id": "b", "text": "y"})
    bad: list[Bad] = []
    assert sum(map(len, open_source(path, on_bad=bad.append))) == 2
    assert path.read_bytes()[bad[0].offset :].startswith(bad[0].raw)
    assert bad[0].raw == b"{broken\r"


def test_extra_fields_come_along(jsonl: Jsonl) -> None:
    path = jsonl({"id": "a", "text": "x", "n": 1, "m": 1}, {"id": "b", "text": "y", "n": 2, "m": "z"})
    [batch] = open_source(path, fields=["n", "m", "none"])
    assert batch.fields is not None
    assert batch.fields.to_pydict() == {"n": [1, 2], "m": ["1", "z"], "none": [None, None]}


def test_a_repeated_id_names_both_places(jsonl: Jsonl) -> None:
    first, second = (
        jsonl({"id": "a", "text": "x"}, name="1.jsonl"),
        jsonl({"id": "a", "text": "y"}, name="2.jsonl"),
    )
    bad: list[Bad] = []
    source = open_source([first, second], unique=True, on_bad=bad.append)
    assert [row.content for batch in source for row in batch] == ["x"]
    assert (bad[0].file, bad[0].line) == (str(second), 1)
    assert bad[0].reason == f"duplicate id 'a'; first seen in {str(first)!r}, line 1"


@pytest.mark.parametrize("fields", [(), ("n",)])
@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("a.jsonl", [b'{"id":"a","text":"x","n":1}\n', b'{ "id":"a", "text":"y", "n":2 }']),
        ("a.csv", [b"id,text,n\n", b"a,x,1\n", b"b,ragged\n", b'a,"y\ny",2\r\n']),
    ],
)
def test_a_repeated_id_keeps_every_field_of_its_record(
    tmp_path: Path, name: str, lines: list[bytes], fields: tuple[str, ...]
) -> None:
    path = tmp_path / name
    path.write_bytes(b"".join(lines))
    bad: list[Bad] = []
    assert sum(map(len, open_source(path, unique=True, fields=fields, on_bad=bad.append))) == 1
    assert bad[-1].raw == lines[-1]
    assert path.read_bytes()[bad[-1].offset :] == lines[-1]


def test_an_integer_of_any_size_is_an_id(jsonl: Jsonl) -> None:
    digits = "12345678901234567890123"
    path = jsonl(b'{"id":%b,"text":"x"}\n{"id":-%b,"text":"y"}\n' % ((digits.encode(),) * 2))
    assert read(path)[0] == [(digits, "x"), (f"-{digits}", "y")]


def test_a_number_that_is_no_integer_is_no_id(jsonl: Jsonl) -> None:
    _, bad = read(jsonl(b'{"id":1e30,"text":"x"}\n'))
    assert bad == [(1, "its 'id' is a number, not text or an integer")]


def test_a_tolerance_stops_the_reading(jsonl: Jsonl) -> None:
    path = jsonl({"id": "a", "text": "x"}, b"1\n", b"2\n")
    assert read(path, tolerance=Tolerance.of("2"))[0] == [("a", "x")]
    with pytest.raises(LimitReached, match=r"line \d+, .*: more than 1 records are bad"):
        read(path, tolerance=Tolerance.of("1"))
    with pytest.raises(LimitReached, match="2 of 3 records are bad"):
        read(path, tolerance=Tolerance.of("50%"))


def test_a_file_that_changes_between_two_readings_is_refused(jsonl: Jsonl) -> None:
    path = jsonl({"id": "a", "text": "x"})
    source = open_source(path)
    assert sum(map(len, source)) == 1
    path.write_text('{"id":"b","text":"yy"}\n')
    with pytest.raises(RefusedInput, match="changed while it was read"):
        list(source)


def test_a_missing_file_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(RefusedInput, match="No such file"):
        open_source(tmp_path / "none.jsonl")


def test_an_unknown_format_is_named() -> None:
    with pytest.raises(UnknownName, match="unknown format 'xml'; known: jsonl, csv"):
        open_source("-", format="xml")


def test_the_digest_is_that_of_the_stored_bytes(jsonl: Jsonl) -> None:
    import hashlib

    path = jsonl(gzip.compress(b'{"id":"a","text":"x"}\n'), name="a.jsonl.gz")
    source = open_source(path)
    assert source.digests == {}
    list(source)
    assert source.digests == {str(path): hashlib.sha256(path.read_bytes()).hexdigest()}


plain_line = st.binary(max_size=40)
near_json = st.sampled_from(
    [
        b'{"id":"a","text":"x"}',
        b'{"text":"y"}',
        b'{"id":1,"text":"\\ud800"}',
        b"{}",
        b"",
        b"null",
        b"[" * 200,
        b"\r",
        b"{",
    ]
)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.one_of(plain_line, near_json), max_size=12).map(b"\n".join))
def test_any_bytes_are_read_and_every_line_is_counted(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.jsonl"
    path.write_bytes(data)
    bad: list[Bad] = []
    source = open_source(path, format="jsonl", on_bad=bad.append)
    documents = sum(map(len, source))
    if source.refused:  # it happens to begin like UTF-16 or a compressed file
        return
    body = data.removeprefix(b"\xef\xbb\xbf")
    assert documents + len(bad) == sum(bool(line.strip(b" \t\r")) for line in body.split(b"\n"))


@given(st.lists(st.binary(max_size=9), max_size=20), st.integers(1, 8))
def test_blocks_hold_every_byte_whatever_the_chunks(chunks: list[bytes], limit: int) -> None:
    data = b"".join(chunks)
    if data[:2] in (b"\xff\xfe", b"\xfe\xff") or data.startswith(b"\xef\xbb\xbf"):
        return
    found = list(blocks(iter([chunk for chunk in chunks if chunk]), limits=Limits(line=limit)))
    lines = data.split(b"\n")
    if not lines[-1]:
        lines.pop()
    seen: list[bytes] = []
    for block in found:
        assert block.line == len(seen) + 1
        assert block.offset == sum(len(line) + 1 for line in lines[: len(seen)])
        if isinstance(block, Block):
            seen += block.lines()
        else:
            assert block.length == len(lines[len(seen)]) > limit
            seen.append(lines[len(seen)])
    assert seen == lines


texts = st.text(st.characters(exclude_categories=["Cs"]))


@settings(deadline=None)
@given(st.lists(texts, min_size=1, max_size=30))
def test_texts_come_as_they_were_written(tmp_path_factory: pytest.TempPathFactory, values: list[str]) -> None:
    path = tmp_path_factory.getbasetemp() / "texts.jsonl"
    path.write_bytes(b"".join(json.dumps({"text": value}).encode() + b"\n" for value in values))
    table = pa.concat_arrays([batch.texts for batch in open_source(path)])
    assert table.to_pylist() == values


def test_the_limits_are_those_that_were_promised() -> None:
    assert (DEFAULT.line, DEFAULT.text, DEFAULT.ratio, DEFAULT.depth) == (64 << 20, 1 << 30, 1000, 128)


def test_a_million_bad_lines_take_time_in_proportion(tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_bytes(b"1\n" * 1_000_000)
    source = open_source(path)
    assert list(source) == []
    assert source.bad == 1_000_000


_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


@given(
    st.lists(st.tuples(st.text(), st.dictionaries(st.sampled_from("xyz"), _VALUES)), max_size=5), st.data()
)
def test_a_block_is_read_alike_with_and_without_doubt(
    tmp_path_factory: pytest.TempPathFactory, documents: list[tuple[str, dict[str, Any]]], data: st.DataObject
) -> None:
    """A line that is none sends the whole block to the reader that tells why."""
    rows = [{"id": f"d{at}", "text": text, **more} for at, (text, more) in enumerate(documents)]
    escaped = data.draw(st.booleans())
    lines = [json.dumps(row, ensure_ascii=escaped).encode() + b"\n" for row in rows]
    path = tmp_path_factory.mktemp("alike") / "a.jsonl"
    path.write_bytes(b"".join(lines))
    expected = [(row["id"], row["text"]) for row in rows]
    assert read(str(path)) == (expected, [])
    path.write_bytes(b"".join([*lines, b"no JSON\n"]))
    found, bad = read(str(path))
    assert found == expected
    assert [line for line, _ in bad] == [len(lines) + 1]
