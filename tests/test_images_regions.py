"""Regions: a part that shows something else makes another image, unless it was drawn over a photograph."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageDraw, ImageFilter, ImageFont, ImageOps

from neardup.images import rules
from neardup.images.agreements import AGREEMENT
from neardup.images.regions import REGIONS, line_drawing, regions
from neardup.images.thumbs import SIDE

from .scenes import scene, thumb_of, verdict

SAME = np.zeros((1, len(AGREEMENT)))
SAME[0, [0, 4]] = 1.0


def said(one: np.ndarray, other: np.ndarray, found: np.ndarray = SAME) -> dict[str, int]:
    """What windows say of two thumbnails."""
    counts = regions(np.array([one, other]), np.array([0]), np.array([1]), found)[0]
    return dict(zip(REGIONS, counts.tolist(), strict=True))


def plainly(one: np.ndarray, other: np.ndarray) -> dict[str, int]:
    """The same counts of two thumbnails that lie on each other as they are, window by window."""

    def half(thumb: np.ndarray) -> np.ndarray:
        grey = thumb[: SIDE * SIDE].reshape(SIDE, SIDE).astype(int)
        return (grey[::2, ::2] + grey[1::2, ::2] + grey[::2, 1::2] + grey[1::2, 1::2] + 2) // 4

    a, b = half(one), half(other)
    counts = dict.fromkeys(
        ("seen", "told", "alike", "other", "wholly", "within", "unlike", "inside", "single"), 0
    )
    for y in range(0, 57, 4):
        for x in range(0, 57, 4):
            mine = a[y : y + 8, x : x + 8]
            counts["seen"] += 1
            spread = mine.var(), b[y : y + 8, x : x + 8].var()
            if min(spread) < 9:
                counts["single"] += max(spread) >= 64
                continue
            best = -1.0
            for v in range(max(0, y - 1), min(56, y + 1) + 1):
                for u in range(max(0, x - 1), min(56, x + 1) + 1):
                    its = b[v : v + 8, u : u + 8]
                    both = (mine * its).mean() - mine.mean() * its.mean()
                    best = max(best, both / ((mine.var() + 4) * (its.var() + 4)) ** 0.5)
            best = np.floor(1000 * best + 1e-9)
            inner = 8 <= x <= 48 and 8 <= y <= 48
            counts["told"] += 1
            for name, yes in (
                ("alike", best >= 500),
                ("other", best < 400),
                ("wholly", best < 250),
                ("within", inner),
                ("unlike", best < 500 and inner),
                ("inside", best < 400 and inner),
            ):
                counts[name] += int(yes)
    return counts


@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 10**6), blur=st.sampled_from([0, 2, 9]))
def test_windows_are_counted_as_the_plain_loop_counts_them(seed: int, blur: int) -> None:
    draw = np.random.default_rng(seed)
    under = scene(seed, (SIDE, SIDE)).filter(ImageFilter.GaussianBlur(blur))
    over = scene(seed + 1, (SIDE, SIDE))
    left, top = draw.integers(0, 90, 2).tolist()
    laid = under.copy()
    laid.paste(over.crop((left, top, left + 50, top + 50)), (left, top))
    one, other = thumb_of(under), thumb_of(laid)
    found = said(one, other)
    assert {name: found[name] for name in plainly(one, other)} == plainly(one, other)


def test_a_lean_is_followed() -> None:
    lean = SAME.copy()
    lean[0, AGREEMENT.index("lean_across")] = 0.3
    straight = thumb_of(scene(4))
    middle = (np.arange(SIDE) + 0.5) / SIDE - 0.5
    across, down = np.meshgrid(middle, middle)
    depth = 1 + 0.3 * across
    column, row = (np.rint((0.5 + place / depth) * SIDE - 0.5).astype(int) for place in (across, down))
    inside = (column >= 0) & (column < SIDE) & (row >= 0) & (row < SIDE)
    grey = straight[: SIDE * SIDE].reshape(SIDE, SIDE)
    seen = straight.copy()
    seen[: SIDE * SIDE] = np.where(inside, grey[row.clip(0, SIDE - 1), column.clip(0, SIDE - 1)], 0).ravel()
    assert said(seen, straight)["other"] > 20
    assert said(seen, straight, lean)["other"] == 0


def test_threads_change_no_count() -> None:
    thumbs = np.array([thumb_of(scene(seed)) for seed in range(9)])
    left = np.tile(np.arange(8), 5)
    found = np.tile(SAME, (40, 1))
    one, two = (regions(thumbs, left, left + 1, found, threads=threads) for threads in (1, 4))
    assert np.array_equal(one, two)


def film(seed: int, at: tuple[int, int]) -> Image.Image:
    """A frame: the same ground for one seed, and a round subject somewhere before it."""
    frame = scene(seed)
    inside = Image.new("L", (110, 110), 0)
    ImageDraw.Draw(inside).ellipse((4, 4, 106, 106), fill=255)
    frame.paste(scene(seed + 500, (110, 110)), at, inside.filter(ImageFilter.GaussianBlur(2)))
    return frame


def printed(seed: int) -> Image.Image:
    """A plate on white, with a pale print."""
    image, inside = Image.new("RGB", (240, 240), "white"), Image.new("L", (240, 240), 0)
    ImageDraw.Draw(inside).ellipse((30, 30, 210, 210), fill=255)
    pale = scene(seed, (240, 240)).point([120 + value // 4 for value in range(256)] * 3)
    return Image.composite(pale, image, inside)


def mounted(seed: int) -> Image.Image:
    """A photograph in a mount that is the same for all: a line around it and words below."""
    mount = Image.new("RGB", (340, 320), "#102040")
    mount.paste(scene(seed, (310, 220)).point([90 + value // 5 for value in range(256)] * 3), (15, 15))
    pen = ImageDraw.Draw(mount)
    pen.rectangle((5, 5, 334, 314), outline="white", width=3)
    pen.text((170, 275), "A WALK IN MAY", fill="white", font=ImageFont.load_default(36), anchor="mm")
    return mount


@pytest.mark.parametrize("seed", range(6))
def test_frames_of_a_film_in_which_the_subject_moved_are_not_the_same(seed: int) -> None:
    found = verdict(film(seed, (20, 40)), film(seed, (180, 100)))
    assert found is None or found in rules.REJECTED


def test_things_of_one_outline_with_other_prints_are_not_the_same() -> None:
    for seed in range(0, 12, 2):
        found = verdict(printed(seed), printed(seed + 1))
        assert found is None or found in rules.REJECTED


def test_photographs_in_one_mount_are_not_the_same() -> None:
    for seed in range(0, 12, 2):
        found = verdict(mounted(seed), mounted(seed + 1))
        assert found is None or found in rules.REJECTED


def test_a_plate_and_a_mounted_photograph_are_the_same_as_their_small_copies() -> None:
    for image in (printed(3), mounted(3), film(3, (20, 40))):
        assert (verdict(image, image.resize((150, 140))) or "").startswith("same image")


def chart(seed: int) -> Image.Image:
    """A chart: the same axes and title for all, other bars."""
    draw, image = np.random.default_rng(seed), Image.new("RGB", (360, 240), "white")
    pen = ImageDraw.Draw(image)
    pen.text((180, 4), "Rain by month", fill="black", font=ImageFont.load_default(18), anchor="ma")
    pen.rectangle((40, 30, 340, 210), outline="black")
    for bar in range(8):
        left = 52 + 36 * bar
        pen.rectangle((left, 210 - int(draw.integers(8, 170)), left + 22, 209), fill="#4472c4")
    return image


def test_charts_of_one_layout_are_not_the_same_and_none_is_the_other_upside_down() -> None:
    assert line_drawing(thumb_of(chart(1)))
    for seed in range(0, 12, 2):
        for other in (chart(seed + 1), chart(seed + 1).rotate(180)):
            found = verdict(chart(seed), other)
            assert found is None or found in rules.REJECTED
        assert verdict(chart(seed), chart(seed).rotate(180)) == "same image: rot180"


def test_a_thing_on_much_plain_ground_is_no_line_drawing() -> None:
    stars = Image.new("L", (300, 300), 6)
    pen = ImageDraw.Draw(stars)
    for x, y, size in np.random.default_rng(1).integers(20, 270, (40, 3)).tolist():
        pen.ellipse((x, y, x + size // 30, y + size // 30), fill=120 + size // 3)
    assert not line_drawing(thumb_of(stars.filter(ImageFilter.GaussianBlur(4))))
    assert not line_drawing(thumb_of(scene(1)))


def words_over(image: Image.Image) -> Image.Image:
    image = image.copy()
    pen, font = ImageDraw.Draw(image), ImageFont.load_default(30)
    for line, text in enumerate(("SALE ENDS", "TODAY")):
        place = (image.width / 2, 20 + 36 * line)
        pen.text(place, text, fill="white", font=font, anchor="ma", stroke_width=3, stroke_fill="black")
    return image


def marked(image: Image.Image) -> Image.Image:
    sheet = Image.new("L", (640, 640), 0)
    pen = ImageDraw.Draw(sheet)
    for at in range(60):
        pen.text((at % 6 * 110, at // 6 * 60), "sample", fill=110, font=ImageFont.load_default(22))
    sheet = sheet.rotate(30).crop((150, 150, 150 + image.width, 150 + image.height))
    return Image.composite(Image.new("RGB", image.size, "white"), image, sheet)


def leaning(image: Image.Image) -> Image.Image:
    width, height = image.size
    quad = (-18, -6, -4, height + 16, width + 22, height + 3, width + 4, -20)
    return image.transform(image.size, Image.Transform.QUAD, quad, Image.Resampling.BICUBIC)


@pytest.mark.parametrize("change", [words_over, marked, leaning])
def test_words_marks_and_a_lean_do_not_make_another_photograph(
    change: Callable[[Image.Image], Image.Image],
) -> None:
    found = [verdict(scene(seed), change(scene(seed))) or "" for seed in range(1, 7)]
    assert sum(one.startswith("same image") for one in found) >= 5


def test_a_bar_with_words_at_the_rim_is_no_content() -> None:
    for seed in range(4):
        barred = scene(seed)
        pen = ImageDraw.Draw(barred)
        pen.rectangle((0, 212, 320, 240), fill="black")
        pen.text((8, 216), "Breaking: caption 3417", fill="white", font=ImageFont.load_default(16))
        assert (verdict(ImageOps.grayscale(scene(seed)), barred) or "").startswith("same image")
