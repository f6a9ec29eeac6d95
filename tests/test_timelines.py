"""Timelines: captures in order, their states, what changed, and what is left out."""

from __future__ import annotations

import csv
import gzip
import io
import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import neardup as nd
from neardup.errors import Cancelled, InvalidType, InvalidValue, LimitReached, NeardupError, RefusedInput
from neardup.observers import Advance, Cancellable, Observer
from neardup.sources import Tolerance, open_source
from neardup.timelines import Choices, Page, Timeline, page_scheme, pages_of
from neardup.timelines.states import NEAREST
from neardup.verifiers import NO_INFORMATION, Verifier, measuring_scheme, parse_measure

from .corpus import Rows, neardup, process, words, write_jsonl
from .test_sources_formats import warc

BASE = " ".join(words(1, 120))
OTHER = " ".join(words(2, 120))


def capture(date: Any, text: str = BASE, page: Any = "p", **more: Any) -> dict[str, Any]:
    return {"id": f"{page} {date}", "url": page, "date": date, "text": text, **more}


def days(*texts: str, page: str = "p") -> Rows:
    """A capture on each day of a month."""
    return [capture(f"2024-01-{day:02}", text, page) for day, text in enumerate(texts, 1)]


def states(data: Any, **choices: Any) -> list[int]:
    """The states of the captures of one page."""
    [page] = nd.timeline(data, **choices)
    return [one.state for one in page.captures]


def changed(text: str, share: float, seed: int = 5) -> str:
    """*text* with that share of its words replaced."""
    found, rng = text.split(), random.Random(seed)
    fresh = words(seed + 9000, len(found))
    for place in rng.sample(range(len(found)), round(share * len(found))):
        found[place] = fresh[place]
    return " ".join(found)


# --- states ----------------------------------------------------------------------------------------------


def test_a_state_that_comes_back_has_its_number_again_and_says_so() -> None:
    [page] = nd.timeline(days(BASE, OTHER, OTHER, BASE, BASE))
    assert [one.state for one in page.captures] == [1, 2, 2, 1, 1]
    assert [one.run for one in page.captures] == [1, 2, 2, 3, 3]
    assert [one.returned for one in page.captures] == [False, False, False, True, False]
    assert (page.states, page.changes, [len(run) for run in page.runs]) == (2, 2, [1, 2, 2])


def test_case_spacing_and_punctuation_make_no_new_state() -> None:
    [page] = nd.timeline(days(BASE, OTHER, BASE.upper().replace(" ", ",  ")))
    assert [one.state for one in page.captures] == [1, 2, 1]
    assert page.captures[2].first is not None
    assert page.captures[2].first.reason == "identical but for case, spacing or punctuation"


def test_a_counter_makes_no_new_state_and_other_hours_do() -> None:
    long = " ".join(words(3, 400))
    assert states(days(*(f"{long} Visitors: {count}" for count in (17, 118, 2119)))) == [1, 1, 1]
    hours = "Opening hours: Monday to Friday from {} to {}. Closed on Sundays."
    assert states(days(hours.format(9, 17), hours.format(10, 18))) == [1, 2]


def test_no_capture_has_a_state_by_way_of_a_third() -> None:
    """Each text is near the one before, and far from the first."""
    long = words(6, 300)
    texts = []
    for day in range(12):
        long[day * 5] = f"changed{day}"
        texts.append(" ".join(long))
    [page] = nd.timeline(days(*texts), similarity=0.985)
    assert all((one.before.similarity or 0) > 0.985 for one in page.captures if one.before)
    begins = {run[0].state: texts[run[0].number - 1] for run in page.runs}
    assert len(begins) > 1
    for one in page.captures:
        assert same(texts[one.number - 1], begins[one.state], 0.985)


def test_a_text_that_is_near_an_earlier_state_has_that_state() -> None:
    assert states(days(BASE, OTHER, changed(BASE, 0.02), changed(OTHER, 0.02)), similarity=0.95) == [
        1,
        2,
        1,
        2,
    ]


