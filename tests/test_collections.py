"""Collections: what comes is compared with all that is stored, on its content, and every answer says why."""

from __future__ import annotations

import json
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from threading import Event, Thread
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image

import neardup as nd
from neardup.collections import Collection
from neardup.collections.banks import chosen, seconds_of
from neardup.collections.clusters import evidence_of
from neardup.collections.generations import due
from neardup.collections.kinds import compressed, decompressed, kept_text, kind_of
from neardup.collections.verdicts import said_of
from neardup.errors import Conflict, InvalidType, InvalidValue, UnknownName
from neardup.store import CONTENTS, GENERATIONS, PRINTS, Bank

from .articles import article, documents, quickly


class Clock:
    """A clock that stands still unless it is told otherwise."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def news(tmp_path: Path, clock: Clock) -> Iterator[Collection]:
    with quickly(Collection.open(tmp_path / "news.nd", create=True, clock=clock)) as news:
        yield news


def statuses(news: Collection, *docs: dict[str, Any], **how: Any) -> list[str]:
    return [answer.status for answer in news.add(list(docs), **how)]


def doc(id: str, family: int, edition: int = 0, **fields: Any) -> dict[str, Any]:
    return {"id": id, "text": article(family, edition), **fields}


def found(news: Collection, **question: Any) -> list[str]:
    return [match.id for match in news.search(**question)]


# --- what comes -------------------------------------------------------------------------------------------


def test_a_document_is_new_then_unchanged_then_updated(news: Collection) -> None:
    assert statuses(news, doc("a", 1)) == ["new"]
    before = news.version
    assert statuses(news, doc("a", 1)) == ["unchanged"]
    assert news.version == before
    assert statuses(news, doc("a", 1, date="2026-11-18")) == ["updated"]
    assert statuses(news, doc("a", 2)) == ["updated"]
    assert found(news, text=article(1)) == []
    assert found(news, text=article(2)) == ["a"]


def test_an_identical_document_is_told_from_a_near_one(news: Collection) -> None:
    answers = news.add([doc("a", 1), doc("b", 1), doc("c", 1, 2), doc("d", 2)])
    assert [answer.status for answer in answers] == ["new", "identical", "near-duplicate", "new"]
    match = answers[2].matches[0]
    assert (match.id, match.reason, match.accepted, match.verified) == ("a", "nearly identical", True, True)
    assert 0.9 < match.similarity < 1
    assert match.distance > 0
    assert answers[1].matches[0].reason == "identical text"


def test_what_is_skipped_is_not_stored(news: Collection) -> None:
    docs = [doc("a", 1), doc("b", 1), doc("c", 1, 2)]
    answers = news.add(docs, near="skip")
    assert [(answer.status, answer.stored) for answer in answers] == [
        ("new", True),
        ("identical", False),
        ("near-duplicate", False),
    ]
    assert len(news) == 1
    assert "b" not in news


def test_what_has_expired_does_not_keep_a_copy_of_another_from_being_skipped(
    news: Collection, clock: Clock
) -> None:
    news.add([doc("a", 1)])
    news.add([doc("b", 2)], expires_after=5)
    clock.now += 5
    answer = news.add([doc("b", 1)], near="skip")[0]
    assert (answer.status, answer.stored) == ("identical", False)


def test_what_is_not_looked_for_is_found_later(news: Collection) -> None:
    assert statuses(news, doc("a", 1), doc("b", 1, 2), near="none") == ["new", "new"]
    assert found(news, id="a") == ["b"]


def test_a_document_without_information_is_near_nothing(news: Collection) -> None:
    assert (
        statuses(news, {"id": "a", "text": " .. "}, {"id": "b", "text": "!"}) == ["without information"] * 2
    )
    assert news.search(text="?!") == []
    assert news.check() == []


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ({"id": "", "text": "x"}, "its 'id' is ''"),
        ({"text": "x"}, "its 'id' is None"),
        ({"id": "a\0", "text": "x"}, "cannot be stored"),
        ({"id": "\ud800", "text": "x"}, "cannot be stored"),
        ({"id": "x" * 5000, "text": "x"}, "5,000 characters"),
        ({"id": "a"}, "neither 'text' nor 'picture'"),
        ({"id": "a", "text": 7}, "its 'text' is int"),
        ({"id": "a", "text": "x", "picture": b""}, "both 'text' and 'picture'"),
        ({"id": "a", "picture": b"nothing"}, "not an image"),
        ({"id": "a", "picture": "no/such/file"}, "cannot be read"),
        ({"id": "a", "text": "x", "field": float("nan")}, "cannot be stored as JSON"),
        ({"id": "a", "text": "x", "field": object()}, "cannot be stored as JSON"),
        (7, "is int, not a mapping"),
    ],
)
def test_a_bad_document_says_why_and_stops_no_other(news: Collection, bad: Any, reason: str) -> None:
    answers = news.add([doc("good", 1), bad, doc("other", 2)])
    assert [answer.status for answer in answers] == ["new", "bad", "new"]
    assert reason in answers[1].reason
    assert not answers[1].stored


def test_many_at_once_are_answered_as_one_by_one(tmp_path: Path, clock: Clock) -> None:
    docs = documents(80, 12)
    with (
        Collection.open(tmp_path / "one", create=True, clock=clock) as one,
        Collection.open(tmp_path / "many", create=True, clock=clock) as many,
    ):
        single = [one.add([each])[0] for each in docs]
        together = many.add(docs)

        def told(answers: Any) -> list[Any]:
            return [
                (
                    each.id,
                    each.status,
                    [(m.id, m.distance, m.similarity, m.rare, m.reason) for m in each.matches],
                )
                for each in answers
            ]

        assert told(single) == told(together)
        assert clustered(one) == clustered(many)


def clustered(news: Collection) -> set[tuple[str, ...]]:
    return {tuple(sorted(member.id for member in cluster.members)) for cluster in news.clusters()}


def test_fields_come_back_and_can_be_changed(news: Collection) -> None:
    news.add([doc("a", 1, date="2026-11-18", seen=3, tags=["x"])])
    assert news.search(text=article(1))[0].fields == {"date": "2026-11-18", "seen": 3, "tags": ["x"]}
    news.update("a", fields={"seen": 4, "date": None})
    assert news.get("a")["fields"] == {"seen": 4, "tags": ["x"]}
    with pytest.raises(UnknownName, match="no document 'b'"):
        news.update("b", fields={})


def test_an_error_in_the_middle_stores_nothing(news: Collection) -> None:
    def some() -> Iterator[dict[str, Any]]:
        yield doc("a", 1)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        news.add(some(), bank="other")
    assert len(news) == 0
    assert found(news, text=article(1)) == []
    assert [row["bank"] for row in news.banks()] == ["main"]
    assert statuses(news, doc("a", 1)) == ["new"]
    assert news.check() == []


def test_files_and_tables_are_read_with_their_fields(news: Collection, tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    path.write_text(
        "".join(json.dumps(each) + "\n" for each in [doc("a", 1, n=1), doc("b", 2, n=2)]) + "{}\n"
    )
    answers = news.add(str(path), fields=["n"])
    assert answers.counts() == {"new": 2, "bad": 1}
    assert news.get("b")["fields"] == {"n": 2}


# --- what goes --------------------------------------------------------------------------------------------


def test_what_is_removed_is_found_no_more(news: Collection) -> None:
    news.add([doc("a", 1), doc("b", 1, 1), doc("c", 1)])
    assert news.remove(["a", "nobody"]) == 1
    assert found(news, text=article(1)) == ["c", "b"]
    assert news.remove(["b", "c"]) == 2
    assert found(news, text=article(1)) == []
    assert len(news) == 0
    assert news.check() == []


def test_what_has_expired_is_found_no_more_even_before_it_is_swept(news: Collection, clock: Clock) -> None:
    news.add([doc("a", 1)], expires_after="30d")
    news.add([doc("b", 2)])
    clock.now += 30 * 86_400 - 1
    assert found(news, text=article(1)) == ["a"]
    clock.now += 1
    assert found(news, text=article(1)) == []
    assert "a" not in news
    assert len(news) == 2
    assert news.expire() == 1
    assert len(news) == 1


def test_a_clock_that_goes_back_brings_nothing_back(news: Collection, clock: Clock) -> None:
    news.add([doc("a", 1)], expires_after=10)
    clock.now += 10
    news.add([doc("b", 2)])
    clock.now -= 1000
    assert found(news, text=article(1)) == []
    assert [row["at"] for row in news.changes()] == sorted(row["at"] for row in news.changes())


def test_touching_a_document_moves_its_end(news: Collection, clock: Clock) -> None:
    news.add([doc("a", 1)], expires_after=10)
    clock.now += 9
    assert news.touch(["a", "nobody"], expires_after=10) == 1
    clock.now += 9
    assert "a" in news
    assert statuses(news, doc("a", 1), expires_after=10) == ["unchanged"]
    clock.now += 9
    assert "a" in news


def test_an_expired_document_may_come_again(news: Collection, clock: Clock) -> None:
    news.add([doc("a", 1)], expires_after=10)
    clock.now += 10
    assert statuses(news, doc("a", 1)) == ["new"]
    assert found(news, text=article(1)) == ["a"]
    assert news.check() == []


# --- banks ------------------------------------------------------------------------------------------------


def test_banks_are_searched_singly_together_and_by_glob(news: Collection) -> None:
    news.add([doc("a", 1)], bank="wire")
    news.add([doc("b", 1, 1)], bank="agency-x")
    news.add([doc("c", 1, 2)], bank="own")
    text = article(1)
    assert set(found(news, text=text)) == {"a", "b", "c"}
    assert found(news, text=text, banks=["wire"]) == ["a"]
    assert set(found(news, text=text, banks=["wire", "agency-*"])) == {"a", "b"}
    assert set(found(news, text=text, banks=["-own"])) == {"a", "b"}
    with pytest.raises(UnknownName, match="known: agency-x, main, own, wire"):
        news.search(text=text, banks=["wires"])


def test_what_a_bank_suppresses_is_left_out_where_it_matches(news: Collection) -> None:
    news.bank("noise", suppresses=["*"])
    news.add([doc("n", 1)], bank="noise")
    news.add([doc("a", 1, 1), doc("b", 2)])
    assert found(news, text=article(1)) == ["n"]
    assert found(news, text=article(2, 2)) == ["b"]
    news.bank("noise", suppresses=[])
    assert set(found(news, text=article(1))) == {"n", "a"}


def test_a_disabled_bank_is_searched_only_by_name(news: Collection) -> None:
    news.add([doc("a", 1)], bank="old")
    news.bank("old", enabled=False)
    assert found(news, text=article(1)) == [] == found(news, text=article(1), banks=["o*"])
    assert found(news, text=article(1), banks=["old"]) == ["a"]


def test_an_id_is_in_one_bank_only(news: Collection) -> None:
    news.add([doc("a", 1)], bank="wire")
    answer = news.add([doc("a", 1)], bank="own")[0]
    assert answer.status == "bad"
    assert "in bank 'wire' already" in answer.reason


def test_a_bank_gives_its_documents_their_time(news: Collection, clock: Clock) -> None:
    news.bank("wire", expires_after="1h")
    news.add([doc("a", 1)], bank="wire")
    clock.now += 3600
    assert "a" not in news


def test_a_bank_goes_with_its_documents(news: Collection) -> None:
    news.add([doc("a", 1)], bank="wire")
    news.add([doc("b", 1)])
    assert news.remove_bank("wire") == 1
    assert [row["bank"] for row in news.banks()] == ["main"]
    assert found(news, text=article(1)) == ["b"]
    with pytest.raises(InvalidValue, match="cannot be removed"):
        news.remove_bank("main")


@pytest.mark.parametrize("name", ["", "a b", "-a", "a/b", "x" * 65, "é", ".a"])
def test_a_bank_cannot_have_just_any_name(news: Collection, name: str) -> None:
    with pytest.raises(InvalidValue, match="cannot be the name of a bank"):
        news.add([], bank=name)


def test_times_are_written_with_a_unit() -> None:
    assert [seconds_of("t", one) for one in ("45s", "90m", "12h", "30d", "2w", 7, None)] == [
        45,
        5400,
        43_200,
        2_592_000,
        1_209_600,
        7,
        None,
    ]
    for bad in ("30", "d", "-1d", "1.5d", "٣d", 0, -5):
        with pytest.raises(InvalidValue):
            seconds_of("t", bad)


def test_a_choice_of_banks_that_begins_with_a_minus_leaves_out_of_all() -> None:
    known = {name: Bank(name, None, "[]", int(name != "off"), 0) for name in ("a", "b", "off")}
    assert chosen(None, known) == {"a", "b"} == chosen(["*"], known)
    assert chosen(["-a"], known) == {"b"}
    assert chosen(["off"], known) == {"off"}
    assert chosen([], known) == {"a", "b"}


# --- questions --------------------------------------------------------------------------------------------


def test_a_search_tells_what_it_measured_and_rejected_if_asked(news: Collection) -> None:
    news.add(
        [doc("a", 1), {"id": "b", "text": article(1)[: len(article(1)) * 2 // 3] + " " + article(9)[:150]}]
    )
    accepted, every = news.search(text=article(1)), news.search(text=article(1), rejected=True)
    assert [match.id for match in accepted] == ["a"]
    assert [match.id for match in every] == ["a", "b"]
    assert not every[1].accepted
    assert every[1].reason
    assert every[1].verified


def test_a_search_by_id_does_not_find_the_document_itself(news: Collection) -> None:
    news.add([doc("a", 1), doc("b", 1), doc("c", 1, 1)])
    assert found(news, id="a") == ["b", "c"]
    with pytest.raises(UnknownName, match="no document 'x'"):
        news.search(id="x")


def test_a_batch_of_questions_is_answered_as_each_by_itself(news: Collection) -> None:
    news.add(documents(40, 8))
    questions: list[dict[str, Any]] = [{"text": article(row, 5)} for row in range(9)] + [{"id": "d3"}]
    assert news.search_batch(questions) == [news.search(**one) for one in questions]


def test_a_fingerprint_alone_is_not_verified(news: Collection) -> None:
    news.add([doc("a", 1)])
    scheme = nd.scheme("text", bits=256, weights="log-df-open")
    value = scheme.fingerprint(article(1))
    match = news.search(print=value)[0]
    assert match.id == "a"
    assert match.distance == 0
    assert not match.verified
    assert not match.accepted


def test_the_nearest_are_told_at_any_distance(news: Collection) -> None:
    news.add([doc("a", 1), doc("b", 2), doc("c", 3)])
    near = news.nearest(text=article(2, 2), n=2)
    assert len(near) == 2
    assert near[0].id == "b"
    assert near[0].accepted
    assert not near[1].accepted


def test_two_documents_are_compared_on_request(news: Collection) -> None:
    news.add([doc("a", 1), doc("b", 1, 2), doc("c", 2)])
    assert news.compare("a", "b").accepted
    match = news.compare("a", "c")
    assert not match.accepted
    assert match.reason == "too different"
    assert match.id == "c"


def test_many_equal_documents_are_one_candidate_and_are_told_up_to_the_limit(news: Collection) -> None:
    news.add([{"id": f"d{row}", "text": article(1)} for row in range(300)])
    assert len(found(news, text=article(1), limit=7)) == 7
    assert news.status()["contents"] == 1
    assert len(news) == 300
    assert news.cluster("d7").keeper == "d0"


@pytest.mark.parametrize(
    "question", [{}, {"text": "a", "id": "b"}, {"text": "a", "print": 3}], ids=["none", "two", "print"]
)
def test_a_question_asks_for_one_thing(news: Collection, question: dict[str, Any]) -> None:
    with pytest.raises(InvalidValue, match="ask with one of"):
        news.search(**question)


# --- readers ----------------------------------------------------------------------------------------------


def test_a_reader_answers_as_the_writer_does_at_once(news: Collection) -> None:
    with Collection.open(news.path, read_only=True, clock=lambda: 1_000_000) as reader:
        for row, each in enumerate(documents(30, 6)):
            news.add([each])
            if row % 7 == 3:
                news.remove([f"d{row - 2}"])
            assert reader.version == news.version
            assert reader.search(text=str(each["text"])) == news.search(text=str(each["text"]))
        news.refit()
        news.bank("wire")
        assert reader.banks() == news.banks()
        assert reader.search(text=article(1)) == news.search(text=article(1))
        with pytest.raises(InvalidValue, match="read_only"):
            reader.add([doc("x", 1)])


def test_an_opened_collection_answers_as_before(news: Collection, clock: Clock) -> None:
    news.add(documents(150, 30))
    before = [news.search(text=article(row, 7)) for row in range(30)], clustered(news), news.status()
    news.close()
    with Collection.open(news.path, clock=clock) as again:
        after = [again.search(text=article(row, 7)) for row in range(30)], clustered(again), again.status()
        assert after[:2] == before[:2]
        assert after[2]["generations"] == before[2]["generations"]


def test_a_snapshot_of_the_index_and_the_log_give_the_same_answers(
    news: Collection, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("neardup.collections.live.MANY", 10)
    for first in range(0, 60, 10):
        news.add(documents(60, 12)[first : first + 10])
    news.remove(["d3", "d30", "d59"])
    news.add([doc("new", 3, 9)])
    files = sorted((Path(news.path) / "index").iterdir())
    assert 1 <= len(files) <= 4
    before = [news.search(text=article(row, 7)) for row in range(12)]
    news.close()
    with Collection.open(news.path, clock=clock) as again:
        assert [again.search(text=article(row, 7)) for row in range(12)] == before
        assert again.check() == []
    for file in files:
        file.write_bytes(b"nonsense")
    with Collection.open(news.path, clock=clock) as again:
        assert [again.search(text=article(row, 7)) for row in range(12)] == before


def test_readers_see_whole_calls_while_another_thread_writes(news: Collection) -> None:
    wrong: list[object] = []
    calls, done = 25, Event()

    def read() -> None:
        with Collection.open(news.path, read_only=True, clock=lambda: 1_000_000) as reader:
            while not done.is_set():
                rows = [(row["fields"]["n"], row["text"]) for row in reader.documents()]
                if len(rows) % 3 or len({n for n, _ in rows}) * 3 != len(rows):
                    wrong.append(rows)
                if rows and rows[0][1] not in [
                    reader.get(m.id)["text"] for m in reader.search(text=rows[0][1])
                ]:
                    wrong.append(rows[0])

    readers = [Thread(target=read) for _ in range(3)]
    for thread in readers:
        thread.start()
    try:
        for n in range(calls):
            news.add([doc(f"{n}.{part}", 10 * n + part, n=n) for part in range(3)])
    finally:
        done.set()
        for thread in readers:
            thread.join()
    assert wrong == []
    assert len(news) == 3 * calls


# --- verdicts ---------------------------------------------------------------------------------------------


def test_what_was_said_to_be_different_is_never_proposed_again(news: Collection) -> None:
    news.add([doc("a", 1), doc("b", 1, 1)])
    assert found(news, id="a") == ["b"]
    news.verdict("a", "b", "different", by="ana", note="another city")
    assert found(news, id="a") == []
    assert news.cluster("a") != news.cluster("b")
    news.refit()
    assert news.search(id="a", rejected=True) == []
    kept = news.dedupe(keep="longest").kept
    assert sorted(kept.column("id").to_pylist()) == ["a", "b"]


def test_what_was_said_to_be_the_same_is_found_and_clustered(news: Collection) -> None:
    news.add([doc("a", 1), doc("b", 2)])
    assert found(news, id="a") == []
    news.verdict("a", "b", "same", by="ana")
    match = news.search(id="a")[0]
    assert match.id == "b"
    assert match.reason == "said to be the same by ana"
    assert match.similarity < 0.5
    assert clustered(news) == {("a", "b")}
    result = news.dedupe(keep="longest")
    assert result.annotations.column("keep").to_pylist().count(True) == 1
    assert result.evidence.column("reason").to_pylist() == ["said to be the same"]


def test_nothing_is_in_one_star_with_two_that_are_different(news: Collection) -> None:
    news.add([doc("a", 1), doc("b", 1, 1), doc("c", 1, 2)])
    news.verdict("b", "c", "different")
    for keep in ("longest", "first", "last", "central,longest"):
        rows = news.dedupe(keep=keep).annotations.to_pylist()
        cluster = {row["id"]: row["cluster"] for row in rows}
        assert cluster["b"] != cluster["c"], keep
    assert news.cluster("b").number != news.cluster("c").number


def test_a_verdict_holds_for_contents_and_is_stale_when_one_is_gone(news: Collection) -> None:
    news.add([doc("a", 1), doc("b", 1, 1)])
    news.verdict("a", "b", "different")
    news.add([doc("b", 1, 2)])
    assert found(news, id="a") == ["b"]
    assert news.verdicts()[0]["stale"]
    news.add([doc("b", 1, 1)])
    assert found(news, id="a") == []
    assert not news.verdicts()[0]["stale"]


def test_somebody_else_said_otherwise_meanwhile(news: Collection) -> None:
    news.add([doc("a", 1), doc("b", 1, 1)])
    news.verdict("a", "b", "same", by="ana", expect="")
    with pytest.raises(Conflict, match="is same, by ana, not none"):
        news.verdict("a", "b", "different", by="bo", expect="")
    news.verdict("b", "a", "different", by="bo", expect="same")
    assert news.verdicts()[0]["verdict"] == "different"


def test_labels_are_the_verdicts_with_both_texts(news: Collection) -> None:
    news.add([doc("a", 1), doc("b", 1, 1), doc("c", 2), doc("d", 3)])
    news.verdict("a", "b", "same")
    news.verdict("a", "c", "different")
    news.verdict("a", "d", "unsure")
    labels = news.labels()
    assert sorted(one["label"] for one in labels) == [0, 1]
    assert all({one["text"], one["other_text"]} <= {article(1), article(1, 1), article(2)} for one in labels)
    assert found(news, id="d") == []


def test_one_content_cannot_be_different_from_itself(news: Collection) -> None:
    news.add([doc("a", 1), doc("b", 1)])
    with pytest.raises(InvalidValue, match="same content"):
        news.verdict("a", "b", "different")
    with pytest.raises(InvalidValue, match="say one of: same, different, unsure"):
        news.verdict("a", "b", "maybe")


# --- clusters ---------------------------------------------------------------------------------------------


def test_a_cluster_is_a_star_and_its_number_is_not_given_again(news: Collection) -> None:
    news.add([doc("a", 1), doc("b", 1, 1), doc("c", 1, 2)])
    cluster = news.cluster("c")
    assert cluster.keeper == "a"
    assert [one.id for one in cluster.members] == ["a", "b", "c"]
    numbers = {cluster.number}
    for row in range(4):
        news.add([doc(f"x{row}", 10 + row)])
        number = news.cluster(f"x{row}").number
        news.remove([f"x{row}"])
        assert number not in numbers
        numbers.add(number)


def test_when_the_keeper_goes_the_others_stay_together(news: Collection) -> None:
    news.add([{"id": id, "text": article(1, edition, words=300)} for edition, id in enumerate("abc")])
    number = news.cluster("a").number
    news.remove(["a"])
    cluster = news.cluster("c")
    assert (cluster.number, cluster.keeper) == (number, "b")
    assert [one.id for one in cluster.members] == ["b", "c"]
    check_stars(news)


def test_clusters_that_changed_since_are_told(news: Collection) -> None:
    news.add([doc("a", 1), doc("b", 1, 1)])
    change = news.version[0]
    assert len(news.clusters()) == 1
    assert news.clusters(since=change) == []
    news.add([doc("c", 2), doc("d", 2, 1)])
    assert [one.keeper for one in news.clusters(since=change)] == ["c"]


def check_stars(news: Collection) -> None:
    """Every content keeps itself, or was accepted against a keeper of its cluster."""
    store = news._store
    rows = {row.number: row for row in store.scan(CONTENTS)}
    keepers = [row.cluster for row in rows.values() if row.keeper == row.number]
    assert len(keepers) == len(set(keepers))
    for row in rows.values():
        keeper = rows[row.keeper]
        assert keeper.cluster == row.cluster
        assert keeper.keeper == keeper.number
        if keeper != row:
            seen = {other.number: evidence.accepted for evidence, other in evidence_of(store, row.number)}
            said = said_of(store, row.digest).get(keeper.digest)
            assert seen[keeper.number] if said is None else said.verdict == "same"


# --- dedupe -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("keep", ["central,longest", "first", "newest:date", "max:row"])
def test_dedupe_gives_what_dedupe_of_the_export_gives(news: Collection, tmp_path: Path, keep: str) -> None:
    docs = [{**each, "date": f"2026-11-{1 + row % 28:02}"} for row, each in enumerate(documents(60, 15))]
    news.add(docs)
    news.remove(["d5"])
    news.add([{"id": "d5", "text": article(3, 1), "row": 1, "date": "2026-01-01"}])
    path = tmp_path / "out.jsonl"
    assert news.export(path) == 60
    ours, theirs = news.dedupe(keep=keep), nd.dedupe(str(path), keep=keep)
    assert ours.annotations.equals(theirs.annotations)
    assert ours.evidence.equals(theirs.evidence)
    assert ours.scheme.digest == theirs.scheme.digest
    assert ours.summary["clusters"] == theirs.summary["clusters"] > 0


def test_dedupe_looks_at_the_chosen_banks(news: Collection) -> None:
    news.add([doc("a", 1)], bank="wire")
    news.add([doc("b", 1)], bank="own")
    assert news.dedupe(banks=["wire"]).summary["documents"] == 1
    assert news.dedupe(guards=False).annotations.column("keep").to_pylist().count(True) == 1


# --- generations ------------------------------------------------------------------------------------------


def test_a_new_generation_is_made_at_each_tenfold_growth(news: Collection) -> None:
    docs = documents(230, 220)
    news.add(docs[:90])
    first = news.status()["generations"]["text"]
    assert first["fitted_on"] == 0
    news.add(docs[90:])
    second = news.status()["generations"]["text"]
    assert second["fitted_on"] >= 100
    assert second["number"] > first["number"]
    assert [row.live for row in news._store.scan_all(GENERATIONS)].count(1) == 2
    assert {row.generation for row in news._store.scan(PRINTS)} == {second["number"]}
    assert due(150, 999) is False
    assert due(150, 1000) is True


def test_a_refit_that_was_killed_leaves_nothing_behind(
    news: Collection, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    news.add(documents(50, 20))
    before = [news.search(text=article(row, 7)) for row in range(20)]

    class Killed(BaseException):
        pass

    def die(*_: Any) -> None:
        raise Killed

    monkeypatch.setattr("neardup.collections.generations.LiveIndex", die)
    monkeypatch.setattr("neardup.store.stores.Writing.replace", die)
    with pytest.raises(Killed):
        news.refit()
    monkeypatch.undo()
    news.close()
    with Collection.open(news.path, clock=clock) as again:
        assert [again.search(text=article(row, 7)) for row in range(20)] == before
        assert {row.live for row in again._store.scan_all(GENERATIONS)} == {1}
        assert again.check() == []


def test_an_open_table_takes_what_it_does_not_know_for_rare() -> None:
    texts = [article(row) for row in range(40)]
    closed = nd.scheme("text", bits=256).fit(texts)
    opened = nd.scheme("text", bits=256, weights="log-df-open").fit(texts)
    one, other = article(1000), article(1000, 3)

    def apart(scheme: nd.Scheme) -> int:
        left, right = scheme.fingerprint(one), scheme.fingerprint(other)
        assert left is not None
        assert right is not None
        return (left ^ right).bit_count()

    assert closed.digest != opened.digest
    assert apart(opened) < 60
    known = texts[0] + " " + texts[0]
    assert opened.fingerprint(known) is not None


def test_a_rebuild_gives_the_same_fingerprints(news: Collection) -> None:
    news.add(documents(40, 10))

    def prints() -> list[tuple[int, int, bytes]]:
        return [(row.content, row.part, row.words) for row in news._store.scan(PRINTS, by="content")]

    before = prints()
    news.rebuild()
    assert prints() == before
    assert news.check() == []


# --- images -----------------------------------------------------------------------------------------------


def picture(seed: int, brighter: int = 0) -> bytes:
    grey = np.random.default_rng(seed).integers(0, 200, (6, 6), dtype=np.uint8)
    image = Image.fromarray(grey).resize((200, 200), Image.Resampling.BICUBIC)
    file = BytesIO()
    image.point(lambda value: min(255, value + brighter)).save(file, "PNG")
    return file.getvalue()


def test_images_are_compared_as_texts_are(news: Collection, tmp_path: Path) -> None:
    small = tmp_path / "small.png"
    Image.open(BytesIO(picture(1))).resize((120, 120)).save(small)
    answers = news.add(
        [
            {"id": "a", "picture": picture(1), "by": "ana"},
            {"id": "b", "picture": picture(2)},
            {"id": "c", "picture": str(small)},
            {"id": "d", "picture": picture(1)},
        ]
    )
    assert [answer.status for answer in answers] == ["new", "new", "near-duplicate", "identical"]
    match = news.search(picture=picture(1, 9))[0]
    assert match.id in "ac"
    assert match.reason == "same image"
    assert match.verified
    mirrored = BytesIO()
    Image.open(BytesIO(picture(2))).transpose(Image.Transpose.FLIP_LEFT_RIGHT).save(mirrored, "PNG")
    assert news.search(picture=mirrored.getvalue())[0].reason == "same image: mirror"
    assert clustered(news) == {("a", "c", "d")}
    assert news.check() == []
    assert news.get("a")["image"]["width"] == 200


def test_dedupe_of_stored_images_is_that_of_their_files(news: Collection, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for name, data in {"a": picture(1), "b": picture(1, 6), "c": picture(2), "d": picture(1)}.items():
        (folder / f"{name}.png").write_bytes(data)
    news.add([str(folder)])
    ours, theirs = news.dedupe(guards=False), nd.dedupe(str(folder), guards=False)
    assert ours.annotations.sort_by("id").equals(theirs.annotations.sort_by("id"))
    assert ours.evidence.equals(theirs.evidence)


def test_verdicts_bind_images_as_they_bind_texts(news: Collection) -> None:
    news.add(
        [{"id": id, "picture": picture(*seed)} for id, seed in {"a": (1,), "b": (1, 6), "c": (2,)}.items()]
    )
    news.verdict("a", "b", "different")
    news.verdict("a", "c", "same", by="ana")
    assert found(news, id="b") == []
    assert [match.reason for match in news.search(id="c")] == ["said to be the same by ana"]
    assert clustered(news) == {("a", "c")}
    result = news.dedupe(guards=False)
    cluster = {row["id"]: row["cluster"] for row in result.annotations.to_pylist()}
    assert cluster["a"] == cluster["c"] != cluster["b"]
    assert "said to be the same" in result.evidence.column("reason").to_pylist()


def test_texts_and_images_are_deduplicated_one_kind_at_a_time(news: Collection) -> None:
    news.add([doc("a", 1), {"id": "b", "picture": picture(1)}])
    with pytest.raises(InvalidValue, match="choose one with kind="):
        news.dedupe()
    assert news.dedupe(kind="image").summary["documents"] == 1


# --- copies -----------------------------------------------------------------------------------------------


def test_a_backup_is_a_collection_of_its_moment(news: Collection, tmp_path: Path) -> None:
    news.add(documents(30, 9))
    before = [news.search(text=article(row)) for row in range(9)]
    news.backup(tmp_path / "copy")
    news.remove([f"d{row}" for row in range(30)])
    with Collection.open(tmp_path / "copy", read_only=True) as copy:
        assert [copy.search(text=article(row)) for row in range(9)] == before
        assert copy.check() == []
    with pytest.raises(InvalidValue, match="exists"):
        news.backup(tmp_path / "copy")


def test_an_export_holds_every_document_and_its_fields(news: Collection, tmp_path: Path) -> None:
    news.add([doc("a", 1, date="x"), doc("b", 2)], bank="wire")
    news.export(tmp_path / "out.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [(row["id"], row["bank"], row["text"], row.get("date")) for row in rows] == [
        ("a", "wire", article(1), "x"),
        ("b", "wire", article(2), None),
    ]
    news.add([doc("c", 3, bank="a field", cluster="another")])
    news.export(tmp_path / "more.jsonl", banks=["main"])
    row = json.loads((tmp_path / "more.jsonl").read_text())
    assert (row["bank"], row["cluster"]) == ("a field", "another")
    news.remove(["c"])
    news.export(tmp_path / "out.parquet")
    assert pq.read_table(tmp_path / "out.parquet").column("text").to_pylist() == [article(1), article(2)]
    with pytest.raises(InvalidValue, match=r"written as .jsonl or .parquet"):
        news.export(tmp_path / "out.csv")


def test_the_changes_say_what_happened_in_order(news: Collection) -> None:
    news.add([doc("a", 1)])
    since = news.version[0]
    news.add([doc("a", 2), doc("b", 3)])
    news.remove(["b"])
    rows = [(row["kind"], row["id"]) for row in news.changes(since=since) if "id" in row]
    assert rows == [("update", "a"), ("add", "b"), ("remove", "b")]


def test_contents_are_compressed_only_if_that_saves_room() -> None:
    for data in (b"", b"a", b"a" * 10_000, bytes(range(256))):
        assert decompressed(compressed(data), len(data)) == data
        assert len(compressed(data)) <= len(data) + 1
    with pytest.raises(InvalidValue, match="does not know"):
        decompressed(b"\xffdata", 4)


def test_a_lone_surrogate_is_stored_as_the_replacement_character() -> None:
    assert kept_text("a\ud800b").data == "a\ufffdb".encode()
    assert kind_of("text").name == "text"


def test_what_is_given_in_a_wrong_way_is_told(news: Collection, tmp_path: Path) -> None:
    with pytest.raises(InvalidType, match="several"):
        news.add({"id": "a", "text": "x"})
    with pytest.raises(InvalidValue, match="near must be one of"):
        news.add([], near="perhaps")
    with pytest.raises(InvalidType, match="ids must be several"):
        news.remove("a")
    news.close()
    with pytest.raises(InvalidValue, match="another similarity"):
        Collection.open(news.path, similarity=0.9)
    with pytest.raises(InvalidValue, match="makes none"):
        Collection.open(tmp_path / "none", create=True, read_only=True)
