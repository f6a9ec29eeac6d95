"""Blocks: the runs of bits that an index looks up."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.blocks import block_keys, block_masks, block_offsets


@given(st.integers(1, 300), st.integers(1, 20))
def test_blocks_cover_every_bit_once(bits: int, count: int) -> None:
    offsets = block_offsets(bits, count)
    masks = block_masks(bits, offsets)
    assert sum(mask << offset for mask, offset in zip(masks, offsets, strict=True)) == (1 << bits) - 1


@given(st.integers(0, 2**192 - 1), st.integers(0, 191), st.integers(0, 192))
def test_a_key_is_the_bits_of_its_block(value: int, offset: int, width: int) -> None:
    width = min(width, 192 - offset)
    words = np.array([[value >> 64 * at & 2**64 - 1 for at in range(3)]], dtype=np.uint64)
    assert block_keys(words, offset, width).tolist() == [value >> offset & (1 << width) - 1]


@pytest.mark.parametrize(("width", "kind"), [(32, np.uint32), (33, np.uint64), (64, np.uint64), (65, object)])
def test_a_key_is_no_wider_than_it_must_be(width: int, kind: type) -> None:
    assert block_keys(np.zeros((1, 2), dtype=np.uint64), 0, width).dtype == kind
