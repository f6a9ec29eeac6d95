"""The stages of a run, on the sampled documents with copies planted among them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup.calibration.model import MODES, SIMILARITIES, Choices, Flags, Measured, Row, Rows, Suggestion
from neardup.calibration.sampling import Copy
from neardup.contents.texts import JOIN_RECALL, set_aside
from neardup.distances import distances
from neardup.fingerprints import Fingerprints
from neardup.numbering import steps
from neardup.observers import SILENT
from neardup.passes import Passes
from neardup.pipeline import checkpoints_in, propose
from neardup.radius import radius_for
from neardup.requests import Request
from neardup.schemes import Scheme
from neardup.schemes.fitting import fit_batches
from neardup.settings import Settings
from neardup.sizes import USUAL
from neardup.sources import open_source
from neardup.stars import stars
from neardup.types import RowNumbers, TextNumbers
from neardup.verifiers import ACCEPTING, FIGURES, REASONS, Verifier, measuring_scheme, parse_measure
from neardup.verifiers.learned import Figures
from neardup.verifiers.reasons import code_of

SHOWN: Final = 10  # pairs that are shown to be looked at


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """Pairs, one row each, as the default rule and one that is learned see them."""

    figures: Figures
    known: Flags
    """Which pairs a learned rule can accept: not one text, and not too different."""
    accepted: Flags
    """Which the default rule accepts."""
    code: npt.NDArray[np.uint8]
    """The reasons of the default rule."""


@dataclass(frozen=True, slots=True, eq=False)
class Own:
    """The candidate pairs of the documents themselves, which nobody planted."""

    pairs: Rows
    """By the number of the text, in keep order."""
    measured: Measured
    ids: list[str]
    """Of the document that represents each text."""
    copies: int
    """How many documents have the text of another one."""
    seen: Seen
    """Their figures."""

    def pair(self, row: int) -> tuple[str, str]:
        """The ids of a pair, the lower one first."""
        one, other = sorted(self.ids[text] for text in self.pairs[row].tolist())
        return one, other

    def removed(self, accepted: Flags) -> int:
        """How many documents would go if those pairs were accepted."""
        pairs = self.pairs[accepted]
        # As `--keep central` does: the document with most pairs stays.
        degree = np.bincount(pairs.ravel(), minlength=len(self.ids))
        rank = np.empty(len(self.ids), dtype=np.int64)
        rank[np.argsort(-degree, kind="stable")] = np.arange(len(self.ids))
        low, high = np.sort(rank[pairs], axis=1).T
        order = np.lexsort((high, low))
        keeper = stars(len(rank), low[order], high[order])
        return self.copies + int((keeper != np.arange(len(keeper))).sum())

    def suggestions(self, row: Row, labelled: set[frozenset[str]]) -> tuple[Suggestion, ...]:
        """Pairs that *row* accepts, the least similar first, no document twice and none of the *labelled*."""
        rows = np.flatnonzero(self.measured.found(row.mode, row.similarity, row.radius))
        found: list[Suggestion] = []
        met: set[str] = set()
        for at in rows[np.argsort(self.measured.plain[rows], kind="stable")].tolist():
            one, other = self.pair(at)
            if met & {one, other} or frozenset((one, other)) in labelled:
                continue
            met |= {one, other}
            reason = REASONS[self.measured.reason[row.mode][at]]
            found.append(Suggestion(one, other, float(self.measured.plain[at]), reason))
            if len(found) == SHOWN:
                break
        return tuple(found)


class Bench:
    """The stages of a run, on the sampled documents with copies planted among them."""

    def __init__(
        self,
        ids: Sequence[str],
        texts: Sequence[str],
        whole: Scheme,
        scheme: Scheme,
        choices: Choices,
        threads: int | None,
    ) -> None:
        self.scheme, self._whole = scheme, whole
        self._ids, self._texts, self._threads = list(ids), list(texts), threads
        self._settings = Settings(similarity=SIMILARITIES[0], recall=choices.recall)
        share = min(choices.recall / JOIN_RECALL, 0.999)
        self.radii = [radius_for(similarity, share, scheme.bits) for similarity in SIMILARITIES]

    def run(
        self, copies: Sequence[Copy], labelled: Rows | None = None
    ) -> tuple[Measured, Measured, Seen, Own]:
        """What is found among the planted pairs, the labelled ones, and with these the documents' own."""
        count = len(self._ids)
        ids = [*self._ids, *(f"copy {number} of {copy.of}" for number, copy in enumerate(copies))]
        table = pa.table(
            {
                "id": pa.array(ids, pa.large_string()),
                "text": pa.array([*self._texts, *(copy.text for copy in copies)], pa.large_string()),
            }
        )
        request = Request(open_source(table), self._settings, self.scheme, threads=self._threads)
        passes = Passes(request, SILENT, checkpoints_in(None, request))
        # As common as in the whole collection, of which this is a sample, with the copies in it.
        fitted = fit_batches(
            measuring_scheme(),
            [table.column("text").slice(count)],
            parts=[self._whole],
            threads=self._threads,
        )
        proposed = propose(passes, fitted)
        texts, prints, found = proposed.texts, proposed.prints, proposed.found

        planted = np.array([(copy.of, count + at) for at, copy in enumerate(copies)], np.int64).reshape(-1, 2)
        asked = np.zeros((0, 2), np.int64) if labelled is None else labelled
        rows = np.concatenate([planted, asked])
        text = texts.of_document[rows].astype(np.int64)
        # The documents' own pairs: candidates that no copy is in.
        is_copy = texts.document >= count
        own = np.flatnonzero(~is_copy[found.left] & ~is_copy[found.right] & (labelled is not None))
        natural = np.stack([found.left[own], found.right[own]], axis=1)

        everyone = TextNumbers(np.unique(np.concatenate([found.left, found.right, text[text >= 0]])))
        measure = parse_measure(self._settings.verify, self._settings.similarity)
        with set_aside(everyone, texts, measure, fitted.frequencies, passes.work) as verifier:
            verifier.meet(found.left, found.right)
            pairs = _judged(
                verifier,
                text,
                _distances(prints, texts.place(RowNumbers(rows))),
            )
            own_pairs = _judged(verifier, natural, found.distance[own].astype(np.int64))
            seen = [_seen(verifier, some) for some in (text[len(planted) :], natural)]
        split = len(planted)
        known = [ids[document] for document in texts.document.tolist()]
        spare = int((texts.of_document >= 0).sum()) - len(known)
        return (
            pairs.rows(slice(split)),
            pairs.rows(slice(split, None)),
            seen[0],
            Own(natural, own_pairs, known, spare, seen[1]),
        )


