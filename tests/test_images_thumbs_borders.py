"""Borders of images: frames are cut off; the ground around a thing and the stripes of a flag are not."""

from __future__ import annotations

import io
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageDraw, ImageFont, ImageOps

from neardup.images import comparisons, proposals, rules, thumbs
from neardup.images.prints import asked, stored
from neardup.images.thumbs import SIDE, decode

from .scenes import data_of, in_frame, scene, smooth, thumb_of


def _rounded(image: Image.Image) -> Image.Image:
    mask = Image.new("L", image.size, 0)
    ImageDraw.Draw(mask).rounded_rectangle((0, 0, *image.size), 30, fill=255)
    framed = Image.new("RGB", (image.width + 40, image.height + 40), "white")
    framed.paste(image, (20, 20), mask)
    return framed


def _instant(image: Image.Image) -> Image.Image:
    framed = ImageOps.expand(image, (16, 16, 16, 70), "#fafaf5")
    ImageDraw.Draw(framed).text((110, 270), "Summer", fill="#333333", font=ImageFont.load_default(30))
    return framed


def _noisy(image: Image.Image) -> Image.Image:
    return Image.open(io.BytesIO(data_of(in_frame(image, ("#f4f0e8", 0.06)), "JPEG", quality=25))).convert(
        "RGB"
    )


FRAMES = {
    "white, 3 %": lambda im: in_frame(im, ("white", 0.03)),
    "white, 6 %": lambda im: in_frame(im, ("white", 0.06)),
    "black, 6 %": lambda im: in_frame(im, ("black", 0.06)),
    "red, 12 %": lambda im: in_frame(im, ("#c02020", 0.12)),
    "white, 25 %": lambda im: in_frame(im, ("white", 0.25)),
    "letterbox": lambda im: ImageOps.expand(im, (0, 45), "black"),
    "pillarbox": lambda im: ImageOps.expand(im, (60, 0), "white"),
    "a line inside a border": lambda im: in_frame(im, ("black", 0.006), ("white", 0.05)),
    "a mat inside a frame": lambda im: in_frame(im, ("white", 0.01), ("#eee8dd", 0.08), ("#402010", 0.04)),
    "two frames": lambda im: in_frame(im, ("#eee8dd", 0.08), ("#402010", 0.04)),
    "rounded": _rounded,
    "an instant photo with writing": _instant,
    "noisy": _noisy,
    "turned on black": lambda im: im.rotate(5, Image.Resampling.BICUBIC),
}


def accepted(shown: list[Image.Image], rule: str = "default") -> set[tuple[int, int]]:
    """The pairs of images that are said to show the same."""
    thumbs = np.array([thumb_of(image) for image in shown])
    ways = proposals.merged(
        proposals.propose(stored(thumbs), asked(thumbs), proposals.RADIUS),
        proposals.propose_by_corners(thumbs),
    )
    low, high = np.minimum(ways.left, ways.right), np.maximum(ways.left, ways.right)
    begin = np.flatnonzero(np.append(True, (low[1:] != low[:-1]) | (high[1:] != high[:-1])) & (low >= 0))
    ends = np.append(begin[1:], len(low))
    seen = comparisons.verify(thumbs, ways, begin, ends, rules.RULES[rule])
    return {(int(low[row]), int(high[row])) for row in begin[seen.accepted]}


@pytest.mark.parametrize("name", FRAMES)
@pytest.mark.parametrize("rule", ["default", "loose"])
def test_different_images_with_the_same_frame_are_not_the_same(name: str, rule: str) -> None:
    shown = [FRAMES[name](image) for seed in range(10) for image in (smooth(seed), scene(seed))]
    assert accepted(shown, rule) == set()


def screen(seed: int) -> Image.Image:
    """A screen of an installer: all have the same dark head and the same box, with other things in it."""
    draw = np.random.default_rng(seed)
    image = Image.new("RGB", (320, 240), "#b0bccc")
    pen = ImageDraw.Draw(image)
    pen.rectangle((0, 0, 319, 32), fill="#040408")
    pen.polygon([(140, 0), (170, 0), (310, 32), (30, 32)], fill="#106070")
    pen.rectangle((8, 50, 311, 225), fill="#f8fffa", outline="#808080")
    pen.rectangle((9, 70, 310, 84), fill="#108878")
    for line in range(int(draw.integers(1, 8))):
        left, top = 12 + int(draw.integers(0, 150)), 88 + 17 * line
        pen.rectangle((left, top, left + int(draw.integers(20, 100)), top + 8), fill="#108878")
    return image


# Where the inside begins along one straight line, and nothing is lost.
EXACT = [name for name in FRAMES if "%" in name or name in ("letterbox", "pillarbox", "two frames")]


@pytest.mark.parametrize("name", EXACT)
def test_the_verdict_on_images_in_one_frame_is_that_on_the_images_themselves(name: str) -> None:
    # Many of these screens are so much alike that a little more of it decides.
    shown = [
        *map(screen, range(20)),
        *map(scene, range(4)),
        *(scene(at).resize((160, 120)) for at in range(4)),
    ]
    verdicts = accepted(shown)
    assert 4 < len(verdicts) < 150
    assert verdicts == accepted([FRAMES[name](image.resize((320, 240))) for image in shown])


