"""The page of a timeline: one HTML file that needs nothing but itself, like the report of a run.

Names of pages, ids and texts are hostile: everything is escaped, and the page forbids itself scripts and
requests. It has a section for each of the pages that changed most; whatever is left out is counted.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from neardup.files import atomic_file
from neardup.report import render_page
from neardup.timelines.model import Capture, Choices, Comparison, Page

REPORTED: Final = 50
"""Pages with a section of their own."""
INDEXED: Final = 500
"""Pages in the index."""
RUNS: Final = 40
"""Runs of one page that are listed."""
POINTS: Final = 400
"""Points of a line, and pieces of a strip."""
DOTS: Final = 80
"""Up to this many captures have a dot each."""
TONES: Final = 8
"""Colours of states."""
TALL: Final = 132
"""Of a plot, in pixels, without the strip and the scale below it."""


@dataclass(frozen=True, slots=True)
class Row:
    """A page in the index."""

    name: str
    captures: int
    states: int
    changes: int
    begin: str
    end: str


class Shown:
    """What the page will show of the timelines that it is given, one after the other."""

    def __init__(self) -> None:
        self.pages = self.captures = self.changes = self.changed = self.returned = 0
        self._best: list[tuple[Any, Page]] = []
        self._rows: list[tuple[Any, Row]] = []

    def add(self, page: Page) -> None:
        """Count a page, and remember it while it is among those that changed most."""
        self.pages += 1
        self.captures += len(page.captures)
        self.changes += page.changes
        self.changed += page.changes > 0
        self.returned += sum(capture.returned for capture in page.captures)
        ends = [when(page.captures[at].time) for at in (0, -1)]
        row = Row(page.name, len(page.captures), page.states, page.changes, *ends)
        self._best = _put(self._best, (page.rank, page), REPORTED)
        self._rows = _put(self._rows, (page.rank, row), INDEXED)

    @property
    def best(self) -> list[Page]:
        """The pages that changed most, the first of them first."""
        return [page for _, page in sorted(self._best, key=_rank)[:REPORTED]]

    @property
    def rows(self) -> list[Row]:
        """The same for the index, which has more."""
        return [row for _, row in sorted(self._rows, key=_rank)[:INDEXED]]


def _rank(ranked: tuple[Any, Any]) -> Any:
    return ranked[0]


def _put(ranked: list[tuple[Any, Any]], one: tuple[Any, Any], most: int) -> list[tuple[Any, Any]]:
    """*ranked* and one more; now and then only the best are kept."""
    ranked.append(one)
    return ranked if len(ranked) < 2 * most else sorted(ranked, key=_rank)[:most]


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a plot: its style class, its points on a field of 1000 by 1000, and its dots in per cent."""

    style: str
    points: str
    dots: tuple[tuple[float, float, str], ...]


@dataclass(frozen=True, slots=True)
class Piece:
    """A run on the strip below the plot: place and width in per cent, its colour and what it is."""

    x: float
    width: float
    tone: int
    label: str
    title: str


@dataclass(frozen=True, slots=True)
class Plot:
    """Similarity upwards, time to the right. Positions are per cent, so that it fits any width."""

    lines: tuple[Line, ...]
    strip: tuple[Piece, ...]
    shares: tuple[tuple[float, str], ...]
    begin: str
    middle: str
    end: str


@dataclass(frozen=True, slots=True)
class Run:
    """Captures after each other that have one state, and how it differs from the run before."""

    state: int
    tone: int
    begin: str
    end: str
    captures: int
    varied: int
    """Captures whose text is not that of the one before, though the state is."""
    first: Capture


@dataclass(frozen=True, slots=True)
class Section:
    """One page: its plot and its runs."""

    page: Page
    plot: Plot | None
    runs: tuple[Run, ...]
    begin: str
    end: str


def when(time: str) -> str:
    """A time as people read it, to the minute.

    >>> when("2024-05-01T12:30:09Z"), when("2024-05-01T00:00:00Z")
    ('2024-05-01 12:30', '2024-05-01')
    """
    return time[:10] if time[10:19] == "T00:00:00" else f"{time[:10]} {time[11:16]}"


def section(page: Page) -> Section:
    """What is shown of one page."""
    runs = tuple(
        Run(
            state=run[0].state,
            tone=tone(run[0].state),
            begin=when(run[0].time),
            end=when(run[-1].time),
            captures=len(run),
            varied=sum(capture.passages > 0 for capture in run[1:]),
            first=run[0],
        )
        for run in page.runs[:RUNS]
    )
    begin, end = (when(page.captures[at].time) for at in (0, -1))
    return Section(page, plot(page), runs, begin, end)