def test_verify_none_asks_for_the_same_words() -> None:
    near = f"{BASE} more"
    assert states(days(BASE, near, BASE.upper()), similarity=0.5, verify="none") == [1, 2, 1]
    assert states(days(BASE, near, BASE.upper()), similarity=0.5) == [1, 1, 1]


def test_captures_without_words_are_one_state_and_have_no_figures() -> None:
    [page] = nd.timeline(days("", BASE, " ... ", "", BASE))
    assert [one.state for one in page.captures] == [1, 2, 1, 1, 2]
    compared = [one.before for one in page.captures if one.before]
    assert [(one.distance, one.similarity, one.same) for one in compared[:3]] == [
        (None, None, False),
        (None, None, False),
        (None, None, True),
    ]
    assert {one.reason for one in compared} == {NO_INFORMATION}


# --- figures ---------------------------------------------------------------------------------------------


def same(one: str, other: str, similarity: float) -> bool:
    """Whether two texts are the same, each pair looked at alone."""
    measuring = measuring_scheme()
    left, right = (measuring.normalized(text) for text in (one, other))
    if left == right or not (left and right):
        return left == right
    verifier = Verifier(parse_measure("default", similarity), None)
    verifier.add("ab", [one, other])
    return verifier.judge("a", "b")[0].accepted


def plain_states(texts: list[str], similarity: float) -> list[int]:
    """The same as the package finds, in the plainest way."""
    begins: list[str] = []
    found: list[int] = []
    scheme = page_scheme()
    for at, text in enumerate(texts):
        spelled = [measuring_scheme().normalized(one) for one in (text, *texts[:at])]
        state = next((found[before] for before in range(at) if spelled[before + 1] == spelled[0]), 0)
        if not state and found and same(begins[found[-1] - 1], text, similarity):
            state = found[-1]
        if not state:
            own = scheme.fingerprint(text)
            others = [
                (nd.distance(own, print), number)
                for number, print in enumerate(map(scheme.fingerprint, begins), 1)
                if number != found[-1] and own is not None and print is not None
            ]
            near = [number for _, number in sorted(others)[:NEAREST]]
            state = next((number for number in near if same(begins[number - 1], text, similarity)), 0)
        if not state:
            begins.append(text)
            state = len(begins)
        found.append(state)
    return found


SOME = [
    BASE,
    OTHER,
    "",
    "...",
    BASE.upper(),
    *(changed(BASE, share / 100) for share in (1, 2, 4, 8, 30)),
    f"{OTHER} more",
]


@settings(max_examples=30)
@given(st.lists(st.sampled_from(SOME), min_size=1, max_size=12), st.sampled_from([0.9, 0.97, 0.99]))
def test_states_are_those_of_the_plain_way(texts: list[str], similarity: float) -> None:
    assert states(days(*texts), similarity=similarity) == plain_states(texts, similarity)


def test_similarity_is_that_of_verify_and_distance_that_of_fingerprints() -> None:
    texts = [BASE, changed(BASE, 0.1), changed(BASE, 0.3, seed=6), OTHER]
    [page] = nd.timeline(days(*texts))
    prints = [page_scheme().fingerprint(text) or 0 for text in texts]
    for at, one in enumerate(page.captures[1:], 1):
        for place, compared in ((at - 1, one.before), (0, one.first)):
            [verdict] = nd.verify([(texts[place], texts[at])])
            assert compared is not None
            assert compared.similarity == pytest.approx(verdict.similarity, abs=1e-9)
            assert compared.distance == nd.distance(prints[place], prints[at])
        assert one.fingerprint == nd.format(prints[at], 256)


def test_what_changed_is_told_word_by_word() -> None:
    old, new = (
        "The council meets on Monday in the old hall.",
        "The council meets on Tuesday in the hall, at noon.",
    )
    [page] = nd.timeline(days(old, new))
    one = page.captures[1]
    assert (one.words, one.added, one.removed, one.passages) == (10, 3, 2, 3)
    assert one.changes == [
        {"removed": "Monday", "added": "Tuesday"},
        {"removed": "old", "added": ""},
        {"removed": "", "added": ", at noon"},
    ]


