"""Streams: new, near, or one too many; the same in memory and in a collection."""

from __future__ import annotations

from pathlib import Path

import pytest

import neardup as nd
from neardup.errors import InvalidValue

from .articles import article, documents


def test_a_leader_lets_its_budget_pass() -> None:
    seen = nd.Stream(budget=2)
    told = [seen.check(f"d{row}", article(1)) for row in range(4)]
    assert [one.status for one in told] == ["new", "near", "near", "budget used"]
    assert [bool(one) for one in told] == [True, True, True, False]
    assert (told[3].leader, told[3].count, seen.count("d0")) == ("d0", 3, 3)


def test_what_is_forgotten_leads_no_more() -> None:
    seen = nd.Stream()
    seen.check("a", article(1))
    assert seen.forget("a")
    assert not seen.forget("a")
    assert seen.check("b", article(1)).status == "new"
    assert len(seen) == 1


def test_a_leader_that_comes_again_does_not_count_for_itself() -> None:
    seen = nd.Stream(budget=0)
    assert [seen.check("a", article(1)).status for _ in range(3)] == ["new", "near", "near"]
    assert seen.check("a", article(2)).status == "new"
    assert len(seen) == 1


def test_a_radius_compares_fingerprints_only() -> None:
    seen = nd.Stream(radius=0)
    assert seen.check("a", article(1)).status == "new"
    assert seen.check("b", article(1, 2)).status == "new"
    assert seen.check("c", article(1)).leader == "a"


def test_a_text_without_information_is_near_nothing() -> None:
    seen = nd.Stream()
    assert [seen.check(id, "...").status for id in "ab"] == ["new", "new"]


def test_a_stream_in_a_collection_goes_on_where_it_was(tmp_path: Path) -> None:
    docs = documents(30, 5, seed=2)
    memory = nd.Stream(budget=3)
    expected = [memory.check(str(each["id"]), str(each["text"])) for each in docs]
    found = []
    for part in (docs[:11], docs[11:]):
        with nd.Collection.open(tmp_path / "seen.nd", create=True) as kept:
            stream = nd.Stream(collection=kept, budget=3, bank="pages")
            found += [stream.check(str(each["id"]), str(each["text"])) for each in part]
    assert [(one.status, one.leader, one.count) for one in found] == [
        (one.status, one.leader, one.count) for one in expected
    ]


def test_a_collection_has_a_similarity_of_its_own(tmp_path: Path) -> None:
    kept = nd.Collection.open(tmp_path / "seen.nd", create=True)
    with pytest.raises(InvalidValue, match="of its own"):
        nd.Stream(collection=kept, radius=3)
    kept.close()
    with pytest.raises(InvalidValue, match="choose one"):
        nd.Stream(similarity=0.8, radius=3)
