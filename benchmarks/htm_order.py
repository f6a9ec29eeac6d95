"""How the overlap of two texts falls as tokens are replaced or exchanged, with and without word order.

Draws docs/compat/htm-order.svg: python benchmarks/htm_order.py
"""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path
from statistics import mean

from neardup.compat.htm import SimHashDocumentEncoder

TOKENS = 20
TEXTS = 50
SIZE, ACTIVE = 2048, 205
TARGET = Path(__file__).parent.parent / "docs" / "compat" / "htm-order.svg"

Curve = list[tuple[float, float]]


def replaced(tokens: list[str], count: int, chance: random.Random) -> list[str]:
    """*count* of the tokens replaced by others."""
    out = list(tokens)
    for at in chance.sample(range(len(out)), count):
        out[at] = f"other{chance.randrange(10**9)}"
    return out


def exchanged(tokens: list[str], count: int, chance: random.Random) -> list[str]:
    """*count* tokens moved: half as many pairs exchanged."""
    out = list(tokens)
    places = chance.sample(range(len(out)), count // 2 * 2)
    for left, right in zip(places[::2], places[1::2], strict=True):
        out[left], out[right] = out[right], out[left]
    return out


def measure(order: int, change: object) -> Curve:
    """The mean share of common bits for each number of changed tokens."""
    chance = random.Random(1)
    encoder = SimHashDocumentEncoder(size=SIZE, activeBits=ACTIVE, order=order)
    curve = []
    for count in range(0, TOKENS + 1, 2):
        shares = []
        for _ in range(TEXTS):
            tokens = [f"word{chance.randrange(10**9)}" for _ in range(TOKENS)]
            other = change(tokens, count, chance)  # type: ignore[operator]
            shares.append(encoder.encode(tokens).getOverlap(encoder.encode(other)) / ACTIVE)
        curve.append((float(count), mean(shares)))
    return curve


def draw(curves: dict[str, tuple[str, Curve]]) -> str:
    """The curves as SVG."""
    width, height, left, top = 560, 300, 50, 20

    def place(x: float, y: float) -> str:
        return f"{left + x / TOKENS * (width - left - 170):.1f},{top + (1 - y) * (height - top - 50):.1f}"

    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
    ]
    for share in (0, 0.25, 0.5, 0.75, 1):
        start, end = place(0, share), place(TOKENS, share)
        (x1, y1), (x2, y2) = start.split(","), end.split(",")
        lines.append(f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="#ddd"/>')
        lines.append(f'<text x="{left - 8}" y="{float(y1) + 4:.0f}" text-anchor="end">{share:.0%}</text>')
    for count in range(0, TOKENS + 1, 4):
        x, _ = place(count, 0).split(",")
        lines.append(f'<text x="{x}" y="{height - 32}" text-anchor="middle">{count}</text>')
    caption = f"changed tokens of {TOKENS}; upwards: common active bits"
    lines.append(f'<text x="{left}" y="{height - 10}">{caption}</text>')
    for row, (name, (style, curve)) in enumerate(curves.items()):
        points = " ".join(place(x, y) for x, y in curve)
        lines.append(f'<polyline points="{points}" fill="none" stroke-width="2" {style}/>')
        y = top + 20 + 22 * row
        ends = f'x1="{width - 160}" y1="{y}" x2="{width - 130}" y2="{y}"'
        lines.append(f'<line {ends} stroke-width="2" {style}/>')
        lines.append(f'<text x="{width - 124}" y="{y + 4}">{name}</text>')
    return "\n".join([*lines, "</svg>"]) + "\n"


def main() -> None:
    curves = {
        "replaced, order=0": ('stroke="#1f77b4"', measure(0, replaced)),
        "replaced, order=1": ('stroke="#1f77b4" stroke-dasharray="5 3"', measure(1, replaced)),
        "exchanged, order=0": ('stroke="#d62728"', measure(0, exchanged)),
        "exchanged, order=1": ('stroke="#d62728" stroke-dasharray="5 3"', measure(1, exchanged)),
    }
    for name, (_, curve) in curves.items():
        print(name, " ".join(f"{share:.3f}" for _, share in curve))
        assert all(left >= right - 0.02 for (_, left), (_, right) in pairwise(curve)), name
    TARGET.write_text(draw(curves))


if __name__ == "__main__":
    main()