def test_what_is_said_of_a_page_does_not_depend_on_others() -> None:
    texts = [BASE, changed(BASE, 0.05), OTHER, BASE]
    alone = nd.timeline(days(*texts))[0]
    among = nd.timeline(
        [*days(*texts), *(one for n in range(30) for one in days(changed(BASE, 0.02, n), page=f"q{n}"))]
    )
    assert next(one for one in among if one.name == "p").captures == alone.captures


# --- order, ties, input ----------------------------------------------------------------------------------


def many() -> Rows:
    rows: Rows = []
    for page in range(7):
        for day in range(1 + page * 2):
            text = [BASE, OTHER, changed(BASE, 0.1, page), f"{OTHER} {day}"][day * page % 4]
            rows.append(
                capture(f"2024-0{day % 3 + 1}-{day + 1:02}", text, f"https://example.org/{page % 5}é")
            )
    rows += [capture("2024-01-01", BASE, "tie", id=name) for name in ("b", "a", "c")]
    rows += [capture("2024-01-01", text, "tie", id="a") for text in (OTHER, BASE)]
    return rows


def facts(found: Any) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = found.table.to_pylist()
    return rows


def test_order_input_threads_and_memory_change_nothing(tmp_path: Path) -> None:
    rows = many()
    wanted = facts(nd.timeline(rows))
    assert len(wanted) == len({(row["url"], row["date"], row["id"], row["text"]) for row in rows}) < len(rows)
    shuffled = random.Random(1).sample(rows, len(rows))
    files = [write_jsonl(tmp_path / f"{part}.jsonl", shuffled[part::3]) for part in range(3)]
    pq.write_table(pa.Table.from_pylist(shuffled), tmp_path / "a.parquet")
    options: list[tuple[Any, dict[str, Any]]] = [
        (shuffled, {"threads": 1}),
        (iter(shuffled), {"memory": 1}),
        ([str(file) for file in files], {"memory": 1 << 12}),
        (pa.Table.from_pylist(shuffled), {"threads": 3}),
        (str(tmp_path / "a.parquet"), {}),
    ]
    for data, choices in options:
        assert facts(nd.timeline(data, **choices)) == wanted


def test_captures_of_one_moment_are_ordered_by_id_and_the_same_one_twice_counts_once() -> None:
    page = next(page for page in nd.timeline(many()) if page.name == "tie")
    assert [one.id for one in page.captures] == ["a", "a", "b", "c"]
    assert page.repeated == 1


def test_dates_of_any_form_are_put_in_order() -> None:
    dates = [
        "2024-05-01T12:00:00+02:00",
        "20240501103000",
        1714559400,
        "Wed, 01 May 2024 11:00:00 GMT",
        "2023",
    ]
    [page] = nd.timeline([capture(date, str(date)) for date in dates])
    assert [one.time for one in page.captures] == [
        "2023-01-01T00:00:00Z",
        "2024-05-01T10:00:00Z",
        "2024-05-01T10:30:00Z",
        "2024-05-01T10:30:00Z",
        "2024-05-01T11:00:00Z",
    ]
    assert page.captures[1].date == "2024-05-01T12:00:00+02:00"


def test_what_has_no_page_or_no_date_is_left_out_with_a_reason() -> None:
    rows = [
        capture("2024"),
        {"id": "x", "date": "2024", "text": "t"},
        capture(None, "t"),
        capture("soon"),
    ]
    found = nd.timeline(rows)
    assert [len(page.captures) for page in found] == [1]
    assert [bad.reason for bad in found.bad] == [
        "has no 'url', which names its page",
        "has no 'date'",
        "its 'date' is not a date in a known form: 'soon'",
    ]
    assert json.loads(found.bad[1].raw) == {"id": "p None", "url": "p", "date": None, "text": "t"}


def test_a_date_outside_of_the_calendar_is_no_date() -> None:
    found = nd.timeline([capture(1714559400.0), capture(1e300), capture(-9e10)])
    assert [page.captures[0].time for page in found] == ["2024-05-01T10:30:00Z"]
    assert [bad.reason[-7:] for bad in found.bad] == [" 1e+300", "00000.0"]


