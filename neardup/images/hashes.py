"""The hashes that a scheme may take of images: our own, and those of the PyPI package imagehash.

Everything after decoding (`images.thumbs`) is integers. A flat image has none.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from neardup.errors import InvalidType, InvalidValue, shown
from neardup.images.thumbs import Thumbnail, decode, decoded, formats
from neardup.images.views import WHOLE, Matrix, fingerprints_of

if TYPE_CHECKING:
    from PIL import Image

HASHES: Final = {"dct-signs": (256,), "phash": (64, 256), "dhash": (64, 256), "ahash": (64, 256)}


def _cosines(size: int) -> Matrix:
    at = np.arange(size)
    return np.asarray(2 * np.cos(np.pi * at[:, None] * (2 * at[None, :] + 1) / (2 * size)))


def classic_bits(image: Image.Image, kind: str, bits: int) -> npt.NDArray[np.bool_]:
    """The bits of `phash`, `dhash` or `ahash`, highest first, as imagehash computes them."""
    from PIL import Image

    side = {64: 8, 256: 16}[bits]
    grey = image.convert("L")
    size = {"phash": (side * 4, side * 4), "dhash": (side + 1, side), "ahash": (side, side)}[kind]
    pixels = np.asarray(grey.resize(size, Image.Resampling.LANCZOS))
    if kind == "dhash":
        return np.asarray(pixels[:, 1:] > pixels[:, :-1]).ravel()
    if kind == "ahash":
        return np.asarray(pixels > pixels.mean()).ravel()
    cosines = _cosines(side * 4)[:side]
    low = cosines @ pixels.astype(np.float64) @ cosines.T
    return np.asarray(low > np.median(low)).ravel()


def fingerprint_images(
    images: Any, hash: str, bits: int, threads: int | None = None
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.bool_]]:
    """Words and validity of images: paths, bytes of files, Pillow images, or None for no image."""
    if isinstance(images, (str, bytes, os.PathLike)) or not isinstance(images, Iterable):
        raise InvalidType(f"images must be a list of paths or images, not {shown(images)}")
    given = list(images)
    words = np.zeros((len(given), bits // 64), dtype=np.uint64)
    valid = np.zeros(len(given), dtype=bool)
    for row, image in enumerate(given):
        if image is None:
            continue
        if hash == "dct-signs":
            thumb = np.frombuffer(_thumbnail(image).thumb, dtype=np.uint8)[None]
            words[row : row + 1], valid[row : row + 1] = fingerprints_of(thumb, [WHOLE], threads=threads)
            continue
        found = classic_bits(_image(image), hash, bits)
        packed = np.packbits(found[::-1], bitorder="little")
        words[row], valid[row] = packed.view("<u8"), True
    return words, valid


def _thumbnail(given: Any) -> Thumbnail:
    if isinstance(given, (str, os.PathLike)):
        with open(given, "rb") as file:
            return decode(file.read())
    if isinstance(given, bytes):
        return decode(given)
    if isinstance(given, Thumbnail):
        return given
    return decoded(_image(given))


def _image(given: Any) -> Image.Image:
    from PIL import Image

    found: Image.Image
    if isinstance(given, Image.Image):
        return given
    if isinstance(given, bytes):
        found = Image.open(io.BytesIO(given), formats=formats())
        return found
    if isinstance(given, (str, os.PathLike)):
        found = Image.open(given, formats=formats())
        found.load()
        return found
    raise InvalidType(f"an image is a path, bytes or a Pillow image, not {shown(given)}")


def check_hash(hash: str, bits: int) -> None:
    """Raise unless there is such a hash of images."""
    if hash not in HASHES:
        raise InvalidValue(f"hash {shown(hash)} is not for images; known: {', '.join(HASHES)}")
    if bits not in HASHES[hash]:
        raise InvalidValue(f"hash {hash!r} has {' or '.join(map(str, HASHES[hash]))} bits, not {bits}")
