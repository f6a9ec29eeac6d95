"""Pictures: decoding, fingerprints, verification, and the whole job on folders of them."""

from __future__ import annotations

import base64
import io
import json
import os
import random
import shutil
import sys
from pathlib import Path

import cv2
import imagehash
import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageColor, ImageDraw, ImageEnhance, ImageFont, ImageOps

import neardup as nd
from neardup import pictures, thumbs
from neardup.adapters.cli import run
from neardup.compat import qyoki
from neardup.features.hsv import hsv
from neardup.features.image import EVERY, VIEWS, WHOLE, View, fingerprints_of, part
from neardup.search import search_pictures
from neardup.sources import images, mostly_pictures, open_source
from neardup.sources.files import File
from neardup.thumbs import SIDE, THUMB, BadPicture, address, decode, look

from .killed import Killer

BAD = Path(__file__).parent / "badinput"
ENTRIES = [
    one for one in json.loads((BAD / "manifest.json").read_text())["entries"] if one["kind"] == "image"
]


def scene(seed: int, size: tuple[int, int] = (320, 240)) -> Image.Image:
    """A picture with structure at all scales, as photos have it."""
    draw = np.random.default_rng(seed)
    layers = np.zeros((size[1], size[0], 3))
    for cells, weight in ((3, 90), (7, 60), (17, 40), (45, 22)):
        noise = Image.fromarray(draw.integers(0, 256, (cells, cells, 3), dtype=np.uint8))
        layers += (np.asarray(noise.resize(size, Image.Resampling.BICUBIC)) - 127.0) * weight / 127
    return Image.fromarray(np.clip(layers + 127, 0, 255).astype(np.uint8))


def saved(image: Image.Image, path: Path, **options: object) -> Path:
    image.save(path, **options)
    return path


def data_of(image: Image.Image, kind: str = "PNG", **options: object) -> bytes:
    out = io.BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


def thumb_of(image: Image.Image) -> np.ndarray:
    return np.frombuffer(decode(data_of(image)).thumb, dtype=np.uint8)


# --- hashes ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bits", [64, 256])
@pytest.mark.parametrize(
    ("name", "peer"),
    [("phash", imagehash.phash), ("dhash", imagehash.dhash), ("ahash", imagehash.average_hash)],
)
def test_classic_hashes_are_those_of_imagehash(name, peer, bits):
    shown = [scene(seed, (200 + 31 * seed, 170 + 7 * seed)) for seed in range(12)]
    shown += [Image.open(BAD / "image/good.jpg"), shown[0].convert("L"), shown[1].convert("P")]
    prints = nd.scheme(f"{name}:{bits}").fingerprints(shown)
    assert prints.hex() == [str(peer(image, hash_size={64: 8, 256: 16}[bits])) for image in shown]


def test_a_pdq_hash_is_read_as_a_fingerprint():
    text = "f8f8f0cee0f4a84f06370a22038f63f0b36e2ed596621e1d33e6b39c4e9c9b22"
    assert nd.format(nd.parse(text, bits=256), 256) == text


def test_hsv_is_that_of_opencv_for_every_colour():
    low = np.arange(1 << 16, dtype=np.uint32)
    for red in range(256):
        pixels = np.stack([low & 255, low >> 8, np.full_like(low, red)], axis=1).astype(np.uint8)[None]
        assert np.array_equal(hsv(pixels), cv2.cvtColor(pixels, cv2.COLOR_BGR2HSV))


@given(st.integers(0, 10_000), st.integers(0, 7))
@settings(max_examples=30, deadline=None)
def test_the_bits_through_a_symmetry_are_those_of_the_picture_so_turned(seed, symmetry):
    pixels = np.random.default_rng(seed).integers(0, 256, (SIDE, SIDE), dtype=np.uint8)
    seen = pixels
    if symmetry & 1:
        seen = seen[:, ::-1]
    if symmetry & 2:
        seen = seen[::-1]
    if symmetry & 4:
        seen = seen.T
    asked, _ = fingerprints_of(pixels.reshape(1, -1), [View("", part(0, 0, 1, 1), EVERY)])
    found, _ = fingerprints_of(np.ascontiguousarray(seen).reshape(1, -1), [WHOLE])
    # Sums are exact, but a view rounds to quarters of a grey level before or after the turn.
    assert nd.distance(*(int.from_bytes(row.tobytes(), "little") for row in (asked[symmetry], found[0]))) <= 2


def test_threads_change_no_bit():
    thumbs = np.array([thumb_of(scene(seed)) for seed in range(9)])
    one, two = (fingerprints_of(thumbs, VIEWS, threads=threads)[0] for threads in (1, 4))
    assert np.array_equal(one, two)


@pytest.mark.parametrize("colour", ["white", "black", "#777777"])
def test_a_flat_picture_has_no_fingerprint(colour):
    assert nd.scheme("image").fingerprint(Image.new("RGB", (50, 40), colour)) is None


def test_reduced_decoding_of_jpeg_changes_a_few_bits_at_most():
    scheme = nd.scheme("image")
    for seed in range(6):
        data = data_of(scene(seed, (2000, 1500)), "JPEG", quality=85)
        small, full = decode(data), decode(data, reduce=False)
        assert (small.reduced, full.reduced) == (True, False)
        assert nd.distance(scheme.fingerprint(small), scheme.fingerprint(full)) <= 6


# --- decoding --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("turn", range(1, 9))
def test_a_picture_is_turned_as_exif_says(turn):
    image = scene(3, (300, 200))
    notes = Image.Exif()
    notes[0x0112] = turn
    found = decode(data_of(image, "JPEG", quality=95, exif=notes))
    wanted = decode(
        data_of(
            ImageOps.exif_transpose(Image.open(io.BytesIO(data_of(image, "JPEG", quality=95, exif=notes))))
        )
    )
    assert (found.width, found.height) == (wanted.width, wanted.height)
    one, other = (np.frombuffer(one.thumb, dtype=np.uint8).astype(int) for one in (found, wanted))
    assert np.abs(one - other).mean() < 3


