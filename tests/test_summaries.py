"""Summaries: the counts of a run add up."""

from __future__ import annotations

import pyarrow.compute as pc

import neardup as nd

from .corpus import collection


def test_counts_are_those_of_the_rows() -> None:
    result = nd.dedupe(collection(40), guards=False)
    counts, kept = result.summary, result.annotations.column("keep")
    assert counts["documents"] == counts["kept"] + counts["removed"] == len(kept)
    assert counts["kept"] == pc.sum(kept).as_py()
    assert counts["clusters"] == len(set(result.annotations.column("duplicate_of").drop_null().to_pylist()))
    assert counts["accepted_pairs"] <= counts["measured_pairs"] <= counts["candidate_pairs"]
    assert counts["removed"] > 0


def test_a_guard_names_documents_by_their_content() -> None:
    result = nd.dedupe([{"id": f"{at}", "text": "one and the same text"} for at in range(8)])
    assert any("of 8 documents" in str(trip) for trip in result.guards)