@pytest.mark.parametrize("name", [name for name in FRAMES if name != "turned on black"])
def test_an_image_and_its_framed_copy_are_the_same(name: str) -> None:
    shown = [scene(seed) for seed in range(6)]
    found = accepted([*shown, *map(FRAMES[name], shown)])
    assert found == {(at, at + 6) for at in range(6)}


@pytest.mark.parametrize("name", ["white, 6 %", "letterbox", "two frames"])
def test_the_inside_of_a_frame_is_found_within_half_a_pixel(name: str) -> None:
    bare, framed = scene(1), FRAMES[name](scene(1))
    across, down = (framed.width - 320) / 2 / framed.width, (framed.height - 240) / 2 / framed.height
    for edge, wanted in zip(decode(data_of(framed)).box, (across, down, 1 - across, 1 - down), strict=True):
        assert abs(edge - wanted) * framed.width < 0.5
    assert decode(data_of(bare)).box == (0, 0, 1, 1)


@pytest.mark.parametrize("width", [5, 11, 17, 24, 60])
@pytest.mark.parametrize("colour", ["white", "black"])
def test_an_image_is_cut_out_of_its_frame_to_the_pixel(width: int, colour: str) -> None:
    for image in (*map(screen, range(4)), *(scene(seed, (400, 300)) for seed in range(4))):
        assert np.array_equal(thumb_of(ImageOps.expand(image, width, colour)), thumb_of(image))


def test_the_ground_around_a_thing_is_no_border() -> None:
    image = Image.new("RGB", (300, 300), "white")
    ImageDraw.Draw(image).ellipse((80, 60, 220, 240), fill="#305090")
    assert decode(data_of(image)).box == (0, 0, 1, 1)


def grey_scene(seed: int) -> np.ndarray:
    return np.asarray(scene(seed, (SIDE, SIDE)).convert("L")).copy()


def test_a_thing_with_some_straight_sides_on_a_plain_ground_keeps_its_ground() -> None:
    grey = np.full((SIDE, SIDE), 60, np.uint8)
    grey[40:80, 50:80] = 200  # its upper left corner is that of a box
    grey[64:80, 66:80] = 60
    grey[60:64, 80:84] = grey[80:84, 54:58] = 200
    assert thumbs.border(grey) is None


def test_the_stripes_of_a_flag_are_not_cut_off_one_by_one() -> None:
    stripes = np.repeat(np.arange(8) % 2 * 120 + 60, SIDE // 8).astype(np.uint8)
    grey = np.repeat(stripes[:, None], SIDE, axis=1)
    grey[: SIDE // 2, : SIDE // 2] = grey_scene(3)[: SIDE // 2, : SIDE // 2]
    found = decode(data_of(Image.fromarray(grey)))
    assert found.box[3] > 0.8


def test_a_thin_line_on_one_side_is_not_cut_off() -> None:
    grey = grey_scene(4)
    grey[-3:] = 250
    assert thumbs.border(grey) is None


def test_a_ground_that_goes_on_at_both_ends_is_no_bar() -> None:
    grey = np.full((SIDE, SIDE), 235, np.uint8)
    grey[:12] = grey_scene(6)[:12]
    grey[20:110, 12:116] = grey_scene(5)[20:110, 12:116]
    assert thumbs.border(grey) is None


def test_a_frame_is_cut_off_where_one_side_of_the_image_has_its_colour() -> None:
    grey = np.full((SIDE, SIDE), 20, np.uint8)
    grey[16:112, 16:112] = grey_scene(7)[16:112, 16:112] // 2 + 100
    grey[16:40, 16:112] = 20
    grey[30:40, 60:70] = 200
    assert thumbs.border(grey) == (18, 18, 110, 110)


def test_a_line_that_is_blended_with_the_inside_does_not_hide_a_border() -> None:
    grey = np.full((SIDE, SIDE), 255, np.uint8)
    grey[8:120, 8:120] = grey_scene(8)[8:120, 8:120] // 2
    grey[7, 8:120] = 247
    found = thumbs.border(grey)
    assert found is not None
    assert found[1] in (9, 10)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_whatever_plain_boxes_a_image_is_made_of_something_is_left_inside(seed: int) -> None:
    draw = random.Random(seed)
    image = Image.new("L", (draw.randint(8, 400), draw.randint(8, 400)), draw.choice((0, 8, 128, 255)))
    pen = ImageDraw.Draw(image)
    for _ in range(draw.randint(1, 6)):
        across, down = (sorted(draw.randint(0, side) for _ in range(2)) for side in image.size)
        pen.rectangle(
            (across[0], down[0], across[1], down[1]), fill=draw.choice((0, 5, 8, 120, 128, 250, 255))
        )
    left, top, right, bottom = decode(data_of(image)).box
    assert 0 <= left < right <= 1
    assert 0 <= top < bottom <= 1


@pytest.mark.parametrize("turn", range(1, 9))
def test_the_inside_of_a_frame_is_turned_as_exif_says(turn: int) -> None:
    image = ImageOps.expand(scene(3), (64, 0, 0, 0), "white")
    image = ImageOps.expand(image, (0, 0, 32, 0), "white")  # a wider border on the left
    notes = Image.Exif()
    notes[0x0112] = turn
    data = data_of(image, "JPEG", quality=95, exif=notes)
    upright = data_of(ImageOps.exif_transpose(Image.open(io.BytesIO(data))))
    assert np.allclose(decode(data).box, decode(upright).box, atol=0.02)
