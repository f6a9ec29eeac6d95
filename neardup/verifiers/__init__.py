"""Verification: candidate pairs measured on their real features, and judged in words.

A fingerprint only proposes. What decides, and what each number is for, is explained in docs/quality.md.
"""

from __future__ import annotations

from neardup.verifiers.measures import MEASURES, Measure, counts_features, measuring_scheme, parse_measure
from neardup.verifiers.pairs import judged_pairs, verify
from neardup.verifiers.reasons import (
    ACCEPTING,
    IDENTICAL,
    LACKS,
    NO_INFORMATION,
    PERHAPS_FORM,
    REASONS,
    SPELLED,
    UNVERIFIED,
    Reason,
    code_of,
)
from neardup.verifiers.rules import NEIGHBOUR, NEIGHBOURS, RULES, SAME, TESTS, WHOLE, TextRule
from neardup.verifiers.verdicts import LEFT, RIGHT, Verdict, Verdicts, lets_go
from neardup.verifiers.verifier import Verifier

__all__ = [
    "ACCEPTING",
    "IDENTICAL",
    "LACKS",
    "LEFT",
    "MEASURES",
    "NEIGHBOUR",
    "NEIGHBOURS",
    "NO_INFORMATION",
    "PERHAPS_FORM",
    "REASONS",
    "RIGHT",
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
    "code_of",
    "counts_features",
    "judged_pairs",
    "lets_go",
    "measuring_scheme",
    "parse_measure",
    "verify",
]
