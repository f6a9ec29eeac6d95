"""Verification: candidate pairs measured on their real features, and judged in words.

A fingerprint only proposes. What decides, and what each number is for, is explained in docs/quality.md.
"""

from __future__ import annotations

from neardup.verifiers.figures import FIGURES
from neardup.verifiers.learned import LearnedRule, check_rule, read_rule, write_rule
from neardup.verifiers.measures import (
    MEASURES,
    Measure,
    counts_features,
    learned_measure,
    measuring_scheme,
    parse_measure,
)
from neardup.verifiers.pairs import judged_pairs, verify
from neardup.verifiers.reasons import (
    ACCEPTING,
    IDENTICAL,
    NO_INFORMATION,
    PERHAPS_FORM,
    REASONS,
    SPELLED,
    UNVERIFIED,
    Reason,
)
from neardup.verifiers.rules import NEIGHBOUR, NEIGHBOURS, RULES, SAME, TESTS, WHOLE, TextRule
from neardup.verifiers.verdicts import Verdict, Verdicts
from neardup.verifiers.verifier import Verifier

__all__ = [
    "ACCEPTING",
    "FIGURES",
    "IDENTICAL",
    "MEASURES",
    "NEIGHBOUR",
    "NEIGHBOURS",
    "NO_INFORMATION",
    "PERHAPS_FORM",
    "REASONS",
    "RULES",
    "SAME",
    "SPELLED",
    "TESTS",
    "UNVERIFIED",
    "WHOLE",
    "LearnedRule",
    "Measure",
    "Reason",
    "TextRule",
    "Verdict",
    "Verdicts",
    "Verifier",
    "check_rule",
    "counts_features",
    "judged_pairs",
    "learned_measure",
    "measuring_scheme",
    "parse_measure",
    "read_rule",
    "verify",
    "write_rule",
]
