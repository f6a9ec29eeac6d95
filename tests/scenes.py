"""Images for tests: made from a seed, each with its own shapes, changed in ways that are known."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from PIL import Image, ImageColor, ImageDraw, ImageOps

import neardup as nd
from neardup.adapters.cli import run
from neardup.images import comparisons, proposals, rules
from neardup.images.prints import asked, stored
from neardup.images.thumbs import decode


def scene(seed: int, size: tuple[int, int] = (320, 240)) -> Image.Image:
    """An image with structure at all scales, as photos have it."""
    draw = np.random.default_rng(seed)
    layers = np.zeros((size[1], size[0], 3))
    for cells, weight in ((3, 90), (7, 60), (17, 40), (45, 22)):
        noise = Image.fromarray(draw.integers(0, 256, (cells, cells, 3), dtype=np.uint8))
        layers += (np.asarray(noise.resize(size, Image.Resampling.BICUBIC)) - 127.0) * weight / 127
    return Image.fromarray(np.clip(layers + 127, 0, 255).astype(np.uint8))


def fingerprint_of(image: Any, scheme: str = "image") -> int | None:
    """Its fingerprint, None if it shows nothing."""
    return nd.scheme(scheme).fingerprint(image)


def print_of(image: Any, scheme: str = "image") -> int:
    """Its fingerprint."""
    found = fingerprint_of(image, scheme)
    assert found is not None
    return found


def saved(image: Image.Image, path: Path, **options: Any) -> Path:
    """Where it is saved."""
    image.save(path, **options)
    return path


def data_of(image: Image.Image, kind: str = "PNG", **options: object) -> bytes:
    """The bytes of its file."""
    out = io.BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


def thumb_of(image: Image.Image) -> np.ndarray:
    """Its thumbnail."""
    return np.frombuffer(decode(data_of(image)).thumb, dtype=np.uint8)


def verdict(one: Image.Image, other: Image.Image) -> str | None:
    """What is found of two images; None if they were not even proposed."""
    thumbs = np.array([thumb_of(one), thumb_of(other)])
    ways = proposals.merged(
        proposals.propose(stored(thumbs), asked(thumbs), proposals.RADIUS),
        proposals.propose_by_corners(thumbs),
    )
    if not len(ways.left):
        return None
    seen = comparisons.verify(thumbs, ways, np.array([0]), np.array([len(ways.left)]), rules.RULES["default"])
    return rules.REASONS[seen.reason[0]]


def collage(left: Image.Image, right: Image.Image) -> Image.Image:
    """Two images side by side."""
    both = Image.new("RGB", (left.width + right.width, left.height))
    both.paste(left, (0, 0))
    both.paste(right, (left.width, 0))
    return both


def on_a_page(image: Image.Image) -> Image.Image:
    """As a page of a magazine shows it."""
    page = Image.new("RGB", (430, 350), "white")
    pen = ImageDraw.Draw(page)
    for y in range(4, 350, 14):
        pen.text(
            (6, y), "the text of a page goes on from line to line and around the image " * 2, fill="black"
        )
    page.paste(image, (70, 60))
    return page


def smooth(seed: int, size: tuple[int, int] = (320, 240)) -> Image.Image:
    """A dark or smooth image, such as a night sky or fog: most of what is to be seen in it is its frame."""
    draw = np.random.default_rng(seed)
    layers = np.zeros((size[1], size[0], 3))
    for cells, weight in ((2, 8), (4, 14), (9, 5), (31, 3)):
        noise = Image.fromarray(draw.integers(0, 256, (cells, cells, 3), dtype=np.uint8))
        layers += (np.asarray(noise.resize(size, Image.Resampling.BICUBIC)) - 127.0) * weight / 127
    return Image.fromarray(np.clip(layers + (40, 60, 110, 170)[seed % 4], 0, 255).astype(np.uint8))


def in_frame(image: Image.Image, *layers: tuple[str, float]) -> Image.Image:
    """With borders, from the inside out: each a colour and a share of the width."""
    for colour, share in layers:
        image = ImageOps.expand(image, max(1, round(share * 320)), colour)
    return image


def make_library(folder: Path) -> Path:
    """Six images; a smaller one, a mirrored one and a copy of some of them; two that are flat, two files that are none."""
    (folder / "sub").mkdir(parents=True)
    for seed in range(6):
        saved(scene(seed), folder / f"{seed}.png")
    saved(scene(0).resize((160, 120)), folder / "sub/small.jpg")
    saved(ImageOps.mirror(scene(1)), folder / "sub/mirror.webp")
    (folder / "sub/copy.png").write_bytes((folder / "2.png").read_bytes())
    saved(Image.new("RGB", (9, 9), "white"), folder / "flat.png")
    saved(Image.new("RGB", (7, 7), "white"), folder / "flat2.png")
    (folder / "broken.jpg").write_bytes(b"\xff\xd8\xff nothing")
    (folder / "notes.txt").write_text("no image")
    return folder


def dedupe(folder: Path, out: Path, *options: str) -> int:
    """The exit code of a run over a folder."""
    return run(["dedupe", str(folder), "-o", str(out), "--quiet", *options])


def rows_of(out: Path, name: str = "annotations") -> list[dict[str, Any]]:
    """The rows of a table of a run."""
    return pq.read_table(out / f"{name}.parquet").to_pylist()


def shirt(colour: str) -> Image.Image:
    """A thing of one colour, with folds, on white, as a shop shows it."""
    image = Image.new("RGB", (240, 300), "white")
    pen = ImageDraw.Draw(image)
    shape = [
        (40, 60),
        (90, 30),
        (150, 30),
        (200, 60),
        (225, 130),
        (185, 140),
        (185, 270),
        (55, 270),
        (55, 140),
        (15, 130),
    ]
    pen.polygon(shape, fill=colour)
    for at in range(8):
        pen.line(
            (70 + 14 * at, 90 + 9 * (at % 3), 64 + 15 * at, 255),
            fill=tuple(x * 3 // 4 for x in ImageColor.getrgb(colour)),
            width=4,
        )
    pen.ellipse((95, 22, 145, 52), fill="#dddddd")
    return image
