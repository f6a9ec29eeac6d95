"""Search: what of a collection is near to one document, measured on what it really holds.

Pictures are asked for in both directions: the picture in question may be a part of one that is
there, or the other way round.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from neardup import pictures
from neardup.errors import InvalidValue
from neardup.features.image import PARTS
from neardup.pairs import join
from neardup.radius import radius_for
from neardup.schemes import scheme as scheme_of
from neardup.sources import mostly_pictures, open_source
from neardup.thumbs import PIXELS, decode

RADIUS: Final = 100


@dataclass(frozen=True, slots=True)
class Match:
    """A document that is near to the one in question."""

    id: str
    distance: int
    similarity: float
    rule: str
    """What leads from one picture to the other; for a text how its similarity is known."""


def search_pictures(
    picture: bytes, data: Any, *, radius: int = RADIUS, threads: int | None = None
) -> list[Match]:
    """The pictures of *data* (files, folders) that show what the file *picture* shows, the nearest first."""
    asked = np.frombuffer(decode(picture).thumb, dtype=np.uint8)[None]
    ids: list[str] = []
    blocks = [np.zeros((0, PIXELS), dtype=np.uint8)]
    for batch in open_source(data, format="image", unique=True):
        assert batch.pictures is not None
        ids += batch.ids.to_pylist()
        blocks.append(batch.pictures)
    there = np.concatenate(blocks)
    thumbs = np.concatenate([there, asked])
    me = len(there)
    kept, own = (pictures.stored(some, threads=threads) for some in (there, asked))
    questions, others = (pictures.asked(some, views=PARTS, threads=threads) for some in (asked, there))
    rule = pictures.RULES["loose"]
    found: dict[int, Match] = {}
    for ways, swapped in (
        (pictures.propose(kept, questions, radius, own=False, threads=threads), False),
        (pictures.propose(own, others, radius, own=False, threads=threads), True),
    ):
        left = np.full(len(ways.left), me) if swapped else ways.left
        right = ways.right if swapped else np.full(len(ways.right), me)
        seen = pictures.agreements(thumbs, left, right, ways.map, threads=threads)
        for row, reason in enumerate(pictures.judge(seen, rule).tolist()):
            if reason >= pictures.ACCEPTING:
                continue
            number = int(right[row] if swapped else left[row])
            similarity = round(float(min(seen[row, 9], 1.0)), 4)
            match = Match(ids[number], int(ways.distance[row]), similarity, pictures.REASONS[reason])
            if number not in found or found[number].similarity < similarity:
                found[number] = match
    return sorted(found.values(), key=lambda one: (-one.similarity, one.distance, one.id))


def search_texts(
    text: str, data: Any, *, similarity: float = 0.64, threads: int | None = None
) -> list[Match]:
    """The texts of *data* within the radius of that similarity, which is estimated; the nearest first."""
    from neardup.distances import similarity as estimate

    ids: list[str] = []
    texts: list[str] = []
    for batch in open_source(data, unique=True):
        ids += batch.ids.to_pylist()
        texts += batch.texts.to_pylist()
    plain = scheme_of("text")  # not fitted: one question has no say in what is common
    prints, question = plain.fingerprints(texts, threads=threads), plain.fingerprints([text])
    pairs = join(prints, radius_for(similarity, 0.95, plain.bits), other=question, threads=threads)
    rows = [
        Match(
            ids[left], distance, round(estimate(distance, plain.bits), 4), "estimated from the fingerprints"
        )
        for left, _, distance in pairs
    ]
    return sorted(rows, key=lambda one: (one.distance, one.id))


def search(question: str, data: Sequence[str], *, threads: int | None = None) -> list[Match]:
    """Search *data* for a file, a picture or a text, or for a text that is given itself."""
    if os.path.isfile(question):
        if mostly_pictures([question]):
            with open(question, "rb") as file:
                return search_pictures(file.read(), list(data), threads=threads)
        with open(question, encoding="utf-8", errors="replace") as text:
            question = text.read()
    if not question.strip():
        raise InvalidValue("there is nothing to search for")
    return search_texts(question, list(data), threads=threads)
