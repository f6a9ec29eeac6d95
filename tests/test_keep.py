"""Keep rules: which document of a cluster stays, and that ties go by id."""

from __future__ import annotations

import json
from datetime import date, datetime, timezone
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import neardup as nd
from neardup import keep as rules
from neardup.errors import InvalidValue, UnknownName

from .corpus import (
    UNIQUE,
    copies,
    edited,
    kept,
    neardup,
    words,
    write_jsonl,
)


@pytest.mark.parametrize(
    ("rule", "fields", "stays"),
    [
        ("first", {"x": [0, 0, 0]}, "c0"),
        ("last", {"x": [0, 0, 0]}, "c2"),
        ("max:x", {"x": [1, 10, 9]}, "c1"),
        ("max:x", {"x": ["1", "10", "9"]}, "c1"),
        ("min:x", {"x": [None, 3, 2]}, "c2"),
        ("max:x", {"x": [None, -3, -2]}, "c2"),
        ("max:x", {"x": [2**60, 2**60 + 1, 2**60 - 1]}, "c1"),
        ("max:x", {"x": ["x", None, "0.5"]}, "c2"),
        ("newest:x", {"x": ["2024-01-31", "2024-02-01", None]}, "c1"),
        ("newest:x", {"x": ["2024-05-01T12:00:00+02:00", "2024-05-01T11:00:00Z", "2024-04"]}, "c1"),
        ("newest:x", {"x": ["Tue, 30 Apr 2024 23:00:00 GMT", "Wed, 01 May 2024 01:00:00 +0200 (CEST)", "30 Apr 2024"]}, "c0"),
        ("newest:x", {"x": ["2024-04-30", "Wed, 01 May 2024 10:00:00 EST", "2024-05-01 14:59:59 UTC"]}, "c1"),
        ("newest:x", {"x": ["2024-5-1", "2024-W18-4", "20240430"]}, "c1"),
        ("newest:x", {"x": ["2023", "2024", "2022-12-31"]}, "c1"),
        ("newest:x", {"x": [2023, 2024, 2022]}, "c1"),
        ("oldest:x", {"x": ["2024-05", "2024", "20240501100000"]}, "c1"),
        ("newest:x", {"x": ["2024-05-01", 1714521601000, 1714521600]}, "c1"),
        ("newest:x", {"x": ["01/06/2024", "2001-01-01", "02/06/2024"]}, "c1"),
        ("oldest:x", {"x": ["2024-01-31", "2023-02-01T00:00:00.5Z", None]}, "c1"),
        ("newest:x", {"x": [1.7e9, 1.8e9, 1.6e9]}, "c1"),
        ("oldest:x", {"x": [date(2024, 1, 2), date(2024, 1, 1), None]}, "c1"),
        ("newest:x", {"x": [datetime(2024, 1, 2, tzinfo=timezone.utc), datetime(2024, 1, 3, tzinfo=timezone.utc), None]}, "c1"),
        ("prefer:x=wiki>web", {"x": ["web", "wiki", "other"]}, "c1"),
        ("prefer:x=wiki>web", {"x": ["other", None, "web"]}, "c2"),
        ("prefer:x=2>1", {"x": [1.0, 2.0, 3.0]}, "c1"),
        ("prefer:x=a>b,newest:y", {"x": ["a", "a", "b"], "y": ["2020-01-01", "2021-01-01", "2022-01-01"]}, "c1"),
        ("max:x", {"x": [5, 5, 5]}, "c0"),
        ("max:x,last", {"x": [5, 5, 4]}, "c1"),
    ],
)  # fmt: skip
def test_a_rule_keeps_what_it_says_and_ties_go_by_id(
    rule: str, fields: dict[str, list[Any]], stays: str
) -> None:
    assert kept(copies(**fields), keep=rule) == [stays]


def test_longest_and_shortest_go_by_characters() -> None:
    rows = copies(x=[0, 0, 0])
    rows[1]["text"] += " and a little more of it"
    rows[2]["text"] = rows[2]["text"].rsplit(" ", 2)[0]
    assert kept(rows, keep="longest") == ["c1"]
    assert kept(rows, keep="shortest") == ["c2"]


