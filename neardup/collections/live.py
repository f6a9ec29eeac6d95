"""The live index: the fingerprints of what is stored, in step with the log of the store.

A file of it beside the store, mapped when the store is opened, saves reading every fingerprint; it is only a
copy, found by the change that it was made at, and what is newer comes from the log. Without it, or where it
does not fit, the index is made from the rows.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

import numpy as np
import numpy.typing as npt

from neardup.collections.kinds import Kind, words_of
from neardup.errors import NeardupError
from neardup.fingerprints import Fingerprints
from neardup.index import Index
from neardup.schemes import Scheme
from neardup.store import CHANGES, PRINTS, Generation, Store

# A new file is written when this many contents came since the last one, and a quarter of all.
MANY: Final = 20_000
_FILE: Final = re.compile(r"([0-9]+)-([0-9]+)-([0-9a-f]{32})\.ndx")
FOLDER: Final = "index"


class LiveIndex:
    """The fingerprints of one generation."""

    def __init__(
        self, store: Store, kind: Kind, generation: Generation, scheme: Scheme, similarity: float
    ) -> None:
        self.kind, self.generation, self.scheme = kind, generation, scheme
        self.radius = kind.radius(scheme, similarity)
        self._folder = os.path.join(store.name, FOLDER)
        self._saved = 0
        self.index, since = self._load(store)
        if since < store.state.change:
            self.replay(store, {change.content for change in store.changes(since) if change.content})

    def replay(self, store: Store, contents: Iterable[int]) -> None:
        """See what became of *contents*: their fingerprints as they are now, or that they are gone."""
        touched = sorted(contents)
        if not touched:
            return
        rows = store.find(
            PRINTS, "content", touched, where="generation = ?", with_values=[self.generation.number]
        )
        self.set(touched, [(row.content, row.words) for row in rows])

    def set(self, touched: Iterable[int], prints: Iterable[tuple[int, bytes]]) -> None:
        """Let *touched* contents have these *prints* and no others."""
        held = list(prints)
        if touched:
            self.index.remove(np.array(sorted(touched), dtype=np.int64))
        if held:
            words = words_of([words for _, words in held], self.scheme.bits)
            self.index.add(np.array([number for number, _ in held], dtype=np.int64), words)

    def near(
        self, prints: Fingerprints, rows: npt.NDArray[np.int64], count: int
    ) -> list[list[tuple[int, int]]]:
        """For each of *count* questions, to which the *rows* of *prints* belong: (distance, content)."""
        best: list[dict[int, int]] = [{} for _ in range(count)]
        asked = Fingerprints(prints.words, bits=prints.bits, valid=prints.valid)
        for row, content, distance in self.index.search(asked, self.radius):
            own = best[int(rows[row])]
            own[content] = min(distance, own.get(content, distance))
        return [sorted((distance, content) for content, distance in own.items()) for own in best]

    def nearest(
        self, prints: Fingerprints, rows: npt.NDArray[np.int64], count: int, n: int
    ) -> list[list[tuple[int, int]]]:
        """The same of the *n* nearest, at any distance."""
        best: list[dict[int, int]] = [{} for _ in range(count)]
        asked = Fingerprints(prints.words, bits=prints.bits, valid=prints.valid)
        for row, content, distance in self.index.nearest(asked, n):
            own = best[int(rows[row])]
            own[content] = min(distance, own.get(content, distance))
        return [sorted((distance, content) for content, distance in own.items())[:n] for own in best]

    # --- the file -----------------------------------------------------------------------------------------

    def _load(self, store: Store) -> tuple[Index, int]:
        """The index of the newest file that fits, and its change; or that of all rows."""
        for change, name in sorted(self._files(), reverse=True):
            match = _FILE.fullmatch(name)
            assert match is not None
            with suppress(NeardupError, OSError):
                if change and store.need(CHANGES, change).chain.hex() != match[3]:
                    continue
                index = Index.load(os.path.join(self._folder, name))
                if index.bits == self.scheme.bits and index.radius == self.radius:
                    self._saved = change
                    return index, change
        index = Index(self.scheme.bits, self.radius)
        self.index = index
        held: list[tuple[int, bytes]] = []
        for row in store.scan(PRINTS, by="content", where="generation = ?", values=[self.generation.number]):
            held.append((row.content, row.words))
            if len(held) >= 100_000:
                self.set((), held)
                held = []
        self.set((), held)
        return index, store.state.change

    def _files(self) -> list[tuple[int, str]]:
        """The files of this generation: the change of each, and its name."""
        try:
            names = os.listdir(self._folder)
        except OSError:
            return []
        found = [(match, name) for name in names if (match := _FILE.fullmatch(name)) is not None]
        return [(int(match[2]), name) for match, name in found if int(match[1]) == self.generation.number]

    def save(self, store: Store) -> None:
        """Write a file of it, if enough is new; the two newest stay. Call it in the writer only."""
        since = store.state.change - self._saved
        if since < MANY or since * 4 < len(self.index):
            return
        name = f"{self.generation.number}-{store.state.change}-{store.state.chain.hex()}.ndx"
        with suppress(OSError, NeardupError):  # it is only a copy: a full disk must not stop the writer
            os.makedirs(self._folder, exist_ok=True)
            self.index.save(os.path.join(self._folder, name))
            self._saved = store.state.change
            for _, old in sorted(self._files(), reverse=True)[2:]:
                os.unlink(os.path.join(self._folder, old))


def sweep(store: Store, live: Iterable[int]) -> None:
    """Remove the files of generations that are not *live*."""
    wanted, folder = set(live), os.path.join(store.name, FOLDER)
    with suppress(OSError):
        for name in os.listdir(folder):
            match = _FILE.fullmatch(name)
            if match is not None and int(match[1]) not in wanted:
                with suppress(OSError):
                    os.unlink(os.path.join(folder, name))
