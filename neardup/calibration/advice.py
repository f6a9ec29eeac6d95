"""What follows from a calibration: a row for each setting, and the one to take."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from neardup.calibration.bench import Own
from neardup.calibration.model import MODES, SIMILARITIES, Choices, EditRow, Flags, Measured, Row
from neardup.calibration.sampling import Copy
from neardup.edits import EDITS
from neardup.settings import Settings
from neardup.verifiers import REASONS, SAME, WHOLE

# To be recommended, another setting must be better than the default by this much.
WORTH_IT: Final = 0.01
# How many copies, or labelled pairs, a figure must rest on to be followed.
FEWEST: Final = 30

# The share of accepted pairs that are right, by the reason that accepted them, on the labelled
# collections of benchmarks/quality.py --reasons, all together.
KNOWN_PRECISION: Final[dict[str, dict[str, float]]] = {
    "default": {
        "nearly identical": 0.991,
        "nearly identical, perhaps a form": 0.931,
        "same short text, edited": 0.990,
        "revision": 0.973,
        "same subject, text rewritten": 0.871,
    },
    "strict": {"nearly identical": 0.993},
    "loose": {
        "nearly identical": 0.974,
        "nearly identical, perhaps a form": 0.806,
        "same short text, edited": 0.979,
        "revision": 0.616,
    },
}


def edit_rows(
    copies: Sequence[Copy], planted: Measured, radii: Sequence[int], choices: Choices
) -> tuple[EditRow, ...]:
    """What each setting found of each kind and amount of editing."""
    made = []
    for edit in EDITS:
        rows = np.flatnonzero([copy.edit == edit for copy in copies])
        if not len(rows):
            continue
        some = planted.rows(rows)
        recall = {
            mode: [
                float(some.found(mode, similarity, radius).mean())
                for similarity, radius in zip(SIMILARITIES, radii, strict=True)
            ]
            for mode in MODES
        }
        middle = float(np.median(some.plain))
        counted = edit.percent <= choices.edits
        made.append(EditRow(edit.name, edit.kind, edit.percent, counted, len(rows), middle, recall))
    return tuple(made)


def row_of(
    mode: str,
    similarity: float,
    radius: int,
    edits: Sequence[EditRow],
    at: int,
    own: Own,
    judged: Measured,
    same: Flags,
) -> Row:
    """What is to be expected of one setting."""
    counted = [row for row in edits if row.counted]
    recall = margin = None
    if counted:
        # Every kind and amount counts the same, however many copies of it there are.
        shares = [row.recall[mode][at] for row in counted]
        recall = sum(shares) / len(shares)
        # As if one more were found and one more missed: of two copies that were found, not all are.
        near = [
            (share * row.copies + 1) / (row.copies + 2) for share, row in zip(shares, counted, strict=True)
        ]
        spread = sum(share * (1 - share) / row.copies for share, row in zip(near, counted, strict=True))
        margin = 1.96 * math.sqrt(spread) / len(counted)
    natural = own.measured
    found = natural.found(mode, similarity, radius)
    doubtful = found & (natural.plain < SAME / WHOLE)
    pairs = int(found.sum())
    right = sum(
        KNOWN_PRECISION[mode].get(REASONS[code], 1.0) * int(number)
        for code, number in enumerate(np.bincount(natural.reason[mode][found], minlength=len(REASONS)))
    )
    yes = judged.found(mode, similarity, radius)
    good = int((yes & same).sum())
    return Row(
        mode=mode,
        similarity=similarity,
        radius=radius,
        recall=recall,
        margin=margin,
        precision=right / pairs if pairs else None,
        pairs=pairs,
        doubtful=int(doubtful.sum()),
        removed=own.removed(found),
        labelled=int(yes.sum()),
        measured_precision=good / int(yes.sum()) if yes.any() else None,
        measured_recall=good / int(same.sum()) if same.any() else None,
    )


class Advice(NamedTuple):
    """A setting; whether it is good enough to be recommended; and why, or why not."""

    row: Row
    good: bool
    why: str


def recommend(rows: Sequence[Row], choices: Choices, *, copies: int, labels: int, same: int) -> Advice:
    """The setting with the best recall among those that are precise enough, or the most precise one.

    The default is kept unless something is better by a clear margin. Nothing looser is recommended on
    precision that was not measured: siblings of one form, if the collection has them, are not in what is
    expected. *copies* and *labels* are what the figures rest on, *same* counts the labels that say yes.
    """

    def precision(row: Row) -> float | None:
        return row.measured_precision if labels else row.precision

    usual = next(row for row in rows if row.mode == "default" and row.similarity == Settings().similarity)
    if not labels and copies < FEWEST:
        return Advice(usual, True, f"it is the default, and too little was measured: {copies} copies")
    if labels and all(precision(row) is None for row in rows):
        why = "it is the default, and no setting accepts a labelled pair: label some that are accepted"
        return Advice(usual, True, why)
    # A setting that accepts nothing makes no mistake; but it has not been tested on the labels.
    known = [(row, precision(row)) for row in rows if labels or not row.looser]
    reach = [row for row, found in known if (not labels if found is None else found >= choices.precision)]
    if not reach:
        return _none_reaches(
            [(row, found) for row, found in known if found is not None], choices, labels=labels, same=same
        )
    good = [row for row in reach if not row.looser or row.labelled >= FEWEST]
    target = f"a precision of {choices.precision:g}"
    if not good:
        why = f"only settings looser than the default reach {target}, on fewer than {FEWEST} labelled pairs"
        return Advice(usual, False, f"{why}: label more")
    highest = max(row.best_recall or 0.0 for row in good)
    near = [row for row in good if (row.best_recall or 0.0) >= highest - WORTH_IT]
    best = min(
        near,
        key=lambda row: (
            row != usual,
            MODES.index(row.mode),
            abs(row.similarity - usual.similarity),
            row.similarity,
        ),
    )
    word = "measured" if labels else "expected"
    if best == usual:
        why = f"no other setting with {target}, {word}, finds over {WORTH_IT:.0%} more than the default"
        if not labels:
            why = "it is the default; nothing looser is recommended on a precision that is only expected"
    elif usual not in good:
        found = precision(usual)
        told = "was not measured" if found is None else f"is {found:.3f}, {word}: below {choices.precision:g}"
        why = f"the default's precision {told}; this one finds most of those that reach it"
    else:
        more = (best.best_recall or 0.0) - (usual.best_recall or 0.0)
        why = f"it finds {more:.1%} more than the default with {target} or more, {word}"
    return Advice(best, True, why)


def _none_reaches(known: Sequence[tuple[Row, float]], choices: Choices, *, labels: int, same: int) -> Advice:
    """The most precise setting, the strictest among equals, and what to review."""
    strictness = ("loose", "default", "strict")
    best, highest = max(known, key=lambda one: (one[1], strictness.index(one[0].mode), one[0].similarity))
    look = "look at what it accepts; if a field tells siblings apart, use --within or --across"
    if not labels:
        look = "label pairs that it accepts, to have it measured"
    elif not same:
        look = "no label says that two are the same, so that recall cannot be measured: label some that are"
    word = "measured" if labels else "expected"
    why = (
        f"none reaches a precision of {choices.precision:g}; the highest is {highest:.3f}, {word}, "
        f"of {best.options}; {look}"
    )
    return Advice(best, False, why)
