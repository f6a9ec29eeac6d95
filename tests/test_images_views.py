"""Fingerprints of images: bits of the whole image, of its parts, through its symmetries; and the classic hashes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import cv2
import imagehash
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

import neardup as nd
from neardup.features.hsv import hsv
from neardup.images.thumbs import SIDE
from neardup.images.views import EVERY, VIEWS, WHOLE, View, fingerprints_of, part

from .scenes import fingerprint_of, scene, thumb_of

BAD = Path(__file__).parent / "badinput"


@pytest.mark.parametrize("bits", [64, 256])
@pytest.mark.parametrize(
    ("name", "peer"),
    [("phash", imagehash.phash), ("dhash", imagehash.dhash), ("ahash", imagehash.average_hash)],
)
def test_classic_hashes_are_those_of_imagehash(
    name: str, peer: Callable[..., imagehash.ImageHash], bits: int
) -> None:
    shown = [scene(seed, (200 + 31 * seed, 170 + 7 * seed)) for seed in range(12)]
    shown += [Image.open(BAD / "image/good.jpg"), shown[0].convert("L"), shown[1].convert("P")]
    prints = nd.scheme(f"{name}:{bits}").fingerprints(shown)
    assert prints.hex() == [str(peer(image, hash_size={64: 8, 256: 16}[bits])) for image in shown]


def test_a_pdq_hash_is_read_as_a_fingerprint() -> None:
    text = "f8f8f0cee0f4a84f06370a22038f63f0b36e2ed596621e1d33e6b39c4e9c9b22"
    assert nd.format(nd.parse(text, bits=256), 256) == text


def test_hsv_is_that_of_opencv_for_every_colour() -> None:
    low = np.arange(1 << 16, dtype=np.uint32)
    for red in range(256):
        pixels = np.stack([low & 255, low >> 8, np.full_like(low, red)], axis=1).astype(np.uint8)[None]
        assert np.array_equal(hsv(pixels), cv2.cvtColor(pixels, cv2.COLOR_BGR2HSV))


@given(st.integers(0, 10_000), st.integers(0, 7))
@settings(max_examples=30, deadline=None)
def test_the_bits_through_a_symmetry_are_those_of_the_image_so_turned(seed: int, symmetry: int) -> None:
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


def test_threads_change_no_bit() -> None:
    thumbs = np.array([thumb_of(scene(seed)) for seed in range(9)])
    one, two = (fingerprints_of(thumbs, VIEWS, threads=threads)[0] for threads in (1, 4))
    assert np.array_equal(one, two)


@pytest.mark.parametrize("colour", ["white", "black", "#777777"])
def test_a_flat_image_has_no_fingerprint(colour: str) -> None:
    assert fingerprint_of(Image.new("RGB", (50, 40), colour)) is None
