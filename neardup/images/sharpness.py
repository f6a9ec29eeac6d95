"""How sharp images are, measured on all of them at one scale, in steps of a sixteenth.

It says which of two copies of one image shows finer detail, whatever their sizes are: a copy that was made
small and then large again is not sharper. Of images that show different things it says nothing.
"""

from __future__ import annotations

import io
import warnings
from typing import Final

import numpy as np
import numpy.typing as npt

from neardup.images.thumbs import WHOLE, Box, formats

# Pixels a side at which all images are measured; and blocks a side, of which the sharper quarter counts.
SCALE: Final = 384
BLOCKS: Final = 16
# Variance that is taken for noise, and by how much slopes change where levels are merely rounded.
NOISE: Final = 4
GRAIN: Final = 4


def sharpness(data: bytes, box: Box = WHOLE) -> int | None:
    """The sharpness of what is inside *box* of an image file, turned as EXIF says; None if it cannot be read.

    >>> from PIL import Image
    >>> noise = Image.effect_noise((400, 300), 60)
    >>> def saved(image: Image.Image) -> bytes:
    ...     out = io.BytesIO()
    ...     image.save(out, "PNG")
    ...     return out.getvalue()
    >>> fine, coarse = (sharpness(saved(one)) for one in (noise, noise.resize((200, 150)).resize((800, 600))))
    >>> fine > coarse
    True
    """
    from PIL import Image, ImageOps

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with Image.open(io.BytesIO(data), formats=formats()) as image:
                image.draft("L", (SCALE, SCALE))
                upright = ImageOps.exif_transpose(image)
                grey = upright.convert("L")
    # Decoders raise whatever their format's code happens to raise on damaged bytes.
    except Exception:
        return None
    (width, height), (left, top, right, bottom) = grey.size, box
    inside = grey.crop(
        (round(left * width), round(top * height), round(right * width), round(bottom * height))
    )
    small = inside.resize((SCALE, SCALE), Image.Resampling.BILINEAR, reducing_gap=3.0)
    return measured(np.asarray(small))


def measured(levels: npt.NDArray[np.uint8]) -> int:
    """The sharpness of grey levels: how fast slopes change in the sharper quarter of all blocks, by contrast.

    >>> measured(np.zeros((SCALE, SCALE), dtype=np.uint8))
    0
    """
    grey = levels.astype(np.int64)
    middle = grey[1:-1, 1:-1]
    bent = 4 * middle - grey[:-2, 1:-1] - grey[2:, 1:-1] - grey[1:-1, :-2] - grey[1:-1, 2:]
    energy = np.zeros_like(grey)
    energy[1:-1, 1:-1] = np.maximum(np.abs(bent) - GRAIN, 0) ** 2
    side = SCALE // BLOCKS
    blocks = np.sort(energy.reshape(BLOCKS, side, BLOCKS, side).sum(axis=(1, 3)), axis=None)
    count = grey.size
    spread = (count * int((grey * grey).sum()) - int(grey.sum()) ** 2) // count + NOISE * count
    return steps(1_000_000 * int(blocks[-len(blocks) // 4]) * BLOCKS * BLOCKS // spread)


def steps(value: int) -> int:
    """A number in steps of a sixteenth of a doubling or less: nearly equal ones are equal.

    >>> [steps(value) for value in (0, 1, 2, 1000, 1020, 1032, 2000)]
    [0, 16, 32, 175, 175, 176, 191]
    """
    top = value.bit_length()
    if not top:
        return 0
    return 16 * top + (((value << 4) >> (top - 1)) & 15)
