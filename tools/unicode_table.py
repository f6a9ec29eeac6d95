"""Writes src/text/unicode_table.rs: what the core knows of every code point.

Needs `unicodedata2==18.0.0` (categories, names, normalisation). Lower case is what the running
interpreter says; letters that it does not know yet are paired by their names. The table is
checked in, so that neither the compiler's nor the interpreter's Unicode version can change a
bit of a fingerprint.

    python tools/unicode_table.py > src/text/unicode_table.rs
"""

import sys
import unicodedata
from collections import Counter

import unicodedata2 as ucd

from neardup.cjk import RANGES as CJK

WORD, MARK, IS_CJK, FORMAT, UNSTABLE, SPECIAL, CASED, IGNORABLE = (1 << bit for bit in range(8))
SPECIAL_LOWER = {0x0130, 0x03A3}  # two code points long; depends on its neighbours
MAX_DELTAS = 250  # an entry has 8 bits for the number of one
MID_LETTERS = {
    0x27,
    0x2E,
    0x3A,
    0xB7,
    0x387,
    0x55F,
    0x5F4,
    0x2018,
    0x2019,
    0x2024,
    0x2027,
    0xFE13,
    0xFE52,
    0xFE55,
    0xFF07,
    0xFF0E,
    0xFF1A,
}


def composes_backwards() -> set[int]:
    """Code points that may join the one before them, so that text holding them must be normalised."""
    second = set()
    for code in range(sys.maxunicode + 1):
        parts = ucd.decomposition(chr(code)).split()
        if len(parts) == 2 and not parts[0].startswith("<"):
            second.add(int(parts[1], 16))
    # One whose own first part may join does so itself (the Kirat Rai vowel sign AI behind E).
    second |= {
        code
        for code in range(sys.maxunicode + 1)
        if ord(ucd.normalize("NFD", chr(code))[0]) in second and not 0xD800 <= code <= 0xDFFF
    }
    return second | set(range(0x1161, 0x1176)) | set(range(0x11A8, 0x11C3))


def _joins(letter: str, second: set[int]) -> bool:
    return ord(letter) in second or ucd.combining(letter) != 0 or ucd.category(letter)[0] == "M"


def _is_word(letter: str) -> bool:
    return ucd.category(letter)[0] in "LN" or ucd.numeric(letter, None) is not None or letter == "_"


def _kind(letter: str) -> tuple[bool, bool, bool]:
    in_cjk = any(low <= ord(letter) <= high for low, high in CJK)
    return _is_word(letter), ucd.category(letter)[0] == "M", in_cjk


def lower(letter: str) -> str:
    """The lower case of *letter*: of its name where it is younger than the interpreter."""
    if ucd.category(letter) != "Lu" or unicodedata.category(letter) != "Cn":
        return letter.lower()
    name = ucd.name(letter)
    try:
        return str(ucd.lookup(name.replace("CAPITAL", "SMALL")))
    except KeyError:
        raise SystemExit(f"no lower case is known of {name}; run this with a younger Python") from None


def stable_delta(code: int, second: set[int]) -> int | None:
    """How far the lower case of the NFKC of *code* is away, where that is one letter of the same kind."""
    letter = chr(code)
    stable = ucd.normalize("NFKC", letter)
    if len(stable) != 1 or _joins(stable, second) or _kind(stable) != _kind(letter):
        return None
    return None if ord(stable) in SPECIAL_LOWER else ord(lower(stable)) - code


def main() -> None:
    second = composes_backwards()
    codes = [code for code in range(sys.maxunicode + 1) if not 0xD800 <= code <= 0xDFFF]
    own = {code: 0 if code in SPECIAL_LOWER else ord(lower(chr(code))) - code for code in codes}
    deltas = [0, *sorted(set(own.values()) - {0})]
    unstable = {code for code in codes if code in second or ucd.normalize("NFKC", chr(code)) != chr(code)}
    # There is room for the commonest ones: whole ranges, such as full-width letters, come first.
    ways = Counter(stable_delta(code, second) for code in sorted(unstable - second))
    more = [delta for delta, _ in ways.most_common() if delta is not None and delta not in deltas]
    deltas += more[: MAX_DELTAS - len(deltas)]
    runs: list[tuple[int, int]] = []
    for code in range(sys.maxunicode + 1):
        letter = chr(code)
        category = ucd.category(letter)
        flags = 0
        if _is_word(letter):
            flags |= WORD
        if category[0] == "M":
            flags |= MARK
        if any(low <= code <= high for low, high in CJK):
            flags |= IS_CJK
        if category == "Cf":
            flags |= FORMAT
        if code in unstable:
            flags |= UNSTABLE
        if category in ("Lu", "Ll", "Lt") or letter.islower() or letter.isupper():
            flags |= CASED
        if category in ("Mn", "Me", "Cf", "Lm", "Sk") or code in MID_LETTERS:
            flags |= IGNORABLE
        if code in SPECIAL_LOWER:
            flags |= SPECIAL
        delta = text_delta = own.get(code, 0)
        if flags & UNSTABLE and code not in second:
            stable = ucd.normalize("NFKC", letter)
            candidate = stable_delta(code, second)
            if not any(_joins(part, second) or _is_word(part) for part in stable) and not flags & (
                WORD | FORMAT
            ):
                flags &= ~UNSTABLE  # becomes a space, whatever it decomposes to
            elif candidate in deltas:
                text_delta = candidate
                flags &= ~(UNSTABLE | SPECIAL)
        entry = (
            flags | ucd.combining(letter) << 8 | deltas.index(delta) << 16 | deltas.index(text_delta) << 24
        )
        if not runs or runs[-1][1] != entry:
            runs.append((code, entry))
    assert len(deltas) < 256
    print("#![forbid(unsafe_code)]")
    print("//! Generated by tools/unicode_table.py; do not edit.")
    print()
    print("/// The version of Unicode that the table is of.")
    print(f"pub const VERSION: (u8, u8, u8) = ({', '.join(ucd.unidata_version.split('.'))});")
    print()
    print("/// How far the lower case of a code point, or of its NFKC, is away.")
    print("#[rustfmt::skip]")
    print(f"pub static DELTAS: [i32; {len(deltas)}] = [")
    _rows([f"{delta}" for delta in deltas])
    print("];")
    print()
    print("/// Runs of code points alike: the first one, and the flags, combining class and deltas of all.")
    print("#[rustfmt::skip]")
    print(f"pub static RUNS: [(u32, u32); {len(runs)}] = [")
    _rows([f"({code:#x}, {entry:#x})" for code, entry in runs])
    print("];")


def _rows(cells: list[str]) -> None:
    for start in range(0, len(cells), 8):
        print("    " + ", ".join(cells[start : start + 8]) + ",")


if __name__ == "__main__":
    main()
