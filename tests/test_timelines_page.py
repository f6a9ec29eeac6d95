"""The page of a timeline: what it shows, what it leaves out, and that hostile texts do nothing in a browser."""

from __future__ import annotations

import re
from pathlib import Path

import neardup as nd
from neardup.timelines import Page, Shown
from neardup.timelines.page import INDEXED, POINTS, REPORTED, RUNS, plot, render, section, when

from .browser import Browser
from .corpus import Rows, words
from .test_report_browser import hostile

BASE, OTHER = (" ".join(words(seed, 60)) for seed in (1, 2))


def made(*texts: str, name: str = "p") -> Page:
    """A page with a capture on each day."""
    rows = [
        {"url": name, "date": f"{2000 + day // 300}-{day // 25 % 12 + 1:02}-{day % 25 + 1:02}", "text": text}
        for day, text in enumerate(texts)
    ]
    found: Page = nd.timeline(rows)[0]
    return found


def shown(*pages: Page) -> Shown:
    found = Shown()
    for page in pages:
        found.add(page)
    return found


def test_pages_that_changed_most_come_first() -> None:
    pages = [
        made(BASE, BASE, name="a"),
        made(BASE, OTHER, BASE, name="b"),
        made(BASE, f"{BASE} more words", name="c"),
    ]
    found = shown(*pages)
    assert [row.name for row in found.rows] == [page.name for page in found.best] == ["b", "c", "a"]
    assert (found.pages, found.captures, found.changes, found.changed, found.returned) == (3, 7, 3, 2, 1)
    text = render(found)
    assert text.index('href="#page-1"') < text.index(">b<")
    assert len(re.findall(r'<article class="page"', text)) == 3


def test_what_is_left_out_is_counted() -> None:
    page = made(*([BASE, OTHER] * (RUNS // 2 + 2)))
    text = render(shown(*(made(BASE, name=f"page {number:03}") for number in range(INDEXED + 3)), page))
    assert f"The {REPORTED} pages that changed most." in text
    assert "4 more pages are not listed here" in text
    assert "4 later runs are not shown here" in text
    assert len(re.findall(r'<article class="page"', text)) == REPORTED


def test_a_plot_has_places_by_time_and_the_similarities() -> None:
    page = made(BASE, BASE, OTHER)
    found = plot(page)
    assert found is not None
    first, before = found.lines
    assert [line.style for line in found.lines] == ["first", "before"]
    assert [round(x) for x, _, _ in before.dots] == [50, 100]
    assert before.dots[0][1] == 0
    assert first.points.startswith("500.0,0.0 1000.0,")
    assert [(piece.x, round(piece.width, 1), piece.tone, piece.label) for piece in found.strip] == [
        (0.0, 100.0, 0, "1"),
        (100.0, 0.2, 1, ""),
    ]
    assert (found.begin, found.middle, found.end) == ("2000-01-01", "2000-01-02", "2000-01-03")
    assert plot(made(BASE)) is None


def test_captures_of_one_moment_are_side_by_side() -> None:
    rows = [
        {"id": str(at), "url": "p", "date": "2024", "text": text}
        for at, text in enumerate((BASE, OTHER, BASE))
    ]
    found = plot(nd.timeline(rows)[0])
    assert found is not None
    assert [x for x, _, _ in found.lines[0].dots] == [50.0, 100.0]


def test_a_long_plot_has_a_bounded_number_of_points_and_keeps_the_lowest() -> None:
    page = made(*(BASE if day != 777 else OTHER for day in range(1500)))
    found = plot(page)
    assert found is not None
    for line in found.lines:
        assert line.points.count(",") <= POINTS + 1
        assert not line.dots
    lowest = max(float(point.split(",")[1]) for point in found.lines[0].points.split())
    assert lowest > 500
    assert len(found.strip) == 3


def test_runs_say_what_changed_when_they_began() -> None:
    found = section(made(BASE, BASE, OTHER, BASE))
    assert [(run.state, run.captures, run.begin, run.end) for run in found.runs] == [
        (1, 2, "2000-01-01", "2000-01-02"),
        (2, 1, "2000-01-03", "2000-01-03"),
        (1, 1, "2000-01-04", "2000-01-04"),
    ]
    assert "a state that comes back" in render(shown(made(BASE, OTHER, BASE)))


def test_the_same_timelines_give_the_same_bytes() -> None:
    pages = [made(BASE, OTHER, name=name) for name in "abc"]
    assert render(shown(*pages)) == render(shown(*pages[::-1]))


def test_a_time_is_shown_to_the_minute() -> None:
    assert when("2024-05-01T12:30:09.500000Z") == "2024-05-01 12:30"


def _hostile() -> Rows:
    """Every payload as a page, an id, a date that is refused, and a text."""
    rows: Rows = []
    for number, bad in enumerate(hostile()):
        bad = bad.encode("utf-8", "replace").decode()
        for day in (1, 2):
            text = f"{bad} some words of capture {day * number} and {bad}"
            rows.append({"id": f"{bad} {day}", "url": bad, "date": f"2024-01-0{day}", "text": text})
    return rows


def test_hostile_pages_run_nothing_ask_for_nothing_and_fit_any_width(tmp_path: Path) -> None:
    found = nd.timeline(_hostile())
    assert len(found) > REPORTED
    path = tmp_path / "page.html"
    found.report(path)
    with Browser() as browser:
        for width in (1280, 390):
            browser.open(path.as_uri(), width=width)
            browser.ask("document.querySelectorAll('details').forEach(one => { one.open = true; })")
            assert browser.ask("document.querySelectorAll('article.page').length") == REPORTED
            assert browser.ask("document.querySelectorAll('script,iframe,object,embed,form,img').length") == 0
            assert browser.ask("document.documentElement.scrollWidth <= window.innerWidth")
            assert browser.ask("window.acts") == []
            assert browser.complaints() == []
            assert browser.requests() == [path.as_uri()]
