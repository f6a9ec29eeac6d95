"""Live clusters: stars of contents, kept up while documents come and go.

A content joins the best keeper that it was compared with and accepted; a chain joins nobody. What came first
keeps. When a keeper goes, the contents that it kept are placed again, by the evidence that was written when
each of them came; no two are compared anew. `Collection.dedupe` is the canonical answer, in any keep order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from neardup.collections.verdicts import DIFFERENT, SAME, said_of
from neardup.store import CONTENTS, EVIDENCE, Content, Evidence, Store, Writing


def keeper_for(store: Store, digest: bytes, evidence: Sequence[tuple[Evidence, Content]]) -> Content | None:
    """The keeper that a content with this *digest* joins, by its accepted evidence and what was said of it.

    None if it keeps itself.
    """
    said = said_of(store, digest)
    if not said and not evidence:
        return None
    apart = [one for one, row in said.items() if row.verdict == DIFFERENT]
    # What waits for a place itself keeps nobody out of one.
    banned = {row.cluster for row in store.find(CONTENTS, "digest", apart) if row.keeper}
    found = [
        ((-row.weighted, -row.similarity, row.distance, other.number), other)
        for row, other in evidence
        if row.accepted
        and other.digest not in said
        and other.keeper == other.number
        and other.cluster not in banned
    ]
    together = [one for one, row in said.items() if row.verdict == SAME]
    for other in store.find(CONTENTS, "digest", together):
        if other.keeper == other.number and other.cluster not in banned:
            # What a person said goes before what was measured.
            found.append(((-(1 << 20), 0, 0, other.number), other))
    return min(found, key=lambda one: one[0])[1] if found else None


def place_again(store: Store, writing: Writing, numbers: Iterable[int]) -> None:
    """Find a place anew for contents that lost their keeper, and for those that they kept.

    The first one of a cluster that stays by itself goes on with its number.
    """
    waiting = set(numbers)
    for row in store.find(CONTENTS, "number", list(waiting)):
        waiting |= {one.number for one in kept_by(store, row)}
    rows: dict[int, Content] = {row.number: row for row in store.find(CONTENTS, "number", waiting)}
    # Until they have a place, none of them keeps another one.
    for row in rows.values():
        writing.replace(CONTENTS, row._replace(keeper=0))
    there = store.find(CONTENTS, "cluster", {row.cluster for row in rows.values()})
    taken = {row.cluster for row in there if row.keeper}
    for number in sorted(rows):
        row = rows[number]
        keeper = keeper_for(store, row.digest, evidence_of(store, number))
        if keeper is not None and keeper.number != number:
            placed = row._replace(cluster=keeper.cluster, keeper=keeper.number)
        else:
            cluster = writing.next() if row.cluster in taken else row.cluster
            placed = row._replace(cluster=cluster, keeper=number)
        taken.add(placed.cluster)
        change = writing.log("placed", content=number, cluster=placed.cluster)
        writing.replace(CONTENTS, placed._replace(change=change))


def kept_by(store: Store, row: Content) -> list[Content]:
    """The contents that a content keeps, itself among them if it keeps any."""
    if row.keeper != row.number:
        return []
    return [one for one in store.find(CONTENTS, "cluster", [row.cluster]) if one.keeper == row.number]


def evidence_of(store: Store, number: int) -> list[tuple[Evidence, Content]]:
    """What was measured of a content, with the other one of each pair as it stands now."""
    pairs: list[Evidence] = [
        *store.find(EVIDENCE, "low", [number]), *store.find(EVIDENCE, "high", [number])
    ]  # fmt: skip
    other = {row.high if row.low == number else row.low: row for row in pairs}
    return [(other[row.number], row) for row in store.find(CONTENTS, "number", other)]
