"""What a program written for the HTM library calls besides `encode`: SDRs, metrics, random numbers, files."""

from __future__ import annotations

import copy
import gc
import json
import pickle
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.compat.htm import (
    SDR,
    ActivationFrequency,
    Metrics,
    Overlap,
    Random,
    SimHashDocumentEncoder,
    SimHashDocumentEncoderParameters,
    Sparsity,
    overlap,
)
from neardup.errors import DamagedFile, InvalidType, InvalidValue, NeardupError

# --- SDR -------------------------------------------------------------------------------------------------


def test_three_forms_are_one_value() -> None:
    dense = [[0, 1, 0], [0, 1, 0], [0, 0, 1]]
    for name, value in (("dense", dense), ("sparse", [8, 1, 4]), ("coordinates", [[0, 1, 2], [1, 1, 2]])):
        sdr = SDR(dimensions=(3, 3))
        setattr(sdr, name, value)
        assert sdr.dense.tolist() == dense
        assert sdr.sparse.tolist() == [1, 4, 8]
        assert [row.tolist() for row in sdr.coordinates] == [[0, 1, 2], [1, 1, 2]]
        assert (sdr.size, sdr.dimensions, sdr.getSum(), str(sdr)) == (9, [3, 3], 3, "SDR( 3, 3 ) 1, 4, 8")
        assert repr(sdr) == "SDR([3, 3], [1, 4, 8])"


def test_an_array_that_was_changed_in_place_is_assigned_back() -> None:
    sdr = SDR((10, 10))
    dense = sdr.dense
    dense[0, 4] = dense[9, 9] = 1
    assert sdr.dense is dense
    assert sdr.getSum() == 0
    sdr.dense = dense
    assert (sdr.sparse.tolist(), sdr.dense is dense) == ([4, 99], True)


def test_an_sdr_that_was_made_of_another_is_its_own() -> None:
    sdr = SDR(9, [1, 5])
    for other in (SDR(sdr), SDR(sdr=sdr), copy.copy(sdr), copy.deepcopy(sdr), SDR(9).setSDR(sdr)):
        assert other == sdr
        other.sparse = [3]
        assert other != sdr
    assert (sdr.sparse.tolist(), str(sdr.zero())) == ([1, 5], "SDR( 9 )")


def test_what_changes_an_sdr_gives_it_back() -> None:
    sdr, other = SDR((4, 4)).randomize(0.5), SDR((4, 4)).randomize(0.25)
    for one in (
        sdr.zero(),
        sdr.setSDR(other),
        sdr.randomize(0.5),
        sdr.addNoise(0.5),
        sdr.killCells(0.1),
        sdr.union(sdr, other),
        sdr.intersection([sdr, other]),
        sdr.reshape([2, 8]),
        sdr.flatten(),
    ):
        assert one is sdr
    assert sdr.dimensions == [16]


bits = st.sets(st.integers(0, 59))


@given(bits, bits, bits)
def test_sets_of_bits_are_sets(one: set[int], two: set[int], three: set[int]) -> None:
    a, b, c = (SDR((3, 20), sorted(each)) for each in (one, two, three))
    assert set(SDR((3, 20)).union(a, b).sparse.tolist()) == one | two
    assert set(SDR((3, 20)).set_union([a, b, c]).sparse.tolist()) == one | two | three
    assert set(SDR((3, 20)).intersection([a, b, c]).sparse.tolist()) == one & two & three
    assert a.getOverlap(b) == overlap(a, b) == len(one & two)
    assert set(a.union(a, b).sparse.tolist()) == one | two  # into one of its inputs


