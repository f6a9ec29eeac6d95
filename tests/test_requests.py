"""Requests: what must be equal for the parts of one run to be used by another."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import neardup as nd
from neardup.contents import CONTENTS
from neardup.guards import OFF
from neardup.requests import Request, run_key
from neardup.settings import Settings
from neardup.sizes import Sizes
from neardup.sources import Reading, open_source

from .corpus import write_jsonl


@pytest.fixture
def request_(tmp_path: Path) -> Request:
    path = write_jsonl(tmp_path / "a.jsonl", [{"id": "a", "text": "some words"}])
    os.utime(path, (1_700_000_000, 1_700_000_000))
    return Request(open_source(path))


@pytest.mark.parametrize(
    "changes",
    [{}, {"threads": 3}, {"memory": 1}, {"sizes": Sizes(rows=1)}, {"settings": Settings(guards=OFF)}],
)
def test_what_changes_no_answer_does_not_change_the_key(request_: Request, changes: dict[str, Any]) -> None:
    assert run_key(replace(request_, **changes)) == run_key(request_)


@pytest.mark.parametrize(
    "changes",
    [{"settings": Settings(keep="longest")}, {"scheme": nd.scheme("news")}, {"scheme": nd.scheme("text")}],
)
def test_what_may_change_an_answer_changes_the_key(request_: Request, changes: dict[str, Any]) -> None:
    assert run_key(replace(request_, **changes)) != run_key(request_)


def test_another_reading_another_file_and_protected_documents_are_another_run(
    request_: Request, tmp_path: Path
) -> None:
    path = str(tmp_path / "a.jsonl")
    keys = {run_key(request_)}
    keys.add(run_key(replace(request_, source=open_source(path, Reading(text_field="body")))))
    keys.add(run_key(replace(request_, protected=open_source(path))))
    os.utime(path, (1_700_000_001, 1_700_000_001))
    keys.add(run_key(replace(request_, source=open_source(path))))
    assert len(keys) == 4


def test_what_is_no_file_is_like_no_other() -> None:
    keys = {run_key(Request(open_source([{"id": "a", "text": "some words"}]))) for _ in range(2)}
    assert len(keys) == 2


def test_a_document_is_called_by_its_content(request_: Request) -> None:
    assert request_.content.noun == "document"
    images = replace(request_, content=CONTENTS.part("image"))
    assert images.content.noun == "image"
    assert run_key(images) != run_key(request_)
    assert request_.sources == [request_.source]
