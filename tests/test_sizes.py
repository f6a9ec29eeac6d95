"""Sizes decide time and memory, and no answer."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest

import neardup as nd
from neardup.errors import InvalidType
from neardup.sizes import USUAL, Sizes

from .corpus import collection


@pytest.mark.parametrize("verify", ["default", "jaccard:0.5", "none"])
def test_a_run_in_the_smallest_steps_says_the_same(tmp_path: Path, verify: str) -> None:
    small = Sizes(rows=1, round=1, part=1, checkpoint_seconds=-1.0)
    usual = nd.dedupe(collection(40), verify=verify)
    other = nd.dedupe(collection(40), verify=verify, sizes=small, work=str(tmp_path))
    assert other.annotations.equals(usual.annotations)
    assert other.evidence.equals(usual.evidence)


def test_sizes_are_handed_in_and_never_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        USUAL.rows = 1  # type: ignore[misc]
    with pytest.raises(InvalidType, match="sizes must be Sizes"):
        nd.dedupe([], sizes={"rows": 1})  # type: ignore[arg-type]
