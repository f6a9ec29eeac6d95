"""join: every pair within the radius, whatever the plan, the width, the level and the threads."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections import defaultdict
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import neardup as nd
from neardup import naive
from neardup.errors import InvalidType, InvalidValue, LimitReached, SchemeMismatch
from neardup.pairs import Nearest, Pairs, join_nearest
from tests.hamming import LEVELS, WORDS, at_level, fingerprints, near_words

radii = st.integers(0, 20)


def test_one_flipped_bit_is_a_pair_at_radius_one() -> None:
    assert list(nd.join(np.array([0b1010, 0b1011], dtype=np.uint64), 1)) == [(0, 1, 1)]


def test_nothing_has_no_pairs() -> None:
    assert len(nd.join(np.zeros(0, dtype=np.uint64), 3)) == 0
    assert len(nd.join(np.zeros((0, 4), dtype=np.uint64), 3, np.zeros((3, 4), dtype=np.uint64))) == 0


def test_rows_without_information_never_match() -> None:
    prints = nd.Fingerprints.of([7, None, 7, None], bits=64)
    assert list(nd.join(prints, 64)) == [(0, 2, 0)]
    assert list(nd.join(prints, 64, prints)) == [(0, 0, 0), (0, 2, 0), (2, 0, 0), (2, 2, 0)]


@given(fingerprints(), radii)
def test_join_finds_what_comparing_all_pairs_finds(prints: nd.Fingerprints, radius: int) -> None:
    assert list(nd.join(prints, radius)) == naive.join(list(prints), radius)


@given(st.data(), fingerprints(max_size=40), radii)
def test_join_of_two_sets_finds_what_comparing_all_pairs_finds(
    data: st.DataObject, prints: nd.Fingerprints, radius: int
) -> None:
    rows = data.draw(st.integers(0, len(prints)))
    values = list(prints)
    one, two = values[:rows], values[rows:]
    left, right = (nd.Fingerprints.of(part, bits=prints.bits) for part in (one, two))
    assert list(nd.join(left, radius, right)) == naive.join_two(one, two, radius)


@given(
    fingerprints(),
    radii,
    st.sampled_from(
        [
            "brute",
            "blocks",
            "blocks:1,1",
            "blocks:1,2",
            "blocks:2,1",
            "blocks:2,3",
            "blocks:4,1",
            "blocks:21,1",
        ]
    ),
    st.sampled_from(LEVELS),
    st.integers(1, 3),
)
@settings(max_examples=300)
def test_every_plan_level_and_thread_count_finds_the_same(
    prints: nd.Fingerprints, radius: int, plan: str | None, level: str, threads: int
) -> None:
    with at_level(level):
        found = list(nd.join(prints, radius, plan=plan, threads=threads))
    assert found == naive.join(list(prints), radius)


@pytest.mark.parametrize("width", WORDS)
def test_many_rows_give_the_same_pairs_by_every_plan_and_level(width: int) -> None:
    words = near_words(6000 if width <= 16 else 20_000 // width + 40, width, seed=width)
    expected = nd.join(words, 3, plan="brute", threads=1)
    assert len(expected) >= len(words) // 3
    for level in LEVELS:
        with at_level(level):
            for plan in ("brute", "blocks:4,1", "blocks:1,2", "blocks:2,2"):
                for threads in (1, 2):
                    assert nd.join(words, 3, plan=plan, threads=threads) == expected, (level, plan, threads)


@pytest.mark.parametrize("kind", ["distinct", "repeated", "constant bits", "one shared bucket"])
def test_tables_that_move_their_rows_together_find_the_same(kind: str) -> None:
    # 80,000 rows of 256 bits are cut into 16 parts, as many as tables need to share a move.
    words = near_words(80_000, 4, seed=5)
    if kind == "repeated":
        words[1::2] = words[::2]
    elif kind == "constant bits":
        words[:, 1:] &= np.uint64(0xFF)
    elif kind == "one shared bucket":
        words[:30_000, :3] = 7
    expected = nd.join(words, 6, plan="brute")
    some, others = words[::2], words[1::2]
    between = nd.join(some, 6, others, plan="brute")
    assert len(expected) >= 20_000
    assert len(between) >= 10_000
    for plan in ("blocks:7,1", "blocks:2,2", "blocks:1,2", "blocks:3,3", None):
        for threads in (1, 2):
            assert nd.join(words, 6, plan=plan, threads=threads) == expected, (plan, threads)
        assert nd.join(words, 6, plan=plan, memory=1) == expected, plan
        assert nd.join(some, 6, others, plan=plan) == between, plan


@pytest.mark.parametrize("width", [17, 40, 100, 256, 1024])
@pytest.mark.parametrize("share", [1000, 100, 3])
def test_wide_fingerprints_are_joined_at_any_radius(width: int, share: int) -> None:
    rng = np.random.default_rng(width + share)
    words = rng.integers(0, 2**64, (12, width), dtype=np.uint64)[rng.integers(0, 12, 60)]
    radius = width * 64 // share
    for row in words:
        for bit in rng.integers(0, width * 64, rng.integers(0, radius + 1)):
            row[bit // 64] ^= np.uint64(1) << np.uint64(bit % 64)
    values = list(nd.Fingerprints(words))
    expected = naive.join(values, radius)
    assert len(expected) >= 20
    for plan in (None, "brute", "blocks"):
        assert list(nd.join(words, radius, plan=plan)) == expected
    assert [pair for batch in nd.join_batches(words, radius, size=50) for pair in batch] == expected
    assert list(nd.join(words[:25], radius, words[25:])) == naive.join_two(values[:25], values[25:], radius)


def test_the_widest_fingerprints_have_a_radius_that_distances_can_tell() -> None:
    words = np.zeros((2, 1024), dtype=np.uint64)
    words[1] = ~words[0]
    assert len(nd.join(words, 65_535)) == 0
    with pytest.raises(InvalidValue, match="65535"):
        nd.join(words, 65_536)


def test_a_width_that_is_no_multiple_of_64_uses_only_its_bits() -> None:
    prints = nd.Fingerprints.of([0, 1, 2**100 - 1], bits=100)
    assert list(nd.join(prints, 1)) == [(0, 1, 1)]


@pytest.mark.parametrize(("bits", "radius"), [(64, 8), (64, 21), (128, 20), (128, 42), (256, 60)])
def test_sampling_tables_reach_the_recall_that_was_asked_for(bits: int, radius: int) -> None:
    rng = np.random.default_rng(bits + radius)
    count = 3000
    words = rng.integers(0, 2**64, (count, bits // 64), dtype=np.uint64)
    twins = words.copy()
    for row in twins:  # each twin is exactly at the radius: the hardest pair to see
        for bit in rng.choice(bits, radius, replace=False):
            row[bit // 64] ^= np.uint64(1) << np.uint64(bit % 64)
    both = np.concatenate([words, twins])
    found = nd.join(both, radius, recall=0.9, plan="sampling")
    planted = int((found.right - found.left == count).sum())
    # Three standard deviations of 3000 draws at 0.9 are 0.0164.
    assert planted >= (0.9 - 0.0165) * count
    assert nd.join(both, radius, recall=0.9, plan="sampling", threads=1) == found
    exact = set(nd.join(both, radius, plan="brute"))
    assert set(found) <= exact


def test_sampling_is_never_used_for_an_exact_answer() -> None:
    with pytest.raises(InvalidValue, match="recall below 1"):
        nd.join(np.zeros(3, dtype=np.uint64), 3, plan="sampling")
    assert nd.plan(near_words(5000, 2, 1), 40, recall=1.0).recall == 1.0


def test_equal_fingerprints_are_all_paired() -> None:
    found = nd.join(np.full(300, 9, dtype=np.uint64), 0)
    assert len(found) == 300 * 299 // 2
    assert list(found) == sorted(found)


def test_an_answer_too_large_to_hold_names_the_way_out() -> None:
    with pytest.raises(LimitReached, match="join_batches"):
        nd.join(np.zeros(100_000, dtype=np.uint64), 0)


@pytest.mark.parametrize(
    ("prints", "error"),
    [
        ([1, 2], InvalidType),
        (np.array([1, 2]), InvalidType),
        (np.array([1.0]), InvalidType),
        (np.array(["a"], dtype=object), InvalidType),
        (np.array(5, dtype=np.uint64), InvalidValue),
        (np.zeros((2, 2, 2), dtype=np.uint64), InvalidValue),
        (np.zeros((2, 0), dtype=np.uint64), InvalidValue),
        (np.zeros((2, 1025), dtype=np.uint64), InvalidValue),
        (None, InvalidType),
    ],
)
def test_what_is_no_fingerprint_is_refused(prints: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        nd.join(prints, 3)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"radius": -1}, InvalidValue),
        ({"radius": 65}, InvalidValue),
        ({"radius": 2.5}, InvalidType),
        ({"radius": True}, InvalidType),
        ({"radius": None}, InvalidType),
        ({"radius": 10**30}, InvalidValue),
        ({"radius": 3, "recall": 0}, InvalidValue),
        ({"radius": 3, "recall": 1.5}, InvalidValue),
        ({"radius": 3, "recall": float("nan")}, InvalidValue),
        ({"radius": 3, "recall": "all"}, InvalidType),
        ({"radius": 3, "threads": 0}, InvalidValue),
        ({"radius": 3, "threads": 1.5}, InvalidType),
        ({"radius": 3, "plan": "magic"}, InvalidValue),
        ({"radius": 3, "plan": "blocks:0,1"}, InvalidValue),
        ({"radius": 3, "plan": "blocks:9999999999,1"}, InvalidValue),
        ({"radius": 3, "plan": 7}, InvalidType),
        ({"radius": 3, "memory": 0}, InvalidValue),
        ({"radius": 3, "memory": "1G"}, InvalidType),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        nd.join(np.arange(5, dtype=np.uint64), **options)


def test_strided_big_endian_and_read_only_arrays_give_the_same_pairs() -> None:
    words = near_words(500, 2, 3)
    expected = nd.join(words, 3)
    strided = np.zeros((1000, 4), dtype=np.uint64)
    strided[::2, ::2] = words
    read_only = words.copy()
    read_only.flags.writeable = False
    for same in (strided[::2, ::2], words.astype(">u8"), np.asfortranarray(words), read_only):
        assert nd.join(same, 3) == expected


def test_two_widths_or_schemes_are_not_compared() -> None:
    with pytest.raises(SchemeMismatch, match="64-bit"):
        nd.join(np.zeros(2, dtype=np.uint64), 3, np.zeros((2, 2), dtype=np.uint64))
    one, two = (nd.Fingerprints(np.zeros(2, dtype=np.uint64), digest=digest) for digest in ("a", "b"))
    with pytest.raises(SchemeMismatch):
        nd.join(one, 3, two)


def test_an_array_written_during_the_join_does_not_disturb_it() -> None:
    words = near_words(200_000, 1, 4)
    expected = nd.join(words.copy(), 3)
    stop = threading.Event()

    def scribble(array: np.ndarray) -> None:
        while not stop.is_set():
            array[:1000] ^= np.uint64(1)
            array[:1000] ^= np.uint64(1)

    read_only = words.copy()
    read_only.flags.writeable = False
    writer = threading.Thread(target=scribble, args=(words,))
    writer.start()
    try:
        nd.join(words, 3)
        assert nd.join(read_only, 3) == expected
    finally:
        stop.set()
        writer.join()


def test_ctrl_c_ends_a_long_join() -> None:
    program = """
