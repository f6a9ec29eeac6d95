"""What the golden files do not say of the originals: batches, errors, rules that are ours."""

from __future__ import annotations

import copy
import gc
import hashlib
import logging
import pickle
import re
import sys
import types
import weakref
from concurrent.futures import ThreadPoolExecutor
from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import neardup as nd
from neardup import naive
from neardup.compat import htm, news, pbtk, qyoki
from neardup.compat import simhash as compat_simhash
from neardup.compat.simhash import Simhash, SimhashIndex, simhashes, values
from neardup.errors import DamagedFile, InvalidType, InvalidValue, MissingExtra
from neardup.features import trie
from tests.conftest import texts
from tests.hamming import near_words

# --- simhash ---------------------------------------------------------------------------------------------


def md5(data: bytes) -> bytes:
    return hashlib.md5(data).digest()


@given(texts, st.sampled_from([8, 64, 128]))
def test_a_text_has_the_value_of_the_plain_algorithm(text: str, f: int) -> None:
    features = naive.chars(naive.normalize_word_chars(text), 4) or [""]
    hashes = [(int.from_bytes(md5(part.encode())[-f // 8 :], "big"), 1) for part in features]
    assert Simhash(text, f).value == naive.simhash(hashes, f)


@given(texts)
def test_a_hash_function_of_ones_own_gives_the_same(text: str) -> None:
    assert Simhash(text, hashfunc=md5) == Simhash(text)
    assert Simhash(text, reg=re.compile(r"\w+")) == Simhash(text)


@given(st.lists(texts, max_size=20))
def test_many_at_once_are_the_same_as_one_by_one(many: list[str]) -> None:
    assert values(many).tolist() == [Simhash(text).value for text in many]
    assert simhashes(many, f=128) == [Simhash(text, f=128) for text in many]


weights = st.one_of(st.integers(-60, 60), st.floats(-10, 10, allow_nan=False))


@given(st.lists(st.tuples(st.sampled_from("abcdef"), weights), min_size=1, max_size=8))
def test_weights_count_the_same_with_any_hash_function(pairs: list[tuple[str, Any]]) -> None:
    assert Simhash(pairs).value == Simhash(pairs, hashfunc=md5).value


def test_a_hash_that_is_too_short_is_an_error() -> None:
    with pytest.raises(InvalidValue, match="hash of 128 bits is too short for a fingerprint of 256"):
        Simhash("abcdefg", f=256, hashfunc=md5)
    with pytest.raises(InvalidValue, match="too few"):
        Simhash("abcdefg", f=256)


def test_a_fingerprint_can_be_in_a_set() -> None:
    assert len({Simhash("Good job"), Simhash("good job"), Simhash("Good job, Ray")}) == 2


def test_the_attributes_of_the_original_are_there() -> None:
    simhash = Simhash("x", f=128)
    assert (simhash.f, simhash.f_bytes, simhash.large_weight_cutoff) == (128, 16, 50)
    assert simhash.hashfunc(b"x") == md5(b"x")
    assert simhash.log is logging.getLogger("simhash")
    assert simhash.batch_size == 200
    simhash.build_by_features(["aaa", "bbb"])
    assert simhash.value == Simhash(["aaa", "bbb"], f=128).value


def test_a_class_of_ones_own_has_features_of_its_own() -> None:
    class Words(Simhash):
        def _tokenize(self, content: str) -> list[str]:
            return content.split()

    class Pairs(Simhash):
        def _slide(self, content: str, width: int | None = None) -> list[str]:
            return super()._slide(content, 2)

    class Noted(Simhash):
        def build_by_features(self, features: Any) -> None:
            self.seen = sorted(features)
            super().build_by_features(features)

    assert Words("a b b") == Simhash(["a", "b", "b"])
    assert Pairs("Abc d") == Simhash(["ab", "bc", "cd"])
    noted = Noted("Good job")
    assert (noted, noted.seen) == (Simhash("Good job"), ["djob", "good", "odjo", "oodj"])


def test_the_functions_of_the_original_are_there() -> None:
    assert compat_simhash.int_to_bytes(258, 3) == b"\0\1\2"
    assert compat_simhash.bytes_to_int(b"\1\2") == 258
    assert Simhash("text", hashfunc=compat_simhash._hashfunc) == Simhash("text")
    assert Simhash("text", hashfunc=lambda data: np.uint64(7)).value == 7


def test_a_bucket_that_was_never_seen_is_empty() -> None:
    assert SimhashIndex([("a", Simhash(1))]).bucket["none:0"] == set()


def test_a_version_that_is_none_is_an_error() -> None:
    with pytest.raises(InvalidValue, match="version must look like"):
        Simhash("x", version="two")


operations = st.lists(
    st.tuples(st.sampled_from(["add", "delete", "query"]), st.integers(0, 3), st.integers(0, 255)),
    max_size=40,
)


@given(
    operations,
    st.sampled_from(
        [(64, 0), (64, 2), (64, 63), (64, 70), (8, 2), (128, 1), (256, 3), (1032, 2), (65600, 1)]
    ),
)
def test_the_index_does_what_buckets_of_sets_do(
    steps: list[tuple[str, int, int]], shape: tuple[int, int]
) -> None:
    f, k = shape
    index = SimhashIndex([], f, k)
    entries: set[tuple[str, int]] = set()
    keys: set[str] = set()
    for step, name, low in steps:
        simhash = Simhash(low if f == 8 else low * (1 + (1 << f - 8)), f)
        keys.update(index.get_keys(simhash))
        if step == "add":
            entries.add((str(name), simhash.value))
            index.add(name, simhash)
        elif step == "delete":
            entries.discard((str(name), simhash.value))
            index.delete(name, simhash)
        else:
            near = {name for name, value in entries if nd.distance(value, simhash.value) <= k}
            assert sorted(index.get_near_dups(simhash)) == sorted(near)
    assert index.bucket_size() == len(keys)
    assert {entry for bucket in index.bucket.values() for entry in bucket} == {
        f"{v:x},{n}" for n, v in entries
    }
    assert set(index.bucket) == keys


@pytest.mark.parametrize("f", [64, 2048])
def test_a_big_bucket_is_warned_of(caplog: pytest.LogCaptureFixture, f: int) -> None:
    middle, top = f // 3 + 9, f - 3
    index = SimhashIndex([(name, Simhash(name << middle, f)) for name in range(201)], f)
    with caplog.at_level(logging.WARNING, "simhash"):
        assert index.get_near_dups(Simhash(7 << top, f)) == []
        assert [record.getMessage() for record in caplog.records] == ["Big bucket found. key:0:0, len:201"]
        index.delete(7, Simhash(7 << middle, f))
        caplog.clear()
        index.get_near_dups(Simhash(7 << top, f))
        assert not caplog.records


def test_an_index_can_be_pickled_and_copied() -> None:
    index = SimhashIndex([("a" * n, Simhash(n)) for n in range(40)], k=1)
    index.get_near_dups(Simhash(1 << 60))
    index.delete("", Simhash(0))
    for other in (pickle.loads(pickle.dumps(index)), copy.deepcopy(index)):
        assert other.bucket == index.bucket
        assert other.get_near_dups(Simhash(3)) == ["aaa", "a", "aa", "a" * 7, "a" * 11, "a" * 19, "a" * 35]
        assert (other.f, other.k, other.offsets) == (64, 1, [0, 32])


def test_a_simhash_can_be_pickled_and_copied_and_its_options_set() -> None:
    class Named(Simhash):
        name = "none"

    named = Named("Good job", f=128, reg=r"\w")
    named.name = "mine"
    assert (copy.deepcopy(named), copy.copy(named).reg, copy.copy(named).name) == (named, r"\w", "mine")
    for one in (Simhash(5), Simhash(1 << 90, f=128), Simhash(-1), Simhash([("a", 2)], hashfunc=md5)):
        other = pickle.loads(pickle.dumps(one))
        assert (other, other.f, other.f_bytes, other.hashfunc) == (one, one.f, one.f // 8, one.hashfunc)
    one.hashfunc = None
    one.build_by_features(["aaa", "bbb"])
    assert one.value == 57087923692560392


def test_an_index_of_ones_own_may_take_other_arguments() -> None:
    class Numbered(SimhashIndex):
        def __init__(self, *values: int, radius: int) -> None:
            super().__init__(list(enumerate(map(Simhash, values))), k=radius)

        def add(self, obj_id: object, simhash: Simhash) -> None:
            super().add(f"number {obj_id}", simhash)

    assert Numbered(5, 6, 700, radius=2).get_near_dups(Simhash(5)) == ["number 0", "number 1"]


def test_a_copy_of_an_index_keeps_what_a_class_of_ones_own_added() -> None:
    class Counted(SimhashIndex):
        entries = 0

    index = Counted([("a", Simhash(1))], k=1)
    index.entries = 7
    other = copy.deepcopy(index)
    assert (other.entries, other.get_near_dups(Simhash(0))) == (7, ["a"])


def test_an_index_asks_a_class_of_ones_own_for_its_value() -> None:
    class Late(Simhash):
        value = property(lambda self: 12)

        def __init__(self) -> None:
            self.f = 64

    index = SimhashIndex([("late", Late())], k=1)
    assert index.get_near_dups(Simhash(13)) == ["late"]
    assert index.get_near_dups(Late()) == ["late"]


def test_a_simhash_that_holds_its_holder_is_collected() -> None:
    class Document:
        def __init__(self) -> None:
            self.print = Simhash("text", hashfunc=self.digest)

        def digest(self, data: bytes) -> bytes:
            return hashlib.md5(data).digest()

    gone = weakref.ref(Document())
    gc.collect()
    assert gone() is None


def test_an_entry_is_there_once_but_an_id_may_have_several_fingerprints(
    caplog: pytest.LogCaptureFixture,
) -> None:
    index = SimhashIndex([("a", Simhash(0))] * 300)
    with caplog.at_level(logging.WARNING, "simhash"):
        index.add("a", Simhash(0))
        index.add("a", Simhash(1))
        index.add("b", Simhash(1))
        assert index.get_near_dups(Simhash(0)) == ["a", "b"]
        assert not caplog.records
    index.delete("a", Simhash(0))
    assert index.get_near_dups(Simhash(0)) == ["a", "b"]
    index.delete("a", Simhash(1))
    assert index.get_near_dups(Simhash(0)) == ["b"]


@pytest.mark.parametrize("value", [5 - (1 << 64), 5 + (1 << 64), np.uint64(5), -(1 << 300) + 5])
def test_only_the_lowest_bits_of_a_value_count(value: int) -> None:
    index = SimhashIndex([("a", Simhash(value))])
    assert index.get_near_dups(Simhash(5)) == index.get_near_dups(Simhash(value)) == ["a"]


def test_a_fingerprint_of_other_bits_or_an_id_that_is_no_text_is_refused() -> None:
    index = SimhashIndex([])
    for call in (lambda other: index.add("a", other), index.get_near_dups):
        with pytest.raises(AssertionError, match="cannot index 32 bits among 64"):
            call(Simhash(1, f=32))
    with pytest.raises(InvalidValue, match="is not valid text"):
        index.add("\ud800", Simhash(1))
    assert index.bucket_size() == 0


def test_threads_may_add_and_ask_at_once() -> None:
    index = SimhashIndex([])

    def work(own: int) -> int:
        for at in range(2000):
            index.add(f"{own}-{at}", Simhash(hash((own, at)) & (1 << 64) - 1))
        return sum(
            f"{own}-{at}" in index.get_near_dups(Simhash(hash((own, at)) & (1 << 64) - 1))
            for at in range(2000)
        )

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(work, range(4))) == [2000] * 4


@pytest.mark.parametrize("f", [1024, 1032, 2048, 70_000])
def test_a_simhash_index_may_have_any_number_of_bits(f: int) -> None:
    def digest(data: bytes) -> bytes:
        return hashlib.shake_128(data).digest(f // 8)

    one, two, other = (Simhash(text, f=f, hashfunc=digest) for text in ("a text", "a text", "another one"))
    two.value ^= 1 << f - 1 | 1 << f // 2
    index = SimhashIndex([("a", one), ("b", two), ("c", other)], f=f, k=2)
    assert index.get_near_dups(one) == ["a", "b"]
    assert index.get_near_dups(other) == ["c"]
    assert pickle.loads(pickle.dumps(index)).get_near_dups(two) == ["b", "a"]
    one.value ^= 1 << f // 3
    assert index.get_near_dups(one) == ["a"]


@pytest.mark.parametrize(("f", "k"), [(0, 2), (-8, 2), (64, -1), (64.0, 2)])
def test_a_simhash_index_of_no_shape_is_refused(f: int, k: int) -> None:
    with pytest.raises((InvalidValue, InvalidType), match=r"^[fk] must be"):
        SimhashIndex([], f, k)


@pytest.mark.parametrize(("f", "k"), [(64, 65_536), (64, 10**6), (2**24 + 1, 2), (2**32 - 1, 10**9)])
def test_a_simhash_index_of_a_million_blocks_is_refused(f: int, k: int) -> None:
    with pytest.raises(InvalidValue, match=r"^[fk] must be from . to (65535|16777216), not"):
        SimhashIndex([], f, k)
    state = SimhashIndex([("a", Simhash(1))]).__getstate__()
    with pytest.raises(DamagedFile, match=r"not the state of a SimhashIndex: [fk] must be from"):
        SimhashIndex.__new__(SimhashIndex).__setstate__(({**state[0], "f": f, "k": k}, *state[1:]))


@pytest.mark.parametrize(
    "change",
    [
        lambda own, entries, asked: (own, entries),
        lambda own, entries, asked: (3, entries, asked),
        lambda own, entries, asked: ({**own, "f": 128}, entries, asked),
        lambda own, entries, asked: (own, (entries[0] * 2, entries[1]), asked),
        lambda own, entries, asked: (own, ([7], entries[1]), asked),
        lambda own, entries, asked: (own, (entries[0], entries[1].tolist()), asked),
        lambda own, entries, asked: (own, entries, asked.astype(float)),
    ],
)
def test_a_damaged_state_of_an_index_is_refused(change: Any) -> None:
    state = change(*SimhashIndex([("a", Simhash(1))]).__getstate__())
    with pytest.raises(DamagedFile, match="this is not the state of a SimhashIndex"):
        SimhashIndex.__new__(SimhashIndex).__setstate__(state)


@pytest.mark.parametrize(
    "state", [(), None, ("1", 64, (), {}), (1, "64", (), {}), (1, 64, 5, {}), (1, 64, (), 7)]
)
def test_a_damaged_state_of_a_simhash_is_refused(state: Any) -> None:
    with pytest.raises(DamagedFile, match="this is not the state of a Simhash"):
        Simhash.__new__(Simhash).__setstate__(state)


@pytest.mark.parametrize("f", [64, 2048])
def test_the_shape_of_a_simhash_index_may_be_numpy_integers(f: int) -> None:
    index = SimhashIndex([(at, Simhash(at << f // 2, f)) for at in range(300)], np.int64(f), np.int64(1))
    assert index.get_near_dups(Simhash(1 << f // 2, f))[:2] == ["1", "0"]
    assert index.bucket_size() == 301


@pytest.mark.parametrize("f", [64, 2048])
def test_a_simhash_index_forgets_what_was_deleted(f: int) -> None:
    held = [(str(at), Simhash(at % 50 << 7 * at % f, f)) for at in range(400)]
    index = SimhashIndex(held, f, k=1)
    for name, simhash in held[::3] + held[1::3]:
        index.delete(name, simhash)
    for _, simhash in held:
        near = [name for name, other in held[2::3] if simhash.distance(other) <= 1]
        assert sorted(index.get_near_dups(simhash)) == sorted(near)


def test_a_large_simhash_index_answers_as_comparing_all_would() -> None:
    words = near_words(40_000, 1, 3)[:, 0]
    known = [int(value) for value in words]
    held = {f"name {row}" if row % 5 else "x" * 30 + str(row): row for row in range(40_000)}
    index = SimhashIndex([], k=2)

    def answers(row: int) -> list[str]:
        apart = np.bitwise_count(words ^ words[row])
        names = [(int(apart[at]), name) for name, at in held.items() if apart[at] <= 2]
        return [name for _, name in sorted(names)]

    added = list(held.items())
    for start, end in ((0, 30_000), (30_000, 30_100), (30_100, 40_000)):
        held = dict(added[:end])
        for name, row in added[start:end]:
            index.add(name, Simhash(known[row]))
        for row in range(17, 40_000, 799):
            assert index.get_near_dups(Simhash(known[row])) == answers(row)
    for name, row in added[5:40_000:2]:
        index.delete(name, Simhash(known[row]))
        del held[name]
    for row in range(5, 40_000, 799):
        assert index.get_near_dups(Simhash(known[row])) == answers(row)
    blocks = {
        (block, value >> 21 * block & (2**21 - 1 if block < 2 else 2**22 - 1))
        for value in known
        for block in range(3)
    }
    assert index.bucket_size() == len(blocks)


# --- pbtk ------------------------------------------------------------------------------------------------


@given(texts, st.integers(1, 5))
def test_runs_of_characters_are_those_of_the_core(text: str, k: int) -> None:
    assert pbtk.char_shingles(text, k) == (naive.chars(text, k) or [""])


@given(st.lists(texts, max_size=4), st.sampled_from(["count", "binary"]))
def test_texts_that_are_added_accumulate(many: list[str], weights: str) -> None:
    hasher = pbtk.Hasher("xxhash64", pbtk.Word(2), weights=weights)
    for text in many:
        hasher.add(text)
    shingles = [shingle for text in many for shingle in pbtk.Word(2).shingle(text)]
    given = set(shingles) if weights == "binary" else shingles
    assert hasher.hash() == nd.scheme("pbtk").fingerprint(sorted(given))
    hasher.reset()
    assert hasher.hash() == 2**64 - 1


def test_five_thousand_texts_have_five_thousand_fingerprints() -> None:
    chance = np.random.default_rng(7)
    words = ["".join(chr(97 + letter) for letter in chance.integers(0, 26, 6)) for _ in range(100)]
    many = [" ".join(words[at] for at in chance.integers(0, 100, 40)) for _ in range(5000)]
    published = pbtk.Hasher("xxhash64", pbtk.Char(3), published=True).scheme.fingerprints(many)
    described = pbtk.Hasher("xxhash64", pbtk.Char(3)).scheme.fingerprints(many)
    assert len(np.unique(described.words)) == 5000
    assert len(np.unique(published.words)) < 1000
    assert set(published.words.view(np.uint8).ravel().tolist()) <= {0x55, 0xAA, 0xFF}


@pytest.mark.parametrize("name", sorted(pbtk.HASHERS))
def test_every_hasher_hashes(name: str) -> None:
    hasher = pbtk.Hasher(name, pbtk.Char(3))
    hasher.add("A sad man is crying")
    assert 0 < hasher.hash() < 2**64


def test_a_hasher_says_what_is_missing() -> None:
    with pytest.raises(ValueError, match="unknown hasher 'md6'; known: xxhash64"):
        pbtk.Hasher("md6", pbtk.Char(3))
    with pytest.raises(ValueError, match="weights must be"):
        pbtk.Hasher("xxhash64", pbtk.Char(3), weights="heavy")
    with pytest.raises(ValueError, match="no LSH provided"):
        pbtk.HammingEstimator(None)


@pytest.mark.parametrize("shingler", [pbtk.Char(3), pbtk.Word(2), pbtk.Nop()])
def test_shingles_are_appended_and_called_with(shingler: Any) -> None:
    known = ["known"]
    called: list[Any] = []
    assert shingler.append_shingle(known, "to be or not") is known
    shingler.each("to be or not", called.append)
    shingler.reset()
    assert known == ["known", *shingler.shingle("to be or not")] == ["known", *called]


def test_a_fingerprint_is_appended() -> None:
    hasher = pbtk.Hasher("xxhash64", pbtk.Char(3))
    hasher.add("A sad man is crying")
    assert hasher.append_hash([7]) == [7, hasher.hash()]


# --- htm -------------------------------------------------------------------------------------------------


def test_overlap_falls_as_tokens_change_and_as_they_move() -> None:
    encoder = htm.SimHashDocumentEncoder(size=2048, activeBits=205, order=1)
    tokens = [f"word{at}" for at in range(20)]
    changed = [encoder.encode(tokens[: 20 - n] + [f"other{at}" for at in range(n)]) for n in range(0, 21, 4)]
    overlaps = [changed[0].getOverlap(other) for other in changed]
    assert overlaps == sorted(overlaps, reverse=True)
    assert overlaps[0] == 205
    assert overlaps[-1] < 205 // 4
    assert encoder.encode(tokens) != encoder.encode(tokens[::-1])


def test_a_corrected_ceiling_keeps_as_many_as_it_says() -> None:
    def encode(text: str, **rules: Any) -> htm.SDR:
        return htm.SimHashDocumentEncoder(size=256, activeBits=26, corrected=True, **rules).encode(text)

    assert encode("a a a b", frequencyCeiling=2) == encode("a a b")
    assert encode("a a b", frequencyCeiling=1) == encode("a b")
    assert encode("a a b", excludes=["a", "b"]).getSum() == 0


def test_an_encoder_survives_its_file(tmp_path: Path) -> None:
    encoder = htm.SimHashDocumentEncoder(
        size=300, sparsity=0.1, vocabulary={"ä": 2, "b": 3}, encodeOrphans=True, order=2, corrected=True
    )
    encoder.save(tmp_path / "encoder.json")
    again = htm.SimHashDocumentEncoder.load(tmp_path / "encoder.json")
    assert again == encoder
    assert again.encode("ä b c") == encoder.encode("ä b c")


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"name": "Other"}', '{"vocabulary": 3}', '{"vocabulary": [], "x": 1}']
)
def test_json_of_something_else_is_refused(text: str) -> None:
    with pytest.raises(DamagedFile, match="not the JSON of a SimHashDocumentEncoder"):
        htm.SimHashDocumentEncoder.from_json(text)


def test_representations_of_two_sizes_are_not_compared() -> None:
    with pytest.raises(InvalidValue, match="an SDR of 8 bits and one of 9 do not fit"):
        htm.SDR(8).getOverlap(htm.SDR(9))
    with pytest.raises(InvalidValue, match="outside an SDR of 8"):
        htm.SDR(8, [8])
    with pytest.raises(InvalidValue, match="the output has 8 bits"):
        htm.SimHashDocumentEncoder(size=9, activeBits=2).encode("x", htm.SDR(8))


@pytest.mark.parametrize(
    "call",
    [
        lambda: news.fnv1a64(None),
        lambda: news.compute_simhash(b"text"),
        lambda: news.get_match_type("near"),
        lambda: news.distance_to_similarity(None),
        lambda: news.are_articles_similar(None, {}),
        lambda: news.hamming_distance(7, "7"),
        lambda: pbtk.Char(3).shingle(None),
        lambda: pbtk.Word(2).shingle(7),
        lambda: pbtk.hash64("xxhash64", None),
        lambda: pbtk.Hasher("xxhash64", "chars:3"),
        lambda: pbtk.Hasher("xxhash64", pbtk.Char(3)).add(None),
        lambda: qyoki.Simhash.calc_hamming_dist(None, None),
        lambda: qyoki.Simhash(str).segment(7),
        lambda: qyoki.read_img_from_dir(None),
    ],
)
def test_a_value_of_the_wrong_type_is_named(call: Any) -> None:
    with pytest.raises(InvalidType, match=r"must be .*, not"):
        call()


# --- news ------------------------------------------------------------------------------------------------

NOON = "2024-01-31T12:00:00Z"


@pytest.mark.parametrize(
    "moment",
    [
        "2024-01-31T12:00:00Z",
        "2024-01-31T12:00",
        "2024-01-31 12:00:00",
        "2024-01-31T13:00:00+01:00",
        "2024-01-31T04:30:00.000000-0730",
        "2024-01-31T12:00:00.0009Z",
        datetime(2024, 1, 31, 12),
        datetime(2024, 1, 31, 13, tzinfo=timezone(timedelta(hours=1))),
    ],
)
def test_a_moment_is_written_in_many_ways(moment: Any) -> None:
    groups = news.group_articles_by_similarity(
        [
            {"id": "a", "sim_hash": "0" * 16, "published_at": NOON},
            {"id": "b", "sim_hash": "0" * 16, "published_at": moment},
        ]
    )
    assert groups[0].member_ids == ["a", "b"]  # equally old: as given


def test_dates_without_a_time_are_dates() -> None:
    articles = [
        news.Article("old", "0" * 16, "2024-01"),
        news.Article("new", "f" * 16, date(2024, 1, 2)),
        news.Article("newest", "0" * 15 + "1", "2024-01-02T24:00:00"),
    ]
    groups = news.group_articles_by_similarity(articles)
    assert [group.member_ids for group in groups] == [["newest", "old"], ["new"]]


@pytest.mark.parametrize(
    "moment", ["", "soon", "2024-13-01", "2024-02-30", "2024-01-01T25:00", "2024-01-01T24:01", 7]
)
def test_what_is_no_date_is_an_error(moment: Any) -> None:
    article = {"id": "a", "simHash": "0" * 16, "publishedAt": moment}
    with pytest.raises((ValueError, TypeError), match=r"is not a date|must be an ISO date"):
        news.group_articles_by_similarity([article])


def test_an_article_without_a_date_is_an_error() -> None:
    with pytest.raises(ValueError, match="an article needs 'published_at'; this one has: id"):
        news.group_articles_by_similarity([{"id": "a"}])


near = st.sets(st.integers(0, 63), max_size=4).map(lambda flips: sum(1 << bit for bit in flips))


@given(st.lists(st.tuples(st.integers(0, 5), near, st.integers(0, 3)), max_size=12), st.integers(-1, 64))
def test_groups_are_those_of_the_plain_loop(rows: list[tuple[int, int, int]], threshold: int) -> None:
    articles = [
        {"id": f"a{name}", "simHash": f"{value:016x}", "publishedAt": f"2024-01-0{day + 1}"}
        for name, value, day in rows
    ]
    groups = news.group_articles_by_similarity(articles, threshold)
    assert [(group.center_article_id, group.member_ids) for group in groups] == plain_groups(
        articles, threshold
    )


def plain_groups(articles: list[dict[str, str]], threshold: int) -> list[tuple[str, list[str]]]:
    newest_first = sorted(articles, key=lambda article: article["publishedAt"], reverse=True)
    taken: set[str] = set()
    found = []
    for center in newest_first:
        if center["id"] in taken:
            continue
        members = [center["id"]]
        taken.add(center["id"])
        for other in newest_first:
            far = news.hamming_distance(center["simHash"], other["simHash"])
            if other["id"] not in taken and far <= threshold:
                taken.add(other["id"])
                members.append(other["id"])
        found.append((center["id"], members))
    return found


def test_texts_of_other_scripts_differ() -> None:
    many = ["Привет, мир", "你好，世界", "γειά σου κόσμε", "안녕하세요"]
    assert {news.compute_simhash(text) for text in many} == {"0" * 16}
    assert len({news.compute_simhash_unicode(text) for text in many}) == len(many)
    assert news.compute_simhash_unicode("🚀…") is None


# --- qyoki -----------------------------------------------------------------------------------------------


def test_a_document_has_one_fingerprint_whatever_its_order() -> None:
    scheduler = qyoki.Scheduler(qyoki.TFIDF(3))
    common = [[["the", "cat"]], [["the", "dog"]], [["a", "fox"]]]
    doc = [["the", "quick", "fox"], ["saw", "the", "quick", "hen"]]
    assert scheduler.handle_doc(doc, common) == scheduler.handle_doc(doc[::-1], common[::-1])
    with pytest.raises(ValueError, match="Cannot entering an empty document"):
        scheduler.handle_doc([[]], common)


def test_the_images_of_a_folder_come_with_their_paths(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from PIL import Image

    for name, colour in (("b.png", (9, 8, 7)), ("a.png", (1, 2, 3))):
        Image.new("RGB", (4, 4), colour).save(tmp_path / name)
    (tmp_path / "c.txt").write_text("no image")
    paths, images = qyoki.timer(qyoki.read_img_from_dir)(str(tmp_path))
    assert paths == [str(tmp_path / "a.png"), str(tmp_path / "b.png")]
    assert [image[0, 0].tolist() for image in images] == [[3, 2, 1], [7, 8, 9]]
    assert "The read_img_from_dir function run time is" in capsys.readouterr().out


def test_the_names_of_the_original_are_there() -> None:
    simhash = qyoki.Simhash(qyoki.hashify_by_murmurhash_128bits, n_bits=128, hamming_dist_threshold=4)
    assert simhash.n_bits == simhash.n == qyoki.Simhash(str, n=128).n_bits
    assert qyoki.Simhash.calc_hamming_dist("0011", "0110") == 2
    key = qyoki.Scheduler(qyoki.TFIDF(3)).hamming_dist_sort("0011")
    assert sorted([("far", "1100"), ("near", "0010")], key=key) == [("near", "0010"), ("far", "1100")]
    assert isinstance(qyoki.TFIDF(), qyoki.CharacteristicIdxListExtractor)
    with pytest.raises(TypeError, match="abstract"):
        type("Lazy", (qyoki.CharacteristicIdxListExtractor,), {})()


def test_a_short_common_document_is_an_error() -> None:
    with pytest.raises(ValueError, match="fewer than the 3 positions"):
        qyoki.TFIDF().get_characteristic_idx_list([1, 2, 3], [[1, 2]])


def test_chinese_is_cut_by_a_package_or_by_what_is_passed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "stop.txt").write_text("你\n，\n", "utf-8")
    (tmp_path / "text.txt").write_text("你好，世界（旁白）", "utf-8")
    reader = qyoki.CorpusReader(segment=list)
    reader.set_stopwords_trie_from_path(tmp_path / "stop.txt")
    assert reader.read_corpus_from_path(tmp_path / "text.txt") == [["好", "世", "界"]]
    monkeypatch.setitem(sys.modules, "rjieba", None)
    with pytest.raises(MissingExtra, match=r"pip install 'neardup\[zh\]'; or pass segment"):
        qyoki.CorpusReader().read_corpus_from_path(tmp_path / "text.txt")
    package = types.SimpleNamespace(cut=lambda text: ["你好", "，", "世界"])
    monkeypatch.setitem(sys.modules, "rjieba", package)
    assert qyoki.CorpusReader().read_corpus_from_path(tmp_path / "text.txt") == [["你好", "世界"]]


def test_an_image_must_be_one() -> None:
    with pytest.raises(ValueError, match="an image must be 8-bit"):
        qyoki.hsv_extractor(np.zeros((2, 2, 2), dtype=np.uint8))
    alpha = np.dstack([np.full((4, 4, 3), 9, dtype=np.uint8), np.zeros((4, 4), dtype=np.uint8)])
    assert qyoki.hsv_extractor(alpha).tolist() == qyoki.hsv_extractor(alpha[..., :3]).tolist()


@given(st.lists(st.text("ab", max_size=4)), st.text("ab", max_size=6))
def test_a_trie_is_a_set_that_knows_prefixes(words: list[str], text: str) -> None:
    found = trie.Trie(words)
    assert sorted(found) == sorted(set(words))
    assert len(found) == len(set(words))
    assert (text in found) == (text in words)
    assert found.longest(text) == max((word for word in words if text.startswith(word)), key=len, default="")
