"""A collection: documents that are kept on disk, and what is near each of them, at any moment.

One process writes and any number read; a write is durable when the call returns, and every reader sees it at
its next question. What a call does is one transaction: all of it happens or nothing does.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from itertools import islice
from threading import RLock
from types import TracebackType
from typing import Any, Final

from neardup.checks import check_flag, check_share, check_text, whole
from neardup.collections import clusters as placing
from neardup.collections import copies, deduping, generations, live
from neardup.collections.adding import NONE, TELL, WAYS, Adding
from neardup.collections.banks import MAIN, check_bank, chosen, seconds_of
from neardup.collections.documents import Given, Unfit, check_id, documents_of, kept_of
from neardup.collections.kinds import KINDS, Kept, kind_of
from neardup.collections.matches import Added, Cluster, Match, Member
from neardup.collections.shelves import NEAREST, Question, Seen, Shelf, first_generations, match_of
from neardup.collections.verdicts import (
    SAME,
    UNSURE,
    check_answer,
    check_words,
    said_of,
    words_for,
)
from neardup.errors import Conflict, InvalidType, InvalidValue, LimitReached, UnknownName, shown
from neardup.files import check_path
from neardup.results import Result
from neardup.store import (
    BANKS,
    CONTENTS,
    DOCUMENTS,
    EVIDENCE,
    VERDICTS,
    Bank,
    Content,
    Document,
    Store,
    Verdict,
    is_store,
)
from neardup.verifiers import WHOLE

# Documents that are looked at together while they are added.
STEP: Final = 256
# No change has a higher number.
MOST: Final = (1 << 63) - 1
# Documents that expire in one transaction.
SWEPT: Final = 1000


class Collection:
    """Documents kept in a folder, searched, and compared with what comes.

    Threads may share one; processes open it each for themselves, all but one of them with read_only=True.

    >>> import tempfile
    >>> news = Collection.open(tempfile.mkdtemp(), create=True)
    >>> text = "The council approved the plan for the new bridge on Monday evening."
    >>> [answer.status for answer in news.add([{"id": "a1", "text": text}])]
    ['new']
    >>> later = news.add([{"id": "b7", "text": text.replace("evening", "night")}])[0]
    >>> later.status, later.matches[0].id, later.matches[0].reason
    ('near-duplicate', 'a1', 'nearly identical')
    >>> news.close()
    """

    def __init__(self, store: Store, *, clock: Callable[[], float] = time.time) -> None:
        """Use `Collection.open`."""
        if not isinstance(store, Store):
            raise InvalidType(f"a collection is opened with Collection.open(path), not {shown(store)}")
        self._lock = RLock()
        self._store = store
        try:
            if store.state.change == 0:
                _begin(store, int(clock()))
            self._shelf = Shelf(store, clock)
            if not store.base.read_only:
                generations.sweep(self._shelf)
        except BaseException:
            store.close()
            raise

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        create: bool = False,
        read_only: bool = False,
        as_new: bool = False,
        similarity: float | Mapping[str, float] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> Collection:
        """The collection in the folder *path*; with *create* a new one, if there is none.

        A new one takes texts from *similarity* 0.64 on for near, and images from 0.79 on, unless that says
        otherwise: one number for texts, or a number for each kind. With *as_new* a folder that another
        program copied becomes a collection of its own. *clock* says what time it is.
        """
        name = check_path(path)
        for word, value in (("create", create), ("read_only", read_only), ("as_new", as_new)):
            check_flag(word, value)
        if not callable(clock):
            raise InvalidType(f"clock must be a function without arguments, not {shown(clock)}")
        settings = {"similarity": _similarities(similarity)}
        if create and not is_store(name):
            if read_only:
                raise InvalidValue(f"there is no collection {name!r}, and read_only=True makes none")
            return cls(Store.create(name, settings), clock=clock)
        found = cls(Store.open(name, read_only=read_only, as_new=as_new), clock=clock)
        if similarity is not None and found._store.settings != settings:
            found.close()
            raise InvalidValue(
                f"{name!r} was created with another similarity; leave it out, or make a new collection"
            )
        return found

    def close(self) -> None:
        """Let go of it; others may write then."""
        with self._lock:
            self._store.close()

    def __enter__(self) -> Collection:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Collection {self.path!r}>"

    def __len__(self) -> int:
        """How many documents are stored, with those that have expired and are not swept yet."""
        with self._lock:
            self._shelf.refresh()
            return self._store.state.documents

    def __contains__(self, id: object) -> bool:
        with self._seen():
            return isinstance(id, str) and self._document(id) is not None

    @property
    def path(self) -> str:
        """The folder."""
        return self._store.name

    @property
    def read_only(self) -> bool:
        """Whether it was opened for reading only."""
        return self._store.base.read_only

    @property
    def version(self) -> tuple[int, str]:
        """The number of the last change, and the chain over all changes up to it."""
        with self._lock:
            self._shelf.refresh()
            return self._store.state.change, self._store.state.chain.hex()

    def status(self) -> dict[str, Any]:
        """What there is, for people and monitors."""
        import sqlite3

        with self._lock:
            self._shelf.refresh()
            state = self._store.state
            return {
                "path": self.path,
                "uuid": state.uuid,
                "format": state.format,
                "documents": state.documents,
                "contents": state.contents,
                "banks": len(self._shelf.banks),
                "change": state.change,
                "chain": state.chain.hex(),
                "written": state.at,
                "clock_behind": self._shelf.behind,
                "bytes": self._store.base.size(),
                "similarity": {name: self._shelf.similarity(name) for name in KINDS},
                "generations": {
                    name: {
                        "number": one.generation.number,
                        "scheme": one.generation.digest,
                        "fitted_on": one.generation.documents,
                        "fingerprints": len(one.index),
                        "radius": one.radius,
                    }
                    for name, one in self._shelf.lives.items()
                },
                "sqlite": sqlite3.sqlite_version,
            }

    # --- documents ----------------------------------------------------------------------------------------

    def add(
        self,
        documents: Any,
        *,
        bank: str = MAIN,
        near: str = TELL,
        expires_after: str | int | timedelta | None = None,
        fields: Iterable[str] = (),
        banks: Any = None,
    ) -> Added:
        """Store documents, and say of each what it is: new, unchanged, updated, identical, near-duplicate.

        A document is a mapping with `id`, and `text` or `picture` (bytes or a path); its other values are
        fields. Files, folders and tables are read as `dedupe` reads them, with the named *fields*. One whose
        id is there already takes its place. *near* says what happens to one that is identical or near to a
        stored document of the chosen *banks*: "tell" stores it and says so, "skip" does not store it, "none"
        does not look. All of it is one transaction: when the call returns it is durable.
        """
        check_bank(bank)
        if not isinstance(near, str) or near not in WAYS:
            raise InvalidValue(f"near must be one of {', '.join(WAYS)}, not {shown(near)}")
        seconds = seconds_of("expires_after", expires_after)
        if isinstance(fields, str) or not isinstance(fields, Iterable):
            raise InvalidType(f"fields must be names, not {shown(fields)}")
        given = documents_of(documents, fields=_names(fields))
        with self._lock:
            self._shelf.refresh()
            found = self._add(given, bank, near, seconds, banks)
            with suppress(LimitReached):  # what came is durable; to grow can wait for room on the disk
                generations.grow(self._shelf)
            return found

    def _add(self, given: Iterator[Given], bank: str, near: str, seconds: int | None, banks: Any) -> Added:
        shelf = self._shelf
        now = shelf.now
        with self._store.write(now, follows=True) as writing:
            if bank not in shelf.banks:
                change = writing.log("bank", bank=bank)
                shelf.banks[bank] = Bank(bank, None, "[]", 1, change)
                writing.insert(BANKS, shelf.banks[bank])
            try:
                seen = frozenset() if near == NONE else chosen(banks, shelf.banks)
                if seconds is None:
                    seconds = shelf.banks[bank].expires_after
                expires = None if seconds is None else writing.now + seconds
                adding = Adding(shelf, writing, bank, near, expires, seen)
                answers = []
                while part := list(islice(given, STEP)):
                    answers += adding.add(part)
            except BaseException:
                shelf.banks = {
                    row.name: row for row in shelf.banks.values() if row.change <= self._store.state.change
                }
                raise
        adding.done()
        self._store.sure = True
        self._after()
        return Added(tuple(answers), self._store.state.change)

    def _after(self) -> None:
        for one in self._shelf.lives.values():
            one.save(self._store)

    def update(self, id: str, *, fields: Mapping[str, Any], expires_after: Any = None) -> None:
        """Change fields of a document; None as the value removes a field. Its content stays.

        To change the content, `add` the document again.
        """
        if not isinstance(fields, Mapping):
            raise InvalidType(f"fields must be a mapping, not {shown(fields)}")
        seconds = seconds_of("expires_after", expires_after)
        with self._lock:
            self._shelf.refresh()
            row = self._need(id)
            held = json.loads(row.fields) | dict(fields)
            said = _fields({name: value for name, value in held.items() if value is not None})
            with self._store.write(self._shelf.now) as writing:
                expires = row.expires if seconds is None else writing.now + seconds
                change = writing.log("update", document=row.number, id=row.id, bank=row.bank)
                writing.replace(DOCUMENTS, row._replace(fields=said, expires=expires, change=change))

    def remove(self, ids: Iterable[str]) -> int:
        """Remove documents; how many there were. Ids that are not there do not count."""
        with self._lock:
            self._shelf.refresh()
            rows = self._store.find(DOCUMENTS, "id", dict.fromkeys(_ids(ids)))
            return self._remove(rows, "remove")

    def touch(self, ids: Iterable[str], *, expires_after: str | int | timedelta) -> int:
        """Let documents expire this long after now; how many there were."""
        seconds = seconds_of("expires_after", expires_after)
        if seconds is None:
            raise InvalidType("expires_after must be a time such as 30d, not None")
        with self._lock:
            self._shelf.refresh()
            rows = self._store.find(DOCUMENTS, "id", dict.fromkeys(_ids(ids)))
            now = self._shelf.now
            rows = [row for row in rows if row.expires is None or row.expires > now]
            with self._store.write(now) as writing:
                for row in rows:
                    change = writing.log("touch", document=row.number, id=row.id, bank=row.bank)
                    writing.replace(DOCUMENTS, row._replace(expires=writing.now + seconds, change=change))
            return len(rows)

    def expire(self) -> int:
        """Remove what has expired, which no question finds any more; how many documents there were."""
        total = 0
        with self._lock:
            self._shelf.refresh()
            now = self._shelf.now
            while rows := self._store.rows(
                DOCUMENTS, "expires <= ?", [now], f"ORDER BY number LIMIT {SWEPT}"
            ):
                total += self._remove(rows, "expire")
        return total

    def _remove(self, rows: Sequence[Document], kind: str) -> int:
        if not rows and not self.read_only:
            return 0
        with self._store.write(self._shelf.now, follows=True) as writing:
            adding = Adding(self._shelf, writing, MAIN, NONE, None, frozenset())
            for row in rows:
                content = adding.release(row.content)
                writing.log(kind, document=row.number, content=content, id=row.id, bank=row.bank)
                writing.delete(DOCUMENTS, row.number)
            adding.settle()
        adding.done()
        self._store.sure = True
        self._after()
        return len(rows)

    def get(self, id: str) -> dict[str, Any]:
        """A document as it is stored: id, bank, text (or what is known of the image), fields, cluster."""
        with self._seen():
            row = self._need(id)
            return self._facts(row, self._store.need(CONTENTS, row.content))

    def documents(self, banks: Any = None) -> Iterator[dict[str, Any]]:
        """All documents of the chosen banks that have not expired, in the order in which they came."""
        with self._lock:
            self._shelf.refresh()
            names = chosen(banks, self._shelf.banks)
            now = self._shelf.now
        for row in copies.stored(self._shelf, names, now, self._lock):
            yield self._facts(*row)

    def _facts(self, row: Document, content: Content) -> dict[str, Any]:
        found: dict[str, Any] = {"id": row.id, "bank": row.bank}
        data = self._shelf.data(content)
        if content.kind == "text":
            found["text"] = data.decode()
        else:
            found[content.kind] = kind_of(content.kind).fields(data)
        found |= {"fields": json.loads(row.fields), "cluster": content.cluster}
        return found if row.expires is None else found | {"expires": row.expires}

    # --- questions ----------------------------------------------------------------------------------------

    def search(
        self,
        *,
        text: str | None = None,
        picture: Any = None,
        print: int | None = None,
        id: str | None = None,
        banks: Any = None,
        limit: int = 20,
        rejected: bool = False,
        kind: str = "text",
    ) -> list[Match]:
        """The documents that are near-duplicates of a text, a picture, or a stored document, best first.

        Each was measured on what is stored, and says why it is near; with *rejected* the result also has
        what was measured and is not. By a *print* alone, a fingerprint of the scheme in use for *kind*,
        nothing can be measured. *limit* is the most that is told.
        """
        most = whole("limit", limit, 0, 1_000_000)
        check_flag("rejected", rejected)
        with self._seen():
            names = chosen(banks, self._shelf.banks)
            if print is not None and text is None and picture is None and id is None:
                return self._shelf.by_print(print, KINDS.part(check_text("kind", kind)), names, most)
            if print is not None:
                raise InvalidValue("ask with one of text, picture, print and id")
            kept, own = self._asked(text, picture, id)
            question = self._shelf.questions(kind_of(kept.kind), [kept])[0]
            return self._answer(question, names, own, rejected=rejected, most=most)

    def search_batch(
        self,
        questions: Iterable[Mapping[str, Any]],
        *,
        banks: Any = None,
        limit: int = 20,
        rejected: bool = False,
    ) -> list[list[Match]]:
        """What `search` gives for each of several questions, such as {"text": ...}; all see one state."""
        most = whole("limit", limit, 0, 1_000_000)
        check_flag("rejected", rejected)
        if isinstance(questions, (str, bytes, Mapping)) or not isinstance(questions, Iterable):
            raise InvalidType(f"questions must be several mappings, not {shown(questions)}")
        given = list(questions)
        if odd := [
            one for one in given if not isinstance(one, Mapping) or set(one) - {"text", "picture", "id"}
        ]:
            raise InvalidValue(f"a question is a mapping with text, picture or id, not {shown(odd[0])}")
        with self._seen():
            names = chosen(banks, self._shelf.banks)
            asked = [self._asked(one.get("text"), one.get("picture"), one.get("id")) for one in given]
            found: dict[int, list[Match]] = {}
            for name in KINDS:
                rows = [row for row, (kept, _) in enumerate(asked) if kept.kind == name]
                if not rows:
                    continue
                made = self._shelf.questions(kind_of(name), [asked[row][0] for row in rows])
                for row, question in zip(rows, made, strict=True):
                    found[row] = self._answer(question, names, asked[row][1], rejected=rejected, most=most)
            return [found[row] for row in range(len(given))]

    def nearest(
        self,
        *,
        text: str | None = None,
        picture: Any = None,
        id: str | None = None,
        n: int = 10,
        banks: Any = None,
    ) -> list[Match]:
        """The *n* nearest contents at any distance, measured; most of them are no near-duplicates."""
        most = whole("n", n, 1, 1000)
        with self._seen():
            names = chosen(banks, self._shelf.banks)
            kept, own = self._asked(text, picture, id)
            one = self._shelf.lives[kept.kind]
            prints, rows = one.kind.questions(one.scheme, [kept.data])
            # Some of them may have expired, or are in other banks.
            found = one.nearest(prints, rows, 1, 4 * most + NEAREST)[0]
            seen = self._shelf.look(
                Question(kept, found), chosen=names, now=self._shelf.now, leave=own, most=most
            )
            return self._shelf.shown(seen, self._shelf.now, rejected=True, most=most)

    def compare(self, one: str, other: str) -> Match:
        """What is measured of two stored documents, near or not, as a match of the first with the other."""
        with self._seen():
            left, right = self._need(one), self._need(other)
            first = self._store.need(CONTENTS, left.content)
            second = self._store.need(CONTENTS, right.content)
            if first.kind != second.kind:
                raise InvalidValue(f"{shown(one)} is a {first.kind} and {shown(other)} a {second.kind}")
            return match_of(self._shelf.pair(first, second), right)

    def _asked(self, text: Any, picture: Any, id: Any) -> tuple[Kept, str | None]:
        """The content in question, and the id that it is not to find."""
        if sum(one is not None for one in (text, picture, id)) != 1:
            raise InvalidValue("ask with one of text, picture, print and id")
        if id is not None:
            content = self._store.need(CONTENTS, self._need(id).content)
            return Kept(content.kind, self._shelf.data(content), content.digest), id
        if text is not None and not isinstance(text, str):
            raise InvalidType(f"text must be a str, not {shown(text)}")
        try:
            return kept_of({"text": text} if text is not None else {"picture": picture}), None
        except Unfit as fault:
            raise InvalidValue(f"the question: {fault}") from None

    def _answer(
        self, question: Question, names: frozenset[str], own: str | None, *, rejected: bool, most: int
    ) -> list[Match]:
        now = self._shelf.now
        seen: list[Seen] = self._shelf.look(question, chosen=names, now=now, leave=own)
        return self._shelf.shown(seen, now, rejected=rejected, most=most)

    # --- banks --------------------------------------------------------------------------------------------

    def bank(
        self,
        name: str,
        *,
        expires_after: str | int | timedelta | None = None,
        suppresses: Iterable[str] | None = None,
        enabled: bool | None = None,
    ) -> None:
        """Make a bank, or change it. A bank that *suppresses* others (globs) hides their matches where one of
        its own documents matches. One that is not *enabled* is searched only if it is named.
        """
        check_bank(name)
        seconds = seconds_of("expires_after", expires_after)
        globs = None if suppresses is None else _names(suppresses)
        if enabled is not None:
            check_flag("enabled", enabled)
        with self._lock:
            self._shelf.refresh()
            old = self._shelf.banks.get(name, Bank(name, None, "[]", 1, 0))
            new = old._replace(
                expires_after=old.expires_after if seconds is None else seconds,
                suppresses=old.suppresses if globs is None else json.dumps(globs),
                enabled=old.enabled if enabled is None else int(enabled),
            )
            with self._store.write(self._shelf.now) as writing:
                new = new._replace(change=writing.log("bank", bank=name))
                writing.put(BANKS, new)
            self._shelf.banks[name] = new

    def banks(self) -> list[dict[str, Any]]:
        """All banks: name, documents, and what was said of each."""
        with self._seen():
            return [
                {
                    "bank": row.name,
                    "documents": self._store.count(DOCUMENTS, "bank = ?", [row.name]),
                    "expires_after": row.expires_after,
                    "suppresses": json.loads(row.suppresses),
                    "enabled": bool(row.enabled),
                }
                for row in sorted(self._shelf.banks.values())
            ]

    def remove_bank(self, name: str) -> int:
        """Remove a bank with all its documents; how many there were."""
        check_bank(name)
        with self._lock:
            self._shelf.refresh()
            if name not in self._shelf.banks:
                raise UnknownName(
                    f"unknown bank {shown(name)}; known: {', '.join(sorted(self._shelf.banks))}"
                )
            if name == MAIN:
                raise InvalidValue(
                    f"bank {MAIN!r} is where documents come without a name; it cannot be removed"
                )
            total = 0
            while rows := self._store.rows(DOCUMENTS, "bank = ?", [name], f"ORDER BY number LIMIT {SWEPT}"):
                total += self._remove(rows, "remove")
            with self._store.write(self._shelf.now) as writing:
                writing.log("bank", bank=name, removed=True)
                writing.delete(BANKS, name)
            del self._shelf.banks[name]
            return total

    # --- verdicts -----------------------------------------------------------------------------------------

    def verdict(
        self,
        one: str,
        other: str,
        verdict: str,
        *,
        by: str = "",
        note: str = "",
        expect: str | None = None,
    ) -> None:
        """Say of two documents that they are "same", "different" or "unsure": it binds from now on.

        With *expect* it is said only if the verdict so far is that ("" for none); otherwise Conflict.
        """
        check_answer(verdict)
        check_words("by", by)
        check_words("note", note)
        with self._lock:
            self._shelf.refresh()
            rows = [self._store.need(CONTENTS, self._need(id).content) for id in (one, other)]
            if rows[0].kind != rows[1].kind:
                raise InvalidValue(f"{shown(one)} is a {rows[0].kind} and {shown(other)} a {rows[1].kind}")
            low, high = sorted(row.digest for row in rows)
            if low == high:
                raise InvalidValue(f"{shown(one)} and {shown(other)} have the same content, byte for byte")
            before: Verdict | None = self._store.get(VERDICTS, low, high)
            said = "" if before is None else before.verdict
            if expect is not None and said != expect:
                by_whom = f", by {before.by}" if before is not None and before.by else ""
                raise Conflict(
                    f"the verdict on {shown(one)} and {shown(other)} is {said or 'none'}{by_whom}, "
                    f"not {expect or 'none'}"
                )
            with self._store.write(self._shelf.now) as writing:
                change = writing.log("verdict", one=one, other=other, verdict=verdict, by=by)
                row = Verdict(low, high, verdict, by, note, writing.now, change)
                writing.put(VERDICTS, row)
                placing.place_again(self._store, writing, [one.number for one in rows])

    def verdicts(self) -> list[dict[str, Any]]:
        """All verdicts that hold for stored documents, or that wait for one of them to come back."""
        with self._seen():
            return [self._told(row) for row in self._verdicts()]

    def labels(self) -> list[dict[str, Any]]:
        """The verdicts as pairs with label 1 or 0 and both texts: what a measurement of settings needs."""
        with self._seen():
            found = []
            for row in self._verdicts():
                held = self._store.find(CONTENTS, "digest", [row.low, row.high])
                if row.verdict == UNSURE or len(held) < 2 or held[0].kind != "text":
                    continue
                told = self._told(row)
                left, right = (
                    self._shelf.data(one).decode() for one in sorted(held, key=lambda one: one.digest)
                )
                found.append(
                    {"one": told["one"], "other": told["other"], "label": int(row.verdict == SAME)}
                    | {"text": left, "other_text": right}
                )
            return found

    def _verdicts(self) -> list[Verdict]:
        found = self._store.scan_all(VERDICTS)
        if len(found) != self._store.state.verdicts:
            raise self._store.damaged(f"not all of its {self._store.state.verdicts:,} verdicts are found")
        return found

    def _told(self, row: Verdict) -> dict[str, Any]:
        names: dict[bytes, list[str]] = {row.low: [], row.high: []}
        for content in self._store.find(CONTENTS, "digest", [row.low, row.high]):
            rows = self._store.rows(DOCUMENTS, "content = ?", [content.number], "ORDER BY number LIMIT 100")
            names[content.digest] = [one.id for one in rows]
        return {
            "one": names[row.low],
            "other": names[row.high],
            "verdict": row.verdict,
            "by": row.by,
            "note": row.note,
            "at": row.at,
            "stale": not names[row.low] or not names[row.high],
        }

    # --- clusters -----------------------------------------------------------------------------------------

    def cluster(self, id: str) -> Cluster:
        """The live cluster of a document."""
        with self._seen():
            row = self._need(id)
            return self._cluster(self._store.need(CONTENTS, row.content).cluster)

    def clusters(self, *, since: int = 0) -> list[Cluster]:
        """All live clusters of two documents or more; those that changed after change *since*."""
        whole("since", since, 0, MOST)
        with self._seen():
            rows = self._store.base.select(
                "SELECT cluster FROM content GROUP BY cluster "
                "HAVING MAX(change) > ? AND (COUNT(*) > 1 OR MAX(uses) > 1) ORDER BY cluster",
                [since],
            )
            counted = self._store.base.select(
                "SELECT SUM(members) FROM (SELECT COUNT(*) AS members FROM content GROUP BY cluster) AS c"
            )[0][0]
            odd = [row for row in rows if not isinstance(row[0], int)]
            if odd or (counted or 0) != self._store.state.contents:
                raise self._store.damaged("not all of its clusters are found")
            found = [self._cluster(int(row[0])) for row in rows]
            return [one for one in found if len(one.members) > 1]

    def _cluster(self, number: int) -> Cluster:
        contents = self._store.find(CONTENTS, "cluster", [number])
        now, members, keeper = self._shelf.now, [], ""
        for content in sorted(contents, key=lambda one: (one.keeper != one.number, one.number)):
            keeps = content.keeper == content.number
            similarity, reason = 1.0, "keeps the cluster"
            if not keeps:
                similarity, reason = self._evidence(content)
            for row in self._shelf.visible(content.number, None, now, 10_000):
                keeper = keeper or row.id
                members.append(Member(row.id, row.bank, keeps, similarity, reason))
        return Cluster(number, keeper, tuple(members))

    def _evidence(self, content: Content) -> tuple[float, str]:
        """How similar a content is to the one that keeps it, and why it is kept."""
        low, high = sorted((content.number, content.keeper))
        found = self._store.get(EVIDENCE, low, high)
        if found is not None and found.accepted:
            return found.similarity / WHOLE, found.reason
        keeper = self._store.need(CONTENTS, content.keeper)
        said = said_of(self._store, content.digest).get(keeper.digest)
        if said is None:
            raise self._store.damaged(f"the evidence on contents {low} and {high} is missing")
        return 0.0 if found is None else found.similarity / WHOLE, words_for(said)

    def dedupe(self, *, banks: Any = None, kind: str | None = None, **choices: Any) -> Result:
        """What `neardup.dedupe` finds in the stored documents; *choices* are its settings.

        It is the result for the documents as `export` gives them, in any keep order; verdicts bind it.
        """
        with self._lock:
            self._shelf.refresh()
            names = chosen(banks, self._shelf.banks)
            return deduping.dedupe(self._shelf, names, kind, choices, self._lock)

    # --- care ---------------------------------------------------------------------------------------------

    def refit(self) -> dict[str, Any]:
        """Learn from what is stored now how common each feature is, and make all fingerprints anew with it.

        It is made aside and taken into use in one transaction: a reader sees the old ones or the new ones.
        """
        with self._lock:
            if self.read_only:
                raise InvalidValue(
                    f"{self.path!r} was opened with read_only=True; open it without to change it"
                )
            generations.refit(self._shelf, "text")
            return dict(self.status()["generations"]["text"])

    def check(self) -> list[str]:
        """Read every byte and say what is not as it was written; nothing if all is well."""
        with self._seen():
            return copies.problems(self._shelf)

    def rebuild(self) -> None:
        """Make the index files and the fingerprints anew from the stored contents."""
        with self._lock:
            live.sweep(self._store, ())
            for name in KINDS:
                generations.remake(self._shelf, name)

    def backup(self, path: str | os.PathLike[str]) -> None:
        """Write a whole copy to the new folder *path*, check every byte of it, and only then return.

        Others may go on reading and writing meanwhile; the copy is of one moment.
        """
        with self._lock:
            copies.backup(self._shelf, check_path(path))

    def export(
        self,
        path: str | os.PathLike[str],
        *,
        banks: Any = None,
        format: str | None = None,
        overwrite: bool = False,
    ) -> int:
        """Write the documents to a file, JSON Lines or Parquet by its name or *format*; how many they are."""
        with self._lock:
            self._shelf.refresh()
            names = chosen(banks, self._shelf.banks)
            return copies.export(
                self._shelf,
                check_path(path),
                names,
                format,
                self._lock,
                overwrite=check_flag("overwrite", overwrite),
            )

    def changes(self, *, since: int = 0) -> Iterator[dict[str, Any]]:
        """The log after change *since*: what happened to which document and when, in order."""
        whole("since", since, 0, MOST)
        with self._lock:
            self._shelf.refresh()
        last = since
        while True:
            with self._lock:
                if last >= self._store.state.change:
                    return
                rows = (
                    list(islice(self._store.changes(last), 1000))
                    if last
                    else list(islice(self._store.changes(), 1000))
                )
            for row in rows:
                said = json.loads(row.body)
                yield {"change": row.number, "kind": row.kind, "at": row.at, **said}
            last = rows[-1].number

    # --- rows ---------------------------------------------------------------------------------------------

    @contextmanager
    def _seen(self) -> Iterator[None]:
        """A block that sees one state, the newest: what the index says and what is stored belong together."""
        with self._lock, self._store.base.reading():
            self._shelf.refresh()
            yield

    def _document(self, id: str) -> Document | None:
        """The document with that id, unless it has expired."""
        rows = self._store.find(DOCUMENTS, "id", [id])
        if not rows or (rows[0].expires is not None and rows[0].expires <= self._shelf.now):
            return None
        row: Document = rows[0]
        return row

    def _need(self, id: Any) -> Document:
        name = _ids([id])[0]
        row = self._document(name)
        if row is None:
            raise UnknownName(f"there is no document {shown(name)} in {self.path!r}")
        return row


def _begin(store: Store, now: int) -> None:
    """Give a new store its schemes and its first bank."""
    if store.base.read_only:
        raise InvalidValue(f"{store.name!r} is being made; open it when it is ready")
    with store.write(now) as writing:
        first_generations(writing)
        change = writing.log("bank", bank=MAIN)
        writing.insert(BANKS, Bank(MAIN, None, "[]", 1, change))


def _ids(ids: Any) -> list[str]:
    if isinstance(ids, (str, bytes)) or not isinstance(ids, Iterable):
        raise InvalidType(f"ids must be several, not {shown(ids)}; use [{shown(ids)}]")
    try:
        return [check_id(one) for one in ids]
    except Unfit as fault:
        raise InvalidValue(f"an id cannot be used: {fault}") from None


def _names(names: Any) -> list[str]:
    if isinstance(names, (str, bytes)) or not isinstance(names, Iterable):
        raise InvalidType(f"names must be several, not {shown(names)}")
    found = list(names)
    if odd := [one for one in found if not isinstance(one, str) or not one or "\0" in one]:
        raise InvalidType(f"a name must be a str, not {shown(odd[0])}")
    return [check_words("a name", one) for one in found]


def _fields(fields: Mapping[str, Any]) -> bytes:
    from neardup.collections.documents import checked_fields

    try:
        return json.dumps(checked_fields(fields), sort_keys=True).encode()
    except Unfit as fault:
        raise InvalidValue(f"the fields: {fault}") from None


def _similarities(similarity: Any) -> dict[str, float]:
    if similarity is None:
        return {}
    if isinstance(similarity, Mapping):
        if unknown := [name for name in similarity if name not in list(KINDS)]:
            raise UnknownName(f"unknown kind of content {shown(unknown[0])}; known: {', '.join(KINDS)}")
        return {str(name): check_share("similarity", value) for name, value in similarity.items()}
    return {"text": check_share("similarity", similarity)}
