"""Search: what in a collection is near one document, measured on what it really holds.

A collection is files and folders, or an index of their fingerprints. In a folder,
images are compared in both directions: the image in question may be a part of one that is there, or the
other way round. An index holds whole images, so only the query side adds its parts. The index proposes;
what it names is then read and measured, or reported as not verified if it cannot be read.
"""

from __future__ import annotations

import hashlib
import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from neardup.distances import similarity as estimate
from neardup.errors import InvalidValue, Said, SchemeMismatch, Setting, shown
from neardup.fingerprints import Fingerprints
from neardup.images import agreements, proposals, rules
from neardup.images.prints import asked, stored
from neardup.images.thumbs import THUMB, Thumbs, decode
from neardup.images.views import PARTS
from neardup.index import Index
from neardup.pairs import join
from neardup.radius import radius_for
from neardup.schemes import Scheme
from neardup.schemes import scheme as scheme_of
from neardup.schemes.fitting import fit_batches
from neardup.sources import Source, format_of, is_file_name, mostly_images, open_source
from neardup.sources.files import File
from neardup.sources.names import id_path
from neardup.verifiers import counts_features, judged_pairs, measuring_scheme, parse_measure

RADIUS: Final = 100
SIMILARITY: Final = 0.64
NOT_VERIFIED: Final = "not verified"
_MAGIC: Final = b"NDINDEX\n"


@dataclass(frozen=True, slots=True)
class Match:
    """A document that is near the one in question.

    `similarity` is measured, or estimated from the distance if *verified* is False.
    """

    id: str
    distance: int
    similarity: float
    accepted: bool
    """Whether a run would take the two for duplicates; False if nothing was measured."""
    reason: str
    """For images, what leads from one to the other; for texts, why it is near or not."""
    verified: bool = True


def search(
    question: str,
    data: Sequence[str],
    *,
    scheme: str | None = None,
    ignore_colour: bool = False,
    rejected: bool = False,
    threads: int | None = None,
) -> list[Match]:
    """Search *data* (files, folders, indexes) for a file, an image or a text, or for a text given itself.

    A text is near if `dedupe` would accept the two; with *rejected* the result also has those that are as
    similar but not accepted. *scheme* names the scheme of the indexes, if it is not a built-in one. With
    *ignore_colour* an image in clearly different colours is found as well.
    """
    indexes = [path for path in data if is_index(path)]
    others = [path for path in data if path not in indexes]
    found: list[Match] = []
    _check_question(question, others)
    if os.path.isfile(question) and mostly_images([question]):
        with open(question, "rb") as file:
            image = file.read()
        for path in indexes:
            index = Index.load(path)
            found += search_image_index(image, index, scheme, ignore_colour=ignore_colour, threads=threads)
        if others:
            found += search_images(image, others, ignore_colour=ignore_colour, threads=threads)
        return _sorted(found)
    if os.path.isfile(question):
        with open(question, encoding="utf-8", errors="replace") as text:
            question = text.read()
    if not question.strip():
        raise InvalidValue("there is nothing to search for")
    for path in indexes:
        found += search_text_index(question, Index.load(path), scheme, threads=threads)
    if others:
        found += search_texts(question, others, threads=threads)
    return _sorted([match for match in found if match.accepted or rejected or not match.verified])


def _check_question(question: str, folders: Sequence[str]) -> None:
    """Raise if *question* is meant as a file, but is not one that holds a single image or text."""
    if os.path.isdir(question):
        raise InvalidValue(f"{question!r} is a folder; name an image or a text file in it")
    if not os.path.isfile(question):
        if is_file_name(question) or (folders and mostly_images(list(folders))):
            raise InvalidValue(f"no file {shown(question, 300)}")
        return
    format = format_of(File(question))[0]
    if format not in (None, "text", "image"):
        raise InvalidValue(
            Said(
                f"{question!r} holds documents of its own ({format}), and search asks for one text or "
                f"image; to compare them all: neardup dedupe {shlex.quote(question)} ",
                Setting("protect"),
                " COLLECTION ",
                Setting("out"),
                " DIR",
            )
        )


