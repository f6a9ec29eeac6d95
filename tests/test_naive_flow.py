"""The run is what neardup.naive says in plain Python: every verdict, who stays, and every row."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import neardup as nd
from neardup import naive
from neardup.stars import stars
from neardup.verifiers import REASONS, RULES

from .corpus import Rows, edited, words

BITS = 128
# --- small collections in which a known reason is given ----------------------------------------------------

Story = Callable[[int], list[str]]
"""From a seed to texts."""


def text_of(*parts: list[str]) -> str:
    return " ".join(word for part in parts for word in part)


def _edits(size: int, changes: int) -> Story:
    """A text and an edited copy."""
    return lambda seed: [text_of(words(seed, size)), text_of(edited(words(seed, size), seed + 1, changes))]


def _numbers(seed: int) -> list[str]:
    """Records that differ in two numbers."""
    text = words(seed, 80)
    return [text_of(text[:40], [str(seed + at)], text[40:], [f"{seed * at}7"]) for at in (11, 17)]


def _pages(frame: int, body: int) -> Story:
    """Pages of one template, each with a body of its own."""

    def story(seed: int) -> list[str]:
        text = words(seed, frame)
        half = frame // 2
        return [text_of(text[:half], words(seed + at, body), text[half:]) for at in range(1, 5)]

    return story


def _common(seed: int) -> list[str]:
    """What two texts share, many have; what is their own, somebody else has."""
    text, own = words(seed, 60), [words(seed + at, 12) for at in (1, 2)]
    return [*[text_of(text)] * 20, *(text_of(text, part) for part in own), *map(text_of, own)]


def _passage(seed: int) -> list[str]:
    """One passage of a long text is replaced."""
    text = words(seed, 200)
    return [text_of(text), text_of(text[:80], words(seed + 1, 40), text[120:])]


def _frame(seed: int) -> list[str]:
    """Two texts share a frame that many have and some rare words, and differ in five passages."""
    frame, shared = words(seed, 160), words(seed + 1, 40)
    bodies = [words(seed + at, 50) for at in (2, 3)]
    texts = []
    for body in bodies:
        parts = [
            part for at in range(5) for part in (frame[32 * at : 32 * at + 32], body[10 * at : 10 * at + 10])
        ]
        texts.append(text_of(*parts, shared))
    return [*[text_of(frame)] * 63, *texts, *map(text_of, bodies)]


def _subject(seed: int) -> list[str]:
    """The same words about another subject."""
    texts = [words(seed, 200), words(seed, 200)]
    for text, subject in zip(texts, ("halt", "reboot"), strict=True):
        for place in (5, 60, 120, 180):
            text[place] = subject
    return [*map(text_of, texts), "halt and", "reboot or"]


def _cuts(seed: int, count: int, least: int) -> list[str]:
    """Texts that are parts of one text: beginnings, ends, middles."""
    whole = words(seed, count)
    rng = random.Random(seed)
    begins = [rng.randrange(count - least) for _ in range(6)]
    return [text_of(whole), *(text_of(whole[at : at + rng.randrange(least, count)]) for at in begins)]


def _titled(seed: int) -> list[str]:
    """A text under a title, and a copy that was rewritten."""
    title, text = text_of(words(seed + 1, 3)), words(seed, 80)
    return [f"{title}\n\n{text_of(one)}" for one in (text, edited(text, seed + 2, 9))]


def _named(seed: int) -> list[str]:
    """Two texts, each of which speaks of what its title names."""
    text = words(seed, 200)
    return [
        f"The {name}\n{text_of(text[:place], [name] * 2, text[place:], [name])}"
        for name, place in (("halt", 40), ("reboot", 90))
    ]


def _clause(seed: int) -> list[str]:
    """A long text with and without a clause that a third one has."""
    text, clause, other = words(seed, 300), words(seed + 1, 40), words(seed + 2, 60)
    return [
        text_of(text[:150], clause, text[150:]),
        text_of(text),
        text_of(text[:150], clause, text[150:230], other),
    ]


# For each reason a rule that gives it, and a collection in which it does.
STORIES: dict[str, tuple[str, Story]] = {
    "nearly identical": ("default", _edits(200, 3)),
    "same short text, edited": ("default", _edits(24, 3)),
    "revision": ("default", _edits(200, 34)),
    "nearly identical, perhaps a form": ("default", _pages(240, 9)),
    "too different": ("loose", _edits(60, 40)),
    "different numbers": ("default", _numbers),
    "same template, different content": ("default", _pages(240, 24)),
    "shares mostly common text": ("default", _common),
    "too short to tell a revision from a sibling": ("default", _edits(80, 9)),
    "a whole passage was replaced": ("default", _passage),
    "same frame, other content": ("default", _frame),
    "not close enough for strict": ("strict", _edits(200, 34)),
    "same words about another subject": ("default", _subject),
    "same subject, text rewritten": ("default", _titled),
    "another subject in the title": ("default", _named),
    "a clause that only one has": ("default", _clause),
}
SMALL = sorted(set(STORIES) - {"same frame, other content"})


def collection(texts: list[str], seed: int) -> Rows:
    rng = random.Random(seed)
    return [
        {
            "id": f"{rng.randrange(36**3):x}-{number}",
            "text": text,
            "site": rng.choice(["north", "south", None]),
            "date": rng.choice([None, f"20{rng.randrange(10, 25)}-0{rng.randrange(1, 9)}-11"]),
            "rank": rng.choice([None, rng.randrange(5)]),
            "kind": rng.choice(["press", "blog", "mirror"]),
        }
        for number, text in enumerate(texts)
    ]


def compared(rows: Rows, verify: str = "default", *, radius: int = BITS, **choices: Any) -> Counter[str]:
    """Run *rows* through both; the reasons that were given, if both say the same."""
    result = nd.dedupe(rows, verify=verify, radius=radius, guards=False, **choices)
    name, _, least = verify.partition(":")
    if name in RULES:
        choices["rule"] = asdict(RULES[name])
    elif name == "preserving":
        choices["preserving"] = True
    elif least:
        choices["share"] = (name, round(float(least) * 10_000))
    choices["protect"] = choices.get("protect") or ()
    annotations, evidence = naive.dedupe(rows, radius=radius, bits=BITS, **choices)
    assert result.annotations.to_pylist() == annotations
    found = [tuple(row.values())[:8] for row in result.evidence.to_pylist()]
    assert found == [tuple(row.values()) for row in evidence]
    return Counter(row["reason"] for row in evidence)


# --- verdicts ----------------------------------------------------------------------------------------------


def test_the_naive_rule_knows_every_reason_of_the_core() -> None:
    assert set(naive.MEASURED) == set(REASONS) == set(STORIES)


@pytest.mark.parametrize("reason", STORIES)
@pytest.mark.parametrize("seed", [1, 20_000])
def test_every_reason_is_given_where_the_naive_rule_gives_it(reason: str, seed: int) -> None:
    verify, story = STORIES[reason]
    assert compared(collection(story(seed), seed), verify)[reason]


@given(
    told=st.lists(st.sampled_from(SMALL), min_size=1, max_size=3),
    seed=st.integers(0, 10**6),
    verify=st.sampled_from([*RULES, "jaccard:0.6", "containment:0.8", "preserving", "none"]),
    radius=st.sampled_from([30, 45, 60, BITS]),
)
@settings(max_examples=30)
def test_measures_and_reasons_of_any_collection_are_the_naive_ones(
    told: list[str], seed: int, verify: str, radius: int
) -> None:
    texts = [text for number, reason in enumerate(told) for text in STORIES[reason][1](seed + 10 * number)]
    compared(collection(texts, seed), verify, radius=radius)


# --- who stays ---------------------------------------------------------------------------------------------


@given(
    pairs=st.sets(st.tuples(st.integers(0, 19), st.integers(0, 19)).filter(lambda pair: pair[0] < pair[1])),
    fixed=st.sets(st.integers(0, 19)),
)
def test_stars_are_the_naive_ones(pairs: set[tuple[int, int]], fixed: set[int]) -> None:
    left, right = np.array(sorted(pairs), dtype=np.int64).reshape(-1, 2).T
    flags = np.array([at in fixed for at in range(20)])
    assert stars(20, left, right, fixed=flags).tolist() == naive.stars(20, pairs, fixed)


SHORT = st.tuples(
    st.integers(0, 2),  # which text it is made from
    st.integers(0, 6),  # how many of its words are others
    st.integers(0, 3),  # which others
    st.sampled_from(["{}", "{}", "{}!", "{} 漢字", "{} 7"]),
)
KEEPS = [
    "central,longest", "longest", "shortest", "first", "last", "newest:date", "oldest:date,longest", "max:rank",
    "min:rank", "prefer:kind=press>blog,first", "none", "longest,none", "newest:date,central",
]  # fmt: skip


@given(
    made=st.lists(SHORT, min_size=2, max_size=20),
    keep=st.sampled_from(KEEPS),
    verify=st.sampled_from(["default", "loose", "high", "strict", "jaccard:0.5", "containment:0.7", "none"]),
    where=st.sampled_from(
        [{}, {"within": "site"}, {"across": "site"}, {"subject": "kind"}]
        + [{"subject": "site", name: "kind"} for name in ("within", "across")]
    ),
    protected=st.integers(0, 5),
    seed=st.integers(0, 10**6),
    radius=st.sampled_from([25, 50]),
)
@settings(max_examples=80)
def test_who_stays_and_every_row_is_as_the_naive_flow_has_it(
    made: list[tuple[int, int, int, str]],
    keep: str,
    verify: str,
    where: dict[str, str],
    protected: int,
    seed: int,
    radius: int,
) -> None:
    texts = [form.format(text_of(edited(words(one, 26), more, by))) for one, by, more, form in made]
    rows = collection(["", "...", *texts], seed)
    # The sources that are named must be there.
    rows[0] |= {"site": "north", "date": "2020-02-02", "rank": 1}
    compared(
        rows[protected:] + rows[:1] * (protected > 0),
        verify,
        radius=radius,
        keep=keep,
        protect=rows[1:protected],
        **where,
    )


def test_preserving_gives_its_two_reasons_where_the_naive_flow_does() -> None:
    found = compared(collection(_cuts(5, 40, 25), 5), "preserving")
    found += compared(collection(_edits(60, 4)(5), 5), "preserving")
    assert found.keys() == {naive.EVERY_RUN, naive.LACKS_WORDS}


@given(
    cuts=st.lists(st.tuples(st.integers(0, 30), st.integers(1, 30), st.booleans()), min_size=2, max_size=14),
    keep=st.sampled_from(KEEPS),
    where=st.sampled_from([{}, {"within": "site"}, {"across": "site"}]),
    protected=st.integers(0, 3),
    seed=st.integers(0, 10**6),
)
@settings(max_examples=60)
def test_what_preserving_lets_go_is_what_the_naive_flow_lets_go(
    cuts: list[tuple[int, int, bool]], keep: str, where: dict[str, str], protected: int, seed: int
) -> None:
    whole = words(seed, 30)
    texts = [text_of(whole[at : at + count] + ["more"] * more) for at, count, more in cuts]
    rows = collection([text_of(whole), *(text for text in texts if text)], seed)
    rows[0] |= {"site": "north", "date": "2020-02-02", "rank": 1}
    compared(
        rows[protected:] + rows[:1] * (protected > 0),
        "preserving",
        keep=keep,
        radius=BITS,
        protect=rows[1:protected],
        **where,
    )


@pytest.mark.parametrize("keep", ["central,longest", "longest", "shortest"])
@pytest.mark.parametrize("verify", ["jaccard:0.4", "none"])
def test_keepers_in_crowded_places_take_what_the_naive_ones_take(keep: str, verify: str) -> None:
    rows = collection([text_of(edited(words(3, 24), at, 1 + at % 5)) for at in range(60)], 5)
    took = []

    def absorb(keeper: list[int], *how: Any) -> None:
        before = list(keeper)
        naive.absorb(keeper, *how)
        took.append(keeper != before)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("neardup.naive.flow.absorb", absorb)
        compared(rows, verify, radius=40, keep=keep)
    assert took == [True]
