"""Compressed output: one whole gzip member, the same bytes however it is written and by how many threads."""

from __future__ import annotations

import gzip
import io
import random
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neardup.sinks import packing
from neardup.sinks.packing import Gzip, packed

WORDS = [f"{number:x} " for number in range(1000)]
TEXT = "".join(random.Random(1).choices(WORDS, k=900_000)).encode()
SIZES = [0, 1, Gzip.BLOCK - 1, Gzip.BLOCK, Gzip.BLOCK + 1, 3 * Gzip.BLOCK + 5]


def written(data: bytes, step: int) -> bytes:
    out = io.BytesIO()
    with packed(out, ".gz") as file:
        for at in range(0, len(data), step):
            file.write(data[at : at + step])
    return out.getvalue()


@pytest.mark.parametrize("size", SIZES)
def test_gzip_is_one_member_that_comes_back(size: int) -> None:
    reader = zlib.decompressobj(zlib.MAX_WBITS | 16)
    assert reader.decompress(written(TEXT[:size], 1 << 22)) == TEXT[:size]
    assert reader.eof
    assert not reader.unused_data


@pytest.mark.parametrize("size", SIZES)
def test_how_it_is_written_changes_no_byte(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = written(TEXT[:size], 1 << 22)
    monkeypatch.setattr(packing, "cores", lambda: 1)
    assert written(TEXT[:size], 100_003) == whole


def test_blocks_cost_little() -> None:
    assert len(written(TEXT, 1 << 22)) < 1.01 * len(gzip.compress(TEXT, 6))


@settings(max_examples=50, deadline=None)
@given(st.lists(st.binary(max_size=300)), st.integers(1, 200))
def test_small_blocks_come_back_too(pieces: list[bytes], block: int) -> None:
    out = io.BytesIO()
    file = Gzip(out)
    file.BLOCK = block  # type: ignore[misc]
    for piece in pieces:
        file.write(piece)
    file.close()
    assert gzip.decompress(out.getvalue()) == b"".join(pieces)


def test_a_failure_stops_the_threads() -> None:
    out = io.BytesIO()
    with pytest.raises(ZeroDivisionError), packed(out, ".gz") as file:
        file.write(TEXT[: 1 // (file.write(TEXT) - len(TEXT))])
    with pytest.raises(EOFError):
        gzip.decompress(out.getvalue())
