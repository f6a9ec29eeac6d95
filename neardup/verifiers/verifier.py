"""The verifier: texts that are set aside, and pairs of them measured on their real features and judged."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import asdict
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup import _native
from neardup.arrays import core_texts
from neardup.errors import InvalidValue, shown
from neardup.schemes.model import Scheme
from neardup.sizes import USUAL
from neardup.verifiers.learned import Figures, LearnedRule
from neardup.verifiers.measures import Measure, counted, measuring_scheme, parse_measure
from neardup.verifiers.reasons import code_of
from neardup.verifiers.rules import NEIGHBOUR, SAME, WHOLE
from neardup.verifiers.verdicts import Verdicts, verdicts_of

Rows = npt.NDArray[np.int64]
Ids = npt.NDArray[Any] | Sequence[Hashable]

# Bytes for texts and their profiles, which take about eight times as much.
MEMORY: Final = 64 << 20
# Of long texts fewer pairs are judged together, so that their profiles are still there for the neighbours.
PART_BYTES: Final = 8 << 20


# What `Verifier.titles` says where both texts are about the same.
EQUAL_TITLES: Final = 1


class Verifier:
    """Judges pairs of texts. Texts come and go; each has an id, or a number of the caller's.

    *frequencies* say how common features are. They must have counted every text that is added: a feature
    that no counted document has cannot be shared. Without them every feature is rare. With *open* texts may
    be new to them, or to nothing: a feature that they do not know is rare if two of the texts here have it.

    >>> texts = ["the quick brown fox jumps", "the quick brown fox jumped", "something else"]
    >>> verifier = Verifier("default", measuring_scheme().fit(texts))
    >>> verifier.add("abc", texts)
    >>> [verdict.reason for verdict in verifier.judge("aa", "bc")]
    ['nearly identical', 'too different']
    """

    def __init__(
        self,
        measure: Measure | str = "default",
        frequencies: _native.Frequencies | Scheme | None = None,
        *,
        memory: int = MEMORY,
        spill: str | None = None,
        open: bool = False,
        threads: int | None = None,
    ) -> None:
        """An eighth of *memory* bytes is for texts; with *spill*, the rest goes to a new file of that
        name, in a folder that nothing else writes to."""
        self._measure = parse_measure(measure) if isinstance(measure, str) else measure
        self._rule = None if self._measure.rule is None else asdict(self._measure.rule)
        self._threads = threads
        table = counted(frequencies) if isinstance(frequencies, Scheme) else frequencies
        self._native = _native.Verifier(measuring_scheme().recipe, table, memory, spill, open)
        self._numbers: dict[Hashable, int] = {}
        self._free: list[int] = []
        self._count = 0

    def expect(self, count: int, numbers: npt.NDArray[Any]) -> None:
        """Only texts of these *numbers*, below *count*, will come: the others take no room."""
        self._native.expect(count, self._numbers_of(numbers))
        self._count = count

    def add(self, ids: Ids, texts: pa.Array | Sequence[str]) -> None:
        """Set texts aside, each in place of the one that its id had; none for the number -1."""
        if len(ids) != len(texts):
            raise InvalidValue(f"{len(ids)} ids for {len(texts)} texts; give one for each")
        if isinstance(ids, np.ndarray):
            numbers = np.ascontiguousarray(ids, dtype=np.int64)
        else:
            numbers = np.array([self._number_for(id) for id in ids], np.int64)
        self._count = max(self._count, int(numbers.max(initial=-1)) + 1)
        array = texts if isinstance(texts, pa.Array) else pa.array(texts, pa.large_string())
        self._native.add(numbers, core_texts(array))

    def remove(self, ids: Ids) -> None:
        """Forget texts; their memory is used again."""
        self._native.remove(self._numbers_of(ids))
        if not isinstance(ids, np.ndarray):
            self._free += [self._numbers.pop(id) for id in ids if id in self._numbers]

    def parts(self, left: npt.NDArray[Any], right: npt.NDArray[Any], least: int = USUAL.part) -> list[Rows]:
        """Candidate pairs by number, in parts of *least* or more that share no text, near ones together."""
        mean = self._native.text_bytes // max(len(left), 1) + 1
        one, other = self._numbers_of(left), self._numbers_of(right)
        order, ends = _native.walk_pairs(self._count, one, other, min(least, PART_BYTES // mean + 1))
        return np.split(order.astype(np.int64), ends[:-1]) if ends else []

    def meet(self, left: Ids, right: Ids, plain: npt.NDArray[np.uint16] | None = None) -> None:
        """Learn from candidate pairs which texts are near each other, until texts come or go. *plain* says
        how similar they are; without it they are measured."""
        left, right = self._numbers_of(left), self._numbers_of(right)
        if self._measure.rule is None or not len(left):
            return
        if plain is None:
            plain = np.zeros(len(left), dtype=np.uint16)
            for rows in self.parts(left, right):
                plain[rows] = self._native.measure(left[rows], right[rows], self._threads)[:, 0]
        near = plain >= NEIGHBOUR
        self._native.set_neighbours(left[near], right[near], plain[near], SAME)

    def titles(self, left: Ids, right: Ids) -> npt.NDArray[np.uint8]:
        """What the titles of each pair say: nothing (0), that both are about the same (1), or not (2).

        >>> verifier = Verifier()
        >>> body = " is a tool. Call it with a file, and it writes to another one" * 2
        >>> verifier.add("ab", [f"zip packs\\n{body}", f"zip  Packs\\n\\n{body}"])
        >>> verifier.titles("a", "b").tolist()
        [1]
        """
        return self._native.titles(self._numbers_of(left), self._numbers_of(right), self._threads)

    def judge_together(self, left: Ids, right: Ids, *, same: bool = False) -> Verdicts:
        """Judge pairs that are all the candidates of their texts, and learn from them which are near. Both of
        each are about the *same* subject, if that is known."""
        if self._rule is None:
            return self.judge(left, right)
        if (learned := self._measure.learned) is not None:
            return self._learned(learned, *self.figures(left, right, together=True, same=same))
        one, other = self._numbers_of(left), self._numbers_of(right)
        rule = {**self._rule, "same": same}
        found = self._native.judge_together(one, other, rule, (NEIGHBOUR, SAME), self._threads)
        return verdicts_of(*found)

    def judge(self, left: Ids, right: Ids, measure: Measure | None = None, *, same: bool = False) -> Verdicts:
        """Judge pairs among the known neighbours; by another *measure*, if one is given. Both of each
        are about the *same* subject, if that is known."""
        left, right = self._numbers_of(left), self._numbers_of(right)
        measure = measure or self._measure
        if measure.learned is not None:
            return self._learned(measure.learned, *self.figures(left, right, measure, same=same))
        if measure.rule is not None:
            rule = self._rule if measure is self._measure else None
            settings = {**(rule or asdict(measure.rule)), "same": same}
            return verdicts_of(*self._native.judge(left, right, settings, self._threads))
        found = self._native.measure(left, right, self._threads).astype(np.int64)
        plain, weighted, rare, shared, one, other = found.T
        if measure.preserves:
            goes = self._native.preserved(left, right, self._threads)
            code = np.where(goes != 0, code_of("preserved"), code_of("lacks")).astype(np.uint8)
            return Verdicts(goes != 0, code, plain / WHOLE, weighted / WHOLE, rare / WHOLE, goes=goes)
        figure = measure.figure(shared, one, other)
        accepted = figure >= measure.least
        code = np.where(accepted, code_of("revision"), code_of("too-different"))
        return Verdicts(accepted, code.astype(np.uint8), figure / WHOLE, weighted / WHOLE, rare / WHOLE)

    def figures(
        self,
        left: Ids,
        right: Ids,
        measure: Measure | None = None,
        *,
        together: bool = False,
        same: bool = False,
    ) -> tuple[Verdicts, Figures]:
        """The verdicts of the rule under a learned one, and the figures of each pair (`FIGURES`), a column
        each: zeros where the two are too different. *together* as `judge_together`, else as `judge`; *same*
        as both have it."""
        rule = (measure or self._measure).rule
        if rule is None:
            raise InvalidValue("only a rule has figures; judge by one")
        one, other = self._numbers_of(left), self._numbers_of(right)
        bounds = (NEIGHBOUR, SAME) if together else None
        found, figures = self._native.figures(
            one, other, {**asdict(rule), "same": same}, bounds, self._threads
        )
        return verdicts_of(*found), figures

    @staticmethod
    def _learned(rule: LearnedRule, found: Verdicts, figures: Figures) -> Verdicts:
        accepted, code = rule.judge(figures, found.code)
        return Verdicts(accepted, code, found.similarity, found.weighted, found.rare)

    def _number_for(self, id: Hashable) -> int:
        """The number of an id, which may be new."""
        if id not in self._numbers:
            # One that was freed is used again. The others are all in use, from 0 on.
            self._numbers[id] = self._free.pop() if self._free else len(self._numbers)
        return self._numbers[id]

    def _numbers_of(self, ids: Ids) -> Rows:
        if isinstance(ids, np.ndarray):
            return np.ascontiguousarray(ids, dtype=np.int64)
        try:
            return np.array([self._numbers[id] for id in ids], np.int64)
        except KeyError as missing:
            raise InvalidValue(f"no text was set aside for document {shown(missing.args[0])}") from None