@pytest.mark.parametrize(
    ("rows", "choices", "error", "message"),
    [
        (
            days(BASE),
            {"within": "page"},
            InvalidValue,
            "no document has a value in the field 'page' of within",
        ),
        (days(BASE), {"order": "time"}, InvalidValue, "no document has a date in the field 'time' of order"),
        (days(BASE), {"order": "text"}, InvalidValue, "no document has a date in the field 'text' of order"),
        ([], {}, RefusedInput, "no document came from '<memory>'"),
        (days(BASE), {"similarity": 2}, InvalidValue, "similarity must be above 0 and at most 1, not 2"),
        (days(BASE), {"within": 3}, InvalidType, "within must be a str, not 3"),
        (days(BASE), {"verify": "nonsense"}, NeardupError, "unknown verification 'nonsense'"),
        (days(BASE), {"scheme": "image"}, InvalidValue, "scheme 'image' is not for texts"),
        (days(BASE), {"observer": 3}, InvalidType, "observer must be an Observer"),
    ],
)
def test_what_cannot_be_is_one_clear_line(
    rows: Rows, choices: dict[str, Any], error: type[NeardupError], message: str
) -> None:
    with pytest.raises(error, match=message):
        nd.timeline(rows, **choices)


def test_several_text_fields_are_compared_together() -> None:
    rows = [{**row, "title": title} for row, title in zip(days(BASE, BASE), ("One", "Two"), strict=True)]
    assert states(rows, text_field="text") == [1, 1]
    assert states(rows, text_field="title,text", similarity=1.0) == [1, 2]


def test_a_warc_needs_no_names_of_fields(tmp_path: Path) -> None:
    path = tmp_path / "a.warc.gz"
    records = [
        warc((address, f"<html><body><main><p>{text}</p></main></body></html>".encode())).replace(
            b"2024-01-01", date.encode()
        )
        for address, date, text in (
            ("http://a/", "2024-03-01", OTHER),
            ("http://a/", "2024-02-01", BASE),
            ("http://b/", "2024-01-01", BASE),
        )
    ]
    path.write_bytes(b"".join(map(gzip.compress, records)))
    for within, order in (("url", "date"), ("WARC-Target-URI", "WARC-Date")):
        found = nd.timeline(str(path), within=within, order=order)
        assert [(page.name, [one.time for one in page.captures]) for page in found] == [
            ("http://a/", ["2024-02-01T00:00:00Z", "2024-03-01T00:00:00Z"]),
            ("http://b/", ["2024-01-01T00:00:00Z"]),
        ]


def test_a_timeline_is_a_sequence_of_pages() -> None:
    found = nd.timeline([*days(BASE), *days(BASE, OTHER, page="q")])
    assert isinstance(found, Timeline)
    assert (len(found), found[1].name, repr(found)) == (2, "q", "<2 pages, 3 captures>")
    assert [isinstance(page, Page) for page in found[:2]] == [True, True]


# --- cancelling ------------------------------------------------------------------------------------------


class _At(Observer):
    """Cancels when a stage begins."""

    def __init__(self, name: str) -> None:
        self.name, self.cancel = name, False

    def stage(self, name: str, *, total: int = 0, unit: str = "bytes", what: str = "document") -> Any:
        self.cancel = self.cancel or name == self.name
        return super().stage(name)

    def cancelled(self) -> bool:
        return self.cancel


@pytest.mark.parametrize("stage", ["read", "compare"])
def test_a_timeline_can_be_cancelled(stage: str) -> None:
    with pytest.raises(Cancelled):
        nd.timeline(many(), observer=Cancellable(_At(stage)))


def test_progress_counts_documents_and_captures() -> None:
    told: dict[str, list[int]] = {"read": [], "compare": []}

    class Telling(Observer):
        def stage(self, name: str, **options: Any) -> Any:
            from contextlib import nullcontext

            advance: Advance = lambda documents, at: told[name].append(documents)  # noqa: E731
            return nullcontext(advance)

    nd.timeline(many(), observer=Telling())
    assert told["read"][-1] == told["compare"][-1] == len(many())
    assert len(told["compare"]) == 6


