"""What the main job promises: nothing goes that was not measured against the one that stays."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import neardup as nd
from neardup import naive
from neardup.errors import GuardStopped
from neardup.verifiers import ACCEPTING, IDENTICAL, REASONS, SPELLED, UNVERIFIED

from .corpus import chain, collection, edited, words

ACCEPTED = {*REASONS[:ACCEPTING], naive.EVERY_RUN, IDENTICAL, SPELLED}
KEEPS = ["central,longest", "longest", "shortest", "first", "last", "max:rank", "none"]


def check(
    result: nd.Result,
    rows: list[dict[str, Any]],
    *,
    least: float = 0.0,
    protected: tuple[str, ...] = (),
    second_copies: bool = False,
) -> None:
    """Every promise that holds for every result."""
    annotations = {row["id"]: row for row in result.annotations.to_pylist()}
    assert sorted(annotations) == sorted(row["id"] for row in rows)
    assert list(annotations) == [row["id"] for row in rows]
    alike = {row["id"]: row["text"].lower().split() for row in rows}
    alike |= {name: alike[name.removeprefix("protected:")] for name in protected}
    evidence = {(row["keeper"], row["id"]): row for row in result.evidence.to_pylist()}
    assert len(evidence) == result.evidence.num_rows, "a pair is listed twice"
    for id, row in annotations.items():
        keeper = row["duplicate_of"]
        assert (keeper is None) == (row["distance"] is None)
        if keeper is None:
            if row["cluster"] != id:
                # With across and keep none, and only then, a second copy in one source goes with the first.
                assert second_copies
                assert not row["keep"]
                assert alike[row["cluster"]] == alike[id]
            continue
        assert not row["keep"]
        assert row["cluster"] == keeper
        assert keeper != id
        assert keeper in protected or annotations[keeper]["duplicate_of"] is None
        proof = evidence[keeper, id]
        assert proof["accepted"]
        assert (proof["distance"], proof["similarity"]) == (row["distance"], row["similarity"])
        assert proof["reason"] in ACCEPTED | {UNVERIFIED}
        assert proof["reason"] == UNVERIFIED or proof["similarity"] >= least
    for row in evidence.values():
        assert (row["similarity"] is None) == (row["reason"] == UNVERIFIED)
        assert row["accepted"] == (row["reason"] in ACCEPTED | {UNVERIFIED})
        assert row["scheme"] == result.scheme.digest
    counts = result.summary
    assert counts["documents"] == len(rows) == counts["kept"] + counts["removed"]
    assert counts["removed"] == sum(not row["keep"] for row in annotations.values())
    if any(trip.stopped for trip in result.guards):
        with pytest.raises(GuardStopped):
            _ = result.kept
    kept = replace(result, guards=()).kept
    assert kept == [row for row in rows if annotations[row["id"]]["keep"]]


@pytest.mark.parametrize("verify", ["default", "strict", "loose"])
@pytest.mark.parametrize("keep", KEEPS)
def test_on_a_chain_nothing_goes_below_the_threshold_against_its_keeper(keep: str, verify: str) -> None:
    rows = chain(26, step=24, size=400)
    for number, row in enumerate(rows):
        row["rank"] = number * 7 % 26
    result = nd.dedupe(rows, keep=keep, verify=verify, similarity=0.8)
    check(result, rows, least=0.8)
    if keep != "none":
        gone = result.summary["removed"]
        # The chain holds together only by its links: it is not one cluster.
        assert 26 - gone >= 3
    if verify == "loose":
        assert result.summary["removed"] >= 5


@pytest.mark.parametrize("verify", ["jaccard:0.6", "containment:0.7"])
def test_a_chain_is_no_cluster_for_the_other_measures(verify: str) -> None:
    rows = chain(26, step=24, size=400)
    result = nd.dedupe(rows, verify=verify, keep="first")
    check(result, rows)
    assert 5 <= result.summary["removed"] <= 23


def runs(text: str) -> set[tuple[str, ...]]:
    """Every run of three words; of a shorter text all its words."""
    found = naive.words_of(text)
    count = min(3, len(found))
    return {tuple(found[at : at + count]) for at in range(len(found) + 1 - count)}


@given(
    st.lists(
        st.lists(st.sampled_from("abcd"), min_size=1, max_size=9).map(" ".join), min_size=2, max_size=20
    ),
    st.sampled_from([keep for keep in KEEPS if keep != "none"]),
    st.sampled_from([0.3, 0.64]),
)
@settings(max_examples=60)
def test_preserving_never_removes_what_its_keeper_lacks(
    contents: list[str], keep: str, similarity: float
) -> None:
    rows = [{"id": f"{at:02}", "text": text, "rank": at * 7 % 20} for at, text in enumerate(contents)]
    result = nd.dedupe(rows, verify="preserving", keep=keep, similarity=similarity, guards=False)
    check(result, rows)
    text = dict(zip((row["id"] for row in rows), contents, strict=True))
    for row in result.annotations.to_pylist():
        if row["duplicate_of"] is not None:
            goes, stays = text[row["id"]], text[row["duplicate_of"]]
            if len(goes.split()) < 3:
                assert f" {goes} " in f" {stays} "
            else:
                assert runs(goes) <= runs(stays)


@pytest.mark.parametrize(
    ("keep", "stay"),
    [
        ("central,longest", ["whole"]),
        ("longest", ["whole"]),
        ("first", ["start", "whole"]),
        ("shortest", ["end", "start", "whole"]),
    ],
)
def test_a_part_goes_for_the_whole_and_never_the_whole_for_a_part(keep: str, stay: list[str]) -> None:
    text = words(5, 60)
    rows = [
        {"id": "start", "text": " ".join(text[:50])},
        {"id": "whole", "text": " ".join(text)},
        {"id": "end", "text": " ".join(text[12:]).upper()},
    ]
    result = nd.dedupe(rows, verify="preserving", keep=keep, guards=False)
    assert sorted(row["id"] for row in result.annotations.to_pylist() if row["keep"]) == stay
    said = {
        (row["keeper"], row["id"]): (row["accepted"], row["reason"]) for row in result.evidence.to_pylist()
    }
    yes, no = (True, naive.EVERY_RUN), (False, naive.LACKS_WORDS)
    # What could go is named second, unless the other one goes.
    assert said["whole", "end"] == said["whole", "start"] == yes
    assert no in said.values()


@pytest.mark.parametrize("keep", KEEPS)
def test_a_whole_collection_keeps_every_promise(keep: str) -> None:
    rows = collection()
    result = nd.dedupe(rows, keep=keep)
    check(result, rows, least=0.64)
    assert result.summary["clusters"] == 12
    assert result.summary["removed"] == (18 if keep != "none" else 30)


def test_keepers_stay_unless_nothing_is_to_stay() -> None:
    rows = collection()
    for keep in KEEPS:
        table = nd.dedupe(rows, keep=keep).annotations.to_pylist()
        keepers = {row["duplicate_of"] for row in table} - {None}
        assert {row["keep"] for row in table if row["id"] in keepers} == {keep != "none"}


def test_a_thousand_pages_of_one_template_with_different_bodies_lose_nothing() -> None:
    head, foot = " ".join(words(1, 120)), " ".join(words(2, 120))
    rows = [
        {"id": f"page-{number}", "text": f"{head} {' '.join(words(1000 + number, 80))} {foot}"}
        for number in range(1000)
    ]
    result = nd.dedupe(rows)
    check(result, rows)
    assert result.summary["removed"] == 0


def test_a_thousand_empty_texts_are_kept_and_reported() -> None:
    empties = ["", " ", "\n\n", "...", "\u0301", "!?", "\u200b", " - "]
    rows = [{"id": f"{number:04}", "text": empties[number % len(empties)]} for number in range(1000)]
    result = nd.dedupe(rows)
    check(result, rows)
    assert result.summary["removed"] == 0
    assert result.summary["without_information"] == 1000
    listed = [id for batch in result.without_information_batches() for id in batch.column("id").to_pylist()]
    assert listed == sorted(row["id"] for row in rows)
    assert not [trip for trip in result.guards if trip.stopped]


def test_no_documents_at_all_is_an_answer() -> None:
    result = nd.dedupe([])
    check(result, [])


def test_one_document_stays() -> None:
    rows = [{"id": "only", "text": "all by itself"}]
    check(nd.dedupe(rows), rows)


def test_texts_that_differ_in_case_and_space_alone_are_not_called_identical() -> None:
    text = " ".join(words(5))
    rows = [
        {"id": "a", "text": text},
        {"id": "b", "text": "  ".join(words(5)).upper() + " ."},
        {"id": "c", "text": text},
    ]
    for keep in ("first", "last"):
        result = nd.dedupe(rows, keep=keep)
        check(result, rows)
        rules = {row["id"]: row["reason"] for row in result.evidence.to_pylist()}
        assert rules == {"b": SPELLED, ("c" if keep == "first" else "a"): IDENTICAL}


def test_equal_texts_are_called_identical_whatever_another_source_has() -> None:
    text = " ".join(words(5))
    rows = [{"id": "a", "text": text, "s": 1}, *({"id": id, "text": text.upper(), "s": 2} for id in "bc")]
    (row,) = nd.dedupe(rows, within="s").evidence.to_pylist()
    assert (row["keeper"], row["id"], row["reason"]) == ("b", "c", IDENTICAL)


def test_the_distance_of_identical_texts_is_that_of_their_fingerprints() -> None:
    # The scheme sees case, the comparison does not.
    rows = [{"id": "a", "text": " ".join(words(5))}, {"id": "b", "text": " ".join(words(5)).upper()}]
    result = nd.dedupe(rows, scheme="pbtk")
    far = nd.distance(*(result.scheme.fingerprint(row["text"]) or 0 for row in rows))
    assert result.annotations.column("distance").to_pylist() == [None, far]
    assert far > 0


texts = st.integers(0, 5).flatmap(
    lambda seed: st.integers(0, 30).map(lambda changes: " ".join(edited(words(seed, 40), changes, changes)))
)


@settings(max_examples=60)
@given(
    st.lists(st.one_of(texts, st.sampled_from(["", "a", "a b", "A b"])), max_size=25),
    st.sampled_from(KEEPS),
    st.sampled_from(["default", "loose", "jaccard:0.3", "containment:0.9", "preserving", "none"]),
    st.sampled_from([None, "within", "across"]),
    st.integers(0, 3),
)
def test_any_collection_and_any_choice_keep_every_promise(
    contents: list[str], keep: str, verify: str, compare: str | None, protected: int
) -> None:
    rng = random.Random(len(contents))
    rows = [
        {"id": f"{number:02}", "text": text, "rank": rng.random(), "source": rng.choice("ab")}
        for number, text in enumerate(contents)
    ]
    reference = [dict(row) for row in rows[:protected]]
    choices: dict[str, Any] = {} if compare is None else {compare: "source"}
    result = nd.dedupe(rows, keep=keep, verify=verify, protect=reference or None, **choices)
    protected_ids = tuple(f"protected:{row['id']}" for row in reference)
    second_copies = compare == "across" and keep == "none"
    check(result, rows, protected=protected_ids, second_copies=second_copies)
    source = {row["id"]: row["source"] for row in rows}
    source |= {f"protected:{row['id']}": row["source"] for row in reference}
    for row in result.evidence.to_pylist():
        if compare is not None:
            assert (source[row["keeper"]] == source[row["id"]]) == (compare == "within")
