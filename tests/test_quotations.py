"""Leaks: what of a test set is in a training set, found as comparing every word with every word finds it."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import neardup as nd
from neardup import _native, naive
from neardup.adapters.cli import run
from neardup.errors import Cancelled, InvalidValue, RefusedInput
from neardup.observers import Cancellable, Observer
from neardup.quotations import Leaks
from neardup.quotations.page import render
from neardup.quotations.writing import names_of
from neardup.sizes import Sizes

from .corpus import Rows, edited, words

POEM = "tell me not in mournful numbers life is but an empty dream for the soul is dead that slumbers"


def text_of(*parts: list[str]) -> str:
    return " ".join(word for part in parts for word in part)


def documents(seed: int, count: int, size: int = 200, name: str = "d") -> Rows:
    return [{"id": f"{name}{at}", "text": text_of(words(seed * 1000 + at, size))} for at in range(count)]


def passages_of(found: Leaks) -> list[dict[str, Any]]:
    return [row for row in found.leaks.to_pylist() if row["kind"] == "passage"]


# --- passages ----------------------------------------------------------------------------------------------


def test_twenty_of_twenty_quotations_are_found_and_nothing_that_quotes_nothing() -> None:
    train, test = documents(1, 300), documents(2, 40, 400, "t")
    rng = random.Random(3)
    planted = {}
    for at in range(20):
        quoted, place = test[at]["text"].split()[100:160], rng.randrange(200)
        own = train[7 * at]["text"].split()
        quoted = [word.upper() if rng.random() < 0.2 else f"{word}," for word in quoted]
        train[7 * at]["text"] = text_of(own[:place], quoted, own[place:])
        planted[f"d{7 * at}"] = f"t{at}"
    found = nd.leaks(train, against=test)
    assert {(row["train"], row["test"]) for row in passages_of(found)} == set(planted.items())
    assert {row["words"] for row in passages_of(found)} <= set(range(60, 64))  # a neighbour may be the same
    assert {row["id"] for row in found.train.to_pylist()} == set(planted)
    assert [row["id"] for row in found.test.to_pylist() if row["leaked_words"]] == [
        f"t{at}" for at in range(20)
    ]
    assert found.summary["test_leaked"] == 20


def test_places_are_characters_of_the_texts_as_they_were_read() -> None:
    quoted = POEM.replace(" ", " — ").title()
    train = f"Ünïcode: “{quoted}”, he said"
    found = nd.leaks([{"id": "a", "text": train}], against=[{"id": "b", "text": f"> {POEM} <"}], words=10)
    [row] = passages_of(found)
    assert train[row["train_start"] : row["train_end"]] == quoted
    assert (row["test_start"], row["test_end"], row["passage"]) == (2, 2 + len(POEM), POEM)
    assert (row["train"], row["test"], row["words"], row["train_documents"]) == ("a", "b", 19, 1)


def test_one_word_fewer_than_asked_for_is_no_passage() -> None:
    train, test = [f"{POEM} and so on"], [f"he told: {POEM}"]
    assert nd.leaks(train, against=test, words=19, documents=False).found
    assert not nd.leaks(train, against=test, words=20, documents=False).found


LETTERS = [
    "a",
    "B",
    "c,",
    "d",
    "A",
    "漢",
    "字漢",
    "½",
    "e\u0301",
    "ＡB",
    "_",
    "...",
    "\u00ad",
    "ΟΔΟΣ",
    "x\u200by",
]


@given(
    train=st.lists(st.lists(st.sampled_from(LETTERS[:4]), max_size=40), min_size=1, max_size=4),
    test=st.lists(st.lists(st.sampled_from(LETTERS[:4]), max_size=40), min_size=1, max_size=3),
    least=st.integers(5, 12),
    threads=st.sampled_from([1, 3]),
)
@settings(max_examples=150)
def test_passages_are_those_of_comparing_every_word_with_every_word(
    train: list[list[str]], test: list[list[str]], least: int, threads: int
) -> None:
    check([" ".join(one) for one in train], [" ".join(one) for one in test], least, threads)


@given(
    train=st.lists(st.lists(st.sampled_from(LETTERS), max_size=30), min_size=1, max_size=3),
    test=st.lists(st.lists(st.sampled_from(LETTERS), max_size=30), min_size=1, max_size=3),
    quoted=st.lists(st.sampled_from(LETTERS), max_size=20),
    spaces=st.sampled_from([" ", "", " - "]),
)
@settings(max_examples=150)
def test_passages_in_every_script_are_those_of_the_naive_search(
    train: list[list[str]], test: list[list[str]], quoted: list[str], spaces: str
) -> None:
    check([" ".join([*one, *quoted]) for one in train], [spaces.join([*quoted, *one]) for one in test], 5, 2)


def check(train: list[str], test: list[str], least: int, threads: int) -> None:
    found = nd.leaks(
        iter(train), against=iter(test), words=least, most=10_000, documents=False, threads=threads
    )
    ours, theirs = ([naive.words_of(text) for text in texts] for texts in (train, test))
    wanted = []
    for number, other in enumerate(theirs):
        for at, own in enumerate(ours):
            wanted += [(number, at, *passage) for passage in naive.shared(own, other, least)]
    seen = []
    for row in passages_of(found):
        at, number = int(row["train"]), int(row["test"])
        spans = [_native.word_places(text).tolist() for text in (train[at], test[number])]
        # The words that begin there: a character that gives several is the place of each.
        begins = [
            [word for word, span in enumerate(side) if span[0] == row[name]]
            for side, name in zip(spans, ("train_start", "test_start"), strict=True)
        ]
        assert row["passage"] == test[number][row["test_start"] : row["test_end"]]
        assert any(span[1] == row["train_end"] for span in spans[0])
        seen.append((number, at, begins, row["words"]))
    assert len(seen) == len(wanted)
    for number, at, one, two, count in wanted:
        assert any(
            (number, at, count) == (*hit[:2], hit[3]) and one in hit[2][0] and two in hit[2][1]
            for hit in seen
        )
    for table, texts, others in ((found.train, ours, theirs), (found.test, theirs, ours)):
        shared = [naive.covered(words, others, least) for words in texts]
        told = {int(row["id"]): row["leaked_words"] for row in table.to_pylist()}
        assert [told.get(at, 0) for at in range(len(texts))] == shared


@given(st.lists(st.sampled_from(LETTERS), max_size=30), st.sampled_from(["", " "]))
def test_every_word_of_a_text_has_its_place(parts: list[str], space: str) -> None:
    text = space.join(parts)
    places, found = _native.word_places(text).tolist(), naive.words_of(text)
    assert len(places) == len(found)
    for (begin, end), word in zip(places, found, strict=True):
        alone = [one.replace("ς", "σ") for one in naive.words_of(text[begin:end])]
        assert word.replace("ς", "σ") in alone


def test_what_everybody_has_is_counted_in_all_and_listed_for_some() -> None:
    footer = text_of(words(77, 50))
    train = [{"id": f"d{at}", "text": f"{text_of(words(at, 30))} {footer}"} for at in range(40)]
    test = [{"id": f"t{at}", "text": f"{footer} {text_of(words(500 + at, 30))}"} for at in range(30)]
    found = nd.leaks(train, against=test, most=4, documents=False)
    assert {row["train"] for row in passages_of(found)} == {"d0", "d1", "d2", "d3"}
    assert {row["test"] for row in passages_of(found)} == {"t0", "t1", "t2", "t3"}
    assert found.summary["passages"] == 16
    assert found.summary["passages_not_listed"] == 36 * 4
    # Who shares something, and how much, does not depend on what is listed.
    assert [row["leaked_words"] for row in found.train.to_pylist()] == [50] * 40
    assert [row["leaked_words"] for row in found.test.to_pylist()] == [50] * 30
    assert {row["train_documents"] for row in found.test.to_pylist()} == {40}
    assert {row["train"] for row in found.test.to_pylist()} == {"d0"}


def test_threads_and_batches_change_nothing(tmp_path: Path) -> None:
    shared = [text_of(words(at, 40)) for at in range(5)]
    rows = [
        {"id": f"d{at}", "text": f"{text_of(words(100 + at, 20))} {shared[at % 5]} {at}"} for at in range(400)
    ]
    path = tmp_path / "train.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    test = [f"{one} and" for one in shared]
    once = nd.leaks(str(path), against=iter(test), threads=1)
    again = nd.leaks(rows, against=iter(test), threads=3, sizes=Sizes(block=1000))
    assert once.leaks.equals(again.leaks)
    assert once.test.equals(again.test)
    assert once.train.equals(again.train)


# --- whole documents ---------------------------------------------------------------------------------------


def test_whole_documents_are_found_as_dedupe_finds_them() -> None:
    base = [words(at, 150) for at in range(3)]
    test = [{"id": f"t{at}", "text": text_of(one)} for at, one in enumerate(base)]
    train = [
        {"id": "same", "text": text_of(base[0])},
        {"id": "spelled", "text": text_of(base[0]).upper()},
        {"id": "edited", "text": text_of(edited(base[1], 5, 4))},
        {"id": "other", "text": text_of(words(99, 150))},
        # Near each other, and to no test document: that is nobody's question here.
        {"id": "twin", "text": text_of(edited(words(99, 150), 1, 2))},
    ]
    found = nd.leaks(train, against=test, passages=False)
    rows = [(row["test"], row["train"], row["reason"]) for row in found.leaks.to_pylist()]
    assert sorted(rows) == [
        ("t0", "same", "identical text"),
        ("t0", "spelled", "identical but for case, spacing or punctuation"),
        ("t1", "edited", "nearly identical"),
    ]
    assert [row["document"] for row in found.test.to_pylist()] == [True, True, False]
    assert [row["id"] for row in found.train.to_pylist()] == ["edited", "same", "spelled"]


def test_every_copy_in_the_test_set_is_leaked() -> None:
    text = text_of(words(5, 12))
    test = [{"id": f"t{at}", "text": text.title() if at else text} for at in range(3)]
    found = nd.leaks([{"id": "d", "text": text}], against=test)
    assert [row["document"] for row in found.test.to_pylist()] == [True] * 3
    assert {row["test"] for row in found.leaks.to_pylist()} == {"t0", "t1", "t2"}


def test_a_test_document_near_to_two_training_documents_names_both() -> None:
    base = words(8, 150)
    train = [{"id": f"d{at}", "text": text_of(edited(base, at, 3))} for at in range(2)]
    test = [{"id": f"t{at}", "text": text_of(edited(base, 10 + at, 3))} for at in range(2)]
    found = nd.leaks(train, against=test, passages=False)
    assert {(row["test"], row["train"]) for row in found.leaks.to_pylist()} == {
        (f"t{at}", f"d{other}") for at in range(2) for other in range(2)
    }


def test_the_same_id_on_both_sides_is_no_obstacle() -> None:
    rows = [{"id": "x", "text": text_of(words(1, 60))}]
    found = nd.leaks(rows, against=list(rows))
    assert [row["train"] for row in found.leaks.to_pylist()] == ["x", "x"]


def test_nothing_in_common_is_found_false() -> None:
    found = nd.leaks(documents(1, 5), against=documents(2, 3))
    assert not found.found
    assert repr(found) == "<Leaks: 0 of 3 test documents in 0 training documents>"
    assert found.leaks.num_rows == found.train.num_rows == 0


# --- what is refused ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"words": 4}, "words must be"),
        ({"documents": False, "passages": False}, "nothing to look for"),
        ({"verify": "md5"}, "unknown verification"),
    ],
)
def test_choices_that_make_no_sense_are_refused(choices: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        nd.leaks([POEM], against=[POEM + " more"], **choices)


def test_one_object_for_both_is_refused() -> None:
    rows = [POEM]
    with pytest.raises(InvalidValue, match="the same object"):
        nd.leaks(rows, against=rows)


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 no")
    with pytest.raises(RefusedInput, match="bad"):
        nd.leaks([POEM], against=str(tmp_path / "bad.parquet"))


class Once(Observer):
    """Cancels in a stage."""

    def __init__(self, name: str) -> None:
        self.name, self.asked = name, False

    def stage(self, name: str, **_: Any) -> Any:
        self.asked = self.asked or name == self.name
        return super().stage(name)

    def cancelled(self) -> bool:
        return self.asked


@pytest.mark.parametrize("stage", ["read", "read test set", "passages"])
def test_an_observer_can_cancel_every_stage(stage: str) -> None:
    with pytest.raises(Cancelled):
        nd.leaks(documents(1, 5), against=documents(2, 3), observer=Cancellable(Once(stage)))


# --- the command, the folder, the page ---------------------------------------------------------------------


@pytest.fixture
def sets(tmp_path: Path) -> tuple[str, str]:
    train = [{"id": "d1", "text": f"{text_of(words(3))} {POEM}!"}, {"id": "d2", "text": "nothing of it"}]
    test = [
        {"id": "<b>t1</b>", "text": f"{POEM} \u202e<script>alert(1)</script>"},
        {"id": "t2", "text": "else"},
    ]
    for name, rows in (("train", train), ("test", test)):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(tmp_path / "train.jsonl"), str(tmp_path / "test.jsonl")


def test_the_command_writes_tables_a_page_and_a_summary(
    sets: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    train, test = sets
    out = tmp_path / "out"
    asked = ["leaks", train, "--against", test, "--words", "10"]
    assert run([*asked, "-o", str(out)]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0] == (
        "1 of 2 test documents is in the training set: 0 as a whole, 1 in passages of 10 words or more; "
        "1 of 2 training documents share something"
    )
    assert "d1 at " in said[1]
    assert said[1].endswith(f"19 words, {POEM[:57] + '...'!r}")
    assert sorted(path.name for path in out.iterdir()) == sorted(names_of("parquet"))
    [row] = pq.read_table(out / "leaks.parquet").to_pylist()
    assert row["passage"] == POEM
    summary = json.loads((out / "summary.json").read_text())
    assert (summary["test_leaked"], summary["kind"]) == (1, "leaks")
    # Not again over what is there, and again if that is wanted.
    assert run([*asked, "-o", str(out)]) == 2
    assert run([*asked, "-o", str(out), "--overwrite", "--table", "jsonl"]) == 0
    assert sorted(path.name for path in out.iterdir()) == sorted(names_of("jsonl"))
    assert json.loads((out / "leaks.jsonl").read_text())["train"] == "d1"


def test_only_a_gate_fails_on_leaks(sets: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    train, test = sets
    asked = ["leaks", train, "--against", test, "--quiet", "--json"]
    assert run([*asked, "--words", "10"]) == 0
    assert json.loads(capsys.readouterr().out)["test_documents_quoted"] == 1
    assert run([*asked, "--words", "10", "--fail-on-leaks"]) == 7
    assert run([*asked, "--words", "30", "--fail-on-leaks"]) == 0


def test_files_of_others_are_never_replaced(sets: tuple[str, str], tmp_path: Path) -> None:
    out = tmp_path / "mine"
    out.mkdir()
    (out / "report.html").write_text("mine")
    train, test = sets
    assert run(["leaks", train, "--against", test, "-o", str(out), "--overwrite"]) == 2
    assert (out / "report.html").read_text() == "mine"


def test_an_input_without_documents_is_refused(
    sets: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "none.jsonl").write_text("")
    assert run(["leaks", sets[0], "--against", str(tmp_path / "none.jsonl")]) == 4
    assert "no document came from" in capsys.readouterr().err
    assert run(["leaks", sets[0], "--against", sets[0]]) == 2


def test_bad_records_are_counted(sets: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    with open(sets[0], "a") as file:
        file.write("no json\n")
    assert run(["leaks", sets[0], "--against", sets[1], "--words", "10"]) == 3
    assert "1 bad record was left out" in capsys.readouterr().err


def test_the_page_shows_the_passage_and_trusts_no_text(sets: tuple[str, str]) -> None:
    page = render(nd.leaks(sets[0], against=sets[1], words=10))
    assert "<mark>" + POEM[:20] in page
    assert "<script>" not in page
    assert "<b>t1" not in page
    assert "\u202e" not in page
    assert "1 of 2 test documents (50.0\xa0%) is in the training set" in page


def test_the_page_says_what_is_not_listed() -> None:
    footer = text_of(words(77, 50))
    train = [{"id": f"d{at}", "text": f"{text_of(words(at, 30))} {footer}"} for at in range(9)]
    found = nd.leaks(train, against=[f"{footer} end"], most=2, documents=False)
    page = render(found)
    assert "7 more passages are counted, not listed" in page
    assert "9 training documents share 30 words of them" in page
