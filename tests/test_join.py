"""join: every pair within the radius, whatever the plan, the width, the level and the threads."""

from __future__ import annotations

import subprocess
import sys
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import neardup as nd
from neardup import naive
from neardup.errors import InvalidType, InvalidValue, LimitReached, SchemeMismatch
from tests.hamming import LEVELS, WORDS, at_level, fingerprints, near_words

radii = st.integers(0, 20)


def test_one_flipped_bit_is_a_pair_at_radius_one():
    assert list(nd.join(np.array([0b1010, 0b1011], dtype=np.uint64), 1)) == [(0, 1, 1)]


def test_nothing_has_no_pairs():
    assert len(nd.join(np.zeros(0, dtype=np.uint64), 3)) == 0
    assert len(nd.join(np.zeros((0, 4), dtype=np.uint64), 3, np.zeros((3, 4), dtype=np.uint64))) == 0


def test_rows_without_information_never_match():
    prints = nd.Fingerprints.of([7, None, 7, None], bits=64)
    assert list(nd.join(prints, 64)) == [(0, 2, 0)]
    assert list(nd.join(prints, 64, prints)) == [(0, 0, 0), (0, 2, 0), (2, 0, 0), (2, 2, 0)]


@given(fingerprints(), radii)
def test_join_finds_what_comparing_all_pairs_finds(prints, radius):
    assert list(nd.join(prints, radius)) == naive.join(list(prints), radius)


@given(st.data(), fingerprints(max_size=40), radii)
def test_join_of_two_sets_finds_what_comparing_all_pairs_finds(data, prints, radius):
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
def test_every_plan_level_and_thread_count_finds_the_same(prints, radius, plan, level, threads):
    with at_level(level):
        found = list(nd.join(prints, radius, plan=plan, threads=threads))
    assert found == naive.join(list(prints), radius)


@pytest.mark.parametrize("width", WORDS)
def test_many_rows_give_the_same_pairs_by_every_plan_and_level(width):
    words = near_words(6000 if width <= 16 else 20_000 // width + 40, width, seed=width)
    expected = nd.join(words, 3, plan="brute", threads=1)
    assert len(expected) >= len(words) // 3
    for level in LEVELS:
        with at_level(level):
            for plan in ("brute", "blocks:4,1", "blocks:1,2", "blocks:2,2"):
                for threads in (1, 2):
                    assert nd.join(words, 3, plan=plan, threads=threads) == expected, (level, plan, threads)


@pytest.mark.parametrize("kind", ["distinct", "repeated", "constant bits", "one shared bucket"])
def test_tables_that_move_their_rows_together_find_the_same(kind):
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
def test_wide_fingerprints_are_joined_at_any_radius(width, share):
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


def test_the_widest_fingerprints_have_a_radius_that_distances_can_tell():
    words = np.zeros((2, 1024), dtype=np.uint64)
    words[1] = ~words[0]
    assert len(nd.join(words, 65_535)) == 0
    with pytest.raises(InvalidValue, match="65535"):
        nd.join(words, 65_536)


def test_a_width_that_is_no_multiple_of_64_uses_only_its_bits():
    prints = nd.Fingerprints.of([0, 1, 2**100 - 1], bits=100)
    assert list(nd.join(prints, 1)) == [(0, 1, 1)]


@pytest.mark.parametrize(("bits", "radius"), [(64, 8), (64, 21), (128, 20), (128, 42), (256, 60)])
def test_sampling_tables_reach_the_recall_that_was_asked_for(bits, radius):
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


def test_sampling_is_never_used_for_an_exact_answer():
    with pytest.raises(InvalidValue, match="recall below 1"):
        nd.join(np.zeros(3, dtype=np.uint64), 3, plan="sampling")
    assert nd.plan(near_words(5000, 2, 1), 40, recall=1.0).recall == 1.0


def test_equal_fingerprints_are_all_paired():
    found = nd.join(np.full(300, 9, dtype=np.uint64), 0)
    assert len(found) == 300 * 299 // 2
    assert list(found) == sorted(found)


def test_an_answer_too_large_to_hold_names_the_way_out():
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
def test_what_is_no_fingerprint_is_refused(prints, error):
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
def test_wrong_options_are_refused(options, error):
    with pytest.raises(error):
        nd.join(np.arange(5, dtype=np.uint64), **options)


def test_strided_big_endian_and_read_only_arrays_give_the_same_pairs():
    words = near_words(500, 2, 3)
    expected = nd.join(words, 3)
    strided = np.zeros((1000, 4), dtype=np.uint64)
    strided[::2, ::2] = words
    read_only = words.copy()
    read_only.flags.writeable = False
    for same in (strided[::2, ::2], words.astype(">u8"), np.asfortranarray(words), read_only):
        assert nd.join(same, 3) == expected


def test_two_widths_or_schemes_are_not_compared():
    with pytest.raises(SchemeMismatch, match="64-bit"):
        nd.join(np.zeros(2, dtype=np.uint64), 3, np.zeros((2, 2), dtype=np.uint64))
    one, two = (nd.Fingerprints(np.zeros(2, dtype=np.uint64), digest=digest) for digest in ("a", "b"))
    with pytest.raises(SchemeMismatch):
        nd.join(one, 3, two)


def test_an_array_written_during_the_join_does_not_disturb_it():
    words = near_words(200_000, 1, 4)
    expected = nd.join(words.copy(), 3)
    stop = threading.Event()

    def scribble(array):
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


def test_ctrl_c_ends_a_long_join():
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


def test_a_forked_child_can_join():
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
