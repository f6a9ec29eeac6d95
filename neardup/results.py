"""Results: what a run found, as Arrow tables, and the way to the documents that stay."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup.checks import check_text
from neardup.contents import Content
from neardup.errors import GuardStopped, InvalidType, RefusedInput, Said, Setting
from neardup.guards import SAME_FROM, GuardLimits, Loss, Met, Trip
from neardup.requests import Request
from neardup.schemes import Scheme
from neardup.sources import Source, are_texts, open_source
from neardup.sources.memory import Held
from neardup.survey import Again
from neardup.types import Bad

Flags = npt.NDArray[np.bool_]

ANNOTATIONS: Final = pa.schema(
    [
        ("id", pa.string()),
        ("cluster", pa.string()),
        ("keep", pa.bool_()),
        ("duplicate_of", pa.string()),
        ("distance", pa.int32()),
        ("similarity", pa.float64()),
    ]
)


def evidence_schema(content: Content, *, learned: bool = False) -> pa.Schema:
    """The columns of the evidence on documents of a content; with the name of the rule where one was
    learned."""
    mapped = [("map", pa.list_(pa.float64(), 6))] if content.mapped else []
    rule = [("rule", pa.string())] if learned else []
    return pa.schema(
        [
            ("keeper", pa.string()),
            ("id", pa.string()),
            ("distance", pa.int32()),
            *((name, pa.float64()) for name in content.figures),
            ("accepted", pa.bool_()),
            ("reason", pa.string()),
            ("scheme", pa.string()),
            ("radius", pa.int32()),
            *mapped,
            *rule,
        ]
    )


WITHOUT_INFORMATION: Final = pa.schema([("id", pa.string())])

# What `Result.annotate` adds.
ADDED: Final = ("cluster", "keep", "duplicate_of", "similarity")


class Outputs(Protocol):
    """What writes a result."""

    def write_page(
        self, result: Result, path: str | os.PathLike[str], *, overwrite: bool = False
    ) -> None: ...

    def write_folder(self, result: Result, path: str | os.PathLike[str]) -> None: ...


@dataclass(frozen=True, eq=False)
class Result:
    """What was found: annotations and evidence as Arrow tables, and the way to the kept documents."""

    summary: dict[str, Any]
    scheme: Scheme
    plan: str
    guards: tuple[Trip, ...]
    met: Met = field(repr=False)
    """What the guards checked."""
    losses: tuple[Loss, ...]
    request: Request = field(repr=False)
    """The request, with its sources."""
    outputs: Outputs = field(repr=False)
    """How its page and its folder are written."""
    keep_mask: Flags = field(repr=False)
    """Which documents stay, in the order of the input."""
    annotation_batches: Callable[..., Iterator[pa.RecordBatch]] = field(repr=False)
    """The rows of `annotations` in the order of the ids, some at a time; with input_order=True in that."""
    evidence_batches: Callable[[], Iterator[pa.RecordBatch]] = field(repr=False)
    """The rows of `evidence`, some at a time."""
    without_information_batches: Callable[[], Iterator[pa.RecordBatch]] = field(repr=False)
    """The ids of documents without information, which are near nothing, in their order, some at a time."""
    restored: bool = field(default=False, repr=False)
    """Whether it is the result of a run that a guard stopped before."""
    bad: tuple[Bad, ...] = field(default=(), repr=False)
    """The first 1,000 bad records of what `dedupe` opened: file, line, reason, and how they begin."""

    @property
    def source(self) -> Source:
        """The input."""
        return self.request.source

    @cached_property
    def annotations(self) -> pa.Table:
        """One row per document, in the order of the input. Bad records have none: `annotate` has all rows."""
        return pa.Table.from_batches(self.annotation_batches(input_order=True), schema=ANNOTATIONS)

    @cached_property
    def evidence(self) -> pa.Table:
        """One row for every pair that was measured, and for every copy, in the order of the ids."""
        return pa.Table.from_batches(self.evidence_batches(), schema=self.evidence_schema)

    @property
    def evidence_schema(self) -> pa.Schema:
        """The columns of `evidence`."""
        return evidence_schema(self.request.content, learned=self.request.settings.learned is not None)

    @property
    def kept(self) -> Any:
        """The documents that stay, in their order: of a table or a list the same kind of object with all of
        its columns, for files an Arrow table with id, text and the requested fields.

        Records that could not be used (`bad`) are not among them. Raises GuardStopped if a guard says that
        too much would go; annotations and evidence show what.
        """
        check_guards(self)
        if (held := self._held()) is not None:
            held = held.now()
            source = Source([held], self.source.request, unique=True)
            source.expected = self.source.expected
            rows = np.concatenate([np.zeros(0, np.int64), *(batch.places for batch in source)]) - 1
            return held.take(rows[self.keep_mask])
        batches, at = [], 0
        for batch in self.source:
            mask = pa.array(self.keep_mask[at : at + len(batch)])
            at += len(batch)
            columns: dict[str, Any] = {"id": batch.ids, "text": batch.texts}
            if batch.fields is not None:
                columns.update(zip(batch.fields.schema.names, batch.fields.columns, strict=True))
            batches.append(pa.table(columns).filter(mask))
        empty = pa.table({"id": pa.array([], pa.large_string()), "text": pa.array([], pa.large_string())})
        return pa.concat_tables(batches, promote_options="permissive") if batches else empty

    def annotate(self, data: Any = None, *, prefix: str = "") -> Any:
        """*data* (what `dedupe` was given, if nothing else) with `cluster`, `keep`, `duplicate_of` and
        `similarity` added: the same kind of object, all rows in their order.

        Its documents are found by id, and must have the text that was judged; records that could not be
        used have nulls. *prefix* is put before the names of the new columns.
        """
        check_text("prefix", prefix)
        held = self._held() if data is None else _held(data)
        if held is None:
            raise InvalidType(
                "files cannot be annotated; join `annotations` with them by id, or pass a table"
            )
        held = held.now()
        known, again = self.annotations, self.source.expected
        assert isinstance(again, Again)
        source = Source([held], replace(self.source.request, fields=()), unique=True)
        read = [(batch.ids, batch.places, again.spelled(batch)) for batch in source]
        if source.refused:
            raise RefusedInput(f"the data {source.refused[0].reason}")
        at = np.full(len(held), -1, dtype=np.int64)
        if read:
            ids, places, spelling = zip(*read, strict=True)
            found = again.find(pa.chunked_array(ids), np.concatenate(spelling))
            at[np.concatenate(places) - 1] = found
        rows = pa.array(at, mask=at < 0)
        columns = {prefix + name: known.column(name).take(rows) for name in ADDED}
        return held.with_columns(pa.table(columns), self.source.request.text_names[0])

    def report(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write a page that shows the result: clusters, close calls, what each source loses, and guards.

        The documents that it shows are read once more.
        """
        self.outputs.write_page(self, path, overwrite=overwrite)

    def write(self, folder: str | os.PathLike[str]) -> None:
        """Write the result as the command line does: tables, kept documents and a manifest.

        Documents that a program handed over are not copied; `kept` has them. Raises GuardStopped if a
        guard says that too much would go.
        """
        self.outputs.write_folder(self, folder)

    def _held(self) -> Held | None:
        """What a program passed, if it was not a file."""
        inputs = self.source.inputs
        return inputs[0] if len(inputs) == 1 and isinstance(inputs[0], Held) else None


