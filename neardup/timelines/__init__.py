"""Timelines: what became of a page from one capture to the next.

A capture is a document with the name of its page in one field and its date in another. The captures of a
page are put in order, each is compared with the one before and with the first, and those that say the same
are one state, also when it comes back. The answer depends neither on the order of the input nor on what else
is in it; texts need not fit in memory.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from tempfile import TemporaryDirectory
from typing import Any, Final

import orjson
import pyarrow as pa

from neardup.checks import check_flag, check_threads, whole
from neardup.dates import moment
from neardup.errors import InvalidType, InvalidValue, RefusedInput, Said, Setting, shown
from neardup.observers import SILENT, Observer, check, checked, watching
from neardup.schemes import Scheme
from neardup.schemes import scheme as scheme_of
from neardup.settings import MEMORY
from neardup.sources import Source, are_texts, open_source
from neardup.sources.memory import Held as Given
from neardup.timelines.model import SCHEMA, Capture, Choices, Comparison, Page, table
from neardup.timelines.page import REPORTED, Shown, write_page
from neardup.timelines.shelves import Shelf
from neardup.timelines.states import Comparing, time_of
from neardup.types import Bad, Batch, label
from neardup.wording import counted

__all__ = [
    "REPORTED",
    "SCHEMA",
    "Capture",
    "Choices",
    "Comparison",
    "Page",
    "Pages",
    "Shown",
    "Timeline",
    "page_scheme",
    "pages_of",
    "table",
    "timeline",
    "write_page",
]

BITS: Final = 256
SOME_BAD: Final = 1_000
"""Bad records that a timeline holds."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Timeline(Sequence[Page]):
    """The timelines of pages, by the name of the page."""

    pages: tuple[Page, ...]
    bad: tuple[Bad, ...]
    """The first records that could not be used, and why: those without a page or a date, too."""

    def __len__(self) -> int:
        return len(self.pages)

    def __getitem__(self, at: Any) -> Any:
        return self.pages[at]

    def __repr__(self) -> str:
        captures = sum(len(page.captures) for page in self.pages)
        return f"<{counted(len(self.pages), 'page')}, {counted(captures, 'capture')}>"

    @property
    def table(self) -> pa.Table:
        """A row for each capture (docs/timeline.md)."""
        return pa.Table.from_batches([table(self.pages)])

    def report(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write a page with a plot for each of the pages that changed most."""
        shown_pages = Shown()
        for page in self.pages:
            shown_pages.add(page)
        write_page(shown_pages, path, overwrite=check_flag("overwrite", overwrite))


def timeline(
    data: Any,
    *,
    within: str = "url",
    order: str = "date",
    similarity: float = 0.99,
    verify: str = "default",
    scheme: str | Scheme | None = None,
    text_field: str | Sequence[str] = "text",
    id_field: str | None = None,
    threads: int | None = None,
    memory: int = MEMORY,
    observer: Observer = SILENT,
) -> Timeline:
    """What became of each page of *data* from one capture to the next.

    *data* is a path, several, a table or an iterable of documents. *within* is the field that names the page
    of a capture, *order* the one with its date; a WARC has them as `url` and `date`. Captures are one state
    if they were compared with its first capture and are at least so similar, and the rule that *verify* names
    has no objection (as in `dedupe`; "none" asks for the same words). *scheme* makes the fingerprints. Texts
    take up to *memory* bytes; the rest goes to a temporary file.

    >>> found = timeline([
    ...     {"url": "/hours", "date": "2024-01-05", "text": "We are open from 9 to 17."},
    ...     {"url": "/hours", "date": "2024-01-01", "text": "Closed for the holidays."},
    ...     {"url": "/hours", "date": "2024-12-24", "text": "closed for the holidays"},
    ... ])
    >>> [(capture.date, capture.state, capture.returned) for capture in found[0].captures]
    [('2024-01-01', 1, False), ('2024-01-05', 2, False), ('2024-12-24', 1, True)]
    """
    choices = Choices(within=within, order=order, similarity=similarity, verify=verify)
    recipe = page_scheme(scheme)
    threads, memory = check_threads(threads), whole("memory", memory, 1)
    if not isinstance(observer, Observer):
        raise InvalidType(f"observer must be an Observer of neardup.observers, not {shown(observer)}")
    bad: list[Bad] = []

    def note(one: Bad) -> None:
        if len(bad) < SOME_BAD:
            bad.append(replace(one, raw=one.raw[:SOME_BAD], length=one.length or len(one.raw)))

    source = open_source(
        Given(data) if are_texts(data) else data,
        text_field=text_field,
        id_field=id_field,
        fields=choices.fields,
        again=False,
        on_bad=note,
    )
    with pages_of(
        source, choices, recipe, on_bad=note, memory=memory, threads=threads, observer=observer
    ) as found:
        return Timeline(tuple(found), tuple(bad))


def page_scheme(scheme: str | Scheme | None = None) -> Scheme:
    """The scheme that makes the fingerprints of captures."""
    found = scheme_of("text", bits=BITS) if scheme is None else scheme_of(scheme)
    if found.features in ("vector", "picture"):
        raise InvalidValue(f"scheme {found.name!r} is not for texts; name one that is, such as text")
    return found


@dataclass(frozen=True, slots=True, eq=False)
class Pages:
    """The pages of an input, made one after the other as they are iterated over, once."""

    captures: int
    """How many captures there are, each as often as it came."""
    count: int
    """How many pages there are."""
    left_out: int
    """Documents without a page or a date."""
    iterator: Iterator[Page]

    def __iter__(self) -> Iterator[Page]:
        return self.iterator


@contextmanager
def pages_of(
    source: Source,
    choices: Choices,
    scheme: Scheme,
    *,
    on_bad: Callable[[Bad], None],
    memory: int = MEMORY,
    threads: int | None = None,
    observer: Observer = SILENT,
) -> Iterator[Pages]:
    """The pages of *source*, which was opened with the fields of *choices*, by name.

    *on_bad* is given each document without a page or a date.
    """
    with ExitStack() as stack:
        stack.enter_context(watching(observer, source))
        shelf = stack.enter_context(Shelf(memory))
        folder = stack.enter_context(TemporaryDirectory(prefix="neardup-"))
        left = _fill(shelf, source, choices, scheme, on_bad, threads, observer)
        if not len(shelf):
            raise _nothing(source, choices, left)
        comparing = Comparing(
            choices, scheme.bits, memory=memory, spill=os.path.join(folder, "texts"), threads=threads
        )
        yield Pages(len(shelf), shelf.pages, left.count, _compared(shelf, comparing, observer))


def _compared(shelf: Shelf, comparing: Comparing, observer: Observer) -> Iterator[Page]:
    done = 0
    with observer.stage("compare", total=len(shelf), unit="captures", what="capture") as advance:
        for name, captures in shelf.by_page():
            page = comparing.page(name, checked(captures, observer))
            done += len(page.captures) + page.repeated
            advance(done, done)
            yield page


# --- reading ---------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Left:
    """Documents that are not captures: how many, and the last of them without a page and without a date."""

    count: int = 0
    nameless: int = 0
    date: Any = None


def _fill(
    shelf: Shelf,
    source: Source,
    choices: Choices,
    scheme: Scheme,
    on_bad: Callable[[Bad], None],
    threads: int | None,
    observer: Observer,
) -> _Left:
    """Set aside all captures of *source*."""
    left, done = _Left(), 0
    with observer.stage("read", total=source.size) as advance:
        for batch in source:
            prints = scheme.fingerprints(batch.texts, threads=threads)
            pages, dates = (_values(batch, name) for name in (choices.within, choices.order))
            texts = batch.texts.to_pylist()
            for row, id in enumerate(batch.ids.to_pylist()):
                page, date = label(pages[row]), label(dates[row])
                when = moment(dates[row])
                if (reason := _fault(page, dates[row], when, choices)) is not None:
                    left.count += 1
                    left.nameless += not page
                    left.date = dates[row]
                    on_bad(_bad(batch, row, reason, id, {choices.within: page, choices.order: date}))
                    source.request.tolerance.check(left.count, None)
                else:
                    shelf.add(str(page), float(when), id, str(date), texts[row], prints[row])
            check(observer)
            done += len(batch)
            advance(done, source.consumed)
    source.request.tolerance.check(source.bad + left.count, source.records)
    return left


def _values(batch: Batch, name: str) -> list[Any]:
    """The values of one field; None where there is none that Python can hold."""
    if batch.fields is None or name not in batch.fields.schema.names:
        return [None] * len(batch)
    column = batch.fields.column(name)
    try:
        return list(column.to_pylist())
    except (ValueError, OverflowError):  # such as a moment outside of Python's calendar
        return [_value(one) for one in column]


def _value(scalar: Any) -> Any:
    try:
        return scalar.as_py()
    except (ValueError, OverflowError):
        return str(scalar)


def _fault(page: str | None, date: Any, when: float, choices: Choices) -> str | None:
    """Why a document is not a capture."""
    if not page:
        return f"has no {choices.within!r}, which names its page"
    if date is None or date == "":
        return f"has no {choices.order!r}"
    try:
        time_of(when)
    except (ValueError, OverflowError, OSError):
        return f"its {choices.order!r} is not a date in a known form: {shown(date)}"
    return None


def _bad(batch: Batch, row: int, reason: str, id: str, fields: dict[str, str | None]) -> Bad:
    text = batch.texts[row].as_py()
    raw = orjson.dumps({"id": id, **fields, "text": text})
    return Bad(batch.file, int(batch.places[row]), None, reason, raw)


def _nothing(source: Source, choices: Choices, left: _Left) -> Exception:
    """Why there is no capture."""
    if left.count and left.nameless == left.count:
        return InvalidValue(
            Said(f"no document has a value in the field {choices.within!r} of ", Setting("within"))
        )
    if left.count:
        return InvalidValue(
            Said(
                f"no document has a date in the field {choices.order!r} of ",
                Setting("order"),
                f", such as 2024-05-01T12:00:00Z; one has {shown(left.date)}",
            )
        )
    names = [repr(one.name) for one in source.inputs]
    where = names[0] if len(names) == 1 else f"{len(names):,} inputs"
    reasons = [bad.reason for bad in source.refused] + [one.reason for one in source.skipped]
    if source.bad:
        reasons.append(f"{source.bad:,} records are bad")
    return RefusedInput(f"no document came from {where}{': ' if reasons else ''}{'; '.join(reasons[:1])}")
