"""Reasons: why a pair was accepted or not, one row each, and how to read it.

A verdict holds the place of its reason in `REASONS`. Those that the core gives come first, in the
order of its `Reason` (src/verify/rule.rs); a test compares the two.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from neardup.verifiers.figures import FIGURES


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason: its name in the code, its words for people, whether it accepts, and how to read it."""

    name: str
    words: str
    accepts: bool
    read_as: str


# Given by the core, which looks at the texts. Those that accept come first.
MEASURED: Final = (
    Reason("nearly-identical", "nearly identical", True, "0.90 or more alike, and no template in sight"),
    Reason(
        "short-edited",
        "same short text, edited",
        True,
        "two short texts (28 words at most) that share rare words",
    ),
    Reason("revision", "revision", True, "the same text, edited here and there"),
    Reason(
        "perhaps-form",
        "nearly identical, perhaps a form",
        True,
        "the same, but others around vary in the same few places: a page that carries a date, or a form with "
        "little filled in; `dedupe` says how many go for it",
    ),
    Reason(
        "same-subject",
        "same subject, text rewritten",
        True,
        "too different for its length, but both name the same subject in a title that few others have",
    ),
    Reason("too-different", "too different", False, "below the similarity you asked for"),
    Reason(
        "other-numbers",
        "different numbers",
        False,
        "each has numbers that the other has not: another record, another version",
    ),
    Reason("template", "same template, different content", False, "siblings: a form filled in twice"),
    Reason("common-text", "shares mostly common text", False, "alike in what many documents have"),
    Reason(
        "unclear",
        "too short to tell a revision from a sibling",
        False,
        "may be either; the default leaves it",
    ),
    Reason(
        "passage",
        "a whole passage was replaced",
        False,
        "a tenth of the text or more, in one piece, is different",
    ),
    Reason("frame", "same frame, other content", False, "the same surroundings, passages of its own"),
    Reason(
        "not-strict",
        "not close enough for strict",
        False,
        "perhaps a revision; `--strict` does not accept it",
    ),
    Reason(
        "other-subject",
        "same words about another subject",
        False,
        "siblings: wherever one has a certain word, the other has its own",
    ),
    Reason(
        "other-title",
        "another subject in the title",
        False,
        "siblings: each title names what the other text hardly speaks of",
    ),
    Reason(
        "clause",
        "a clause that only one has",
        False,
        "a passage more or less, between words of both, that others have as well",
    ),
)
# Given without measuring.
UNMEASURED: Final = (
    Reason("identical", "identical text", True, "letter for letter the same"),
    Reason(
        "spelled",
        "identical but for case, spacing or punctuation",
        True,
        "the same words; a sign may matter: `a + b` and `a - b`, `C` and `C++`, `$5` and `€5` are not told "
        "apart",
    ),
    Reason("unverified", "fingerprint only, not verified", True, "nothing was measured (`--verify none`)"),
    Reason(
        "no-information",
        "too little to tell",
        False,
        "one of the two has no word or character to compare, only white space or punctuation",
    ),
)
# Given by a measure that is no rule.
BY_MEASURE: Final = (
    Reason(
        "preserved",
        "every run of three words stands in the other",
        True,
        "what goes says nothing that the one that stays lacks (`--verify preserving`)",
    ),
    Reason(
        "lacks",
        "has words that the other lacks",
        False,
        "it would take something with it: three of its words stand nowhere together in the other",
    ),
)
# Given by a rule that was learned: what weighed most, for the pair and against it, more of it and less. Last,
# what all pairs begin with.
_SIDES: Final = (("same", True), ("other", False))
LEARNED: Final = (
    *(
        Reason(
            f"learned-{side}-{figure.name}-{way}",
            f"learned, {side}: {words}",
            accepts,
            f"by your own answers; what weighed most is {figure.what}",
        )
        for figure in FIGURES
        for side, accepts in _SIDES
        for way, words in (("more", figure.more), ("less", figure.less))
    ),
    *(
        Reason(
            f"learned-{side}",
            f"learned, {side}: as most pairs",
            accepts,
            "by your own answers; no figure stands out",
        )
        for side, accepts in _SIDES
    ),
)
TABLE: Final = (*MEASURED, *UNMEASURED, *LEARNED, *BY_MEASURE)
REASONS: Final = tuple(reason.words for reason in MEASURED)
ACCEPTING: Final = sum(reason.accepts for reason in MEASURED)

_WORDS: Final = {reason.name: reason.words for reason in TABLE}
PERHAPS_FORM: Final = _WORDS["perhaps-form"]
IDENTICAL: Final = _WORDS["identical"]
SPELLED: Final = _WORDS["spelled"]
UNVERIFIED: Final = _WORDS["unverified"]
NO_INFORMATION: Final = _WORDS["no-information"]
LACKS: Final = _WORDS["lacks"]
OTHER_NUMBERS: Final = _WORDS["other-numbers"]


def code_of(name: str) -> int:
    """The place in `TABLE` of the reason of that name.

    >>> TABLE[code_of("revision")].words
    'revision'
    """
    return next(code for code, reason in enumerate(TABLE) if reason.name == name)


def learned_code(
    figure: npt.NDArray[np.int64], *, accepted: npt.NDArray[np.bool_], above: npt.NDArray[np.bool_]
) -> npt.NDArray[np.int64]:
    """The places in `TABLE` of the reasons of a learned rule: by the place of the figure that weighed most
    (or one more than all, for what pairs begin with), and whether it is above its middle.

    >>> one = np.ones(1, bool)
    >>> TABLE[learned_code(np.array([0]), accepted=one, above=one)[0]].words
    'learned, same: alike in most of the text'
    """
    first = len(MEASURED) + len(UNMEASURED)
    of_figure = first + 4 * figure + 2 * ~accepted + ~above
    of_none = first + 4 * len(FIGURES) + ~accepted
    found: npt.NDArray[np.int64] = np.where(figure < len(FIGURES), of_figure, of_none).astype(np.int64)
    return found
