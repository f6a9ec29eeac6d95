"""Additions: which copy has words, a sticker, a page or a border that the other one has not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFont, ImageOps

from neardup.images.additions import additions
from neardup.images.thumbs import SIDE
from neardup.images.views import inverted

from .scenes import dedupe, in_frame, rows_of, saved, scene, thumb_of

SAME = [1.0, 0.0, 0.0, 0.0, 1.0, 0.0]


def stuck(image: Image.Image) -> Image.Image:
    image = image.copy()
    pen = ImageDraw.Draw(image)
    pen.ellipse((60, 50, 150, 140), fill="yellow", outline="black", width=4)
    pen.ellipse((180, 120, 260, 200), fill="yellow", outline="black", width=4)
    return image


def written(image: Image.Image) -> Image.Image:
    image = image.copy()
    font = ImageFont.load_default(34)
    place = (image.width / 2, 26)
    pen = ImageDraw.Draw(image)
    pen.text(place, "SOLD OUT", fill="white", font=font, anchor="ma", stroke_width=3, stroke_fill="black")
    return image


def added(one: Image.Image, other: Image.Image, map: list[float]) -> int:
    thumbs = np.array([thumb_of(one), thumb_of(other)])
    return int(additions(thumbs, np.array([0]), np.array([1]), np.array([map]))[0])


@pytest.mark.parametrize("change", [stuck, written])
def test_what_lies_on_an_image_is_seen_on_the_side_that_has_it(
    change: Callable[[Image.Image], Image.Image],
) -> None:
    for seed in range(4):
        assert added(change(scene(seed)), scene(seed), SAME) == 1
        assert added(scene(seed), change(scene(seed)), SAME) == -1


def test_a_page_with_an_image_has_something_added_and_an_image_with_a_part_of_it_has_not() -> None:
    image = scene(1)
    page = Image.new("RGB", (360, 400), "white")
    page.paste(image, (20, 80))
    pen = ImageDraw.Draw(page)
    pen.ellipse((8, 8, 60, 60), fill="#2060c0")
    pen.text((180, 370), "a walk in may", fill="black", font=ImageFont.load_default(24), anchor="mm")
    thumbs = np.array([np.asarray(one.convert("L").resize((SIDE, SIDE))).ravel() for one in (image, page)])
    map = [320 / 360, 0.0, 20 / 360, 0.0, 240 / 400, 80 / 400]
    for one, other, side in ((0, 1, -1), (1, 0, 1)):
        maps = np.array([map]) if side < 0 else inverted(np.array([map]))
        assert additions(thumbs, np.array([one]), np.array([other]), maps).tolist() == [side]
    part = image.crop((80, 60, 240, 180))
    assert added(part, image, [0.5, 0.0, 0.25, 0.0, 0.5, 0.25]) == 0


def test_nothing_is_added_to_equal_images_and_without_a_map_nothing_is_known() -> None:
    assert added(scene(1), scene(1), SAME) == 0
    assert added(scene(1), stuck(scene(1)), [float("nan")] * 6) == 0


CHANGES = {
    "stickers": stuck,
    "words": written,
    "border": lambda image: in_frame(image, ("white", 0.08)),
    "bars": lambda image: ImageOps.expand(image, (0, 60), "black"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_the_original_stays_though_the_changed_copy_is_larger(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "images"
    folder.mkdir()
    for seed in range(3):
        saved(scene(seed), folder / f"o{seed}.png")
        saved(CHANGES[name](scene(seed)).resize((700, 560)), folder / f"a{seed}.png")
        saved(CHANGES[name](scene(seed)), folder / f"b{seed}.png")
    assert dedupe(folder, tmp_path / "out", "--no-guards", "--keep", "original,resolution") == 0
    rows = rows_of(tmp_path / "out")
    gone = {Path(row["duplicate_of"]).name for row in rows if row["duplicate_of"]}
    assert gone
    assert {name[0] for name in gone} == {"o"}
