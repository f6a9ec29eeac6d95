"""Colours of an image: how many pixels fall into each of 16 x 4 x 4 ranges of hue, saturation and value.

Hue and saturation are the integers that OpenCV gives for 8-bit images: division by table, in 12 bits of
fixed point. That is what stored histograms were made with, so it is kept to the last unit.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from neardup.errors import InvalidValue

HUES: Final = 180
SHIFT: Final = 12
BINS: Final = (16, 4, 4)

_DIVISORS: Final = np.maximum(np.arange(256), 1)
_PER_VALUE: Final = np.rint((255 << SHIFT) / _DIVISORS).astype(np.int64) * (np.arange(256) > 0)
_PER_SPREAD: Final = np.rint((HUES << SHIFT) / (6.0 * _DIVISORS)).astype(np.int64) * (np.arange(256) > 0)


def hsv(image: npt.NDArray[np.uint8]) -> npt.NDArray[np.int64]:
    """Hue (0 to 179), saturation and value of blue, green, red pixels.

    >>> hsv(np.array([[[0, 0, 255], [255, 0, 0], [7, 7, 7]]], dtype=np.uint8)).tolist()
    [[[0, 255, 255], [120, 255, 255], [0, 0, 7]]]
    """
    blue, green, red = (image[..., channel].astype(np.int64) for channel in range(3))
    value = np.maximum(np.maximum(blue, green), red)
    spread = value - np.minimum(np.minimum(blue, green), red)
    half = 1 << (SHIFT - 1)
    saturation = (spread * _PER_VALUE[value] + half) >> SHIFT
    turned = np.where(
        value == red,
        green - blue,
        np.where(value == green, blue - red + 2 * spread, red - green + 4 * spread),
    )
    hue = (turned * _PER_SPREAD[spread] + half) >> SHIFT
    return np.stack([hue + HUES * (hue < 0), saturation, value], axis=-1)


def hsv_histogram(image: npt.NDArray[Any]) -> npt.NDArray[np.int32]:
    """How many pixels have each of 256 colours; grey images and ones with an alpha channel do as well."""
    pixels = np.asarray(image)
    if pixels.ndim == 3 and pixels.shape[2] == 1:
        pixels = pixels[..., 0]
    if pixels.dtype != np.uint8 or pixels.ndim not in (2, 3) or (pixels.ndim == 3 and pixels.shape[2] < 3):
        raise InvalidValue(f"an image must be 8-bit grey, BGR or BGRA, not {pixels.dtype} of {pixels.shape}")
    if pixels.ndim == 2:
        pixels = np.stack([pixels] * 3, axis=-1)
    hue, saturation, value = np.moveaxis(hsv(pixels), -1, 0)
    colour = hue * BINS[0] // HUES * 16 + saturation // 64 * 4 + value // 64
    return np.bincount(colour.ravel(), minlength=256).astype(np.int32)
