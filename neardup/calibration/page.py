"""The page of a calibration: one HTML file that needs nothing but itself, like the report of a run."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from neardup.calibration.model import MODES, Calibration, Suggestion
from neardup.contents import Side
from neardup.files import atomic_file
from neardup.report import PairView, render_page
from neardup.verifiers import FIGURES, LearnedRule
from neardup.verifiers.figures import Figure
from neardup.verifiers.learned import Weight

WIDTH: Final = 720
HEIGHT: Final = 320
LEFT: Final = 48
TOP: Final = 14
BOTTOM: Final = 34
SHOWN: Final = 20  # pairs to be judged, with their texts


@dataclass(frozen=True, slots=True)
class Curve:
    """A line of the plot: its style class and its points, in pixels."""

    name: str
    style: str
    points: str
    marks: tuple[tuple[float, float, str], ...]


@dataclass(frozen=True, slots=True)
class Plot:
    """Shares upwards, similarity to the right."""

    width: int
    height: int
    left: int
    right: int
    top: int
    bottom: int
    curves: tuple[Curve, ...]
    shares: tuple[tuple[float, str], ...]
    similarities: tuple[tuple[float, str], ...]
    mark: float


def plot(found: Calibration) -> Plot:
    """The recall and the precision of every setting, and a mark at one of them."""
    low, high = found.similarities[0], found.similarities[-1]
    lowest = min(
        (one for row in found.rows for one in (row.best_recall, found.precision(row)) if one is not None),
        default=0.0,
    )
    floor = max(0.0, min(0.9, int(lowest * 10) / 10))

    def across(similarity: float) -> float:
        return LEFT + (similarity - low) / (high - low) * (WIDTH - LEFT - 16)

    def up(share: float) -> float:
        return TOP + (1 - share) / (1 - floor) * (HEIGHT - TOP - BOTTOM)

    def curve(name: str, style: str, values: Sequence[float | None]) -> Curve:
        marks = tuple(
            (across(similarity), up(value), f"{name} at {similarity:.2f}: {value:.3f}")
            for similarity, value in zip(found.similarities, values, strict=True)
            if value is not None
        )
        return Curve(name, style, " ".join(f"{x:.1f},{y:.1f}" for x, y, _ in marks), marks)

    curves = []
    for mode in MODES:
        rows = found.of(mode)
        curves.append(curve(f"recall, {mode}", f"recall {mode}", [row.best_recall for row in rows]))
        curves.append(
            curve(f"precision, {mode}", f"precision {mode}", [found.precision(row) for row in rows])
        )
    steps = round((1 - floor) * 10)
    shares = [floor + (1 - floor) * at / steps for at in range(steps + 1)]
    return Plot(
        width=WIDTH,
        height=HEIGHT,
        left=LEFT,
        right=WIDTH - 16,
        top=TOP,
        bottom=HEIGHT - BOTTOM,
        curves=tuple(one for one in curves if one.points),
        shares=tuple((up(share), f"{share:.0%}") for share in shares),
        similarities=tuple((across(similarity), f"{similarity:.2f}") for similarity in found.similarities),
        mark=across(found.marked.similarity),
    )


def render(found: Calibration) -> str:
    """The page as text."""
    return render_page(
        "calibration.html",
        ("report.css", "calibration.css"),
        found=found,
        plot=plot(found),
        modes=MODES,
        suggestions=views(found.suggestions),
        asked_next=views(found.asked_next[:SHOWN]),
        figures=figure_rows(found.learned),
    )


def views(pairs: Sequence[Suggestion]) -> list[PairView]:
    """Pairs to be judged, with their texts, as the report of a run shows pairs."""
    return [
        PairView(
            Side(pair.one, pair.texts[0]),
            Side(pair.other, pair.texts[1]),
            None,
            pair.similarity,
            (),
            pair.accepted,
            pair.reason,
        )
        for pair in pairs
    ]


def figure_rows(rule: LearnedRule | None) -> list[tuple[Figure, Weight]]:
    """What a learned rule looks at, what weighs most first."""
    if rule is None:
        return []
    rows = list(zip(FIGURES, rule.weights, strict=True))
    return sorted((row for row in rows if row[1].weight), key=lambda row: -abs(row[1].weight))


def write_page(found: Calibration, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
    """Write the page; it appears only when it is complete."""
    page = render(found).encode()
    with atomic_file(path, overwrite=overwrite) as file:
        file.write(page)
