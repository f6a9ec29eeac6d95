"""Conclusions: from texts back to documents."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

import neardup as nd
from neardup.conclusions import Conclusion, Decision, decide
from neardup.contents import TEXT
from neardup.keep import parse_keep
from neardup.stars import Keepers
from neardup.types import PairNumbers, PrintPlaces, TextNumbers
from neardup.verdicts import Judgements

from .corpus import Rows
from .stages import candidates, representatives, verdicts

# a and b are near, c is a copy of a, d says nothing, e is another.
ROWS: Rows = [
    {"id": id, "text": text}
    for id, text in (
        ("a", "one text"),
        ("b", "one more text"),
        ("c", "one text"),
        ("d", "..."),
        ("e", "another"),
    )
]
TEXTS = representatives(ROWS)


def keepers(*keeper: int, pair: tuple[int, ...]) -> Keepers:
    return Keepers(TextNumbers(np.array(keeper, dtype=np.int32)), PairNumbers(np.array(pair, dtype=np.int32)))


NEAR = keepers(0, 0, 2, pair=(-1, 0, -1))


def decided(*fixed: int, keep: str = "first") -> Decision:
    return decide(TEXTS, NEAR, np.isin(np.arange(5), fixed), parse_keep(keep))


def test_a_copy_goes_with_its_text_and_its_text_with_its_keeper() -> None:
    found = decided()
    assert found.keeper.tolist() == [0, 0, 0, 3, 4]
    assert found.keep.tolist() == [True, False, False, True, True]
    assert (found.clusters, found.largest) == (1, [(0, 3)])


def test_a_protected_copy_stays() -> None:
    found = decided(2)
    assert found.keep.tolist() == [True, False, True, True, True]


def test_none_takes_the_whole_cluster_but_what_is_protected() -> None:
    assert decided(keep="none").keep.tolist() == [False, False, False, True, True]
    assert decided(2, keep="none").keep.tolist() == [False, False, True, True, True]


def concluded(**changes: Any) -> Conclusion:
    found = candidates([0, 1, 7], (0, 1), (0, 2))
    judgements = Judgements(found, verified=True)
    judgements.note(PairNumbers(np.array([0, 1])), verdicts((True, 3, 0.9), (False, 7, 0.1)))
    order = TEXTS.document_at(PrintPlaces(np.arange(5, dtype=np.uint32)))
    given: dict[str, Any] = {
        "decision": decided(), "ids": pa.array([row["id"] for row in ROWS], pa.large_string()),
        "fixed": np.zeros(5, dtype=bool), "texts": TEXTS, "found": found, "judgements": judgements,
        "content": TEXT, "prints": nd.scheme("text").fingerprints([ROWS[row]["text"] for row in order]),
        "scheme": "some scheme", "pair": NEAR.pair, "verified": True,
    }  # fmt: skip
    return Conclusion(**{**given, **changes})


def test_annotations_tell_who_stays_and_how_similar_the_others_are() -> None:
    rows = [row for batch in concluded().annotations() for row in batch.to_pylist()]
    assert [row["id"] for row in rows] == ["a", "b", "c", "d", "e"]
    assert [row["duplicate_of"] for row in rows] == [None, "a", "a", None, None]
    assert [row["similarity"] for row in rows] == [None, 0.9, 1.0, None, None]


def test_evidence_has_a_row_for_every_copy_and_every_measured_pair() -> None:
    rows = [row for batch in concluded().evidence() for row in batch.to_pylist()]
    assert [(row["keeper"], row["id"], row["accepted"]) for row in rows] == [
        ("a", "b", True),
        ("a", "c", True),
        ("a", "e", False),
    ]


def test_rows_are_the_same_however_many_are_made_at_a_time() -> None:
    whole, parts = concluded(), concluded(step=1)
    for make in ("annotations", "evidence", "without_information"):
        one, other = (pa.Table.from_batches(getattr(made, make)()) for made in (whole, parts))
        assert one.equals(other)


def test_documents_that_say_nothing_are_listed() -> None:
    assert [batch.to_pydict() for batch in concluded().without_information()] == [{"id": ["d"]}]
    assert not list(concluded(fixed=np.array([False, False, False, True, False])).without_information())
