"""Images made small: safe decoding of a file to a thumbnail of what is inside its borders.

A thumbnail is 128 x 128 grey bytes, whatever the shape of the image was, and behind them its colours:
16 x 16 bytes of blue against yellow, and as many of red against green. Plain borders, bars and frames are
cut off before, so that two images are not alike because both have a border; where the rest lies is kept
beside it. Decoding is bounded: too many pixels are an error, and large images are decoded one at a time.
"""

from __future__ import annotations

import base64
import io
import threading
import warnings
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from neardup.errors import MissingExtra, NeardupError, unusable

if TYPE_CHECKING:
    from PIL import Image

Thumbs = npt.NDArray[np.uint8]
Box = tuple[float, float, float, float]  # left, top, right, bottom, of the unit square
Lines = tuple[int, int, int, int]  # the same in lines of a thumbnail

WHOLE: Final = (0.0, 0.0, 1.0, 1.0)
SIDE: Final = 128
PIXELS: Final = SIDE * SIDE
# Colours are kept for this many places a side; a thumbnail is grey levels, then blue, then red.
PATCHES: Final = 16
THUMB: Final = PIXELS + 2 * PATCHES * PATCHES
# More pixels than this are not decoded: the limit at which Pillow speaks of a bomb.
PIXEL_LIMIT: Final = 178_956_970
# Images above this are decoded one at a time, so that threads do not multiply their memory.
LARGE: Final = 24_000_000
# JPEG files are decoded at the smallest scale that leaves at least this many pixels a side.
DRAFT: Final = 128
FORMATS: Final = ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF", "AVIF")

_HEIC: Final = (b"ftypheic", b"ftypheix", b"ftypmif1", b"ftyphevc")
_ORIENTATION: Final = 0x0112
_TIMES: Final = (0x9003, 0x9004)
_EXIF: Final = 0x8769
_opening = threading.Lock()
_large = threading.Lock()


class BadImage(NeardupError, ValueError):
    """A file that is not an image, is damaged, or is too large; the message is the reason."""


class NoDecoder(BadImage):
    """An image of a format whose decoder is not installed."""


@dataclass(frozen=True, slots=True)
class Thumbnail:
    """What is kept of an image: its size as it is shown, when it was taken, and its thumbnail."""

    width: int
    height: int
    taken: str | None
    reduced: bool
    """Whether a JPEG file was decoded at a smaller scale."""
    thumb: bytes
    """Grey levels and colours of what is inside its borders."""
    box: Box = WHOLE

    @property
    def pixels(self) -> int:
        return self.width * self.height

    @property
    def inner_pixels(self) -> int:
        return inner_pixels(self.width, self.height, self.box)


def inner_pixels(width: int, height: int, box: Box) -> int:
    """How many pixels an image surely has without its borders: without what is plain on two opposite sides.

    >>> inner_pixels(200, 100, (0.25, 0.0, 0.75, 0.9))
    9688
    """
    left, top, right, bottom = box
    across = right - left - 2 / SIDE if left > 0 and right < 1 else 1.0
    down = bottom - top - 2 / SIDE if top > 0 and bottom < 1 else 1.0
    return round(width * across * height * down)


def border_share(box: Box) -> int:
    """How much of an image its borders, bars and captions are, in 64ths.

    >>> border_share((0.0, 0.0, 1.0, 1.0)), border_share((0.125, 0.0, 0.875, 1.0))
    (0, 16)
    """
    left, top, right, bottom = box
    return int(64 * (1.0 - (right - left) * (bottom - top)) + 1e-6)


def decode(data: bytes, *, limit: int = PIXEL_LIMIT, reduce: bool = True) -> Thumbnail:
    """The image that the bytes of a file hold: its first frame, turned as EXIF says, on white.

    >>> decode(b"nothing")
    Traceback (most recent call last):
    neardup.images.thumbs.BadImage: is not an image of a known format
    """
    from PIL import Image, UnidentifiedImageError

    try:
        with _opening, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            image = Image.open(io.BytesIO(data), formats=formats())
        with image:
            found = decoded(image, limit, reduce)
            if image.format == "PNG":
                _check_png(data)
            return found
    except UnidentifiedImageError:
        if data[4:12] in _HEIC and (missing := _heif()):
            raise NoDecoder(str(missing)) from None
        raise BadImage("is not an image of a known format") from None
    except Image.DecompressionBombError:
        raise BadImage(f"has more than {limit:,} pixels, the limit") from None
    except BadImage:
        raise
    except MemoryError:
        raise BadImage("needs too much memory") from None
    # Decoders raise whatever their format's code happens to raise on damaged bytes.
    except Exception as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise BadImage(f"cannot be decoded: {reason[:200]}") from None


