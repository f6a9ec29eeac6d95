"""How a pair of 0.90 or more is told from two siblings of one template: tests 4 and 12 of docs/quality.md."""

from __future__ import annotations

from typing import Any

import pytest

import neardup as nd

from .corpus import Rows, edited, words

HIGH = {"default": 0.90, "strict": 0.95, "loose": 0.90}
SIBLINGS = 30


def document(id: str, *parts: list[str]) -> dict[str, Any]:
    return {"id": id, "text": " ".join(word for part in parts for word in part)}


def siblings(frame: list[str], bodies: list[list[str]]) -> Rows:
    return [document(f"page-{number:02}", frame, body) for number, body in enumerate(bodies)]


def evidence(result: nd.Result) -> Rows:
    rows: Rows = result.evidence.to_pylist()
    return rows


def verdict(result: nd.Result, *ids: str) -> dict[str, Any]:
    (row,) = [row for row in evidence(result) if {row["keeper"], row["id"]} == set(ids)]
    return row


def removed(result: nd.Result) -> set[str]:
    return {row["id"] for row in result.annotations.to_pylist() if not row["keep"]}


@pytest.mark.parametrize(
    ("frame_size", "body_size", "in_frame", "in_body"),
    [(240, 60, 18, 2), (240, 80, 18, 2), (210, 90, 24, 3)],
)
@pytest.mark.parametrize("mode", ["default", "loose"])
def test_a_copy_whose_frame_was_edited_is_found_among_its_siblings(
    mode: str, frame_size: int, body_size: int, in_frame: int, in_body: int
) -> None:
    frame, bodies = words(1, frame_size), [words(100 + number, body_size) for number in range(SIBLINGS)]
    copy = document("copy", edited(frame, 5, in_frame), edited(bodies[7], 6, in_body))
    result = nd.dedupe([*siblings(frame, bodies), copy], verify=mode)
    pair = verdict(result, "copy", "page-07")
    others = [row for row in evidence(result) if row != pair]
    assert len(others) > SIBLINGS
    assert max(row["similarity"] for row in others) < 0.90, "siblings are groups of their own"
    assert pair["similarity"] >= 0.90
    assert pair["rule"] == "nearly identical"
    assert removed(result) == {pair["id"]}


@pytest.mark.parametrize(
    ("replaced", "rule"), [(24, "nearly identical"), (40, "same template, different content")]
)
def test_among_siblings_most_of_the_body_must_be_left_of_a_copy(replaced: int, rule: str) -> None:
    frame, bodies = words(1, 240), [words(100 + number, 80) for number in range(SIBLINGS)]
    other = document("other", frame, edited(bodies[7], 6, replaced))
    result = nd.dedupe([*siblings(frame, bodies), other])
    pair = verdict(result, "other", "page-07")
    assert pair["similarity"] >= 0.90
    assert pair["rule"] == rule
    assert removed(result) == ({pair["id"]} if pair["accepted"] else set())


def test_two_pieces_of_the_frame_alone_are_no_copies() -> None:
    frame, bodies = words(1, 180), [words(100 + number, 120) for number in range(SIBLINGS)]
    pieces = [document("without-head", frame[8:]), document("without-foot", frame[:-8])]
    result = nd.dedupe([*siblings(frame, bodies), *pieces])
    pair = verdict(result, "without-head", "without-foot")
    assert pair["similarity"] >= 0.90
    assert pair["rule"] == "same template, different content"
    assert not removed(result)


@pytest.mark.parametrize("mode", HIGH)
def test_pages_of_one_template_with_rare_words_of_their_own_stay(mode: str) -> None:
    pages, notes = [], []
    for number in range(300):
        text, own = words(2, 200), words(1000 + number, 10)
        text[10::20] = own
        pages.append(document(f"page-{number:03}", text))
        # A word that nobody else has would not count.
        notes.append(document(f"note-{number:03}", own))
    result = nd.dedupe(pages + notes, verify=mode)
    high = [row for row in evidence(result) if row["similarity"] >= HIGH[mode]]
    assert len(high) > len(pages)
    assert all(row["rare"] < 0.34 and row["common"] < row["similarity"] - 0.05 for row in high)
    assert {row["rule"] for row in high} == {"shares mostly common text"}
    assert not removed(result)


@pytest.mark.parametrize("mode", HIGH)
def test_many_edited_copies_of_one_text_are_found_though_they_share_nothing_rare(mode: str) -> None:
    text, count = words(4, 200), 60  # what more than 16 have is not rare
    copies = [document(f"copy-{number:02}", edited(text, number, 3)) for number in range(count)]
    others = [document(f"other-{number:02}", words(2000 + number, 200)) for number in range(count)]
    result = nd.dedupe(copies + others, verify=mode)
    poor = [row for row in evidence(result) if row["rare"] < 0.34 and row["similarity"] >= HIGH[mode]]
    assert len(poor) > count
    assert all(row["common"] >= row["similarity"] - 0.05 for row in poor)
    assert {row["rule"] for row in poor} == {"nearly identical"}
    assert len(removed(result)) == count - 1
    assert removed(result) < {row["id"] for row in copies}
