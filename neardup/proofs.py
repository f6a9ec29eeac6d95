"""A pair of files measured again, before one of them goes: what a run says is not believed.

The two are read anew, and what is measured is bound to their digests. Texts must have the similarity
that the evidence says, and the rule of the run must accept them as if there were no other document.
What many documents share (numbers, too, where that mattered), and neighbours, are not looked at again: the
two alone pass the tests, and the seal of the run vouches for whoever made it. A learned rule is given what
the evidence says of common and rare text; of the default rule's verdict, which it may ask for, one must do.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np

from neardup.errors import DamagedFile, NeardupError, RefusedInput, shown
from neardup.images import comparisons, proposals, rules
from neardup.images.thumbs import BadImage, Thumbnail, decode
from neardup.runs import Input, Run
from neardup.sources.files import File
from neardup.sources.options import Request
from neardup.sources.reading import Unfit
from neardup.sources.streams import Broken
from neardup.sources.text import content
from neardup.verifiers import (
    EQUAL_TITLES,
    IDENTICAL,
    LACKS,
    NO_INFORMATION,
    OTHER_NUMBERS,
    SPELLED,
    WHOLE,
    LearnedRule,
    Measure,
    Verdicts,
    Verifier,
    measuring_scheme,
)
from neardup.verifiers.figures import NAMES
from neardup.verifiers.learned import Figures
from neardup.verifiers.reasons import TABLE

EQUAL: Final = (IDENTICAL, SPELLED)
# What the default rule may have said of a pair, by itself and among its neighbours.
VERDICTS: Final = np.array([(WHOLE, WHOLE), (WHOLE, 0), (0, 0)], np.uint16)


class Proof(NamedTuple):
    """The evidence for a pair that was accepted."""

    similarity: float
    reason: str
    weighted: float | None = None
    rare: float | None = None


class Unproved(Exception):
    """A pair that is not what the run says; the message says why."""


Again = Callable[[Input, Input, Proof], None]


class Remeasured(NamedTuple):
    """The verdict on two texts as if there were no others."""

    similarity: float
    accepted: bool
    reason: str


class Proofs:
    """Measures pairs of files by the rule of a run."""

    def __init__(self, run: Run) -> None:
        content = run.content
        if content.name not in AGAIN:
            raise RefusedInput(f"{content.noun}s cannot be measured again, so none of them is removed")
        self._again = AGAIN[content.name](run)

    def check(self, file: Input, keeper: Input, proof: Proof) -> None:
        """Raise Unproved unless *file*, of the bytes that its digest names, is a duplicate of *keeper*."""
        if file.sha256 != keeper.sha256:
            self._again(file, keeper, proof)


def _texts(run: Run) -> Again:
    measure, request = run.measure, Request(html=bool(run.settings.get("html")))
    same = run.settings.get("subject") is not None

    def check(file: Input, keeper: Input, proof: Proof) -> None:
        again = remeasured(
            measure, _text(keeper, request, "its keeper "), _text(file, request), proof, same=same
        )
        if again.reason in EQUAL:
            return
        if proof.reason in EQUAL:
            raise Unproved("is not the text of its keeper, which the evidence says it is")
        if not again.accepted:
            raise Unproved(f"measured again, it is not a duplicate of its keeper: {again.reason}")
        if round(again.similarity * WHOLE) != round(proof.similarity * WHOLE):
            raise Unproved(
                f"measured again its similarity is {again.similarity:.4f}, "
                f"not {proof.similarity:.4f} as the evidence says"
            )

    return check


def _images(run: Run) -> Again:
    name, similarity = run.judged_by
    if name not in rules.RULES:
        raise DamagedFile(f"run {run.path!r} has no rule for images, but {shown(name)}")
    rule = rules.rule_of(name, similarity, ignore_colour=run.settings.get("ignore_colour") is True)
    asked = run.settings.get("radius")
    radius = max(asked, proposals.RADIUS) if type(asked) is int else proposals.RADIUS

    def check(file: Input, keeper: Input, proof: Proof) -> None:
        found = comparisons.compare(_image(keeper), _image(file), rule, radius=radius)
        if not found.accepted:
            raise Unproved(f"measured again, it is not a duplicate of its keeper: {found.reason}")

    return check


AGAIN: Final[Mapping[str, Callable[[Run], Again]]] = {"text": _texts, "image": _images}
"""How each content is measured again."""


def _text(one: Input, request: Request, what: str = "") -> str:
    # A file of a folder, so that no link is followed to it.
    file = File(one.path, root=os.path.dirname(one.path))
    try:
        text = content(file, request)
    except (Broken, Unfit, NeardupError, OSError) as fault:
        raise Unproved(f"{what}cannot be measured again: {fault}") from None
    if file.hashed() != one.sha256:
        raise Unproved(f"{what}changed since the run: it has other content")
    return text


def _image(one: Input) -> Thumbnail:
    file = File(one.path, root=os.path.dirname(one.path))
    try:
        with file.open() as stream:
            data = stream.read()
        if hashlib.sha256(data).hexdigest() != one.sha256:
            raise Unproved("it or its keeper changed since the run: the content is different")
        return decode(data)
    except (Broken, BadImage, NeardupError, OSError) as fault:
        raise Unproved(f"cannot be measured again: {fault}") from None


def remeasured(
    measure: Measure, left: str, right: str, proof: Proof | None = None, *, same: bool = False
) -> Remeasured:
    """The verdict on two texts as if there were no other document, *same* if both are of one subject: whether
    the right one may go. A learned rule needs a *proof* for the rest.

    >>> from neardup.verifiers import parse_measure
    >>> remeasured(parse_measure("default"), "one two three", "One, two, three!").reason
    'identical but for case, spacing or punctuation'
    """
    measuring = measuring_scheme()
    if not measuring.fingerprints([left, right]).valid.all():
        return Remeasured(0.0, False, NO_INFORMATION)
    if measuring.normalized(left) == measuring.normalized(right):
        return Remeasured(1.0, True, IDENTICAL if left == right else SPELLED)
    verifier = Verifier(measure, measuring.fit([left, right]))
    verifier.add(("left", "right"), (left, right))
    if measure.learned is not None and proof is not None:
        figures = verifier.figures(("left",), ("right",), together=True, same=same)
        return _by_learned(measure.learned, *figures, proof)
    verdicts = verifier.judge_together(("left",), ("right",), same=same)
    if verdicts[0].reason == OTHER_NUMBERS and measure.rule is not None:
        # Whether many documents have these numbers is not known here.
        titled = verifier.titles(("left",), ("right",))[0] == EQUAL_TITLES
        if same or titled or verdicts[0].similarity * WHOLE >= measure.rule.high:
            uncounted = replace(measure, rule=replace(measure.rule, numbers=0))
            verdicts = verifier.judge(("left",), ("right",), uncounted, same=same)
    found = verdicts[0]
    goes = bool(verdicts.lets_go(np.zeros(1, dtype=bool))[0])
    reason = LACKS if found.accepted and not goes else found.reason
    return Remeasured(found.similarity, goes, reason)


def _by_learned(rule: LearnedRule, found: Verdicts, figures: Figures, proof: Proof) -> Remeasured:
    """The verdict of a learned rule that is as good as what cannot be measured again of two texts alone
    allows."""
    rows = np.repeat(figures, len(VERDICTS), axis=0)
    for name, value in (("weighted", proof.weighted), ("rare", proof.rare)):
        if value is not None:
            rows[:, NAMES.index(name)] = round(value * WHOLE)
    rows[:, [NAMES.index("alone"), NAMES.index("default")]] = VERDICTS
    accepted, code = rule.judge(rows, np.repeat(found.code, len(VERDICTS)))
    best = int(accepted.argmax())
    return Remeasured(float(found.similarity[0]), bool(accepted[best]), TABLE[int(code[best])].words)
