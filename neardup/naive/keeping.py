"""Who stays: the keep order, stars, and the keeper that each text joins in the end."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import date
from math import inf
from typing import Any

Document = Mapping[str, Any]
Pair = tuple[int, int]


def score(name: str, argument: str, at: int, document: Document, degree: int) -> float:
    """What a keep rule makes of a document: the highest stays. Here dates are ISO days."""
    field, _, values = argument.partition("=")
    value = document.get(field)
    if name in ("newest", "oldest", "max", "min"):
        if value is None:
            return -inf  # what is not known comes last
        found = float(date.fromisoformat(value).toordinal() if name in ("newest", "oldest") else value)
        return found if name in ("newest", "max") else -found
    if name == "prefer":
        wanted = values.split(">")
        return -wanted.index(value) if value in wanted else -len(wanted)
    length = len(document["text"])
    return {"central": degree, "longest": length, "shortest": -length, "first": -at, "last": at}[name]


def keep_order(
    documents: Sequence[Document],
    keep: str,
    rows: Iterable[int] | None = None,
    *,
    fixed: Collection[int] = (),
    degree: Mapping[int, int] | None = None,
) -> list[int]:
    """The rows, or some of them, the one to keep first; ties are broken by id.

    *fixed* ones stay whatever happens. *degree* is the number of accepted pairs of a document, for `central`.

    >>> documents = [{"id": "b", "text": "xx"}, {"id": "a", "text": "xx"}, {"id": "c", "text": "xxx"}]
    >>> keep_order(documents, "longest")
    [2, 1, 0]
    """
    rules = [rule.partition(":")[::2] for rule in keep.split(",") if rule != "none"]

    def key(at: int) -> tuple[Any, ...]:
        document = documents[at]
        scores = [score(*rule, at, document, (degree or {}).get(at, 0)) for rule in rules]
        return at not in fixed, [-one for one in scores], document["id"].encode()

    return sorted(range(len(documents)) if rows is None else rows, key=key)


def stars(count: int, accepted: Iterable[Pair], fixed: Collection[int] = ()) -> list[int]:
    """For each text the one that stays for it, itself if it stays. They are numbered in keep order.

    One that is not taken takes every later one that is not taken, not *fixed*, and accepted against it.

    >>> stars(3, [(0, 1), (1, 2)])
    [0, 0, 2]
    """
    yes = {frozenset(pair) for pair in accepted}
    keeper = list(range(count))
    for one in range(count):
        for other in range(one + 1, count) if keeper[one] == one else ():
            if keeper[other] == other and other not in fixed and {one, other} in yes:
                keeper[other] = one
    return keeper


def absorb(
    keeper: list[int],
    hubs: Iterable[int],
    near: Callable[[int], Iterable[int]],
    accepts: Callable[[int, int], bool],
) -> None:
    """Let keepers in crowded places take what is beyond their nearest candidates. Changes *keeper*.

    Each of the *hubs* takes all that it is *near* to that are accepted against it and have no better keeper.
    Who loses its keeper that way was not compared with the new one, and stays.
    """
    for hub in hubs:
        if keeper[hub] == hub:
            taken = {one for one in near(hub) if keeper[one] > hub and accepts(hub, one)}
            for one in range(len(keeper)):
                if one in taken:
                    keeper[one] = hub
                elif keeper[one] in taken:
                    keeper[one] = one


def best_keepers(
    keeper: Sequence[int],
    accepted: Iterable[Pair],
    preference: Callable[[int, int], Any],
    lets_go: Callable[[int, int], bool] = lambda goes, one: True,
    *,
    any_keeper: bool,
) -> list[int]:
    """Every text that goes joins the keeper that it is most like, of those that it is accepted against.

    *preference* of the one that goes and a keeper is lowest for the best; *lets_go* says whether it may go.
    Unless *any_keeper*, only keepers before it in the keep order count: what the rule prefers never goes for
    what it does not.

    >>> best_keepers([0, 1, 0], [(0, 2), (1, 2)], lambda goes, one: -one, any_keeper=True)
    [0, 1, 1]
    """
    found = list(keeper)
    choice: dict[int, list[int]] = {}
    for pair in accepted:
        for goes, one in (pair, pair[::-1]):
            if (
                keeper[goes] != goes
                and keeper[one] == one
                and (any_keeper or one < goes)
                and lets_go(goes, one)
            ):
                choice.setdefault(goes, []).append(one)
    for goes, keepers in choice.items():
        found[goes] = min(keepers, key=lambda one, goes=goes: preference(goes, one))  # type: ignore[misc]
    return found
