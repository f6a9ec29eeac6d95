"""The values that travel from sources to sinks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from neardup.types import Batch, Document, label


def batch(fields: pa.RecordBatch | None = None) -> Batch:
    ids, texts = (pa.array(list(some), pa.large_string()) for some in ("ab", "xy"))
    return Batch(ids, texts, "a.jsonl", np.array([1, 2]), fields)


def test_a_batch_gives_each_document_by_itself() -> None:
    assert list(batch()) == [Document("a", "x"), Document("b", "y")]
    with_fields = batch(pa.record_batch({"n": [1, 2]}))
    assert list(with_fields)[1] == Document("b", "y", {"n": 2})
    assert len(with_fields) == 2


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (7, "7"),
        (7.0, "7"),
        (7.5, "7.5"),
        ("7", "7"),
        (True, "true"),
        (None, None),
        ({"a": ["é"]}, '{"a": ["é"]}'),
    ],
)
def test_a_value_has_one_name_whatever_column_it_comes_from(value: Any, name: str | None) -> None:
    assert label(value) == name
