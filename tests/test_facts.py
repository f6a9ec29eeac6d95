"""Facts that must be said twice are the same in both places."""

from __future__ import annotations

from pathlib import Path

import neardup as nd
from neardup import search
from neardup.images import thumbs
from neardup.sources import Limits


def test_the_limit_on_pixels_is_that_of_the_decoder() -> None:
    assert Limits().pixels == thumbs.PIXEL_LIMIT


def test_search_knows_an_index_by_the_bytes_with_which_the_core_begins_one(tmp_path: Path) -> None:
    path = tmp_path / "a.nd"
    nd.Index(bits=64, radius=3).save(path)
    assert search.is_index(str(path))
    assert not search.is_index(__file__)