import numpy as np, neardup as nd, threading, os, signal
words = np.random.default_rng(1).integers(0, 2**64, (400_000, 4), dtype=np.uint64)
threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    nd.join(words, 100, plan="brute")
except KeyboardInterrupt:
    print("interrupted", len(nd.join(words[:100], 3)))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=True
    )
    assert done.stdout.startswith("interrupted")


def test_a_forked_child_can_join() -> None:
    program = """
import os, warnings, numpy as np, neardup as nd
warnings.simplefilter("ignore")
words = np.arange(50_000, dtype=np.uint64)
count = len(nd.join(words, 1))
child = os.fork()
if child == 0:
    os._exit(0 if len(nd.join(words, 1)) == count else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "0"


def cut_to_the_nearest(
    pairs: list[tuple[int, int, int]], most: int
) -> tuple[list[tuple[int, int, int]], list[int]]:
    """The pairs that are among the *most* nearest of either side, and the rows of the others: the slow way."""
    near = defaultdict(list)
    for left, right, distance in pairs:
        near[left].append((distance, right))
        near[right].append((distance, left))
    nearest = {row: set(sorted(others)[:most]) for row, others in near.items()}
    kept = [(a, b, d) for a, b, d in pairs if (d, b) in nearest[a] or (d, a) in nearest[b]]
    return kept, sorted({row for pair in set(pairs) - set(kept) for row in pair[:2]})


def allowed(
    pairs: list[tuple[int, int, int]], within: Any = None, across: Any = None, fixed: Any = None
) -> list[tuple[int, int, int]]:
    """The pairs that may be compared: the slow way."""
    return [
        (a, b, d)
        for a, b, d in pairs
        if (within is None or within[a] == within[b])
        and (across is None or across[a] != across[b])
        and not (fixed is not None and fixed[a] and fixed[b])
    ]


def cut_at_once(
    pairs: Pairs, most: int, within: Any = None, across: Any = None, fixed: Any = None
) -> tuple[list[tuple[int, int, int]], list[int]]:
    """What the two slow ways say, by sorting all pairs at once: for a million of them."""
    left, right, distance = (side.astype(np.int64) for side in (pairs.left, pairs.right, pairs.distance))
    wanted = np.ones(len(left), dtype=bool)
    wanted &= True if within is None else within[left] == within[right]
    wanted &= True if across is None else across[left] != across[right]
    wanted &= True if fixed is None else ~(fixed[left] & fixed[right])
    left, right, distance = left[wanted], right[wanted], distance[wanted]
    rows, others = np.concatenate([left, right]), np.concatenate([right, left])
    order = np.lexsort([others, np.tile(distance, 2), rows])
    begins = np.searchsorted(rows[order], rows[order])
    near = np.zeros(len(order), dtype=bool)
    near[order] = np.arange(len(order)) - begins < most
    kept = near[: len(left)] | near[len(left) :]
    found = np.stack([left, right, distance], axis=1)[kept].tolist()
    return [(a, b, d) for a, b, d in found], np.unique(np.concatenate([left[~kept], right[~kept]])).tolist()


def listed(found: Nearest) -> tuple[list[tuple[int, int, int]], list[int]]:
    return list(found.pairs), found.crowded.tolist()


def family(count: int, seed: int = 1, flips: int = 6) -> np.ndarray:
    """Look-alikes of 256 bits: none is further than 2 * *flips* from another."""
    rng = np.random.default_rng(seed)
    words = np.repeat(rng.integers(0, 2**64, (1, 4), dtype=np.uint64), count, axis=0)
    for _ in range(flips):
        bits = rng.integers(0, 256, count)
        words[np.arange(count), bits // 64] ^= np.uint64(1) << (bits % 64).astype(np.uint64)
    return words


@given(
    st.data(),
    fingerprints(),
    radii,
    st.integers(1, 6),
    st.sampled_from([None, "brute", "blocks", "blocks:1,2", "blocks:4,1", "sampling"]),
    st.sampled_from(LEVELS),
    st.integers(1, 4),
)
@settings(max_examples=300)
def test_a_join_cut_to_the_nearest_is_the_whole_join_cut_afterwards(
    data: st.DataObject,
    prints: nd.Fingerprints,
    radius: int,
    most: int,
    plan: str | None,
    level: str,
    threads: int,
) -> None:
    count = len(prints)
    codes = st.none() | st.lists(st.integers(0, 2), min_size=count, max_size=count)
    flags = st.none() | st.lists(st.booleans(), min_size=count, max_size=count)
    options: dict[str, Any] = {
        "within": data.draw(codes),
        "across": data.draw(codes),
        "fixed": data.draw(flags),
    }
    recall = 0.7 if plan == "sampling" else 1.0
    all_pairs = list(nd.join(prints, radius, plan=plan, recall=recall))
    with at_level(level):
        found = join_nearest(prints, radius, most, plan=plan, recall=recall, threads=threads, **options)
    assert listed(found) == cut_to_the_nearest(allowed(all_pairs, **options), most)


@given(
    data=st.data(), prints=fingerprints(), radius=radii, most=st.integers(1, 6), level=st.sampled_from(LEVELS)
)
def test_with_bands_only_rows_that_share_one_are_pairs(
    data: st.DataObject, prints: nd.Fingerprints, radius: int, most: int, level: str
) -> None:
    row = st.lists(st.integers(0, 3), min_size=3, max_size=3)
    rows = data.draw(st.lists(row, min_size=len(prints), max_size=len(prints)))
    bands = np.array(rows, dtype=np.uint32).reshape(len(prints), 3)
    pairs = [pair for pair in nd.join(prints, radius) if (bands[pair[0]] == bands[pair[1]]).any()]
    with at_level(level):
        found = join_nearest(prints, radius, most, bands=bands)
    assert listed(found) == cut_to_the_nearest(pairs, most)


def test_bands_are_as_many_for_each_row() -> None:
    with pytest.raises(nd.errors.InvalidValue, match="as many bands"):
        join_nearest(np.arange(5, dtype=np.uint64), 3, 2, bands=np.zeros((4, 2), dtype=np.uint32))


@given(fingerprints(), radii, st.integers(1, 6))
def test_cutting_at_once_is_cutting_the_slow_way(prints: nd.Fingerprints, radius: int, most: int) -> None:
    pairs, codes = nd.join(prints, radius), np.arange(len(prints)) % 3
    flags = codes == 0
    for options in ({}, {"within": codes}, {"across": codes}, {"fixed": flags}):
        assert cut_at_once(pairs, most, **options) == cut_to_the_nearest(
            allowed(list(pairs), **options), most
        )


@pytest.mark.parametrize("options", ["none", "within", "across", "fixed"])
def test_a_family_with_more_pairs_than_are_held_is_cut_the_same_by_every_plan_and_thread_count(
    options: str,
) -> None:
    # 1,200 look-alikes have 720,000 pairs: more than are held before they are cut.
    words = np.concatenate([family(1200), near_words(300, 4, seed=2)])
    words[1200:1250] = words[:50]  # some are equal
    codes, flags = np.arange(len(words), dtype=np.int32) % 3, np.arange(len(words)) % 4 == 0
    chosen = {"none": {}, "within": {"within": codes}, "across": {"across": codes}, "fixed": {"fixed": flags}}
    exact = cut_at_once(nd.join(words, 84, plan="brute"), 32, **chosen[options])
    assert len(exact[0]) > 20_000
    assert len(exact[1]) > 1000
    for plan in (None, "brute", "blocks", "blocks:40,1"):
        for threads in (1, 2, 4) if plan in (None, "brute") else (1, 4):
            found = join_nearest(words, 84, 32, plan=plan, threads=threads, **chosen[options])
            assert listed(found) == exact, (plan, threads)
    sampled = cut_at_once(nd.join(words, 84, plan="sampling", recall=0.8), 32, **chosen[options])
    for threads in (1, 3):
        found = join_nearest(words, 84, 32, plan="sampling", recall=0.8, threads=threads, **chosen[options])
        assert listed(found) == sampled, threads


@pytest.mark.parametrize("level", LEVELS)
def test_every_level_cuts_a_family_the_same(level: str) -> None:
    words = family(1000)
    expected = listed(join_nearest(words, 84, 32, plan="brute"))
    with at_level(level):
        for plan in ("brute", "blocks:40,1"):
            assert listed(join_nearest(words, 84, 32, plan=plan)) == expected


def test_equal_fingerprints_are_cut_to_the_lowest_numbers() -> None:
    prints = nd.Fingerprints.of([None, *[9] * 3000, None], bits=64)
    pairs, crowded = listed(join_nearest(prints, 0, 2))
    assert pairs[:3] == [(1, 2, 0), (1, 3, 0), (1, 4, 0)]
    assert len(pairs) == 2 * 3000 - 3
    assert crowded == list(range(3, 3001))


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"most": 0}, InvalidValue),
        ({"most": 1.5}, InvalidType),
        ({"within": np.zeros(4, dtype=np.int32)}, InvalidValue),
        ({"across": np.zeros(6, dtype=np.int32)}, InvalidValue),
        ({"fixed": np.zeros(0, dtype=bool)}, InvalidValue),
        ({"radius": 65}, InvalidValue),
        ({"plan": "magic"}, InvalidValue),
        ({"memory": 0}, InvalidValue),
    ],
)
def test_wrong_options_of_a_cut_join_are_refused(options: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        join_nearest(np.arange(5, dtype=np.uint64), **{"radius": 3, "most": 2, **options})


def run_program(program: str, timeout: float = 300) -> list[str]:
    # One arena: each further one holds addresses that the limit counts and nobody uses.
    env = {**os.environ, "MALLOC_ARENA_MAX": "1"}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=timeout, env=env
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.skipif(sys.platform != "linux", reason="the peak of memory is told by Linux")
def test_eight_thousand_look_alikes_take_little_memory() -> None:
    program = """