@pytest.mark.parametrize(
    ("shapes", "axis"),
    [
        ([(9, 3, 4), (2, 3, 4)], 0),
        ([(2, 3, 4), (2, 9, 4), (2, 1, 4)], 1),
        ([(2, 3), (2, 9)], 1),
        ([(5,), (7,)], 0),
    ],
)
def test_sdrs_are_put_side_by_side_as_numpy_does(shapes: list[tuple[int, ...]], axis: int) -> None:
    parts = [SDR(shape).randomize(0.5, 7) for shape in shapes]
    dimensions = parts[0].dimensions
    dimensions[axis] = sum(shape[axis] for shape in shapes)
    expected = np.concatenate([part.dense for part in parts], axis=axis)
    for whole in (
        SDR(dimensions).concatenate(parts, axis),
        SDR(dimensions).concatenate(inputs=parts, axis=axis),
    ):
        assert np.array_equal(whole.dense, expected)
    if len(parts) == 2:
        assert np.array_equal(SDR(dimensions).concatenate(*parts, axis).dense, expected)


def test_noise_and_dead_cells_are_as_many_as_asked_for() -> None:
    sdr = SDR(1000).randomize(0.1, 42)
    for share in (0, 0.25, 0.5, 1):
        noisy = SDR(sdr).addNoise(share)
        assert (noisy.getSum(), noisy.getOverlap(sdr)) == (100, round(100 - 100 * share))
    full = SDR(1000).randomize(1)
    assert full.killCells(0.5, seed=4).killCells(0.5, seed=4).getSparsity() == 0.5
    assert full.killCells(0.5, seed=5).getSparsity() < 0.5
    assert SDR(50).randomize(0.5) != SDR(50).randomize(0.5)
    assert SDR(50).randomize(0.5, Random(3)) == SDR(50).randomize(0.5, rng=Random(3))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: SDR([]), "at least one dimension"),
        (lambda: SDR((3, 0)), "a dimension must be from 1"),
        (lambda: SDR((2**31, 4)), "at most 32 dimensions and 4294967295 bits"),
        (lambda: SDR(8, [8]), "bit 8 is outside an SDR of 8 bits"),
        (lambda: SDR(8, [-1]), "bit -1 is outside"),
        (lambda: SDR(8, [1, 1]), "bit 1 is named twice"),
        (lambda: setattr(SDR(8), "dense", [1] * 9), r"shape \(9,\) do not fit an SDR of \(8,\)"),
        (lambda: setattr(SDR((1, 8)), "dense", np.zeros((8, 1))), "do not fit"),
        (lambda: setattr(SDR((2, 2)), "coordinates", [[0]]), "2 equally long lists"),
        (lambda: setattr(SDR((2, 2)), "coordinates", [[0], [2]]), "bit 2 is outside a dimension of 2"),
        (lambda: SDR(8).setSDR(SDR(9)), "an SDR of 8 bits and one of 9 do not fit"),
        (lambda: SDR((2, 4)).getOverlap(SDR(8)), "do not fit each other"),
        (lambda: SDR(8).reshape([3, 3]), "8 bits cannot have the dimensions"),
        (lambda: SDR(8).randomize(1.5), "sparsity must be from 0 to 1, not 1.5"),
        (lambda: SDR(8).randomize(float("nan")), "sparsity must be from 0 to 1"),
        (lambda: SDR(8, range(6)).addNoise(1), "cannot move 6 bits: only 2 of 8 are off"),
        (lambda: SDR(8).union([]), "at least one SDR"),
        (lambda: SDR(8).concatenate(SDR(4), SDR(5)), "do not fill an SDR"),
        (lambda: SDR(8).concatenate(SDR(4), SDR((4, 1))), "cannot be a part"),
        (lambda: SDR(8).concatenate(SDR(4), SDR(4), axis=1), "axis 1 is not a dimension"),
        (lambda: Sparsity(SDR(8), 0), "period must be from 1"),
        (lambda: Sparsity(SDR(8), 5).addData(SDR(8)), "this watches an SDR"),
        (lambda: Metrics([8], 5).addData(SDR(9)), r"an SDR of \[9\] does not fit"),
        (lambda: Random(1).sample(np.arange(4, dtype=np.uint32), 5), "cannot draw 5 of 4"),
    ],
)
def test_a_bad_value_is_a_runtime_error_and_a_value_error(call: Any, message: str) -> None:
    with pytest.raises(RuntimeError, match=message) as error:
        call()
    assert isinstance(error.value, NeardupError)
    assert isinstance(error.value, ValueError)


