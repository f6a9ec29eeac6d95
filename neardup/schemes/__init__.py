"""Schemes are rows: what computes something else is another row with another name."""

from __future__ import annotations

import os
from dataclasses import fields, replace
from typing import Any

from neardup.errors import InvalidType, InvalidValue, shown
from neardup.files import check_path
from neardup.registry import Registry
from neardup.schemes.files import read, to_toml, write
from neardup.schemes.model import Scheme

__all__ = ["SCHEMES", "Scheme", "read", "scheme", "summaries", "to_toml", "write"]

SCHEMES: Registry[Scheme] = Registry(
    "scheme",
    {
        "text": lambda: Scheme("text", features="mixed:4", weights="log-df", bits=128),
        "chars": lambda n: Scheme(f"chars:{n}", features=f"chars:{n}"),
        "words": lambda n: Scheme(f"words:{n}", features=f"words:{n}"),
        "vector": lambda: Scheme(
            "vector", normalize="none", features="vector", hash="projection:0", bits=256
        ),
    },
)

# What each row is for, in one line.
_SUMMARIES = {
    "text": "the default: any language, weighted; fit it on the collection",
    "chars": "chars:N, every run of N characters counts alike; the fastest",
    "words": "words:N, every run of N words counts alike",
    "vector": "signs of seeded random projections, for embeddings",
}

_OVERRIDES = {item.name for item in fields(Scheme)} - {"frequencies"}


def summaries() -> dict[str, str]:
    """Every row of the table and what it is for."""
    return {name: _SUMMARIES[name] for name in sorted(SCHEMES)}


def scheme(name: str | os.PathLike[str] | Scheme, /, **overrides: Any) -> Scheme:
    """The scheme of that name, or in that file, with other values for some of its fields.

    >>> scheme("text", bits=64).bits, scheme("chars:3").features
    (64, 'chars:3')
    >>> scheme("txet")
    Traceback (most recent call last):
    neardup.errors.UnknownName: unknown scheme 'txet'; known: chars, text, vector, words
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
