"""Verification: candidate pairs measured on their real features, and judged in words.

A fingerprint only proposes. What decides, and what each number is for, is told in
docs/quality.md; the core does the work (src/verify.rs) in integers, similarities in
ten-thousandths, rounded down.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup import _native
from neardup.arrays import core_texts
from neardup.errors import InvalidValue, UnknownName
from neardup.schemes import scheme
from neardup.schemes.model import Scheme

Rows = npt.NDArray[np.int64]

WHOLE: Final = 10_000
# A candidate from this plain similarity on is a neighbour; from this on, nearly the same text.
NEIGHBOUR: Final = 6000
SAME: Final = 9000
# Nearest candidates of a document that are looked at as its neighbours.
NEIGHBOURS: Final = 32
# Pairs judged together, at least; more only where one neighbourhood has more. Of long texts fewer, so that
# their profiles are still there when neighbours are asked.
PART: Final = 1 << 15
PART_BYTES: Final = 8 << 20

PERHAPS_FORM: Final = "nearly identical, perhaps a form"
REASONS: Final = (
    "nearly identical",
    "same short text, edited",
    "revision",
    PERHAPS_FORM,
    "too different",
    "different numbers",
    "same template, different content",
    "shares mostly common text",
    "too short to tell a revision from a sibling",
    "a whole passage was replaced",
    "same frame, other content",
    "not close enough for strict",
    "same words about another subject",
)
ACCEPTING: Final = 4
IDENTICAL: Final = "identical text"
SPELLED: Final = "identical but for case, spacing or punctuation"
UNVERIFIED: Final = "fingerprint only, not verified"


@dataclass(frozen=True, slots=True)
class Rule:
    """When a pair is a pair. Similarities and shares in ten-thousandths; src/verify.rs tells each."""

    floor: int = 6400
    high: int = 9000
    high_contrast: int = 7500
    grey: bool = True
    common: int = 7000
    rare: int = 3400
    contrast: int = 6000
    short: int = 28
    short_rare: int = 6500
    long: int = 140
    grey_middle: bool = False
    middle_high: int = 9600
    middle_words: int = 40
    middle_common: int = 20
    middle_rare: int = 9500
    passage: int = 10
    gap: int = 3
    drop: int = 500
    numbers: int = 56
    near: int = 9300
    near_numbers: int = 32
    siblings: int = 2
    slot: int = 16
    fine_slot: int = 64
    subject: int = 24
    families: int = 12


RULES: Final = {
    "default": Rule(),
    "strict": Rule(high=9500, siblings=1, grey=False, slot=64),
    "loose": Rule(
        middle_high=9000, common=6600, contrast=5000, numbers=32, short_rare=3400, grey_middle=True
    ),
}


@dataclass(frozen=True, slots=True)
class Measure:
    """What decides: `rule:NAME`, `jaccard:S`, `containment:S`, or `none`."""

    name: str
    rule: Rule | None = None
    threshold: float = 0.0

    @property
    def verifies(self) -> bool:
        """Whether texts are looked at."""
        return self.name != "none"


def parse_measure(text: str, similarity: float | None = None) -> Measure:
    """The measure that *text* names; *similarity* is the least plain cosine that the user wants.

    >>> parse_measure("jaccard:0.7").threshold
    0.7
    """
    name, _, argument = text.partition(":")
    if name in RULES and not argument:
        rule = RULES[name]
        if similarity is not None:
            rule = _with_floor(rule, similarity)
        return Measure(name, rule)
    if name in ("jaccard", "containment"):
        try:
            threshold = float(argument)
        except ValueError:
            threshold = -1.0
        if not 0 < threshold <= 1:
            raise InvalidValue(f"verify {text!r}: write {name}:S with S above 0 and at most 1")
        return Measure(name, None, threshold)
    if text == "none":
        return Measure("none")
    known = ", ".join([*RULES, "jaccard:S", "containment:S", "none"])
    raise UnknownName(f"unknown verification {text!r}; known: {known}")


def _with_floor(rule: Rule, similarity: float) -> Rule:
    floor = round(similarity * WHOLE)
    return replace(rule, floor=floor, high=max(rule.high, floor), middle_high=max(rule.middle_high, floor))


@dataclass(frozen=True, slots=True, eq=False)
class Verdicts:
    """What was found of some pairs, a row each."""

    accepted: npt.NDArray[np.bool_]
    reason: npt.NDArray[np.uint8]
    plain: npt.NDArray[np.float64]
    """What `similarity` is in the evidence; the Jaccard or the containment where that decides."""
    common: npt.NDArray[np.float64]
    rare: npt.NDArray[np.float64]


def _verdicts(reason: npt.NDArray[np.uint8], *measured: npt.NDArray[np.uint16]) -> Verdicts:
    return Verdicts(reason < ACCEPTING, reason, *(values / WHOLE for values in measured))


def measuring_scheme() -> Scheme:
    """The features on which pairs are measured, whatever scheme proposed them."""
    return scheme("text")


class Verifier:
    """Judges pairs of documents that are numbered in keep order; their texts are set aside first."""

    def __init__(
        self,
        measure: Measure,
        frequencies: _native.Frequencies | None,
        documents: int,
        *,
        wanted: Rows,
        spill: str,
        memory: int,
        threads: int | None = None,
    ) -> None:
        """Only of the *wanted* documents are texts set aside; those of others are taken for empty."""
        self._measure, self._threads, self._documents = measure, threads, documents
        self._rule = None if measure.rule is None else asdict(measure.rule)
        self._native = _native.Verifier(
            measuring_scheme().recipe, frequencies, documents, wanted, spill, memory
        )

    def add(self, numbers: npt.NDArray[Any], texts: pa.LargeStringArray) -> None:
        """Set aside texts; *numbers* says whose they are, -1 where one is not wanted."""
        self._native.add(np.ascontiguousarray(numbers, dtype=np.int64), core_texts(texts))

    def parts(self, left: Rows, right: Rows) -> list[Rows]:
        """Candidate pairs by number, in parts that share no document; near ones stand together."""
        mean = self._native.text_bytes // max(len(left), 1) + 1
        order, ends = _native.walk_pairs(self._documents, left, right, min(PART, PART_BYTES // mean + 1))
        return np.split(order.astype(np.int64), ends[:-1]) if ends else []

    def judge_together(self, left: Rows, right: Rows) -> Verdicts:
        """Judge pairs that are all there are of their documents."""
        rule = self._rule
        assert rule is not None
        return _verdicts(*self._native.judge_together(left, right, rule, (NEIGHBOUR, SAME), self._threads))

    def meet(self, left: Rows, right: Rows, plain: npt.NDArray[np.uint16] | None = None) -> None:
        """Learn from candidate pairs, and how similar they are, who is near whom."""
        if self._measure.rule is None or not len(left):
            return
        if plain is None:
            plain = np.zeros(len(left), dtype=np.uint16)
            for rows in self.parts(left, right):
                plain[rows] = self._native.measure(left[rows], right[rows], self._threads)[:, 0]
        near = plain >= NEIGHBOUR
        self._native.set_neighbours(left[near], right[near], plain[near], SAME)

    def judge(self, left: Rows, right: Rows, measure: Measure | None = None) -> Verdicts:
        """Measure pairs and say which are accepted, and why; by another *measure*, if one is given."""
        measure = measure or self._measure
        if measure.rule is not None:
            rule = self._rule if measure is self._measure else None
            rule = rule or asdict(measure.rule)
            return _verdicts(*self._native.judge(left, right, rule, self._threads))
        found = self._native.measure(left, right, self._threads).astype(np.int64)
        _, common, rare, shared, one, other = found.T
        whole = one + other - shared if measure.name == "jaccard" else np.minimum(one, other)
        figure = shared * WHOLE // np.maximum(whole, 1)
        accepted = figure >= max(1, round(measure.threshold * WHOLE))
        reason = np.where(accepted, REASONS.index("revision"), REASONS.index("too different"))
        return Verdicts(accepted, reason.astype(np.uint8), figure / WHOLE, common / WHOLE, rare / WHOLE)

    def text(self, document: int) -> str:
        """The text of a document, as it was set aside."""
        return self._native.text(document)