def reach(question: str) -> str:
    """How near a document must be to *question* to be found, in words."""
    if os.path.isfile(question) and mostly_images([question]):
        return f"{RADIUS} of 256 bits of the image {question!r}, in any turn or part"
    return f"a similarity of {SIMILARITY} to the text"


def _sorted(found: list[Match]) -> list[Match]:
    return sorted(found, key=lambda one: (-one.similarity, one.distance, one.id))


# --- folders ---------------------------------------------------------------------------------------------


def search_images(
    image: bytes,
    data: Any,
    *,
    radius: int = RADIUS,
    ignore_colour: bool = False,
    threads: int | None = None,
) -> list[Match]:
    """The images of *data* (files, folders) that show what the file *image* shows, the nearest first."""
    return _sorted(_compared(image, _shelf(data), radius, ignore_colour, threads))


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
    kept, own = (stored(some, threads=threads) for some in (there, here))
    questions, others = (asked(some, views=PARTS, threads=threads) for some in (here, there))
    rule = rules.rule_of("loose", ignore_colour=ignore_colour)
    within = proposals.propose(kept, questions, radius, own=False, threads=threads)
    around = proposals.propose(own, others, radius, own=False, threads=threads)
    elected = proposals.propose_by_corners(thumbs, me, threads=threads)
    found: dict[int, Match] = {}
    for ways, left, right in (
        (within, within.left, np.full(len(within.left), me)),
        (around, np.full(len(around.left), me), around.right),
        (elected, elected.left, elected.right),
    ):
        seen = agreements.agreements(thumbs, left, right, ways.map, threads=threads)
        for row, reason in enumerate(rules.judge(thumbs, left, right, seen, rule).tolist()):
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


def search_texts(
    text: str, data: Any, *, similarity: float = SIMILARITY, threads: int | None = None
) -> list[Match]:
    """The texts of *data* at least this similar, the nearest first, and which of them a run accepts."""
    ids: list[str] = []
    texts: list[str] = []
    for batch in open_source(data, unique=True):
        ids += batch.ids.to_pylist()
        texts += batch.texts.to_pylist()
    plain = scheme_of("text")  # its fingerprints are not fitted: one query has no say in what is common
    prints, question = plain.fingerprints(texts, threads=threads), plain.fingerprints([text])
    near = join(prints, radius_for(similarity, 0.95, plain.bits), other=question, threads=threads)
    if not len(near):
        return []
    whole = measuring_scheme().fit([*texts, text], threads=threads)
    found = {ids[left]: (distance, texts[left]) for left, _, distance in near}
    return _judged(text, found, plain, whole, similarity, threads)


def _judged(
    question: str,
    near: Mapping[str, tuple[int, str]],
    scheme: Scheme,
    whole: Scheme,
    similarity: float,
    threads: int | None,
) -> list[Match]:
    """What a run would say about the *question* and each text *near* it, by id with its distance.

    *whole* knows how common features are. Texts that are near each other are neighbours of the pairs.
    """
    texts = [text for _, text in near.values()]
    radius = radius_for(similarity, 0.95, scheme.bits)
    among = join(scheme.fingerprints(texts, threads=threads), radius, threads=threads)
    pairs = [(question, text) for text in texts]
    pairs += [(texts[left], texts[right]) for left, right, _ in among]
    verdicts = judged_pairs(pairs, parse_measure("default", similarity), whole.frequencies, threads=threads)
    rows = zip(near.items(), verdicts, strict=False)
    return _sorted(
        [
            Match(id, distance, round(found.similarity, 4), found.accepted, found.reason)
            for (id, (distance, _)), found in rows
            if found.similarity >= similarity
        ]
    )


# --- indexes ---------------------------------------------------------------------------------------------


def is_index(path: str) -> bool:
    """Whether *path* is a file that `Index.save` wrote, by its first bytes."""
    if not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        return file.read(len(_MAGIC)) == _MAGIC