def test_sixteen_bits_are_not_clipped():
    ramp = np.linspace(0, 65535, 128 * 128).reshape(128, 128).astype(np.uint16)
    thumb = np.frombuffer(decode(data_of(Image.fromarray(ramp))).thumb, dtype=np.uint8)
    assert thumb.min() < 10
    assert thumb.max() > 245
    assert len(np.unique(thumb)) > 100


def test_a_drawing_on_nothing_is_seen():
    image = Image.new("RGBA", (100, 100), (0, 0, 0, 0))
    ImageDraw.Draw(image).ellipse((20, 20, 80, 60), fill="white")
    assert nd.scheme("image").fingerprint(image) is not None


def test_too_many_pixels_are_an_error_and_not_a_crash():
    with pytest.raises(BadPicture, match="limit"):
        decode(data_of(scene(1)), limit=1000)


@given(
    st.binary(max_size=300),
    st.sampled_from(["PNG", "JPEG", "GIF", "BMP", "WEBP", "TIFF", "AVIF"]),
    st.integers(0, 2000),
)
@settings(max_examples=150, deadline=None)
def test_damaged_bytes_give_a_picture_or_a_reason(noise, kind, at):
    data = data_of(scene(2, (40, 30)), kind)
    at %= len(data)
    try:
        assert len(decode(data[:at] + noise + data[at + len(noise) :]).thumb) == THUMB
    except BadPicture:
        return


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry["file"])
def test_every_picture_file_is_treated_as_its_manifest_allows(entry):
    bad = []
    source = open_source(str(BAD / entry["file"]), format="image", on_bad=bad.append, unique=True)
    ids = [name for batch in source for name in batch.ids.to_pylist()]
    treatments = (
        {"accept", "normalize"}
        if ids
        else {"skip"}
        if source.skipped
        else {"reject_file", "quarantine", "limit"}
    )
    assert treatments & set(entry["allowed"]), [one.reason for one in bad]
    assert source.documents + source.bad + len(source.skipped) == 1
    if entry["good_ids"]:
        assert ids


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF", "AVIF"])
def test_every_format_shows_the_same_picture(kind, tmp_path):
    scheme = nd.scheme("image")
    path = saved(scene(4), tmp_path / f"a.{kind.lower()}")
    assert nd.distance(scheme.fingerprint(path), scheme.fingerprint(scene(4))) <= 24
    (batch,) = open_source(str(path), format="image")
    assert batch.ids.to_pylist() == [str(path)]


