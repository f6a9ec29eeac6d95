"""Index: exact answers while fingerprints come and go."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import neardup as nd
from neardup import naive
from neardup.errors import DamagedFile, InvalidType, InvalidValue, NeardupError, SchemeMismatch
from tests.hamming import (
    LEVELS,
    WIDTHS,
    WORDS,
    at_level,
    clustered_values,
    fingerprints,
    near_words,
    random_values,
)


def words(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.uint64)


def test_a_search_gives_query_id_and_distance() -> None:
    index = nd.Index(bits=64, radius=3)
    index.add(["far", "near"], words(0xFFFF, 0b1))
    found = index.search(words(0xFF00, 0))
    assert list(found) == [(1, "near", 1)]
    assert (found.query.tolist(), found.id.tolist(), found.distance.tolist()) == ([1], ["near"], [1])


def test_an_empty_index_finds_nothing() -> None:
    index = nd.Index()
    assert len(index.search(words(1))) == 0
    assert len(index.nearest(words(1), n=3)) == 0
    assert index.search_one(1) == []
    assert index.remove(["a"]) == 0


def test_a_removed_id_is_not_found_and_an_updated_one_moves() -> None:
    index = nd.Index(radius=1)
    index.add([1, 2, 1], words(0, 0, 1 << 40))
    assert index.remove([1]) == 2
    assert index.search_one(0) == [(2, 0)]
    index.update([2], words(7))
    assert (index.search_one(0), index.search_one(7), len(index)) == ([], [(2, 0)], 1)


def test_an_update_that_is_refused_removes_nothing() -> None:
    index = nd.Index(radius=1)
    index.add(["a", "b"], words(1, 2))
    with pytest.raises(InvalidType):
        index.update([1], words(3))
    index.update(["a", "a", "c"], nd.Fingerprints.of([7, None, None]))
    assert sorted(zip(index.items()[0], index.items()[1].words[:, 0].tolist(), strict=True)) == [
        ("a", 7),
        ("b", 2),
    ]
    index.update(["b"], nd.Fingerprints.of([None]))
    assert index.items()[0] == ["a"]


def test_one_value_of_an_id_can_be_removed() -> None:
    index = nd.Index(radius=0)
    index.add_one("a", 5)
    index.add_one("a", 6)
    assert index.remove_one("a", 5) == 1
    assert (index.search_one(5), index.search_one(6)) == ([], [("a", 0)])
    assert index.remove_one("b", 6) == 0


def test_ties_of_nearest_are_ordered_by_id() -> None:
    index = nd.Index(radius=1)
    index.add(["c", "a", "b"], words(1 << 20, 1 << 21, 0b111 << 30))
    assert [(name, far) for _, name, far in index.nearest(words(0), n=2)] == [("a", 1), ("c", 1)]
    assert [(name, far) for _, name, far in index.nearest(words(0), n=9)] == [("a", 1), ("c", 1), ("b", 3)]
    assert len(index.nearest(words(0), n=0)) == 0


# Bits; steps; queries.
Story = tuple[int, list[Any], list[int]]


@st.composite
def stories(draw: st.DrawFn) -> Story:
    """Adds and removes, then queries."""
    bits = draw(st.sampled_from(WIDTHS))
    values = st.one_of(clustered_values(bits), random_values(bits))
    names = draw(st.sampled_from([st.integers(-5, 30), st.text("abß", max_size=2)]))
    steps = draw(st.lists(st.one_of(st.tuples(names, values), st.tuples(names)), max_size=40))
    return bits, steps, draw(st.lists(values, min_size=1, max_size=5))


@given(stories(), st.integers(0, 20), st.integers(0, 20), st.integers(0, 12), st.sampled_from(LEVELS))
@settings(max_examples=150)
def test_an_index_answers_as_comparing_with_all_does(
    story: Story, radius: int, smaller: int, n: int, level: str
) -> None:
    bits, steps, queries = story
    index = nd.Index(bits=bits, radius=radius)
    stored: list[tuple[object, int]] = []
    for step in steps:
        if len(step) == 2:
            index.add_one(*step)
            stored.append(step)
        else:
            assert index.remove(list(step)) == sum(name == step[0] for name, _ in stored)
            stored = [kept for kept in stored if kept[0] != step[0]]
    asked = nd.Fingerprints.of(queries, bits=bits)
    smaller = min(smaller, radius)
    with at_level(level):
        found = list(index.search(asked, smaller))
        near = list(index.nearest(asked, n))
    assert found == [
        (row, *hit) for row, query in enumerate(queries) for hit in naive.search(stored, query, smaller)
    ]
    assert near == [
        (row, *hit) for row, query in enumerate(queries) for hit in naive.nearest(stored, query, n)
    ]
    assert [index.search_one(query) for query in queries] == [
        naive.search(stored, query, radius) for query in queries
    ]


@pytest.mark.parametrize(
    ("width", "radius"), [(1, 0), (1, 3), (1, 6), (1, 20), (2, 3), (2, 8), (3, 4), (4, 5), (16, 2)]
)
def test_a_large_index_finds_what_the_join_finds(width: int, radius: int, tmp_path: Path) -> None:
    stored, asked = near_words(30_000, width, 1), near_words(30_000, width, 1)[::97]
    expected = nd.join(asked, radius, stored, plan="brute")
    wanted = sorted(
        zip(expected.left.tolist(), expected.distance.tolist(), expected.right.tolist(), strict=True)
    )
    index = nd.Index(bits=width * 64, radius=radius)
    for start in range(0, len(stored), 4001):  # several segments and a live part
        index.add(np.arange(start, min(start + 4001, len(stored))), stored[start : start + 4001])
    index.save(tmp_path / "index")
    for tried in (index, nd.Index.load(tmp_path / "index")):
        for level in LEVELS:
            with at_level(level):
                found = tried.search(asked)
            assert (
                list(zip(found.query.tolist(), found.distance.tolist(), found.id.tolist(), strict=True))
                == wanted
            )


def test_rows_without_information_are_neither_stored_nor_found() -> None:
    index = nd.Index(radius=64)
    index.add(["a", "b"], nd.Fingerprints.of([None, 5]))
    assert len(index) == 1
    assert list(index.search(nd.Fingerprints.of([None, 4]))) == [(1, "b", 1)]
    assert list(index.nearest(nd.Fingerprints.of([None, 4]))) == [(1, "b", 1)]


@given(fingerprints(max_size=30), st.integers(0, 20), st.integers(1, 9))
def test_batches_together_are_the_join(prints: nd.Fingerprints, radius: int, size: int) -> None:
    batches = list(nd.join_batches(prints, radius, size=size))
    assert [pair for pairs in batches for pair in pairs] == list(nd.join(prints, radius))
    crossed = [pair for pairs in nd.join_batches(prints, radius, prints, size=size) for pair in pairs]
    assert crossed == list(nd.join(prints, radius, prints))


def test_an_answer_larger_than_memory_is_streamed() -> None:
    batches = nd.join_batches(np.zeros(200_000, dtype=np.uint64), 0, size=100_000)
    assert [len(next(batches)) for _ in range(3)] == [199_999, 199_998, 199_997]


def test_batches_of_many_rows_are_the_join() -> None:
    stored = near_words(20_000, 2, 5)
    expected = nd.join(stored, 3)
    batches = list(nd.join_batches(stored, 3, size=1000))
    assert np.array_equal(np.concatenate([pairs.right for pairs in batches]), expected.right)
    assert np.array_equal(np.concatenate([pairs.left for pairs in batches]), expected.left)


def test_removing_most_entries_makes_the_index_smaller() -> None:
    index = nd.Index()
    stored = near_words(50_000, 1, 2)
    index.add(np.arange(50_000), stored)
    before = index.nbytes
    assert index.remove(np.arange(0, 40_000)) == 40_000
    assert len(index) == 10_000
    assert index.nbytes < before / 2
    assert (40_001, 0) in index.search_one(int(stored[40_001, 0]))
    assert all(name >= 40_000 for name, _ in index.search_one(int(stored[40_001, 0])))


@pytest.mark.parametrize(
    "ids", [["a", "ß", "", "a" * 300, "漢字\n"], [5, -(2**63), 2**63 - 1, 0, 5], [0, 1, 2, 3, 4]]
)
def test_a_saved_index_answers_as_before(ids: list[Any], tmp_path: Path) -> None:
    index = nd.Index(bits=128, radius=4, digest="scheme-1")
    index.add(ids, nd.Fingerprints.of([1, 2, 3, 2**127, 2**127 + 1], bits=128))
    index.remove([ids[1]])
    index.save(tmp_path / "index")
    loaded = nd.Index.load(tmp_path / "index")
    asked = nd.Fingerprints.of([1, 2**127], bits=128)
    assert list(loaded.search(asked)) == list(index.search(asked))
    assert list(loaded.nearest(asked)) == list(index.nearest(asked))
    assert (loaded.digest, loaded.bits, loaded.radius, len(loaded)) == ("scheme-1", 128, 4, len(index))
    loaded.add([ids[0]], nd.Fingerprints.of([7], bits=128))
    assert loaded.remove([ids[0]]) >= 2
    assert os.listdir(tmp_path) == ["index"]


def test_saving_replaces_a_file_that_is_in_use(tmp_path: Path) -> None:
    index = nd.Index()
    index.add([1], words(1))
    index.save(tmp_path / "index")
    loaded = nd.Index.load(tmp_path / "index")
    loaded.add([2], words(2))
    loaded.save(tmp_path / "index")
    assert (
        sorted(loaded.search_one(1))
        == sorted(nd.Index.load(tmp_path / "index").search_one(1))
        == [(1, 0), (2, 2)]
    )


def test_a_file_of_another_version_says_so(tmp_path: Path) -> None:
    index = nd.Index()
    index.save(tmp_path / "index")
    data = bytearray((tmp_path / "index").read_bytes())
    data[8] = 9
    (tmp_path / "index").write_bytes(data)
    with pytest.raises(DamagedFile, match="made by version 9"):
        nd.Index.load(tmp_path / "index")
    data[8] = 1
    (tmp_path / "index").write_bytes(data)
    with pytest.raises(DamagedFile, match="version 1 of the format, which was never released"):
        nd.Index.load(tmp_path / "index")


def test_a_file_that_cannot_be_read_or_written_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        nd.Index.load(tmp_path / "none")
    with pytest.raises(OSError, match=r"cannot write .*No such file") as raised:
        nd.Index().save(tmp_path / "none" / "index")
    assert (raised.value.errno, isinstance(raised.value, NeardupError)) == (errno.ENOENT, True)


def test_another_scheme_or_width_is_refused() -> None:
    index = nd.Index(bits=64)
    index.add([1], nd.Fingerprints(words(1), digest="one"))
    with pytest.raises(SchemeMismatch, match="built with scheme one"):
        index.search(nd.Fingerprints(words(1), digest="two"))
    with pytest.raises(SchemeMismatch, match="64-bit"):
        index.add([1], np.zeros((1, 2), dtype=np.uint64))


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda index: index.add([1], words(1, 2)), InvalidValue),
        (lambda index: index.add("ab", words(1, 2)), InvalidType),
        (lambda index: index.add([1, "a"], words(1, 2)), InvalidType),
        (lambda index: index.add([1.5], words(1)), InvalidType),
        (lambda index: index.add([True], words(1)), InvalidType),
        (lambda index: index.add(7, words(1)), InvalidType),
        (lambda index: index.add([2**63], words(1)), InvalidValue),
        (lambda index: index.add(["\ud800"], words(1)), InvalidValue),
        (lambda index: index.add(["text"], words(1)), InvalidType),
        (lambda index: index.add_one("text", 1), InvalidType),
        (lambda index: index.add_one(1, -1), InvalidValue),
        (lambda index: index.add_one(1, 2**64), InvalidValue),
        (lambda index: index.add_one(1, "5"), InvalidType),
        (lambda index: index.search_one(2**64), InvalidValue),
        (lambda index: index.search_one(None), InvalidType),
        (lambda index: index.search_one(1, 4), InvalidValue),
        (lambda index: index.search(words(1), 4), InvalidValue),
        (lambda index: index.search(words(1), -1), InvalidValue),
        (lambda index: index.search([1]), InvalidType),
        (lambda index: index.nearest(words(1), n=-1), InvalidValue),
        (lambda index: index.nearest(words(1), n="two"), InvalidType),
        (lambda index: nd.Index.load("none", map=1), InvalidType),  # type: ignore[arg-type]
        (lambda index: index.save("none", overwrite="no"), InvalidType),
        (lambda index: nd.Index(bits=0), InvalidValue),
        (lambda index: nd.Index(bits=65_537), InvalidValue),
        (lambda index: nd.Index(radius=-1), InvalidValue),
        (lambda index: nd.join_batches(words(1), 3, size=0), InvalidValue),
    ],
)
def test_wrong_calls_are_refused_and_change_nothing(
    call: Callable[[nd.Index], object], error: type[Exception]
) -> None:
    index = nd.Index(radius=3)
    index.add([5], words(5))
    with pytest.raises(error):
        call(index)
    assert index.search_one(5) == [(5, 0)]
    assert len(index) == 1


@pytest.mark.parametrize("width", [word for word in WORDS if word > 16])
def test_an_index_of_wide_fingerprints_answers_as_comparing_all_would(width: int, tmp_path: Path) -> None:
    stored = near_words(90, width, width)
    index = nd.Index(bits=width * 64, radius=3)
    index.add(np.arange(60), stored[:60])
    for row in range(60, 90):
        index.add_one(row, int.from_bytes(stored[row].tobytes(), "little"))
    apart = np.array([[int(np.bitwise_count(one ^ two).sum()) for two in stored] for one in stored])
    within = [(*map(int, place), int(apart[tuple(place)])) for place in np.argwhere(apart <= 3)]
    near = [
        (row, int(other), int(apart[row, other]))
        for row in (5, 80)
        for other in np.argsort(apart[row], kind="stable")[:4]
    ]
    index.save(tmp_path / "wide.index")
    for one in (index, nd.Index.load(tmp_path / "wide.index")):
        assert sorted(one.search(stored)) == within
        assert [(int(row), id, far) for row, id, far in one.nearest(stored[[5, 80]], n=4)] == [
            ([5, 80].index(row), id, far) for row, id, far in near
        ]
    assert index.remove_one(70, int.from_bytes(stored[70].tobytes(), "little")) == 1
    assert index.remove([3]) == 1
    assert sorted(index.search(stored)) == [hit for hit in within if hit[1] not in (3, 70)]


def test_the_farthest_of_the_widest_fingerprints_is_told_exactly() -> None:
    index = nd.Index(bits=65_536, radius=3)
    index.add_one("far", 2**65_536 - 1)
    assert [far for _, _, far in index.nearest(np.zeros((1, 1024), dtype=np.uint64), n=1)] == [65_536]


def test_readers_and_a_writer_work_side_by_side() -> None:
    index = nd.Index(radius=2)
    stored = near_words(20_000, 1, 9)
    index.add(np.arange(1000), stored[:1000])
    wrong: list[str] = []
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            found = index.search(stored[:50])
            if len(set(found.id[found.distance == 0].tolist()) & set(range(50))) != 50:
                wrong.append("a stored fingerprint was not found")
            if (7, 0) not in index.search_one(int(stored[7, 0])):
                wrong.append("a stored fingerprint was not found alone")

    readers = [threading.Thread(target=read) for _ in range(4)]
    for reader in readers:
        reader.start()
    for start in range(1000, 20_000, 500):
        index.add(np.arange(start, start + 500), stored[start : start + 500])
        index.remove([start])
    done.set()
    for reader in readers:
        reader.join()
    assert not wrong
    assert len(index) == 20_000 - 38


def skewed_words(count: int, width: int, seed: int, kind: str) -> np.ndarray:
    """Fingerprints of a kind that a table could get wrong."""
    rng = np.random.default_rng(seed)
    words = near_words(count, width, seed)
    if kind == "few bits vary":
        words &= np.uint64(0x0101_0303_0707_0F0F)
    elif kind == "most bits are set":
        words |= rng.integers(0, 2**64, words.shape, dtype=np.uint64)
    elif kind == "a crowd":
        words[: count // 2] = words[0]
        words[: count // 4, 0] ^= np.uint64(1) << rng.integers(0, 64, count // 4, dtype=np.uint64)
    return words


@pytest.mark.parametrize("kind", ["uniform", "few bits vary", "most bits are set", "a crowd"])
@pytest.mark.parametrize(("width", "radius"), [(1, 9), (2, 16), (3, 23), (4, 31), (8, 40)])
def test_a_large_index_of_any_kind_answers_as_comparing_with_all_does(
    width: int, radius: int, kind: str, tmp_path: Path
) -> None:
    stored = skewed_words(24_000, width, radius, kind)
    rng, index, path = np.random.default_rng(1), nd.Index(64 * width, radius), tmp_path / "index"
    names, held = np.zeros(0, dtype=np.int64), np.zeros((0, width), dtype=np.uint64)
    for start in range(
        0, len(stored), 8000
    ):  # added, removed, saved and loaded, then again on top of the file
        new = rng.permutation(np.arange(start, start + 8000))
        index.add(new, stored[new])
        gone = rng.choice(new, 500, replace=False)
        names, held = np.concatenate([names, new]), np.concatenate([held, stored[new]])
        assert index.remove(gone) == 500
        if len(names) > 8000:
            old = rng.choice(names[: len(names) - 8000], 50, replace=False)
            assert index.remove(old) == 50
            gone = np.concatenate([gone, old])
        kept = ~np.isin(names, gone)
        names, held = names[kept], held[kept]
        index.add_one(-start - 1, int.from_bytes(held[3].tobytes(), "little"))
        names, held = np.append(names, -start - 1), np.concatenate([held, held[3:4]])
        asked = held[rng.integers(0, len(held), 12)]
        apart = np.array([np.bitwise_count(held ^ one).sum(axis=1) for one in asked])
        for smaller in (radius, radius // 2, 0):
            wanted = sorted(
                (int(row), int(apart[row, at]), int(names[at])) for row, at in np.argwhere(apart <= smaller)
            )
            for level in LEVELS:
                with at_level(level):
                    found = index.search(asked, smaller)
                assert (
                    list(zip(found.query.tolist(), found.distance.tolist(), found.id.tolist(), strict=True))
                    == wanted
                )
        index.save(path)
        index = nd.Index.load(path, map=start != 8000)
    assert sorted(index.items()[0]) == sorted(names.tolist())


def test_wide_fingerprints_are_kept_once_and_found_by_many_tables() -> None:
    index = nd.Index(bits=256, radius=31)
    index.add(np.arange(150_000), near_words(150_000, 4, 2))
    ((rows, tables),) = index.segments
    assert (rows, sum(radius + 1 for _, radius in tables)) == (150_000, 32)
    assert len(tables) > 4
    assert index.nbytes < 150_000 * 200


@pytest.mark.parametrize("ids", ["integers", "texts", "counted"])
def test_the_first_change_after_a_load_finds_every_id(ids: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    numbers = np.arange(6000) if ids == "counted" else rng.integers(-900, 900, 6000)
    names: Any = [f"no. {number}" for number in numbers] if ids == "texts" else numbers
    one, other = ("no. 5", "no. 7000") if ids == "texts" else (5, 7000)
    stored = near_words(6000, 1, 4)
    index = nd.Index(64, 2)
    index.add(names, stored)
    index.save(tmp_path / "index")
    count = int((numbers == 5).sum())
    assert count
    for mapped in (True, False):
        loaded = nd.Index.load(tmp_path / "index", map=mapped)
        loaded.add_one(one, 0)
        assert loaded.remove([one, one]) == count + 1
        assert loaded.remove([one, other]) == 0
        loaded.update([other], stored[:1])
        assert loaded.remove([other]) == 1
        assert len(loaded) == 6000 - count
        assert one not in loaded.items()[0]
        assert sorted(loaded.items()[0]) == sorted(name for name in index.items()[0] if name != one)
