"""The first pass over a collection."""

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

import neardup as nd
from neardup import _native, naive
from neardup.arrays import core_texts

from .conftest import texts

KEY = bytes(range(32))


@given(st.lists(texts, min_size=1, max_size=12))
def test_a_survey_counts_what_fit_counts_and_tells_equal_texts(corpus: list[str]) -> None:
    scheme = nd.scheme("text")
    counted, array = _native.Frequencies(), pa.array(corpus, pa.large_string())
    content, informative, lengths, spellings = _native.survey(
        scheme.recipe, core_texts(array), counted, KEY, 2
    )
    fitted = scheme.fit(corpus).frequencies
    assert fitted is not None
    assert counted.to_bytes() == fitted.to_bytes()
    normal = [naive.normalize_text(text) for text in corpus]
    assert lengths.tolist() == [len(text) for text in corpus]
    assert informative.tolist() == [bool(text.strip("_ ")) for text in normal]
    keys = [tuple(row) for row in content.tolist()]
    for at, text in enumerate(normal):
        for other in range(at):
            if informative[at] and informative[other]:
                assert (keys[at] == keys[other]) == (text == normal[other])
                assert corpus[at] != corpus[other] or spellings[at] == spellings[other]


def test_a_survey_tells_spellings_apart() -> None:
    array = pa.array(["x = a + b", "x = a - b", "X = A + B", "x = a + b"], pa.large_string())
    content, *_, spellings = _native.survey(nd.scheme("text").recipe, core_texts(array), None, KEY, 1)
    assert (content == content[0]).all()
    assert len(set(spellings.tolist())) == 3
    assert spellings[0] == spellings[3]
