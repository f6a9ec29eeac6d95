"""Thumbnails: what a file shows, how it is turned, and where its border ends."""

from __future__ import annotations

import base64
import io
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageDraw, ImageOps

import neardup as nd
from neardup.images import thumbs
from neardup.images.thumbs import THUMB, BadImage, address, decode, look
from neardup.sources import images, open_source
from neardup.sources.files import File
from neardup.types import Bad

from .scenes import data_of, fingerprint_of, print_of, saved, scene

BAD = Path(__file__).parent / "badinput"


ENTRIES = [
    one for one in json.loads((BAD / "manifest.json").read_text())["entries"] if one["kind"] == "image"
]


def test_reduced_decoding_of_jpeg_changes_a_few_bits_at_most() -> None:
    for seed in range(6):
        data = data_of(scene(seed, (2000, 1500)), "JPEG", quality=85)
        small, full = decode(data), decode(data, reduce=False)
        assert (small.reduced, full.reduced) == (True, False)
        assert nd.distance(print_of(small), print_of(full)) <= 6


@pytest.mark.parametrize("turn", range(1, 9))
def test_an_image_is_turned_as_exif_says(turn: int) -> None:
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


def test_sixteen_bits_are_not_clipped() -> None:
    ramp = np.linspace(0, 65535, 128 * 128).reshape(128, 128).astype(np.uint16)
    thumb = np.frombuffer(decode(data_of(Image.fromarray(ramp))).thumb, dtype=np.uint8)
    assert thumb.min() < 10
    assert thumb.max() > 245
    assert len(np.unique(thumb)) > 100


def test_a_drawing_on_nothing_is_seen() -> None:
    image = Image.new("RGBA", (100, 100), (0, 0, 0, 0))
    ImageDraw.Draw(image).ellipse((20, 20, 80, 60), fill="white")
    assert fingerprint_of(image) is not None


def test_too_many_pixels_are_an_error_and_not_a_crash() -> None:
    with pytest.raises(BadImage, match="limit"):
        decode(data_of(scene(1)), limit=1000)


@given(
    st.binary(max_size=300),
    st.sampled_from(["PNG", "JPEG", "GIF", "BMP", "WEBP", "TIFF", "AVIF"]),
    st.integers(0, 2000),
)
@settings(max_examples=150, deadline=None)
def test_damaged_bytes_give_a_image_or_a_reason(noise: bytes, kind: str, at: int) -> None:
    data = data_of(scene(2, (40, 30)), kind)
    at %= len(data)
    try:
        assert len(decode(data[:at] + noise + data[at + len(noise) :]).thumb) == THUMB
    except BadImage:
        return


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry["file"])
def test_every_image_file_is_treated_as_its_manifest_allows(entry: dict[str, Any]) -> None:
    bad: list[Bad] = []
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
def test_every_format_shows_the_same_image(kind: str, tmp_path: Path) -> None:
    path = saved(scene(4), tmp_path / f"a.{kind.lower()}")
    assert nd.distance(print_of(path), print_of(scene(4))) <= 24
    (batch,) = open_source(str(path), format="image")
    assert batch.ids.to_pylist() == [str(path)]


def test_a_heic_image_is_read_with_the_extra(tmp_path: Path) -> None:
    heif = pytest.importorskip("pillow_heif", reason="needs the extra: pip install neardup[heic]")
    heif.from_pillow(scene(4)).save(tmp_path / "a.heic", quality=90)
    assert nd.distance(print_of(tmp_path / "a.heic"), print_of(scene(4))) <= 12
    data = (tmp_path / "a.heic").read_bytes()
    for cut in (20, len(data) // 2, len(data) - 50):
        with pytest.raises(BadImage):
            decode(data[:cut])


def test_a_heic_image_without_the_extra_is_told_the_way_out_and_not_remembered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = b"\0\0\0\x18ftypheic\0\0\0\0mif1heic" + bytes(100)
    (tmp_path / "a.heic").write_bytes(data)
    monkeypatch.setitem(sys.modules, "pillow_heif", None)
    thumbs._heif.cache_clear()
    for _ in range(2):
        bad: list[Bad] = []
        assert list(open_source(str(tmp_path / "a.heic"), format="image", on_bad=bad.append)) == []
        assert (
            bad[0].reason
            == "is a HEIC image, which needs pillow_heif; install it: pip install 'neardup[heic]'"
        )
    thumbs._heif.cache_clear()
    cache = images.Cache()
    key = images._key(File(str(tmp_path / "a.heic")))
    assert key is not None
    assert cache.get([key]) == {}
    cache.close()


def test_a_preview_holds_pixels_and_nothing_else() -> None:
    notes = Image.Exif()
    notes[0x010E] = "a secret place"
    image, colours = look(data_of(scene(1), "JPEG", exif=notes))
    assert (image.width, image.height) == colours.size == (320, 240)
    shown = address(colours)
    assert shown.startswith("data:image/jpeg;base64,")
    assert b"secret" not in base64.b64decode(shown.partition(",")[2])
