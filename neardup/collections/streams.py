"""A stream: was something like this here before, and how often? In memory, or in a collection.

The first document of its kind leads; what is near it counts for it. A document that is near a leader does not
become one itself, so a chain of small changes ends where it is too far from where it began.
"""

from __future__ import annotations

from dataclasses import dataclass
from threading import RLock
from typing import Any, Final

import numpy as np

from neardup.checks import check_share, check_text, whole
from neardup.collections.banks import MAIN, check_bank
from neardup.collections.collection import Collection
from neardup.collections.documents import Unfit, check_id
from neardup.collections.kinds import Kept, Texts, compressed, decompressed, kept_text
from neardup.errors import InvalidType, InvalidValue, shown
from neardup.fingerprints import Fingerprints
from neardup.index import Index

NEW, NEAR, USED = "new", "near", "budget used"
# The field of a leader in a collection that says how many were near it.
COUNT: Final = "near"
# So many of the nearest leaders are measured.
MOST: Final = 32


@dataclass(frozen=True, slots=True)
class Seen:
    """What a stream says of one document."""

    status: str
    """new, near (to a leader), or budget used (so many were near that leader that this one is too many)."""
    leader: str
    """The id of the leader: its own if it is new."""
    count: int
    """How many documents were near that leader, this one included."""
    distance: int = 0
    similarity: float = 1.0
    """Measured on the texts; 1.0 for a radius, where nothing is measured."""

    def __bool__(self) -> bool:
        """Whether to let it pass: it is new, or the budget of its leader is not used up."""
        return self.status != USED


@dataclass(slots=True)
class _Leader:
    """A leader in memory."""

    number: int
    size: int
    data: bytes
    prints: list[bytes]
    count: int = 0


class Stream:
    """Documents that come one by one, each compared with the leaders of all that came before.

    With *similarity* near texts are measured and judged; with *radius* only fingerprints of 256 bits decide.
    *budget* is how many documents may be near a leader. With *collection* the leaders are in one of its
    banks, on disk; otherwise in memory, as long as this object lives.

    >>> seen = Stream(budget=1)
    >>> text = "The council approved the plan for the new bridge on Monday evening."
    >>> seen.check("a", text).status
    'new'
    >>> seen.check("b", text.replace("evening", "night")).leader
    'a'
    >>> seen.check("c", text).status, seen.count("a")
    ('budget used', 2)
    """

    def __init__(
        self,
        *,
        similarity: float | None = None,
        radius: int | None = None,
        budget: int | None = None,
        collection: Collection | None = None,
        bank: str = MAIN,
    ) -> None:
        """An empty stream, or the leaders in that *bank* of *collection*."""
        if similarity is not None and radius is not None:
            raise InvalidValue("choose one of similarity and radius")
        if collection is not None and not isinstance(collection, Collection):
            raise InvalidType(f"collection must be a Collection, not {shown(collection)}")
        if collection is not None and (similarity is not None or radius is not None):
            raise InvalidValue("a collection has a similarity of its own; leave similarity and radius out")
        self._kind = Texts()
        self._scheme = self._kind.scheme()
        self._similarity = self._kind.least if similarity is None else check_share("similarity", similarity)
        self._measured = radius is None
        self._radius = (
            self._kind.radius(self._scheme, self._similarity)
            if radius is None
            else whole("radius", radius, 0, self._scheme.bits)
        )
        self._budget = None if budget is None else whole("budget", budget, 0)
        self._collection, self._bank = collection, check_bank(bank)
        self._index = Index(self._scheme.bits, self._radius)
        self._leaders: dict[str, _Leader] = {}
        self._names: dict[int, str] = {}
        self._number = 0
        self._lock = RLock()

    def check(self, id: str, text: str) -> Seen:
        """Whether *text* is new or near a leader, and for how many that leader has been counted."""
        name = _id(id)
        check_text("text", text)
        with self._lock:
            return self._in_memory(name, text) if self._collection is None else self._on_disk(name, text)

    def count(self, id: str) -> int:
        """How many documents were near the leader with that id; 0 if it is none."""
        name = _id(id)
        with self._lock:
            if self._collection is not None:
                return (
                    int(self._collection.get(name)["fields"].get(COUNT, 0)) if name in self._collection else 0
                )
            return self._leaders[name].count if name in self._leaders else 0

    def forget(self, id: str) -> bool:
        """Remove a leader; what was near it may lead from now on. Whether there was one."""
        name = _id(id)
        with self._lock:
            if self._collection is not None:
                return bool(self._collection.remove([name]))
            gone = self._leaders.pop(name, None)
            if gone is not None:
                self._index.remove([gone.number])
                del self._names[gone.number]
            return gone is not None

    def __len__(self) -> int:
        """How many leaders there are."""
        with self._lock:
            return len(self._leaders) if self._collection is None else len(self._collection)

    # --- in memory ----------------------------------------------------------------------------------------

    def _in_memory(self, name: str, text: str) -> Seen:
        kept = kept_text(text)
        prints = self._kind.prints(self._scheme, [kept.data])[0]
        best = self._nearest(kept, prints)
        if best is not None:
            leader, distance, similarity = best
            own = self._leaders[leader]
            if leader != name:
                own.count += 1
            return self._said(leader, own.count, distance, similarity)
        if name in self._leaders:
            self.forget(name)
        self._number += 1
        data = compressed(kept.data) if self._measured else b""
        self._leaders[name] = _Leader(self._number, len(kept.data), data, prints)
        self._names[self._number] = name
        if prints:
            words = np.frombuffer(prints[0], dtype="<u8").astype(np.uint64)[None]
            self._index.add([self._number], Fingerprints(words, bits=self._scheme.bits))
        return Seen(NEW, name, 0)

    def _nearest(self, kept: Kept, prints: list[bytes]) -> tuple[str, int, float] | None:
        """The leader that a text is near: its id, the distance, the similarity."""
        if not prints:
            return None
        near = self._index.search_one(int.from_bytes(prints[0], "little"))[:MOST]
        if not near:
            return None
        if not self._measured:
            number, distance = near[0]
            return self._names[number], distance, 1.0
        names = [self._names[number] for number, _ in near]
        held = [self._leaders[name] for name in names]
        data = [decompressed(one.data, one.size) for one in held]
        judged = self._kind.judge(
            kept.data, data, [one.prints for one in held], self._scheme, self._similarity
        )
        accepted = [
            (-one.similarity, distance, number)
            for one, (number, distance) in zip(judged, near, strict=True)
            if one.accepted
        ]
        if not accepted:
            return None
        similarity, distance, number = min(accepted)
        return self._names[number], distance, -similarity / 10_000

    def _said(self, leader: str, count: int, distance: int, similarity: float) -> Seen:
        used = self._budget is not None and count > self._budget
        return Seen(USED if used else NEAR, leader, count, distance, similarity)

    # --- in a collection ----------------------------------------------------------------------------------

    def _on_disk(self, name: str, text: str) -> Seen:
        collection: Any = self._collection
        there = {row["bank"] for row in collection.banks()}
        found = collection.search(text=text, banks=[self._bank], limit=1) if self._bank in there else []
        if not found:
            collection.add([{"id": name, "text": text}], bank=self._bank, near="none")
            return Seen(NEW, name, 0)
        best = found[0]
        count = int(best.fields.get(COUNT, 0)) + (best.id != name)
        if best.id != name:
            collection.update(best.id, fields={COUNT: count})
        return self._said(best.id, count, best.distance, best.similarity)


def _id(id: Any) -> str:
    try:
        return check_id(id)
    except Unfit as fault:
        raise InvalidValue(f"a document: {fault}") from None