@lru_cache(maxsize=1)
def _heif() -> MissingExtra | None:
    """Teaches Pillow to read HEIF; where that cannot be, the reason."""
    try:
        import pillow_heif
    except ImportError as error:
        return unusable("is a HEIC image, which", "pillow_heif", "heic", error)
    pillow_heif.register_heif_opener()
    return None


def formats() -> list[str]:
    """The formats that are read, by Pillow's names; HEIF where pillow-heif is installed."""
    return list(FORMATS) if _heif() else [*FORMATS, "HEIF"]


def decoded(image: Image.Image, limit: int = PIXEL_LIMIT, reduce: bool = False) -> Thumbnail:
    """The same of an image that Pillow has opened."""
    width, height = image.size
    if width * height > limit:
        raise BadImage(f"has {width * height:,} pixels; the limit is {limit:,}")
    if width < 1 or height < 1:
        raise BadImage("has no pixels")
    taken, turn = _exif(image)
    # Brightness and colours as they are in the file: the same grey levels as without the colours.
    reduced = reduce and image.format == "JPEG" and image.draft("YCbCr", (DRAFT, DRAFT)) is not None
    reduced = reduced and image.size != (width, height)
    if image.size[0] * image.size[1] > LARGE:
        with _large:
            grey, colours, box = _inside(image)
    else:
        grey, colours, box = _inside(image)
    if turn >= 5:
        width, height = height, width
    parts = [_turned(part, turn).tobytes() for part in (grey, *colours)]
    return Thumbnail(width, height, taken, bool(reduced), b"".join(parts), _turned_box(box, turn))


def _check_png(data: bytes) -> None:
    """Raise if a chunk that makes pixels is not what its checksum says; the decoder does not look."""
    at = 8
    while at + 12 <= len(data):
        length = int.from_bytes(data[at : at + 4], "big")
        kind, end = data[at + 4 : at + 8], at + 8 + length
        if kind[:1].isupper() and zlib.crc32(data[at + 4 : end]) != int.from_bytes(
            data[end : end + 4], "big"
        ):
            raise BadImage(f"is damaged: the checksum of a chunk {kind.decode('ascii', 'replace')} is wrong")
        if kind == b"IEND":
            return
        at = end + 4
    raise BadImage("is truncated")


def look(data: bytes, side: int = 320) -> tuple[Thumbnail, Image.Image]:
    """The image and a small copy of it in colour, turned as EXIF says, with nothing but pixels in it."""
    from PIL import Image, ImageOps

    found = decode(data)  # says what is wrong with it
    with _large, Image.open(io.BytesIO(data), formats=formats()) as image:
        image.draft("RGB", (2 * side, 2 * side))
        turned = ImageOps.exif_transpose(image)
        if turned.mode in ("RGBA", "LA", "PA") or "transparency" in turned.info:
            turned = turned.convert("RGBA")
            turned = Image.alpha_composite(Image.new("RGBA", turned.size, "white"), turned)
        elif turned.mode in ("I", "F") or turned.mode.startswith("I;16"):
            turned = _eight_bits(turned)
        colours = turned.convert("RGB")
        colours.thumbnail((side, side))
    clean = Image.new("RGB", colours.size)
    clean.paste(colours)
    return found, clean


def address(image: Image.Image) -> str:
    """The pixels of an image as a data: address."""
    out = io.BytesIO()
    image.save(out, "JPEG", quality=80)
    return "data:image/jpeg;base64," + base64.b64encode(out.getvalue()).decode()


def _exif(image: Image.Image) -> tuple[str | None, int]:
    """When it was taken, and how it has to be turned; damaged notes count as none."""
    try:
        notes = image.getexif()
        turn = notes.get(_ORIENTATION, 1)
        inner = notes.get_ifd(_EXIF)
        taken = next((inner[key] for key in _TIMES if key in inner), notes.get(0x0132))
    except Exception:
        return None, 1
    when = taken.strip("\0 ") if isinstance(taken, str) else ""
    # 2024:05:01 12:00:00 -> 2024-05-01T12:00:00
    stamp = when[:10].replace(":", "-") + "T" + when[11:19] if len(when) >= 19 else None
    return stamp, turn if isinstance(turn, int) and 1 <= turn <= 8 else 1


