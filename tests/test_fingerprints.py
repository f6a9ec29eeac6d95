"""Fingerprints as values, their text forms, distance and similarity."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import neardup as nd
from neardup.errors import InvalidType, InvalidValue, SchemeMismatch
from neardup.fingerprints import FORMS, check_comparable

widths = st.sampled_from([8, 12, 64, 100, 128, 192, 256])


@given(st.data())
def test_every_text_form_is_read_back(data: st.DataObject) -> None:
    bits = data.draw(widths)
    value = data.draw(st.integers(0, 2**bits - 1))
    for form in FORMS:
        assert nd.parse(nd.format(value, bits, form), bits, form) == value


@given(st.integers(2**60, 2**64 - 1))
def test_the_form_is_told_from_the_text(value: int) -> None:
    for form in FORMS:
        assert nd.parse(nd.format(value, 64, form)) == value


@given(st.data())
def test_fingerprints_hold_what_was_put_in(data: st.DataObject) -> None:
    bits = data.draw(widths)
    values = data.draw(st.lists(st.one_of(st.none(), st.integers(0, 2**bits - 1)), max_size=9))
    prints = nd.Fingerprints.of(values, bits)
    assert list(prints) == values
    assert nd.Fingerprints.from_arrow(prints.to_arrow(), bits) == prints
    assert nd.Fingerprints.from_arrow(
        pa.chunked_array([prints.to_arrow()]).slice(1), bits
    ) == nd.Fingerprints.of(values[1:], bits)


@pytest.mark.parametrize("text", ["", "xyz", "12 34", "0x", "-5", "1_000", "99999999999999999999999", "٣"])
def test_what_is_no_fingerprint_is_refused(text: str) -> None:
    with pytest.raises(InvalidValue, match="fingerprint"):
        nd.parse(text)


def test_signed_or_object_arrays_are_refused() -> None:
    for words in (np.zeros(3, dtype=np.int64), np.array([1, None]), np.zeros(3)):
        with pytest.raises(InvalidType, match="uint64"):
            nd.Fingerprints(words)
    with pytest.raises(InvalidValue, match="shape"):
        nd.Fingerprints(np.zeros((2, 2, 2), dtype=np.uint64))
    with pytest.raises(InvalidValue, match="bits above"):
        nd.Fingerprints(np.full(1, 256, dtype=np.uint64), bits=8)


def test_two_schemes_are_not_compared() -> None:
    chars, words = nd.scheme("chars:4").fingerprints(["a"]), nd.scheme("words:3").fingerprints(["a"])
    with pytest.raises(SchemeMismatch, match="fingerprint both with the same scheme"):
        check_comparable(chars, words)
    with pytest.raises(SchemeMismatch, match="64-bit fingerprints with 128-bit"):
        check_comparable(chars, nd.scheme("text").fingerprints(["a"]))


def test_similarity_is_the_cosine_that_a_distance_estimates() -> None:
    assert nd.similarity(0, 64) == 1.0
    assert nd.similarity(3, 64) == pytest.approx(0.98918, abs=1e-5)
    assert nd.similarity(64, 64) == pytest.approx(-1.0)
    with pytest.raises(InvalidValue, match="from 0 to 64, not 65"):
        nd.similarity(65, 64)


@given(st.integers(0, 2**128), st.integers(0, 2**128))
def test_distance_counts_differing_bits(left: int, right: int) -> None:
    assert nd.distance(left, right) == bin(left ^ right).count("1")