def test_a_heic_picture_is_read_with_the_extra(tmp_path):
    heif = pytest.importorskip("pillow_heif", reason="needs the extra: pip install neardup[heic]")
    heif.from_pillow(scene(4)).save(tmp_path / "a.heic", quality=90)
    scheme = nd.scheme("image")
    assert nd.distance(scheme.fingerprint(tmp_path / "a.heic"), scheme.fingerprint(scene(4))) <= 12
    data = (tmp_path / "a.heic").read_bytes()
    for cut in (20, len(data) // 2, len(data) - 50):
        with pytest.raises(BadPicture):
            decode(data[:cut])


def test_a_heic_picture_without_the_extra_is_told_the_way_out_and_not_remembered(tmp_path, monkeypatch):
    data = b"\0\0\0\x18ftypheic\0\0\0\0mif1heic" + bytes(100)
    (tmp_path / "a.heic").write_bytes(data)
    monkeypatch.setitem(sys.modules, "pillow_heif", None)
    thumbs._heif.cache_clear()
    for _ in range(2):
        bad = []
        assert list(open_source(str(tmp_path / "a.heic"), format="image", on_bad=bad.append)) == []
        assert (
            bad[0].reason
            == "is a HEIC picture, which needs pillow_heif; install it: pip install 'neardup[heic]'"
        )
    thumbs._heif.cache_clear()
    cache = images.Cache()
    assert cache.get([images._key(File(str(tmp_path / "a.heic")))]) == {}
    cache.close()


def test_a_preview_holds_pixels_and_nothing_else():
    notes = Image.Exif()
    notes[0x010E] = "a secret place"
    picture, colours = look(data_of(scene(1), "JPEG", exif=notes))
    assert (picture.width, picture.height) == colours.size == (320, 240)
    shown = address(colours)
    assert shown.startswith("data:image/jpeg;base64,")
    assert b"secret" not in base64.b64decode(shown.partition(",")[2])


# --- verification ----------------------------------------------------------------------------------------


def verdict(one: Image.Image, other: Image.Image) -> str | None:
    """What is found of two pictures; None if they were not even proposed."""
    thumbs = np.array([thumb_of(one), thumb_of(other)])
    ways = pictures.merged(
        pictures.propose(pictures.stored(thumbs), pictures.asked(thumbs), pictures.RADIUS),
        pictures.propose_by_corners(thumbs),
    )
    if not len(ways.left):
        return None
    seen = pictures.verify(thumbs, ways, np.array([0]), np.array([len(ways.left)]), pictures.RULES["default"])
    return pictures.REASONS[seen.reason[0]]


CHANGES = {
    "as it is": (lambda im: im, "same picture"),
    "smaller": (lambda im: im.resize((90, 80)), "same picture"),
    "grey": (lambda im: im.convert("L"), "same picture"),
    "mirror": (ImageOps.mirror, "same picture: mirror"),
    "flip": (ImageOps.flip, "same picture: flip"),
    "rot180": (lambda im: im.rotate(180), "same picture: rot180"),
    "rot90 or rot270": (lambda im: im.rotate(90, expand=True), "same picture: rot"),
    "crop": (lambda im: im.crop((30, 25, 290, 215)), "same picture: crop"),
    "turned": (lambda im: im.rotate(5), "same picture: "),
    "bars": (lambda im: ImageOps.expand(im, (0, 50), "black"), "same picture"),
    "border": (lambda im: ImageOps.expand(im, 25, "white"), "same picture"),
    "half of a collage": (lambda im: _collage(im, scene(99)), "same picture: crop"),
}


def _collage(left: Image.Image, right: Image.Image) -> Image.Image:
    both = Image.new("RGB", (left.width + right.width, left.height))
    both.paste(left, (0, 0))
    both.paste(right, (left.width, 0))
    return both


def _on_a_page(image: Image.Image) -> Image.Image:
    page = Image.new("RGB", (430, 350), "white")
    pen = ImageDraw.Draw(page)
    for y in range(4, 350, 14):
        pen.text(
            (6, y), "the text of a page goes on from line to line and around the picture " * 2, fill="black"
        )
    page.paste(image, (70, 60))
    return page


def _stuck(image: Image.Image) -> Image.Image:
    image = image.copy()
    pen = ImageDraw.Draw(image)
    for box in ((10, 10, 80, 70), (220, 20, 290, 90), (90, 160, 170, 230)):
        pen.ellipse(box, fill="yellow", outline="black")
    return image


# What no view foresees: corners find the map.
PARTS_AND_PAGES = {
    "any part": lambda im: im.crop((75, 20, 300, 190)),
    "on a page": _on_a_page,
    "turned by 8 degrees": lambda im: im.rotate(8, expand=True, fillcolor="white"),
    "covered by stickers": _stuck,
}


@pytest.mark.parametrize("name", PARTS_AND_PAGES)
def test_any_part_turn_and_page_is_found(name):
    found = [verdict(scene(seed), PARTS_AND_PAGES[name](scene(seed))) or "" for seed in range(1, 7)]
    assert sum(one.startswith("same picture") for one in found) >= 5


def test_a_covered_photograph_is_said_to_be_covered():
    assert "covered in part" in (verdict(scene(2), _stuck(scene(2))) or "")


def test_posters_of_one_layout_are_not_the_same():
    def poster(seed):
        draw = random.Random(seed)
        image = Image.new("RGB", (300, 300), "#222244")
        pen = ImageDraw.Draw(image)
        pen.rectangle((20, 20, 280, 60), fill="#ee3333")
        for line in range(6):
            price = f"{draw.choice(['coffee', 'bread', 'apples', 'fish'])} {draw.randint(1, 99)}.{draw.randint(10, 99)}"
            pen.text((30, 80 + 32 * line), price, fill="white", font=ImageFont.load_default(22))
        return image

    for seed in range(20):
        found = verdict(poster(seed), poster(seed + 50))
        assert found is None or found in pictures.REJECTED


def test_threads_change_no_corner():
    thumbs = np.array([thumb_of(scene(seed)) for seed in range(9)])
    one, two = (pictures.propose_by_corners(thumbs, threads=threads) for threads in (1, 4))
    assert one.table().equals(two.table())


def test_threads_change_no_agreement_and_no_mark():
    thumbs = np.array([thumb_of(scene(seed)) for seed in range(40)])
    left, right = np.arange(39), np.arange(1, 40)
    maps = np.tile(np.array([1.0, 0, 0, 0, 1, 0]), (39, 1))
    one, two = (pictures.agreements(thumbs, left, right, maps, threads=threads) for threads in (1, 4))
    assert np.array_equal(one, two)


@pytest.mark.parametrize("name", CHANGES)
def test_a_changed_picture_is_found_and_the_change_is_named(name):
    change, words = CHANGES[name]
    for seed in (1, 2, 3):
        assert (verdict(scene(seed), change(scene(seed))) or "").startswith(words)


def test_other_pictures_are_not_the_same():
    for seed in range(20):
        found = verdict(scene(seed), scene(seed + 100))
        assert found is None or found in pictures.REJECTED


def test_windows_of_one_layout_with_other_content_are_not_the_same():
    def window(seed):
        draw = random.Random(seed)
        image = Image.new("RGB", (360, 250), "#ececec")
        pen = ImageDraw.Draw(image)
        pen.rectangle((0, 0, 360, 22), fill="#30343c")
        pen.rectangle((0, 22, 80, 250), fill="#d8dce4")
        for _ in range(6):
            x, y = draw.randint(90, 280), draw.randint(35, 200)
            pen.rectangle(
                (x, y, x + draw.randint(30, 90), y + draw.randint(12, 60)), outline="#4060a0", width=2
            )
        return image

    for seed in range(10):
        found = verdict(window(seed), window(seed + 50))
        assert found is None or found in pictures.REJECTED


def test_agreement_with_itself_is_whole():
    thumbs = np.array([thumb_of(scene(1))] * 2)
    found = pictures.agreements(thumbs, np.array([0]), np.array([1]), np.array([[1.0, 0, 0, 0, 1, 0]]))[0]
    assert dict(zip(pictures.AGREEMENT, found, strict=True))["mean"] > 0.97


# --- borders ---------------------------------------------------------------------------------------------


def smooth(seed: int, size: tuple[int, int] = (320, 240)) -> Image.Image:
    """A dark or smooth picture, such as a night sky or fog: most of what is to be seen in it is its frame."""
    draw = np.random.default_rng(seed)
    layers = np.zeros((size[1], size[0], 3))
    for cells, weight in ((2, 8), (4, 14), (9, 5), (31, 3)):
        noise = Image.fromarray(draw.integers(0, 256, (cells, cells, 3), dtype=np.uint8))
        layers += (np.asarray(noise.resize(size, Image.Resampling.BICUBIC)) - 127.0) * weight / 127
    return Image.fromarray(np.clip(layers + (40, 60, 110, 170)[seed % 4], 0, 255).astype(np.uint8))


def _frame(image: Image.Image, *layers: tuple[str, float]) -> Image.Image:
    for colour, share in layers:
        image = ImageOps.expand(image, max(1, round(share * 320)), colour)
    return image


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
    return Image.open(io.BytesIO(data_of(_frame(image, ("#f4f0e8", 0.06)), "JPEG", quality=25))).convert(
        "RGB"
    )


FRAMES = {
    "white, 3 %": lambda im: _frame(im, ("white", 0.03)),
    "white, 6 %": lambda im: _frame(im, ("white", 0.06)),
    "black, 6 %": lambda im: _frame(im, ("black", 0.06)),
    "red, 12 %": lambda im: _frame(im, ("#c02020", 0.12)),
    "white, 25 %": lambda im: _frame(im, ("white", 0.25)),
    "letterbox": lambda im: ImageOps.expand(im, (0, 45), "black"),
    "pillarbox": lambda im: ImageOps.expand(im, (60, 0), "white"),
    "a line inside a border": lambda im: _frame(im, ("black", 0.006), ("white", 0.05)),
    "a mat inside a frame": lambda im: _frame(im, ("white", 0.01), ("#eee8dd", 0.08), ("#402010", 0.04)),
    "rounded": _rounded,
    "an instant photo with writing": _instant,
    "noisy": _noisy,
    "turned on black": lambda im: im.rotate(5, Image.Resampling.BICUBIC),
}


def accepted(shown: list[Image.Image], rule: str = "default") -> set[tuple[int, int]]:
    """The pairs of pictures that are said to show the same."""
    thumbs = np.array([thumb_of(image) for image in shown])
    ways = pictures.merged(
        pictures.propose(pictures.stored(thumbs), pictures.asked(thumbs), pictures.RADIUS),
        pictures.propose_by_corners(thumbs),
    )
    low, high = np.minimum(ways.left, ways.right), np.maximum(ways.left, ways.right)
    begin = np.flatnonzero(np.append(True, (low[1:] != low[:-1]) | (high[1:] != high[:-1])) & (low >= 0))
    ends = np.append(begin[1:], len(low))
    seen = pictures.verify(thumbs, ways, begin, ends, pictures.RULES[rule])
    return {(int(low[row]), int(high[row])) for row in begin[seen.accepted]}


@pytest.mark.parametrize("name", FRAMES)
@pytest.mark.parametrize("rule", ["default", "loose"])
def test_different_pictures_with_the_same_frame_are_not_the_same(name, rule):
    shown = [FRAMES[name](image) for seed in range(10) for image in (smooth(seed), scene(seed))]
    assert accepted(shown, rule) == set()


@pytest.mark.parametrize("name", [name for name in FRAMES if name != "turned on black"])
def test_a_picture_and_its_framed_copy_are_the_same(name):
    shown = [scene(seed) for seed in range(6)]
    found = accepted([*shown, *map(FRAMES[name], shown)])
    assert found == {(at, at + 6) for at in range(6)}


@pytest.mark.parametrize("name", ["white, 6 %", "letterbox", "a mat inside a frame"])
def test_the_inside_of_a_frame_is_found_within_two_hundredths(name):
    bare, framed = scene(1), FRAMES[name](scene(1))
    across, down = (framed.width - 320) / 2 / framed.width, (framed.height - 240) / 2 / framed.height
    for edge, wanted in zip(decode(data_of(framed)).box, (across, down, 1 - across, 1 - down), strict=True):
        assert abs(edge - wanted) < 0.04
    assert decode(data_of(bare)).box == (0, 0, 1, 1)


def test_the_ground_around_a_thing_is_no_border():
    image = Image.new("RGB", (300, 300), "white")
    ImageDraw.Draw(image).ellipse((80, 60, 220, 240), fill="#305090")
    assert decode(data_of(image)).box == (0, 0, 1, 1)


def grey_scene(seed: int) -> np.ndarray:
    return np.asarray(scene(seed, (SIDE, SIDE)).convert("L")).copy()


def test_a_thing_with_some_straight_sides_on_a_plain_ground_keeps_its_ground():
    grey = np.full((SIDE, SIDE), 60, np.uint8)
    grey[40:80, 50:80] = 200  # its upper left corner is that of a box
    grey[64:80, 66:80] = 60
    grey[60:64, 80:84] = grey[80:84, 54:58] = 200
    assert thumbs.border(grey) is None


def test_the_stripes_of_a_flag_are_not_cut_off_one_by_one():
    stripes = np.repeat(np.arange(8) % 2 * 120 + 60, SIDE // 8).astype(np.uint8)
    grey = np.repeat(stripes[:, None], SIDE, axis=1)
    grey[: SIDE // 2, : SIDE // 2] = grey_scene(3)[: SIDE // 2, : SIDE // 2]
    found = decode(data_of(Image.fromarray(grey)))
    assert found.box[3] > 0.8


def test_a_thin_line_on_one_side_is_not_cut_off():
    grey = grey_scene(4)
    grey[-3:] = 250
    assert thumbs.border(grey) is None


def test_a_ground_that_goes_on_at_both_ends_is_no_bar():
    grey = np.full((SIDE, SIDE), 235, np.uint8)
    grey[:12] = grey_scene(6)[:12]
    grey[20:110, 12:116] = grey_scene(5)[20:110, 12:116]
    assert thumbs.border(grey) is None


def test_a_frame_is_cut_off_where_one_side_of_the_picture_has_its_colour():
    grey = np.full((SIDE, SIDE), 20, np.uint8)
    grey[16:112, 16:112] = grey_scene(7)[16:112, 16:112] // 2 + 100
    grey[16:40, 16:112] = 20
    grey[30:40, 60:70] = 200
    assert thumbs.border(grey) == (18, 0, 110, 110)


def test_a_line_that_is_blended_with_the_inside_does_not_hide_a_border():
    grey = np.full((SIDE, SIDE), 255, np.uint8)
    grey[8:120, 8:120] = grey_scene(8)[8:120, 8:120] // 2
    grey[7, 8:120] = 247
    found = thumbs.border(grey)
    assert found is not None
    assert found[1] in (9, 10)


@pytest.mark.parametrize("turn", range(1, 9))
def test_the_inside_of_a_frame_is_turned_as_exif_says(turn):
    image = ImageOps.expand(scene(3), (64, 0, 0, 0), "white")
    image = ImageOps.expand(image, (0, 0, 32, 0), "white")  # a wider border on the left
    notes = Image.Exif()
    notes[0x0112] = turn
    data = data_of(image, "JPEG", quality=95, exif=notes)
    upright = data_of(ImageOps.exif_transpose(Image.open(io.BytesIO(data))))
    assert np.allclose(decode(data).box, decode(upright).box, atol=0.02)


def test_a_framed_copy_does_not_win_by_its_border(tmp_path):
    for seed in range(3):
        saved(scene(seed), tmp_path / f"{seed}.png")
        saved(_frame(scene(seed), ("white", 0.1)), tmp_path / f"{seed}-framed.png")
    dedupe(tmp_path, tmp_path / "out", "--keep", "resolution", "--no-guards")
    kept = {os.path.basename(row["id"]) for row in rows_of(tmp_path / "out") if row["keep"]}
    assert kept == {"0.png", "1.png", "2.png"}


def test_a_larger_picture_wins_with_its_border(tmp_path):
    saved(scene(1), tmp_path / "small.png")
    saved(_frame(scene(1).resize((640, 480)), ("white", 0.1)), tmp_path / "framed.png")
    dedupe(tmp_path, tmp_path / "out", "--keep", "resolution", "--no-guards")
    assert [os.path.basename(row["id"]) for row in rows_of(tmp_path / "out") if row["keep"]] == ["framed.png"]


def test_the_share_of_blocks_that_agree_is_that_of_the_map_shown(library, tmp_path, capsys):
    changed = scene(1)
    ImageDraw.Draw(changed).rectangle((200, 20, 319, 150), fill="white")
    for other in (changed, scene(3), _frame(changed, ("white", 0.1)), changed.crop((40, 20, 320, 240))):
        path = saved(other, tmp_path / "other.png")
        capsys.readouterr()
        assert run(["explain", str(library / "1.png"), str(path), "--json"]) == 0
        told = json.loads(capsys.readouterr().out)
        same, differ = (sum(row.count(mark) for row in told["differs"]) for mark in ".#")
        assert told["agree"] == pytest.approx(same / max(1, same + differ))
        assert [len(row) for row in told["differs"]] == [8] * 8


# --- colours ---------------------------------------------------------------------------------------------


def _hue(image: Image.Image, degrees: int) -> Image.Image:
    hue, *rest = image.convert("HSV").split()
    return Image.merge(
        "HSV", (hue.point([(at + degrees * 256 // 360) % 256 for at in range(256)]), *rest)
    ).convert("RGB")


def _levels(image: Image.Image, *gains: float) -> Image.Image:
    return Image.fromarray(np.clip(np.asarray(image) * np.array(gains), 0, 255).astype(np.uint8))


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
def test_tints_filters_and_grey_are_no_other_colours(name):
    for seed in range(6):
        assert (verdict(scene(seed), SAME_COLOURS[name](scene(seed))) or "").startswith("same picture")
        assert verdict(scene(seed), SAME_COLOURS[name](scene(seed))) not in pictures.REJECTED


@pytest.mark.parametrize("name", OTHER_COLOURS)
def test_a_picture_in_clearly_other_colours_is_another_one(name):
    for seed in range(6):
        assert verdict(scene(seed), OTHER_COLOURS[name](scene(seed))) == "same picture in other colours"


def test_colour_variants_of_a_shop_are_different_products(tmp_path):
    for colour in ("#c02030", "#2040b0", "#208040"):
        saved(shirt(colour), tmp_path / f"{colour[1:]}.png")
        saved(shirt(colour).resize((160, 200)), tmp_path / f"{colour[1:]}-small.jpg", quality=85)
    out = [tmp_path / "out", tmp_path / "ignoring"]
    dedupe(tmp_path, out[0], "--no-guards")
    evidence = rows_of(out[0], "evidence")
    assert sum(row["keep"] for row in rows_of(out[0])) == 3
    assert {row["rule"] for row in evidence if not row["accepted"]} == {"same picture in other colours"}
    dedupe(tmp_path, out[1], "--no-guards", "--ignore-colour")
    assert sum(row["keep"] for row in rows_of(out[1])) == 1
    assert json.loads((out[1] / "manifest.json").read_text())["settings"]["ignore_colour"] is True
    result = nd.dedupe(sorted(str(path) for path in tmp_path.glob("*.*g")), ignore_colour=True)
    assert result.annotations["keep"].to_pylist().count(True) == 1


def test_search_and_explain_look_at_colours_as_a_run_does(tmp_path, capsys):
    one, other = saved(shirt("#c02030"), tmp_path / "red.png"), saved(shirt("#2040b0"), tmp_path / "blue.png")
    for options, count, word in (([], 1, "rejected"), (["--ignore-colour"], 2, "accepted")):
        capsys.readouterr()
        assert run(["search", str(one), "--in", str(tmp_path), *options]) == 0
        assert len(capsys.readouterr().out.splitlines()) == count
        assert run(["explain", str(one), str(other), *options]) == 0
        assert f"{word}: same picture" in capsys.readouterr().out


# --- the whole job ---------------------------------------------------------------------------------------


@pytest.fixture
def library(tmp_path):
    folder = tmp_path / "Pictures"
    (folder / "sub").mkdir(parents=True)
    for seed in range(6):
        saved(scene(seed), folder / f"{seed}.png")
    saved(scene(0).resize((160, 120)), folder / "sub/small.jpg")
    saved(ImageOps.mirror(scene(1)), folder / "sub/mirror.webp")
    (folder / "sub/copy.png").write_bytes((folder / "2.png").read_bytes())
    saved(Image.new("RGB", (9, 9), "white"), folder / "flat.png")
    saved(Image.new("RGB", (7, 7), "white"), folder / "flat2.png")
    (folder / "broken.jpg").write_bytes(b"\xff\xd8\xff nothing")
    (folder / "notes.txt").write_text("no picture")
    return folder


def dedupe(folder, out, *options):
    return run(["dedupe", str(folder), "-o", str(out), "--quiet", *options])


def rows_of(out, name="annotations"):
    return pq.read_table(out / f"{name}.parquet").to_pylist()


def test_a_folder_of_pictures_is_deduplicated(library, tmp_path):
    assert mostly_pictures(str(library))
    assert dedupe(library, tmp_path / "out", "--report", str(tmp_path / "out/report.html")) == 3
    gone = {os.path.relpath(row["id"], library): row for row in rows_of(tmp_path / "out") if not row["keep"]}
    assert set(gone) == {"sub/small.jpg", "sub/mirror.webp", "sub/copy.png"} or len(gone) == 3
    assert {os.path.basename(row["duplicate_of"]) for row in gone.values()} | {os.path.basename(name) for name in gone} == {
        "0.png", "small.jpg", "1.png", "mirror.webp", "2.png", "copy.png"
    }  # fmt: skip
    rules = {row["rule"] for row in rows_of(tmp_path / "out", "evidence") if row["accepted"]}
    assert rules == {"same picture", "same picture: mirror", "identical file"}
    assert "broken.jpg" in (tmp_path / "out/quarantine.jsonl").read_text()
    page = (tmp_path / "out/report.html").read_text()
    assert page.count("data:image/jpeg;base64,") >= 8
    assert page.count('class="overlay"') >= 3


def test_the_keep_rules_of_pictures(library, tmp_path):
    dedupe(library, tmp_path / "a", "--keep", "resolution")
    assert {os.path.basename(row["id"]) for row in rows_of(tmp_path / "a") if not row["keep"]} >= {
        "small.jpg"
    }
    dedupe(library, tmp_path / "b", "--keep", f"path:{library}/sub")
    gone = {os.path.basename(row["id"]) for row in rows_of(tmp_path / "b") if not row["keep"]}
    assert gone == {"0.png", "1.png", "2.png"}


def test_the_oldest_by_exif_stays(tmp_path):
    for name, year in (("a.jpg", 2020), ("b.jpg", 2010), ("c.jpg", None)):
        notes = Image.Exif()
        if year:
            notes[0x0132] = f"{year}:05:01 12:00:00"
        saved(scene(1), tmp_path / name, quality=90 if name == "a.jpg" else 80, exif=notes)
    dedupe(tmp_path, tmp_path / "out", "--keep", "oldest:exif", "--no-guards")
    assert [os.path.basename(row["id"]) for row in rows_of(tmp_path / "out") if row["keep"]] == ["b.jpg"]


def test_protected_pictures_stay_and_new_ones_go(library, tmp_path):
    new = tmp_path / "new"
    new.mkdir()
    saved(scene(3).resize((400, 300)), new / "again.jpg")
    saved(scene(50), new / "fresh.jpg")
    dedupe(new, tmp_path / "out", "--protect", str(library))
    assert {os.path.basename(row["id"]): row["keep"] for row in rows_of(tmp_path / "out")} == {
        "again.jpg": False,
        "fresh.jpg": True,
    }


def test_a_second_run_decodes_nothing(library, tmp_path, monkeypatch):
    dedupe(library, tmp_path / "one")
    monkeypatch.setattr(images, "decode", lambda *_, **__: pytest.fail("decoded again"))
    dedupe(library, tmp_path / "two")
    assert rows_of(tmp_path / "one") == rows_of(tmp_path / "two")


def test_a_run_records_which_pictures_were_decoded_at_a_reduced_scale(tmp_path):
    (tmp_path / "in").mkdir()
    saved(scene(1, (2000, 1500)), tmp_path / "in/large.jpg")
    saved(scene(2), tmp_path / "in/small.jpg")
    saved(scene(3, (2000, 1500)), tmp_path / "in/large.png")
    for name in ("first", "cached"):
        dedupe(tmp_path / "in", tmp_path / name)
        rows = json.loads((tmp_path / name / "manifest.json").read_text())["inputs"]
        told = {os.path.basename(row["name"]): row["reduced"] for row in rows}
        assert told == {"large.jpg": True, "small.jpg": False, "large.png": False}


def test_a_killed_run_goes_on_without_looking_for_candidates_again(library, tmp_path, monkeypatch):
    def job(name):
        return ["dedupe", str(library), "-o", str(tmp_path / name), "--quiet", "--no-guards"]

    with Killer() as killer:
        whole = killer.run(job("whole"))
        for step in range(whole.steps, 0, -1):
            for folder in (tmp_path / "killed", Path(images.cache_folder()) / "runs"):
                shutil.rmtree(folder, ignore_errors=True)
            assert killer.run(job("killed"), step=step).code == -9
            if (tmp_path / "killed/.neardup/candidates.arrow").exists():
                break
    monkeypatch.setattr(pictures, "propose", lambda *_, **__: pytest.fail("looked for again"))
    assert run(job("killed")) == whole.code == 3
    for name in ("annotations.parquet", "evidence.parquet", "quarantine.jsonl"):
        assert (tmp_path / "killed" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_a_second_run_compares_nothing_and_says_the_same(library, tmp_path, monkeypatch):
    assert dedupe(library, tmp_path / "one") == 3
    for name in ("propose", "agreements"):
        monkeypatch.setattr(pictures, name, lambda *_, **__: pytest.fail("compared again"))
    assert dedupe(library, tmp_path / "two") == 3
    for name in ("annotations.parquet", "evidence.parquet", "quarantine.jsonl", "kept.txt"):
        assert (tmp_path / "two" / name).read_bytes() == (tmp_path / "one" / name).read_bytes()
    one, two = (json.loads((tmp_path / name / "manifest.json").read_text()) for name in ("one", "two"))
    assert one["inputs"] == two["inputs"]
    assert one["counts"] == two["counts"]


def test_runs_that_are_remembered_are_not_many(library, tmp_path, monkeypatch):
    monkeypatch.setattr("neardup.checkpoints.REMEMBERED", 2)
    for number in range(4):
        dedupe(library, tmp_path / str(number), "--similarity", f"0.8{number}")
    assert len(list((Path(images.cache_folder()) / "runs").iterdir())) == 2


def test_other_settings_and_other_files_are_compared_again(library, tmp_path):
    dedupe(library, tmp_path / "one")
    dedupe(library, tmp_path / "strict", "--verify", "strict")
    rules = {row["rule"] for row in rows_of(tmp_path / "strict", "evidence")}
    assert rules
    saved(scene(77), library / "1.png")
    dedupe(library, tmp_path / "two")
    assert sum(not row["keep"] for row in rows_of(tmp_path / "two")) == 2


def test_a_changed_file_is_decoded_again(library, tmp_path):
    dedupe(library, tmp_path / "one")
    saved(scene(77), library / "sub/small.jpg")
    dedupe(library, tmp_path / "two")
    kept = {os.path.basename(row["id"]) for row in rows_of(tmp_path / "two") if row["keep"]}
    assert {"small.jpg", "0.png"} <= kept


@pytest.mark.parametrize("action", ["--trash", "--hardlink", "--delete"])
def test_apply_and_undo_bring_pictures_back(library, tmp_path, action):
    def there():
        return {path: path.read_bytes() for path in library.rglob("*") if path.is_file()}

    before = there()
    dedupe(library, tmp_path / "out", "--keep", "resolution,oldest:modified")
    asked = [
        "apply",
        str(tmp_path / "out"),
        action,
        *([str(tmp_path / "bin")] if action == "--trash" else []),
    ]
    assert run(asked) == 0
    assert there() == before  # a dry run
    assert run([*asked, "--yes", "--log", str(tmp_path / "log")]) == 0
    same = {library / "2.png", library / "sub/copy.png"}
    gone = before.keys() - there().keys()
    if action == "--hardlink":  # only what is the same byte for byte
        assert not gone
        assert len({path.stat().st_ino for path in same}) == 1
    else:
        assert len(gone) == 3
        assert len(gone & same) == 1
    assert run(["undo", str(tmp_path / "log")]) == (5 if action == "--delete" else 0)
    # Of what was deleted only a file whose keeper has the same bytes can be made again.
    lost = {path for path in gone if path not in same} if action == "--delete" else set()
    assert there() == {path: data for path, data in before.items() if path not in lost}
    assert len({path.stat().st_ino for path in same}) == 2


def test_search_finds_a_part_and_names_the_change(library, tmp_path, capsys):
    picture = saved(ImageOps.mirror(scene(4)), tmp_path / "asked.jpg")
    assert run(["search", str(picture), "--in", str(library)]) == 0
    line = capsys.readouterr().out.splitlines()[0].split("\t")
    assert line[2] == "same picture: mirror"
    assert line[3].endswith("4.png")
    corner = data_of(scene(5).crop((0, 0, 170, 130)))
    assert [os.path.basename(one.id) for one in search_pictures(corner, str(library))] == ["5.png"]


def test_search_finds_a_picture_on_a_page_and_the_page_of_a_picture(library, tmp_path):
    page = data_of(_on_a_page(scene(3)))
    assert [os.path.basename(one.id) for one in search_pictures(page, str(library))] == ["3.png"]
    (tmp_path / "pages").mkdir()
    (tmp_path / "pages/page.png").write_bytes(page)
    assert len(search_pictures(data_of(scene(3)), str(tmp_path / "pages"))) == 1


def test_the_searched_file_itself_is_an_identical_file(library, capsys):
    for name in ("2.png", "flat.png"):  # of which one has a copy, and one shows nothing
        capsys.readouterr()
        assert run(["search", str(library / name), "--in", str(library), "--json"]) == 0
        found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        told = {
            os.path.basename(one["id"]): (one["distance"], one["similarity"], one["rule"]) for one in found
        }
        assert told == dict.fromkeys(
            {"2.png", "copy.png"} if name == "2.png" else {name}, (0, 1.0, "identical file")
        )
    assert run(["explain", str(library / "2.png"), str(library / "sub/copy.png")]) == 0
    assert "accepted: identical file" in capsys.readouterr().out


def test_search_of_a_text(tmp_path, capsys):
    (tmp_path / "a.txt").write_text("the quick brown fox jumps over the lazy dog by the river")
    (tmp_path / "b.txt").write_text("nothing of the kind is written in this other file at all")
    assert (
        run(["search", "the quick brown fox jumps over a lazy dog by the river", "--in", str(tmp_path)]) == 0
    )
    assert [line.rpartition("/")[2] for line in capsys.readouterr().out.splitlines()] == ["a.txt"]


def test_an_index_of_pictures_is_searched(library, tmp_path, capsys):
    index = str(tmp_path / "pics.index")
    assert run(["index", "build", index, str(library), "--scheme", "image"]) == 3  # broken.jpg
    picture = saved(ImageOps.mirror(scene(4)), tmp_path / "asked.jpg")
    capsys.readouterr()
    assert run(["search", str(picture), "--in", index, "--json"]) == 0
    (match,) = map(json.loads, capsys.readouterr().out.splitlines())
    assert (match["id"], match["rule"]) == (str(library / "4.png"), "same picture: mirror")
    assert match["verified"]
    assert match["similarity"] > 0.9
    around = _collage(scene(5), scene(98))  # a picture of the index is half of the one in question
    assert run(["search", str(saved(around, tmp_path / "around.png")), "--in", index]) == 0
    distance, _, rule, id = capsys.readouterr().out.split("\t")
    assert int(distance) <= pictures.RADIUS
    assert (rule, id.strip()) == ("same picture: crop", str(library / "5.png"))


def test_what_an_index_names_is_said_to_be_unverified_where_it_cannot_be_read(library, tmp_path, capsys):
    index = str(tmp_path / "pics.index")
    run(["index", "build", index, str(library), "--scheme", "image"])
    picture = saved(ImageOps.mirror(scene(4)), tmp_path / "asked.jpg")
    (library / "4.png").unlink()
    capsys.readouterr()
    assert run(["search", str(picture), "--in", index]) == 0
    line = capsys.readouterr().out.splitlines()[0].split("\t")
    assert line[2:] == ["not verified: same picture: mirror", str(library / "4.png")]


def test_a_picture_added_again_replaces_what_the_index_held(library, tmp_path, capsys):
    index = str(tmp_path / "pics.index")
    run(["index", "build", index, str(library / "sub"), "--scheme", "image"])
    before = len(nd.Index.load(index))
    saved(scene(60), library / "sub/small.jpg")
    assert run(["index", "add", index, str(library / "sub"), "--scheme", "image"]) == 0
    assert len(nd.Index.load(index)) == before
    capsys.readouterr()
    assert run(["search", str(library / "sub/small.jpg"), "--in", index]) == 0
    assert capsys.readouterr().out.strip().endswith("small.jpg")


def test_pictures_are_fingerprinted_by_command(library, capsys):
    for name in ("image", "phash:64"):
        assert run(["fingerprint", str(library), "--scheme", name]) == 3  # broken.jpg
        rows = {
            row["id"]: row["fingerprint"] for row in map(json.loads, capsys.readouterr().out.splitlines())
        }
        scheme = nd.scheme(name)
        wanted = nd.format(scheme.fingerprint(str(library / "4.png")), scheme.bits)
        assert rows[str(library / "4.png")] == wanted
        assert len(rows) == 11


def test_an_index_holds_pictures_and_texts_alike(library):
    paths = [library / f"{seed}.png" for seed in range(6)]
    scheme = nd.scheme("image")
    index = nd.Index(bits=256, radius=20)
    index.add([path.name for path in paths], scheme.fingerprints(paths))
    assert [id for _, id, _ in index.search(scheme.fingerprints([scene(0).resize((200, 150))]))] == ["0.png"]
    with pytest.raises(nd.NeardupError, match="scheme"):
        index.search(nd.scheme("text", bits=256).fingerprints(["no picture"]))


def test_an_index_of_texts_is_searched(tmp_path, capsys):
    folder, index = tmp_path / "texts", str(tmp_path / "texts.index")
    folder.mkdir()
    (folder / "a.txt").write_text("the quick brown fox jumps over the lazy dog by the river")
    (folder / "b.txt").write_text("nothing of the kind is written in this other file at all")
    assert run(["index", "build", index, str(folder), "--scheme", "text"]) == 0
    question = "the quick brown fox jumps over a lazy dog by the river"
    capsys.readouterr()
    assert run(["search", question, "--in", index]) == 0
    assert capsys.readouterr().out.split("\t")[2:] == ["measured", f"{folder}/a.txt\n"]
    (folder / "a.txt").unlink()
    assert run(["search", question, "--in", index]) == 0
    assert capsys.readouterr().out.split("\t")[2] == "not verified"


def test_an_index_of_the_other_kind_is_an_error_with_a_way_out(library, tmp_path, capsys):
    index = str(tmp_path / "pics.index")
    run(["index", "build", index, str(library), "--scheme", "image"])
    capsys.readouterr()
    assert run(["search", "some text", "--in", index]) == 2
    assert "--scheme" in capsys.readouterr().err
    assert run(["search", "some text", "--in", index, "--scheme", "image"]) == 2
    assert "search it with a picture" in capsys.readouterr().err


def test_two_picture_files_are_explained(library, tmp_path, capsys):
    changed = ImageOps.mirror(scene(1))
    ImageDraw.Draw(changed).rectangle((240, 180, 319, 239), fill="white")  # at the left when mirrored back
    other = saved(changed, tmp_path / "changed.png")
    assert run(["explain", str(library / "1.png"), str(other)]) == 0
    lines = capsys.readouterr().out.splitlines()
    told = dict(line.split("  ", 1) for line in lines if "  " in line)
    print_of = nd.scheme("image").fingerprint
    assert told["left"].split()[0] == nd.format(print_of(scene(1)), 256)
    assert told["verdict"].strip() == "accepted: same picture: mirror"
    assert told["distance"].split()[0] == str(nd.distance(print_of(scene(1)), print_of(changed)))
    assert 0.8 < float(told["similarity"]) < 1
    blocks = [line[3:-1] for line in lines if line.startswith("  |")]
    assert "".join(row[:2] for row in blocks[-2:]).count("#") >= 3
    assert sum(row.count("#") for row in blocks) <= 6


def test_two_ids_of_a_picture_run_are_explained(library, tmp_path, capsys):
    dedupe(library, tmp_path / "out", "--keep", "resolution")
    ids = [str(library / "1.png"), str(library / "sub/mirror.webp")]
    capsys.readouterr()
    assert run(["explain", *ids, "--run", str(tmp_path / "out"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["evidence"]["rule"] == told["rule"] == "same picture: mirror"
    assert told["similarity"] == pytest.approx(told["evidence"]["similarity"], abs=0.02)
    assert told["sizes"] == [[320, 240], [320, 240]]
    assert sum("stays" in note for note in told["notes"]) == 1
    assert run(["explain", ids[0], str(library / "3.png"), "--run", str(tmp_path / "out")]) == 0
    assert "rejected: does not show the same" in capsys.readouterr().out
    saved(scene(70), library / "1.png")
    assert run(["explain", *ids, "--run", str(tmp_path / "out")]) == 0
    assert "1.png changed since the run" in capsys.readouterr().out


def test_a_damaged_picture_is_not_explained(library, capsys):
    assert run(["explain", str(library / "1.png"), str(library / "broken.jpg")]) == 4
    assert "the right one is no picture of a known format" in capsys.readouterr().err


def test_common_histograms_are_the_same_with_the_same_seed(library):
    one, two, three = (
        qyoki.ComHistsGetter(qyoki.hsv_extractor, seed).get_common_hist(library, 0.9) for seed in (1, 1, 2)
    )
    assert all(np.array_equal(a, b) for a, b in zip(one, two, strict=True))
    assert len(one) != len(three) or any(not np.array_equal(a, b) for a, b in zip(one, three, strict=True))
    scheduler = qyoki.Scheduler(qyoki.TFIDF(15))
    prints = scheduler.generate_for_img_list(qyoki.read_img_from_dir(library)[1], one)
    scheduler.save_simhash_list([str(at) for at in range(len(prints))], prints)
    assert scheduler.img_search(prints[0], exact=True)[0][1] == prints[0]