def _judged(verifier: Verifier, pairs: Rows, distance: npt.NDArray[np.int64]) -> Measured:
    """Pairs of texts (-1 if there is no information), judged in every mode."""
    count = len(pairs)
    identical = (pairs[:, 0] == pairs[:, 1]) & (pairs[:, 0] >= 0)
    asked = np.flatnonzero(~identical & (pairs >= 0).all(axis=1))
    plain = np.where(identical, 1.0, 0.0)
    accepted = {mode: identical.copy() for mode in MODES}
    reason = {mode: np.full(count, REASONS.index("too different"), np.uint8) for mode in MODES}
    for mode in MODES:
        measure = parse_measure(mode, SIMILARITIES[0])
        for some in steps(len(asked), USUAL.round):
            part = asked[some]
            left, right = np.sort(pairs[part], axis=1).T
            found = verifier.judge(np.ascontiguousarray(left), np.ascontiguousarray(right), measure)
            plain[part] = found.similarity
            accepted[mode][part] = found.accepted
            reason[mode][part] = found.code
    return Measured(plain, distance, identical, accepted, reason)


def _seen(verifier: Verifier, pairs: Rows) -> Seen:
    """The figures of pairs of texts (-1 if there is no information)."""
    asked = np.flatnonzero((pairs[:, 0] != pairs[:, 1]) & (pairs >= 0).all(axis=1))
    figures = np.zeros((len(pairs), len(FIGURES)), np.uint16)
    code = np.full(len(pairs), code_of("too-different"), np.uint8)
    measure = parse_measure("default")
    for some in steps(len(asked), USUAL.round):
        part = asked[some]
        left, right = np.sort(pairs[part], axis=1).T
        one, other = np.ascontiguousarray(left), np.ascontiguousarray(right)
        found, figures[part] = verifier.figures(one, other, measure)
        code[part] = found.code
    return Seen(figures, code != code_of("too-different"), code < ACCEPTING, code)


def _distances(prints: Fingerprints, rows: Rows) -> Rows:
    """Distances of pairs of documents; more than any if one has no fingerprint."""
    counts = distances(prints.words[rows[:, 0]], prints.words[rows[:, 1]]).astype(np.int64)
    return np.where(prints.valid[rows].all(axis=1), counts, prints.bits + 1)
