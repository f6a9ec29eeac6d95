"""Word diffs: complete, true, and never slow."""

import time
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from neardup.diffs import excerpt, word_diff, words

from .conftest import texts

close = st.lists(
    st.sampled_from(["a", "b", "c", "lorem ", "ipsum ", "漢", "字", "\n", ", "]), max_size=60
).map("".join)


@given(texts)
def test_words_joined_are_the_text(text: str) -> None:
    assert "".join(words(text)) == text


@given(st.one_of(texts, close), st.one_of(texts, close))
def test_each_side_of_a_diff_joined_is_its_text(left: str, right: str) -> None:
    steps = word_diff(left, right)
    assert "".join(word for step in steps for word in step.left) == left
    assert "".join(word for step in steps for word in step.right) == right


@given(close, close)
def test_same_steps_hold_the_same_words_and_steps_alternate(left: str, right: str) -> None:
    steps = word_diff(left, right)
    for step in steps:
        if step.same:
            assert [word.rstrip() for word in step.left] == [word.rstrip() for word in step.right]
    assert all(one.same != other.same for one, other in pairwise(steps))


def test_equal_texts_are_one_step() -> None:
    assert [step.same for step in word_diff("one two", "one  two")] == [True]


def test_cjk_differs_by_character() -> None:
    changes = [
        (step.left, step.right) for step in word_diff("北京大学の図書館", "北京大学の美術館") if not step.same
    ]
    assert changes == [(("図", "書"), ("美", "術"))]


def test_no_text_makes_a_diff_slow() -> None:
    start = time.perf_counter()
    for left, right in (
        ("a b " * 100_000, "b a " * 100_000),
        ("x" * 1_000_000, "x" * 999_999),
        (" ".join(map(str, range(50_000))), " ".join(map(str, reversed(range(50_000))))),
        ("a b c " * 30_000, "c b a d " * 30_000),
        (" ".join(str(n % 97) for n in range(60_000)), " ".join(str(n % 89) for n in range(60_000))),
    ):
        shown = excerpt(word_diff(left, right))
        assert sum(len(one.left) + len(one.right) for one in shown) < 100_000
    assert time.perf_counter() - start < 30


def test_an_excerpt_accounts_for_every_word() -> None:
    left = " ".join(f"w{n}" for n in range(5000))
    right = left.replace("w2500 ", "changed ").replace("w4000 ", "")
    shown = excerpt(word_diff(left, right))
    assert sum(one.left_cut + len(one.left.split()) for one in shown) == 5000
    assert sum(one.right_cut + len(one.right.split()) for one in shown) == 4999
    assert [(one.left, one.right) for one in shown if one.op == "change"] == [
        ("w2500 ", "changed "),
        ("w4000 ", ""),
    ]
