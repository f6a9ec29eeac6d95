"""The search: a test set in memory, a training set of any size streamed past it.

Whole documents are judged as `dedupe` judges them, each training document against test documents alone.
Passages are runs of words that both have, letter for letter once case, spacing and punctuation are aside.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup import _native
from neardup.arrays import core_texts
from neardup.checks import check_flag, check_text, check_threads, whole
from neardup.contents import TEXT, content_for
from neardup.errors import InvalidType, InvalidValue, RefusedInput, shown
from neardup.guards import OFF
from neardup.memory import give_back
from neardup.observers import SILENT, Observer, watching
from neardup.pipeline import run
from neardup.quotations.defaults import MOST, WORDS
from neardup.quotations.model import (
    DOCUMENT,
    LEAKS,
    PASSAGE,
    TEST,
    TRAIN,
    Leaks,
    Place,
    StretchView,
    TestView,
)
from neardup.requests import Request
from neardup.settings import MEMORY, Settings
from neardup.sizes import USUAL, Sizes
from neardup.sources import Reading, Source, are_texts, keep_apart, open_source
from neardup.sources.memory import Held
from neardup.types import PROTECTED, Bad
from neardup.verifiers import measuring_scheme

SOME_BAD: Final = 1_000
# What the page shows: test documents, passages of each, places of each, characters around and within.
VIEWS: Final = 100
STRETCHES: Final = 6
PLACES: Final = 5
AROUND: Final = 160
WITHIN: Final = 1_200
LEAST_WORDS: Final = 5
MOST_WORDS: Final = 1_000

Rows = npt.NDArray[np.int64]
Near = dict[int, list[tuple[str, str, float | None]]]
"""For each test document that has some, its near-duplicates: id, reason, similarity."""
TestRow = tuple[str, int, int, int, int, bool, str | None]
TrainRow = tuple[str, int | None, int | None, bool]


def leaks(
    train: Any,
    *,
    against: Any,
    words: int = WORDS,
    most: int = MOST,
    documents: bool = True,
    passages: bool = True,
    similarity: float | None = None,
    verify: str = "default",
    text_field: str | Sequence[str] = "text",
    id_field: str | None = None,
    threads: int | None = None,
    memory: int = MEMORY,
    observer: Observer = SILENT,
    sizes: Sizes = USUAL,
) -> Leaks:
    """Find what of a test set is in the training set *train*: whole documents, and quoted passages.

    *against* is the test set, which is held in memory; *train* is read in batches. Both are what `dedupe`
    takes: paths, tables, lists of texts, iterables. With *documents*, near-duplicates are found as `dedupe`
    finds them, by *similarity* and *verify*. With *passages*, every run of *words* words or more that both
    have is found. A run that more than *most* training documents have is counted in all of them, and its
    passages are listed for the first ones.

    >>> poem = "tell me not in mournful numbers life is but an empty dream for the soul is dead that slumbers"
    >>> train = [f"He said: {poem.upper()}!", "nothing of it"]
    >>> found = leaks(train, against=[poem], words=10, documents=False)
    >>> row = found.leaks.to_pylist()[0]
    >>> row["train"], row["words"], row["train_start"], row["passage"][:11]
    ('0', 19, 9, 'tell me not')
    """
    if train is against:
        raise InvalidValue("the training set and the test set are the same object; pass two")
    words = whole("words", words, LEAST_WORDS, MOST_WORDS)
    most = whole("most", most, 1, 10_000)
    check_flag("documents", documents)
    check_flag("passages", passages)
    if not documents and not passages:
        raise InvalidValue("there is nothing to look for without documents and without passages; choose one")
    if id_field is not None:
        check_text("id_field", id_field)
    if not isinstance(observer, Observer):
        raise InvalidType(f"observer must be an Observer of neardup.observers, not {shown(observer)}")
    if not isinstance(sizes, Sizes):
        raise InvalidType(f"sizes must be Sizes of neardup.sizes, not {shown(sizes)}")
    bad: list[Bad] = []

    def note(one: Bad) -> None:
        if len(bad) < SOME_BAD:
            bad.append(replace(one, raw=one.raw[:SOME_BAD], length=one.length or len(one.raw)))

    reading = Reading(text_field=text_field, id_field=id_field)
    asked = Asked(
        train=_opened(train, reading, note, sizes),
        test=_opened(against, reading, note, sizes, PROTECTED),
        words=words,
        most=most,
        documents=documents,
        passages=passages,
        settings=settings_of(similarity, verify),
        threads=check_threads(threads),
        memory=whole("memory", memory, 1),
        sizes=sizes,
    )
    found = search(asked, observer)
    return replace(found, bad=tuple(bad))


def settings_of(similarity: float | None, verify: str) -> Settings:
    """How whole documents are compared."""
    check_text("verify", verify)
    chosen: dict[str, Any] = {} if similarity is None else {"similarity": similarity}
    return Settings(verify=verify, guards=OFF, **chosen)


def _opened(data: Any, reading: Reading, note: Any, sizes: Sizes, prefix: str = "") -> Source:
    data = Held(data) if are_texts(data) else data
    if content_for(data) != TEXT:
        raise InvalidValue("leaks compares texts, and these are images; use dedupe with protect")
    return open_source(data, reading, unique=True, on_bad=note, sizes=sizes, prefix=prefix)


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """What is to be found, and where."""

    train: Source
    test: Source
    """Its ids begin with `protected:`."""
    words: int = WORDS
    most: int = MOST
    documents: bool = True
    passages: bool = True
    settings: Settings = field(default_factory=Settings)
    threads: int | None = None
    memory: int = MEMORY
    sizes: Sizes = USUAL


def search(asked: Asked, observer: Observer = SILENT) -> Leaks:
    """Find what of the test set is in the training set."""
    keep_apart(asked.train, asked.test)
    whole_ones = _whole_documents(asked, observer) if asked.documents else Whole()
    with watching(observer, asked.train, asked.test):
        test = _test_set(asked, observer)
        scanned = _scanned(asked, test, observer) if asked.passages else Scanned()
        for one in (asked.train, asked.test):
            if not one.documents and one.refused:
                first = one.refused[0]
                raise RefusedInput(f"{first.file!r}: {first.reason}")
        found = _assembled(asked, test, whole_ones, scanned)
    give_back()
    return found


# --- whole documents -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Whole:
    """Training documents that are near-duplicates of test documents: ids, the reason, how similar."""

    rows: Sequence[tuple[str, str, str, float | None]] = ()


def _whole_documents(asked: Asked, observer: Observer) -> Whole:
    """What `dedupe` finds, if each training document is compared with test documents alone."""
    request = Request(
        source=asked.train,
        settings=asked.settings,
        content=TEXT,
        protected=asked.test,
        only_protected=True,
        threads=asked.threads,
        memory=asked.memory,
        sizes=asked.sizes,
    )
    result = run(request, observer)
    rows: list[tuple[str, str, str, float | None]] = []
    columns = ["keeper", "id", "reason", "similarity"]
    for batch in result.evidence_batches():
        some = batch.filter(batch.column("accepted")).select(columns)
        for keeper, id, reason, similarity in zip(*(column.to_pylist() for column in some), strict=True):
            # With both staying, either may be named first.
            test, train = (keeper, id) if keeper.startswith(PROTECTED) else (id, keeper)
            rows.append((test.removeprefix(PROTECTED), train, reason, similarity))
    return Whole(rows)


# --- passages --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class TestSet:
    """The test documents, in memory."""

    ids: list[str]
    texts: list[pa.LargeStringArray]
    first: list[int]
    """The number of the first document of each of those arrays."""

    def text(self, number: int) -> str:
        """The text of a document."""
        at = int(np.searchsorted(self.first, number, side="right")) - 1
        return str(self.texts[at][number - self.first[at]].as_py())


def _test_set(asked: Asked, observer: Observer) -> TestSet:
    found = TestSet([], [], [])
    with observer.stage("read test set", total=asked.test.size) as advance:
        for batch in asked.test:
            found.first.append(len(found.ids))
            found.ids.extend(id.removeprefix(PROTECTED) for id in batch.ids.to_pylist())
            found.texts.append(batch.texts)
            advance(len(found.ids), asked.test.consumed)
    return found


@dataclass(frozen=True, slots=True)
class Found:
    """A passage, in characters of the training document and words of the test document."""

    train: int
    """The row of its training document among those that share something."""
    start: int
    end: int
    row: tuple[int, int, int, int, int]
    """As the core gives it."""


@dataclass(frozen=True, slots=True, eq=False)
class Scanned:
    """What came of looking at the training documents."""

    index: _native.Passages | None = None
    sharers: list[tuple[str, int, int]] = field(default_factory=list)
    """Id, words, and shared words of each that shares something."""
    number: dict[int, str] = field(default_factory=dict)
    """The ids of those that were the first with some run, by their number."""
    passages: list[Found] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=lambda: {"documents": 0, "words": 0, "unlisted": 0})


def _scanned(asked: Asked, test: TestSet, observer: Observer) -> Scanned:
    index = _native.Passages(asked.words, asked.most)
    for texts in test.texts:
        index.add(core_texts(texts), asked.threads)
    found = Scanned(index)
    counts = found.counts
    with observer.stage("passages", total=asked.train.size) as advance:
        for batch in asked.train:
            words, sharers, passages, unlisted = index.look(core_texts(batch.texts), asked.threads)
            known = len(found.sharers)
            for row, count, shared, is_first in sharers.tolist():
                id = batch.ids[row].as_py()
                found.sharers.append((id, count, shared))
                if is_first:
                    found.number[counts["documents"] + row] = id
            for place, rows in _by_first(passages):
                spans = _native.word_places(batch.texts[int(sharers[place, 0])].as_py())
                for row in rows.tolist():
                    own, count = row[2], row[4]
                    start, end = int(spans[own, 0]), int(spans[own + count - 1, 1])
                    found.passages.append(Found(known + place, start, end, tuple(row)))
            counts["documents"] += len(batch)
            counts["words"] += words
            counts["unlisted"] += unlisted
            advance(counts["documents"], asked.train.consumed)
    return found


def _by_first(rows: npt.NDArray[Any]) -> Iterator[tuple[int, npt.NDArray[Any]]]:
    """Rows that begin with the same number, which are together."""
    ends = np.flatnonzero(np.diff(rows[:, 0].astype(np.int64))) + 1
    for some in np.split(rows, ends) if len(rows) else ():
        yield int(some[0, 0]), some


# --- together --------------------------------------------------------------------------------------------


def _copies(test: TestSet, threads: int | None) -> dict[int, list[int]]:
    """Test documents with the same text: the first one, and the others."""
    words, told = [np.zeros((0, 2), np.uint64)], [np.zeros(0, bool)]
    key = secrets.token_bytes(32)
    for texts in test.texts:
        content, informative, _, _ = _native.survey(
            measuring_scheme().recipe, core_texts(texts), None, key, threads
        )
        words.append(content)
        told.append(informative)
    _, first, group = np.unique(np.concatenate(words), axis=0, return_index=True, return_inverse=True)
    leader = first[group.reshape(-1)]
    copies: dict[int, list[int]] = {}
    others = np.flatnonzero((leader != np.arange(len(leader))) & np.concatenate(told))
    for number, of in zip(others.tolist(), leader[others].tolist(), strict=True):
        copies.setdefault(of, []).append(number)
    return copies


def _assembled(asked: Asked, test: TestSet, whole_ones: Whole, scanned: Scanned) -> Leaks:
    near = _near(asked, test, whole_ones)
    spans = Spans(test)
    passages = _sorted(scanned)
    index = scanned.index
    stretches = np.zeros((0, 5), np.uint32) if index is None else index.stretches()
    of_test: dict[int, Rows] = {at: some.astype(np.int64) for at, some in _by_first(stretches)}
    counted = [] if index is None else index.words.tolist()
    counts = counted or [len(spans.of(at)) for at in range(len(test.ids))]

    table = _leak_rows(test, near, passages, scanned, spans)
    test_rows: list[TestRow] = []
    for at, id in enumerate(test.ids):
        some = of_test.get(at, np.zeros((0, 5), np.int64))
        first, most = None, 0
        if len(some):
            common = some[some[:, 3].argmax()].tolist()
            first, most = scanned.number[common[4]], common[3]
        if at in near:
            first = near[at][0][0]
        shared = int((some[:, 2] - some[:, 1]).sum())
        test_rows.append((id, counts[at], shared, len(some), most, at in near, first))

    twins = {train for _, train, _, _ in whole_ones.rows}
    train_rows: list[TrainRow] = [(id, count, shared, id in twins) for id, count, shared in scanned.sharers]
    train_rows += [(id, None, None, True) for id in sorted(twins - {row[0] for row in train_rows})]
    summary = {
        "train_documents": asked.train.documents,
        "test_documents": len(test.ids),
        "test_leaked": len({*near, *of_test}),
        "test_documents_whole": len(near),
        "test_documents_quoted": len(of_test),
        "test_words": sum(counts),
        "test_words_leaked": sum(row[2] for row in test_rows),
        "train_leaking": len(train_rows),
        "train_documents_whole": len(twins),
        "train_documents_quoting": len(scanned.sharers),
        "passages": len(passages),
        "passages_not_listed": scanned.counts["unlisted"],
        "words": asked.words,
        "most": asked.most,
        "similarity": asked.settings.similarity,
        "verify": asked.settings.verify,
        "looked_for": [name for name in ("documents", "passages") if getattr(asked, name)],
        "bad": asked.train.bad + asked.test.bad,
    }
    return Leaks(
        summary=summary,
        leaks=table,
        test=_table(test_rows, TEST),
        train=_table(train_rows, TRAIN),
        views=_views(test, near, passages, scanned, of_test, counts, spans),
    )


def _near(asked: Asked, test: TestSet, whole_ones: Whole) -> Near:
    """The training documents that are near-duplicates of each test document, the most similar first."""
    number = {id: at for at, id in enumerate(test.ids)}
    near: Near = {}
    for id, train, reason, similarity in whole_ones.rows:
        near.setdefault(number[id], []).append((train, reason, similarity))
    for rows in near.values():
        rows.sort(key=lambda row: (-(row[2] or 0.0), row[0]))
    for first, others in _copies(test, asked.threads).items() if near else ():
        group = [first, *others]
        known = next((near[one] for one in group if one in near), None)
        # A copy has the nearest ones of the document that was compared.
        for one in group if known is not None else ():
            near.setdefault(one, (known or [])[: asked.most])
    return near


def _table(rows: Sequence[Sequence[Any]], schema: pa.Schema) -> pa.Table:
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(schema)
    arrays = [pa.array(column, kind.type) for column, kind in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


class Spans:
    """Where the words of test documents stand, of the one that was asked for last."""

    def __init__(self, test: TestSet) -> None:
        self._test, self._last = test, -1
        self._text, self._places = "", np.zeros((0, 2), np.uint32)

    def _look(self, number: int) -> None:
        if number != self._last:
            self._text = self._test.text(number)
            self._places, self._last = _native.word_places(self._text), number

    def of(self, number: int) -> npt.NDArray[np.uint32]:
        """The places of all words of a document."""
        self._look(number)
        return self._places

    def text(self, number: int) -> str:
        """Its text."""
        self._look(number)
        return self._text

    def part(self, number: int, begin: int, end: int) -> tuple[int, int]:
        """Where words begin and end, in characters."""
        places = self.of(number)
        return int(places[begin, 0]), int(places[end - 1, 1])


def _sorted(scanned: Scanned) -> list[Found]:
    """By test document and where it begins there, the longest first; then in the order of the input."""
    return sorted(
        scanned.passages,
        key=lambda one: (one.row[1], one.row[3], -one.row[4], one.train, one.row[2]),
    )


def _leak_rows(
    test: TestSet,
    near: Near,
    passages: Sequence[Found],
    scanned: Scanned,
    spans: Spans,
) -> pa.Table:
    common: list[int] = []
    if passages and scanned.index is not None:
        common = scanned.index.texts_with(np.array([one.row for one in passages], np.uint32)).tolist()
    rows: list[tuple[Any, ...]] = []
    at = 0
    for number in sorted({*near, *(one.row[1] for one in passages)}):
        id = test.ids[number]
        for train, reason, similarity in near.get(number, ()):
            rows.append((id, train, DOCUMENT, reason, similarity, *[None] * 7))
        while at < len(passages) and passages[at].row[1] == number:
            one = passages[at]
            count = one.row[4]
            start, end = spans.part(number, one.row[3], one.row[3] + count)
            where = (start, end, one.start, one.end)
            said = (None, None, count, *where, common[at], spans.text(number)[start:end])
            rows.append((id, scanned.sharers[one.train][0], PASSAGE, *said))
            at += 1
    return _table(rows, LEAKS)


def _views(
    test: TestSet,
    near: Near,
    passages: Sequence[Found],
    scanned: Scanned,
    of_test: dict[int, Rows],
    counts: Sequence[int],
    spans: Spans,
) -> list[TestView]:
    """The test documents of which most was found, whole ones first."""
    shared = {at: int((rows[:, 2] - rows[:, 1]).sum()) for at, rows in of_test.items()}
    order = sorted({*near, *of_test}, key=lambda at: (at not in near, -shared.get(at, 0), at))[:VIEWS]
    mine: dict[int, list[Found]] = {at: [] for at in order}
    for one in passages:
        if one.row[1] in mine:
            mine[one.row[1]].append(one)
    views = []
    for at in order:
        rows = of_test.get(at, np.zeros((0, 5), np.int64))
        longest = rows[np.argsort(rows[:, 1] - rows[:, 2], kind="stable")[:STRETCHES]]
        stretches = [
            _stretch(at, row, mine[at], scanned, spans) for row in longest[longest[:, 1].argsort()].tolist()
        ]
        documents = [(train, reason, similarity or 0.0) for train, reason, similarity in near.get(at, ())]
        view = TestView(
            test.ids[at],
            counts[at],
            shared.get(at, 0),
            documents[:PLACES],
            stretches,
            len(rows) - len(longest),
        )
        views.append(view)
    return views


def _stretch(
    number: int, row: Sequence[int], passages: Sequence[Found], scanned: Scanned, spans: Spans
) -> StretchView:
    _, begin, end, documents, first = row
    start, stop = spans.part(number, begin, end)
    text = spans.text(number)
    places: dict[str, Place] = {}
    within = [one for one in passages if begin <= one.row[3] and one.row[3] + one.row[4] <= end]
    for one in sorted(within, key=lambda one: (-one.row[4], one.train)):
        id = scanned.sharers[one.train][0]
        if len(places) < PLACES:
            places.setdefault(id, Place(id, one.start, one.end, one.row[4]))
    return StretchView(
        before=text[max(0, start - AROUND) : start],
        text=text[start : min(stop, start + WITHIN)],
        after=text[stop : stop + AROUND] if stop <= start + WITHIN else "",
        left_out=max(0, stop - start - WITHIN),
        words=end - begin,
        start=start,
        end=stop,
        train_documents=documents,
        first=scanned.number[first],
        places=list(places.values()),
    )
