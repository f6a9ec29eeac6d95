"""Every public function, called with what nobody should pass, raises only what is documented.

The calls are made from the signatures, so a new public name is called without being listed
here; a new class needs a line in INSTANCES that says how to make one.
"""

from __future__ import annotations

import collections
import dataclasses
import decimal
import fractions
import inspect
import math
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import neardup as nd
from neardup import _native
from neardup.errors import InvalidValue, NeardupError, shown

from .articles import quickly

# The same calls every time, so that a change is what fails. `NEARDUP_HOSTILE=8000 pytest
# tests/test_hostile.py` makes more than a million others.
EXAMPLES = int(os.environ.get("NEARDUP_HOSTILE", "40"))
FIXED = "NEARDUP_HOSTILE" not in os.environ

ROOT = Path(__file__).parent.parent
TEXTS = ["the quick brown fox", "the quick brown fix", "", "漢字", "привет мир"]


class Own(Exception):
    """An error of the caller's; it passes through as it is."""


class Raising:
    """Says that it can do everything, and does nothing."""

    def __index__(self) -> int:
        raise Own

    def __float__(self) -> float:
        raise Own

    def __iter__(self) -> Iterator[str]:
        raise Own

    def __len__(self) -> int:
        raise Own


class Lying(Sequence[str]):
    """A sequence that is shorter than it says."""

    def __len__(self) -> int:
        return 9

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            return ["a"]
        if at > 2:
            raise IndexError
        return "a"


class Text(str):
    """A str of another class."""


class Number(int):
    """An int of another class."""


def raises_later() -> Iterator[str]:
    yield "one"
    raise Own


