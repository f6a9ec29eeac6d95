"""Representatives: one document for each text that occurs; the others are its copies."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from neardup import _native
from neardup.fingerprints import Fingerprints
from neardup.keep import Keep, keep_order
from neardup.numbering import Flags, steps
from neardup.settings import Settings
from neardup.survey import Documents
from neardup.types import PrintPlaces, RowNumbers, TextNumbers, label


@dataclass(frozen=True, slots=True, eq=False)
class Representatives:
    """One document for each text that occurs, numbered in keep order; the others are its copies.

    With *across*, a document and its copies are of one source, and are not compared with each other.
    """

    document: RowNumbers
    """The document that represents a text."""
    of_document: TextNumbers
    """The text of each document, -1 if it has no information."""
    others: RowNumbers
    """The documents that represent no text, in the order of the input."""
    spelling: npt.NDArray[np.uint32]
    """Tells apart documents whose texts differ only in case, spacing and punctuation."""
    twin: TextNumbers
    """With *across* and *within*, the first text that is equal to each."""
    source: npt.NDArray[np.int32]
    """With *across*, the value of its field, as a number; else nothing."""
    group: npt.NDArray[np.int32]
    """With *within* and with *subject*, the values of their fields, as a number: only texts of one group are
    compared. Without them nothing."""
    named: Flags
    """With *subject*, whether a text has one: all of its group are about the same. Without it nothing."""
    fixed: Flags

    @property
    def across(self) -> bool:
        """Whether only texts of different sources are compared."""
        return len(self.source) > 0

    @classmethod
    def of(
        cls,
        documents: Documents,
        settings: Settings,
        keep: Keep,
        fixed: Flags,
        threads: int | None,
        *,
        only_protected: bool = False,
    ) -> Representatives:
        """The texts of *documents*. With *only_protected*, what is *fixed* is one source of two."""
        source, group, apart = (
            _codes(documents, *names)
            for names in (
                (settings.across,),
                (settings.within, settings.subject),
                (settings.within, settings.across, settings.subject),
            )
        )
        if only_protected:
            source = fixed.astype(np.int32)
            apart = source if apart is None else apart * 2 + fixed
        # Across sources a document that is protected and one that is not are never one text: the one may be a
        # copy of what the other is not compared with.
        elif apart is not None and settings.across is not None:
            apart = apart * 2 + fixed
        document, of_document, twin = _native.one_of_each(
            documents.content,
            None if apart is None else apart.astype(np.uint32),
            order_of(documents, keep, fixed, None, threads=threads),
        )
        nothing = np.zeros(0, np.int32)
        named = np.zeros(0, dtype=bool)
        if settings.subject is not None:
            named = documents.fields.column(settings.subject).is_valid().to_numpy()[document]
        alone = np.ones(len(documents), dtype=bool)
        alone[document] = False
        return cls(
            document=RowNumbers(document),
            of_document=TextNumbers(of_document),
            others=RowNumbers(np.flatnonzero(alone).astype(np.int32)),
            spelling=documents.spelling,
            twin=TextNumbers(twin),
            source=nothing if source is None else source[document],
            group=nothing if group is None else group[document],
            named=named,
            fixed=fixed[document],
        )

    def __len__(self) -> int:
        """How many texts there are."""
        return len(self.document)

    def place(self, rows: RowNumbers) -> PrintPlaces:
        """The places of documents' fingerprints: those of the texts in their order, then the others."""
        text = self.of_document[rows]
        first = text >= 0
        first[first] = self.document[text[first]] == rows[first]
        return PrintPlaces(np.where(first, text, len(self) + np.searchsorted(self.others, rows)))

    def repeats(self, rows: RowNumbers) -> Flags:
        """Which documents are their text letter for letter, and do not represent it."""
        text = self.of_document[rows]
        found: Flags = text >= 0
        document = RowNumbers(self.document[text[found]])
        found[found] = (document != rows[found]) & self.spelled_alike(RowNumbers(rows[found]), document)
        return found

    def document_at(self, places: PrintPlaces) -> RowNumbers:
        """The documents whose fingerprints are at *places*."""
        is_text = places < len(self)
        rest = places[~is_text] - np.uint32(len(self))
        return RowNumbers(np.concatenate([self.document[places[is_text]], self.others[rest]]))

    def own(self, prints: Fingerprints) -> Fingerprints:
        """The fingerprints of the texts, of all that were placed; no copy is made."""
        count = len(self)
        return Fingerprints(
            prints.words[:count], bits=prints.bits, valid=prints.valid[:count], digest=prints.digest
        )

    def equal(self, one: RowNumbers, other: RowNumbers) -> Flags:
        """Which of the documents have the same text, two by two."""
        texts = self.of_document[one], self.of_document[other]
        if len(self.twin):
            texts = self.twin[texts[0]], self.twin[texts[1]]
        found: Flags = texts[0] == texts[1]
        return found

    def spelled_alike(self, one: RowNumbers, other: RowNumbers) -> Flags:
        """Which of the documents with the same text are the same letter for letter, two by two."""
        found: Flags = self.spelling[one] == self.spelling[other]
        return found

    def comparable(self, left: TextNumbers, right: TextNumbers) -> Flags:
        """Which pairs may be compared: of one source, or of two, as the user wants."""
        wanted: Flags = ~(self.fixed[left] & self.fixed[right])
        if len(self.group):
            wanted &= self.group[left] == self.group[right]
        if self.across:
            wanted &= self.source[left] != self.source[right]
        return wanted


def _codes(documents: Documents, *names: str | None) -> npt.NDArray[np.int32] | None:
    """A number for each document that says which values it has in the fields of these *names*, if any is."""
    columns = [documents.column(name) for name in names if name is not None]
    if not columns:
        return None
    seen: dict[tuple[str | None, ...], int] = {}
    rows = (tuple(map(label, values)) for values in zip(*columns, strict=True))
    return np.fromiter((seen.setdefault(row, len(seen)) for row in rows), np.int32, len(documents))


def fill_repeats(prints: Fingerprints, texts: Representatives) -> None:
    """Give each document that repeats its text the fingerprint of that."""
    for some in steps(len(texts.others)):
        rows = RowNumbers(texts.others[some])
        repeats = texts.repeats(rows)
        places, text = len(texts) + some[repeats], texts.of_document[rows[repeats]]
        prints.words[places], prints.valid[places] = prints.words[text], prints.valid[text]


def order_of(
    documents: Documents,
    keep: Keep,
    fixed: Flags | None,
    pairs: npt.NDArray[np.uint32] | None,
    rows: RowNumbers | None = None,
    *,
    added: npt.NDArray[np.uint32] | None = None,
    threads: int | None,
) -> npt.NDArray[np.int32]:
    """The keep order of all documents, or of some *rows*: of their places among these."""
    fields = {name: documents.column(name) for name in keep.fields}
    return keep_order(
        keep,
        documents.ids,
        documents.lengths,
        fields,
        rows=rows,
        pairs=pairs,
        added=added,
        fixed=fixed,
        threads=threads,
    )
