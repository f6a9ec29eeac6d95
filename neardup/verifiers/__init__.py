"""Verification: candidate pairs measured on their real features, and judged in words.

A fingerprint only proposes. What decides, and what each number is for, is explained in docs/quality.md.
"""

from __future__ import annotations

from neardup.verifiers.measures import MEASURES, Measure, counts_features, measuring_scheme, parse_measure
from neardup.verifiers.pairs import judged_pairs, verify
from neardup.verifiers.reasons import (
    ACCEPTING,
    IDENTICAL,
    NO_INFORMATION,
    OTHER_NUMBERS,
    PERHAPS_FORM,
    REASONS,
    SPELLED,
    UNVERIFIED,
    Reason,
)
from neardup.verifiers.rules import (
    NEIGHBOUR,
    NEIGHBOURS,
    PRECISIONS,
    RULES,
    SAME,
    TESTS,
    WHOLE,
    TextRule,
    rule_named,
)
from neardup.verifiers.verdicts import Verdict, Verdicts, joined
from neardup.verifiers.verifier import EQUAL_TITLES, Verifier

__all__ = [
    "ACCEPTING",
    "EQUAL_TITLES",
    "IDENTICAL",
    "MEASURES",
    "NEIGHBOUR",
    "NEIGHBOURS",
    "NO_INFORMATION",
    "OTHER_NUMBERS",
    "PERHAPS_FORM",
    "PRECISIONS",
    "REASONS",
    "RULES",
    "SAME",
    "SPELLED",
    "TESTS",
    "UNVERIFIED",
    "WHOLE",
    "Measure",
    "Reason",
    "TextRule",
    "Verdict",
    "Verdicts",
    "Verifier",
    "counts_features",
    "joined",
    "judged_pairs",
    "measuring_scheme",
    "parse_measure",
    "rule_named",
    "verify",
]