def test_bad_records_stop_it_where_that_is_wanted() -> None:
    for tolerance in (Tolerance(count=0), Tolerance(share=0.1)):
        source = open_source([*days(BASE), capture("soon")], fields=("url", "date"), tolerance=tolerance)
        with (
            pytest.raises(LimitReached, match="bad"),
            pages_of(source, Choices(), page_scheme(), on_bad=lambda bad: None),
        ):
            pass


# --- the command -----------------------------------------------------------------------------------------


def test_the_command_writes_a_row_for_each_capture_wherever_it_goes(tmp_path: Path) -> None:
    rows = days(BASE, changed(BASE, 0.1), BASE)
    path = write_jsonl(tmp_path / "a.jsonl", rows)
    wanted = facts(nd.timeline(rows))
    done = neardup("timeline", path)
    assert done.code == 0
    assert [json.loads(line) for line in done.out.splitlines()] == wanted
    assert done.err.splitlines()[-1] == "3 captures of 1 page, 2 states"
    for name in ("a.jsonl.gz", "a.parquet", "a.arrow", "a.csv"):
        assert neardup("timeline", path, "-o", tmp_path / f"out-{name}", "--quiet").code == 0
    assert pq.read_table(tmp_path / "out-a.parquet").to_pylist() == wanted
    [_, second, _] = csv.DictReader(io.StringIO((tmp_path / "out-a.csv").read_text("utf-8")))
    assert json.loads(second["changes"]) == wanted[1]["changes"]
    again = neardup("timeline", path, "-o", tmp_path / "out-a.csv")
    assert (again.code, "exists" in again.err) == (2, True)


def test_standard_input_is_read_once(tmp_path: Path) -> None:
    lines = "".join(json.dumps(row) + "\n" for row in days(BASE, OTHER))
    done = process("timeline", "-", "--quiet", input=lines)
    assert done.returncode == 0, done.stderr
    assert [json.loads(line)["state"] for line in done.stdout.splitlines()] == [1, 2]


def test_how_the_command_ends(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "a.jsonl", [*days(BASE), capture("soon")])
    quarantine = tmp_path / "bad.jsonl"
    done = neardup("timeline", path, "--quarantine", quarantine, "--json")
    assert done.code == 3
    summary = json.loads(next(line for line in done.err.splitlines() if line.startswith("{")))
    assert (summary["pages"], summary["captures"], summary["bad"]) == (1, 1, 1)
    [row] = map(json.loads, quarantine.read_text().splitlines())
    assert (row["line"], row["reason"]) == (2, "its 'date' is not a date in a known form: 'soon'")
    out = tmp_path / "out.jsonl"
    for options, code, words_said in (
        (["--within", "page"], 2, "of --within"),
        (["--strict-input"], 5, "more than 0 records are bad"),
        (["--max-bad", "10%"], 5, "more than 0.1 of all"),
        (["--similarity", "2"], 2, "similarity must be"),
    ):
        done = neardup("timeline", path, "-o", out, *options)
        assert done.code == code, done.err
        assert words_said in done.err.splitlines()[-1]
        assert not out.exists()
    empty = tmp_path / "empty.jsonl"
    empty.write_text("")
    assert neardup("timeline", empty, "-o", out).code == 4
    assert neardup("timeline", tmp_path / "none.jsonl").code == 4
    (tmp_path / "b.csv").write_text("id,text\na,b\n")
    assert neardup("timeline", path, tmp_path / "b.csv", "--quiet").code in (3, 4)
    assert not out.exists()


def test_the_command_writes_a_page(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "a.jsonl", many())
    page = tmp_path / "page.html"
    assert neardup("timeline", path, "--report", page, "-o", tmp_path / "out.jsonl", "--quiet").code == 0
    text = page.read_text("utf-8")
    assert "https://example.org/0é" in text
    assert neardup("timeline", path, "--report", page).code == 2
    found = nd.timeline(str(path))
    found.report(tmp_path / "again.html")
    assert "<svg" in (tmp_path / "again.html").read_text("utf-8")
