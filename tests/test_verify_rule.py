"""How a pair is told from two siblings of one template: tests 4 to 6 and 10 to 14 of docs/quality.md."""

from __future__ import annotations

from typing import Any

import pytest

import neardup as nd

from .corpus import Rows, edited, words

HIGH = {"default": 0.90, "strict": 0.95, "high": 0.90, "loose": 0.90}
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
    assert pair["reason"] == "nearly identical"
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
    assert pair["reason"] == rule
    assert removed(result) == ({pair["id"]} if pair["accepted"] else set())


def test_two_pieces_of_the_frame_alone_are_no_copies() -> None:
    frame, bodies = words(1, 180), [words(100 + number, 120) for number in range(SIBLINGS)]
    pieces = [document("without-head", frame[8:]), document("without-foot", frame[:-8])]
    result = nd.dedupe([*siblings(frame, bodies), *pieces])
    pair = verdict(result, "without-head", "without-foot")
    assert pair["similarity"] >= 0.90
    assert pair["reason"] == "same template, different content"
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
    assert all(row["rare"] < 0.34 and row["weighted"] < row["similarity"] - 0.05 for row in high)
    assert {row["reason"] for row in high} == {"shares mostly common text"}
    assert not removed(result)


@pytest.mark.parametrize("mode", HIGH)
def test_many_edited_copies_of_one_text_are_found_though_they_share_nothing_rare(mode: str) -> None:
    text, count = words(4, 200), 60  # what more than 16 have is not rare
    copies = [document(f"copy-{number:02}", edited(text, number, 3)) for number in range(count)]
    others = [document(f"other-{number:02}", words(2000 + number, 200)) for number in range(count)]
    result = nd.dedupe(copies + others, verify=mode)
    poor = [row for row in evidence(result) if row["rare"] < 0.34 and row["similarity"] >= HIGH[mode]]
    assert len(poor) > count
    assert all(row["weighted"] >= row["similarity"] - 0.05 for row in poor)
    # Strict rules also look at small differences, and take some edits in the same place for a form.
    least = 0.85 if mode in ("strict", "high") else 1.0
    assert sum(row["accepted"] for row in poor) >= least * len(poor)
    assert sum(row["reason"] == "nearly identical" for row in poor) >= 0.85 * len(poor)
    assert len(removed(result)) >= least * (count - 1)
    assert removed(result) < {row["id"] for row in copies}


@pytest.mark.parametrize(("mode", "least", "most"), [("default", 39, 39), ("strict", 0, 8)])
def test_forms_with_little_filled_in_are_told_apart_by_strict_and_named_by_default(
    mode: str, least: int, most: int
) -> None:
    pages = []
    for number in range(40):
        text, own = words(2, 240), words(1000 + number, 9)
        text[20:24], text[120:123], text[200:202] = own[:4], own[4:7], own[7:]
        pages.append(document(f"page-{number:02}", text))
    others = [document(f"other-{number:02}", words(2000 + number, 200)) for number in range(100)]
    result = nd.dedupe(pages + others, verify=mode)
    assert least <= len(removed(result)) <= most
    assert 0.9 * least <= result.summary["perhaps_forms"] <= least


def about(subject: str, places: list[int]) -> list[str]:
    text = words(3, 200)
    for place in places:
        text[place] = subject
    return text


@pytest.mark.parametrize(
    ("places", "rule"),
    [
        ([5, 60, 120, 180], "same words about another subject"),
        ([5], "nearly identical"),  # named once: an edit
        ([60, 120, 180], "nearly identical"),  # not what the text begins with
    ],
)
@pytest.mark.parametrize("mode", HIGH)
def test_the_same_words_about_another_subject_are_no_copy(mode: str, places: list[int], rule: str) -> None:
    rows = [document("halt", about("halt", places)), document("reboot", about("reboot", places))]
    assert verdict(nd.dedupe(rows, verify=mode), "halt", "reboot")["reason"] == rule


