"""Parts of a run: what its stages keep, and take again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from neardup import _native
from neardup.checkpoints import Checkpoints
from neardup.fingerprints import Fingerprints
from neardup.parts import Surveyed, load_survey, save_fingerprints, save_survey
from neardup.types import RowNumbers

from .corpus import collection
from .stages import KEY, documents, representatives

ROWS = collection(10)


def surveyed() -> Surveyed:
    return Surveyed(documents(ROWS, "rank"), _native.Frequencies(), KEY, first=len(ROWS) - 2, batches=3)


def test_a_survey_comes_back_as_it_was(tmp_path: Path) -> None:
    checkpoints = Checkpoints(str(tmp_path), "key")
    save_survey(checkpoints, surveyed())
    found = load_survey(checkpoints)
    assert found is not None
    assert found.documents.table().equals(surveyed().documents.table())
    assert (found.key, found.first, found.batches, found.counts) == (KEY, len(ROWS) - 2, 3, None)
    assert found.fixed.nonzero()[0].tolist() == [len(ROWS) - 2, len(ROWS) - 1]


def test_a_survey_without_its_frequencies_is_none(tmp_path: Path) -> None:
    checkpoints = Checkpoints(str(tmp_path), "key")
    assert load_survey(checkpoints) is None
    save_survey(checkpoints, replace(surveyed(), counts=[{}]))
    assert load_survey(checkpoints) is not None
    checkpoints.forget("frequencies")
    assert load_survey(checkpoints) is None


def test_fingerprints_are_kept_in_the_order_of_the_documents(tmp_path: Path) -> None:
    checkpoints = Checkpoints(str(tmp_path), "key")
    texts = representatives(ROWS, keep="last")
    placed = texts.place(RowNumbers(np.arange(len(ROWS), dtype=np.int32)))
    words = Fingerprints.of(list(range(len(ROWS))), bits=64)
    save_fingerprints(checkpoints, words, texts, len(ROWS))
    kept = checkpoints.load("fingerprints")
    assert kept is not None
    assert kept.column("fingerprint").combine_chunks().cast(pa.binary()).to_pylist() == [
        int(place).to_bytes(8, "little") for place in placed
    ]
