"""Adding: documents that come into a collection, one after the other, within one transaction.

Adding many at once gives the answers of adding each by itself: a document sees all that came before it, in
the store and in the same call.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from neardup.collections.clusters import keeper_for, kept_by, place_again
from neardup.collections.documents import Given
from neardup.collections.kinds import Kept, compressed, kind_of, words_of
from neardup.collections.matches import (
    BAD,
    IDENTICAL,
    NEAR,
    NEW,
    SILENT,
    UNCHANGED,
    UPDATED,
    Answer,
    Match,
)
from neardup.collections.shelves import Question, Seen, Shelf
from neardup.index import Index
from neardup.store import (
    CONTENTS,
    DOCUMENTS,
    EVIDENCE,
    PRINTS,
    Content,
    Document,
    Evidence,
    Print,
    Writing,
)
from neardup.verifiers import WHOLE

TELL, SKIP, NONE = "tell", "skip", "none"
WAYS: Final = (TELL, SKIP, NONE)
MATCHES: Final = 20


class Adding:
    """One transaction of documents that come or go."""

    def __init__(
        self,
        shelf: Shelf,
        writing: Writing,
        bank: str,
        near: str,
        expires: int | None,
        chosen: frozenset[str],
    ) -> None:
        self._shelf, self._writing, self._store = shelf, writing, shelf.store
        self._bank, self._near, self._expires, self._chosen = bank, near, expires, chosen
        self._contents: dict[bytes, Content] = {}
        self._documents: dict[str, Document] = {}
        self._new: dict[str, Index] = {}  # of each kind, what came in this transaction
        self._prints: dict[int, list[bytes]] = {}  # of what came in it
        self._numbers: dict[bytes, int] = {}  # of contents that come in it
        self._gone: set[int] = set()
        self._touched: dict[str, set[int]] = {}
        self._homeless: set[int] = set()

    # --- what comes ---------------------------------------------------------------------------------------

    def add(self, given: Sequence[Given]) -> list[Answer]:
        """Store some documents; what became of each."""
        good = [one for one in given if one.kept is not None]
        for row in self._store.find(DOCUMENTS, "id", dict.fromkeys(one.id for one in good)):
            self._documents[row.id] = row
        kept = {one.kept.digest: one.kept for one in good if one.kept is not None}
        for content in self._store.find(CONTENTS, "digest", kept):
            self._contents[content.digest] = content
        prints, questions = self._looked(kept)
        return [self._one(one, prints, questions) for one in given]

    def _looked(self, kept: Mapping[bytes, Kept]) -> tuple[dict[bytes, list[bytes]], dict[bytes, Question]]:
        """The fingerprints of contents that are not stored, and what is near all of them."""
        prints: dict[bytes, list[bytes]] = {}
        questions: dict[bytes, Question] = {}
        for name in sorted({one.kind for one in kept.values()}):
            kind, live = kind_of(name), self._shelf.lives[name]
            own = [one for one in kept.values() if one.kind == name]
            new = [one for one in own if one.digest not in self._contents]
            if new:
                made = kind.prints(live.scheme, [one.data for one in new])
                prints |= {one.digest: rows for one, rows in zip(new, made, strict=True)}
            if self._near == NONE:
                continue
            asked, rows = kind.questions(live.scheme, [one.data for one in own])
            near = live.near(asked, rows, len(own))
            # What came in this transaction, or comes in this call before it.
            index = self._new.setdefault(name, Index(live.scheme.bits, live.radius))
            self._questions_in_call(own, prints)
            mates: list[list[tuple[int, int]]] = [[] for _ in own]
            for row, number, distance in index.search(asked):
                mates[int(rows[row])].append((distance, number))
            for one, old, more in zip(own, near, mates, strict=True):
                best: dict[int, int] = {}
                for distance, number in [*old, *more]:
                    best[number] = min(distance, best.get(number, distance))
                questions[one.digest] = Question(one, sorted((far, number) for number, far in best.items()))
        return prints, questions

    def _questions_in_call(self, own: Sequence[Kept], prints: Mapping[bytes, list[bytes]]) -> None:
        """Give the new contents of this call their numbers, so that the others find them."""
        for one in own:
            if one.digest in prints:
                number = self._number(one.digest)
                if prints[one.digest]:
                    words = words_of(prints[one.digest], self._shelf.lives[one.kind].scheme.bits)
                    ids = np.full(len(prints[one.digest]), number, dtype=np.int64)
                    self._new[one.kind].add(ids, words)

    def _number(self, digest: bytes) -> int:
        if digest not in self._numbers:
            self._numbers[digest] = self._writing.next()
        return self._numbers[digest]

    def _one(
        self, given: Given, prints: Mapping[bytes, list[bytes]], questions: Mapping[bytes, Question]
    ) -> Answer:
        if given.kept is None:
            return Answer(given.id, BAD, False, reason=given.fault or "")
        kept, old = given.kept, self._documents.get(given.id)
        if old is not None and old.bank != self._bank and not self._expired(old):
            reason = f"its id is in bank {old.bank!r} already; remove it there, or give it another id"
            return Answer(given.id, BAD, False, reason=reason)
        said = json.dumps(given.fields, sort_keys=True).encode()
        content = self._contents.get(kept.digest)
        if (
            old is not None
            and content is not None
            and old.content == content.number
            and not self._expired(old)
        ):
            return self._again(old, content, said)
        seen: list[Seen] = []
        if kept.digest in questions:
            seen = self._shelf.look(
                questions[kept.digest],
                chosen=self._chosen,
                now=self._writing.now,
                coming=True,
                leave=given.id,
            )
        matches = tuple(self._shelf.shown(seen, self._writing.now, rejected=False, most=MATCHES))
        status = self._status(seen, matches, kept, prints)
        fresh = old is None or self._expired(old)
        if self._near == SKIP and status in (IDENTICAL, NEAR) and fresh:
            return Answer(given.id, status, False, matches[0].cluster, matches)
        number = self._writing.next() if old is None else old.number
        if old is not None:
            # Its old content goes after the new one is there, in case they share a cluster.
            self._writing.delete(DOCUMENTS, old.number)
        content = self._stored(kept, prints, seen)
        change = self._writing.log(
            "add" if old is None else "update",
            document=number,
            content=content.number,
            id=given.id,
            bank=self._bank,
            status=status,
            cluster=content.cluster,
        )
        row = Document(
            number, given.id, self._bank, content.number, said, self._writing.now, self._expires, change
        )
        self._writing.insert(DOCUMENTS, row)
        self._documents[given.id] = row
        if old is not None:
            self.release(old.content)
            self.settle()
            content = self._contents.get(kept.digest, content)
            status = UPDATED if not self._expired(old) else status
        return Answer(given.id, status, True, content.cluster, matches)

    def _expired(self, row: Document) -> bool:
        return row.expires is not None and row.expires <= self._writing.now

    def _again(self, old: Document, content: Content, said: bytes) -> Answer:
        """The same id with the same content: its fields and its time may be new."""
        expires = old.expires if self._expires is None else self._expires
        if old.fields == said and old.expires == expires:
            return Answer(old.id, UNCHANGED, True, content.cluster)
        kind = "touch" if old.fields == said else "update"
        change = self._writing.log(kind, document=old.number, id=old.id, bank=old.bank)
        row = old._replace(fields=said, expires=expires, change=change)
        self._writing.replace(DOCUMENTS, row)
        self._documents[old.id] = row
        return Answer(old.id, UNCHANGED if kind == "touch" else UPDATED, True, content.cluster)

    def _status(
        self,
        seen: Sequence[Seen],
        matches: Sequence[Match],
        kept: Kept,
        prints: Mapping[bytes, list[bytes]],
    ) -> str:
        same = {row.id for one in seen if one.content.digest == kept.digest for row in one.documents}
        if any(match.id in same for match in matches):
            return IDENTICAL
        if kept.digest in prints and not prints[kept.digest]:
            return SILENT
        return NEAR if matches else NEW

    def _stored(self, kept: Kept, prints: Mapping[bytes, list[bytes]], seen: Sequence[Seen]) -> Content:
        """The content, with one use more."""
        content = self._contents.get(kept.digest)
        if content is not None:
            content = content._replace(uses=content.uses + 1)
            self._writing.replace(CONTENTS, content)
            self._contents[kept.digest] = content
            return content
        writing, number, live = self._writing, self._number(kept.digest), self._shelf.lives[kept.kind]
        change = writing.state.change + 1  # that of the document's own entry
        pairs = []
        for one in seen:
            low, high = sorted((number, one.content.number))
            judged = one.judged
            row = Evidence(
                low, high, one.distance, judged.similarity, judged.weighted, judged.rare,
                int(judged.accepted), judged.reason, live.generation.number, change,
            )  # fmt: skip
            if judged.accepted or judged.similarity >= self._shelf.similarity(kept.kind) * WHOLE:
                writing.insert(EVIDENCE, row)
            pairs.append((row, one.content))
        keeper = keeper_for(self._store, kept.digest, pairs)
        cluster, keeps = (writing.next(), number) if keeper is None else (keeper.cluster, keeper.number)
        content = Content(
            number, kept.kind, kept.digest, len(kept.data), compressed(kept.data), 1, cluster, keeps, change
        )
        writing.insert(CONTENTS, content)
        own = prints.get(kept.digest)
        if own is None:  # it was stored when this call began, and went meanwhile
            own = kind_of(kept.kind).prints(live.scheme, [kept.data])[0]
            if own and kept.kind in self._new:
                words = words_of(own, live.scheme.bits)
                self._new[kept.kind].add(np.full(len(own), number, dtype=np.int64), words)
        for part, words_ in enumerate(own):
            writing.insert(PRINTS, Print(live.generation.number, number, part, words_))
        self._contents[kept.digest] = content
        self._prints[number] = own
        self._touched.setdefault(kept.kind, set()).add(number)
        return content

    # --- what goes ----------------------------------------------------------------------------------------

    def release(self, number: int) -> int:
        """One document less has this content; the number of the content if it goes, or 0."""
        row: Content = self._store.need(CONTENTS, number)
        if row.uses > 1:
            row = row._replace(uses=row.uses - 1)
            self._writing.replace(CONTENTS, row)
            if row.digest in self._contents:
                self._contents[row.digest] = row
            return 0
        live, kept = self._shelf.lives[row.kind], kept_by(self._store, row)
        prints = self._store.rows(PRINTS, "generation = ? AND content = ?", [live.generation.number, number])
        self._writing.drop(PRINTS, prints)
        for column in ("low", "high"):
            self._writing.drop(EVIDENCE, self._store.find(EVIDENCE, column, [number]))
        self._writing.delete(CONTENTS, number)
        self._writing.log("gone", content=number)
        self._contents.pop(row.digest, None)
        self._numbers.pop(row.digest, None)
        self._prints[number] = []
        self._gone.add(number)
        self._touched.setdefault(row.kind, set()).add(number)
        self._homeless |= {one.number for one in kept}
        self._homeless.discard(number)
        return number

    def settle(self) -> None:
        """Find new places for what lost its keeper."""
        if not self._homeless:
            return
        placed = {number for number in self._homeless if self._store.get(CONTENTS, number) is not None}
        self._homeless.clear()
        place_again(self._store, self._writing, placed)
        for digest, content in list(self._contents.items()):
            now = self._store.get(CONTENTS, content.number)
            if now is not None:
                self._contents[digest] = now

    def done(self) -> None:
        """The transaction is durable: the live indexes see it."""
        for kind, numbers in self._touched.items():
            held = [(number, words) for number in sorted(numbers) for words in self._prints.get(number, [])]
            # What came in this transaction is in no index yet.
            self._shelf.lives[kind].set(sorted(numbers & self._gone), held)
