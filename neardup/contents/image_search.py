"""Images that show what the one in question shows: in folders, and in an index of fingerprints.

In a folder, images are compared in both directions: the one in question may be a part of one that is there,
or the other way round. An index holds whole images, so only the query side adds its parts.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from neardup.contents.matches import NOT_VERIFIED, nearest_first, scheme_of_index
from neardup.contents.model import Match
from neardup.distances import similarity as estimate
from neardup.errors import SchemeMismatch
from neardup.fingerprints import Fingerprints
from neardup.images import agreements, proposals, rules
from neardup.images.prints import asked
from neardup.images.thumbs import THUMB, Thumbs, decode
from neardup.images.views import PARTS
from neardup.index import Index
from neardup.sources import id_path, open_source

RADIUS: Final = 100
# What an index of images may have been built with, unless the user says it.
SCHEMES: Final = ("image", "phash:256", "phash:64", "dhash:256", "dhash:64", "ahash:64")


def search_images(
    image: bytes,
    data: Any,
    *,
    radius: int = RADIUS,
    ignore_colour: bool = False,
    threads: int | None = None,
) -> list[Match]:
    """The images of *data* (files, folders) that show what the file *image* shows, the nearest first."""
    return nearest_first(_compared(image, _shelf(data), radius, ignore_colour, threads))


def _thumb(image: bytes) -> Thumbs:
    return np.frombuffer(decode(image).thumb, dtype=np.uint8)[None]


@dataclass(frozen=True, slots=True, eq=False)
class _Shelf:
    """Image files: ids, SHA-256 of their bytes, thumbnails."""

    ids: list[str]
    digests: list[str]
    thumbs: Thumbs


def _shelf(data: Any) -> _Shelf:
    found = _Shelf([], [], np.zeros((0, THUMB), dtype=np.uint8))
    blocks = [found.thumbs]
    for batch in open_source(data, format="image", unique=True) if data else ():
        assert batch.images is not None
        found.ids.extend(batch.ids.to_pylist())
        found.digests.extend(batch.texts.to_pylist())
        blocks.append(batch.images)
    return replace(found, thumbs=np.concatenate(blocks))


def _compared(
    image: bytes, shelf: _Shelf, radius: int, ignore_colour: bool, threads: int | None
) -> list[Match]:
    """Which images show what the one in question shows: each is laid over it, in both directions."""
    ids, there, here = shelf.ids, shelf.thumbs, _thumb(image)
    thumbs = np.concatenate([there, here])
    me = len(there)
    questions, others = (asked(some, views=PARTS, threads=threads) for some in (here, there))
    rule = rules.rule_of("loose", ignore_colour=ignore_colour)
    within = proposals.propose(others.as_they_are, questions, radius, own=False, threads=threads)
    around = proposals.propose(questions.as_they_are, others, radius, own=False, threads=threads)
    elected = proposals.propose_by_corners(thumbs, me, threads=threads)
    found: dict[int, Match] = {}
    for ways, left, right in (
        (within, within.left, np.full(len(within.left), me)),
        (around, np.full(len(around.left), me), around.right),
        (elected, elected.left, elected.right),
    ):
        seen = agreements.agreements(thumbs, left, right, ways.map, threads=threads)
        for row, reason in enumerate(rules.judge(thumbs, left, right, seen, rule, threads=threads).tolist()):
            if reason >= rules.ACCEPTING:
                continue
            number = int(min(left[row], right[row]))
            same = np.array_equal(there[number], here[0])
            similarity = 1.0 if same else round(float(min(seen[row, 9], 1.0)), 4)
            match = Match(ids[number], int(ways.distance[row]), similarity, True, rules.REASONS[reason])
            known = found.get(number, match)
            best = max(known, match, key=lambda one: one.similarity)
            found[number] = replace(best, distance=min(known.distance, match.distance))
    digest = hashlib.sha256(image).hexdigest()
    for number, other in enumerate(shelf.digests):
        if other == digest:
            found[number] = Match(ids[number], 0, 1.0, True, rules.IDENTICAL)
    return list(found.values())


def search_image_index(
    image: bytes,
    index: Index,
    scheme: str | None = None,
    *,
    ignore_colour: bool = False,
    threads: int | None = None,
) -> list[Match]:
    """The images of *index* that show what the file *image* shows, the nearest first."""
    own = scheme_of_index(
        index, scheme, "image", "phash:256", "phash:64", "dhash:256", "dhash:64", "ahash:64"
    )
    if own.features != "picture":
        raise SchemeMismatch(f"the index holds fingerprints of scheme {own.name!r}, not of images")
    if own.hash == "dct-signs":
        questions = asked(_thumb(image), views=PARTS, threads=threads)
        prints = Fingerprints(questions.prints.words, bits=own.bits, digest=own.digest)
        views = rules.named(questions.matrix)
    else:
        prints, views = own.fingerprints([image]), ["same image"]
    near: dict[str, tuple[int, int]] = {}
    for row, id, distance in index.search(prints, threads=threads):
        near[str(id)] = min(near.get(str(id), (distance, row)), (distance, row))
    paths = [path for id in near if os.path.isfile(path := id_path(id))]
    shelf = _shelf(paths)
    return nearest_first(
        _compared(image, shelf, RADIUS, ignore_colour, threads)
        + [
            Match(
                id,
                distance,
                round(estimate(distance, own.bits), 4),
                accepted=False,
                reason=f"{NOT_VERIFIED}: {views[row]}",
                verified=False,
            )
            for id, (distance, row) in near.items()
            if id not in shelf.ids
        ]
    )
