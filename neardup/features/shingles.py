"""Shingles and tokens as two of the originals cut them, exactly; `FEATURES` names them.

Both work on UTF-8 bytes where it shows: pbtk looks at the bytes beside a removed character, and both
know only ASCII white space.
"""

from __future__ import annotations

from typing import Final

from neardup.checks import check_text
from neardup.errors import InvalidValue

PUNCT: Final = "!?.,;:'\"-—–()[]{}«»‹›"
SPECIAL: Final = "@#$%^&*_+=\\|/~`<>"
CLEAN_SETS: Final = {"": "", "punct": PUNCT, "special": SPECIAL, "all": PUNCT + SPECIAL}


def clean_set(name: str) -> str:
    """The characters of a named set: punct, special, all, or = and the characters themselves.

    >>> clean_set("special")[:3], clean_set("=,.")
    ('@#$', ',.')
    """
    if name in CLEAN_SETS:
        return CLEAN_SETS[name]
    if not name.startswith("="):
        raise InvalidValue(f"unknown clean set {name!r}; known: punct, special, all, or = and the characters")
    return name[1:]


def clean_name(characters: str) -> str:
    """The shortest name of a clean set.

    >>> clean_name(PUNCT), clean_name(",."), clean_name("")
    ('punct', '=,.', '')
    """
    return next((name for name, known in CLEAN_SETS.items() if known == characters), f"={characters}")


def decoded(text: str | bytes) -> str:
    """Text as Go reads it: every byte that is not UTF-8 becomes one U+FFFD.

    >>> decoded(b"a\\xe2\\x82(")
    'a\\ufffd\\ufffd('
    """
    if isinstance(text, bytes):
        text = text.decode("utf-8", "surrogateescape")
    check_text("a text", text)
    return text if text.isascii() else "".join(c if not "\ud800" <= c <= "\udfff" else "\ufffd" for c in text)


def char_shingles(text: str | bytes, k: int, clean: str = "") -> list[str]:
    """Every run of *k* characters, after those of *clean* are removed; a shorter text is one shingle.

    >>> char_shingles("a, b!", 3, "!,"), char_shingles("", 3)
    (['a b'], [''])
    """
    text = _cleaned(decoded(text), clean, collapse=False)
    if k == 0 or len(text) <= k:
        return [text]
    return [text[at : at + k] for at in range(len(text) - k + 1)]


def word_shingles(text: str | bytes, k: int, clean: str = "") -> list[str]:
    """Every run of *k* words, after the characters of *clean* are removed; fewer words are one shingle.

    >>> word_shingles("state-of-the-art", 2, "-")
    ['state of', 'of the', 'the art']
    """
    text = _cleaned(decoded(text), clean, collapse=True)
    if len(text) < 2:
        return [text]
    cuts = [0, *(at for at, letter in enumerate(text) if letter == " "), len(text)]
    if len(cuts) - 1 < k or k == 0:
        return [text]
    runs = (text[start:end].removeprefix(" ") for start, end in zip(cuts, cuts[k:], strict=False))
    return [run for run in runs if run]


def _cleaned(text: str, clean: str, collapse: bool) -> str:
    if not clean and not (collapse and "  " in text):
        return text
    data = text.encode()
    removed = frozenset(clean)
    out: list[str] = []
    space = False  # whether one is due before the next character that stays
    at = 0
    for letter in text:
        if letter in removed:
            # A removed character leaves a space where it stood between two others; for one of several
            # bytes the original takes its own second byte for its neighbour.
            space = 0 < at < len(data) - 1 and data[at - 1] != 0x20 and data[at + 1] != 0x20 and letter != "'"
        else:
            if space:
                out.append(" ")
                space = False
            out.append(letter)
        at += len(letter.encode())
    if not collapse:
        return "".join(out)
    kept: list[str] = []
    for letter in out:
        if letter != " " or kept[-1:] != [" "]:
            kept.append(letter)
    return "".join(kept)


_ASCII_SPACE: Final = " \t\n\v\f\r"


def tokens(text: str) -> list[str]:
    """What is between runs of ASCII white space; white space in front gives an empty first token.

    >>> tokens(" a  b "), tokens("   "), tokens("")
    (['', 'a', 'b'], [''], [])
    """
    if not text:
        return []
    found = text.translate(_TO_SPACE).split(" ")
    first = [""] if not found[0] else []
    return first + [token for token in found if token]


_TO_SPACE: Final = {ord(letter): " " for letter in _ASCII_SPACE}
