"""The random numbers of an HTM library: the same seed gives the same numbers, samples and shuffles.

A Mersenne Twister of 32 bits. A number below *max* is the remainder, a real number the share of the
largest; shuffling goes from the last place to the first, and a sample is the front of what was shuffled.
"""

from __future__ import annotations

import json
import os
import secrets
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from neardup.checks import whole
from neardup.compat.htm.refusals import RefusedState, RefusedValue, as_runtime_error
from neardup.errors import InvalidType, InvalidValue, shown
from neardup.files import atomic_file, check_path

__all__ = ["Random"]

Numbers = npt.NDArray[np.uint32]

LARGEST: Final = 2**32 - 1
KEYS: Final = 624  # words in the state of the generator
VERSION: Final = 1
NAME: Final = "Random"


class Random:
    """A generator of random numbers; seed 0 takes one that nobody knows.

    >>> Random(42).sample(np.array([1, 2, 3, 4], dtype=np.uint32), 2).tolist()
    [2, 1]
    """

    MAX32 = LARGEST

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, seed: int = 0) -> None:
        with as_runtime_error():
            self._seed = whole("seed", seed, 0, 2**64 - 1) or secrets.randbelow(LARGEST) + 1
        self._numbers = np.random.RandomState(self._seed & LARGEST)

    def getSeed(self) -> int:
        """What it began with."""
        return self._seed

    def getUInt32(self, max: int = LARGEST) -> int:
        """A whole number from 0 to *max* - 1."""
        with as_runtime_error():
            below = whole("max", max, 1, LARGEST)
        return int(self._draw(1)[0]) % below

    def getReal64(self) -> float:
        """A real number from 0 to 1."""
        return float(self._draw(1)[0]) / LARGEST

    def min(self) -> int:
        """The smallest number that `getUInt32` can give."""
        return 0

    def max(self) -> int:
        """The bound of what `getUInt32` can give."""
        return LARGEST

    def sample(self, population: Numbers, nSelect: int) -> Numbers:
        """*nSelect* elements of an array, which stays as it is."""
        _check_array(population, np.uint32)
        with as_runtime_error():
            count = whole("nSelect", nSelect, 0)
        if count > len(population):
            raise RefusedValue(f"cannot draw {shown(count)} of {len(population)} elements")
        return population[self._order(len(population))[:count]]

    def shuffle(self, array: Numbers) -> None:
        """Put the elements of an array into random order."""
        _check_array(array, np.uint32)
        array[:] = array[self._order(len(array))]

    def initializeUInt32Array(self, array: Numbers, max_value: int) -> None:
        """Fill an array with whole numbers below *max_value*."""
        _check_array(array, np.uint32)
        with as_runtime_error():
            array[:] = self._draw(len(array)) % np.uint32(whole("max_value", max_value, 1, LARGEST))

    def initializeReal64Array(self, array: npt.NDArray[np.float64]) -> None:
        """Fill an array with real numbers from 0 to 1."""
        _check_array(array, np.float64)
        array[:] = self._draw(len(array)) / LARGEST

    def _draw(self, count: int) -> Numbers:
        return self._numbers.randint(0, 2**32, count, dtype=np.uint32)

    def _order(self, count: int) -> npt.NDArray[np.intp]:
        """The places 0 to *count* - 1 in random order."""
        places = list(range(count))
        chosen = self._draw(max(count - 1, 0)) % np.arange(count, 1, -1, dtype=np.uint32)
        for at, other in zip(range(count - 1, 0, -1), chosen.tolist(), strict=True):
            places[at], places[other] = places[other], places[at]
        return np.array(places, dtype=np.intp)

    # --- keeping it ------------------------------------------------------------------------------------

    def saveToFile(self, name: str | os.PathLike[str], fmt: object = 0) -> None:
        """Write the seed and the position to a JSON file, whatever *fmt* asks for."""
        with atomic_file(name, overwrite=True) as file:
            file.write(json.dumps({"name": NAME, "neardup": VERSION, **self.__getstate__()}).encode())

    def loadFromFile(self, name: str | os.PathLike[str], fmt: object = 0) -> None:
        """Go on from where a file says."""
        with open(check_path(name), "rb") as file:
            text = file.read()
        try:
            facts = json.loads(text)
            if facts.pop("name") != NAME or facts.pop("neardup") != VERSION:
                raise ValueError("another name or version")
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise RefusedState(f"this is not the JSON of a {NAME}: {shown(error)}") from None
        self.__setstate__(facts)

    def __getstate__(self) -> dict[str, Any]:
        state = self._numbers.get_state(legacy=False)["state"]
        return {"seed": self._seed, "at": int(state["pos"]), "keys": state["key"].tolist()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        try:
            if set(state) != {"seed", "at", "keys"} or len(state["keys"]) != KEYS:
                raise InvalidValue(f"it needs a seed, a place and {KEYS} keys")
            seed, at = whole("seed", state["seed"], 1, 2**64 - 1), whole("at", state["at"], 0, KEYS)
            keys = np.array([whole("a key", key, 0, LARGEST) for key in state["keys"]], dtype=np.uint32)
        except (InvalidValue, TypeError) as error:
            raise RefusedState(f"this is not the state of a {NAME}: {shown(error)}") from None
        numbers = np.random.RandomState(seed & LARGEST)
        numbers.set_state(("MT19937", keys, at, 0, 0.0))
        self._seed, self._numbers = seed, numbers

    def __eq__(self, other: object) -> bool:
        return self.__getstate__() == other.__getstate__() if isinstance(other, Random) else NotImplemented

    def __repr__(self) -> str:
        return f"<Random of seed {self._seed}>"


def _check_array(array: object, kind: type[np.generic]) -> None:
    if not isinstance(array, np.ndarray):
        raise InvalidType(f"give an array of numpy {kind.__name__}, not {shown(array)}")
    if array.dtype != kind or array.ndim != 1:
        raise RefusedValue(
            f"give a one-dimensional array of {kind.__name__}, "
            f"not one of {array.dtype} with {array.ndim} dimensions"
        )