# Made anew for each call: some are used up, and some could be changed by it.
HOSTILE: list[Callable[[], Any]] = [
    lambda: None,
    lambda: True,
    lambda: NotImplemented,
    lambda: ...,
    lambda: -1,
    lambda: 0,
    lambda: 2**31,
    lambda: 2**63,
    lambda: 2**64,
    lambda: 2**70,
    lambda: -(2**63) - 1,
    lambda: 10**5000,  # more digits than Python prints
    lambda: -(10**5000),
    lambda: 0.5,
    lambda: math.nan,
    lambda: math.inf,
    lambda: -math.inf,
    lambda: 1e308,
    lambda: 5e-324,
    lambda: 1 + 2j,
    lambda: decimal.Decimal("sNaN"),
    lambda: decimal.Decimal("1e400"),
    lambda: fractions.Fraction(10**400, 3),
    lambda: "",
    lambda: "\0",
    lambda: "a\0b",
    lambda: "\ud800",
    lambda: "a\udfffb\ud800\udc00",
    lambda: "chars:99999999999999999999999",
    lambda: "chars:-1",
    lambda: "chars:3:3",
    lambda: "text:1",
    lambda: "blake3-keyed",
    lambda: "٣",  # a digit, but not of ours
    lambda: "x" * 100_000,
    lambda: "1" * 10_000,
    lambda: Text("text"),
    lambda: Number(64),
    lambda: b"",
    lambda: b"text",
    lambda: bytearray(b"text"),
    lambda: memoryview(b"text"),
    list,
    lambda: [None],
    lambda: [[]],
    lambda: [1, 2],
    lambda: ["a", 1],
    lambda: ["a", None],
    lambda: ["a", b"b"],
    lambda: ["\ud800", "\0"],
    lambda: [("a", math.nan)],
    lambda: [("a", math.inf), ("b", 1)],
    lambda: [("a", 2**62)],
    lambda: [("a", 2**61)] * 9,
    lambda: [("a", -(2**64))],
    lambda: [("a", 1e308), ("b", 5e-324)],
    lambda: [("a", 10**5000), ("b", 0.5)],
    lambda: [("a", 1, 2)],
    lambda: [("a",)],
    lambda: [("a", "b")],
    lambda: [("a", fractions.Fraction(10**400, 3))],
    lambda: [("a", decimal.Decimal("1.5"))],
    lambda: {"a": math.nan},
    lambda: {"a": None},
    lambda: {1: 1},
    lambda: {"a": 1, "b": -2.5},
    lambda: {"a": np.float32(1.5), "b": np.int8(-3)},
    lambda: {"a": np.float64("nan")},
    lambda: {"a", "b"},
    lambda: (),
    lambda: range(3),
    lambda: iter("abc"),
    lambda: raises_later(),
    lambda: (letter for letter in "abc"),
    lambda: collections.deque(["a", "b"]),
    lambda: collections.OrderedDict(a=1),
    lambda: object(),
    lambda: object,
    lambda: len,
    lambda: Own("not raised"),
    Raising,
    Lying,
    lambda: Path("nowhere") / "to be found",
    lambda: Path("a\0b"),
    lambda: np.zeros(0),
    lambda: np.array(5),
    lambda: np.array("text"),
    lambda: np.array(None),
    lambda: np.array(5, dtype=np.uint64),
    lambda: np.uint64(2**63),
    lambda: np.int8(-3),
    lambda: np.float32("nan"),
    lambda: np.bool_(True),
    lambda: np.datetime64("2020-01-01"),
    lambda: np.arange(6, dtype=np.uint64),
    lambda: np.arange(12, dtype=np.uint64)[::2],
    lambda: np.arange(12, dtype=np.uint64).reshape(3, 4)[:, ::-2],
    lambda: np.arange(6, dtype=">u8"),
    lambda: np.arange(6, dtype=np.int64),
    lambda: np.zeros((2, 0), dtype=np.uint64),
    lambda: np.zeros((0, 2), dtype=np.uint64),
    lambda: np.zeros((2, 2, 2), dtype=np.uint64),
    lambda: np.ones((3, 5)),
    lambda: np.ones((3, 5), dtype=np.float16),
    lambda: np.full((2, 3), math.nan),
    lambda: np.full((2, 3), 1e308),
    lambda: np.full((2, 3), 5e-324),
    lambda: np.ones((1, 100_000)),
    lambda: np.array(["a", "b"]),
    lambda: np.array(["a", None], dtype=object),
    lambda: np.array([[1.0, "x"]], dtype=object),
    lambda: np.array([1 + 2j, 3]),
    lambda: np.array([(1, 2.0)], dtype=[("a", "i4"), ("b", "f8")]),
    lambda: np.broadcast_to(np.uint64(7), (4,)),
    lambda: np.ma.array([1, 2], mask=[False, True]),
    lambda: np.array([True, False]),
    lambda: pa.array([1, 2]),
    lambda: pa.array(["a", None]),
    lambda: pa.array([], pa.string()),
    lambda: pa.array([None, None]),
    lambda: pa.array([b"a", None], pa.binary()),
    lambda: pa.array([b"12345678", None], pa.binary(8)),
    lambda: pa.array([b"12345678", None], pa.binary(8))[1:],
    lambda: pa.array([b"", b""], pa.binary(0)),
    lambda: pa.array([b"abc"], pa.binary(3)),
    lambda: pa.array(["a", "b", "a"]).dictionary_encode(),
    lambda: pa.array([["a"], None]),
    lambda: pa.chunked_array([], pa.string()),
    lambda: pa.chunked_array([], pa.binary(8)),
    lambda: pa.chunked_array([["a"], [], [None, "b"]], pa.large_string()),
    lambda: pa.table({"text": ["a"], "id": ["1"]}),
    lambda: pa.record_batch({"text": ["a"]}),
    lambda: pa.scalar("a"),
    lambda: pa.nulls(3, pa.string_view()),
    lambda: nd.Fingerprints.of([1, None], bits=64),
    lambda: nd.Fingerprints.of([], bits=128),
    lambda: nd.scheme("chars:3"),
    lambda: nd.scheme("vector"),
    lambda: nd.scheme("text").fit(TEXTS),
    lambda: dataclasses.field(),
]

