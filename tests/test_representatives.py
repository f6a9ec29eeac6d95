"""Representatives: one document for each text, the others are its copies."""

from __future__ import annotations

import numpy as np

import neardup as nd
from neardup.representatives import fill_repeats
from neardup.types import PrintPlaces, RowNumbers, TextNumbers

from .corpus import Rows
from .stages import representatives

ROWS: Rows = [
    {"id": id, "text": text, "x": x}
    for id, text, x in (
        ("a", "One text.", 1), ("b", "another text", 2), ("c", "one text", 1), ("d", "...", 1), ("e", "One text.", 2),
    )
]  # fmt: skip


def rows(*numbers: int) -> RowNumbers:
    return RowNumbers(np.array(numbers, dtype=np.int32))


def test_the_first_of_equal_texts_stands_for_them() -> None:
    texts = representatives(ROWS)
    assert texts.document.tolist() == [0, 1]
    assert texts.of_document.tolist() == [0, 1, 0, -1, 0]
    assert texts.others.tolist() == [2, 3, 4]


def test_texts_are_numbered_in_keep_order() -> None:
    assert representatives(ROWS, keep="last").document.tolist() == [4, 1]
    assert representatives(ROWS, keep="max:x,first").document.tolist() == [1, 4]


def test_protected_documents_come_first() -> None:
    texts = representatives(ROWS, fixed=(1,))
    assert (texts.document.tolist(), texts.fixed.tolist()) == ([1, 0], [True, False])


def test_every_fingerprint_has_a_place_and_every_place_its_document() -> None:
    texts = representatives(ROWS)
    places = texts.place(rows(*range(5)))
    assert sorted(places.tolist()) == [0, 1, 2, 3, 4]
    found = texts.document_at(PrintPlaces(np.sort(places).astype(np.uint32)))
    assert texts.place(found).tolist() == [0, 1, 2, 3, 4]


def test_equal_texts_may_be_spelt_differently() -> None:
    texts = representatives(ROWS)
    one, other = rows(0, 0, 0), rows(2, 4, 1)
    assert texts.equal(one, other).tolist() == [True, True, False]
    assert texts.spelled_alike(one, other).tolist() == [False, True, False]


def test_across_sources_the_copies_of_one_source_are_not_one_with_those_of_another() -> None:
    texts = representatives(ROWS, across="x")
    assert texts.document.tolist() == [0, 1, 4]
    assert texts.equal(rows(0), rows(4)).tolist() == [True]
    left, right = (TextNumbers(np.array(side)) for side in ([0, 0, 1], [1, 2, 2]))
    assert texts.comparable(left, right).tolist() == [True, True, False]
    assert representatives(ROWS, within="x").comparable(
        TextNumbers(left[:1]), TextNumbers(right[:1])
    ).tolist() == [False]


def test_two_protected_texts_are_not_compared() -> None:
    texts = representatives(ROWS, fixed=(0, 1))
    assert texts.comparable(TextNumbers(np.array([0])), TextNumbers(np.array([1]))).tolist() == [False]


def test_a_document_that_repeats_its_text_gets_its_fingerprint() -> None:
    texts = representatives(ROWS)
    order = texts.document_at(PrintPlaces(np.arange(5, dtype=np.uint32)))
    prints = nd.scheme("text").fingerprints([ROWS[row]["text"] for row in order])
    expected, repeats = (
        prints.words.copy(),
        texts.place(rows(*np.flatnonzero(texts.repeats(rows(*range(5)))))),
    )
    assert len(repeats)
    prints.words[repeats] = 0
    prints.valid[repeats] = False
    fill_repeats(prints, texts)
    assert (prints.words == expected).all()
    assert prints.valid[repeats].all()
