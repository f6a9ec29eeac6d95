"""Results in Python: their page, and the folder that a job would have written."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import neardup as nd
from neardup.errors import GuardStopped, InvalidValue
from neardup.guards import Limits
from neardup.runs import Run

from .corpus import collection, files_of, neardup, write_jsonl


def test_a_written_result_is_what_the_command_line_writes(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "a.jsonl", [*collection(20), {"id": "bad", "text": 7}])
    nd.dedupe(path, guards=False).write(tmp_path / "one")
    neardup("dedupe", path, "-o", tmp_path / "two", "--quiet", "--no-guards")
    one, two = files_of(tmp_path / "one"), files_of(tmp_path / "two")
    manifests = [json.loads(files.pop("manifest.json")) for files in (one, two)]
    assert one == two
    assert manifests[0]["counts"] == manifests[1]["counts"]
    assert manifests[0]["inputs"] == manifests[1]["inputs"]
    assert not Run(tmp_path / "one").problems()


def test_what_a_program_handed_over_is_written_without_kept_documents(tmp_path: Path) -> None:
    result = nd.dedupe(collection(20), guards=False)
    result.write(tmp_path / "out")
    assert not [name for name in files_of(tmp_path / "out") if name.startswith("kept")]
    assert pq.read_table(tmp_path / "out/evidence.parquet").equals(result.evidence)


def test_a_result_is_not_written_over_a_run_or_past_a_guard(tmp_path: Path) -> None:
    rows = collection(20)
    nd.dedupe(rows, guards=False).write(tmp_path / "out")
    with pytest.raises(InvalidValue, match="choose another folder"):
        nd.dedupe(rows, guards=False).write(tmp_path / "out")
    strict = nd.dedupe(rows, guards=Limits(max_loss=0.0))
    with pytest.raises(GuardStopped):
        strict.write(tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_the_page_of_a_result_shows_its_documents(tmp_path: Path) -> None:
    result = nd.dedupe(
        ["the one text of a few words, and more", "The one text of a few words, and more!", "another"]
    )
    result.report(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "Near-duplicates in 3 documents" in page
    assert "The one text of a few words" in page
    with pytest.raises(InvalidValue, match="exists"):
        result.report(tmp_path / "page.html")
    result.report(tmp_path / "page.html", overwrite=True)