@pytest.mark.parametrize(
    "call",
    [
        lambda: SDR(None),
        lambda: SDR("88"),
        lambda: SDR(8.5),
        lambda: SDR(8, "ab"),
        lambda: SDR(8, [0.5]),
        lambda: SDR(8, None),
        lambda: SDR(8).union(SDR(8)),
        lambda: SDR(8).union(SDR(8), 3),
        lambda: SDR(8).concatenate(SDR(4), SDR(4), axis=-1),
        lambda: SDR(8).getOverlap([1]),
        lambda: SDR(8).randomize("half"),
        lambda: Metrics([8]),
        lambda: Metrics([8], 5).addData([1]),
        lambda: Random("x"),
        lambda: Random(1).shuffle([1, 2]),
    ],
)
def test_a_bad_type_is_a_type_error(call: Any) -> None:
    with pytest.raises(InvalidType):
        call()


# --- random numbers --------------------------------------------------------------------------------------


def test_random_numbers_are_those_of_the_original() -> None:
    one = Random(1)
    assert [one.getUInt32(), one.getUInt32()] == [1791095845, 4282876139]
    assert Random(2).getReal64() == 0.43599490272719293
    assert Random(7464235991977222558).getUInt32() == 1606095383
    four = np.array([1, 2, 3, 4], dtype=np.uint32)
    assert Random(42).sample(four, 4).tolist() == [2, 1, 4, 3]
    Random(1).shuffle(four)
    assert four.tolist() == [4, 1, 3, 2]
    assert Random().getSeed() != Random(0).getSeed()


def test_random_numbers_go_on_where_they_were_kept(tmp_path: Path) -> None:
    one = Random(99)
    one.getUInt32()
    one.saveToFile(tmp_path / "random")
    other = Random(1)
    other.loadFromFile(tmp_path / "random")
    assert other == one == pickle.loads(pickle.dumps(one)) != Random(99)
    assert (other.getSeed(), other.getUInt32(10)) == (99, one.getUInt32(10))
    for text in (b"", b"[]", b'{"name": "Random", "neardup": 1, "seed": 1, "at": 1, "keys": [1]}'):
        (tmp_path / "random").write_bytes(text)
        with pytest.raises(DamagedFile, match="this is not the"):
            other.loadFromFile(tmp_path / "random")


# --- metrics ---------------------------------------------------------------------------------------------


def test_metrics_print_the_digits_of_the_original() -> None:
    sdr = SDR(2000)
    metrics = Metrics(sdr, period=1000)
    sdr.randomize(0.1, 42)
    for seed in range(42, 62):
        sdr.addNoise(0.55, seed)
    assert str(metrics).splitlines() == [
        "SDR( 2000 )",
        "    Sparsity Min/Mean/Std/Max 0.1 / 0.0999989 / 5.20038e-06 / 0.1",
        "    Activation Frequency Min/Mean/Std/Max 0 / 0.100001 / 0.095393 / 0.571429",
        "    Entropy 0.834509",
        "    Overlap Min/Mean/Std/Max 0.45 / 0.449998 / 1.06406e-05 / 0.45",
    ]
    assert metrics.sparsity.samples == metrics.activationFrequency.samples == 21


