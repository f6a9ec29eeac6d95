"""Colours: tints and filters are the same image, clearly other colours another one."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageEnhance, ImageOps

import neardup as nd
from neardup.adapters.cli import run
from neardup.images import rules

from .scenes import data_of, dedupe, rows_of, saved, scene, shirt, verdict


def _hue(image: Image.Image, degrees: int) -> Image.Image:
    hue, *rest = image.convert("HSV").split()
    return Image.merge(
        "HSV", (hue.point([(at + degrees * 256 // 360) % 256 for at in range(256)]), *rest)
    ).convert("RGB")


def _levels(image: Image.Image, *gains: float) -> Image.Image:
    return Image.fromarray(np.clip(np.asarray(image) * np.array(gains), 0, 255).astype(np.uint8))


SAME_COLOURS = {
    "grey": lambda im: im.convert("L"),
    "paler": lambda im: ImageEnhance.Color(im).enhance(0.3),
    "more colourful": lambda im: ImageEnhance.Color(im).enhance(1.8),
    "sepia": lambda im: ImageOps.colorize(im.convert("L"), "#301808", "#ffeecc"),
    "two tones": lambda im: ImageOps.colorize(im.convert("L"), "#001040", "#c0e0ff"),
    "warmer": lambda im: _levels(im, 1.25, 1, 0.7),
    "cooler": lambda im: _levels(im, 0.75, 1, 1.3),
    "tinted": lambda im: Image.blend(im, Image.new("RGB", im.size, "#2040ff"), 0.25),
    "darker": lambda im: ImageEnhance.Brightness(im).enhance(0.6),
    "compressed": lambda im: Image.open(io.BytesIO(data_of(im, "JPEG", quality=10))),
    "few colours": lambda im: im.convert("P", palette=Image.Palette.ADAPTIVE),
    "a little of hue": lambda im: _hue(im, 20),
}


OTHER_COLOURS = {
    "hues turned by 180 degrees": lambda im: Image.merge(
        "YCbCr",
        [
            one if at == 0 else one.point(lambda x: 256 - x)
            for at, one in enumerate(im.convert("YCbCr").split())
        ],
    ).convert("RGB"),
    "cropped, mirrored and turned by 120 degrees": lambda im: ImageOps.mirror(
        _yrot(im, 120).crop((20, 15, 300, 225))
    ),
}


def _yrot(image: Image.Image, degrees: int) -> Image.Image:
    """Hues turned at the same brightness."""
    pixels = np.asarray(image.convert("YCbCr")).astype(np.float64)
    turned = (pixels[..., 1] - 128 + 1j * (pixels[..., 2] - 128)) * np.exp(1j * np.deg2rad(degrees))
    pixels[..., 1], pixels[..., 2] = turned.real + 128, turned.imag + 128
    return Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8), "YCbCr").convert("RGB")


@pytest.mark.parametrize("name", SAME_COLOURS)
def test_tints_filters_and_grey_are_no_other_colours(name: str) -> None:
    for seed in range(6):
        assert (verdict(scene(seed), SAME_COLOURS[name](scene(seed))) or "").startswith("same image")
        assert verdict(scene(seed), SAME_COLOURS[name](scene(seed))) not in rules.REJECTED


@pytest.mark.parametrize("name", OTHER_COLOURS)
def test_an_image_in_clearly_other_colours_is_another_one(name: str) -> None:
    for seed in range(6):
        assert verdict(scene(seed), OTHER_COLOURS[name](scene(seed))) == "same image in other colours"


def test_search_and_explain_look_at_colours_as_a_run_does(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, other = saved(shirt("#c02030"), tmp_path / "red.png"), saved(shirt("#2040b0"), tmp_path / "blue.png")
    for options, count, word in (([], 1, "rejected"), (["--ignore-colour"], 2, "accepted")):
        capsys.readouterr()
        assert run(["search", str(one), "--in", str(tmp_path), *options]) == 0
        assert len(capsys.readouterr().out.splitlines()) == count
        assert run(["explain", str(one), str(other), *options]) == 0
        assert f"{word}: same image" in capsys.readouterr().out


def test_colour_variants_of_a_shop_are_different_products(tmp_path: Path) -> None:
    for colour in ("#c02030", "#2040b0", "#208040"):
        saved(shirt(colour), tmp_path / f"{colour[1:]}.png")
        saved(shirt(colour).resize((160, 200)), tmp_path / f"{colour[1:]}-small.jpg", quality=85)
    out = [tmp_path / "out", tmp_path / "ignoring"]
    dedupe(tmp_path, out[0], "--no-guards")
    evidence = rows_of(out[0], "evidence")
    assert sum(row["keep"] for row in rows_of(out[0])) == 3
    assert {row["reason"] for row in evidence if not row["accepted"]} == {"same image in other colours"}
    dedupe(tmp_path, out[1], "--no-guards", "--ignore-colour")
    assert sum(row["keep"] for row in rows_of(out[1])) == 1
    assert json.loads((out[1] / "manifest.json").read_text())["settings"]["ignore_colour"] is True
    result = nd.dedupe(sorted(str(path) for path in tmp_path.glob("*.*g")), ignore_colour=True)
    assert result.annotations["keep"].to_pylist().count(True) == 1
