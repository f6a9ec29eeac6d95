"""What counts as a CJK character is one list; the core and the naive twin say the same."""

from __future__ import annotations

import random
import sys
import unicodedata

import neardup as nd
from neardup import cjk, diffs, edits, naive

EDGES = [code for low, high in cjk.RANGES for edge in (low, high) for code in range(edge - 40, edge + 40)]


def test_the_naive_twin_knows_the_same_characters() -> None:
    # Every code point would take a second.
    for code in [*EDGES, *range(0, sys.maxunicode, 7)]:
        assert naive.is_cjk(chr(code)) == cjk.is_cjk(chr(code)), hex(code)


def test_the_core_cuts_the_same_characters() -> None:
    letters = [chr(code) for code in EDGES if chr(code).isalpha()]
    letters = [letter for letter in letters if unicodedata.normalize("NFKC", letter).lower() == letter]
    found = nd.scheme("text").recipe.features(" ".join(letters))
    in_core = {text for kind, text, _ in found if kind == naive.CJK_ONE}
    assert in_core == {letter for letter in letters if cjk.is_cjk(letter)}
    assert 100 < len(in_core) < len(letters)


def test_a_rare_chinese_character_is_a_word_for_edits_and_diffs() -> None:
    assert edits.word_count("𠀀𠀁 word") == 3
    assert diffs.words("𠀀𠀁") == ["𠀀", "𠀁"]
    assert edits.Vocabulary(["𠀀𠀁"]).other("𠀀", random.Random(1)) in "𠀀𠀁"