def _turned(pixels: Thumbs, turn: int) -> Thumbs:
    if turn >= 5:
        pixels = pixels.T
    if turn in (2, 3, 6, 7):
        pixels = pixels[:, ::-1]
    if turn in (3, 4, 7, 8):
        pixels = pixels[::-1]
    return np.ascontiguousarray(pixels)


def _turned_box(box: Box, turn: int) -> Box:
    left, top, right, bottom = box
    if turn >= 5:
        left, top, right, bottom = top, left, bottom, right
    if turn in (2, 3, 6, 7):
        left, right = 1 - right, 1 - left
    if turn in (3, 4, 7, 8):
        top, bottom = 1 - bottom, 1 - top
    return left, top, right, bottom


# --- what is inside --------------------------------------------------------------------------------------

# Frames within frames that are cut off.
FRAMES: Final = 4
# How far grey levels of a border may be from each other, and the share of a line that must be so near.
PLAIN: Final = 10
NEARLY: Final = 0.97
# How far the last line of a border may be from the first.
DRIFT: Final = 4
# Lines next to a border that show some of it as well, and the least lines of an image inside of it.
BLURRED: Final = 2
LEAST: Final = SIDE // 5
# The lines before the inside, as it was found, in which its exact begin is looked for.
NEAR: Final = 6
# How many of the lines that are looked at count as the first, and as the last.
END: Final = SIDE // 4
# The most lines of a border that have writing on them.
WRITTEN: Final = SIDE // 5
# The most of the lines inside a border that has its colour: on one side, and on two opposite ones. What has
# more is the ground of an image.
GROUND: Final = (0.25, 0.5)
# The least lines of a bar on one side: half a block. Less of it lies in blocks that are at the rim anyway.
BAR: Final = SIDE // 16


def border(grey: Thumbs, within: bool = False) -> Lines | None:
    """Where the inside of a thumbnail begins and ends (left, top, right, bottom); None without a border.

    A border is plain, and what is inside of it begins along a straight line: the ground around a thing is no
    border. *within* another one it has two opposite sides: the stripes of a flag are not frames.

    >>> framed = np.zeros((128, 128), np.uint8)
    >>> framed[32:96, 16:112] = np.random.default_rng(1).integers(0, 255, (64, 96))
    >>> border(framed)
    (18, 34, 110, 94)
    """
    pixels = grey.astype(np.int16)
    sides = [lines.astype(np.int16) for lines in (pixels.T, pixels, pixels.T[::-1], pixels[::-1])]
    grounds = [float(np.median(lines[0])) for lines in sides]
    # A line belongs to the border if nearly all of it has the colour of the first.
    plain = [_alike(lines, ground) >= NEARLY for lines, ground in zip(sides, grounds, strict=True)]
    if any(lines.all() for lines in plain):
        return None
    edges = [int(np.argmin(lines)) for lines in plain]
    for side, lines in enumerate(sides):
        # A sky that grows brighter from line to line is none. The last line may show some of the inside.
        last = lines[max(0, edges[side] - (2 if edges[side] > BLURRED else 1))]
        edges[side] *= abs(float(np.median(last)) - grounds[side]) <= DRIFT
    for side, lines in enumerate(sides):
        # Writing on a frame of which the other sides are plain, as below an instant photo.
        rest = [one for other, one in enumerate(grounds) if other != side and edges[other]]
        if edges[side] and len(rest) == 3 and all(abs(one - grounds[side]) <= PLAIN for one in rest):
            edges[side] += _written(_between(lines, edges, side), edges[side], grounds[side])
    while True:
        kept = [
            edge * _ends(lines, edges, side, grounds)
            for side, (edge, lines) in enumerate(zip(edges, sides, strict=True))
        ]
        # Three sides make a frame, whatever is at the fourth. Otherwise a side without a border does not
        # shorten the lines of the others. These are looked at again: they may be the ground around a thing.
        settled = kept == edges or sum(map(bool, kept)) >= 3
        edges = kept
        if settled:
            break
    for side in range(4):
        # Where the inside has the colour of its frame on one side, that is as wide as the opposite one.
        width, alike = edges[(side + 2) % 4], abs(grounds[(side + 2) % 4] - grounds[side]) <= PLAIN
        if not edges[side] and width and alike and plain[side][:width].all():
            edges[side] = width
    alone = [side for side, edge in enumerate(edges) if edge]
    if len(alone) == 1 and not _bar(sides[alone[0]], edges[alone[0]], grounds[alone[0]]):
        return None
    found = [edge + BLURRED if edge else 0 for edge in edges]
    if within and not any(found[side] and found[side + 2] for side in (0, 1)):
        return None
    left, top, right, bottom = found[0], found[1], SIDE - found[2], SIDE - found[3]
    if right - left < LEAST or bottom - top < LEAST or not any(found):
        return None
    return left, top, right, bottom