# What a parameter of that name usually gets, so that calls get past the first check.
PLAUSIBLE: dict[str, list[Any]] = {
    "against": [[TEXTS[0] + " and more", TEXTS[1]]],
    "array": [pa.array([b"12345678", None], pa.binary(8))],
    "batch": [TEXTS, pa.array(TEXTS)],
    "bits": [1, 8, 63, 64, 65, 128, 1 << 16],
    "digest": ["0" * 32],
    "distance": [0, 3, 64],
    "document": ["the quick brown fox", ["a", "b"], {"a": 1}, ("a", 2)],
    "documents": [TEXTS, pa.array(TEXTS), [["a"], {"b": 2}]],
    "features": ["chars:3", "words:2", "mixed:4", "vector", ["a", ("b", 2)], {"a": 1.5}],
    "bank": ["main", "wire"],
    "banks": [["main", "-w*"], None],
    "expires_after": ["30d", 60],
    "fields": [{"n": 2, "gone": None}],
    "id": ["a", "b"],
    "verdict": ["same", "different"],
    "form": ["hex", "decimal", "bits", "base64"],
    "hash": ["mix", "md5", "shake256", "projection:1", "blake3-keyed", "xxh64"],
    "key": ["a long secret"],
    "left": [5, 2**64 - 1],
    "max_features": [1, 20],
    "name": ["text", "chars:3", "words:2", "vector", "own"],
    "normalize": ["none", "lower", "text", "word-chars"],
    "other": [nd.scheme("text").fit(TEXTS)],
    "pairs": [
        nd.join(nd.Fingerprints.of([1, 3, 7]), 1),
        [("a text", "a text"), ("b", "")],
        [("\ud800", "x")],
    ],
    "measure": ["default", "strict", "jaccard:0.5", "none"],
    "frequencies": [nd.scheme("text").fit(TEXTS), nd.scheme("text"), nd.scheme("chars:3")],
    "prints": [nd.Fingerprints.of([1, None, 3, 7]), np.arange(6, dtype=np.uint64)],
    "data": [
        [{"id": "a", "text": "one"}, {"id": "b", "text": "two"}],
        [{"id": name, "text": name, "url": "p", "date": f"2024-01-0{name}"} for name in "1232"],
    ],
    "order": [[2, 1, 0], None],
    "keep": ["longest", "first", "central,longest"],
    "similarity": [0.8],
    "n": [3, 10],
    "ids": [["a", "b"]],
    "plan": ["brute", "blocks", "blocks:4,1"],
    "radius": [0, 3, 64],
    "recall": [0.9, 1.0],
    "right": [5, 2**64 - 1],
    "row": [0, 1, -1],
    "select": ["sign", "top:3"],
    "table": [_native.Frequencies()],
    "train": [TEXTS],
    "text": ["6491fb1f8663d51f", "5", "some text"],
    "threads": [1, 2, 10**9, 10**30],
    "valid": [np.array([True, False])],
    "value": [0, 5, 2**64 - 1],
    "values": [[1, None, 2]],
    "weights": ["count", "set", "log", "log-df"],
    "words": [np.arange(2, dtype=np.uint64), np.ones((2, 2), dtype=np.uint64)],
}


def index_of(bits: int) -> nd.Index:
    index = nd.Index(bits=bits, radius=3)
    index.add(["a", "b", "c"], nd.Fingerprints.of([1, 3, None], bits=bits))
    return index


def collection_of(read_only: bool = False) -> nd.Collection:
    folder = tempfile.mkdtemp(dir=".")
    made = quickly(nd.Collection.open(os.path.join(folder, "c.nd"), create=True))
    made.add([{"id": name, "text": text, "n": 1} for name, text in zip("abcde", TEXTS, strict=True)])
    if read_only:
        made.close()
        return nd.Collection.open(made.path, read_only=True)
    return made


