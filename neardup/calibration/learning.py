"""Learning a rule from labelled pairs: a logistic regression that gives the same numbers on every machine.

Everything is whole numbers, fixed-point ones where there are fractions: no exponential of some library, no
order in which a sum was made, can change a weight. The order of the labels does not matter. What is
published about a rule comes from labels that it had not seen: each part of them is judged by a rule that
was learned from the others, and no document has pairs in two parts.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

import numpy as np
import numpy.typing as npt

from neardup.verifiers import WHOLE
from neardup.verifiers.figures import NAMES
from neardup.verifiers.learned import LARGEST, Figures, Learned, LearnedRule, Share, Weight

Flags = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]

# Fixed point: weights and scores have 20 binary places, standardised figures 10.
ONE: Final = 1 << 20
UNIT: Final = 1 << 10
# Scores of the logistic function per doubling of the odds ... see `_logistic`.
STEPS: Final = 256
REACH: Final = 16
# A figure that hardly varies among the labels is not blown up: the least spread, in ten-thousandths.
SPREAD: Final = 500
# A figure beyond so many spreads from the middle counts as one there.
FAR: Final = 4
ROUNDS: Final = 600
# How much weights are held back: as much as so many labels say.
HELD: Final = 2
FOLDS: Final = 10
# The fewest labels of a kind from which a rule is learned.
FEWEST_OF_A_KIND: Final = 5
FEWEST: Final = 20


@cache
def _logistic() -> Ints:
    """1 / (1 + exp(-x)) for x = at / STEPS - REACH, as fixed-point numbers: from integers alone."""
    places = 80
    whole, term, growth = 1 << places, 1 << places, 1 << places
    for number in range(1, 30):  # exp(1 / STEPS), by its series
        term = term // (STEPS * number)
        growth += term
    power, powers = whole, [whole]
    for _ in range(REACH * STEPS):
        power = power * growth >> places
        powers.append(power)
    upper = [ONE * power // (power + whole) for power in powers]
    return np.array([ONE - value for value in upper[:0:-1]] + upper, np.int64)


def _chances(scores: Ints) -> Ints:
    """How likely a pair with that score is the same, as a fixed-point number."""
    at = scores // (ONE // STEPS) + REACH * STEPS
    found: Ints = _logistic()[np.clip(at, 0, 2 * REACH * STEPS)]
    return found


@dataclass(frozen=True, slots=True)
class Fitted:
    """Weights of figures, the middles from which these count, and what all pairs begin with."""

    weights: tuple[int, ...]
    middles: tuple[int, ...]
    bias: int

    def scores(self, figures: Figures) -> Ints:
        """At 0 and above a pair counts as the same."""
        apart = figures.astype(np.int64) - np.array(self.middles, np.int64)
        found: Ints = apart @ np.array(self.weights, np.int64) + self.bias
        return found


def fit(figures: Figures, same: Flags) -> Fitted:
    """The weights that tell the pairs that are the *same* from the others."""
    count = len(figures)
    values = figures.astype(np.int64)
    middle = values.sum(axis=0) // count
    apart = values - middle
    squares = (apart * apart).sum(axis=0) // count
    spread = np.array([max(SPREAD, math.isqrt(int(square))) for square in squares], np.int64)
    z = np.clip(apart * UNIT // spread, -FAR * UNIT, FAR * UNIT)
    z = np.append(z, np.full((count, 1), UNIT, np.int64), axis=1)
    wanted = np.where(same, ONE, 0).astype(np.int64)
    # No step is so long that it leads away: the curvature is at most a quarter of the squares, and what
    # holds back.
    curvature = int((z * z).sum()) // (4 * count * UNIT) + HELD * UNIT // count + 1
    weight = np.zeros(z.shape[1], np.int64)
    held = np.array([HELD] * (z.shape[1] - 1) + [0], np.int64)
    ahead = weight
    for number in range(ROUNDS):
        scores = (z @ ahead) // UNIT
        slope = (z.T @ (_chances(scores) - wanted)) // UNIT
        following = ahead - (slope + held * ahead) // count * UNIT // curvature
        # Each step goes on a little in the direction of the last one.
        ahead = following + (following - weight) * number // (number + 3)
        weight = following
    return _small(weight, middle, spread)


def _small(weight: Ints, middle: Ints, spread: Ints) -> Fitted:
    """Whole numbers of at most `LARGEST` in place of fixed-point ones."""
    each = [int(value) * WHOLE // int(per) for value, per in zip(weight[:-1], spread, strict=True)]
    largest = max(max(map(abs, each)), 1)
    small = tuple(_rounded(value * LARGEST, largest) for value in each)
    # The bias is in the unit of a score: a weight times ten-thousandths.
    bias = _rounded(int(weight[-1]) * LARGEST * WHOLE, largest)
    return Fitted(small, tuple(middle.tolist()), bias)


def _rounded(part: int, whole: int) -> int:
    """*part* / *whole*, rounded to the nearest; halves away from 0."""
    found = (2 * abs(part) + whole) // (2 * whole)
    return found if part >= 0 else -found


@dataclass(frozen=True, slots=True, eq=False)
class Answers:
    """Labelled pairs with their figures, in an order that does not depend on that of the labels."""

    pairs: Sequence[tuple[str, str]]
    figures: Figures
    same: Flags
    default: Flags
    """Which of them the default rule accepts."""

    def __len__(self) -> int:
        return len(self.pairs)

    @property
    def enough(self) -> bool:
        """Whether a rule can be learned from them."""
        yes = int(self.same.sum())
        return len(self) >= FEWEST and min(yes, len(self) - yes) >= FEWEST_OF_A_KIND

    def rows(self, rows: npt.NDArray[np.intp]) -> Answers:
        """Some of them."""
        pairs = [self.pairs[row] for row in rows.tolist()]
        return Answers(pairs, self.figures[rows], self.same[rows], self.default[rows])


def in_order(answers: Answers) -> Answers:
    """The same by the ids of each pair, each pair once."""
    place: dict[tuple[str, str], int] = {}
    for row, (one, other) in enumerate(answers.pairs):
        place.setdefault((min(one, other), max(one, other)), row)
    return answers.rows(np.array([place[pair] for pair in sorted(place)], np.intp))


def folds_of(pairs: Sequence[tuple[str, str]], count: int = FOLDS) -> list[int]:
    """A part for each pair: those that are joined by documents are in one part, and parts are about as large.

    >>> folds_of([("a", "b"), ("b", "c"), ("d", "e"), ("f", "g")], 2)
    [0, 0, 1, 1]
    """
    parent: dict[str, str] = {}

    def root(id: str) -> str:
        while parent.setdefault(id, id) != id:
            parent[id] = parent[parent[id]]
            id = parent[id]
        return id

    for one, other in pairs:
        first, second = sorted((root(one), root(other)))
        parent[second] = first
    members: dict[str, list[int]] = {}
    for row, (one, _) in enumerate(pairs):
        members.setdefault(root(one), []).append(row)
    # The largest first, each to the part that has the fewest.
    order = sorted(members, key=lambda name: (-len(members[name]), _hash(name)))
    sizes, fold = [0] * count, [0] * len(pairs)
    for name in order:
        part = sizes.index(min(sizes))
        sizes[part] += len(members[name])
        for row in members[name]:
            fold[row] = part
    return fold


def _hash(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()


def unseen(answers: Answers) -> Flags:
    """Which pairs are taken for the same by a rule that was learned from the other parts."""
    fold = np.array(folds_of(answers.pairs))
    found = np.zeros(len(answers), dtype=bool)
    for part in range(FOLDS):
        test, train = np.flatnonzero(fold == part), np.flatnonzero(fold != part)
        if not len(test):
            continue
        same = answers.same[train]
        if same.all() or not same.any():  # nothing to tell apart: as most are
            found[test] = same.any()
            continue
        found[test] = fit(answers.figures[train], same).scores(answers.figures[test]) >= 0
    return found


def learn(answers: Answers, missed: int = 0) -> LearnedRule:
    """The rule of some answers, of which there must be enough.

    *missed* labelled pairs are the same, and no rule can accept them; they count in the recall.
    """
    answers = in_order(answers)
    fitted, found = fit(answers.figures, answers.same), unseen(answers)
    yes = int(answers.same.sum())
    right = found & answers.same
    default = answers.default & answers.same
    return LearnedRule(
        weights=tuple(map(Weight, NAMES, fitted.weights, fitted.middles)),
        bias=fitted.bias,
        learned=Learned(
            labels=len(answers),
            same=yes,
            folds=FOLDS,
            precision=share_of(int(right.sum()), int(found.sum())),
            recall=share_of(int(right.sum()), yes + missed),
            default_precision=share_of(int(default.sum()), int(answers.default.sum())),
            default_recall=share_of(int(default.sum()), yes + missed),
        ),
    )


def share_of(right: int, of: int) -> Share:
    """A share with its interval (Wilson's, 1.96 deviations), in ten-thousandths; of nothing, everything may
    be.

    >>> share_of(9, 10)
    Share(right=9, of=10, share=9000, low=5958, high=9822)
    """
    if not of:
        return Share(0, 0, 0, 0, WHOLE)
    # (p + z²/2n ± z·sqrt(p(1-p)/n + z²/4n²)) / (1 + z²/n), times n, in whole numbers; z² = 3.8416.
    scale = 10_000
    square = 38_416
    middle = 2 * right * scale + square
    root = math.isqrt(square * (square + 4 * scale * right * (of - right) // of))
    under = 2 * (of * scale + square)
    low, high = (middle - root) * WHOLE // under, -((-(middle + root) * WHOLE) // under)
    return Share(right, of, right * WHOLE // of, max(low, 0), min(high, WHOLE))
