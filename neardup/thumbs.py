"""Pictures made small: safe decoding of a file to a grey thumbnail.

A thumbnail is 128 x 128 grey bytes whatever the shape of the picture was; its size is kept beside it.
Decoding is bounded: too many pixels are an error, and large pictures are decoded one at a time.
"""

from __future__ import annotations

import base64
import io
import threading
import warnings
import zlib
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from neardup.errors import MissingExtra, NeardupError, unusable

if TYPE_CHECKING:
    from PIL import Image

Thumbs = npt.NDArray[np.uint8]

SIDE: Final = 128
PIXELS: Final = SIDE * SIDE
# More pixels than this are not decoded: the limit at which Pillow speaks of a bomb.
PIXEL_LIMIT: Final = 178_956_970
# Pictures above this are decoded one at a time, so that threads do not multiply their memory.
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


class BadPicture(NeardupError, ValueError):
    """A file that is no picture, is damaged, or is too large; the message is the reason."""


class NoDecoder(BadPicture):
    """A picture of a format whose decoder is not installed."""


@dataclass(frozen=True, slots=True)
class Picture:
    """What is kept of a picture: its size as it is shown, when it was taken, and its thumbnail."""

    width: int
    height: int
    taken: str | None
    reduced: bool
    """Whether a JPEG file was decoded at a smaller scale."""
    thumb: bytes

    @property
    def pixels(self) -> int:
        return self.width * self.height


def decode(data: bytes, *, limit: int = PIXEL_LIMIT, reduce: bool = True) -> Picture:
    """The picture that the bytes of a file hold: its first frame, turned as EXIF says, on white.

    >>> decode(b"no picture")
    Traceback (most recent call last):
    neardup.thumbs.BadPicture: is no picture of a known format
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
        raise BadPicture("is no picture of a known format") from None
    except Image.DecompressionBombError:
        raise BadPicture(f"has more than {limit:,} pixels, the limit") from None
    except BadPicture:
        raise
    except MemoryError:
        raise BadPicture("needs too much memory") from None
    # Decoders raise whatever their format's code happens to raise on damaged bytes.
    except Exception as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise BadPicture(f"cannot be decoded: {reason[:200]}") from None


@lru_cache(maxsize=1)
def _heif() -> MissingExtra | None:
    """Teaches Pillow to read HEIF; where that cannot be, the reason."""
    try:
        import pillow_heif
    except ImportError as error:
        return unusable("is a HEIC picture, which", "pillow_heif", "heic", error)
    pillow_heif.register_heif_opener()
    return None


def formats() -> list[str]:
    """The formats that are read, by Pillow's names; HEIF where pillow-heif is installed."""
    return list(FORMATS) if _heif() else [*FORMATS, "HEIF"]


def decoded(image: Image.Image, limit: int = PIXEL_LIMIT, reduce: bool = False) -> Picture:
    """The same of an image that Pillow has opened."""
    width, height = image.size
    if width * height > limit:
        raise BadPicture(f"has {width * height:,} pixels; the limit is {limit:,}")
    if width < 1 or height < 1:
        raise BadPicture("has no pixels")
    taken, turn = _exif(image)
    reduced = reduce and image.format == "JPEG" and image.draft("L", (DRAFT, DRAFT)) is not None
    reduced = reduced and image.size != (width, height)
    if image.size[0] * image.size[1] > LARGE:
        with _large:
            thumb = _thumb(image)
    else:
        thumb = _thumb(image)
    pixels = np.asarray(thumb, dtype=np.uint8)
    if turn >= 5:
        width, height = height, width
    return Picture(width, height, taken, bool(reduced), _turned(pixels, turn).tobytes())


def _check_png(data: bytes) -> None:
    """Raise if a chunk that makes pixels is not what its checksum says; the decoder does not look."""
    at = 8
    while at + 12 <= len(data):
        length = int.from_bytes(data[at : at + 4], "big")
        kind, end = data[at + 4 : at + 8], at + 8 + length
        if kind[:1].isupper() and zlib.crc32(data[at + 4 : end]) != int.from_bytes(
            data[end : end + 4], "big"
        ):
            raise BadPicture(
                f"is damaged: the checksum of a chunk {kind.decode('ascii', 'replace')} is wrong"
            )
        if kind == b"IEND":
            return
        at = end + 4
    raise BadPicture("is truncated")


def look(data: bytes, side: int = 320) -> tuple[Picture, Image.Image]:
    """The picture and a small copy of it in colour, turned as EXIF says, with nothing but pixels in it."""
    from PIL import Image, ImageOps

    found = decode(data)  # says what is wrong with it
    with _large, Image.open(io.BytesIO(data), formats=formats()) as image:
        image.draft("RGB", (2 * side, 2 * side))
        turned = ImageOps.exif_transpose(image)
        if turned.mode in ("RGBA", "LA", "PA") or "transparency" in turned.info:
            turned = turned.convert("RGBA")
            turned = Image.alpha_composite(Image.new("RGBA", turned.size, "white"), turned)
        elif turned.mode in ("I", "F") or turned.mode.startswith("I;16"):
            grey = np.frombuffer(found.thumb, dtype=np.uint8).reshape(SIDE, SIDE)
            turned = Image.fromarray(grey).resize((side, side))
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


def _thumb(image: Image.Image) -> Image.Image:
    """Grey, small and square."""
    from PIL import Image

    if image.mode in ("I", "F") or image.mode.startswith("I;16"):
        values = np.asarray(image).astype(np.float64)
        values = np.where(np.isfinite(values), values, 0.0)
        low, high = (0.0, 65535.0) if values.min() >= 0 and values.max() <= 65535 else (None, None)
        if image.mode == "F" or low is None:
            low, high = float(values.min()), float(values.max())
        assert high is not None
        grey = np.rint((values - low) * (255.0 / max(high - low, 1e-9))).astype(np.uint8)
        return _small(Image.fromarray(grey))
    if image.mode in ("RGBA", "LA", "PA", "La", "RGBa") or "transparency" in image.info:
        full = image.convert("RGBA")
        small = _small(full.convert("RGBa")).convert("RGBA")
        on = [Image.new("RGBA", small.size, shade) for shade in ("white", "black")]
        light, dark = (Image.alpha_composite(ground, small).convert("L") for ground in on)
        # A white drawing on nothing is seen on black.
        return light if np.ptp(np.asarray(light)) >= 8 else dark
    return _small(image if image.mode == "L" else image.convert("RGB").convert("L"))


def _small(image: Image.Image) -> Image.Image:
    from PIL import Image

    return image.resize((SIDE, SIDE), Image.Resampling.BILINEAR, reducing_gap=3.0)