def index_radius(scheme: Scheme) -> int:
    """The radius that an index of documents of that scheme needs to answer `search`."""
    if scheme.features == "picture":
        return proposals.RADIUS * scheme.bits // 256
    return radius_for(SIMILARITY, 0.95, scheme.bits)


def fill(index: Index, data: Any, scheme: Scheme, *, threads: int | None = None) -> Source:
    """Fingerprint the documents of *data* into *index*, in place of what it held for the same ids.

    For an image the whole is held and, if it has flat borders, also what is inside them.
    """
    shown = scheme.features == "picture"
    source = open_source(data, format="image" if shown else None, unique=True)
    for batch in source:
        ids = batch.ids.to_pylist()
        index.remove(ids)
        if shown and scheme.hash == "dct-signs":
            assert batch.images is not None
            kept = stored(batch.images, threads=threads)
            prints = Fingerprints(kept.prints.words, bits=scheme.bits, digest=scheme.digest)
            index.add([ids[row] for row in kept.image.tolist()], prints, threads=threads)
        else:
            documents = [id_path(id) for id in ids] if shown else batch.texts
            index.add(ids, scheme.fingerprints(documents, threads=threads), threads=threads)
    return source


def _scheme(index: Index, name: str | None, *known: str) -> Scheme:
    """The scheme that *index* was built with: the one named, or the one of *known* that fits."""
    if name is not None:
        found = scheme_of(name)
        if index.bits != found.bits or index.digest not in (None, found.digest):
            raise SchemeMismatch(
                f"the index was built with scheme {index.digest} of {index.bits} bits, not with {name!r} "
                f"({found.digest}, {found.bits} bits); name the one it was built with"
            )
        return found
    for one in known:
        found = scheme_of(one)
        if index.digest == found.digest:
            return found
    raise SchemeMismatch(
        Said(
            f"the index was built with scheme {index.digest or '(not named)'}, none of {', '.join(known)}; "
            "name it with ",
            Setting("scheme"),
        )
    )


def search_image_index(
    image: bytes,
    index: Index,
    scheme: str | None = None,
    *,
    ignore_colour: bool = False,
    threads: int | None = None,
) -> list[Match]:
    """The images of *index* that show what the file *image* shows, the nearest first."""
    own = _scheme(index, scheme, "image", "phash:256", "phash:64", "dhash:256", "dhash:64", "ahash:64")
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
    return _sorted(
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


def search_text_index(
    text: str, index: Index, scheme: str | None = None, *, threads: int | None = None
) -> list[Match]:
    """The texts of *index* that are near *text*, the nearest first."""
    own = _scheme(index, scheme, "text")
    if own.features == "picture":
        raise SchemeMismatch(f"the index holds images (scheme {own.name!r}); search it with an image")
    near = {str(id): distance for _, id, distance in index.search(own.fingerprints([text]))}
    paths = [path for id in near if os.path.isfile(path := id_path(id))]
    texts: dict[str, str] = {}
    for batch in open_source(paths, unique=True) if paths else ():
        texts.update(zip(batch.ids.to_pylist(), batch.texts.to_pylist(), strict=True))
    there = {id: (distance, texts[id]) for id, distance in near.items() if id in texts}
    unread = [
        Match(id, distance, round(estimate(distance, own.bits), 4), False, NOT_VERIFIED, verified=False)
        for id, distance in near.items()
        if id not in texts
    ]
    if not there:
        return _sorted(unread)
    whole = _counted(own, text, [text for _, text in there.values()])
    return _sorted(unread + _judged(text, there, own, whole, SIMILARITY, threads))


def _counted(scheme: Scheme, question: str, texts: Sequence[str]) -> Scheme:
    """How common features are: as the *scheme* of an index counted them, or else in what was found."""
    measuring = measuring_scheme()
    if scheme.frequencies is None or not counts_features(scheme):
        return measuring.fit([question, *texts])
    return fit_batches(measuring, [[question]], parts=[replace(measuring, frequencies=scheme.frequencies)])
