"""The core computes what neardup.naive says in plain Python."""

from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import neardup as nd
from neardup import naive
from neardup.errors import InvalidValue
from neardup.schemes.computing import banded

from .conftest import texts

WIDTHS = (64, 128, 256)
FEATURES = ("chars:1", "chars:3", "chars:4", "chars:9", "words:1", "words:3", "mixed:4", "mixed:2")


@pytest.mark.parametrize("name", sorted(naive.NORMALIZATIONS))
@given(text=texts)
def test_normalisation_is_the_naive_one(name: str, text: str) -> None:
    scheme = nd.Scheme("test", normalize=name)
    assert scheme.normalized(text) == naive.NORMALIZATIONS[name](text)


@given(text=texts, features=st.sampled_from(FEATURES))
def test_features_are_the_naive_ones(text: str, features: str) -> None:
    scheme = nd.Scheme("test", features=features)
    expected = naive.features_of(naive.normalize_text(text), features)
    if not naive.normalize_text(text).strip("_ "):
        expected = []
    assert [(kind, part) for kind, part, _ in scheme.feature_list(text)] == expected


@given(
    text=texts,
    features=st.sampled_from(FEATURES),
    weights=st.sampled_from(("count", "set", "log")),
    bits=st.sampled_from(WIDTHS),
)
def test_fingerprints_are_the_naive_ones(text: str, features: str, weights: str, bits: int) -> None:
    scheme = nd.Scheme("test", features=features, weights=weights, bits=bits)
    expected = naive.fingerprint(text, features=features, weights=weights, bits=bits)
    assert scheme.fingerprint(text) == expected


@given(
    corpus=st.lists(texts, max_size=12),
    others=st.lists(texts, max_size=3),
    weights=st.sampled_from(("log-df", "log-df-open")),
)
def test_a_fitted_scheme_weighs_as_the_naive_one(corpus: list[str], others: list[str], weights: str) -> None:
    scheme = nd.scheme("text", weights=weights).fit(corpus)
    seen = Counter(
        feature
        for text in corpus
        if naive.normalize_text(text).strip("_ ")
        for feature in set(naive.mixed(naive.normalize_text(text), 4))
    )
    expected = [
        naive.fingerprint(text, weights=weights, frequencies=seen, documents=len(corpus))
        for text in [*corpus, *others]
    ]
    assert list(scheme.fingerprints([*corpus, *others])) == expected


@given(corpus=st.lists(texts, max_size=12), weights=st.sampled_from(("set", "log", "log-df")))
def test_bands_are_the_naive_ones(corpus: list[str], weights: str) -> None:
    scheme = nd.scheme("text", weights=weights)
    seen: Counter[tuple[int, str]] = Counter()
    if weights == "log-df":
        scheme = scheme.fit(corpus)
        normal = [naive.normalize_text(text) for text in corpus]
        seen.update(part for text in normal if text.strip("_ ") for part in set(naive.mixed(text, 4)))
    prints, bands = banded(scheme, pa.array(corpus, pa.string()))
    assert prints == scheme.fingerprints(corpus)
    known = seen if weights == "log-df" else None
    assert bands.tolist() == [
        naive.bands(text, weights=weights, frequencies=known, documents=len(corpus)) for text in corpus
    ]


def test_only_features_that_count_once_have_bands() -> None:
    chars = nd.scheme("chars:4")
    assert not chars.has_bands
    with pytest.raises(nd.errors.InvalidValue, match="count once"):
        banded(chars, pa.array(["a text"]))
    assert not nd.scheme("jobs").has_bands
    assert nd.scheme("text").has_bands


def test_a_common_feature_weighs_less_as_the_collection_grows() -> None:
    corpus = ["shared words " + " ".join(f"w{n}x{k}" for k in range(3)) for n in range(200)]
    seen = Counter(feature for text in corpus for feature in set(naive.mixed(naive.normalize_text(text), 4)))
    scheme = nd.scheme("text").fit(corpus)
    for text in corpus[::50]:
        expected = naive.fingerprint(text, weights="log-df", frequencies=seen, documents=200)
        assert scheme.fingerprint(text) == expected


