"""`neardup.dedupe` as a Python program meets it: what it raises, and what it tells of bad records."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import neardup as nd
from neardup.adapters.cli import run
from neardup.contents import texts
from neardup.errors import GuardStopped, InvalidType, RefusedInput
from neardup.guards import Limits
from neardup.jobs import Job, run_job
from neardup.observers import Observer
from neardup.sizes import Sizes
from neardup.sources import open_source

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


def test_with_bands_the_answer_is_that_without_whatever_the_order_and_the_threads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = collection(200)
    expected = nd.dedupe(rows)
    monkeypatch.setattr(texts, "BANDED", 2)
    for given, threads in ((rows, 1), (rows, 3), (rows[::-1], 2)):
        found = nd.dedupe(given, threads=threads)
        assert "bands: " in found.plan
        assert found.annotations.sort_by("id").equals(expected.annotations.sort_by("id"))


def test_a_run_with_bands_resumes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts, "BANDED", 2)
    path, often = write_jsonl(tmp_path / "a.jsonl", collection(60)), Sizes(checkpoint_seconds=-1.0)
    first = nd.dedupe(path, work=str(tmp_path / "work"), sizes=often)
    again = nd.dedupe(path, work=str(tmp_path / "work"), sizes=often)
    assert again.annotations.equals(first.annotations)
    assert again.evidence.equals(nd.dedupe(path).evidence)


def test_a_guard_that_stops_lets_nobody_have_the_kept_documents() -> None:
    result = nd.dedupe(SAME)
    with pytest.raises(
        GuardStopped, match=r"would lose 4 of 5.*guards=neardup.guards.Limits\(max_loss=0.8\)"
    ):
        _ = result.kept
    assert result.annotations.num_rows == 5
    assert result.evidence.num_rows == 4
    for limit in (None, 0.8):
        assert nd.dedupe(SAME, guards=Limits(max_loss=limit)).kept == SAME[:1]


def test_the_second_document_with_an_id_is_told(tmp_path: Path) -> None:
    rows = [{"id": "a", "text": "one"}, {"id": "a", "text": "two"}, {"id": "b", "text": "three"}]
    path = write_jsonl(tmp_path / "a.jsonl", rows)
    for data, file in ((rows, "<memory>"), (path, str(path)), (path, str(path))):
        work = None if data is rows else str(tmp_path / "work")
        (bad,) = nd.dedupe(data, work=work).bad
        assert (bad.file, bad.line) == (file, 2)
        assert bad.reason.startswith("duplicate id 'a'; first seen in")


def test_bad_records_are_told_up_to_a_thousand() -> None:
    result = nd.dedupe([{"id": "a", "text": "one"}, *({"txt": "x" * 5000} for _ in range(1200))])
    assert (result.summary["bad"], len(result.bad)) == (1200, 1000)
    assert all(len(bad.raw) <= 1000 for bad in result.bad)


def test_verify_tells_how_many_pairs_are_done_of_how_many() -> None:
    seen: dict[str, Any] = {}

    class Listener(Observer):
        @contextmanager
        def stage(self, name: str, **options: Any) -> Iterator[Any]:
            told = seen.setdefault(name, (options, []))[1]
            yield lambda documents, at: told.append(at)

    sizes = Sizes(part=1)
    pairs = nd.dedupe(collection(40), observer=Listener(), sizes=sizes).summary["candidate_pairs"]
    options, told = seen["verify"]
    assert (options["total"], options["unit"]) == (pairs, "pairs")
    assert told == sorted(told)
    assert len(set(told)) > 3
    assert told[-1] == pairs


def test_an_iterable_is_asked_in_the_thread_that_called() -> None:
    # A database connection, for one, may be used in no other.
    asked: set[int] = set()

    class Documents:
        def __iter__(self) -> Iterator[dict[str, Any]]:
            for number in range(10_000):
                asked.add(threading.get_ident())
                yield {"id": str(number), "text": f"text number {number}"}

    assert nd.dedupe(Documents()).summary["documents"] == 10_000
    assert asked == {threading.get_ident()}


def test_a_batch_of_long_texts_has_few_of_them() -> None:
    long = ["word " * 200_000] * 5
    assert [len(batch) for batch in open_source(iter(long))] == [3, 2]
    assert [len(batch) for batch in open_source(iter(["word"] * 5000))] == [4096, 904]


def test_a_run_that_goes_on_makes_no_fingerprint_again(tmp_path: Path) -> None:
    seen: list[int] = []

    class Listener(Observer):
        @contextmanager
        def stage(self, name: str, **options: Any) -> Iterator[Any]:
            def advance(documents: int, at: int) -> None:
                seen.append(documents)
                if len(seen) == stop:
                    raise KeyboardInterrupt

            yield advance if name == "fingerprint" else lambda documents, at: None

    parts = [{"id": f"{number:05}", "text": f"the text {number} of many " * 40} for number in range(20_000)]
    path = write_jsonl(tmp_path / "in.jsonl", parts)
    stop = 6
    job = Job(
        [str(path)],
        str(tmp_path / "out"),
        threads=1,
        observer=Listener(),
        sizes=Sizes(checkpoint_seconds=0.0),
    )
    with pytest.raises(KeyboardInterrupt):
        run_job(job)
    before, stop = seen[-2], 0
    seen.clear()
    run_job(job)
    assert before < seen[0], "but for what was at work"
    assert seen[-1] == len(parts)


TEXT = "The council approved the budget for the new harbour bridge on Monday after a long debate."


def test_a_copy_of_a_protected_text_of_another_source_goes_whatever_its_own_source_protects() -> None:
    protect = [{"id": "same source", "text": TEXT, "s": "c"}, {"id": "other", "text": TEXT, "s": "b"}]
    for text in (TEXT, TEXT.upper(), TEXT + " It was late."):
        result = nd.dedupe([{"id": "doc", "text": text, "s": "c"}], protect=protect, across="s")
        (row,) = result.annotations.to_pylist()
        assert (row["keep"], row["duplicate_of"]) == (False, "protected:other")
    result = nd.dedupe([{"id": "doc", "text": TEXT, "s": "b"}], protect=protect[1:], across="s")
    assert result.summary["removed"] == 0, "its own source"


def test_across_sources_every_document_that_goes_is_in_the_evidence_with_its_reason() -> None:
    rows = [{"id": f"{s}{at}", "text": TEXT, "s": s} for s in "ab" for at in range(3)]
    rows += [{"id": "b3", "text": TEXT.upper(), "s": "b"}, {"id": "z", "text": "another text", "s": "b"}]
    for keep in ("none", "first"):
        result = nd.dedupe(rows, across="s", keep=keep, guards=Limits(max_loss=None))
        gone = {row["id"] for row in result.annotations.to_pylist() if not row["keep"]}
        evidence = result.evidence.to_pylist()
        assert gone <= {row[side] for row in evidence for side in ("id", "keeper")}
        assert gone - {"a0"} <= {row["id"] for row in evidence if row["accepted"]}
        assert len(gone) == (7 if keep == "none" else 4)
        rules = {(row["keeper"], row["id"]): row["reason"] for row in evidence}
        assert rules.pop(("a0", "b3")) == "identical but for case, spacing or punctuation"
        assert set(rules.values()) == {"identical text"}


def test_copies_that_go_unverified_have_no_similarity_but_that_of_identical_texts() -> None:
    rows = [{"id": f"{s}{at}", "text": TEXT, "s": s} for s in "ab" for at in range(2)]
    rows += [{"id": f"c{at}", "text": TEXT + " It was late.", "s": "c"} for at in range(2)]
    result = nd.dedupe(rows, across="s", keep="none", verify="none", radius=100, guards=Limits(max_loss=None))
    found = {row["similarity"] for row in result.evidence.to_pylist() if row["reason"] == "identical text"}
    assert found == {1.0}
    others = [row for row in result.evidence.to_pylist() if row["reason"] != "identical text"]
    assert others
    assert all(row["similarity"] is None for row in others)


def test_no_documents_have_no_sources() -> None:
    assert nd.dedupe([], source_field="s").summary["documents"] == 0


def test_the_worst_clusters_and_sources_are_named() -> None:
    rows = [
        {"id": f"{name}{at}", "text": f"{name} " * 9 + TEXT, "s": name}
        for name, count in (("one", 9), ("two", 7), ("three", 5), ("four", 2))
        for at in range(count)
    ]
    result = nd.dedupe(rows, within="s", source_field="s", guards=Limits(max_cluster=4, max_loss=0.7))
    cluster, loss = (str(trip) for trip in result.guards)
    assert "has 9 members; the next ones have 7 (two0, two1" in cluster
    assert "and 5 (three0" in cluster
    assert "(limit 4; for example one0" in cluster
    assert "source 'one' would lose 8 of 9 documents (88.9%); 'two' 6 of 7" in loss
    assert "(limit 70%; for example one" in loss


@pytest.mark.parametrize("keep", ["max:s", "prefer:s=typo>zzz", "min:s"])
def test_a_keep_rule_that_decides_nothing_is_told(
    keep: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [{"id": str(at), "text": f"text {at}", "s": f"source {at}"} for at in range(3)]
    path = write_jsonl(tmp_path / "in.jsonl", rows)
    assert run(["dedupe", str(path), "-o", str(tmp_path / "out"), "--keep", keep]) == 0
    assert f"--keep {keep} decides nothing" in capsys.readouterr().err


@pytest.mark.parametrize("data", [{"id": "a", "text": "hello"}, {"train": [{"text": "a"}]}, b"text"])
def test_a_mapping_or_bytes_are_no_documents(data: Any) -> None:
    with pytest.raises(InvalidType, match="must be a path, a table or an iterable, not"):
        nd.dedupe(data)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_json_lines_through_a_named_pipe_are_json_lines(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: write_jsonl(pipe, collection(3)))
    writer.start()
    assert nd.dedupe(str(pipe)).summary["documents"] == len(collection(3))
    writer.join()
