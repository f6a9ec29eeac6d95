"""Stars: a keeper and the texts that were verified against it, each of them directly.

In an order, an unassigned text becomes keeper and takes every unassigned one whose pair with it is
accepted, so that the other one may go (under `preserving`, only one of the two may). A chain A~B~C never
joins A and C. A keeper in a crowded place has more candidates than were considered: it takes any text that
is accepted against it and has no better keeper, one that is before it in the order. Last, whatever goes
joins the most similar of those that stay.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from neardup import _native
from neardup.candidates import Candidates, Reach
from neardup.keep import Keep
from neardup.memory import give_back
from neardup.numbering import Flags, inverse, look_up
from neardup.representatives import Representatives, order_of
from neardup.survey import Documents
from neardup.types import PairNumbers, Ranks, TextNumbers
from neardup.verdicts import Judgements
from neardup.verifiers import lets_go


@dataclass(frozen=True, slots=True, eq=False)
class Keepers:
    """Who keeps whom among the texts."""

    keeper: TextNumbers
    """For each text its keeper; itself if it stays."""
    pair: PairNumbers
    """For each text the candidate pair that decided it, -1 for a keeper."""


def stars(
    count: int,
    left: npt.NDArray[Any],
    right: npt.NDArray[Any],
    *,
    fixed: Flags | None = None,
) -> npt.NDArray[np.int32]:
    """For each of *count*, numbered in the order, its keeper; itself if it stays.

    *left* < *right* are the accepted pairs, sorted. *fixed* ones are never taken.

    >>> stars(3, np.array([0, 1]), np.array([1, 2])).tolist()
    [0, 0, 2]
    """
    one, other = (np.ascontiguousarray(side, dtype=np.int32) for side in (left, right))
    return _native.stars(count, one, other, fixed)


def central(keep: Keep) -> bool:
    """Whether the keep order depends on verdicts."""
    return any(rule.name == "central" for rule in keep.rules)


def original(keep: Keep) -> bool:
    """Whether the keep order depends on what was added to which document of a pair."""
    return any(rule.name == "original" for rule in keep.rules)


def final_order(
    documents: Documents,
    keep: Keep,
    texts: Representatives,
    found: Candidates,
    judgements: Judgements,
    additions: Callable[[PairNumbers], npt.NDArray[np.int8]],
    *,
    threads: int | None,
) -> TextNumbers:
    """The order that decides which texts stay; `central` counts the texts that may go for each.

    *additions* says for `original` which side of each pair has something added to it: 1 the left one, -1 the
    right one, 0 none.
    """
    if not central(keep) and not original(keep):
        return TextNumbers(np.arange(len(texts), dtype=np.int32))
    added = None
    if original(keep):
        pairs = PairNumbers(np.flatnonzero(judgements.accepted))
        side = additions(pairs)
        more = np.concatenate([found.left[pairs[side > 0]], found.right[pairs[side < 0]]])
        added = np.bincount(texts.document[more], minlength=len(documents)).astype(np.uint32)
    sides = [side[_going(judgements, left=side is found.right)] for side in (found.left, found.right)]
    met, times = np.unique(np.concatenate(sides), return_counts=True)
    degree = np.zeros(len(documents), dtype=np.uint32)
    degree[texts.document[met]] = times
    fixed = None
    if texts.fixed.any():
        fixed = np.zeros(len(documents), dtype=bool)
        fixed[texts.document] = texts.fixed
    order = order_of(documents, keep, fixed, degree, texts.document, added=added, threads=threads)
    return TextNumbers(order)


def _going(judgements: Judgements, *, left: bool) -> Flags:
    """The pairs of which the left side, or else the right one, may go for the other."""
    return lets_go(
        judgements.accepted, judgements.goes, np.broadcast_to(np.array(left), len(judgements.left))
    )


def keepers_in(
    order: TextNumbers, texts: Representatives, found: Candidates, judgements: Judgements
) -> tuple[TextNumbers, Ranks]:
    """For each text its keeper, by the accepted pairs and the order; and the ranks in that order.

    Of a pair only the later text may go, if it may at all.
    """
    rank = Ranks(inverse(order))
    pairs = np.flatnonzero(judgements.accepted)
    if judgements.goes is not None:
        later = rank[found.left[pairs]] > rank[found.right[pairs]]
        pairs = pairs[judgements.lets_go(PairNumbers(pairs), later)]
    one, other = rank[found.left[pairs]], rank[found.right[pairs]]
    low, high = np.minimum(one, other), np.maximum(one, other)
    by_rank = np.argsort(low.astype(np.int64) << 32 | high)
    fixed = texts.fixed[order] if texts.fixed.any() else None
    made = stars(len(order), low[by_rank], high[by_rank], fixed=fixed)
    look_up(order, made, into=made)
    give_back()
    return TextNumbers(look_up(made, rank, into=np.empty_like(made))), rank


# --- crowded places ----------------------------------------------------------------------------------------


def leading(keeper: TextNumbers) -> Flags:
    """Which texts are kept for another one."""
    leads = np.zeros(len(keeper), dtype=bool)
    leads[keeper[keeper != np.arange(len(keeper), dtype=np.int32)]] = True
    return leads


def crowded_keepers(keeper: TextNumbers, rank: Ranks, found: Candidates) -> TextNumbers:
    """The keepers that have more candidates than were considered, in the order."""
    hubs = found.crowded[leading(keeper)[found.crowded]]
    return TextNumbers(hubs[np.argsort(rank[hubs])])


def open_to(reach: Reach, keeper: TextNumbers, rank: Ranks, texts: Representatives, met: Flags) -> Reach:
    """Those in *reach* that may be compared with its text, were *met*, and have no better keeper."""
    hub, other = reach.text, reach.others
    wanted = (rank[keeper[other]] > rank[hub]) & ~texts.fixed[other] & (other != hub)
    wanted &= met[other]
    wanted &= texts.comparable(TextNumbers(np.full(len(other), hub)), other)
    return reach.only(wanted)


def take(hub: int, taken: TextNumbers, keeper: TextNumbers, leads: Flags) -> None:
    """Let *hub* keep the texts that it has *taken*: changes *keeper*.

    What one of those kept stays by itself: it was not accepted against its new keeper.
    """
    keeper[taken] = hub
    if leads[taken].any():
        own = np.arange(len(keeper), dtype=np.int32)
        lost = np.isin(keeper, taken) & (keeper != own)
        keeper[lost] = np.flatnonzero(lost)


# --- the best keeper ---------------------------------------------------------------------------------------


def best_keepers(
    keeper: TextNumbers, rank: Ranks, found: Candidates, judgements: Judgements, *, any_keeper: bool
) -> Keepers:
    """Every text that goes joins the most similar of the keepers that it is verified against.

    Unless *any_keeper*, only of those before it in the keep order: what the rule prefers never goes for
    what it does not. Changes *keeper*.
    """
    stays = keeper == np.arange(len(keeper), dtype=np.int32)
    one, other = found.left, found.right
    # Pairs of a text that stays and one that goes.
    rows = np.flatnonzero(stays[one] != stays[other])
    if not any_keeper:
        rows = rows[
            np.where(
                stays[one[rows]], rank[one[rows]] < rank[other[rows]], rank[other[rows]] < rank[one[rows]]
            )
        ]
    yes = rows[judgements.lets_go(PairNumbers(rows), stays[other[rows]])]
    goes = np.where(stays[one[yes]], other[yes], one[yes])
    keeps = np.where(stays[one[yes]], one[yes], other[yes])
    plain, weighted = (judgements.measured[yes, column].astype(np.int64) for column in (0, 1))
    best = np.lexsort([rank[keeps], found.distance[yes], -plain, -weighted, goes])
    first = np.ones(len(best), dtype=bool)
    first[1:] = goes[best][1:] != goes[best][:-1]
    chosen = best[first]
    pair = np.full(len(keeper), -1, dtype=np.int32)
    keeper[goes[chosen]] = keeps[chosen]
    pair[goes[chosen]] = yes[chosen]
    return Keepers(keeper, PairNumbers(pair))