def _ends(lines: npt.NDArray[np.int16], edges: list[int], side: int, grounds: list[float]) -> bool:
    """Whether the border of a side ends along a straight line: what has more of its colour is a ground."""
    begin, other = edges[side] + BLURRED, (side + 2) % 4
    both = edges[other] > 0 and abs(grounds[other] - grounds[side]) <= PLAIN
    following = _between(lines, edges, side)[begin : begin + 3]
    return following.size > 0 and float(_alike(following, grounds[side]).mean()) < GROUND[both]


def _bar(lines: npt.NDArray[np.int16], edge: int, ground: float) -> bool:
    """Whether the only plain side of an image is a bar: not too thin, and without a ground that goes on."""
    following = lines[edge + BLURRED : edge + BLURRED + 3]
    ends = following[:, :BLURRED], following[:, -BLURRED:]
    return edge >= BAR and not all(float(_alike(end, ground).mean()) > 0.5 for end in ends)


def _between(lines: npt.NDArray[np.int16], edges: list[int], side: int) -> npt.NDArray[np.int16]:
    """The lines of a side without what belongs to the borders of the two sides next to it."""
    return lines[:, edges[1 - side % 2] : SIDE - edges[3 - side % 2]]


def _alike(lines: npt.NDArray[np.int16], ground: float) -> npt.NDArray[np.float64]:
    """The share of each line that is near to *ground*."""
    return np.asarray((np.abs(lines - ground) <= PLAIN).mean(axis=1))


def _written(lines: npt.NDArray[np.int16], begin: int, ground: float) -> int:
    """How many more lines belong to a border that has writing on it; 0 if that cannot be told."""
    alike = _alike(lines[begin : begin + WRITTEN], ground) if lines.size else np.zeros(0)
    plain = np.flatnonzero(alike >= NEARLY)
    if not len(plain) or alike[: plain[-1] + 1].min() < 0.5:
        return 0
    return int(plain[-1]) + 1


def _inside(image: Image.Image) -> tuple[Thumbs, Thumbs, Box]:
    """Grey levels and colours of what is inside the borders, and where that is."""
    small = _shrinking(image)
    grey, box = small(WHOLE, SIDE)[0], WHOLE
    for frame in range(FRAMES):
        edges = border(grey, within=frame > 0)
        if edges is None:
            break
        box = _exact(small, box, edges)
        grey = small(box, SIDE)[0]
    return grey, small(box, PATCHES)[1], box


def _exact(small: Shrinking, box: Box, edges: Lines) -> Box:
    """The part of *box* inside a border, to a fraction of a line.

    A verdict must not hang on the frame: two images in one frame are cut as they would be without it.
    """
    across, down = box[2] - box[0], box[3] - box[1]

    def part(left: float, top: float, right: float, bottom: float) -> Box:
        return box[0] + left * across, box[1] + top * down, box[0] + right * across, box[1] + bottom * down

    found = [edge / SIDE for edge in edges]
    left, top, right, bottom = found
    places: list[float | None] = []
    for side in range(4):
        edge = edges[side] if side < 2 else SIDE - edges[side]
        begin, end = max(0, edge - NEAR) / SIDE, edge / SIDE
        around = (
            (begin, top, end, bottom),
            (left, begin, right, end),
            (1 - end, top, 1 - begin, bottom),
            (left, 1 - end, right, 1 - begin),
        )
        pixels = small(part(*around[side]), SIDE)[0].astype(np.int16) if edge else None
        share = None if pixels is None else _step((pixels.T, pixels, pixels.T[::-1], pixels[::-1])[side])
        places.append(None if share is None else begin + share * (end - begin))
    for side, place in enumerate(places):
        opposite = (side + 2) % 4
        if place is None and edges[side] == SIDE - edges[opposite]:
            place = places[opposite]  # there is no step where the inside has the colour of the frame
        if place is not None:
            found[side] = place if side < 2 else 1 - place
    return part(*found)


