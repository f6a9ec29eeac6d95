"""A pair of files measured again, before one of them goes: what a run says is not believed.

The two are read anew, and what is measured is bound to their digests. Texts must have the similarity
that the evidence says, and the rule of the run must accept them as if there were no other document.
What many documents share, and neighbours, are not asked again: alone, a pair has these tests in its
favour, and who made them is for the seal of the run to show.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from neardup import pictures
from neardup.errors import NeardupError
from neardup.runs import Input, Run
from neardup.sources.files import File
from neardup.sources.reading import Request, Unfit
from neardup.sources.streams import Broken
from neardup.sources.text import content
from neardup.thumbs import BadPicture, Picture, decode
from neardup.verify import IDENTICAL, REASONS, SPELLED, WHOLE, Measure, Verifier, measuring_scheme

# Bytes for two texts and their profiles; what is more goes to a file.
MEMORY: Final = 64 << 20
EQUAL: Final = (IDENTICAL, SPELLED)


class Proof(NamedTuple):
    """What the evidence says of a pair that was accepted."""

    similarity: float
    rule: str


class Unproved(Exception):
    """A pair that is not what the run says; the message tells why."""


class Remeasured(NamedTuple):
    """What is found of two texts that are alone in the world."""

    similarity: float
    accepted: bool
    rule: str


class Proofs:
    """Measures pairs of files by the rule of a run."""

    def __init__(self, run: Run) -> None:
        settings = run.settings
        self._request = Request(html=bool(settings.get("html")))
        self._rule: pictures.Rule | None = None
        self._measure: Measure | None = None
        if settings.get("format") == "image":
            asked = settings.get("radius")
            self._rule = run.picture_rule
            self._radius = max(asked, pictures.RADIUS) if type(asked) is int else pictures.RADIUS
        else:
            self._measure = run.measure

    def check(self, file: Input, keeper: Input, proof: Proof) -> None:
        """Raise Unproved unless *file*, of the bytes that its digest names, is a duplicate of *keeper*."""
        if file.sha256 == keeper.sha256:
            return
        if self._rule is not None:
            found = pictures.compare(_picture(keeper), _picture(file), self._rule, radius=self._radius)
            if not found.accepted:
                raise Unproved(f"measured again it is no duplicate of its keeper: {found.rule}")
            return
        assert self._measure is not None
        again = remeasured(self._measure, self._text(keeper, "its keeper "), self._text(file))
        if again.rule in EQUAL:
            return
        if proof.rule in EQUAL:
            raise Unproved("is not the text of its keeper, which the evidence says it is")
        if not again.accepted:
            raise Unproved(f"measured again it is no duplicate of its keeper: {again.rule}")
        if round(again.similarity * WHOLE) != round(proof.similarity * WHOLE):
            raise Unproved(
                f"measured again its similarity is {again.similarity:.4f}, "
                f"not {proof.similarity:.4f} as the evidence says"
            )

    def _text(self, one: Input, what: str = "") -> str:
        # A file of a folder, so that no link is followed to it.
        file = File(one.path, root=os.path.dirname(one.path))
        try:
            text = content(file, self._request)
        except (Broken, Unfit, NeardupError, OSError) as fault:
            raise Unproved(f"{what}cannot be measured again: {fault}") from None
        if file.hashed() != one.sha256:
            raise Unproved(f"{what}changed since the run: its content is another")
        return text


def _picture(one: Input) -> Picture:
    file = File(one.path, root=os.path.dirname(one.path))
    try:
        with file.open() as stream:
            data = stream.read()
        if hashlib.sha256(data).hexdigest() != one.sha256:
            raise Unproved("it or its keeper changed since the run: the content is another")
        return decode(data)
    except (Broken, BadPicture, NeardupError, OSError) as fault:
        raise Unproved(f"cannot be measured again: {fault}") from None


def remeasured(measure: Measure, left: str, right: str) -> Remeasured:
    """The verdict on two texts as if there were no other document.

    >>> from neardup.verify import parse_measure
    >>> remeasured(parse_measure("default"), "one two three", "One, two, three!").rule
    'identical but for case, spacing or punctuation'
    """
    measuring = measuring_scheme()
    if not measuring.fingerprints([left, right]).valid.all():
        return Remeasured(0.0, False, "too little to tell")
    if measuring.normalized(left) == measuring.normalized(right):
        return Remeasured(1.0, True, IDENTICAL if left == right else SPELLED)
    numbers = np.arange(2)
    with tempfile.TemporaryDirectory(prefix="neardup-") as folder:
        verifier = Verifier(
            measure,
            measuring.fit([left, right]).frequencies,
            2,
            wanted=numbers,
            spill=os.path.join(folder, "texts"),
            memory=MEMORY,
        )
        verifier.add(numbers, pa.array([left, right], pa.large_string()))
        verifier.meet(numbers[:1], numbers[1:])
        found = verifier.judge(numbers[:1], numbers[1:])
    return Remeasured(float(found.plain[0]), bool(found.accepted[0]), REASONS[found.reason[0]])
