"""Stars: who keeps whom, given accepted pairs and an order."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from neardup.candidates import Candidates, Reach
from neardup.fingerprints import Fingerprints
from neardup.representatives import Representatives
from neardup.stars import Keepers, best_keepers, crowded_keepers, keepers_in, leading, open_to, stars, take
from neardup.types import Ranks, RowNumbers, TextNumbers
from neardup.verdicts import Judgements


def numbers(*values: int) -> Any:
    return np.array(values, dtype=np.int32)


def texts(count: int, fixed: tuple[int, ...] = ()) -> Representatives:
    """Each text is that of one document."""
    rows = np.arange(count, dtype=np.int32)
    flags = np.isin(rows, fixed)
    nothing = numbers()
    return Representatives(
        document=RowNumbers(rows),
        of_document=TextNumbers(rows),
        others=RowNumbers(nothing),
        spelling=rows.astype(np.uint32),
        twin=TextNumbers(nothing),
        source=nothing,
        group=nothing,
        named=np.zeros(0, dtype=bool),
        fixed=flags,
    )


def pairs(count: int, *found: tuple[int, int], crowded: tuple[int, ...] = ()) -> Candidates:
    left, right = np.array(sorted(found), dtype=np.int64).reshape(-1, 2).T
    return Candidates(
        left=TextNumbers(left),
        right=TextNumbers(right),
        distance=np.zeros(len(left), dtype=np.int32),
        radius=3,
        plan="",
        prints=Fingerprints(np.zeros((count, 1), dtype=np.uint64)),
        crowded=TextNumbers(np.array(crowded, dtype=np.int64)),
    )


def kept(order: Any, found: Candidates, fixed: tuple[int, ...] = ()) -> list[int]:
    keeper, _ = keepers_in(
        TextNumbers(order), texts(len(order), fixed), found, Judgements(found, verified=False)
    )
    return keeper.tolist()


def test_a_chain_is_not_joined() -> None:
    assert kept(numbers(0, 1, 2), pairs(3, (0, 1), (1, 2))) == [0, 0, 2]


def test_the_first_in_the_order_stays() -> None:
    assert kept(numbers(1, 0, 2), pairs(3, (0, 1), (1, 2))) == [1, 1, 1]


def test_a_protected_text_is_never_taken() -> None:
    assert kept(numbers(0, 1), pairs(2, (0, 1)), fixed=(1,)) == [0, 1]


@given(st.integers(1, 12), st.data())
def test_the_core_says_what_the_definition_says(count: int, data: st.DataObject) -> None:
    one = st.integers(0, count - 1)
    drawn = data.draw(st.sets(st.tuples(one, one).filter(lambda pair: pair[0] < pair[1])))
    fixed = np.array(data.draw(st.lists(st.booleans(), min_size=count, max_size=count)))
    keeper = list(range(count))
    for text in range(count):  # whoever is free when its turn comes takes all that are
        if keeper[text] == text:
            for other in range(text + 1, count):
                if (text, other) in drawn and keeper[other] == other and not fixed[other]:
                    keeper[other] = text
    left, right = np.array(sorted(drawn), dtype=np.int32).reshape(-1, 2).T
    assert stars(count, left, right, fixed=fixed).tolist() == keeper


def test_only_crowded_keepers_of_others_look_further() -> None:
    keeper, rank = TextNumbers(numbers(0, 0, 2, 3)), Ranks(numbers(0, 1, 2, 3))
    found = pairs(4, (0, 1), crowded=(0, 1, 2))
    assert crowded_keepers(keeper, rank, found).tolist() == [0]


def test_a_crowded_keeper_asks_for_those_that_have_no_better_keeper() -> None:
    keeper, rank = TextNumbers(numbers(0, 1, 0, 1, 4, 5)), Ranks(numbers(0, 1, 2, 3, 4, 5))
    reach = Reach(1, TextNumbers(numbers(0, 1, 2, 3, 4, 5)), numbers(0, 0, 0, 0, 0, 0))
    met = np.array([True, True, True, True, True, False])
    # 0 is before 1, 2 has 0, 3 has 1 already, nobody has the text of 5
    assert open_to(reach, keeper, rank, texts(6), met).others.tolist() == [4]


def test_what_a_keeper_kept_that_goes_stays_by_itself() -> None:
    keeper = TextNumbers(numbers(0, 1, 1, 0))
    take(0, TextNumbers(numbers(1)), keeper, leading(keeper))
    assert keeper.tolist() == [0, 0, 2, 0]


def best(keeper: Any, similar: list[int], found: Candidates, *, any_keeper: bool = True) -> Keepers:
    judgements = Judgements(found, verified=True)
    judgements.accepted[:] = True
    judgements.measured[:, 1] = similar
    rank = Ranks(np.arange(len(keeper), dtype=np.int32))
    return best_keepers(TextNumbers(keeper), rank, found, judgements, any_keeper=any_keeper)


def test_what_goes_joins_the_most_similar_that_stays() -> None:
    found = best(numbers(0, 0, 2), [7000, 9000], pairs(3, (0, 1), (1, 2)))
    assert (found.keeper.tolist(), found.pair.tolist()) == ([0, 2, 2], [-1, 1, -1])


def test_what_a_rule_prefers_never_goes_for_what_it_does_not() -> None:
    found = best(numbers(0, 0, 2), [7000, 9000], pairs(3, (0, 1), (1, 2)), any_keeper=False)
    assert (found.keeper.tolist(), found.pair.tolist()) == ([0, 0, 2], [-1, 0, -1])