@given(st.lists(st.sets(st.integers(0, 19), min_size=1), min_size=2, max_size=12), st.integers(1, 20))
def test_metrics_are_the_plain_figures(sets: list[set[int]], period: int) -> None:
    metrics = Metrics([4, 5], period)
    for each in sets:
        metrics.addData(SDR((4, 5), sorted(each)))

    def faded(values: list[Any]) -> Any:
        mean: Any = 0
        for at, value in enumerate(values, 1):
            mean = mean + (value - mean) / min(at, period)
        return mean

    shares = [len(each) / 20 for each in sets]
    overlaps = [len(a & b) / max(len(a), len(b)) for a, b in pairwise(sets)]
    on = [np.isin(np.arange(20), sorted(each)).astype(float) for each in sets]
    for metric, values in ((metrics.sparsity, shares), (metrics.overlap, overlaps)):
        assert (metric.min(), metric.max()) == pytest.approx((min(values), max(values)))
        assert metric.mean() == pytest.approx(faded(values), abs=2e-4)
        if period >= len(sets):
            assert metric.std() == pytest.approx(np.std(values), abs=2e-3)
    assert metrics.sparsity.sparsity == pytest.approx(shares[-1])
    assert metrics.overlap.overlap == pytest.approx(overlaps[-1])
    assert metrics.activationFrequency.activationFrequency == pytest.approx(faded(on), abs=1e-5)
    assert 0 <= metrics.activationFrequency.entropy() <= 1 + 1e-5


def test_a_metric_sees_every_assignment_and_no_other_sdr() -> None:
    sdr, other = SDR(16), SDR(16, [0])
    metric = ActivationFrequency(sdr, period=100)
    encoder = SimHashDocumentEncoder(size=16, activeBits=4)
    encoder.encode("hello world", sdr)
    sdr.sparse, sdr.dense, sdr.coordinates = [1], sdr.dense, [[2]]
    sdr.zero().setSDR(other).randomize(0.5).addNoise(0.5).killCells(0.5).union(other, other)
    sdr.intersection(other, other).concatenate(SDR(8), SDR(8))
    sdr.reshape([4, 4])
    SDR(sdr).randomize(0.5)
    assert metric.samples == 12


def test_metric_and_sdr_live_without_each_other() -> None:
    sdr = SDR(8)
    metric = Sparsity(sdr, 10)
    sdr.sparse = [1]
    passing = Overlap(sdr, 10)
    del passing
    gc.collect()
    sdr.sparse = [1, 2]
    del sdr
    gc.collect()
    assert (metric.samples, metric.max(), metric.dimensions) == (2, 0.25, [8])


def test_a_series_that_begins_anew_has_no_overlap_with_the_one_before() -> None:
    metrics = Metrics(8, 100)
    for each in ([0, 1], [0, 1], None, [6, 7], [6, 7]):
        if each is None:
            metrics.reset()
        else:
            metrics.addData(SDR(8, each))
    assert (metrics.overlap.min(), metrics.overlap.samples, metrics.sparsity.samples) == (1, 2, 4)


def test_frequencies_with_an_initial_value_fade_from_the_first_sample() -> None:
    sdr = SDR(1)
    metric = ActivationFrequency(sdr, period=100, initialValue=0.02)
    sdr.sparse = [0]
    assert metric.activationFrequency == pytest.approx([0.02 * 0.99 + 0.01])


def test_a_metric_without_samples_has_no_numbers() -> None:
    metrics = Metrics([8], 10)
    assert str(metrics.sparsity) == "Sparsity Min/Mean/Std/Max nan / nan / nan / nan"
    assert np.isnan(metrics.overlap.overlap)
    assert metrics.activationFrequency.entropy() == 0


# --- the encoder -----------------------------------------------------------------------------------------

WORDS = {"hear": 2, "nothing": 4, "but": 1, "a": 1, "rushing": 4, "sound": 3}
DOCUMENT = ["hear", "any", "sound", "sound", "louder", "but", "walls"]


def encoder_with_words() -> SimHashDocumentEncoder:
    parameters = SimHashDocumentEncoderParameters()
    parameters.size = 400
    parameters.sparsity = 0.33
    parameters.encodeOrphans = True
    parameters.vocabulary = WORDS
    return SimHashDocumentEncoder(parameters)