def tone(state: int) -> int:
    """The colour of a state."""
    return (state - 1) % TONES


def plot(page: Page) -> Plot | None:
    """The plot of a page that has two captures or more."""
    if len(page.captures) < 2:
        return None
    across = _across(page.captures)
    lines = []
    series = [[capture.first for capture in page.captures], [capture.before for capture in page.captures]]
    known = [one.similarity for some in series for one in some if one is not None]
    low = min((value for value in known if value is not None), default=1.0)
    floor = min(0.9, int(low * 10) / 10)
    names = ("to the first capture", "to the one before")
    for style, name, some in zip(("first", "before"), names, series, strict=True):
        points = _points(across, some, floor)
        dots = tuple(
            (x * 100, y * TALL, f"{when(page.captures[at].time)}: similarity {name} {_floored(value)}")
            for at, x, y, value in points
            if len(page.captures) <= DOTS
        )
        places = " ".join(f"{x * 1000:.1f},{y * 1000:.1f}" for _, x, y, _ in points)
        lines.append(Line(style, places, dots))
    steps = round((1 - floor) * 10)
    every = 1 if steps <= 5 else 2
    shares = [1 - at / 10 for at in range(0, steps + 1, every)]
    times = [page.captures[at].time for at in (0, -1)]
    return Plot(
        lines=tuple(lines),
        strip=_strip(page, across),
        shares=tuple(((1 - share) / (1 - floor) * TALL, f"{share:.1f}") for share in shares),
        begin=when(times[0]),
        middle=_middle(*times),
        end=when(times[1]),
    )


def _floored(value: float) -> str:
    return f"{int(value * 1000 + 1e-9) / 1000:.3f}"


def _across(captures: Sequence[Capture]) -> list[float]:
    """Where each capture is, from 0 to 1: by its time, or by its number if all are of one moment."""
    moments = [_seconds(capture.time) for capture in captures]
    low, span = moments[0], moments[-1] - moments[0]
    if span <= 0:
        return [at / (len(captures) - 1) for at in range(len(captures))]
    return [(moment - low) / span for moment in moments]


def _seconds(time: str) -> float:
    return datetime.fromisoformat(time.replace("Z", "+00:00")).timestamp()


def _middle(begin: str, end: str) -> str:
    if begin == end:
        return ""
    low, high = (datetime.fromisoformat(time.replace("Z", "+00:00")) for time in (begin, end))
    return when((low + (high - low) / 2).isoformat().replace("+00:00", "Z"))


def _points(
    across: Sequence[float], compared: Sequence[Comparison | None], floor: float
) -> list[tuple[int, float, float, float]]:
    """Number, place and value of the captures that have one; where many share a place, the lowest of them."""
    lowest: dict[int, tuple[int, float, float, float]] = {}
    for at, (x, one) in enumerate(zip(across, compared, strict=True)):
        if one is None or one.similarity is None:
            continue
        key = at if len(across) <= POINTS else int(x * POINTS)
        if key not in lowest or one.similarity < lowest[key][3]:
            lowest[key] = at, x, (1 - one.similarity) / (1 - floor), one.similarity
    return list(lowest.values())


def _strip(page: Page, across: Sequence[float]) -> tuple[Piece, ...]:
    """The runs, each from its first capture to the first one of the next."""
    begins: dict[int, tuple[float, tuple[Capture, ...]]] = {}
    for number, run in enumerate(page.runs):
        x = across[run[0].number - 1]
        begins.setdefault(number if len(page.runs) <= POINTS else int(x * POINTS), (x, run))
    places = [*begins.values()]
    ends = [x for x, _ in places[1:]] + [1.0]
    return tuple(
        Piece(
            x=x * 100,
            width=max(end - x, 0.002) * 100,
            tone=tone(run[0].state),
            label=str(run[0].state) if end - x >= 0.035 else "",
            title=f"state {run[0].state}: {when(run[0].time)} to {when(run[-1].time)}, "
            f"{len(run):,} capture{'' if len(run) == 1 else 's'}",
        )
        for (x, run), end in zip(places, ends, strict=True)
    )


def render(shown: Shown, choices: Choices | None = None) -> str:
    """The page as text."""
    return render_page(
        "timeline.html",
        ("report.css", "timeline.css"),
        shown=shown,
        rows=shown.rows,
        sections=[section(page) for page in shown.best],
        choices=choices,
        tall=TALL,
        run_limit=RUNS,
    )


def write_page(
    shown: Shown, path: str | os.PathLike[str], choices: Choices | None = None, *, overwrite: bool = False
) -> None:
    """Write the page; it appears only when it is complete."""
    page = render(shown, choices).encode()
    with atomic_file(path, overwrite=overwrite) as file:
        file.write(page)
