"""Every instruction level gives the same fingerprints."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neardup import _native
from neardup.schemes import Scheme, scheme

LEVELS = ("scalar", "avx2", "avx512-base", "avx512")
SCHEMES = {
    "chars:1": scheme("chars:1"),
    "chars:4": scheme("chars:4"),
    "chars:4, 63 bits": scheme("chars:4", bits=63),
    "chars:4, 128 bits": scheme("chars:4", bits=128),
    "chars:3, 192 bits": scheme("chars:3", bits=192),
    "chars:13, 256 bits": scheme("chars:13", bits=256),
    "words:1": scheme("words:1"),
    "words:3": scheme("words:3", bits=256),
    "text": scheme("text"),
    "set": Scheme("set", features="chars:4", weights="set"),
    "untouched": Scheme("untouched", normalize="none", features="words:2", tie="one", empty="votes"),
    "lower": Scheme("lower", normalize="lower", features="chars:5", bits=100),
    "unicode-words": Scheme("unicode-words", normalize="unicode-words", features="words:1"),
    "ascii-words": Scheme("ascii-words", normalize="ascii-words", features="words:2", hash="fnv1a64"),
    "simhash": Scheme(
        "simhash", normalize="word-chars", hash="md5", digest_slice="last", bit_order="big", empty="feature"
    ),
    "md5, 128 bits": Scheme("md5", hash="md5", features="words:4", bits=128, bit_order="big"),
    "md5, 40 bits": Scheme("md5-40", hash="md5", features="chars:2", bits=40, digest_slice="last"),
    "md5, different": Scheme("md5-log", hash="md5", features="mixed:4", weights="log", bits=128),
    "xxh64": Scheme("xxh64", hash="xxh64", features="chars:3", bits=50, bit_order="big"),
}

PIECES = (
    "The quick brown fox ", "jumps over_the lazy dog. ", "Съешь же ещё этих МЯГКИХ ", "天地玄黄，宇宙洪荒。", "カタカナ と ひらがな ",
    "한국어 문장 ", "Ünïcödé ŁÓDŹ ", "ΣΊΣΥΦΟΣ ", "ab\u00adc e\u0301 ", "ﬁne ½ ™ ", "😀👍🏽 ", "हिन्दी में ", "שָׁלוֹם ", "\u200b\x00\x7f",
    "_ __ ", "x" * 70, "word" * 20 + " ", "İstanbul ı ", "Ｆｕｌｌ ｗｉｄｔｈ ",
)  # fmt: skip
texts = st.lists(
    st.one_of(
        st.text(max_size=200),
        st.lists(st.sampled_from(PIECES), max_size=40).map("".join),
        st.text(alphabet="abcDE _.,7", max_size=400),
    ),
    max_size=6,
)


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    level = _native.simd_level()
    yield
    _native.set_simd(level)


def prints_at(level: str, row: Scheme, documents: list[str]) -> tuple[np.ndarray, np.ndarray]:
    _native.set_simd(level)
    prints = row.fingerprints(pa.array(documents, pa.string()), threads=1)
    return prints.words, prints.valid


@pytest.mark.parametrize("name", SCHEMES)
@given(documents=texts)
@settings(max_examples=40, deadline=None)
def test_levels_agree(name: str, documents: list[str]) -> None:
    plain, valid = prints_at("scalar", SCHEMES[name], documents)
    for level in LEVELS[1:]:
        words, known = prints_at(level, SCHEMES[name], documents)
        assert np.array_equal(words, plain), level
        assert np.array_equal(known, valid), level


@given(documents=texts)
@settings(max_examples=40, deadline=None)
def test_fitted_tables_and_fingerprints_agree(documents: list[str]) -> None:
    corpus = documents + documents[:3] + list(PIECES)
    _native.set_simd("scalar")
    fitted = scheme("text").fit(corpus)
    plain, _ = prints_at("scalar", fitted, corpus)
    for level in LEVELS[1:]:
        _native.set_simd(level)
        again = scheme("text").fit(corpus)
        assert again.digest == fitted.digest
        words, _ = prints_at(level, again, corpus)
        assert np.array_equal(words, plain), level


def test_strings_and_arrow_agree_with_one_at_a_time() -> None:
    documents = ["".join(PIECES[at:] * at) for at in range(len(PIECES))]
    for row in SCHEMES.values():
        one = [row.fingerprint(document) for document in documents]
        for many in (documents, pa.array(documents)):
            prints = row.fingerprints(many, threads=2)
            assert [prints[at] for at in range(len(documents))] == one