def test_a_subject_that_changed_its_place_is_no_other_subject() -> None:
    one, other = about("halt", [5, 60, 120, 180]), about("reboot", [5, 60, 120, 180])
    rows = [document("one", one, ["halt", "reboot"]), document("other", other, ["halt", "reboot"])]
    assert verdict(nd.dedupe(rows), "one", "other")["reason"] == "nearly identical"


@pytest.mark.parametrize(
    ("size", "numbers", "rule"),
    [
        (300, 5, "nearly identical"),
        (300, 6, "different numbers"),
        (120, 2, "nearly identical"),
        (120, 3, "different numbers"),  # too short: a form that was filled in
    ],
)
def test_in_a_long_text_that_is_nearly_the_same_some_numbers_may_differ(
    size: int, numbers: int, rule: str
) -> None:
    rows = []
    for id, first in (("old", 100), ("new", 500)):
        text = words(3, size)
        for at in range(numbers):
            text[at * (size // numbers) + 3] = str(first + at)
        rows.append(document(id, text))
    pair = verdict(nd.dedupe(rows), "old", "new")
    assert pair["similarity"] >= 0.93
    assert pair["reason"] == rule


@pytest.mark.parametrize(
    ("replaced", "rule"), [(4, "nearly identical"), (6, "too short to tell a revision from a sibling")]
)
def test_a_middling_text_may_lose_a_word_in_twenty_if_others_do_not_have_it(replaced: int, rule: str) -> None:
    text = words(3, 100)
    rows = [document("one", text), document("other", edited(text, 6, replaced))]
    pair = verdict(nd.dedupe(rows), "one", "other")
    assert 0.90 <= pair["similarity"] < 0.96
    assert pair["weighted"] >= pair["similarity"]
    assert pair["reason"] == rule


@pytest.mark.parametrize(
    ("own", "rule"), [(0, "revision"), (10, "too short to tell a revision from a sibling")]
)
def test_a_middling_text_with_furniture_added_is_a_revision(own: int, rule: str) -> None:
    furniture = words(1, 30)
    pages = [document(f"page-{number:03}", words(100 + number, 60), furniture) for number in range(400)]
    body = words(3, 80)
    rows = [document("bare", body, words(4, own)), document("framed", body, furniture)]
    pair = verdict(nd.dedupe(pages + rows), "bare", "framed")
    assert pair["similarity"] < 0.90
    assert pair["reason"] == rule


@pytest.mark.parametrize(("copies", "rule"), [(0, "revision"), (1, "same template, different content")])
def test_two_families_are_not_joined_by_a_pair_that_is_less_alike(copies: int, rule: str) -> None:
    one = words(3, 200)
    other = edited(one, 7, 24)
    one[2], other[2] = "authorization", "role"
    rows = [document("one-0", one), document("other-0", other)]
    for number in range(1, copies + 1):
        rows.append(document(f"one-{number}", edited(one[:20], 8, 0), edited(one[20:], 8 + number, 3)))
        rows.append(document(f"other-{number}", other[:20], edited(other[20:], 18 + number, 3)))
    result = nd.dedupe(rows)
    pair = verdict(result, "one-0", "other-0")
    assert 0.64 <= pair["similarity"] < 0.90
    assert pair["reason"] == rule
    assert len(removed(result)) == (2 if copies else 1)


def test_a_word_made_to_share_the_hash_of_a_gram_breaks_nothing() -> None:
    # Both hash to 0x028687f1429a227a, so the longer text has one feature twice.
    frame = [*words(3, 200), "xaappx"]
    rows = [document("short", frame), document("longer one", frame, ["fmnexljbco32jroy"])]
    hashes = [hash for _, _, hash in nd.scheme("text").recipe.features("xaappx fmnexljbco32jroy")]
    assert len(hashes) > len(set(hashes))
    result = nd.dedupe(rows)
    assert removed(result) == {"short"}
    assert all(row["similarity"] <= 1 for row in evidence(result))


def page(title: str, id: str, text: list[str], **fields: Any) -> dict[str, Any]:
    return {"id": id, "text": f"{title}\n\n" + " ".join(text), **fields}


@pytest.mark.parametrize("mode", HIGH)
def test_pages_with_one_body_about_what_their_titles_name_are_no_copies(mode: str) -> None:
    body = words(3, 200)
    rows = [page(f"{name} manual", name, [name, *body, name]) for name in ("halt", "reboot")]
    pair = verdict(nd.dedupe(rows, verify=mode), "halt", "reboot")
    assert pair["similarity"] > 0.95
    assert pair["reason"] == "another subject in the title"


def test_a_text_rewritten_under_one_title_is_found_though_it_is_too_short_without() -> None:
    body = words(3, 60)
    other = edited(body, 4, 7)
    for title, reason in (
        ("Packing files", "same subject, text rewritten"),
        ("", "too short to tell a revision from a sibling"),
    ):
        rows = [page(title, "old", body), page(title, "new", other)]
        assert verdict(nd.dedupe(rows), "old", "new")["reason"] == reason


def test_numbers_that_many_pages_carry_are_no_difference_in_pages_that_are_nearly_the_same() -> None:
    body = words(3, 100)
    others = [document(f"other-{at}", words(100 + at, 80), ["2021", "2022", "77", "78"]) for at in range(40)]
    for numbers, reason in (
        (("2021 77", "2022 78"), "nearly identical"),
        (("5121 61", "5122 62"), "different numbers"),
    ):
        rows = [document(name, body, own.split()) for name, own in zip(("a", "b"), numbers, strict=True)]
        assert verdict(nd.dedupe([*rows, *others]), "a", "b")["reason"] == reason


@pytest.mark.parametrize(
    ("place", "reason"), [(150, "a clause that only one has"), (300, "nearly identical")]
)
def test_a_clause_that_neighbours_have_too_is_content_and_a_foot_is_not(place: int, reason: str) -> None:
    text, clause = words(1, 300), words(2, 40)
    rows = [
        document("with", text[:place], clause, text[place:]),
        document("without", text),
        document("third", text[:150], clause, words(3, 100)),
    ]
    assert verdict(nd.dedupe(rows), "with", "without")["reason"] == reason


# --- a field that names the subject ------------------------------------------------------------------------


def test_documents_of_another_subject_are_never_merged_not_even_equal_ones() -> None:
    text = words(1, 100)
    rows = [page("Title", id, text, sku=sku) for id, sku in (("a", 1), ("b", 2), ("c", 1), ("d", 1.0))]
    result = nd.dedupe(rows, subject="sku")
    assert removed(result) == {"c", "d"}
    assert {row["id"] for row in evidence(result)} | {row["keeper"] for row in evidence(result)} == {
        "a",
        "c",
        "d",
    }


def test_the_same_subject_is_evidence_for_a_text_that_was_rewritten() -> None:
    text = words(1, 60)
    other = edited(text, 2, 7)
    rows = [{"id": id, "text": " ".join(one), "sku": 7} for id, one in (("a", text), ("b", other))]
    assert not removed(nd.dedupe(rows))
    found = nd.dedupe(rows, subject="sku")
    assert len(removed(found)) == 1
    assert verdict(found, "a", "b")["reason"] == "same subject, text rewritten"


def test_documents_without_a_subject_are_compared_with_each_other() -> None:
    text = words(1, 60)
    rows = [page("", id, text, sku=sku) for id, sku in (("a", None), ("b", None), ("c", 1), ("d", 1))]
    rows += [page("", id, edited(text, 2, 7), sku=sku) for id, sku in (("e", None), ("f", 1))]
    result = nd.dedupe(rows, subject="sku")
    assert verdict(result, "a", "e")["reason"] == "too short to tell a revision from a sibling"
    assert len({row["cluster"] for row in result.annotations.to_pylist()}) == 3
