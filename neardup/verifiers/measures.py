"""Measures: what decides on a pair of texts. To add one, add its row to `MEASURES`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from neardup import _native
from neardup.errors import InvalidValue, SchemeMismatch
from neardup.registry import Registry
from neardup.schemes import scheme
from neardup.schemes.model import Scheme
from neardup.verifiers.learned import FLOOR, LearnedRule, check_rule
from neardup.verifiers.rules import RULES, WHOLE, TextRule

Counts = npt.NDArray[np.int64]
Whole = Callable[[Counts, Counts, Counts], Counts]


@dataclass(frozen=True, slots=True)
class Measure:
    """What decides: a rule, or a share from a threshold on, or nothing."""

    name: str
    rule: TextRule | None = None
    threshold: float = 0.0
    whole: Whole | None = None
    """The features of which the shared ones are a share: from how many are shared, and how many each has."""
    preserves: bool = False
    """Whether one text may go only if the other says all that it says; then it matters which one goes."""
    learned: LearnedRule | None = None
    """A rule that was learned from answers and decides; *rule* is the one whose verdict it knows."""

    @property
    def verifies(self) -> bool:
        """Whether texts are compared."""
        return self.rule is not None or self.whole is not None or self.preserves

    def figure(self, shared: Counts, one: Counts, other: Counts) -> Counts:
        """The share that decides, in ten-thousandths, rounded down."""
        assert self.whole is not None
        return shared * WHOLE // np.maximum(self.whole(shared, one, other), 1)

    @property
    def least(self) -> int:
        """A pair is accepted from this figure on."""
        return max(1, round(self.threshold * WHOLE))


def _by_rule(name: str) -> Callable[[], Measure]:
    return lambda: Measure(name, RULES[name])


def _by_share(name: str, whole: Whole) -> Callable[..., Measure]:
    def measure(argument: str = "") -> Measure:
        try:
            threshold = float(argument)
        except ValueError:
            threshold = -1.0
        if not 0 < threshold <= 1:
            text = f"{name}:{argument}" if argument else name
            raise InvalidValue(f"verify {text!r}: write {name}:S with S above 0 and at most 1")
        return Measure(name, None, threshold, whole)

    return measure


def learned_measure(rule: LearnedRule) -> Measure:
    """What decides by a learned rule; the default one is asked, too."""
    return Measure("rule", RULES["default"], learned=rule)


MEASURES: Final[Registry[Measure]] = Registry(
    "verification",
    {
        **{name: _by_rule(name) for name in RULES},
        "jaccard": _by_share("jaccard", lambda shared, one, other: one + other - shared),
        "containment": _by_share("containment", lambda shared, one, other: np.minimum(one, other)),
        "preserving": lambda: Measure("preserving", preserves=True),
        "rule": lambda path: learned_measure(check_rule(path)),
        "none": lambda: Measure("none"),
    },
    written={"jaccard": "jaccard:S", "containment": "containment:S", "rule": "rule:FILE"},
)


def parse_measure(text: str, similarity: float | None = None) -> Measure:
    """The measure that *text* names; *similarity* is the least plain cosine that the user accepts.

    >>> parse_measure("jaccard:0.7").threshold
    0.7
    """
    found = MEASURES.part(text)
    return found if similarity is None else with_floor(found, similarity)


def with_floor(measure: Measure, similarity: float) -> Measure:
    """The same with at least that plain similarity, if a rule decides; a learned one accepts nothing below
    the floor of the default rule."""
    if measure.rule is None:
        return measure
    if measure.learned is not None and round(similarity * WHOLE) < FLOOR:
        raise InvalidValue(
            f"a learned rule accepts nothing below a similarity of {FLOOR / WHOLE:g}, "
            f"so {similarity:g} has no use; take {FLOOR / WHOLE:g} or more"
        )
    return replace(measure, rule=measure.rule.with_floor(similarity))


def measuring_scheme() -> Scheme:
    """The features on which pairs are measured, whatever scheme proposed them."""
    return scheme("text")


def counts_features(scheme: Scheme) -> bool:
    """Whether *scheme*, when fitted, counts the features on which pairs are measured."""
    measuring = measuring_scheme()
    return all(
        getattr(scheme, name) == getattr(measuring, name) for name in ("normalize", "features", "hash", "key")
    )


def counted(scheme: Scheme) -> _native.Frequencies:
    """How common the features are on which pairs are measured, as a fitted *scheme* counted them."""
    if scheme.frequencies is None:
        raise InvalidValue(f"scheme {scheme.name!r} counted no document yet; `fit` it first")
    if not counts_features(scheme):
        raise SchemeMismatch(
            f"scheme {scheme.name!r} did not count the features on which texts are measured; "
            f"fit scheme('text') instead"
        )
    return scheme.frequencies
