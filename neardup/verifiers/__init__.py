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
    LACKS,
    NO_INFORMATION,
    OTHER_NUMBERS,
    PERHAPS_FORM,
    REASONS,
    SPELLED,
    UNVERIFIED,
    Reason,
    code_of,
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
from neardup.verifiers.verdicts import LEFT, RIGHT, Verdict, Verdicts, joined, lets_go
from neardup.verifiers.verifier import EQUAL_TITLES, Verifier

__all__ = [
    "ACCEPTING",
    "EQUAL_TITLES",
    "FIGURES",
    "IDENTICAL",
    "LACKS",
    "LEFT",
    "MEASURES",
    "NEIGHBOUR",
    "NEIGHBOURS",
    "NO_INFORMATION",
    "OTHER_NUMBERS",
    "PERHAPS_FORM",
    "PRECISIONS",
    "REASONS",
    "RIGHT",
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
    "code_of",
    "counts_features",
    "joined",
    "judged_pairs",
    "learned_measure",
    "lets_go",
    "measuring_scheme",
    "parse_measure",
    "read_rule",
    "rule_named",
    "verify",
    "write_rule",
]
