"""The native core: batches in, numpy out. Use the Python functions; these are their loops."""

from typing import Any, final

import numpy as np
import numpy.typing as npt

__version__: str

def digest(hash: str, data: bytes, size: int, key: bytes | None = None) -> bytes:
    """The first *size* bytes of the digest of *data*."""

def simd_level() -> str:
    """The instruction level in force: scalar, avx2 or avx512."""

def set_simd(level: str) -> str:
    """Force an instruction level; the one then in force (a machine may not have the one asked for)."""

@final
class Frequencies:
    """In how many documents each feature was seen, by its 64-bit hash."""

    def __init__(self, max_features: int = ...) -> None: ...
    @property
    def documents(self) -> int: ...
    @property
    def features(self) -> int | None:
        """How many different features; None once it is a sketch."""
    @property
    def max_features(self) -> int: ...
    @property
    def knee(self) -> int:
        """Up to this frequency a feature is rare and keeps its whole weight."""
    @property
    def digest(self) -> str: ...
    def get(self, hash: int) -> int:
        """In how many documents the feature was seen; 0 also stands for 1."""
    def merge(self, other: Frequencies) -> None: ...
    def to_bytes(self) -> bytes: ...
    @staticmethod
    def from_bytes(data: bytes) -> Frequencies: ...

@final
class Recipe:
    """A scheme as the core runs it."""

    def __init__(
        self,
        *,
        normalize: str,
        features: str,
        weights: str,
        hash: str,
        key: bytes | None,
        bits: int,
        digest_slice: str,
        bit_order: str,
        tie: str,
        empty: str,
        frequencies: Frequencies | None,
    ) -> None: ...
    def fingerprint_one(self, text: str) -> list[int] | None: ...
    def fingerprints_of_strings(
        self, texts: list[str], threads: int | None
    ) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.bool_]]: ...
    def fingerprints_of_arrow(
        self, chunk: dict[str, Any], threads: int | None
    ) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.bool_]]: ...
    def fingerprint_of_features(self, features: list[tuple[str, int]]) -> list[int] | None: ...
    def votes(self, features: list[tuple[str, int]]) -> npt.NDArray[np.int64]: ...
    def normalized(self, text: str) -> str: ...
    def features(self, text: str) -> list[tuple[int, str, int]]: ...
    def count_strings(self, texts: list[str], into: Frequencies, threads: int | None) -> None: ...
    def count_arrow(self, chunk: dict[str, Any], into: Frequencies, threads: int | None) -> None: ...

def survey(
    recipe: Recipe, chunk: dict[str, Any], frequencies: Frequencies | None, threads: int | None
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.bool_]]:
    """128 bits that identify each normalised text, and whether there is information in it; the
    features are counted into *frequencies*."""