from tests.test_pairs import family, join_nearest
pairs, crowded, _ = join_nearest(family(8000), 84, 32, recall=0.95)
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(len(pairs), len(crowded), int(peak.split()[1]) // 1024)
"""
    pairs, crowded, megabytes = map(int, run_program(program))
    assert 8000 * 16 <= pairs <= 8000 * 32
    assert crowded > 7000
    assert megabytes < 200


def test_ctrl_c_ends_a_long_cut_join() -> None:
    program = """
import os, signal, threading
from tests.test_pairs import family, join_nearest
words = family(150_000)
shares = []
def tell(share):
    shares.append(share)
    if len(shares) == 3:
        os.kill(os.getpid(), signal.SIGINT)
try:
    join_nearest(words, 84, 32, plan="brute", tell=tell)
except KeyboardInterrupt:
    print("interrupted", len(join_nearest(words[:100], 20, 5)[0]) > 0, shares == sorted(shares))
"""
    assert run_program(program) == ["interrupted", "True", "True"]


@pytest.mark.skipif(sys.platform != "linux", reason="the limit on memory is that of Linux")
@pytest.mark.parametrize(
    "call",
    [
        "nd.join(words, 3)",
        "nd.join(words, 3, words[:2_000_000])",
        "nd.join(words, 3, plan='brute')",
        "nd.join(words, 3, memory=1 << 20)",
        "join_nearest(words, 3, 32)",
        "join_nearest(words, 3, 32, plan='brute')",
        "nd.groups(words, 3)",
        "nd.groups(words, 3, order=order)",
        "nd.plan(words, 3)",
        "nd.components(pairs, 400_000_000)",
    ],
)
def test_memory_that_ends_is_a_memory_error_and_no_abort(call: str) -> None:
    # Room for 16 MB more than are in use: less than a join of eight million rows takes.
    program = f"""
import resource
import numpy as np, neardup as nd
from neardup.pairs import Pairs, join_nearest
words = np.random.default_rng(1).integers(0, 2**64, 8_000_000, dtype=np.uint64)
words.flags.writeable = False
order = np.arange(len(words))
pairs = nd.join(words[:1000], 3)
nd.groups(words[:1000], 3), nd.components(pairs, 1000), nd.plan(words[:1000], 3), join_nearest(words[:1000], 3, 5)
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (16 << 20), -1))
try:
    {call}
    print("done")
