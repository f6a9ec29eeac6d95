"""Time against size, as an SVG, from a file of results: `plot.py hamming|dedupe RESULTS.json OUT.svg`.

The latest run in the file that has the rows is drawn: `growth N` of the join, or `dedupe N pieces`.
"""

from __future__ import annotations

import json
import math
import re
import sys
from typing import Any

WIDTH, HEIGHT, EDGE = 560, 340, 56
SERIES = {
    "hamming": (r"growth ([\d,]+)", "fingerprints of 64 bits, radius 3"),
    "dedupe": (r"dedupe ([\d,]+) pieces", "documents, neardup dedupe"),
}
COLUMNS = (("cpu", "#1f6fb4", "CPU seconds"), ("wall", "#c2571a", "wall seconds, 2 threads"))


def points_of(runs: list[dict[str, Any]], pattern: str) -> list[tuple[int, dict[str, float]]]:
    """Size and figures, of the latest run that has any."""
    for run in reversed(runs):
        rows = [row for row in run["rows"] if row.get("level") in (None, run["simd"])]
        found = [(re.fullmatch(pattern, row["work"]), row) for row in rows]
        points = sorted((int(size[1].replace(",", "")), row) for size, row in found if size)
        if points:
            return points
    raise SystemExit("no run in the file has these rows")


def main(kind: str, source: str, target: str) -> None:
    pattern, caption = SERIES[kind]
    with open(source) as file:
        points = points_of(json.load(file)["runs"], pattern)
    left, right = math.log10(points[0][0]), math.log10(points[-1][0])
    low = math.floor(math.log10(min(min(row["cpu"], row["wall"]) for _, row in points)))
    high = math.ceil(math.log10(max(max(row["cpu"], row["wall"]) for _, row in points)))

    def place(count: float, seconds: float) -> tuple[float, float]:
        across = (math.log10(count) - left) / (right - left)
        up = (math.log10(seconds) - low) / (high - low)
        return EDGE + across * (WIDTH - 2 * EDGE), HEIGHT - EDGE - up * (HEIGHT - 2 * EDGE)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
        f'font-size="11"><rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>'
    ]
    for power in range(low, high + 1):
        _, y = place(points[0][0], 10.0**power)
        parts.append(f'<path d="M{EDGE} {y:.1f}H{WIDTH - EDGE}" stroke="#ddd"/>')
        parts.append(f'<text x="{EDGE - 6}" y="{y + 4:.1f}" text-anchor="end">{10.0**power:g} s</text>')
    for power in range(math.ceil(left), math.floor(right) + 1):
        x, _ = place(10.0**power, 10.0**low)
        parts.append(f'<path d="M{x:.1f} {EDGE}V{HEIGHT - EDGE}" stroke="#ddd"/>')
        parts.append(f'<text x="{x:.1f}" y="{HEIGHT - EDGE + 16}" text-anchor="middle">1e{power}</text>')
    for number, (column, colour, name) in enumerate(COLUMNS, 1):
        line = " ".join("{:.1f},{:.1f}".format(*place(size, row[column])) for size, row in points)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts.append(f'<text x="{EDGE + 12}" y="{EDGE + 16 * number}" fill="{colour}">{name}</text>')
    (few, before), (many, after) = points[-2:]
    exponent = math.log(after["cpu"] / before["cpu"]) / math.log(many / few)
    parts.append(
        f'<text x="{WIDTH / 2}" y="{HEIGHT - 12}" text-anchor="middle">{caption}; '
        f"growth exponent {few:.0e} to {many:.0e} by CPU: {exponent:.2f}</text></svg>"
    )
    with open(target, "w") as file:
        file.write("\n".join(parts) + "\n")
    print(f"exponent {exponent:.2f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