@given(corpus=st.lists(st.one_of(texts, st.none()), max_size=20), threads=st.sampled_from((1, 2, 8)))
def test_every_way_in_gives_the_same(corpus: list[str | None], threads: int) -> None:
    scheme = nd.scheme("text")
    expected = [None if text is None else scheme.fingerprint(text) for text in corpus]
    for kind in (pa.string(), pa.large_string(), pa.string_view()):
        array = pa.array(corpus, kind)
        assert list(scheme.fingerprints(array, threads=threads)) == expected
        assert list(scheme.fingerprints(array[3:], threads=threads)) == expected[3:]
        chunked = pa.chunked_array([array[:5], array[5:]], kind)
        assert list(scheme.fingerprints(chunked, threads=threads)) == expected
    full = [text for text in corpus if text is not None]
    wanted = [value for text, value in zip(corpus, expected, strict=True) if text is not None]
    assert list(scheme.fingerprints(full, threads=threads)) == wanted
    assert list(scheme.fingerprints(iter(full), threads=threads)) == wanted


@pytest.mark.parametrize(
    "form",
    [
        "Café № 1, ﬁne",
        "Cafe\u0301 № 1, fine",
        "Ca\u00adfé No 1 fine",
        "Ｃａｆé　№１　fine",
        "CAFÉ\u200b NO 1 — FINE",
    ],
)
def test_forms_of_one_text_have_one_fingerprint(form: str) -> None:
    scheme = nd.scheme("text")
    assert scheme.fingerprint(form.replace("№ 1", "no 1").replace("№１", "no 1")) == scheme.fingerprint(
        "café no 1 fine"
    )


@pytest.mark.parametrize("text", ["", "   \n", ".,;!?", "\u0301\u0302", "❤\ufe0f", "___", "\u200b\u00ad"])
@pytest.mark.parametrize("name", ["text", "chars:4", "words:3"])
def test_a_text_without_information_has_no_fingerprint(text: str, name: str) -> None:
    scheme = nd.scheme(name)
    assert scheme.fingerprint(text) is None
    assert scheme.fingerprints([text]).valid.tolist() == [False]


def test_lone_surrogates_become_replacement_characters() -> None:
    scheme = nd.Scheme("test", normalize="none", features="chars:3")
    assert scheme.fingerprint("ab\ud800cd") == scheme.fingerprint("ab\ufffdcd")
    assert scheme.fingerprint(["a\udfff"]) == scheme.fingerprint(["a\ufffd"])


def test_arrow_bytes_that_are_no_utf8_are_replaced_not_trusted() -> None:
    broken = pa.Array.from_buffers(
        pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\4\0\0\0"), pa.py_buffer(b"ab\xff\xe4")]
    )
    scheme = nd.Scheme("test", normalize="none", features="chars:2")
    assert scheme.fingerprints(broken)[0] == scheme.fingerprint("ab\ufffd\ufffd")


def test_arrow_offsets_outside_their_buffer_are_refused() -> None:
    offsets = pa.py_buffer(b"\0\0\0\0\x7f\0\0\0\2\0\0\0")
    broken = pa.Array.from_buffers(pa.string(), 2, [None, offsets, pa.py_buffer(b"ab")])
    with pytest.raises(InvalidValue, match="outside its buffers"):
        nd.scheme("chars:4").fingerprints(broken)


def test_a_very_frequent_feature_does_not_overflow() -> None:
    scheme = nd.scheme("words:1")
    assert scheme.fingerprint("a " * 300_000) == scheme.fingerprint("a")
    assert scheme.fingerprint({"a": 2**31, "b": 2**31 - 1}) == scheme.fingerprint("a")


@given(st.dictionaries(st.text("ab", min_size=1, max_size=3), st.integers(-9, 9), max_size=6))
def test_weighted_features_vote_with_their_weight(features: dict[str, int]) -> None:
    scheme = nd.Scheme("test", features="words:1", empty="votes")
    pairs = [(naive.mix(token.encode()), weight) for token, weight in features.items()]
    expected = naive.simhash(pairs, 64)
    assert scheme.fingerprint(features) == expected
    assert scheme.fingerprint(list(features.items())) == expected
    # Halves are exact in floats, so the same votes are cast.
    assert scheme.fingerprint({token: weight / 2 for token, weight in features.items()}) == expected


@given(st.permutations([("a", 0.1), ("b", 0.2), ("c", 0.3), ("d", 1e-9), ("e", 7.0)]))
def test_float_weights_do_not_depend_on_their_order(pairs: list[tuple[str, float]]) -> None:
    scheme = nd.scheme("words:1")
    assert scheme.fingerprint(pairs) == scheme.fingerprint(sorted(pairs))
