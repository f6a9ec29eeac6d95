"""Every file of badinput/ and every generated bomb and tree gets a treatment that its manifest allows."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from neardup.sources import Limits, id_path, open_source
from neardup.types import Bad

from .corpus import neardup

HERE = Path(__file__).parent / "badinput"
ENTRIES = json.loads((HERE / "manifest.json").read_text())["entries"]
BY_FILE = {entry["file"]: entry for entry in ENTRIES}
RECORDS = [entry for entry in ENTRIES if entry["kind"] != "image"]
IMAGES = [entry for entry in ENTRIES if entry["kind"] == "image"]


class Outcome:
    """One reading of a path: what came, what was bad."""

    def __init__(self, path: Path, **options: Any) -> None:
        self.bad: list[Bad] = []
        self.source = open_source(str(path), on_bad=self.bad.append, unique=True, **options)
        self.ids = [name for batch in self.source for name in batch.ids.to_pylist()]

    @property
    def treatments(self) -> set[str]:
        """The words of the manifest that describe what happened."""
        if self.source.refused:
            return {"reject_file", "limit"}
        if self.source.skipped and not self.ids:
            return {"skip"}
        if self.source.bad:
            return {"quarantine", "partial", "limit"}
        return {"accept", "normalize"}


def name_of(entry: dict[str, Any]) -> str:
    return entry["file"]


@pytest.mark.parametrize("entry", RECORDS, ids=name_of)
def test_every_stored_file_is_treated_as_its_manifest_allows(entry: dict[str, Any]) -> None:
    outcome = Outcome(HERE / entry["file"])
    assert outcome.treatments & set(entry["allowed"]), [bad.reason for bad in outcome.bad]
    assert outcome.source.documents == len(outcome.ids)
    assert outcome.source.bad + len(outcome.source.refused) == len(outcome.bad)
    if not outcome.source.refused and not outcome.source.skipped:
        missing = [good for good in entry["good_ids"] if not any(name.endswith(good) for name in outcome.ids)]
        assert not missing
    if not {"accept", "normalize"} & set(entry["allowed"]):
        assert not [name for name in outcome.ids if name.startswith("bad-")]
    if entry.get("bad_lines") and outcome.source.bad and entry["allowed"][0] == "quarantine":
        expected = (
            [4, 5] if entry["file"] == "jsonl/wrong_id_type.jsonl" else entry["bad_lines"]
        )  # 17 becomes '17'
        assert [bad.line for bad in outcome.bad] == expected


@pytest.mark.parametrize("entry", RECORDS, ids=name_of)
def test_every_stored_file_reads_the_same_a_second_time(entry: dict[str, Any]) -> None:
    outcome = Outcome(HERE / entry["file"])
    counts = outcome.source.documents, outcome.source.bad, len(outcome.bad), len(outcome.source.skipped)
    assert [name for batch in outcome.source for name in batch.ids.to_pylist()] == outcome.ids
    assert counts == (
        outcome.source.documents,
        outcome.source.bad,
        len(outcome.bad),
        len(outcome.source.skipped),
    )


@pytest.mark.parametrize("entry", IMAGES, ids=name_of)
def test_an_image_is_no_text(entry: dict[str, Any]) -> None:
    outcome = Outcome(HERE / entry["file"])
    assert outcome.ids == []
    assert outcome.treatments <= {"reject_file", "limit", "skip"}


@pytest.mark.parametrize(
    "file",
    [
        "jsonl/lone_surrogate.jsonl",
        "jsonl/duplicate_keys.jsonl",
        "jsonl/nan_infinity.jsonl",
        "jsonl/duplicate_ids.jsonl",
        "jsonl/deep_nesting.jsonl",
        "gzip/truncated.jsonl.gz",
        "gzip/bad_crc.jsonl.gz",
        "gzip/trailing_garbage.jsonl.gz",
        "gzip/not_gzip.jsonl.gz",
        "zstd/bad_checksum.jsonl.zst",
        "zstd/huge_window.jsonl.zst",
        "parquet/page_damaged.parquet",
        "parquet/binary_text.parquet",
        "csv/latin1.csv",
        "csv/unclosed_quote.csv",
        "text/latin1.txt",
        "text/binary_elf.txt",
    ],
)
def test_the_best_treatment_is_the_one_taken(file: str) -> None:
    assert BY_FILE[file]["allowed"][0] in Outcome(HERE / file).treatments


@pytest.mark.parametrize("kind", sorted({entry["kind"] for entry in RECORDS}))
def test_no_stored_file_stops_the_main_job(kind: str, tmp_path: Path) -> None:
    for number, entry in enumerate(entry for entry in RECORDS if entry["kind"] == kind):
        name, out = entry["file"], tmp_path / str(number)
        done = neardup("dedupe", HERE / name, "-o", out, "--quiet", "--no-guards")
        assert done.code in (0, 3, 4), (name, done.err)
        if not Outcome(HERE / name).ids:  # no document, no run; the reason is told
            assert (done.code, (out / "manifest.json").exists()) == (4, False), name
            assert done.err.startswith("neardup: no document came from "), name
            assert done.err.count("\n") == 1, name
            continue
        ids = pq.read_table(out / "annotations.parquet").column("id").to_pylist()
        manifest = json.loads((out / "manifest.json").read_text())
        lines = (out / "quarantine.jsonl").read_bytes().splitlines() if done.code else []
        rows = [json.loads(line) for line in lines]
        assert len(rows) == manifest["counts"]["bad"] + len(manifest["refused"]), name
        assert all(row["reason"] for row in rows)
        if not {"reject_file", "limit"} & set(entry["allowed"]):
            assert not [good for good in entry["good_ids"] if not any(id.endswith(good) for id in ids)], name
        if not {"accept", "normalize"} & set(entry["allowed"]):
            assert not [id for id in ids if id.startswith("bad-")], name


@pytest.mark.parametrize("bomb", ["one_line.jsonl.gz", "z.jsonl.zst", "bucket_flood.jsonl.gz"])
def test_no_bomb_stops_the_main_job(generated: Path, bomb: str, tmp_path: Path) -> None:
    out, good = tmp_path / "out", tmp_path / "good.jsonl"
    good.write_text('{"id": "good", "text": "a text beside the bomb"}\n')
    done = neardup("dedupe", generated / "bombs" / bomb, good, "-o", out, "--quiet", "--no-guards")
    assert done.code in (0, 3, 4), done.err
    assert (out / "manifest.json").exists()


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("generated")
    subprocess.run([sys.executable, HERE / "make_generated.py", folder], check=True, capture_output=True)
    yield folder
    for closed in (folder / "trees/special/closed_dir", folder / "trees/special/unreadable.txt"):
        closed.chmod(0o700)


PEAK = """
import json, sys
from neardup.sources import open_source
from tests.peak import peak
bad = []
source = open_source(sys.argv[1], on_bad=bad.append)
for batch in source: pass
print(json.dumps([peak(), source.documents, [b.reason for b in bad], len(source.refused), len(source.skipped)]))
"""


def measured(path: Path) -> Any:
    """Peak MB, documents, reasons, refused and skipped files of reading *path* in a fresh process."""
    root = HERE.parent.parent
    command = [sys.executable, "-c", PEAK, str(path)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=root)
    return json.loads(done.stdout)


@pytest.mark.parametrize("bomb", ["one_line.jsonl.gz", "z.jsonl.zst"])
def test_a_200_mb_line_is_reported_in_bounded_memory(generated: Path, bomb: str) -> None:
    peak, documents, reasons, _, _ = measured(generated / "bombs" / bomb)
    assert peak < 256
    assert documents == 0
    assert any("the limit is 64.0 MiB per line" in reason for reason in reasons)


def test_a_plain_line_of_200_mb_is_passed_by_and_its_neighbours_are_read(tmp_path: Path) -> None:
    path = tmp_path / "long.jsonl"
    with path.open("wb") as file:
        file.write(b'{"id":"before","text":"a"}\n{"id":"long","text":"')
        for _ in range(200):
            file.write(b"x" * (1 << 20))
        file.write(b'"}\n{"id":"after","text":"b"}\n')
    peak, documents, reasons, _, _ = measured(path)
    assert (documents, len(reasons)) == (2, 1)
    assert peak < 256


@pytest.mark.parametrize(("bomb", "count"), [("many_lines.jsonl.gz", 1), ("bucket_flood.jsonl.gz", 200000)])
def test_many_equal_records_are_read_in_bounded_memory(generated: Path, bomb: str, count: int) -> None:
    peak, documents, _, _, _ = measured(generated / "bombs" / bomb)
    assert documents >= count
    assert peak < 384


def test_special_files_are_not_opened_and_the_terabyte_is_not_read(generated: Path) -> None:
    peak, documents, reasons, refused, skipped = measured(generated / "trees/special")
    assert peak < 256
    assert refused == 0
    assert skipped == 2  # the pipe and the socket
    assert any("1.0 TiB" in reason for reason in reasons)
    unreadable = 0 if os.geteuid() == 0 else 2  # root may read everything
    assert documents == (2 if os.geteuid() == 0 else 1)
    assert len(reasons) == 1 + unreadable


def test_links_are_not_followed_and_a_file_with_two_names_is_read_once(generated: Path) -> None:
    outcome = Outcome(generated / "trees/links")
    root = str(generated / "trees/links")
    assert [os.path.relpath(name, root) for name in outcome.ids] == ["good.txt", "sub/good2.txt"]
    assert "same file" in next(one.reason for one in outcome.source.skipped if one.file.endswith("hard.txt"))
    assert len(outcome.source.skipped) == 9


def test_every_legal_file_name_makes_an_id_that_leads_back_to_the_file(generated: Path) -> None:
    manifest = json.loads((generated / "manifest.json").read_text())
    wanted = next(entry for entry in manifest["entries"] if entry["file"] == "trees/names")["names_hex"]
    outcome = Outcome(generated / "trees/names")
    found = [os.fsencode(os.path.basename(id_path(name))).hex() for name in outcome.ids]
    assert sorted(found) == sorted(wanted)
    assert all(name.isprintable() for name in outcome.ids)


def test_a_path_that_is_too_long_is_reported(generated: Path) -> None:
    outcome = Outcome(generated / "trees/deep")
    assert outcome.ids == []
    assert [bad.reason for bad in outcome.bad] == ["cannot be opened: File name too long"]


def test_limits_are_the_users_to_set(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"id":"a","text":"0123456789"}\n{"id":"b","text":""}\n')
    outcome = Outcome(path, limits=Limits(line=25))
    assert outcome.ids == ["b"]
    assert [bad.line for bad in outcome.bad] == [1]
