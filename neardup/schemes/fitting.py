"""Fitting: the document frequencies of a collection, counted as it streams by.

Frequencies are sums over documents. So a collection may be fitted in parts, on other days and
machines, and the parts added: the table is the same, byte for byte, as if fitted in one go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from neardup.errors import InvalidValue
from neardup.schemes.model import Scheme


def fit_batches(
    scheme: Scheme,
    batches: Iterable[Any],
    *,
    parts: Sequence[Scheme] = (),
    max_features: int | None = None,
    threads: int | None = None,
    after: Callable[[int], None] = lambda documents: None,
) -> Scheme:
    """*scheme* fitted on Arrow string arrays (or lists of texts), and on what *parts* were fitted on.

    *max_features* is as in `Scheme.fit`; without it, that of the parts. *after* is
    called with the number of documents so far.

    >>> from neardup.schemes import scheme
    >>> part = fit_batches(scheme("text"), [["a text", "two"]])
    >>> fit_batches(scheme("text"), [["more of a text"]], parts=[part]).frequencies.documents
    3
    """
    if scheme.frequencies is not None:
        raise InvalidValue(f"scheme {scheme.name!r} is fitted already; add it as a part instead")
    for part in parts:
        if part.frequencies is None:
            raise InvalidValue(f"scheme {part.name!r} is not fitted, so there is nothing to add")
    if max_features is None and parts:
        max_features = parts[0].frequencies.max_features  # type: ignore[union-attr]
    table = scheme.fit([], max_features=max_features).frequencies
    assert table is not None
    documents = 0
    for batch in batches:
        scheme.count(batch, table, threads=threads)
        documents += len(batch)
        after(documents)
    whole = replace(scheme, frequencies=table)
    for part in parts:
        whole = whole + part
    return whole
