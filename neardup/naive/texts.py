"""From a text to its fingerprint: normalisation, features, hash, weights and votes."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from math import isqrt

# --- normalisation ---------------------------------------------------------------------------------------


def is_word(letter: str) -> bool:
    """Letters, numbers and the underscore."""
    return letter.isalnum() or letter == "_"


def is_mark(letter: str) -> bool:
    """Combining marks."""
    return unicodedata.category(letter)[0] == "M"


def is_cjk(letter: str) -> bool:
    """Letters of scripts written without spaces that have a word in a character or two."""
    code = ord(letter)
    return (
        0x3040 <= code <= 0x30FF
        or 0x3400 <= code <= 0x9FFF
        or 0xAC00 <= code <= 0xD7AF
        or 0x20000 <= code <= 0x3FFFF
    )


def normalize_text(text: str) -> str:
    """Format characters removed, NFKC, lower case, runs of other than word characters one space.

    >>> normalize_text("Ca\\u00adfe\\u0301, ２４h!")
    'café 24h'
    """
    visible = "".join(letter for letter in text if unicodedata.category(letter) != "Cf")
    lower = unicodedata.normalize("NFKC", visible).lower()
    out = ""
    for letter in lower:
        inside = out[-1:] not in ("", " ")
        if is_word(letter) or (is_mark(letter) and inside):
            out += letter
        elif inside:
            out += " "
    return out.strip(" ")


LINKS = re.compile(
    r"<(?P<name>script|style)\b.*?</(?P=name)\s*>"
    r"|(?<=\])\([^()\n]*\)"
    r"|(?<![0-9a-z_])(?:(?:https?|ftp)://|www\.)[^\s<>\"]*"
    r"|(?<=\s)(?:href|src)=(?:\"[^\"]*\"|'[^']*')",
    re.ASCII | re.IGNORECASE | re.DOTALL,
)


def normalize_prose(text: str) -> str:
    """As text, after scripts, styles, addresses and the targets of links were left out.

    >>> normalize_prose("See [the docs](x.html), https://a.b/c?d=1 and <a href='e'>here</a>.")
    'see the docs and a here a'
    """
    return normalize_text(LINKS.sub(" ", text))


def normalize_word_chars(text: str) -> str:
    """Lower case, word characters only.

    >>> normalize_word_chars("Good job, Ray")
    'goodjobray'
    """
    return "".join(letter for letter in text.lower() if is_word(letter))


def normalize_ascii_words(text: str) -> str:
    """Lower case, ASCII words of two letters or more.

    >>> normalize_ascii_words("A café, I said")
    'caf said'
    """
    spaced = "".join(letter if letter.isascii() and is_word(letter) else " " for letter in text.lower())
    return " ".join(word for word in spaced.split() if len(word) >= 2)


def normalize_unicode_words(text: str) -> str:
    """Lower case, Unicode words; every CJK character is a word.

    >>> normalize_unicode_words("Die 漢字!")
    'die 漢 字'
    """
    out = ""
    for letter in text.lower():
        inside = out[-1:] not in ("", " ")
        if is_mark(letter) and inside:
            out += letter
        elif is_word(letter):
            base = out.rstrip("".join({mark for mark in out[-8:] if is_mark(mark)}))[-1:] if out else ""
            if inside and (is_cjk(letter) or (base and is_cjk(base))):
                out += " "
            out += letter
        elif inside:
            out += " "
    return out.strip(" ")


NORMALIZATIONS: dict[str, Callable[[str], str]] = {
    "none": str,
    "lower": str.lower,
    "text": normalize_text,
    "prose": normalize_prose,
    "word-chars": normalize_word_chars,
    "ascii-words": normalize_ascii_words,
    "unicode-words": normalize_unicode_words,
}

# --- features --------------------------------------------------------------------------------------------

PLAIN, WORD, CJK_ONE, CJK_TWO, CHARS = range(5)


def chars(text: str, n: int) -> list[str]:
    """Every run of *n* characters; a shorter text is one feature.

    >>> chars("hello", 3), chars("hi", 3), chars("", 3)
    (['hel', 'ell', 'llo'], ['hi'], [])
    """
    return [text[at : at + n] for at in range(max(1, len(text) - n + 1))] if text else []


def words(text: str, n: int) -> list[str]:
    """Every run of *n* words; fewer words are one feature.

    >>> words("a bc d", 2)
    ['a bc', 'bc d']
    """
    single = text.split(" ") if text else []
    return [" ".join(single[at : at + n]) for at in range(max(1, len(single) - n + 1))] if single else []


def mixed(text: str, n: int) -> list[tuple[int, str]]:
    """Words, CJK characters, pairs of them, and runs of *n* other characters, each with its kind.

    >>> mixed("ab 漢字", 4)
    [(1, 'ab'), (2, '漢'), (2, '字'), (3, '漢字')]
    """
    other = "".join("\0" if is_cjk(letter) else letter for letter in text).split("\0")
    cjk = "".join(letter for letter in text if is_cjk(letter))
    found = [(WORD, word) for run in other for word in run.split(" ") if word]
    found += [(CJK_ONE, letter) for letter in cjk]
    found += [(CJK_TWO, cjk[at : at + 2]) for at in range(len(cjk) - 1)]
    found += [(CHARS, part) for run in other if len(run) >= n or not cjk for part in chars(run, n)]
    return found


def features_of(text: str, name: str) -> list[tuple[int, str]]:
    """The features of a normalised text, each with its kind: `chars:3`, `words:2`, `mixed:4`."""
    kind, _, count = name.partition(":")
    if kind == "mixed":
        return mixed(text, int(count))
    cut = {"chars": chars, "words": words}[kind]
    return [(PLAIN, part) for part in cut(text, int(count))]


# --- hash ------------------------------------------------------------------------------------------------

WORD_MASK = 2**64 - 1
GAMMA = 0x9E3779B97F4A7C15
STREAM = 0xD1B54A32D192ED03
FIRST = 0xBF58476D1CE4E5B9
SECOND = 0x94D049BB133111EB


def finish(x: int) -> int:
    """Every bit of the input moves every bit of the output."""
    x &= WORD_MASK
    x = (x ^ x >> 30) * FIRST & WORD_MASK
    x = (x ^ x >> 27) * SECOND & WORD_MASK
    return x ^ x >> 31


def mix(data: bytes, bits: int = 64, seed: int = 0) -> int:
    """Our own hash; its first word is the lowest.

    >>> hex(mix(b"hello"))
    '0xa3f94fec990eb70e'
    """
    x = seed + GAMMA * len(data)
    at = 0
    while len(data) - at > 8:
        x = finish(x ^ int.from_bytes(data[at : at + 8], "little"))
        at += 8
    first = finish((x & WORD_MASK) ^ int.from_bytes(data[-8:], "little"))
    stream = [first] + [finish(first + STREAM * j) for j in range(1, (bits + 63) // 64)]
    return sum(word << 64 * j for j, word in enumerate(stream)) & (1 << bits) - 1


def mix_of_kind(kind: int, feature: str, bits: int) -> int:
    """The hash of a feature: features of two kinds never share one by being the same string."""
    return mix(feature.encode("utf-8", "replace"), bits, SECOND * kind & WORD_MASK)


# --- weights and votes -----------------------------------------------------------------------------------


DISCOUNT = (32, 23, 16, 11, 8, 6, 4, 3, 2, 1, 1, 1)


def frequency_weight(frequency: int, documents: int) -> int:
    """32 for a rare feature, less for a common one, 0 for one that no other document shares.

    >>> [frequency_weight(df, 2300) for df in (1, 2, 31, 32, 64, 2300)]
    [0, 32, 32, 23, 16, 3]
    """
    if frequency < 2:
        return 0
    knee = max(16, isqrt(documents) // 3)
    doublings = max(0, (frequency // knee).bit_length() - 1)
    return DISCOUNT[doublings] if doublings < len(DISCOUNT) else 0


def simhash(weighted: Iterable[tuple[int, int]], bits: int, tie_gives_one: bool = False) -> int:
    """Every (hash, weight) votes on every bit: for it where the hash has a 1, against where a 0.

    >>> simhash([(0b110, 1), (0b100, 1), (0b111, 1)], bits=3)
    6
    """
    pairs = list(weighted)
    value = 0
    for bit in range(bits):
        total = sum(weight if hash >> bit & 1 else -weight for hash, weight in pairs)
        if total > 0 or (total == 0 and tie_gives_one):
            value |= 1 << bit
    return value


def fingerprint(
    text: str,
    *,
    normalize: str = "text",
    features: str = "mixed:4",
    weights: str = "log",
    bits: int = 128,
    frequencies: Mapping[tuple[int, str], int] | None = None,
    documents: int = 0,
) -> int | None:
    """The fingerprint of a text by our own hash; None if it has no information."""
    weight = weighted(NORMALIZATIONS[normalize](text), features, weights, frequencies, documents)
    if not weight:
        return None
    return simhash([(mix_of_kind(kind, part, bits), value) for (kind, part), value in weight.items()], bits)


def weighted(
    normal: str,
    features: str,
    weights: str,
    frequencies: Mapping[tuple[int, str], int] | None = None,
    documents: int = 0,
) -> dict[tuple[int, str], int]:
    """The different features of a normalised text, and what each weighs; none if it has no information."""
    if not normal.strip("_ "):
        return {}
    counts = Counter(features_of(normal, features))
    if weights == "count":
        return dict(counts)
    if weights == "set":
        return dict.fromkeys(counts, 1)
    weight = {feature: count.bit_length() for feature, count in counts.items()}
    if weights in ("log-df", "log-df-open") and frequencies is not None:
        # An open table takes what it does not know for a feature that two documents have.
        least = 2 if weights == "log-df-open" else 0
        shared = {
            f: t * frequency_weight(max(frequencies.get(f, 0), least), documents) for f, t in weight.items()
        }
        return shared if any(shared.values()) else weight
    return weight


# --- bands -----------------------------------------------------------------------------------------------


BANDS = 16
GOLDEN, STEP = 0x9E3779B97F4A7C15, 0x2545F4914F6CDD1D


def bands(
    text: str,
    *,
    features: str = "mixed:4",
    weights: str = "log",
    frequencies: Mapping[tuple[int, str], int] | None = None,
    documents: int = 0,
) -> list[int]:
    """Numbers of which similar texts are likely to have one in common, at the same place.

    Each of two bins for a band holds the feature of the lowest rank; a rank is halved as often as the
    squared weight of its feature doubles. A feature of much weight is entered several times, with less
    weight. An empty bin takes the feature of another one.
    """
    weight = weighted(normalize_text(text), features, weights, frequencies, documents)
    bins: dict[int, tuple[int, int]] = {}
    for (kind, part), value in weight.items():
        if value:
            doublings = min((value * value * 181 >> 7).bit_length() - 1, 31)
            halvings = min(max(doublings - 7, 0), 3)
            digest = mix_of_kind(kind, part, 64 << halvings)
            for copy in range(1 << halvings):
                word = digest >> 64 * copy & (1 << 64) - 1
                rank, bin = word >> 32 >> doublings - halvings, word % (2 * BANDS)
                bins[bin] = min(bins.get(bin, (1 << 32, 0)), (rank, digest & 0xFFFFFFFF))
    if not bins:
        return [0] * BANDS

    def name_in(bin: int) -> int:
        step = bin
        while bin not in bins:
            step = (step * GOLDEN + STEP) % (1 << 64)
            bin = (step >> 32) % (2 * BANDS)
        return bins[bin][1]

    both = [name_in(2 * band) << 32 | name_in(2 * band + 1) for band in range(BANDS)]
    return [(names * GOLDEN) % (1 << 64) >> 32 for names in both]


def distance(left: int, right: int) -> int:
    """How many bits differ."""
    return (left ^ right).bit_count()