# How to make one of each public class. Several, where they go different ways.
INSTANCES: dict[str, list[Callable[[], Any]]] = {
    "Collection": [collection_of, partial(collection_of, read_only=True)],
    "Stream": [
        nd.Stream,
        partial(nd.Stream, radius=3, budget=1),
        lambda: nd.Stream(collection=collection_of()),
    ],
    "Scheme": [
        lambda: nd.scheme("text"),
        lambda: nd.scheme("text").fit(TEXTS),
        lambda: nd.scheme("text", bits=65, hash="blake3-keyed", key="a long secret"),
        lambda: nd.scheme("chars:3", tie="one", bit_order="big"),
        lambda: nd.scheme("words:2", empty="feature"),
        lambda: nd.scheme("vector", bits=70),
        lambda: nd.Scheme("sparse", features="words:1", hash="shake256", bits=400, select="top:40"),
    ],
    "Pairs": [lambda: nd.join(nd.Fingerprints.of([1, 3, 7]), 1)],
    "Settings": [nd.Settings],
    "Verdicts": [lambda: nd.verify([("a text", "a text"), ("one two three", "one two four"), ("", "x")])],
    "Index": [lambda: index_of(64), lambda: index_of(100), lambda: nd.Index(bits=64, radius=3)],
    "Groups": [lambda: nd.groups(nd.Fingerprints.of([1, 3, 7]), 1)],
    "Leaks": [lambda: nd.leaks([TEXTS[0]], against=[TEXTS[0] + " more", TEXTS[1]], words=5)],
    "Result": [lambda: nd.dedupe([{"id": "a", "text": TEXTS[0]}, {"id": "b", "text": TEXTS[1]}])],
    "Fingerprints": [
        lambda: nd.Fingerprints.of([1, None, 2**64 - 1]),
        lambda: nd.Fingerprints.of([], bits=128),
        lambda: nd.Fingerprints.of([2**99], bits=100),
    ],
}

OPERATORS = (
    "__getitem__",
    "__eq__",
    "__add__",
    "__contains__",
    "__iter__",
    "__len__",
    "__repr__",
    "__hash__",
)

hostile = st.one_of(
    st.sampled_from(HOSTILE).map(lambda make: make()),
    st.integers(),
    st.floats(),
    # Lone surrogates too; nothing that leads out of the empty folder in which the tests run.
    st.one_of(st.text(max_size=30), st.text(st.characters(codec=None, categories=None), max_size=10)).filter(
        lambda text: not {"/", "\\", "~"} & set(text) and ".." not in text
    ),
    st.binary(max_size=20),
    st.recursive(
        st.one_of(st.none(), st.text(max_size=3), st.integers(-9, 9), st.floats()),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
        max_leaves=8,
    ),
)


def _methods(cls: type) -> list[str]:
    public = [name for name in vars(cls) if not name.startswith("_")]
    operators = [name for name in OPERATORS if vars(cls).get(name) is not None]
    return [name for name in (*public, *operators) if callable(getattr(cls, name, None))]


def _itself(value: Any) -> Any:
    return value


def _method_of(make: Callable[[], Any], method: str) -> Any:
    return getattr(make(), method)


def surface() -> dict[str, Callable[[], Callable[..., Any]]]:
    """Every public function and method by name, and how to get one that can be called."""
    found: dict[str, Callable[[], Callable[..., Any]]] = {}
    for name in nd.__all__:
        value = getattr(nd, name)
        if not callable(value) or (isinstance(value, type) and issubclass(value, BaseException)):
            continue
        found[name] = partial(_itself, value)
        if isinstance(value, type):
            for method in _methods(value):
                bound_to_class = isinstance(vars(value)[method], (classmethod, staticmethod))
                for number, make in enumerate(INSTANCES.get(name, [])[: 1 if bound_to_class else None]):
                    found[f"{name}.{method}-{number}"] = partial(_method_of, make, method)
    return found


SURFACE = surface()


def test_every_public_class_is_called_too() -> None:
    classes = {name for name in nd.__all__ if isinstance(getattr(nd, name), type)} - {"NeardupError"}
    missing = sorted(classes - INSTANCES.keys())
    assert not missing, f"say in INSTANCES of {__file__} how to make a {missing[0]}"


