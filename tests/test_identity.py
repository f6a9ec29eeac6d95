"""No document goes for one that it was not compared with: identity, readings that differ, evidence."""

from __future__ import annotations

import json
import os
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import neardup as nd
from neardup.errors import ChangedInput, InvalidValue, RefusedInput
from neardup.guards import Limits
from neardup.jobs import Job, run_job
from neardup.sizes import Sizes
from neardup.verifiers import REASONS, Verifier, measuring_scheme, parse_measure

from .corpus import At, Rows, collection, edited, neardup, words, write_jsonl

COLLIDING = json.loads((Path(__file__).parent / "xxh3_collision.json").read_text())["texts"]
OPEN = Limits(max_loss=None, max_cluster=None, max_same=None)

TEXTS = [
    "The council approved the budget for the new harbour bridge on Monday evening after a long debate.",
    "The council approved the budget for the new harbour bridge on Monday evening after a long debate!",
    "Rain is expected in the valley until Thursday, with thunder in the hills.",
    "Fish was dear in the market of the old town this week, said the traders.",
    "The train to the north was late again because of snow on the line.",
    "A new school opens in spring near the old mill by the river.",
]


# --- identity --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "choices",
    [
        {},
        {"scheme": nd.scheme("text", hash="blake3-keyed", key="a secret of this test")},
        {"verify": "strict", "similarity": 0.95},
    ],
)
def test_two_texts_that_were_crafted_to_have_one_hash_both_stay(choices: dict[str, Any]) -> None:
    rows = [{"id": name, "text": text} for name, text in zip("ab", COLLIDING, strict=True)]
    result = nd.dedupe(rows, **choices)
    assert result.kept == rows
    (row,) = result.evidence.to_pylist() or [{"accepted": False, "similarity": 0.0}]
    assert not row["accepted"]
    assert row["similarity"] < 0.8


def test_a_file_that_was_crafted_to_be_identical_is_not_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("in").mkdir()
    for name, text in zip("ab", COLLIDING, strict=True):
        Path(f"in/{name}.txt").write_text(text)
    assert neardup("dedupe", "in", "-o", "out", "--quiet", "--no-guards").code == 0
    neardup("apply", "out", "--delete", "--yes")
    assert sorted(os.listdir("in")) == ["a.txt", "b.txt"]


def test_identity_is_another_in_every_run_and_the_results_are_the_same() -> None:
    rows = collection(30)
    first, second = (nd.dedupe(rows, guards=OPEN) for _ in range(2))
    assert first.source.expected.key != second.source.expected.key  # type: ignore[union-attr]
    assert first.annotations.equals(second.annotations)
    assert first.evidence.equals(second.evidence)


# --- what is read again ----------------------------------------------------------------------------------


class Shuffled:
    """Documents in another order each time somebody asks."""

    def __init__(self, rows: Rows, seed: int) -> None:
        self.rows, self.random, self.times = list(rows), random.Random(seed), 0

    def __iter__(self) -> Iterator[dict[str, Any]]:
        self.times += 1
        self.random.shuffle(self.rows)
        yield from list(self.rows)


def test_an_iterable_that_changes_its_order_loses_no_unrelated_document() -> None:
    rows = [{"id": str(at), "text": text} for at, text in enumerate(TEXTS)]
    for seed in range(30):
        data = Shuffled(rows, seed)
        result = nd.dedupe(data)
        gone = {row["id"] for row in result.annotations.to_pylist() if not row["keep"]}
        assert len(gone) == 1
        assert gone < {"0", "1"}
        assert {row["id"] for row in result.kept} == set("012345") - gone
        assert data.times == 1


def test_a_stream_of_record_batches_is_read_once() -> None:
    table = pa.table({"id": list("012345"), "text": TEXTS, "n": range(6)})
    times = 0

    def batches() -> Iterator[pa.RecordBatch]:
        nonlocal times
        times += 1
        yield from table.to_batches(max_chunksize=2)

    result = nd.dedupe(pa.RecordBatchReader.from_batches(table.schema, batches()))
    assert times == 1
    assert result.kept.equals(table.filter(pa.array(result.keep_mask)))


ROWS: Rows = [{"id": str(at), "text": text} for at, text in enumerate(TEXTS)]


@pytest.mark.parametrize(
    "later",
    [
        ROWS[::-1],
        ROWS[:-1],
        [*ROWS, {"id": "6", "text": "one more"}],
        [{**row, "text": row["text"] + " and more"} for row in ROWS],
        [{**row, "id": "x" + row["id"]} for row in ROWS],
    ],
)
@pytest.mark.parametrize("stage", ["fingerprint", "join", "read again", "verify"])
def test_what_is_not_the_same_when_it_is_read_again_ends_the_run(later: Rows, stage: str) -> None:
    data = list(ROWS)

    def change() -> None:
        data[:] = later

    with pytest.raises(RefusedInput, match="changed while it was read"):
        _ = nd.dedupe(data, observer=At(stage, change)).kept


def test_a_file_that_changes_between_two_readings_ends_the_run_and_nothing_is_written(tmp_path: Path) -> None:
    rows = collection(20)
    path = write_jsonl(tmp_path / "a.jsonl", rows)
    before = os.stat(path)
    swapped = [{**row, "text": row["text"][::-1]} for row in rows]

    def change() -> None:
        # The same inode, size and time: only the texts tell.
        with open(path, "r+b") as file:
            file.write(b"".join(json.dumps(row).encode() + b"\n" for row in swapped))
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))

    job = Job([str(path)], str(tmp_path / "out"), guards=False, observer=At("join", change))
    with pytest.raises(ChangedInput, match=f"{re.escape(repr(str(path)))} changed while it was read"):
        run_job(job)
    after = os.stat(path)
    assert (before.st_ino, before.st_size, before.st_mtime_ns) == (
        after.st_ino,
        after.st_size,
        after.st_mtime_ns,
    )
    assert not list((tmp_path / "out").glob("[!.]*"))