@pytest.mark.parametrize("fmt", ["BINARY", "PORTABLE", "JSON"])
def test_an_encoder_is_kept_in_a_file_a_text_and_a_pickle(tmp_path: Path, fmt: str) -> None:
    one = encoder_with_words()
    expected = one.encode(DOCUMENT)  # and a scheme may be used before that
    by_text, by_file = (SimHashDocumentEncoder(size=10, sparsity=0.5) for _ in range(2))
    by_text.loadFromString(one.writeToString())
    one.saveToFile(str(tmp_path / "encoder"), fmt)
    by_file.loadFromFile(str(tmp_path / "encoder"), fmt)
    by_pickle = pickle.loads(pickle.dumps(one))
    for other in (by_text, by_file, by_pickle, copy.deepcopy(one)):
        assert other == one
        assert (other.size, other.parameters.activeBits, other.encode(DOCUMENT)) == (400, 132, expected)
    assert json.loads((tmp_path / "encoder").read_bytes())["neardup"] == 1


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"neardup": 2}, "its version is 2, and 1 is read here"),
        ({"name": "Other"}, "another name"),
        ({"size": "400"}, "size must be an integer"),
        ({"size": 10**9}, "size must be from 2 to 65536"),
        ({"activeBits": 400}, "activeBits must be from 1"),
        ({"sparsity": None}, "sparsity must be a number"),
        ({"caseSensitivity": 1}, "caseSensitivity must be True or False"),
        ({"excludes": ["a", 3]}, "excludes must be a list of str"),
        ({"vocabulary": {"a": 1}}, "string indices"),
        ({"vocabulary": [{"key": "a", "value": -1}]}, "the weight of 'a' must be from 0"),
        ({"order": -1}, "order must be from 0"),
        ({"code": "x"}, "unknown parameter 'code'"),
    ],
)
def test_a_damaged_encoder_is_refused_and_changes_nothing(change: dict[str, Any], why: str) -> None:
    encoder, good = SimHashDocumentEncoder(size=64, activeBits=4), encoder_with_words()
    facts = {**json.loads(good.writeToString()), **change}
    with pytest.raises(DamagedFile, match="not the JSON of a SimHashDocumentEncoder") as error:
        encoder.loadFromString(json.dumps(facts))
    assert why in str(error.value)
    assert isinstance(error.value, RuntimeError)
    assert encoder == SimHashDocumentEncoder(size=64, activeBits=4)


@pytest.mark.parametrize("text", [b"", b"\xff\xfe\x00", b"[" * 100_000, b"null", "{}", 7])
def test_a_text_that_is_no_encoder_is_refused(text: Any) -> None:
    with pytest.raises(DamagedFile, match="not the JSON of a SimHashDocumentEncoder"):
        encoder_with_words().loadFromString(text)


@pytest.mark.parametrize(
    "state", [{}, None, 3, {"dimensions": [8], "sparse": [9]}, {"dimensions": -1, "sparse": []}]
)
def test_a_state_that_is_none_is_refused(state: Any) -> None:
    for kind in (SDR, Random, SimHashDocumentEncoder):
        with pytest.raises(DamagedFile, match="this is not the"):
            kind.__new__(kind).__setstate__(state)  # type: ignore[attr-defined]


