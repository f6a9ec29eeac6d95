"""The native core: batches in, numpy out. Use the Python functions; these are their loops."""

from typing import Any

import numpy as np
import numpy.typing as npt

__version__: str

# The Hamming engine. Arrays must be C-contiguous and not written by anyone during the call.

_Words = npt.NDArray[np.uint64]
_Valid = npt.NDArray[np.bool_] | None
_Rows = npt.NDArray[np.uint32]
_Distances = npt.NDArray[np.uint16]

def join(
    words: _Words,
    valid: _Valid,
    other: _Words | None,
    other_valid: _Valid,
    bits: int,
    radius: int,
    recall: float,
    threads: int | None,
    plan: str | None,
) -> tuple[_Rows, _Rows, _Distances]:
    """Sorted pairs (left, right, distance) within the radius."""

def join_plan(
    words: _Words,
    valid: _Valid,
    other_rows: int | None,
    bits: int,
    radius: int,
    recall: float,
    threads: int | None,
    plan: str | None,
) -> dict[str, Any]:
    """What `join` would do."""

def groups(
    words: _Words,
    valid: _Valid,
    order: _Rows | None,
    bits: int,
    radius: int,
    threads: int | None,
    plan: str | None,
) -> tuple[_Rows, _Distances]:
    """The centre of each row and the distance to it."""

def components(left: _Rows, right: _Rows, count: int) -> _Rows:
    """The smallest row connected with each row."""

def set_simd(level: str) -> None:
    """Use `scalar`, `avx2` or `avx512` from now on; an empty text asks the environment again."""

def simd_level() -> str:
    """The level in use."""