def test_a_file_that_is_replaced_between_two_readings_ends_the_run(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "a.jsonl", collection(20))

    def change() -> None:
        write_jsonl(tmp_path / "b.jsonl", collection(20))
        os.replace(tmp_path / "b.jsonl", path)

    job = Job([str(path)], str(tmp_path / "out"), guards=False, observer=At("join", change))
    with pytest.raises(RefusedInput, match="changed while it was read"):
        run_job(job)
    assert not list((tmp_path / "out").glob("[!.]*"))


# --- evidence --------------------------------------------------------------------------------------------

KEEPS = ["central,longest", "longest", "shortest", "first", "last", "max:n", "none"]


def family(count: int) -> Rows:
    """Look-alikes, each near to all others."""
    base = words(3, 60)
    return [{"id": f"f{at:04}", "text": " ".join(edited(base, at)), "n": at % 7} for at in range(count)]


@pytest.mark.parametrize("verify", ["default", "jaccard:0.6", "containment:0.7"])
def test_the_evidence_holds_every_pair_that_was_measured_whatever_the_keep_rule(verify: str) -> None:
    rows = [{**row, "n": at} for at, row in enumerate(collection(40))]
    texts = {row["id"]: row["text"] for row in rows}
    found = []
    for keep in KEEPS:
        result = nd.dedupe(rows, keep=keep, verify=verify, guards=OPEN)
        table = result.evidence.to_pylist()
        # A row of the evidence is about two documents; of equal ones, one text was measured.
        measured = {
            (frozenset((texts[row["keeper"]], texts[row["id"]])), row["similarity"], row["reason"])
            for row in table
            if row["reason"] in REASONS
        }
        assert len(measured) == result.summary["measured_pairs"] == result.summary["candidate_pairs"]
        found.append(measured)
    assert all(measured == found[0] for measured in found)


@pytest.mark.parametrize("keep", ["central,longest", "longest"])
def test_every_row_of_the_evidence_measured_again_from_its_texts_gives_the_same_figures(
    keep: str, tmp_path: Path
) -> None:
    # Few neighbours, so that nearly everything is crowded and keepers look further.
    few = Sizes(neighbours=2)
    rows = [*family(120), *({**row, "n": 0} for row in collection(30))]
    result = nd.dedupe(rows, keep=keep, guards=OPEN, sizes=few)
    assert result.summary["measured_pairs"] > result.summary["documents"]
    texts = {row["id"]: row["text"] for row in rows}
    ids = sorted(texts)
    number = {id: at for at, id in enumerate(ids)}
    table = measuring_scheme().fit([texts[id] for id in ids]).frequencies
    verifier = Verifier(parse_measure("default", 0.64), table, spill=str(tmp_path / "texts"), memory=1 << 26)
    verifier.expect(len(ids), np.arange(len(ids)))
    verifier.add(np.arange(len(ids)), pa.array([texts[id] for id in ids], pa.large_string()))
    evidence = [row for row in result.evidence.to_pylist() if row["reason"] in REASONS]
    assert len(evidence) >= result.summary["measured_pairs"]
    left, right = (np.array([number[row[side]] for row in evidence]) for side in ("keeper", "id"))
    again = verifier.judge(left, right)
    for row, *figures in zip(evidence, again.similarity, again.weighted, again.rare, strict=True):
        assert [row["similarity"], row["weighted"], row["rare"]] == pytest.approx(figures, abs=1e-9), row


def test_a_text_that_was_not_set_aside_is_never_judged_as_empty(tmp_path: Path) -> None:
    verifier = Verifier("default", spill=str(tmp_path / "t"), memory=1 << 20)
    verifier.expect(3, np.array([0, 1]))
    verifier.add(np.array([0]), pa.array(["some text"], pa.large_string()))
    for left, right in ((0, 1), (0, 2)):
        with pytest.raises(InvalidValue, match=f"no text was set aside for document {right}"):
            verifier.judge(np.array([left]), np.array([right]))


# --- protected documents ---------------------------------------------------------------------------------


def test_the_same_document_in_train_and_test_goes_and_says_for_which() -> None:
    train = [{"id": "x", "text": TEXTS[0]}, {"id": "y", "text": TEXTS[2]}]
    result = nd.dedupe(
        train, protect=[{"id": "x", "text": TEXTS[0]}, {"id": "y", "text": TEXTS[4]}], guards=OPEN
    )
    assert result.kept == train[1:]
    assert result.annotations.column("duplicate_of").to_pylist() == ["protected:x", None]
    with pytest.raises(InvalidValue, match="same object"):
        nd.dedupe(train, protect=train)


def test_an_id_that_looks_like_a_protected_one_is_told() -> None:
    with pytest.raises(InvalidValue, match="'protected:x' of the input"):
        nd.dedupe([{"id": "protected:x", "text": "a"}], protect=[{"id": "x", "text": "b"}])


def test_annotations_of_a_run_stand_in_the_order_of_ids_whatever_the_input(tmp_path: Path) -> None:
    rows = collection(10)
    found = []
    for name, data in (("a", rows), ("b", rows[::-1])):
        path = write_jsonl(tmp_path / f"{name}.jsonl", data)
        assert neardup("dedupe", path, "-o", tmp_path / name, "--quiet", "--no-guards").code == 0
        found.append(pq.read_table(tmp_path / name / "annotations.parquet"))
    assert found[0].equals(found[1])
    assert found[0].column("id").to_pylist() == sorted(row["id"] for row in rows)