def arguments(function: Callable[..., Any]) -> st.SearchStrategy[tuple[list[Any], dict[str, Any]]]:
    """Positional and keyword arguments for *function*, each plausible or hostile."""

    @st.composite
    def draw_all(draw: st.DrawFn) -> tuple[list[Any], dict[str, Any]]:
        def value(name: str) -> Any:
            if name in PLAUSIBLE and draw(st.booleans()):
                return draw(st.sampled_from(PLAUSIBLE[name]))
            return draw(hostile)

        positional: list[Any] = []
        keywords: dict[str, Any] = {}
        for name, parameter in inspect.signature(function).parameters.items():
            if parameter.kind is parameter.VAR_KEYWORD:
                for extra in draw(st.lists(st.sampled_from(sorted(PLAUSIBLE)), max_size=3, unique=True)):
                    keywords.setdefault(extra, value(extra))
            elif parameter.kind is parameter.VAR_POSITIONAL:
                positional += draw(st.lists(hostile, max_size=2))
            elif parameter.default is parameter.empty or draw(st.booleans()):
                if parameter.kind is parameter.POSITIONAL_ONLY:
                    positional.append(value(name))
                else:
                    keywords[name] = value(name)
        return positional, keywords

    return draw_all()


def survives(function: Callable[..., Any], *positional: Any, **keywords: Any) -> Any:
    """Call it; the result, or None where it raised what it may."""
    try:
        return function(*positional, **keywords)
    except (NeardupError, Own):
        return None
    except IndexError:
        assert getattr(function, "__name__", "") == "__getitem__"
        return None
    except OSError:  # of a path, which names a file that is not there
        assert "path" in keywords or (positional and isinstance(positional[0], (str, os.PathLike)))
        return None