def _step(lines: npt.NDArray[np.int16]) -> float | None:
    """Where lines are no longer like the first ones, as a share of them; None if the last ones are, too."""
    ground = float(np.median(lines[:END]))
    if _alike(lines[-END:], ground).mean() >= GROUND[1]:
        return None
    apart = np.abs(lines - ground).mean(axis=1)
    # Half way to what the last ones are.
    return float(np.argmax(2 * apart >= apart[:END].mean() + apart[-END:].mean())) / len(lines)


Shrinking = Callable[[Box, int], tuple[Thumbs, Thumbs]]


def _shrinking(image: Image.Image) -> Shrinking:
    """A part of *image*, scaled to this many pixels a side: its grey levels, and its blue and red."""
    from PIL import Image

    def part(of: Image.Image, box: Box, side: int) -> Image.Image:
        (width, height), (left, top, right, bottom) = of.size, box
        place = (left * width, top * height, right * width, bottom * height)
        whole = round(place[0]), round(place[1]), round(place[2]), round(place[3])
        if box != WHOLE and whole[2] - whole[0] > 1 and whole[3] - whole[1] > 1:
            # Cut out, between two pixels: the filter would blend those at the rim with those beyond it.
            of, place = of.crop(whole), (0, 0, whole[2] - whole[0], whole[3] - whole[1])
        return of.resize((side, side), Image.Resampling.BILINEAR, place, reducing_gap=3.0)

    def shrunk(grey: Image.Image, colours: Image.Image | None) -> Shrinking:
        def small(box: Box, side: int) -> tuple[Thumbs, Thumbs]:
            if side == SIDE or colours is None:
                levels = np.asarray(part(grey, box, side))
                return levels, np.full((2, side, side), 128, dtype=np.uint8)
            # Fine first, so that edges do not count more than areas.
            bands = part(colours, box, 4 * side).convert("YCbCr").resize((side, side), Image.Resampling.BOX)
            levels = np.asarray(bands)
            return levels[..., 0], levels[..., 1:].transpose(2, 0, 1)

        return small

    if image.mode in ("I", "F") or image.mode.startswith("I;16"):
        return shrunk(_eight_bits(image), None)
    if image.mode in ("RGBA", "LA", "PA", "La", "RGBa") or "transparency" in image.info:
        layer = image.convert("RGBA").convert("RGBa")

        def laid(box: Box, side: int, shade: str) -> tuple[Thumbs, Thumbs]:
            upper = part(layer, box, side).convert("RGBA")
            shown = Image.alpha_composite(Image.new("RGBA", upper.size, shade), upper)
            bands = np.asarray(shown.convert("RGB").convert("YCbCr"))[..., 1:].transpose(2, 0, 1)
            return np.asarray(shown.convert("L")), bands

        # A white drawing on nothing is seen on black.
        ground = "white" if np.ptp(laid(WHOLE, SIDE, "white")[0]) >= 8 else "black"
        return lambda box, side: laid(box, side, ground)
    if image.mode == "YCbCr":
        return shrunk(image.getchannel("Y"), image)
    if image.mode == "L":
        return shrunk(image, None)
    colours = image.convert("RGB")
    return shrunk(colours.convert("L"), colours)


def _eight_bits(image: Image.Image) -> Image.Image:
    """An image of large or broken numbers as grey levels."""
    from PIL import Image

    values = np.asarray(image).astype(np.float64)
    values = np.where(np.isfinite(values), values, 0.0)
    low, high = (0.0, 65535.0) if values.min() >= 0 and values.max() <= 65535 else (None, None)
    if image.mode == "F" or low is None:
        low, high = float(values.min()), float(values.max())
    assert high is not None
    return Image.fromarray(np.rint((values - low) * (255.0 / max(high - low, 1e-9))).astype(np.uint8))