def test_a_format_that_is_not_written_here_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidValue, match="fmt must be BINARY, PORTABLE or JSON, not 'XML'"):
        encoder_with_words().saveToFile(tmp_path / "encoder", "XML")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"size": 400}, "Need only one argument"),
        ({"size": 400, "activeBits": 20, "sparsity": 0.6}, "Need only one argument"),
        ({"activeBits": 20}, "Missing 'size'"),
        ({"size": 64, "sparsity": 5}, "sparsity 5 asks for 320 of 64 bits; choose one that asks for 1 to 63"),
        ({"size": 64, "sparsity": 0.001}, "sparsity 0.001 asks for 0 of 64 bits"),
        ({"size": 64, "sparsity": float("inf")}, "sparsity must be above 0 and below 1, not inf"),
        ({"size": 64, "activeBits": 64}, "activeBits must be from 1 to size - 1 = 63, not 64"),
        ({"size": -1, "activeBits": 3}, "size must be from 0"),
        ({"size": 10**6, "activeBits": 3}, "size must be from 2 to 65536, not 1000000"),
        ({"size": 64, "activeBits": 3, "encodeOrphans": True}, "'encodeOrphans' requires"),
        ({"size": 64, "activeBits": 3, "frequencyFloor": 6, "frequencyCeiling": 3}, "should be greater"),
    ],
)
def test_a_bad_parameter_is_named_as_it_was_given(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(RuntimeError, match=message) as error:
        SimHashDocumentEncoder(**parameters)
    assert isinstance(error.value, InvalidValue)


@pytest.mark.parametrize(
    "parameters",
    [{"size": "x"}, {"sparsity": "x"}, {"excludes": "the"}, {"vocabulary": ["a"]}, {"colour": 1}],
)
def test_a_parameter_of_another_type_is_a_type_error(parameters: dict[str, Any]) -> None:
    with pytest.raises(InvalidType):
        SimHashDocumentEncoder(**{"size": 64, "activeBits": 4, **parameters})


@pytest.mark.parametrize("document", [None, 7, b"text", ["a", None], [b"a"]])
def test_a_document_that_is_none_is_named(document: Any) -> None:
    with pytest.raises(InvalidType, match="a document must be a str or an iterable of str, not"):
        SimHashDocumentEncoder(size=64, activeBits=4).encode(document)


def test_an_encoder_says_what_it_is_and_keeps_its_parameters() -> None:
    parameters = SimHashDocumentEncoderParameters(size=64, sparsity=0.1, excludes=["the"])
    encoder = SimHashDocumentEncoder(parameters)
    parameters.excludes.append("fox")
    encoder.parameters.excludes.append("hen")
    parameters.size = 9
    assert repr(encoder) == "SimHashDocumentEncoder(size=64, sparsity=0.1, excludes=['the'])"
    assert (encoder.dimensions, encoder.parameters.activeBits) == ([64], 6)
    assert (
        repr(SimHashDocumentEncoder(size=64, activeBits=4)) == "SimHashDocumentEncoder(size=64, activeBits=4)"
    )


@pytest.mark.parametrize(
    "rules", [{}, {"tokenSimilarity": True}, {"order": 2}, {"corrected": True}, {"excludes": ["a"]}]
)
def test_many_documents_are_encoded_as_one_by_one(rules: dict[str, Any]) -> None:
    encoder = SimHashDocumentEncoder(size=257, activeBits=20, **rules)
    documents = [
        "a b c",
        "",
        "a",
        ["a", "b", "a"],
        "  c b ",
        [],
        " ".join(f"w{at % 70}" for at in range(300)),
    ]
    assert encoder.encode_many(iter(documents)) == [encoder.encode(document) for document in documents]
    with pytest.raises(InvalidType, match="documents must be an iterable of documents"):
        encoder.encode_many("a b c")


def test_batches_of_many_different_tokens_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = SimHashDocumentEncoder(size=128, activeBits=9)
    documents = [" ".join(f"w{at * n % 977}" for at in range(40)) for n in range(30)]
    expected = [encoder.encode(document) for document in documents]
    monkeypatch.setattr("neardup.schemes.computing.BATCH_BITS", 128 * 50)
    assert encoder.encode_many(documents) == expected
    monkeypatch.setattr("neardup.schemes.computing.BATCH", 3)
    assert encoder.encode_many(documents) == expected


def test_large_weights_are_added_exactly() -> None:
    words = {"a": 2**32 - 1, "b": 2**32 - 2, "c": 1}
    encoder = SimHashDocumentEncoder(size=512, activeBits=100, vocabulary=words)
    votes = encoder.scheme.votes_of_bytes([(word.encode(), weight) for word, weight in words.items()])
    exact = encoder.scheme.votes(words)
    assert votes.tolist() == exact.tolist()
    assert encoder.encode("a b c").getSum() == 100