@pytest.mark.parametrize("name", sorted(SURFACE))
def test_hostile_values_raise_only_what_is_documented(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    make = SURFACE[name]
    function = make()

    @settings(
        max_examples=EXAMPLES, derandomize=FIXED, suppress_health_check=list(HealthCheck), database=None
    )
    @given(arguments(function))
    def calls(drawn: tuple[list[Any], dict[str, Any]]) -> None:
        positional, keywords = drawn
        survives(function, *positional, **keywords)

    calls()


# --- texts that others fell over -----------------------------------------------------------------------


@pytest.mark.parametrize("name", ["text", "chars:4", "words:3"])
@pytest.mark.parametrize(
    "text",
    ["abcdefghij" * 100_000, "a" * 400_000, "a " * 400_000, "漢" * 300_000, "e\u0301" * 200_000, "\u0301" * 200_000 + "a"],
    ids=["1 MB without spaces", "400,000 equal letters", "400,000 words", "Han", "decomposed", "marks"],
)  # fmt: skip
def test_a_monstrous_text_has_a_fingerprint_like_any_other(name: str, text: str) -> None:
    scheme = nd.scheme(name)
    value = scheme.fingerprint(text)
    assert value is not None
    assert list(scheme.fingerprints([text, "a", text])) == [value, scheme.fingerprint("a"), value]
    assert list(scheme.fingerprints(pa.array([text]))) == [value]


def test_a_long_line_of_marks_does_not_cost_its_square() -> None:
    def seconds(size: int) -> float:
        text, begin = "a" + "\u0301\u0323" * size, time.process_time()
        nd.scheme("text").fingerprint(text)
        return time.process_time() - begin

    small = min(seconds(50_000) for _ in range(3))
    large = min(seconds(400_000) for _ in range(3))
    assert large < 8 * 4 * small + 0.05  # linear is 8 times, the square is 64 times


@pytest.mark.parametrize(
    "threads", [0, -1, "2", 1.0, True, 2.5, math.nan, -(10**30), 10**9, 10**5000], ids=shown
)
def test_a_number_of_threads_that_cannot_be_is_refused(threads: Any) -> None:
    prints = nd.Fingerprints.of([1, 2])
    for call in (
        lambda: nd.scheme("text").fingerprints(TEXTS, threads=threads),
        lambda: nd.scheme("text").fit(TEXTS, threads=threads),
        lambda: nd.join(prints, 1, threads=threads),
        lambda: nd.dedupe([{"id": "a", "text": "a"}], threads=threads),
    ):
        with pytest.raises(NeardupError, match=r"^threads must be (an integer|from 1 to 1024), not"):
            call()


def test_more_threads_than_cores_compute_the_same() -> None:
    texts = [f"document number {number} of many " * 50 for number in range(3000)]
    scheme = nd.scheme("text")
    assert scheme.fingerprints(texts, threads=1024) == scheme.fingerprints(texts, threads=1)
    assert scheme.fit(texts, threads=1024).digest == scheme.fit(texts, threads=1).digest


def test_a_message_is_one_short_line() -> None:
    long = "x" * 100_000
    calls: list[Callable[[], Any]] = [
        lambda: nd.scheme(long),
        lambda: nd.scheme("text", hash=long),
        lambda: nd.scheme("text", features=f"chars:{long}"),
        lambda: nd.parse(long),
        lambda: nd.format(10**4000, 64),
        lambda: nd.distance(-(10**5000), 1),
        lambda: nd.scheme("text").fingerprints([{long: long}]),
        lambda: nd.scheme("text").fingerprint([("a\nb" * 100, math.nan)]),
    ]
    for call in calls:
        with pytest.raises(NeardupError) as caught:
            call()
        assert len(str(caught.value)) < 400
        assert "\n" not in str(caught.value)


# --- signals, processes, threads -----------------------------------------------------------------------

unix = pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals or fork")

INTERRUPTED = """
import sys, threading, time
import pyarrow as pa
import neardup as nd
kind, job = sys.argv[1:]
texts = [f"текст номер {number} о многих словах, которые не повторяются " * 60 for number in range(20_000)]
if kind == "arrow":
    texts = pa.array(texts)
scheme = nd.scheme("text")
call = {"fingerprints": scheme.fingerprints, "fit": scheme.fit}[job]
inside = False

def tell():
    while not inside:
        pass
    print("started", flush=True)  # this thread runs, so the call has let go of the interpreter

threading.Thread(target=tell).start()
try:
    inside = True
    while True:
        call(texts)
except KeyboardInterrupt:
    print(time.monotonic(), flush=True)
few = texts[:10]
assert scheme.fingerprints(few) == scheme.fingerprints(list(map(str, few)))
assert scheme.fit(few).digest == scheme.fit(few, threads=1).digest
"""


@unix
@pytest.mark.parametrize("kind", ["list", "arrow"])
@pytest.mark.parametrize("job", ["fingerprints", "fit"])
def test_ctrl_c_is_answered_within_half_a_second_and_objects_stay_usable(kind: str, job: str) -> None:
    waits = []
    for _ in range(3):  # another program may have the machine for half a second
        child = subprocess.Popen(
            [sys.executable, "-W", "error", "-c", INTERRUPTED, kind, job],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert child.stdout is not None
        if child.stdout.readline() != "started\n":
            pytest.fail(f"the child ended with {child.wait()}: {child.communicate()[1]}")
        sent = time.monotonic()
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=60)
        assert (child.returncode, err) == (0, "")
        waits.append(float(out) - sent)
        if waits[-1] < 0.5:
            return
    pytest.fail(f"answered after {waits} s")


def _prints_of(texts: list[str]) -> list[int | None]:
    return list(nd.scheme("text").fingerprints(texts, threads=2))


MANY = [f"document {number} of a collection " * 40 for number in range(2000)]  # more than one thread has


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_process_started_after_a_call_computes_the_same(method: str) -> None:
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"no {method} here")
    expected = _prints_of(MANY)
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", DeprecationWarning
        )  # Python warns of fork beside threads of other packages
        with multiprocessing.get_context(method).Pool(2) as pool:
            assert pool.map_async(_prints_of, [MANY] * 4).get(timeout=120) == [expected] * 4


@unix
def test_a_fork_in_the_middle_of_a_call_does_not_hang() -> None:
    stop = threading.Event()

    def work() -> None:
        while not stop.is_set():
            _prints_of(MANY)

    worker = threading.Thread(target=work)
    worker.start()
    expected = nd.scheme("text").fingerprint("some text")
    try:
        for _ in range(10):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)
                child = os.fork()
            if child == 0:
                right = _prints_of(MANY)[:1] and nd.scheme("text").fingerprint("some text") == expected
                os._exit(0 if right else 1)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    finally:
        stop.set()
        worker.join()


