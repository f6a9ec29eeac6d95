"""`neardup.dedupe` as a Python program meets it: what it raises, and what it tells of bad records."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import neardup as nd
from neardup.errors import GuardStopped, RefusedInput
from neardup.guards import Limits

from .corpus import Rows, collection, write_jsonl

SAME: Rows = [{"id": f"s{at}", "text": "one and the same text"} for at in range(5)]


@pytest.mark.parametrize(
    ("table", "choices", "reason"),
    [
        ({"txt": ["a", "b"]}, {}, "has no column 'text'"),
        ({"id": [1.0, None], "text": ["a", "b"]}, {}, "its column 'id' is double"),
        ({"text": ["a", "b"]}, {"keep": "newest:dat"}, "has no column 'dat'"),
    ],
)
def test_a_table_that_is_refused_is_no_empty_result(
    table: dict[str, Any], choices: dict[str, Any], reason: str
) -> None:
    with pytest.raises(RefusedInput, match=reason):
        nd.dedupe(pa.table(table), **choices)
    with pytest.raises(RefusedInput, match=reason):
        nd.dedupe([{"text": "x", "dat": "2024"}], protect=pa.table(table), **choices)


def test_files_that_are_all_refused_are_no_empty_result(tmp_path: Path) -> None:
    bad = [tmp_path / "a.jsonl.gz", tmp_path / "b.jsonl.gz"]
    for path in bad:
        path.write_bytes(b"not gzip")
    with pytest.raises(RefusedInput, match=r"a.jsonl.gz.*2 inputs are refused"):
        nd.dedupe(bad)
    good = write_jsonl(tmp_path / "c.jsonl", collection(5))
    result = nd.dedupe([*bad, good])
    assert (len(result.source.refused), len(result.bad)) == (2, 2)


def test_a_guard_that_stops_lets_nobody_have_the_kept_documents() -> None:
    result = nd.dedupe(SAME)
    with pytest.raises(
        GuardStopped, match=r"would lose 4 of 5.*guards=neardup.guards.Limits\(max_loss=None\)"
    ):
        _ = result.kept
    assert result.annotations.num_rows == 5
    assert result.evidence.num_rows == 4
    for limit in (None, 0.8):
        assert nd.dedupe(SAME, guards=Limits(max_loss=limit)).kept.num_rows == 1


def test_the_second_document_with_an_id_is_told(tmp_path: Path) -> None:
    rows = [{"id": "a", "text": "one"}, {"id": "a", "text": "two"}, {"id": "b", "text": "three"}]
    path = write_jsonl(tmp_path / "a.jsonl", rows)
    for data, file in ((rows, "<memory>"), (path, str(path)), (path, str(path))):
        work = None if data is rows else str(tmp_path / "work")
        (bad,) = nd.dedupe(data, work=work).bad
        assert (bad.file, bad.line) == (file, 2)
        assert bad.reason.startswith("its id 'a' stands already in")


def test_bad_records_are_told_up_to_a_thousand() -> None:
    result = nd.dedupe([{"id": "a", "text": "one"}, *({"txt": "x" * 5000} for _ in range(1200))])
    assert (result.summary["bad"], len(result.bad)) == (1200, 1000)
    assert all(len(bad.raw) <= 1000 for bad in result.bad)


def test_verify_tells_how_many_pairs_are_done_of_how_many(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, Any] = {}

    @contextmanager
    def stage(name: str, **options: Any) -> Iterator[Any]:
        told = seen.setdefault(name, (options, []))[1]
        yield lambda documents, at: told.append(at)

    monkeypatch.setattr("neardup.pipeline.stage", stage)
    monkeypatch.setattr("neardup.verify.PART", 1)
    pairs = nd.dedupe(collection(40)).summary["candidate_pairs"]
    options, told = seen["verify"]
    assert (options["total"], options["unit"]) == (pairs, "pairs")
    assert told == sorted(told)
    assert len(set(told)) > 3
    assert told[-1] == pairs
