"""Why two documents are alike, or not: fingerprints, measures, and what sets them apart."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from neardup.distances import distance, similarity
from neardup.fingerprints import format
from neardup.images import agreements, comparisons, rules
from neardup.images.thumbs import BadImage, decode
from neardup.pairs import join
from neardup.schemes import Scheme
from neardup.verifiers import IDENTICAL, REASONS, SPELLED, Measure, Verifier, measuring_scheme
from neardup.verifiers.learned import weighed

# What the kinds of features of `mixed:N` are called; other features have one kind, 0.
KINDS = {0: "text", 1: "word", 2: "character", 3: "pair of characters", 4: "run of characters"}


@dataclass(frozen=True, slots=True)
class Difference:
    """A feature that weighs more in one text: occurrences, documents that have it, its part of the gap."""

    kind: str
    text: str
    left: int
    right: int
    documents: int | None
    share: float


@dataclass(frozen=True, slots=True)
class Explanation:
    """Everything there is to say about two texts. The fingerprints are None if there is no information."""

    left: str | None
    right: str | None
    bits: int
    distance: int | None
    estimated: float | None
    similarity: float
    differences: tuple[Difference, ...]
    scheme: str
    digest: str


@dataclass(frozen=True, slots=True)
class _Feature:
    kind: int
    text: str
    count: int


def explain(scheme: Scheme, left: str, right: str, *, most: int = 20) -> Explanation:
    """The fingerprints of two texts, their distance and similarity, and what weighs most between them.

    >>> from neardup.schemes import scheme
    >>> found = explain(scheme("words:1"), "the old house", "the new house")
    >>> round(found.similarity, 3), [(one.text, one.left, one.right) for one in found.differences]
    (0.667, [('new', 0, 1), ('old', 1, 0)])
    """
    prints = [scheme.fingerprint(text) for text in (left, right)]
    ours, theirs = (_features(scheme, text) for text in (left, right))
    apart = None if prints[0] is None or prints[1] is None else distance(prints[0], prints[1])
    return Explanation(
        left=None if prints[0] is None else format(prints[0], scheme.bits),
        right=None if prints[1] is None else format(prints[1], scheme.bits),
        bits=scheme.bits,
        distance=apart,
        estimated=None if apart is None else similarity(apart, scheme.bits),
        similarity=cosine(_counts(ours), _counts(theirs)),
        differences=_differences(scheme, ours, theirs, most),
        scheme=scheme.name,
        digest=scheme.digest,
    )


@dataclass(frozen=True, slots=True)
class Judgement:
    """What is measured of two texts, and what a rule says of it; named as in the evidence of a run."""

    similarity: float
    weighted: float
    rare: float
    accepted: bool
    reason: str


def judge(
    measure: Measure, scheme: Scheme, radius: int, whole: Scheme, texts: Sequence[str]
) -> Judgement | None:
    """The verdict on the first two *texts*, as a run with *measure* would give it; the others may object.

    None where there is nothing to measure. *whole* knows how common features are in all documents of the run.

    >>> from neardup.verifiers import parse_measure
    >>> text, whole = "one two three four", measuring_scheme().fit(["one", "two three"])
    >>> judge(parse_measure("default"), whole, 40, whole, [text, text.upper()]).reason
    'identical but for case, spacing or punctuation'
    """
    measuring = measuring_scheme()
    if not measure.verifies or not all(measuring.feature_list(text) for text in texts[:2]):
        return None
    if measuring.normalized(texts[0]) == measuring.normalized(texts[1]):
        return Judgement(1.0, 1.0, 1.0, True, IDENTICAL if texts[0] == texts[1] else SPELLED)
    verifier = _among(measure, scheme, radius, whole, texts)
    accepted, reason, plain, weighted, rare = verifier.judge(np.array([0]), np.array([1]))[0]
    return Judgement(similarity=plain, weighted=weighted, rare=rare, accepted=accepted, reason=reason)


def weigh(
    measure: Measure, scheme: Scheme, radius: int, whole: Scheme, texts: Sequence[str], *, most: int = 6
) -> list[tuple[str, int]]:
    """What weighed most for a learned rule on the first two *texts*, as `judge` has them: in words, each with
    its share of all that was weighed, in per cent; below 0 what spoke against the pair.

    Nothing where no learned rule is asked: another rule decides, or the two are one text.
    """
    measuring = measuring_scheme()
    same = measuring.normalized(texts[0]) == measuring.normalized(texts[1])
    if measure.learned is None or same or not all(measuring.feature_list(text) for text in texts[:2]):
        return []
    found, figures = _among(measure, scheme, radius, whole, texts).figures(np.array([0]), np.array([1]))
    too_different = REASONS[int(found.code[0])] == "too different"
    return [] if too_different else weighed(measure.learned, figures[0], most)


def _among(measure: Measure, scheme: Scheme, radius: int, whole: Scheme, texts: Sequence[str]) -> Verifier:
    """A verifier of *texts* that knows which are neighbours."""
    # A run uses one document of each text; a copy is not a neighbour.
    asked = list({measuring_scheme().normalized(text): text for text in texts}.values())
    near = join(scheme.fingerprints(asked), min(radius, scheme.bits))
    verifier = Verifier(measure, whole.frequencies)
    verifier.add(np.arange(len(asked)), asked)
    verifier.meet(near.left.astype(np.int64), near.right.astype(np.int64))
    return verifier


@dataclass(frozen=True, slots=True)
class ImageExplanation:
    """What there is to say about two images. Shares are of 1; the map leads from left to right."""

    left: str | None
    right: str | None
    bits: int
    distance: int | None
    """Of the two as they are."""
    proposed: int | None
    """Of the parts, turns and mirrors that are nearest; None if none is within the radius."""
    similarity: float
    """Mean correlation of the blocks that show something."""
    agree: float
    """Share of those blocks that agree: of the blocks of `differs` that are `.` or `#`."""
    agreement: float
    """The same, each block counted by how much it shows; the verdict rests on it."""
    fine_agreement: float
    """The same as `agreement` on the finer image."""
    left_shown: float
    """Share of the left image, without its borders, that the right one shows."""
    right_shown: float
    accepted: bool
    reason: str
    map: tuple[float, ...]
    sizes: tuple[tuple[int, int], ...]
    reduced: tuple[bool, ...]
    """Whether each was decoded at a smaller scale."""
    boxes: tuple[tuple[float, ...], ...]
    """What of each is inside its borders: left, top, right and bottom, of the unit square."""
    differs: tuple[str, ...]
    """One image, without its borders, in rows of blocks: `.` the same, `#` differs, `-` too plain to tell;
    a space is not in the other one."""
    differs_of: str
    """Which one that is: left or right."""
    scheme: str
    digest: str


def explain_images(
    scheme: Scheme, left: bytes, right: bytes, *, rule: rules.ImageRule = rules.RULES["default"]
) -> ImageExplanation:
    """The fingerprints of two image files, the best way to lay one on the other, and what differs then."""
    shown = []
    for name, data in (("left", left), ("right", right)):
        try:
            shown.append(decode(data))
        except BadImage as fault:
            raise BadImage(f"the {name} one {fault}") from None
    prints = scheme.fingerprints(shown if scheme.hash == "dct-signs" else [left, right])
    found = comparisons.compare(shown[0], shown[1], rule)
    named = dict(zip(agreements.AGREEMENT, found.found.tolist(), strict=True))
    same = left == right
    agree, told = int((found.marks == 0).sum()), int((found.marks <= 1).sum())
    return ImageExplanation(
        left=None if prints[0] is None else format(prints[0], scheme.bits),
        right=None if prints[1] is None else format(prints[1], scheme.bits),
        bits=scheme.bits,
        distance=None if prints[0] is None or prints[1] is None else distance(prints[0], prints[1]),
        proposed=found.distance,
        similarity=1.0 if same else min(max(named["mean"], 0.0), 1.0),
        agree=agree / max(1, told),
        agreement=named["share"],
        fine_agreement=named["fine_share"],
        left_shown=named["covered"],
        right_shown=named["covering"],
        accepted=same or found.accepted,
        reason=rules.IDENTICAL if same else found.reason,
        map=tuple(found.map.tolist()),
        sizes=tuple((one.width, one.height) for one in shown),
        reduced=tuple(one.reduced for one in shown),
        boxes=tuple(one.box for one in shown),
        differs=tuple("".join(".# -"[mark] for mark in row) for row in found.marks.tolist()),
        differs_of=("left", "right")[found.upper],
        scheme=scheme.name,
        digest=scheme.digest,
    )


def plain_similarity(scheme: Scheme, left: str, right: str) -> float:
    """The cosine of the features of two texts, each counted as bit_length of its occurrences."""
    ours, theirs = (_counts(_features(scheme, text)) for text in (left, right))
    return cosine(ours, theirs)


def cosine(left: Mapping[int, int], right: Mapping[int, int]) -> float:
    """The cosine of two vectors of whole numbers; 0 where one is empty.

    >>> cosine({1: 3, 2: 4}, {1: 3, 2: 4}), cosine({1: 1}, {2: 1}), cosine({}, {})
    (1.0, 0.0, 0.0)
    """
    product = sum(value * right[key] for key, value in left.items() if key in right)
    squares = sum(value * value for value in left.values()) * sum(value * value for value in right.values())
    if not squares:
        return 0.0
    return 1.0 if product * product == squares else product / math.sqrt(squares)


def _features(scheme: Scheme, text: str) -> dict[int, _Feature]:
    found = scheme.feature_list(text)
    counts = Counter(hash for _, _, hash in found)
    return {hash: _Feature(kind, shown, counts[hash]) for kind, shown, hash in found}


def _counts(features: Mapping[int, _Feature]) -> dict[int, int]:
    return {hash: one.count.bit_length() for hash, one in features.items()}


def _differences(
    scheme: Scheme, left: Mapping[int, _Feature], right: Mapping[int, _Feature], most: int
) -> tuple[Difference, ...]:
    """The features whose weights differ, those that differ most first."""
    table = scheme.frequencies
    rows = []
    total = 0.0
    for hash in left.keys() | right.keys():
        one = left.get(hash) or right[hash]
        counts = [side[hash].count if hash in side else 0 for side in (left, right)]
        gap = abs(counts[0].bit_length() - counts[1].bit_length())
        if not gap:
            continue
        known = None if table is None else max(1, table.get(hash))
        weight = gap * gap * (1.0 if known is None else weight_of(known, table.knee if table else 0))
        total += weight
        rows.append((weight, one, counts, known))
    rows.sort(key=lambda row: (-row[0], row[1].kind, row[1].text))
    return tuple(
        Difference(
            KINDS.get(one.kind, "feature"), one.text, counts[0], counts[1], known, weight / (total or 1.0)
        )
        for weight, one, counts, known in rows[:most]
    )


def weight_of(documents: int, knee: int) -> float:
    """How much a feature of that many documents counts beside a rare one, squared.

    >>> weight_of(10, 16), weight_of(64, 16)
    (1.0, 0.25)
    """
    return 1.0 if documents <= knee else knee / documents
