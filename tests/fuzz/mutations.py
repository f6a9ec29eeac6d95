"""Damaged copies of sound inputs: bits, bytes, numbers, pieces moved, cut, doubled and exchanged."""

from __future__ import annotations

import random
from collections.abc import Sequence

MOST = 1 << 16  # bytes of an input
_NUMBERS = (0, 1, 2, 7, 8, 63, 64, 127, 128, 255, 256, 32767, 32768, 65535, 2**31 - 1, 2**31, 2**32 - 1)
_WIDE = (*_NUMBERS, 2**32, 2**40, 2**53, 2**63 - 1, 2**63, 2**64 - 1)


def mutated(data: bytes, rng: random.Random, others: Sequence[bytes], words: Sequence[bytes]) -> bytes:
    """*data* with one to eight changes; *others* lend pieces, *words* are put in as they are."""
    found = bytearray(data)
    for _ in range(1 << rng.randrange(4)):
        _change(found, rng, others, words)
        if len(found) > MOST:
            del found[MOST:]
    return bytes(found)


def _change(data: bytearray, rng: random.Random, others: Sequence[bytes], words: Sequence[bytes]) -> None:
    at = rng.randrange(len(data) + 1)
    end = min(len(data), at + 1 + int(rng.expovariate(0.1)))
    kind = rng.randrange(11)
    if kind == 0 and at < len(data):
        data[at] ^= 1 << rng.randrange(8)
    elif kind == 1 and at < len(data):
        data[at] = rng.randrange(256)
    elif kind == 2:
        size = rng.choice((1, 2, 4, 8))
        number = rng.choice(_WIDE) & ((1 << 8 * size) - 1)
        data[at : at + size] = number.to_bytes(size, rng.choice(("little", "big")))
    elif kind == 3:
        del data[at:end]
    elif kind == 4:
        data[at:at] = data[at:end] * rng.choice((1, 1, 2, 40))
    elif kind == 5 and others:
        other = rng.choice(others)
        begin = rng.randrange(len(other) + 1)
        piece = other[begin : begin + 1 + int(rng.expovariate(0.02))]
        data[at : at + rng.choice((0, len(piece)))] = piece
    elif kind == 6 and words:
        word = rng.choice(words)
        data[at : at + rng.choice((0, len(word)))] = word
    elif kind == 7:
        data[at:at] = rng.randbytes(rng.randrange(1, 9))
    elif kind == 8:
        del data[at:]
    elif kind == 9 and end > at:
        piece = bytes(data[at:end])
        del data[at:end]
        back = rng.randrange(len(data) + 1)
        data[back:back] = piece
    elif kind == 10 and at < len(data):
        data[at] = (data[at] + rng.choice((-1, 1))) % 256