def test_eight_threads_use_one_scheme_at_once() -> None:
    scheme = nd.scheme("text").fit(MANY)
    expected = scheme.fingerprints(MANY)
    again = nd.scheme("text")

    def work(number: int) -> bool:
        if number % 2:
            return again.fit(MANY).digest == scheme.digest
        return scheme.fingerprints(pa.array(MANY) if number % 4 else MANY) == expected

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(16)))


# Run apart: threads that wait for each other would never end this one.
COUNTING = """
import sys
from concurrent.futures import ThreadPoolExecutor
import neardup as nd
from neardup import _native
from tests.test_hostile import MANY
scheme, table = nd.scheme("text"), _native.Frequencies(int(sys.argv[1]))
def work(number):
    if number % 3 == 2:
        return table.documents and 0
    scheme.count(MANY, table)
    return len(MANY)
with ThreadPoolExecutor(6) as pool:
    counted = sum(pool.map(work, range(24)))
one = _native.Frequencies(int(sys.argv[1]))
for _ in range(16):
    scheme.count(MANY, one, threads=1)
assert counted == table.documents == 16 * len(MANY)
assert table.to_bytes() == one.to_bytes()
assert table.digest == one.digest
"""


@pytest.mark.parametrize("limit", [100, 1 << 20])
def test_many_threads_count_into_one_table_also_when_it_becomes_a_sketch(limit: int) -> None:
    command = [sys.executable, "-c", COUNTING, str(limit)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_tables_are_added_to_and_fro_by_two_threads() -> None:
    one, other = _native.Frequencies(), _native.Frequencies()
    nd.scheme("text").count(MANY[:1], one)
    nd.scheme("text").count(MANY[:1], other)
    with ThreadPoolExecutor(2) as pool:
        there = pool.submit(lambda: [one.merge(other) for _ in range(8)])
        back = pool.submit(lambda: [other.merge(one) for _ in range(8)])
        there.result(60)
        back.result(60)
    assert one.documents > 8
    with pytest.raises(InvalidValue, match="cannot be added to itself"):
        one.merge(one)


def test_a_list_that_changes_during_the_call_is_read_as_it_was() -> None:
    texts = list(MANY)
    scheme, stop = nd.scheme("text"), threading.Event()
    known = {*scheme.fingerprints(MANY), scheme.fingerprint("another text")}

    def change() -> None:
        while not stop.is_set():
            texts[:] = ["another text"] * 10
            texts.clear()
            texts[:] = MANY

    changer = threading.Thread(target=change)
    changer.start()
    try:
        for _ in range(20):
            assert set(scheme.fingerprints(texts)) <= known
    finally:
        stop.set()
        changer.join()


def test_an_array_that_changes_during_the_call_does_no_harm() -> None:
    rows = np.random.default_rng(1).normal(size=(2000, 64))
    scheme, stop = nd.scheme("vector"), threading.Event()

    def change() -> None:
        while not stop.is_set():
            rows[:] = -rows

    changer = threading.Thread(target=change)
    changer.start()
    try:
        for _ in range(10):
            assert len(scheme.fingerprints(rows)) == 2000
    finally:
        stop.set()
        changer.join()


def test_a_callers_error_passes_through_and_leaves_the_scheme_usable() -> None:
    scheme = nd.scheme("text")
    for call in (scheme.fingerprints, scheme.fit):
        with pytest.raises(Own):
            call(raises_later())
    assert scheme.fingerprints(["one"])[0] == scheme.fingerprint("one")


def test_ids_that_are_no_text_do_not_meet_in_an_index() -> None:
    index = nd.Index(bits=64)
    for call in (lambda: index.add_one("\ud800", 1), lambda: index.add(["\udfff"], nd.Fingerprints.of([1]))):
        with pytest.raises(InvalidValue, match="is not valid text"):
            call()
    assert len(index) == 0
