"""CJK: characters of scripts that are written without spaces, each of which counts as a word.

The one list of their ranges. `tools/unicode_table.py` writes it into the table of the core; a test
compares the core and `naive`, which say the same in words of their own, with it.
"""

from __future__ import annotations

from typing import Final

# Hiragana and katakana, Chinese characters, Hangul syllables, the rarer Chinese characters.
RANGES: Final = ((0x3040, 0x30FF), (0x3400, 0x9FFF), (0xAC00, 0xD7AF), (0x20000, 0x3FFFF))
# The same, for a class of a regular expression.
CLASS: Final = "".join(f"{chr(low)}-{chr(high)}" for low, high in RANGES)


def is_cjk(letter: str) -> bool:
    """Whether that one character counts as a word.

    >>> [is_cjk(letter) for letter in "aあ漢각𠀀"]
    [False, True, True, True, True]
    """
    return any(low <= ord(letter) <= high for low, high in RANGES)
