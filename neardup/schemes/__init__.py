"""Schemes are rows: a scheme that computes something else is another row with another name."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

from neardup.errors import InvalidType, InvalidValue, shown
from neardup.files import check_path
from neardup.registry import Registry, plain_number
from neardup.schemes.files import read, to_toml, write
from neardup.schemes.model import Scheme

__all__ = ["SCHEMES", "Scheme", "read", "scheme", "summaries", "to_toml", "write"]


def _simhash(name: str, width: int, tie: str, weights: str) -> Callable[[], Scheme]:
    return lambda: Scheme(
        name,
        normalize="word-chars",
        features=f"chars:{width}",
        weights=weights,
        hash="md5",
        digest_slice="last",
        bit_order="big",
        tie=tie,
        empty="feature",
        form="decimal",
    )


def _pbtk(name: str, hash: str) -> Callable[[], Scheme]:
    return lambda: Scheme(
        name, normalize="none", features="chars:3", hash=hash, tie="one", empty="feature", form="decimal"
    )


def _htm(name: str, hash: str, select: str) -> Callable[[], Scheme]:
    return lambda: Scheme(
        name, normalize="none", features="tokens", hash=hash, bits=2048, empty="votes", select=select
    )


def _classic(name: str) -> Callable[[str], Scheme]:
    """A hash of the PyPI package imagehash."""

    def row(bits: str = "64") -> Scheme:
        width = plain_number(bits, 64, 256)
        if width not in (64, 256):
            raise InvalidValue(f"scheme '{name}:{bits}': write {name}:64 or {name}:256")
        return Scheme(
            f"{name}:{width}", normalize="none", features="picture", hash=name, bits=width, bit_order="big"
        )

    return row


SCHEMES: Registry[Scheme] = Registry(
    "scheme",
    {
        "text": lambda: Scheme("text", features="mixed:4", weights="log-df", bits=128),
        "chars": lambda n: Scheme(f"chars:{n}", features=f"chars:{n}"),
        "words": lambda n: Scheme(f"words:{n}", features=f"words:{n}"),
        # The five originals (docs/compat): their ties, empty texts and bit orders are theirs, not ours.
        "simhash": _simhash("simhash", 4, "zero", "simhash-2"),
        "simhash-1.8": _simhash("simhash-1.8", 4, "zero", "simhash-1"),
        "simhash-1.3": _simhash("simhash-1.3", 4, "one", "simhash-1"),
        "simhash-1.1": _simhash("simhash-1.1", 2, "one", "simhash-1"),
        "jobs": _simhash("jobs", 3, "zero", "simhash-2"),
        "pbtk": _pbtk("pbtk", "xxh64"),
        "pbtk-published": _pbtk("pbtk-published", "slip:xxh64"),
        "htm": _htm("htm", "shake256-htm:2048", "top-htm:41"),
        "htm-corrected": _htm("htm-corrected", "shake256-msb", "top-above:41"),
        "news": lambda: Scheme(
            "news", normalize="ascii-words", features="words:1", hash="fnv1a64", empty="votes"
        ),
        # The original drops every word that is not ASCII, so that all Chinese texts are equal. Here a text
        # without any word has no fingerprint.
        "news-unicode": lambda: Scheme(
            "news-unicode", normalize="unicode-words", features="words:1", hash="fnv1a64-utf16"
        ),
        "qyoki": lambda: Scheme(
            "qyoki",
            normalize="none",
            features="tokens",
            weights="abstain",
            hash="murmur3-128",
            bits=128,
            empty="votes",
            form="bits",
        ),
        "image": lambda: Scheme("image", normalize="none", features="picture", hash="dct-signs", bits=256),
        "phash": _classic("phash"),
        "dhash": _classic("dhash"),
        "ahash": _classic("ahash"),
        "vector": lambda: Scheme(
            "vector", normalize="none", features="vector", hash="projection:0", bits=256
        ),
    },
)

# What each row is for, in one line.
_SUMMARIES = {
    "text": "the default: any language, weighted; fit it on the collection",
    "chars": "chars:N, every run of N characters counts the same; the fastest",
    "words": "words:N, every run of N words counts the same",
    "image": "the default for images: signs of low frequencies; queries add parts, rotations and mirrors",
    "phash": "phash:64 or phash:256, for images, as the PyPI package imagehash",
    "dhash": "dhash:64 or dhash:256, for images, as the PyPI package imagehash",
    "ahash": "ahash:64 or ahash:256, for images, as the PyPI package imagehash",
    "vector": "signs of seeded random projections, for embeddings",
    "simhash": "the PyPI package simhash from 2.0 on",
    "simhash-1.8": "the PyPI package simhash 1.8 to 1.11",
    "simhash-1.3": "the PyPI package simhash 1.3 to 1.7",
    "simhash-1.1": "the PyPI package simhash 1.1",
    "jobs": "the PyPI package simhash as a jobs site uses it",
    "pbtk": "the Go library pbtk, as its document describes it",
    "pbtk-published": "the Go library pbtk, as its program computes it: 8 of 64 bits are used",
    "htm": "the document encoder of htm.core",
    "htm-corrected": "the document encoder of htm.core without its faults",
    "news": "the news clustering module: ASCII words",
    "news-unicode": "the news clustering module with the words of every script",
    "qyoki": "the image and document SimHash project",
}

_OVERRIDES = {item.name for item in fields(Scheme)} - {"frequencies"}


def summaries() -> dict[str, str]:
    """Every row of the table and what it is for."""
    return {name: _SUMMARIES[name] for name in sorted(SCHEMES)}


def scheme(name: str | os.PathLike[str] | Scheme, /, **overrides: Any) -> Scheme:
    """The scheme of that name, or in that file, with other values for some of its fields.

    >>> scheme("text", bits=64).bits, scheme("chars:3").features
    (64, 'chars:3')
    >>> scheme("txet")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    neardup.errors.UnknownName: unknown scheme 'txet'; known: ahash, ...
    """
    if unknown := sorted(set(overrides) - _OVERRIDES):
        raise InvalidValue(f"a scheme has no field {unknown[0]!r}; it has: {', '.join(sorted(_OVERRIDES))}")
    if isinstance(name, Scheme):
        return replace(name, **overrides)
    if not isinstance(name, (str, os.PathLike)):
        raise InvalidType(f"a scheme is given by name, file or value, not {shown(name)}")
    if isinstance(name, str) and name.partition(":")[0] in SCHEMES:
        return replace(SCHEMES.part(name), **overrides)
    if isinstance(name, os.PathLike) or os.sep in name or os.path.isfile(name):
        key = overrides.pop("key", None)
        return replace(read(check_path(name), key), **overrides)
    return SCHEMES.part(name)
