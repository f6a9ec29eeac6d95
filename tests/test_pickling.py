"""Values travel to other processes: by pickle, by deep copy, and to a pool that starts from nothing."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from PIL import Image

import neardup as nd
from neardup.errors import SchemeMismatch
from neardup.schemes import SCHEMES
from neardup.sources.limits import Limits

TEXTS = [f"document {number} of a small collection, with the word {number % 7}" for number in range(40)]
NAMES = [name if name not in ("chars", "words") else f"{name}:3" for name in sorted(SCHEMES)]


def pickled(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))


COPIES = pytest.mark.parametrize("copied", [pickled, copy.deepcopy, copy.copy], ids=lambda way: way.__name__)


def bits_of(scheme: nd.Scheme) -> Any:
    if scheme.features == "vector":
        return scheme.fingerprints(np.arange(12.0).reshape(4, 3))
    if scheme.features == "picture":
        return scheme.fingerprints([Image.linear_gradient("L"), Image.radial_gradient("L")])
    return scheme.fingerprints(TEXTS)


def equal(one: nd.Scheme, other: nd.Scheme) -> None:
    assert (one, one.digest, one.key, hash(one)) == (other, other.digest, other.key, hash(other))
    assert bits_of(one) == bits_of(other)


@COPIES
@pytest.mark.parametrize("name", NAMES)
def test_a_scheme_that_was_used_can_be_pickled(name: str, copied: Callable[[Any], Any]) -> None:
    scheme = nd.scheme(name)
    equal(copied(scheme), scheme)
    bits_of(scheme)
    equal(copied(scheme), scheme)


@COPIES
@pytest.mark.parametrize("most", [None, 10], ids=["exact", "sketch"])
def test_a_fitted_scheme_can_be_pickled(most: int | None, copied: Callable[[Any], Any]) -> None:
    scheme = nd.scheme("text", name="mine \U0001f600", form="decimal").fit(TEXTS, max_features=most)
    other = copied(scheme)
    equal(other, scheme)
    assert other.name == scheme.name
    assert other.form == "decimal"
    assert scheme != nd.scheme("text").fit(TEXTS[:-1])
    equal(other + other, scheme + scheme)


def test_equal_schemes_are_pickled_to_equal_bytes() -> None:
    """Caches that key on the pickle, as `datasets` does, find what an equal scheme computed before."""
    used, new = nd.scheme("text").fit(TEXTS), nd.scheme("text").fit(TEXTS[::-1])
    used.fingerprint("a text")
    assert pickle.dumps(used) == pickle.dumps(new)


@COPIES
def test_a_keyed_scheme_keeps_its_key(copied: Callable[[Any], Any]) -> None:
    scheme = nd.scheme("text", hash="blake3-keyed", key="a long secret")
    equal(copied(scheme), scheme)
    equal(copied(scheme.fit(TEXTS)), scheme.fit(TEXTS))


def test_a_pickle_with_other_facts_than_its_digest_is_refused() -> None:
    data = pickle.dumps(nd.scheme("text"))
    assert data.count(b"mixed:4") == 1
    with pytest.raises(SchemeMismatch, match="the scheme says digest"):
        pickle.loads(data.replace(b"mixed:4", b"mixed:5"))


@pytest.mark.parametrize("method", ["spawn", *({"forkserver"} & {*multiprocessing.get_all_start_methods()})])
def test_a_pool_that_starts_from_nothing_runs_a_fitted_scheme(method: str) -> None:
    scheme = nd.scheme("text").fit(TEXTS)
    program = (
        "import multiprocessing, pickle, sys\n"
        "if __name__ == '__main__':\n"
        "    scheme, texts = pickle.load(sys.stdin.buffer)\n"
        f"    with multiprocessing.get_context({method!r}).Pool(2) as pool:\n"
        "        print(pool.map(scheme.fingerprint, texts))\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], input=pickle.dumps((scheme, TEXTS)), capture_output=True, check=True
    )
    assert run.stdout.decode().strip() == str([scheme.fingerprint(text) for text in TEXTS])


@COPIES
def test_fingerprints_pairs_settings_and_limits_can_be_pickled(copied: Callable[[Any], Any]) -> None:
    prints = nd.scheme("text").fingerprints([*TEXTS, ""])
    for value in (prints, nd.join(prints, radius=30), nd.Settings(), Limits()):
        assert copied(value) == value
    assert copied(prints).digest == prints.digest
