"""From fingerprints to pairs and groups, by looking at every pair."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence


def join(prints: Sequence[int | None], radius: int) -> list[tuple[int, int, int]]:
    """All pairs (left, right, distance) within *radius*; None is in no pair.

    >>> join([0b1010, 0b1011, None, 0b0000], radius=2)
    [(0, 1, 1), (0, 3, 2)]
    """
    return [
        (left, right, (one ^ two).bit_count())
        for left, one in enumerate(prints)
        for right, two in enumerate(prints)
        if left < right and one is not None and two is not None and (one ^ two).bit_count() <= radius
    ]


def join_two(
    prints: Sequence[int | None], other: Sequence[int | None], radius: int
) -> list[tuple[int, int, int]]:
    """All pairs of one set with another."""
    return [
        (left, right, (one ^ two).bit_count())
        for left, one in enumerate(prints)
        for right, two in enumerate(other)
        if one is not None and two is not None and (one ^ two).bit_count() <= radius
    ]


def join_nearest(
    prints: Sequence[int | None],
    radius: int,
    most: int,
    allowed: Callable[[int, int], bool] = lambda left, right: True,
) -> tuple[list[tuple[int, int, int]], set[int]]:
    """The pairs that are among the *most* nearest of one of their two, and the rows that have another one.

    Among equally near rows, lower numbers come first; only *allowed* pairs are considered.

    >>> join_nearest([0, 1, 3, 7], radius=3, most=1)
    ([(0, 1, 1), (1, 2, 1), (2, 3, 1)], {0, 1, 2, 3})
    """
    pairs = [(left, right, far) for left, right, far in join(prints, radius) if allowed(left, right)]
    near: list[list[tuple[int, int]]] = [[] for _ in prints]
    for left, right, far in pairs:
        near[left].append((far, right))
        near[right].append((far, left))
    held = [set(sorted(one)[:most]) for one in near]
    stays = [p for p in pairs if (p[2], p[1]) in held[p[0]] or (p[2], p[0]) in held[p[1]]]
    crowded = {row for pair in set(pairs) - set(stays) for row in pair[:2]}
    return stays, crowded


def groups(prints: Sequence[int | None], radius: int, order: Iterable[int] | None = None) -> list[list[int]]:
    """Greedy stars, the centre first; None is alone.

    >>> groups([0b0011, 0b1111, 0b0111, 0], radius=1)
    [[0, 2], [1], [3]]
    """
    places = list(range(len(prints)) if order is None else order)
    free = set(places)
    found = []
    for place in places:
        if place not in free:
            continue
        center = prints[place]
        near = [
            other
            for other in places
            if other in free
            and other != place
            and center is not None
            and (value := prints[other]) is not None
            and (center ^ value).bit_count() <= radius
        ]
        found.append([place, *near])
        free -= {place, *near}
    return found


def components(pairs: Iterable[tuple[int, int]], n: int) -> list[int]:
    """For each row the smallest row that a chain of pairs leads to.

    >>> components([(0, 1), (1, 2)], 4)
    [0, 0, 0, 3]
    """
    label = list(range(n))
    for left, right in pairs:
        low, high = sorted((label[left], label[right]))
        label = [low if old == high else old for old in label]
    return label


def search(stored: Sequence[tuple[object, int]], query: int, radius: int) -> list[tuple[object, int]]:
    """(id, distance) of all stored (id, fingerprint) within *radius*, nearest first, then by id."""
    near = [(name, (value ^ query).bit_count()) for name, value in stored]
    return sorted(((name, far) for name, far in near if far <= radius), key=lambda hit: (hit[1], hit[0]))


def nearest(stored: Sequence[tuple[object, int]], query: int, n: int) -> list[tuple[object, int]]:
    """(id, distance) of the *n* nearest, ties by id."""
    return search(stored, query, radius=1 << 20)[:n]
