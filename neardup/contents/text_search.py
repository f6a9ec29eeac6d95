"""Texts near the one in question: in files, and in an index of fingerprints."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from neardup.contents.matches import NOT_VERIFIED, nearest_first, scheme_of_index
from neardup.contents.model import Match
from neardup.distances import similarity as estimate
from neardup.errors import InvalidValue, SchemeMismatch
from neardup.index import Index
from neardup.pairs import join
from neardup.radius import radius_for
from neardup.schemes import Scheme
from neardup.schemes import scheme as scheme_of
from neardup.schemes.fitting import fit_batches
from neardup.sources import Reading, id_path, open_source
from neardup.verifiers import counts_features, judged_pairs, measuring_scheme, parse_measure

SIMILARITY: Final = 0.64


def question_of(question: str) -> str:
    """The text that is searched for: that of a file, or the question itself."""
    if os.path.isfile(question):
        with open(question, encoding="utf-8", errors="replace") as text:
            question = text.read()
    if not question.strip():
        raise InvalidValue("there is nothing to search for")
    return question


def search_texts(
    text: str,
    data: Any,
    *,
    similarity: float = SIMILARITY,
    threads: int | None = None,
    reading: Reading | None = None,
) -> list[Match]:
    """The texts of *data* at least this similar, the nearest first, and which of them a run accepts."""
    ids: list[str] = []
    texts: list[str] = []
    for batch in open_source(data, reading or Reading(), unique=True):
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
    return nearest_first(
        [
            Match(id, distance, round(found.similarity, 4), found.accepted, found.reason)
            for (id, (distance, _)), found in rows
            if found.similarity >= similarity
        ]
    )


def search_text_index(
    text: str, index: Index, scheme: str | None = None, *, threads: int | None = None
) -> list[Match]:
    """The texts of *index* that are near *text*, the nearest first."""
    own = scheme_of_index(index, scheme, "text")
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
        return nearest_first(unread)
    whole = _counted(own, text, [text for _, text in there.values()])
    return nearest_first(unread + _judged(text, there, own, whole, SIMILARITY, threads))


def _counted(scheme: Scheme, question: str, texts: Sequence[str]) -> Scheme:
    """How common features are: as the *scheme* of an index counted them, or else in what was found."""
    measuring = measuring_scheme()
    if scheme.frequencies is None or not counts_features(scheme):
        return measuring.fit([question, *texts])
    return fit_batches(measuring, [[question]], parts=[replace(measuring, frequencies=scheme.frequencies)])
