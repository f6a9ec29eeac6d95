"""Damage to a file, as disks and copies do it: a bit, a byte, a block, an end that is gone or too long."""

from __future__ import annotations

import os
import random
from pathlib import Path

BLOCK = 4096
KINDS = ("bit", "bit", "bit", "bit", "byte", "block of zeros", "cut", "swapped blocks", "longer")


def damage(path: str | os.PathLike[str], rng: random.Random) -> str:
    """Damage the file *path* in one place; what was done, in words."""
    data = bytearray(Path(path).read_bytes())
    size = len(data)
    kind = rng.choice(KINDS)
    if kind == "swapped blocks" and size < 2 * BLOCK:
        kind = "cut"
    if kind == "bit":
        place = rng.randrange(size * 8)
        data[place // 8] ^= 1 << place % 8
    elif kind == "byte":
        place = rng.randrange(size)
        data[place] = rng.choice([value for value in (0, 127, 128, 255) if value != data[place]])
    elif kind == "block of zeros":
        place = rng.randrange(0, size, BLOCK)
        data[place : place + BLOCK] = bytes(len(data[place : place + BLOCK]))
    elif kind == "cut":
        place = rng.randrange(size)
        del data[place:]
    elif kind == "longer":
        place = size
        data += rng.randbytes(rng.choice([1, 7, BLOCK]))
    else:
        place, other = (BLOCK * block for block in rng.sample(range(size // BLOCK), 2))
        one, two = data[place : place + BLOCK], data[other : other + BLOCK]
        data[place : place + BLOCK], data[other : other + BLOCK] = two, one
    Path(path).write_bytes(data)
    return f"{kind} at {place:,} of {size:,}"