def test_none_removes_whole_clusters_and_nothing_else() -> None:
    rows = [*copies(x=[1, 2, 3]), {"id": "alone", "text": " ".join(words(2))}]
    assert kept(rows, keep="none") == ["alone"]
    assert kept(rows, keep="none,max:x") == ["alone"]


def test_the_last_line_does_not_say_that_one_stays_where_none_does(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "a.jsonl", [*copies(x=[1, 2]), *UNIQUE])
    done = neardup("dedupe", path, "-o", tmp_path / "out", "--keep", "none", "--quiet")
    assert (
        done.out == "22 documents: 20 stay, 2 are near-duplicates of another, and go with it, in 1 cluster\n"
    )


def test_nothing_goes_for_what_the_rule_puts_after_it() -> None:
    # New and old are too far apart; what lies between is nearer to the old one.
    new = words(5, 300)
    old = edited(new, 1, 90)
    between = list(old)
    for place in np.flatnonzero([a != b for a, b in zip(new, old, strict=True)])[:40]:
        between[place] = new[place]
    rows: list[dict[str, Any]] = [
        {"id": name, "text": " ".join(text), "x": x}
        for name, text, x in (("new", new, 3), ("between", between, 2), ("old", old, 1))
    ]
    result = nd.dedupe(rows, keep="max:x", verify="jaccard:0.5")
    rank = {row["id"]: row["x"] for row in rows}
    gone = {row["id"]: row["duplicate_of"] for row in result.annotations.to_pylist() if row["duplicate_of"]}
    assert all(rank[keeper] > rank[id] for id, keeper in gone.items())


@pytest.mark.parametrize(
    "rule", ["biggest", "max", "max:", "prefer:x", "prefer:x=", "prefer:=a", "longest,", ""]
)
def test_a_rule_that_is_none_is_an_error(rule: str) -> None:
    with pytest.raises((InvalidValue, UnknownName)):
        nd.Settings(keep=rule)


def test_large_numbers_are_compared_as_they_are() -> None:
    ids = pa.array(["b", "a"], pa.large_string())
    order = rules.keep_order(rules.parse_keep("max:x"), ids, np.array([1, 1]), {"x": [10**400, 10**400 + 1]})
    assert order.tolist() == [1, 0]


def test_a_rule_tells_the_fields_that_it_looks_at() -> None:
    keep = rules.parse_keep("prefer:source=wiki>web,newest:date,max:date,longest")
    assert (keep.fields, keep.none) == (("source", "date"), False)
    assert rules.parse_keep("none,first").none


def test_original_and_sharpest_go_by_fields_of_images() -> None:
    keep = rules.parse_keep("original,sharpest")
    assert keep.fields == ("border", "sharpness")
    ids, lengths = pa.array(["a", "b", "c"], pa.large_string()), np.ones(3)
    fields: dict[str, list[Any]] = {"border": [0, 8, 8], "sharpness": [90, 91, None]}
    order = partial(rules.keep_order, ids=ids, lengths=lengths, fields=fields)
    assert order(rules.parse_keep("original")).tolist() == [0, 1, 2]
    assert order(rules.parse_keep("sharpest")).tolist() == [1, 0, 2]
    # What lies on an image counts before its border.
    added = np.array([2, 0, 1], dtype=np.uint32)
    assert order(rules.parse_keep("original"), added=added).tolist() == [1, 2, 0]


def test_dates_that_are_not_understood_are_counted_with_an_example(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "a.jsonl", copies(x=["2024-01-01", "1/2/2024", None, "soon", "2024", ""]))
    options = ["--keep", "newest:x", "--no-guards", "--quiet"]
    done = neardup("dedupe", path, "-o", tmp_path / "out", *options)
    assert done.code == 0
    assert "2 of 6 documents have a 'x' that is not a date in a known form, such as '1/2/2024'" in done.err
    assert json.loads((tmp_path / "out/manifest.json").read_text())["counts"]["undated"] == 2