except MemoryError:
    print("MemoryError")
resource.setrlimit(resource.RLIMIT_AS, (-1, -1))
print(len(nd.join(words[:1000], 3)) == len(pairs))
"""
    said = run_program(program)
    assert said == ["MemoryError", "True"] or (said == ["done", "True"] and "nd.plan" in call)


@pytest.mark.skipif(sys.platform != "linux", reason="the limit on memory is that of Linux")
@pytest.mark.parametrize("room", [0, 0.5, 1, 2, 2.2, 3, 3.5, 5, 8, 21, 89, 233])
def test_whatever_memory_is_left_a_join_ends_or_raises(room: float) -> None:
    program = f"""
import resource
import numpy as np, neardup as nd
from neardup.pairs import Pairs, join_nearest
from tests.test_pairs import family
words = np.concatenate([family(1500), np.random.default_rng(1).integers(0, 2**64, (60_000, 4), dtype=np.uint64)])
words.flags.writeable = False
expected = [len(nd.join(words[:100], 84)), len(join_nearest(words[:100], 84, 32)[0])]
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + int({room} * 2**20), -1))
for call in (nd.join, lambda *some, **more: join_nearest(*some, 32, **more)[0]):
    try:
        print(len(call(words, 84, recall=0.9, threads=4)) > 20_000)
    except MemoryError:
        print(True)
"""
    assert run_program(program) == ["True", "True"]
