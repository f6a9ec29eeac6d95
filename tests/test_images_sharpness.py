"""Sharpness: a blurred copy, and one that was small once, are less sharp, whatever their sizes are."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from PIL import Image, ImageDraw, ImageEnhance, ImageFilter, ImageOps

from neardup.images.sharpness import sharpness
from neardup.images.thumbs import decode

from .scenes import data_of, dedupe, in_frame, rows_of, saved, scene


def detailed(seed: int, size: tuple[int, int]) -> Image.Image:
    """A scene with fine lines all over."""
    image = scene(seed, size)
    pen = ImageDraw.Draw(image)
    for at in range(0, sum(size), 17 + seed):
        pen.line((at, 0, at - size[1], size[1]), fill="#404040", width=2)
    return image


def of(image: Image.Image, kind: str = "PNG", **options: object) -> int:
    """Its sharpness, inside its borders."""
    data = data_of(image, kind, **options)
    found = sharpness(data, decode(data).box)
    assert found is not None
    return found


@pytest.mark.parametrize("size", [(320, 240), (900, 700)])
def test_a_blurred_copy_is_less_sharp_at_any_size(size: tuple[int, int]) -> None:
    image = detailed(1, size)
    assert of(image) > of(image.filter(ImageFilter.GaussianBlur(size[0] / 200)))
    assert of(image) > of(image.filter(ImageFilter.GaussianBlur(size[0] / 200)).resize((1200, 900)))


def test_a_copy_that_was_made_small_and_large_again_is_less_sharp() -> None:
    image = detailed(2, (800, 600))
    assert of(image) > of(image.resize((160, 120)).resize((1600, 1200), Image.Resampling.BICUBIC))


def test_light_and_borders_do_not_sharpen() -> None:
    image = detailed(3, (600, 450))
    assert abs(of(image) - of(ImageEnhance.Contrast(image).enhance(0.6))) <= 3
    assert abs(of(image) - of(in_frame(image, ("white", 0.1)))) <= 3


def test_a_turned_file_is_as_sharp_as_what_it_shows() -> None:
    image, notes = detailed(4, (500, 300)), Image.Exif()
    notes[0x0112] = 6
    data = data_of(image, "JPEG", quality=95, exif=notes)
    upright = data_of(ImageOps.exif_transpose(Image.open(io.BytesIO(data))), "JPEG", quality=95)
    assert abs((sharpness(data) or 0) - (sharpness(upright) or 0)) <= 2


def test_what_cannot_be_read_has_none() -> None:
    assert sharpness(b"nothing") is None


def test_the_sharpest_copy_stays_though_another_is_larger(tmp_path: Path) -> None:
    image = detailed(5, (500, 400))
    folder = tmp_path / "images"
    folder.mkdir()
    saved(image, folder / "sharp.png")
    saved(image.resize((250, 200)).resize((1000, 800)), folder / "large.png")
    for rule, stays in (("sharpest", "sharp.png"), ("resolution", "large.png")):
        for _ in range(2):  # the second time from the cache
            assert dedupe(folder, tmp_path / rule, "--no-guards", "--keep", rule, "--overwrite") == 0
            rows = rows_of(tmp_path / rule)
            assert [Path(row["id"]).name for row in rows if row["keep"]] == [stays]