def _held(data: Any) -> Held | None:
    inputs = [Held(data)] if are_texts(data) else open_source(data).inputs
    return inputs[0] if len(inputs) == 1 and isinstance(inputs[0], Held) else None


def check_guards(result: Result, report: str | None = None) -> None:
    """Raise if a guard says that the run must stop.

    *report* is where the full story is.
    """
    stopped = [trip for trip in result.guards if trip.stopped]
    if not stopped:
        return
    where = "" if report is None else f" ({report} shows it)"
    what = "; ".join(map(str, stopped))
    way_out = Setting("guards", stopped, f"pass guards={_passing(result)}, or guards=False")
    raise GuardStopped(
        Said(f"stopped, no document was removed: {what}{where}; if this is what you want, ", way_out)
    )


def _passing(result: Result) -> str:
    """The limits, as Python, with which the run would pass."""
    met: dict[str, float | None] = {
        trip.name: trip.least if trip.stopped else trip.limit for trip in result.guards
    }
    # A guard that was not checked is off, except that of small collections.
    limits = {"max_cluster": None, "max_loss": None, **met}
    if result.summary["documents"] > SAME_FROM:
        limits.setdefault("max_same", None)
    said = [f"{name}={value!r}" for name, value in limits.items() if value != getattr(GuardLimits(), name)]
    return f"neardup.guards.Limits({', '.join(said)})"
