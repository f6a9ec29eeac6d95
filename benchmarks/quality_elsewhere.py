"""Quality on images of one's own: a folder of different pictures, changed in ways people change them.

    python benchmarks/quality_elsewhere.py POOL... [--family DIR] [--seed N] [--keep-folder DIR]

POOL are folders of pictures no two of which show the same. Copies are made of some of them, and beside them
what is most often taken for a copy: frames of a film (one ground, another subject), things of one outline,
charts of one layout, captioned pictures, scans on one letterhead; --family adds a folder of icons or the
like, of which each stays by itself. None of this was used to choose a threshold.
Prints precision, recall and F1 over pairs, the recall of each change, and what was joined wrongly.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageDraw, ImageEnhance, ImageFilter, ImageFont, ImageOps

sys.path.insert(0, str(Path(__file__).parent))
from quality_images import ours

Picture = Image.Image
Change = Callable[[random.Random, Picture], Picture]
SAYINGS = (
    "when in doubt,ask the cook;sale ends today;do not feed,the pigeons;a walk in may;42 % off;good morning"
)
SMOOTH = Image.Resampling.BICUBIC


def letters(size: int) -> Any:
    return ImageFont.load_default(max(8, size))


def colour(r: random.Random) -> tuple[int, int, int]:
    return r.choice(
        [(255, 255, 255), (255, 230, 20), (230, 30, 40), (20, 20, 20), (30, 120, 230), (250, 120, 200)]
    )


def words_over(r: random.Random, im: Picture) -> Picture:
    """Large outlined words over the picture: at its top, its foot, its middle, or two of them."""
    im, (w, h) = im.copy(), im.size
    pen = ImageDraw.Draw(im)
    for place in r.sample(["top", "middle", "foot"], r.choice([1, 1, 2])):
        lines = r.choice(SAYINGS.split(";")).upper().split(",")
        size = int(min(h * r.uniform(0.09, 0.16), 1.5 * w / max(map(len, lines))))
        y = {"top": 0.03 * h, "middle": 0.5 * h - size, "foot": 0.97 * h - size * 1.2 * len(lines)}[place]
        for line in lines:
            pen.text(
                (w / 2, y),
                line,
                fill=colour(r),
                font=letters(size),
                anchor="ma",
                stroke_width=max(1, size // 12),
                stroke_fill="black",
            )
            y += 1.15 * size
    return im


def stuck_on(r: random.Random, im: Picture) -> Picture:
    """One to four stickers: faces, stars, speech bubbles."""
    im, (w, h) = im.copy(), im.size
    pen = ImageDraw.Draw(im)
    for _ in range(r.randint(1, 4)):
        s = min(w, h) * r.uniform(0.14, 0.26)
        x, y = r.uniform(0, w - s), r.uniform(0, h - s)
        kind = r.choice(["face", "star", "bubble"])
        if kind == "face":
            pen.ellipse((x, y, x + s, y + s), fill=(255, 205, 40), outline=(120, 80, 0), width=2)
            for eye in (0.3, 0.62):
                pen.ellipse((x + eye * s, y + 0.3 * s, x + (eye + 0.1) * s, y + 0.45 * s), fill="black")
            pen.arc((x + 0.25 * s, y + 0.35 * s, x + 0.75 * s, y + 0.8 * s), 20, 160, fill="black", width=3)
        elif kind == "star":
            turn = np.arange(10) * np.pi / 5
            far = np.where(np.arange(10) % 2, 0.22, 0.5) * s
            points = zip(x + s / 2 + far * np.sin(turn), y + s / 2 - far * np.cos(turn), strict=True)
            pen.polygon(list(points), fill=colour(r), outline="black")
        else:
            pen.rounded_rectangle(
                (x, y, x + s * 1.3, y + 0.7 * s), s / 6, fill="white", outline="black", width=2
            )
            pen.text(
                (x + 0.65 * s, y + 0.35 * s),
                r.choice(["wow", "yes!", "hm?"]),
                fill="black",
                font=letters(int(s * 0.3)),
                anchor="mm",
            )
    return im


def tiled_mark(r: random.Random, im: Picture) -> Picture:
    """A half transparent name, slanting, all over the picture."""
    w, h = im.size
    side = int(1.5 * max(w, h))
    sheet = Image.new("L", (side, side), 0)
    pen = ImageDraw.Draw(sheet)
    size = int(min(w, h) * r.uniform(0.05, 0.1))
    name = r.choice(["sample", "(c) studio nine", "preview only"])
    step = size * (len(name) * 0.6 + 1.5)
    for row in range(0, side, int(2.6 * size)):
        for column in range(int(side / step) + 1):
            pen.text(
                (column * step - row % 7 * size / 2, row),
                name,
                fill=int(255 * r.uniform(0.3, 0.6)),
                font=letters(size),
            )
    sheet = sheet.rotate(r.choice([30, 45, -30]), SMOOTH)
    sheet = sheet.crop(((side - w) // 2, (side - h) // 2, (side - w) // 2 + w, (side - h) // 2 + h))
    return Image.composite(
        Image.new("RGB", im.size, r.choice(["white", "white", "#808080", "black"])), im, sheet
    )


def off_axis(r: random.Random, im: Picture, most: float = 0.1) -> Picture:
    """Seen from the side, as a picture on a wall: its corners wander in."""
    w, h = im.size
    ground = Image.new("RGB", (int(w * 1.12), int(h * 1.12)), r.choice(["#c8c0b4", "black", "white"]))
    moved = [(r.uniform(0, most) * w, r.uniform(0, most) * h) for _ in range(4)]
    left, top = int(0.06 * w), int(0.06 * h)
    to = [
        (left + moved[0][0], top + moved[0][1]), (left + w - moved[1][0], top + moved[1][1]),
        (left + w - moved[2][0], top + h - moved[2][1]), (left + moved[3][0], top + h - moved[3][1]),
    ]  # fmt: skip
    shown, inside = laid(im, to, ground.size)
    return Image.composite(shown, ground, inside)


def laid(im: Picture, to: list[tuple[float, float]], size: tuple[int, int]) -> tuple[Picture, Picture]:
    """The picture with its corners at these places, and where it is."""
    w, h = im.size
    rows, right = [], []
    for (x, y), (u, v) in zip(to, [(0, 0), (w, 0), (w, h), (0, h)], strict=True):
        rows += [[x, y, 1, 0, 0, 0, -u * x, -u * y], [0, 0, 0, x, y, 1, -v * x, -v * y]]
        right += [u, v]
    numbers = np.linalg.solve(np.array(rows, dtype=float), np.array(right, dtype=float)).tolist()
    inside = Image.new("L", im.size, 255).transform(size, Image.Transform.PERSPECTIVE, numbers)
    return im.transform(size, Image.Transform.PERSPECTIVE, numbers, SMOOTH), inside


def off_a_screen(r: random.Random, im: Picture) -> Picture:
    """Photographed from a screen: its corners lean, lines of the raster, a glare, a dark room around it."""
    w = im.width
    framed = ImageOps.expand(im, int(0.03 * w), "#101014")
    leaning = off_axis(r, framed, 0.05)
    box = (
        int(leaning.width * 0.07),
        int(leaning.height * 0.07),
        int(leaning.width * 0.93),
        int(leaning.height * 0.93),
    )
    cut = leaning.crop(box) if r.random() < 0.6 else leaning
    y, x = np.mgrid[0 : 1 : cut.height * 1j, 0 : 1 : cut.width * 1j]
    pixels = np.asarray(cut).astype(float)
    pixels = 255 * (pixels / 255) ** r.uniform(0.75, 1.3)
    pixels *= 1 + 0.05 * np.sin(2 * np.pi * (y * r.uniform(30, 90) + x * r.uniform(0, 25)))[..., None]
    glare = np.exp(-((x - r.random()) ** 2 + (y - r.random()) ** 2) / 0.05) * r.uniform(20, 90)
    pixels += glare[..., None] + np.random.default_rng(r.randrange(1 << 30)).normal(0, 5, pixels.shape)
    return Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8)).filter(ImageFilter.GaussianBlur(0.6))


def turned(low: float, high: float) -> Change:
    def change(r: random.Random, im: Picture) -> Picture:
        angle = r.choice([-1, 1]) * r.uniform(low, high)
        ground = r.choice(["white", "black", "#606060"])
        return im.rotate(angle, SMOOTH, expand=r.random() < 0.5, fillcolor=ground)

    return change


def level_again(r: random.Random, im: Picture) -> Picture:
    """Turned by 3 to 8 degrees, and the largest part without empty corners."""
    angle = r.uniform(3, 8)
    cut = 0.5 * np.tan(np.deg2rad(angle)) + 0.02
    w, h = im.size
    box = (int(w * cut * min(1, h / w)), int(h * cut * min(1, w / h)))
    return im.rotate(r.choice([-1, 1]) * angle, SMOOTH).crop((*box, w - box[0], h - box[1]))


def cut_out(r: random.Random, im: Picture) -> Picture:
    (w, h), keep = im.size, r.uniform(0.68, 0.9)
    x, y = r.uniform(0, 1 - keep) * w, r.uniform(0, 1 - keep) * h
    return im.crop((int(x), int(y), int(x + keep * w), int(y + keep * h)))


def mirrored(r: random.Random, im: Picture) -> Picture:
    return r.choice([ImageOps.mirror, ImageOps.flip])(im)


def quarter(r: random.Random, im: Picture) -> Picture:
    return im.rotate(r.choice([90, 180, 270]), expand=True)


def caption(r: random.Random, im: Picture) -> Picture:
    w, h = im.size
    size = int(0.05 * h) + 6
    new = ImageOps.expand(im, (0, 0, 0, 3 * size), r.choice(["white", "#111111", "#e0d8c8"]))
    ImageDraw.Draw(new).text(
        (w / 2, h + 1.5 * size),
        r.choice(SAYINGS.replace(",", " ").split(";")),
        fill="#808080",
        font=letters(size),
        anchor="mm",
    )
    return new


def bordered(r: random.Random, im: Picture) -> Picture:
    side = int(min(im.size) * r.uniform(0.02, 0.12))
    return ImageOps.expand(im, side, r.choice(["white", "black", "#a02020", "#f2ecd8"]))


def posted(r: random.Random, im: Picture) -> Picture:
    """As a post of a network: a head with a name above it, buttons below."""
    w, h = im.size
    new = Image.new("RGB", (w, int(h * 1.3)), "white")
    new.paste(im, (0, int(0.14 * h)))
    pen = ImageDraw.Draw(new)
    pen.ellipse((0.02 * w, 0.02 * h, 0.02 * w + 0.1 * h, 0.12 * h), fill=colour(r))
    pen.text(
        (0.05 * w + 0.1 * h, 0.045 * h),
        r.choice(["mara.k", "old_boats", "j. weber"]),
        fill="black",
        font=letters(int(0.05 * h)),
    )
    for at in range(3):
        pen.rectangle(
            (w * (0.05 + 0.1 * at), 1.18 * h, w * (0.1 + 0.1 * at), 1.24 * h), outline="black", width=2
        )
    return new


def pressed(r: random.Random, im: Picture) -> Picture:
    return im.resize((max(24, int(im.width * r.uniform(0.75, 1.3))), im.height), SMOOTH)


def shrunk(r: random.Random, im: Picture) -> Picture:
    small = im.copy()
    small.thumbnail((r.randint(80, 160),) * 2)
    return small


def warm(im: Picture) -> Picture:
    bands = zip(im.split(), (1.12, 1.0, 0.8), strict=True)
    shifted = [band.point([min(255, int(value * gain)) for value in range(256)]) for band, gain in bands]
    return Image.merge("RGB", shifted)


def toned(r: random.Random, im: Picture) -> Picture:
    """Grey, sepia, warmer, or with more or less colour."""
    kind = r.randrange(4)
    if kind == 0:
        return im.convert("L").convert("RGB")
    if kind == 1:
        return ImageOps.colorize(ImageOps.autocontrast(im.convert("L")), "#20140a", "#fff0d0")
    return warm(im) if kind == 2 else ImageEnhance.Color(im).enhance(r.uniform(0.2, 1.9))


def lit(r: random.Random, im: Picture) -> Picture:
    power = r.choice([r.uniform(0.45, 0.75), r.uniform(1.35, 2.0)])
    return im.point([int(255 * (v / 255) ** power) for v in range(256)] * 3)


def soft(r: random.Random, im: Picture) -> Picture:
    return im.filter(ImageFilter.BoxBlur(min(im.size) / r.uniform(90, 160)))


def grainy(r: random.Random, im: Picture) -> Picture:
    grain = np.random.default_rng(r.randrange(1 << 30)).normal(0, r.uniform(8, 22), (*im.size[::-1], 1))
    return Image.fromarray(np.clip(np.asarray(im) + grain, 0, 255).astype(np.uint8))


def as_it_is(r: random.Random, im: Picture) -> Picture:
    return im


ONE: Mapping[str, Change] = {
    "words over": words_over, "stickers": stuck_on, "tiled mark": tiled_mark, "off axis": off_axis,
    "off a screen": off_a_screen, "turned 1-5": turned(1, 5), "turned 6-10": turned(6, 10),
    "level again": level_again,
    "part": cut_out, "mirrored": mirrored, "quarter": quarter, "caption": caption, "border": bordered,
    "posted": posted, "pressed": pressed, "small": shrunk, "toned": toned, "lit": lit, "soft": soft,
    "grain": grainy, "saved again": as_it_is,
}  # fmt: skip


def two(r: random.Random, im: Picture) -> Picture:
    for name in r.sample(
        [
            "words over",
            "stickers",
            "turned 1-5",
            "part",
            "mirrored",
            "caption",
            "border",
            "toned",
            "lit",
            "small",
        ],
        2,
    ):
        im = ONE[name](r, im)
    return im


CHANGES: Mapping[str, Change] = {**ONE, "two changes": two}


# --- what is most often taken for a copy -----------------------------------------------------------------

Deal = Callable[[], Picture]  # the next picture, each once: none of them is in the set as it is
Wrong = Callable[[random.Random, Deal], list[Picture]]


def square(im: Picture, side: int) -> Picture:
    return ImageOps.fit(im, (side, side))


def film(r: random.Random, deal: Deal) -> list[Picture]:
    """Frames of a film: one ground, and a subject that moved, or another one."""
    ground = ImageOps.fit(deal(), (360, 240)).filter(ImageFilter.GaussianBlur(r.choice([0, 0, 2])))
    side = int(240 * r.uniform(0.32, 0.55))
    inside = Image.new("L", (side, side), 0)
    ImageDraw.Draw(inside).ellipse((side * 0.12, 0, side * 0.88, side), fill=255)
    inside = inside.filter(ImageFilter.GaussianBlur(2))
    subject, found = square(deal(), side), []
    places = r.sample([(x, y) for x in (0.05, 0.35, 0.65) for y in (0.1, 0.45)], 3)
    for place in places:
        frame = ground.copy()
        if r.random() < 0.4:
            subject = square(deal(), side)
        frame.paste(subject, (int(place[0] * 360), int(place[1] * (240 - side) * 1.8)), inside)
        found.append(ImageEnhance.Brightness(frame).enhance(r.uniform(0.95, 1.05)))
    return found


def outlined(r: random.Random, deal: Deal) -> list[Picture]:
    """Things of one outline on flat ground: plates, cups or shirts with another print each."""
    side = 300
    inside, ground = Image.new("L", (side, side), 0), r.choice(["white", "#f0ece0", "black"])
    pen = ImageDraw.Draw(inside)
    kind = r.randrange(3)
    if kind == 0:
        pen.ellipse((45, 45, 255, 255), fill=255)
    elif kind == 1:
        pen.rounded_rectangle((70, 60, 210, 250), 20, fill=255)
        pen.arc((190, 100, 260, 210), -90, 90, fill=255, width=16)
    else:
        pen.polygon(
            [
                (40, 70),
                (110, 35),
                (190, 35),
                (260, 70),
                (240, 130),
                (205, 115),
                (205, 265),
                (95, 265),
                (95, 115),
                (60, 130),
            ],
            fill=255,
        )
    found = []
    for _ in range(4):
        thing = ImageEnhance.Contrast(square(deal(), side)).enhance(r.uniform(0.25, 0.8))
        found.append(Image.composite(thing, Image.new("RGB", (side, side), ground), inside))
    return found


def charts(r: random.Random, deal: Deal) -> list[Picture]:
    """Charts of one layout: other bars, lines, points or slices between the same axes and words."""
    kind, title, ink = r.randrange(4), r.choice(["Rain by month", "Visitors", "Load of the disk"]), colour(r)
    names = r.sample(["north", "south", "east", "west", "inner", "outer", "upper", "lower"], 4)
    found = []
    for _ in range(4):
        im = Image.new("RGB", (400, 260), "white")
        pen = ImageDraw.Draw(im)
        pen.text((200, 8), title, fill="black", font=letters(18), anchor="ma")
        if kind < 3:
            for k in range(7):
                pen.line((50, 40 + 30 * k, 380, 40 + 30 * k), fill="#e4e4e4")
                pen.text((44, 40 + 30 * k), str(60 - 10 * k), fill="#404040", anchor="rm")
            pen.rectangle((50, 40, 380, 220), outline="black")
        if kind == 0:
            for k in range(8):
                pen.rectangle((62 + 40 * k, 220 - r.uniform(8, 170), 86 + 40 * k, 220), fill="#4472c4")
        elif kind == 1:
            for at in range(2):
                level = np.cumsum(np.random.default_rng(r.randrange(1 << 30)).normal(0, 9, 34)) + r.uniform(
                    90, 170
                )
                pen.line(
                    list(zip(range(50, 390, 10), np.clip(level, 45, 215).tolist(), strict=False)),
                    fill=("#d62728", "#1f77b4")[at],
                    width=2,
                )
        elif kind == 2:
            for _ in range(60):
                x, y = r.gauss(215, 70), r.gauss(130, 40)
                if 54 < x < 376 and 44 < y < 216:
                    pen.ellipse((x - 3, y - 3, x + 3, y + 3), fill="#2ca02c")
        else:
            begin = 0.0
            for name, fill in zip(names, ("#4472c4", "#ed7d31", "#a5a5a5", "#ffc000"), strict=True):
                slice_ = r.uniform(30, 130) if name != names[-1] else 360 - begin
                pen.pieslice((110, 40, 310, 240), begin, begin + slice_, fill=fill, outline="white")
                begin = min(350, begin + slice_)
        for k, name in enumerate(names):
            pen.text(
                (60 + 85 * k, 240), name, fill=ink if ink != (255, 255, 255) else "black", font=letters(12)
            )
        found.append(im)
    return found


def captioned(r: random.Random, deal: Deal) -> list[Picture]:
    """Different pictures in one mount: a bar with the same words, a line around, a sign in a corner."""
    found, saying, ground = (
        [],
        r.choice(SAYINGS.replace(",", " ").split(";")),
        r.choice(["black", "#203a70", "white"]),
    )
    for _ in range(4):
        mount = Image.new("RGB", (360, 300), ground)
        mount.paste(ImageOps.fit(deal(), (344, 228)), (8, 8))
        pen = ImageDraw.Draw(mount)
        pen.text((180, 268), saying, fill="#f0c040", font=letters(30), anchor="mm")
        pen.rectangle((4, 4, 355, 295), outline="#f0c040", width=2)
        pen.ellipse((300, 16, 344, 60), fill="#c02020", outline="white", width=3)
        found.append(mount)
    return found


def scans(r: random.Random, deal: Deal) -> list[Picture]:
    """Letters on one letterhead: other lines, grey paper, a slight turn, the dark edge of the glass."""
    found, head = [], r.choice(["Office of Works", "Hotel Seeblick", "Dr. A. Marin"])
    for _ in range(4):
        im = Image.new("L", (300, 400), 226)
        pen = ImageDraw.Draw(im)
        pen.text((150, 20), head, fill=40, font=letters(24), anchor="ma")
        pen.line((30, 56, 270, 56), fill=60, width=2)
        y = 80
        while y < 360:
            words = ["".join(r.choice("aeionrstlm") for _ in range(r.randint(2, 9))) for _ in range(7)]
            pen.text((30, y), " ".join(words)[: r.choice([12, 30, 42, 44])], fill=50)
            y += r.choice([13, 13, 13, 26])
        im = im.rotate(r.uniform(-0.8, 0.8), SMOOTH, fillcolor=226)
        pixels = np.asarray(im) - np.linspace(r.uniform(30, 90), 0, 300)[None] ** 2 / 90
        pixels = pixels + np.random.default_rng(r.randrange(1 << 30)).normal(0, 4, pixels.shape)
        found.append(Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8)).convert("RGB"))
    return found


def halves(r: random.Random, deal: Deal) -> list[Picture]:
    im = deal()
    w, h = im.size
    return [im.crop((0, 0, w // 2, h)), im.crop((w // 2, 0, w, h))]


WRONG: Mapping[str, Wrong] = {f.__name__: f for f in (film, outlined, charts, captioned, scans, halves)}


def make(
    pools: list[Path], families: list[Path], out: Path, seed: int, bases: int, copies: int, groups: int
) -> None:
    """A labelled set: file names, clusters and what was done, in truth.jsonl."""
    r = random.Random(seed)
    out.mkdir(parents=True, exist_ok=True)
    rows: list[dict[str, Any]] = []

    def read(folders: list[Path]) -> list[Picture]:
        kinds = (".jpg", ".jpeg", ".png", ".webp")
        files = sorted(
            file for folder in folders for file in folder.iterdir() if file.suffix.lower() in kinds
        )
        found = [Image.open(file).convert("RGB") for file in files]
        for im in found:
            im.thumbnail((420, 420))
        return found

    def put(im: Picture, cluster: str, op: str, of: str | None = None) -> str:
        name = f"{len(rows):05d}.jpg"
        im.convert("RGB").save(out / name, quality=r.choice([55, 75, 85, 92]))
        rows.append({"id": name, "cluster": cluster, "op": op, "of": of})
        return name

    pool = read(pools)
    r.shuffle(pool)
    shown = max(bases, len(pool) // 2)
    aside = pool[shown:]
    deck: list[str] = []
    for number, im in enumerate(pool[:shown]):
        root = put(im, f"c{number}", "base")
        for _ in range(copies if number < bases else 0):
            deck = deck or r.sample(sorted(CHANGES), len(CHANGES))
            op = deck.pop()
            put(CHANGES[op](r, im), f"c{number}", op, root)
    hand: list[Picture] = []

    def deal() -> Picture:
        if not hand:
            hand.extend(r.sample(aside, len(aside)))
        return hand.pop()

    for kind, wrong in WRONG.items():
        for group in range(groups):
            for at, im in enumerate(wrong(r, deal)):
                if kind == "halves" and im.size[0] < 60:
                    continue
                cluster = f"{kind}{group}.{at}"
                root = put(im, cluster, f"neg {kind}")
                if at == 0:
                    op = r.choice(["saved again", "small", "lit"])
                    put(CHANGES[op](r, im), cluster, f"{op} of {kind}", root)
    for number, im in enumerate(read(families)):
        root = put(im, f"f{number}", "neg family")
        if number % 4 == 0:
            put(CHANGES["small"](r, im), f"f{number}", "small of family", root)
    (out / "truth.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def report(rows: list[dict[str, Any]], label: Mapping[str, str]) -> str:
    """The recall of each change, and how often pairs of each kind were joined wrongly."""
    by: dict[str, list[bool]] = defaultdict(list)
    for row in rows:
        if row["of"]:
            by[row["op"]].append(label.get(row["id"], 1) == label.get(row["of"], 2))
    lines = ["| change | found | of |", "| --- | --- | --- |"]
    lines += [f"| {op} | {sum(hits) / len(hits):.2f} | {len(hits)} |" for op, hits in sorted(by.items())]
    clusters: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        if row["id"] in label:
            clusters[label[row["id"]]].append(row)
    wrong: Counter[str] = Counter()
    for members in clusters.values():
        for one, other in combinations(members, 2):
            if one["cluster"] != other["cluster"]:
                wrong[" and ".join(sorted({one["op"].split(" of ")[-1], other["op"].split(" of ")[-1]}))] += 1
    return "\n".join(
        [*lines, "wrong pairs: " + (", ".join(f"{kind} {n}" for kind, n in wrong.most_common()) or "none")]
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pools", nargs="+", type=Path, metavar="POOL")
    parser.add_argument("--family", action="append", default=[], type=Path)
    parser.add_argument("--seed", type=int, default=77)
    parser.add_argument("--bases", type=int, default=100, help="pictures of which copies are made [100]")
    parser.add_argument("--copies", type=int, default=5, help="copies of each [5]")
    parser.add_argument("--groups", type=int, default=10, help="groups of each kind of look-alikes [10]")
    parser.add_argument("--keep-folder", type=Path, help="make the set here and leave it")
    parser.add_argument("--only-make", action="store_true", help="make the set, measure nothing")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.keep_folder or Path(temporary) / "set"
        if not (folder / "truth.jsonl").exists():
            make(given.pools, given.family, folder, given.seed, given.bases, given.copies, given.groups)
        rows = [json.loads(line) for line in (folder / "truth.jsonl").read_text().splitlines()]
        truth = {row["id"]: row["cluster"] for row in rows}
        if given.only_make:
            return 0
        found, took, label = ours(folder, truth, Path(temporary))
    print(
        f"{len(truth)} images: precision {found[0]:.3f}, recall {found[1]:.3f}, F1 {found[2]:.3f}, "
        f"{took:.1f} s"
    )
    print(report(rows, label))
    return 0


if __name__ == "__main__":
    sys.exit(main())
