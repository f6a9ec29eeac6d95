"""Time of the join against the number of fingerprints, as an SVG: `plot_hamming.py results.json out.svg`."""

from __future__ import annotations

import json
import math
import sys

WIDTH, HEIGHT, EDGE = 560, 340, 56


def main(source: str, target: str) -> None:
    with open(source) as file:
        rows = [row for row in json.load(file) if row["work"].startswith("growth ")]
    points = sorted((int(row["work"].split()[1].replace(",", "")), row["cpu"], row["wall"]) for row in rows)
    left, right = math.log10(points[0][0]), math.log10(points[-1][0])
    low = math.floor(math.log10(min(min(point[1:]) for point in points)))
    high = math.ceil(math.log10(max(max(point[1:]) for point in points)))

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
    for column, colour, name in ((1, "#1f6fb4", "CPU seconds"), (2, "#c2571a", "wall seconds, 2 threads")):
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in (place(point[0], point[column]) for point in points))
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts.append(f'<text x="{EDGE + 12}" y="{EDGE + 16 * column}" fill="{colour}">{name}</text>')
    (first, second) = points[-2:]
    exponent = math.log(second[1] / first[1]) / math.log(second[0] / first[0])
    parts.append(
        f'<text x="{WIDTH / 2}" y="{HEIGHT - 12}" text-anchor="middle">fingerprints of 64 bits, radius 3; '
        f"growth exponent {first[0]:.0e} to {second[0]:.0e} by CPU: {exponent:.2f}</text></svg>"
    )
    with open(target, "w") as file:
        file.write("\n".join(parts) + "\n")
    print(f"exponent {exponent:.2f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
