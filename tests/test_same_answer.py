"""The same documents give the same answer, however they are stored, cut, ordered and counted."""

from __future__ import annotations

import bz2
import csv
import gzip
import json
import lzma
import random
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import neardup as nd
from neardup.jobs import Job, run_job
from neardup.sizes import Sizes
from neardup.sources import Limits, Reading

from .corpus import Rows, collection, edited, neardup, process, words, write_jsonl

ROWS = collection(40) + [
    {"id": f"t{number}", "text": " ".join([*words(9, 30), *words(500 + number, 30)]), "source": "t", "rank": 1, "date": None}
    for number in range(40)
]  # fmt: skip


def answer(folder: Path) -> tuple[bytes, bytes]:
    return (folder / "annotations.parquet").read_bytes(), (folder / "evidence.parquet").read_bytes()


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, bytes]:
    folder = tmp_path_factory.mktemp("plain")
    path = write_jsonl(folder / "a.jsonl", ROWS)
    assert neardup("dedupe", path, "-o", folder / "out", "--quiet").code == 0
    return answer(folder / "out")


def store(folder: Path, form: str, rows: Rows) -> list[Path]:
    """*rows* in files of a form."""
    lines = "".join(json.dumps(row) + "\n" for row in rows).encode()
    if form == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), folder / "a.parquet", row_group_size=7)
        return [folder / "a.parquet"]
    if form == "arrow":
        table = pa.Table.from_pylist(rows)
        with pa.ipc.new_file(folder / "a.arrow", table.schema) as file:
            file.write_table(table, max_chunksize=11)
        return [folder / "a.arrow"]
    if form == "csv":
        with (folder / "a.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
        return [folder / "a.csv"]
    if form == "split":
        parts = [rows[at::3] for at in range(3)]
        return [write_jsonl(folder / f"{at}.jsonl", part) for at, part in enumerate(parts)]
    if form == "mixed":
        return [*store(folder, "parquet", rows[:50]), write_jsonl(folder / "rest.jsonl", rows[50:])]
    packing: dict[str, Callable[[bytes], bytes]] = {
        "gz": gzip.compress,
        "xz": lzma.compress,
        "bz2": bz2.compress,
    }
    path = folder / f"a.jsonl.{form}"
    if form == "zst":
        with pa.CompressedOutputStream(str(path), "zstd") as file:
            file.write(lines)
    else:
        path.write_bytes(packing[form](lines))
    return [path]


@pytest.mark.parametrize("form", ["parquet", "arrow", "csv", "split", "mixed", "gz", "zst", "xz", "bz2"])
def test_the_form_of_the_input_decides_nothing(form: str, tmp_path: Path, plain: tuple[bytes, bytes]) -> None:
    done = neardup("dedupe", *store(tmp_path, form, ROWS), "-o", tmp_path / "out", "--quiet")
    assert done.code == 0, done.err
    assert answer(tmp_path / "out") == plain


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_order_of_the_input_decides_nothing(
    seed: int, tmp_path: Path, plain: tuple[bytes, bytes]
) -> None:
    rows = random.Random(seed).sample(ROWS, len(ROWS))
    path = write_jsonl(tmp_path / "a.jsonl", rows)
    assert neardup("dedupe", path, "-o", tmp_path / "out", "--quiet").code == 0
    assert answer(tmp_path / "out") == plain


@pytest.mark.parametrize("threads", [1, 2, 8])
def test_the_number_of_threads_decides_nothing_not_even_in_the_manifest(threads: int, tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "a.jsonl", ROWS)
    neardup("dedupe", path, "-o", tmp_path / "one", "--quiet")
    neardup("dedupe", path, "-o", tmp_path / "two", "--quiet", "--threads", threads)
    for name in ("annotations.parquet", "evidence.parquet", "kept.jsonl", "manifest.json"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


@pytest.mark.parametrize("level", ["scalar", "avx2", "avx512-base", "avx512"])
def test_the_vector_unit_decides_nothing(level: str, tmp_path: Path, plain: tuple[bytes, bytes]) -> None:
    path = write_jsonl(tmp_path / "a.jsonl", ROWS)
    done = process("dedupe", path, "-o", tmp_path / "out", env={"NEARDUP_SIMD": level})
    assert done.returncode == 0, done.stderr
    assert answer(tmp_path / "out") == plain


def test_the_size_of_batches_decides_nothing(tmp_path: Path, plain: tuple[bytes, bytes]) -> None:
    path = write_jsonl(tmp_path / "a.jsonl", ROWS)
    scheme = nd.scheme("text")
    reading = Reading(limits=Limits(line=1 << 20))
    run_job(Job([str(path)], str(tmp_path / "out"), scheme, reading=reading, sizes=Sizes(block=900, round=3)))
    assert answer(tmp_path / "out") == plain


def test_how_many_rows_are_made_at_a_time_decides_nothing() -> None:
    found = nd.dedupe(ROWS)
    assert len(list(found.evidence_batches())) == 1
    again = nd.dedupe(ROWS, sizes=Sizes(rows=7))
    assert len(list(again.evidence_batches())) > 3
    assert again.annotations.equals(found.annotations)
    assert again.evidence.equals(found.evidence)


def test_documents_in_memory_give_what_files_give(plain: tuple[bytes, bytes], tmp_path: Path) -> None:
    whole = pa.Table.from_pylist(ROWS)
    (tmp_path / "a").write_bytes(plain[0])
    (tmp_path / "e").write_bytes(plain[1])
    pairs = [(row["id"], row["text"]) for row in ROWS]
    for data in (ROWS, iter(ROWS), whole, whole.to_reader(max_chunksize=9), pairs):
        result = nd.dedupe(data)
        assert result.annotations.sort_by("id").equals(pq.read_table(tmp_path / "a"))
        assert result.evidence.equals(pq.read_table(tmp_path / "e"))


@pytest.mark.parametrize("keep", ["newest:date", "max:rank,longest", "prefer:source=b>a", "shortest"])
def test_no_rule_but_first_and_last_looks_at_the_order(keep: str) -> None:
    found = nd.dedupe(ROWS, keep=keep)
    again = nd.dedupe(random.Random(5).sample(ROWS, len(ROWS)), keep=keep)
    assert again.annotations.sort_by("id").equals(found.annotations.sort_by("id"))
    assert again.evidence.equals(found.evidence)


@pytest.mark.parametrize("rule", ["newest:when", "prefer:when=2>2024-03-01>true"])
def test_what_stands_in_a_batch_with_a_value_decides_nothing(rule: str, tmp_path: Path) -> None:
    # Numbers, texts and booleans in one field: together in one batch, or each in its own.
    values = [1, "2024-03-01", 2.5, True, None, "x", 2, "y", -1, 2.0]
    rows = [
        {"id": f"{number}-{copy}", "text": " ".join(edited(words(number, 150), copy, copy)), "when": values[(number + copy) % 10]}
        for number in range(10)
        for copy in range(3)
    ]  # fmt: skip
    path = write_jsonl(tmp_path / "a.jsonl", rows)
    one = nd.dedupe(path, keep=rule)
    assert nd.dedupe(path, keep=rule, sizes=Sizes(block=100)).annotations.equals(one.annotations)
    assert one.summary["removed"] > 5


def test_check_proves_two_runs_equal_and_shows_where_others_differ(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "a.jsonl", ROWS)
    shuffled = write_jsonl(tmp_path / "b.jsonl", random.Random(4).sample(ROWS, len(ROWS)))
    for name, source, more in (
        ("one", path, []),
        ("two", shuffled, []),
        ("other", path, ["--keep", "shortest"]),
    ):
        neardup("dedupe", source, "-o", tmp_path / name, "--quiet", *more)
    equal = neardup("check", tmp_path / "one", tmp_path / "two")
    assert (equal.code, equal.out.splitlines()[0][:6]) == (0, "equal:")
    other = neardup("check", tmp_path / "one", tmp_path / "other")
    assert other.code == 1
    assert "documents with another decision" in other.out
    assert neardup("check", tmp_path / "one").code == 0
