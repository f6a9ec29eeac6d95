"""Generations: a fitted scheme with all the fingerprints that it made, swapped whole.

How common a feature is changes as a collection grows, and a table that changed with every document would
change fingerprints that are stored. So a table stands still between moments that are known: when there are
ten times as many contents as it was made of, or on request. What it does not know counts as rare meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa

from neardup.collections.kinds import KINDS, kind_of
from neardup.collections.live import LiveIndex
from neardup.collections.live import sweep as sweep_files
from neardup.collections.shelves import Shelf, forget_scheme, write_scheme
from neardup.schemes import Scheme
from neardup.schemes.fitting import fit_batches
from neardup.store import CONTENTS, GENERATIONS, PRINTS, Content, Generation, Print

# The first table is made of this many contents, the next one of ten times as many.
FIRST: Final = 100
TIMES: Final = 10
# Fingerprints that are removed in one transaction.
SWEPT: Final = 5000
# Contents that are read at a time.
STEP: Final = 1000


def due(fitted_on: int, contents: int) -> bool:
    """Whether the table of a generation is too small by now.

    >>> due(0, 99), due(0, 100), due(120, 999), due(120, 1000), due(1200, 9999)
    (False, True, False, True, False)
    """
    step = FIRST
    while step <= fitted_on:
        step *= TIMES
    return contents >= step


def grow(shelf: Shelf) -> None:
    """Make a new generation of each kind that has grown out of its own."""
    for name in KINDS:
        if KINDS.part(name).fitted:
            live = shelf.lives[name]
            # The index has one entry for each content with information: counting rows would read all.
            if due(live.generation.documents, len(live.index)):
                refit(shelf, name)


def refit(shelf: Shelf, name: str) -> None:
    """Fit the scheme of a kind on what is stored, and make all fingerprints anew."""
    kind = kind_of(name)
    scheme = kind.scheme()
    if kind.fitted:
        texts = (_texts(shelf, part) for part in _parts(shelf, name))
        scheme = fit_batches(scheme, texts)
    _swap(shelf, name, scheme)


def remake(shelf: Shelf, name: str) -> None:
    """Make all fingerprints of a kind anew with the scheme that it has."""
    _swap(shelf, name, shelf.lives[name].scheme)


def _parts(shelf: Shelf, name: str) -> Iterator[list[Content]]:
    part: list[Content] = []
    for row in shelf.store.scan(CONTENTS, where="kind = ?", values=[name]):
        part.append(row)
        if len(part) == STEP:
            yield part
            part = []
    if part:
        yield part


def _texts(shelf: Shelf, rows: list[Content]) -> Any:
    return pa.array([shelf.data(row) for row in rows], pa.large_binary()).cast(pa.large_string())


def _swap(shelf: Shelf, name: str, scheme: Scheme) -> None:
    """Make the fingerprints of a new generation aside, then take it into use in one transaction."""
    store, kind, old = shelf.store, kind_of(name), shelf.lives[name]
    documents = 0 if scheme.frequencies is None else scheme.frequencies.documents
    with store.write(shelf.now) as writing:
        number = writing.next()
        write_scheme(writing, scheme)
        made = Generation(number, name, scheme.digest, documents, 0, writing.state.change)
        writing.insert(GENERATIONS, made)
    for rows in _parts(shelf, name):
        prints = kind.prints(scheme, [shelf.data(row) for row in rows])
        with store.write(shelf.now) as writing:
            for row, words in zip(rows, prints, strict=True):
                for part, one in enumerate(words):
                    writing.insert(PRINTS, Print(number, row.number, part, one))
    with store.write(shelf.now) as writing:
        change = writing.log("generation", of=name, scheme=scheme.digest, documents=documents)
        live = made._replace(live=1, change=change)
        writing.replace(GENERATIONS, live)
        writing.replace(GENERATIONS, old.generation._replace(live=0))
    shelf.lives[name] = LiveIndex(store, kind, live, scheme, shelf.similarity(name))
    sweep(shelf)


def sweep(shelf: Shelf) -> None:
    """Remove what no generation in use needs: that of one that was replaced, or never finished."""
    store = shelf.store
    dead = store.rows(GENERATIONS, "live = 0", ())
    used = {one.generation.digest for one in shelf.lives.values()}
    for row in dead:
        rest = True
        while rest:
            with store.write(shelf.now) as writing:
                found = store.rows(PRINTS, "generation = ?", [row.number], f"LIMIT {SWEPT}")
                writing.drop(PRINTS, found)
                rest = len(found) == SWEPT
        with store.write(shelf.now) as writing:
            writing.delete(GENERATIONS, row.number)
            if row.digest not in used:
                forget_scheme(store, writing, row.digest)
    if dead:
        sweep_files(store, [one.generation.number for one in shelf.lives.values()])
