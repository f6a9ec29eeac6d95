"""Colours of two images that show the same: the same ones, or clearly others.

A tint, a filter, another white balance, more or less saturation, grey and sepia do not count as other
colours: they move all colours alike, or take them away. Turned hues do, and so does a thing that is red in
one image and blue in the other. Only places that are clearly coloured in both images are looked at.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from neardup.images.thumbs import PATCHES, PIXELS, SIDE, THUMB, Thumbs

Complex = npt.NDArray[np.complex128]
Numbers = npt.NDArray[np.float64]

# From here on a place is clearly coloured: the distance from grey, of at most about 128.
COLOURED: Final = 14.0
# The strongest tint that is believed, and how near to grey a place is that shows it.
TINT: Final = 50.0
NEUTRAL: Final = 8.0
# A hue is another one from this angle on; and the least share of all places, and of the coloured ones.
TURNED: Final = np.pi / 3
PLACES: Final = 0.05
SHARE: Final = 0.4
# Colours that are turned as a whole: least angle, correlation and deviation.
ANGLE: Final = np.deg2rad(70)
CORRELATION: Final = 0.6
DEVIATION: Final = 6.0
# Colours follow from brightness if they are off by less than this, or by this part of their deviation.
TONED: Final = (3.0, 0.15)
# Least number of places that both images show.
LEAST: Final = 32


def other_colours(one: Thumbs, other: Thumbs, map: Numbers) -> bool:
    """Whether two thumbnails, the first laid upon the second by *map*, have clearly other colours.

    >>> levels = np.random.default_rng(1).integers(0, 255, PIXELS).astype(np.uint8)
    >>> red, blue = (np.concatenate([levels, np.repeat([b, r], 256).astype(np.uint8)])
    ...              for b, r in ((100, 220), (200, 90)))
    >>> same = np.array([1.0, 0, 0, 0, 1, 0])
    >>> other_colours(red, blue, same), other_colours(red, red, same)
    (True, False)
    """
    if min(len(one), len(other)) < THUMB:
        return False  # grey levels only
    light, first = _patches(one)
    behind, second = _patches(other)
    inside, behind, second = _seen(behind, second, map)
    light, first = light[inside], first[inside]
    if len(first) < LEAST or _toned_apart(light, first, behind, second):
        return False
    return _hues_differ(light, first, second) or _turned_as_a_whole(first, second)


def _patches(thumb: Thumbs) -> tuple[Numbers, Complex]:
    """Brightness and colour of each place; a colour is a complex number, 0 for grey."""
    size = SIDE // PATCHES
    light = thumb[:PIXELS].reshape(PATCHES, size, PATCHES, size).mean(axis=(1, 3)).ravel()
    blue, red = thumb[PIXELS:THUMB].astype(np.float64).reshape(2, -1) - 128.0
    return light, blue + 1j * red


def _seen(light: Numbers, colour: Complex, map: Numbers) -> tuple[npt.NDArray[np.bool_], Numbers, Complex]:
    """Which places of the first image lie in the second one, and what that shows there."""
    middle = (np.arange(PATCHES) + 0.5) / PATCHES
    across, down = np.tile(middle, PATCHES), np.repeat(middle, PATCHES)
    x = map[0] * across + map[1] * down + map[2]
    y = map[3] * across + map[4] * down + map[5]
    inside = (x >= 0) & (x <= 1) & (y >= 0) & (y <= 1)
    x, y = (np.clip(place[inside] * PATCHES - 0.5, 0, PATCHES - 1) for place in (x, y))
    column, row = (np.minimum(place.astype(np.int64), PATCHES - 2) for place in (x, y))
    fx, fy = x - column, y - row
    at = row * PATCHES + column

    def between(values: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
        above = values[at] * (1 - fx) + values[at + 1] * fx
        below = values[at + PATCHES] * (1 - fx) + values[at + PATCHES + 1] * fx
        found: npt.NDArray[np.generic] = above * (1 - fy) + below * fy
        return found

    return inside, between(light), between(colour)  # type: ignore[return-value]


def _toned_apart(light: Numbers, first: Complex, behind: Numbers, second: Complex) -> bool:
    """Whether one of the two was toned: its colours follow from brightness, those of the other do not."""
    rest = [_untold(light, first), _untold(behind, second)]
    limit = [max(TONED[0], TONED[1] * float(np.std(colour))) for colour in (first, second)]
    toned = [one < most for one, most in zip(rest, limit, strict=True)]
    return toned[0] != toned[1] and max(rest) > 2 * min(rest)


def _untold(light: Numbers, colour: Complex) -> float:
    """How far colours are off from what brightness, in eight ranges, lets expect."""
    rest = 0.0
    for some in np.array_split(np.argsort(light, kind="stable"), 8):
        across, apart = light[some] - light[some].mean(), colour[some] - colour[some].mean()
        slope = (across * apart).sum() / ((across * across).sum() + 1.0)
        rest += float((np.abs(apart - slope * across) ** 2).sum())
    return float(np.sqrt(rest / len(light)))


def _hues_differ(light: Numbers, first: Complex, second: Complex) -> bool:
    """Whether enough places have another hue, whatever tint is taken off."""
    change = second - first
    tints: list[Complex] = [np.zeros(1, dtype=np.complex128), _median(change)]
    near = np.abs(first) < NEUTRAL
    if near.sum() >= 8:
        tints.append(_median(change[near]))
    # As a filter before the lens: stronger where it is bright.
    tints.append(_median(change / np.maximum(light, 16.0)) * light)
    for tint in tints:
        strength = np.abs(tint)
        plain = second - tint * np.minimum(1.0, TINT / np.maximum(strength, 1e-9))
        coloured = (np.abs(first) >= COLOURED) & (np.abs(plain) >= COLOURED)
        turned = coloured & (np.abs(np.angle(plain * np.conj(first))) > TURNED)
        count = int(turned.sum())
        if count < PLACES * len(first) or count < SHARE * int(coloured.sum()):
            return False
    return True


def _median(values: Complex) -> Complex:
    return np.array([np.median(values.real) + 1j * np.median(values.imag)])


def _turned_as_a_whole(first: Complex, second: Complex) -> bool:
    """Whether where colours differ within one image, they differ in another direction in the other."""
    one, two = first - first.mean(), second - second.mean()
    both = complex((np.conj(one) * two).sum())
    norms = float(np.linalg.norm(one) * np.linalg.norm(two))
    if min(np.linalg.norm(one), np.linalg.norm(two)) < DEVIATION * len(one) ** 0.5:
        return False
    return abs(both) >= CORRELATION * norms and abs(float(np.angle(both))) > ANGLE
