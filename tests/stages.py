"""What the stages of the flow are handed, made small and by hand."""

from __future__ import annotations

from typing import Any

import numpy as np

from neardup.candidates import Candidates
from neardup.contents import TEXT
from neardup.fingerprints import Fingerprints
from neardup.keep import parse_keep
from neardup.representatives import Representatives
from neardup.settings import Settings
from neardup.sources import open_source
from neardup.survey import Documents, Surveyor
from neardup.types import TextNumbers
from neardup.verifiers import Verdicts

from .corpus import Rows

KEY = bytes(range(32))


def documents(rows: Rows, *fields: str) -> Documents:
    """What is known of them after the survey."""
    surveyor = Surveyor(lambda batch: TEXT.look(batch, None, KEY, None), fields)
    for batch in open_source(rows, fields=list(fields)):
        surveyor.add(batch, surveyor.look(batch))
    return surveyor.documents()


def representatives(
    rows: Rows, *, keep: str = "first", fixed: tuple[int, ...] = (), **choices: Any
) -> Representatives:
    """The texts of *rows*, of which those numbered in *fixed* are protected."""
    settings = Settings(keep=keep, **choices)
    found = documents(rows, *settings.fields)
    flags = np.isin(np.arange(len(rows)), fixed)
    return Representatives.of(found, settings, parse_keep(keep), flags, None)


def candidates(prints: list[int], *pairs: tuple[int, int], crowded: tuple[int, ...] = ()) -> Candidates:
    """Pairs of texts that have these fingerprints of 64 bits."""
    left, right = np.array(sorted(pairs), dtype=np.int64).reshape(-1, 2).T
    return Candidates(
        left=TextNumbers(left),
        right=TextNumbers(right),
        distance=np.array([(prints[a] ^ prints[b]).bit_count() for a, b in sorted(pairs)], dtype=np.int32),
        radius=3,
        plan="brute",
        prints=Fingerprints(np.array(prints, dtype=np.uint64).reshape(-1, 1)),
        crowded=TextNumbers(np.array(crowded, dtype=np.int64)),
    )


def verdicts(*found: tuple[bool, int, float]) -> Verdicts:
    """Whether each pair is accepted, the number of the reason, and all its similarities."""
    accepted, reason, similarity = (list(column) for column in zip(*found, strict=True))
    figures = np.array(similarity)
    return Verdicts(np.array(accepted), np.array(reason, dtype=np.uint8), figures, figures, figures)
