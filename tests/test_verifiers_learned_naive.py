"""Runs by a learned rule are those of the naive flow: figures, verdicts, reasons, and who stays."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import neardup as nd
from neardup import naive
from neardup.naive.figures import figures as naive_figures
from neardup.verifiers import RULES, LearnedRule
from neardup.verifiers.figures import NAMES
from neardup.verifiers.learned import Weight
from neardup.verifiers.reasons import TABLE

from .test_naive_flow import BITS, SMALL, STORIES
from .test_naive_flow import collection as documents
from .test_verifiers_learned import LEARNED, naive_verdict

DEFAULT = asdict(RULES["default"])
ACCEPTING = tuple(reason.words for reason in TABLE if reason.accepts)


@pytest.fixture
def by_learned() -> Iterator[list[LearnedRule]]:
    """The naive flow judges by the rule that is put into the list."""
    rules: list[LearnedRule] = []
    own = naive.judge

    def judge(left: Any, right: Any, rule: Any, rivals: Any = None) -> tuple[str, Any]:
        alone, seen = own(left, right, rule)
        reason, _ = own(left, right, rule, rivals)
        said = {"alone": alone in naive.ACCEPTING, "accepted": reason in naive.ACCEPTING}
        found = naive_figures(left, right, seen, **said)
        return naive_verdict(rules[-1], list(found.values()), low=reason == "too different")[1], seen

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("neardup.naive.flow.judge", judge)
        patch.setattr("neardup.naive.flow.ACCEPTING", ACCEPTING)
        yield rules


@given(
    told=st.lists(st.sampled_from(SMALL), min_size=1, max_size=3),
    seed=st.integers(0, 10**6),
    radius=st.sampled_from([45, BITS]),
)
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_run_by_a_learned_rule_is_the_naive_one(
    by_learned: list[LearnedRule], told: list[str], seed: int, radius: int
) -> None:
    texts = [text for number, reason in enumerate(told) for text in STORIES[reason][1](seed + 10 * number)]
    rows, chance = documents(texts, seed), random.Random(seed)
    weights = tuple(Weight(name, chance.randint(-1000, 1000), chance.randint(2000, 9000)) for name in NAMES)
    by_learned.append(LearnedRule(weights, chance.randint(-(10**6), 10**6), LEARNED))
    result = nd.dedupe(rows, rule=by_learned[-1], radius=radius, guards=False)
    annotations, evidence = naive.dedupe(rows, radius=radius, bits=BITS, rule=DEFAULT)
    assert result.annotations.to_pylist() == annotations
    found = [tuple(row.values())[:8] for row in result.evidence.to_pylist()]
    assert found == [tuple(row.values()) for row in evidence]
