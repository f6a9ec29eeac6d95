"""The shelf: a store with its live indexes, and what is near a question among what it holds.

A fingerprint proposes, the stored contents decide. A question is judged against the nearest contents that
some document still has, whichever banks were chosen: the choice says what is shown, not what is true.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from neardup.collections import banks
from neardup.collections.kinds import (
    KINDS,
    Judged,
    Kept,
    Kind,
    checked_similarity,
    decompressed,
    fingerprint_distance,
    kind_of,
)
from neardup.collections.live import LiveIndex
from neardup.collections.matches import NOT_VERIFIED, Match
from neardup.collections.verdicts import DIFFERENT, SAME, said_of, words_for
from neardup.distances import similarity as estimate
from neardup.schemes import Scheme
from neardup.schemes.files import from_bytes, to_bytes
from neardup.store import (
    BANKS,
    CONTENTS,
    DOCUMENTS,
    GENERATIONS,
    PIECES,
    PRINTS,
    Bank,
    Content,
    Document,
    Generation,
    Piece,
    Store,
    Writing,
)
from neardup.verifiers import WHOLE

# So many of the nearest contents are measured for one question.
NEAREST: Final = 32
# So many documents are told of one content.
SHOWN: Final = 100
PIECE: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Question:
    """One content in question, and what may be near it: (distance, content), near first."""

    kept: Kept
    near: list[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Seen:
    """A stored content that was measured against the one in question."""

    content: Content
    distance: int
    judged: Judged
    documents: list[Document]
    """Those that may be shown."""


class Shelf:
    """A store, open for questions."""

    def __init__(self, store: Store, clock: Callable[[], float]) -> None:
        self.store, self._clock = store, clock
        self.banks: dict[str, Bank] = {}
        self.lives: dict[str, LiveIndex] = {}
        self._fresh: Any = None
        self._seen = 0
        self._load()

    def _load(self) -> None:
        """Read everything anew."""
        with self.store.base.reading():
            fresh = self.store.base.fresh()
            self.store.refresh()
            self.banks = {row.name: row for row in self.store.scan_all(BANKS)}
            self.lives = {}
            for row in self.store.rows(GENERATIONS, "live = 1", ()):
                kind = kind_of(row.kind)
                least = checked_similarity(self.store.settings, kind)
                scheme = read_scheme(self.store, row.digest)
                self.lives[row.kind] = LiveIndex(self.store, kind, row, scheme, least)
            held = sum(len(live.index) for live in self.lives.values())
            if held != self.store.state.prints and not self.store.rows(GENERATIONS, "live = 0", ()):
                raise self.store.damaged(
                    f"it has {self.store.state.prints:,} fingerprints, and {held:,} are found"
                )
            self._fresh, self._seen = fresh, self.store.state.change

    def refresh(self) -> None:
        """See what another process wrote since the last look."""
        store = self.store
        if not store.base.read_only:
            if not store.sure:
                self._load()
                store.sure = True
            return
        with store.base.reading():
            fresh = store.base.fresh()
            if fresh == self._fresh:
                return
            store.refresh()
            touched, again = set(), False
            # After the last change that was seen whole: a look that was interrupted does not count.
            for change in store.changes(self._seen):
                again |= change.kind in ("generation", "bank")
                if change.content:
                    touched.add(change.content)
            if again:
                self._load()
                return
            for live in self.lives.values():
                live.replay(store, touched)
            self._fresh, self._seen = fresh, store.state.change

    @property
    def now(self) -> int:
        """The moment: no clock that goes back brings back what has expired."""
        return max(int(self._clock()), self.store.state.at)

    @property
    def behind(self) -> int:
        """How many seconds the clock is behind the last write; time stands still meanwhile."""
        return max(0, self.store.state.at - int(self._clock()))

    def similarity(self, kind: str) -> float:
        """The least similarity of near contents."""
        return checked_similarity(self.store.settings, KINDS.part(kind))

    # --- contents -----------------------------------------------------------------------------------------

    def data(self, content: Content) -> bytes:
        """The bytes of a content."""
        return decompressed(content.data, content.size)

    def prints(self, kind: str, numbers: Iterable[int]) -> dict[int, list[bytes]]:
        """The fingerprints of contents, in the generation in use."""
        live = self.lives[kind]
        wanted = list(numbers)
        found: dict[int, list[bytes]] = {number: [] for number in wanted}
        for row in self.store.find(
            PRINTS, "content", wanted, where="generation = ?", with_values=[live.generation.number]
        ):
            found[row.content].append(row.words)
        return found

    def visible(self, content: int, chosen: Iterable[str] | None, now: int, most: int) -> list[Document]:
        """The first documents of a content that have not expired, of the *chosen* banks or of all."""
        where, values = "content = ? AND (expires IS NULL OR expires > ?)", [content, now]
        if chosen is not None:
            names = sorted(chosen)
            where += f" AND bank IN ({', '.join('?' * len(names))})" if names else " AND 1 = 0"
            values += names  # type: ignore[arg-type]
        return self.store.rows(DOCUMENTS, where, values, f"ORDER BY number LIMIT {most}")

    # --- questions ----------------------------------------------------------------------------------------

    def questions(self, kind: Kind, kept: list[Kept]) -> list[Question]:
        """What may be near each of some contents of one kind."""
        live = self.lives[kind.name]
        prints, rows = kind.questions(live.scheme, [one.data for one in kept])
        near = live.near(prints, rows, len(kept))
        return [Question(one, found) for one, found in zip(kept, near, strict=True)]

    def look(
        self,
        question: Question,
        *,
        chosen: frozenset[str],
        now: int,
        coming: bool = False,
        leave: str | None = None,
        most: int = NEAREST,
    ) -> list[Seen]:
        """The contents near a question, measured, with the documents of the *chosen* banks; near ones first.

        With *coming* some contents are not stored yet, or not any more. The document with the id *leave* is
        not told.
        """
        store, kind = self.store, kind_of(question.kept.kind)
        said = said_of(store, question.kept.digest)
        near = {number: distance for distance, number in question.near}
        with_it = [one for one, row in said.items() if row.verdict == SAME] + [question.kept.digest]
        bits = self.lives[kind.name].scheme.bits
        for row in store.find(CONTENTS, "digest", with_it):
            same = row.digest == question.kept.digest
            near[row.number] = -1 if same else near.get(row.number, bits)
        known: list[tuple[int, Content, list[Document]]] = []
        for number, distance in sorted(near.items(), key=lambda one: (one[1], one[0])):
            content = store.get(CONTENTS, number)
            if content is None or content.kind != kind.name:
                if coming:
                    continue
                content = store.need(CONTENTS, number)
            self._check(content, question.kept, distance)
            documents = self.visible(number, chosen, now, SHOWN + 1)
            shown = [row for row in documents if row.id != leave]
            if not shown:
                others = self.visible(number, None, now, 2)
                if not [row for row in others if row.id != leave]:
                    continue
            known.append((max(distance, 0), content, shown))
            if len(known) == most:
                break
        return self._judged(question, kind, known, said)

    def _check(self, content: Content, kept: Kept, distance: int) -> None:
        """Raise if an index of the database hides what the rows say: rows alone carry checksums."""
        if content.digest == kept.digest and distance >= 0:
            raise self.store.damaged(f"content {content.number} is not found by its digest")
        # Of a flood not all are counted: that would cost its square.
        most = SHOWN + 1
        found = len(self.store.rows(DOCUMENTS, "content = ?", [content.number], f"LIMIT {most}"))
        if found != min(content.uses, most):
            raise self.store.damaged(
                f"content {content.number} has {content.uses:,} documents, and {found} are found"
            )

    def _judged(
        self,
        question: Question,
        kind: Kind,
        known: list[tuple[int, Content, list[Document]]],
        said: Mapping[bytes, Any],
    ) -> list[Seen]:
        live = self.lives[kind.name]
        same = Judged(WHOLE, WHOLE, WHOLE, True, kind.content.identical)
        others = [row for _, row, _ in known if row.digest != question.kept.digest]
        judged: dict[int, Judged] = {row.number: same for _, row, _ in known}
        if others:
            prints = self.prints(kind.name, [row.number for row in others])
            found = kind.judge(
                question.kept.data,
                [self.data(row) for row in others],
                [prints[row.number] for row in others],
                live.scheme,
                self.similarity(kind.name),
            )
            judged |= {row.number: one for row, one in zip(others, found, strict=True)}
        seen = []
        for distance, content, documents in known:
            one = judged[content.number]
            verdict = said.get(content.digest)
            if verdict is not None:
                if verdict.verdict == DIFFERENT:
                    continue
                accepted = verdict.verdict == SAME
                one = Judged(one.similarity, one.weighted, one.rare, accepted, words_for(verdict))
            seen.append(Seen(content, distance, one, documents))
        return sorted(
            seen,
            key=lambda one: (
                not one.judged.accepted,
                -one.judged.similarity,
                one.distance,
                one.content.number,
            ),
        )

    def shown(self, seen: Iterable[Seen], now: int, *, rejected: bool, most: int) -> list[Match]:
        """What was seen, document by document; what a bank suppresses is left out."""
        found = [one for one in seen if one.judged.accepted or rejected]
        hiding = {name for name, bank in self.banks.items() if bank.enabled and bank.suppresses != "[]"}
        gone: frozenset[str] = frozenset()
        if hiding:
            met = {
                row.bank: row
                for one in found
                if one.judged.accepted
                for name in hiding
                for row in self.visible(one.content.number, [name], now, 1)
            }
            gone = banks.suppressed(met, self.banks)
        matches: list[Match] = []
        for one in found:
            for row in one.documents:
                if row.bank not in gone and len(matches) < most:
                    matches.append(match_of(one, row))
        return matches

    def pair(self, one: Content, other: Content) -> Seen:
        """Two stored contents, measured as if nothing else were stored."""
        kind = kind_of(one.kind)
        prints = self.prints(kind.name, [one.number, other.number])
        live = self.lives[kind.name]
        if one.digest == other.digest:
            return Seen(other, 0, Judged(WHOLE, WHOLE, WHOLE, True, kind.content.identical), [])
        judged = kind.judge(
            self.data(one),
            [self.data(other)],
            [prints[other.number]],
            live.scheme,
            self.similarity(kind.name),
        )[0]
        verdict = said_of(self.store, one.digest).get(other.digest)
        if verdict is not None:
            accepted = verdict.verdict == SAME
            judged = Judged(judged.similarity, judged.weighted, judged.rare, accepted, words_for(verdict))
        distance = fingerprint_distance(prints[one.number], prints[other.number], live.scheme.bits)
        return Seen(other, distance, judged, [])

    def by_print(self, value: Any, kind: Kind, chosen: frozenset[str], most: int) -> list[Match]:
        """What is near a fingerprint that was given: nothing can be measured."""
        live, now = self.lives[kind.name], self.now
        found: list[Match] = []
        for content, distance in live.index.search_one(value):
            row = self.store.need(CONTENTS, content)
            for document in self.visible(content, chosen, now, SHOWN):
                figure = round(estimate(distance, live.scheme.bits), 4)
                judged = Judged(round(figure * WHOLE), 0, 0, False, NOT_VERIFIED)
                found.append(match_of(Seen(row, distance, judged, []), document, verified=False))
                if len(found) >= most:
                    return found
        return found


def match_of(one: Seen, row: Document, *, verified: bool = True) -> Match:
    """A match with one document of a content."""
    judged = one.judged
    return Match(
        id=row.id,
        bank=row.bank,
        distance=one.distance,
        similarity=judged.similarity / WHOLE,
        weighted=judged.weighted / WHOLE,
        rare=judged.rare / WHOLE,
        accepted=judged.accepted,
        reason=judged.reason,
        verified=verified,
        cluster=one.content.cluster,
        fields=json.loads(row.fields),
    )


# --- schemes ---------------------------------------------------------------------------------------------


def write_scheme(writing: Writing, scheme: Scheme) -> None:
    """Keep a scheme, with its table, in the store."""
    data = to_bytes(scheme)
    for part, at in enumerate(range(0, len(data), PIECE)):
        writing.put(PIECES, Piece(f"scheme/{scheme.digest}", part, data[at : at + PIECE]))


def read_scheme(store: Store, digest: str) -> Scheme:
    """The scheme with that digest."""
    parts = sorted(store.find(PIECES, "name", [f"scheme/{digest}"]), key=lambda row: row.part)
    if not parts:
        raise store.damaged(f"its scheme {digest} is missing")
    return from_bytes(b"".join(row.data for row in parts), what=f"the scheme {digest} of {store.name!r}")


def forget_scheme(store: Store, writing: Writing, digest: str) -> None:
    """Remove a scheme from the store."""
    for row in store.find(PIECES, "name", [f"scheme/{digest}"]):
        writing.delete(PIECES, row.name, row.part)


def first_generations(writing: Writing) -> None:
    """Begin with the scheme of each kind as it is."""
    for name in KINDS:
        scheme = KINDS.part(name).scheme()
        write_scheme(writing, scheme)
        change = writing.log("generation", of=name, scheme=scheme.digest, documents=0)
        writing.insert(GENERATIONS, Generation(writing.next(), name, scheme.digest, 0, 1, change))
