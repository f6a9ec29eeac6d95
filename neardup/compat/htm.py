"""The document encoder of an HTM library: text to a sparse distributed representation (SDR).

By default every bit is the original's. `corrected=True` mends four faults (docs/compat/htm.md shows them side
by side); `order=` lets the order of tokens count. Written from its outputs and their description only.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from neardup.errors import DamagedFile, InvalidType, InvalidValue
from neardup.features.htm_tokens import TokenRules, check_rules
from neardup.features.shingles import tokens
from neardup.files import atomic_file
from neardup.schemes import Scheme

__all__ = ["SDR", "SimHashDocumentEncoder", "SimHashDocumentEncoderParameters", "overlap"]

NAME: Final = "SimHashDocumentEncoder"


class SDR:
    """A sparse distributed representation: which of *size* bits are on.

    >>> sdr = SDR(8, [5, 2])
    >>> sdr.sparse.tolist(), sdr.dense.tolist(), sdr.getSparsity()
    ([2, 5], [0, 0, 1, 0, 0, 1, 0, 0], 0.25)
    """

    __slots__ = ("size", "sparse")

    def __init__(self, size: int, sparse: Iterable[int] = ()) -> None:
        self.size = size
        self.sparse: npt.NDArray[np.uint32] = np.unique(np.fromiter(sparse, dtype=np.uint32))
        if len(self.sparse) and int(self.sparse[-1]) >= size:
            raise InvalidValue(f"bit {self.sparse[-1]} is outside an SDR of {size} bits")

    @property
    def dense(self) -> npt.NDArray[np.uint8]:
        """A byte for each bit, 0 or 1."""
        dense = np.zeros(self.size, dtype=np.uint8)
        dense[self.sparse] = 1
        return dense

    @property
    def dimensions(self) -> list[int]:
        return [self.size]

    def getSum(self) -> int:
        """How many bits are on."""
        return len(self.sparse)

    def getSparsity(self) -> float:
        """The share of bits that are on."""
        return len(self.sparse) / self.size

    def getOverlap(self, other: SDR) -> int:
        """How many bits are on in both.

        >>> SDR(8, [1, 2, 3]).getOverlap(SDR(8, [2, 3, 4]))
        2
        """
        if self.size != other.size:
            raise InvalidValue(f"cannot overlap {self.size} bits with {other.size}")
        return len(np.intersect1d(self.sparse, other.sparse, assume_unique=True))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SDR):
            return NotImplemented
        return self.size == other.size and np.array_equal(self.sparse, other.sparse)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"SDR({self.size}, {self.sparse.tolist()})"


def overlap(left: SDR, right: SDR) -> int:
    """How many bits are on in both."""
    return left.getOverlap(right)


@dataclass(slots=True)
class SimHashDocumentEncoderParameters:
    """The original's parameters under their names; *corrected* and *order* are ours."""

    size: int = 0
    activeBits: int = 0
    sparsity: float = 0.0
    caseSensitivity: bool = False
    encodeOrphans: bool = False
    excludes: list[str] = field(default_factory=list)
    frequencyCeiling: int = 0
    frequencyFloor: int = 0
    tokenSimilarity: bool = False
    vocabulary: dict[str, int] = field(default_factory=dict)
    corrected: bool = False
    order: int = 0


class SimHashDocumentEncoder:
    """Encodes texts, or lists of tokens, so that similar ones share bits.

    >>> encoder = SimHashDocumentEncoder(size=400, sparsity=0.33)
    >>> sky, sun = encoder.encode("The sky is beautiful today"), encoder.encode("The sun is beautiful today")
    >>> sky.getOverlap(sun), sky.getSum()
    (97, 132)
    """

    def __init__(self, parameters: SimHashDocumentEncoderParameters | None = None, /, **named: Any) -> None:
        self.initialize(replace(parameters or SimHashDocumentEncoderParameters(), **named))

    def initialize(self, parameters: SimHashDocumentEncoderParameters) -> None:
        """Take other parameters."""
        if (parameters.activeBits > 0) == (parameters.sparsity > 0):
            raise InvalidValue("Need only one argument of: 'activeBits' or 'sparsity'.")
        if parameters.size <= 0:
            raise InvalidValue("Missing 'size' argument.")
        if parameters.sparsity > 0:
            share = np.float32(parameters.size) * np.float32(parameters.sparsity)
            active = math.floor(float(share) + 0.5)
            parameters = replace(
                parameters, activeBits=active, sparsity=float(np.float32(parameters.sparsity))
            )
        self._accept(parameters)

    def _accept(self, parameters: SimHashDocumentEncoderParameters) -> None:
        check_rules(
            parameters.frequencyFloor,
            parameters.frequencyCeiling,
            parameters.encodeOrphans,
            parameters.vocabulary,
        )
        if not 0 < parameters.activeBits < parameters.size:
            raise InvalidValue(
                f"activeBits must be from 1 to size - 1 = {parameters.size - 1}, not {parameters.activeBits}"
            )
        self.parameters = parameters
        self.__dict__.pop("scheme", None)
        self.__dict__.pop("_rules", None)

    @cached_property
    def scheme(self) -> Scheme:
        """The scheme that turns weighted tokens into bits."""
        size, active = self.parameters.size, self.parameters.activeBits
        corrected = self.parameters.corrected
        return Scheme(
            "htm-corrected" if corrected else "htm",
            normalize="none",
            features="tokens",
            hash="shake256-msb" if corrected else f"shake256-htm:{size}",
            bits=size,
            empty="votes",
            select=f"top-above:{active}" if corrected else f"top-htm:{active}",
        )

    @cached_property
    def _rules(self) -> TokenRules:
        given = self.parameters
        return TokenRules.of(
            given.excludes,
            given.vocabulary,
            case_sensitive=given.caseSensitivity,
            orphans=given.encodeOrphans,
            floor=given.frequencyFloor,
            ceiling=given.frequencyCeiling,
            letters=given.tokenSimilarity,
            order=given.order,
            corrected=given.corrected,
        )

    @property
    def size(self) -> int:
        return self.parameters.size

    @property
    def dimensions(self) -> list[int]:
        return [self.parameters.size]

    def encode(self, document: str | Iterable[str], output: SDR | None = None) -> SDR:
        """The representation of a text or of tokens; written to *output* where one is given."""
        cut = tokens(document) if isinstance(document, str) else list(document)
        if not all(isinstance(token, str) for token in cut):
            raise InvalidType("a document must be a str or an iterable of str")
        on: list[int] = []
        if cut:  # no token at all gives no bit; tokens that are all dropped give what no votes give
            on = self.scheme.selected(self.scheme.votes_of_bytes(self._rules.weighted(cut)))
        if output is None:
            return SDR(self.size, on)
        if output.size != self.size:
            raise InvalidValue(f"the output has {output.size} bits, the encoder {self.size}")
        output.sparse = SDR(self.size, on).sparse
        return output

    def encode_many(self, documents: Iterable[str | Iterable[str]]) -> list[SDR]:
        """The representations of many documents."""
        return [self.encode(document) for document in documents]

    # --- keeping it ------------------------------------------------------------------------------------

    def to_json(self) -> str:
        """The parameters in the original's JSON form."""
        facts: dict[str, Any] = asdict(self.parameters)
        ours = {name: facts.pop(name) for name in ("corrected", "order")}
        facts["excludes"] = list(facts["excludes"])
        facts["vocabulary"] = [
            {"key": key, "value": facts["vocabulary"][key]} for key in sorted(facts["vocabulary"])
        ]
        ordered = {"name": NAME, **{name: facts[name] for name in sorted(facts)}}
        ordered.update((name, value) for name, value in ours.items() if value)
        return json.dumps(ordered, indent=4, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> SimHashDocumentEncoder:
        """The reverse of `to_json`; also reads what the original wrote."""
        try:
            facts = json.loads(text)
            if facts.pop("name", NAME) != NAME:
                raise ValueError("another object's name")
            facts["vocabulary"] = {row["key"]: row["value"] for row in facts["vocabulary"]}
            known = {item.name for item in fields(SimHashDocumentEncoderParameters)}
            if unknown := sorted(set(facts) - known):
                raise ValueError(f"unknown parameter {unknown[0]!r}")
            parameters = SimHashDocumentEncoderParameters(**facts)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise DamagedFile(f"this is not the JSON of a {NAME}: {error}") from None
        encoder = cls.__new__(cls)
        encoder._accept(parameters)
        return encoder

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the parameters to a JSON file."""
        with atomic_file(path, overwrite=True) as file:
            file.write(self.to_json().encode())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> SimHashDocumentEncoder:
        """The encoder whose parameters a file holds."""
        return cls.from_json(Path(path).read_text("utf-8"))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SimHashDocumentEncoder):
            return NotImplemented
        return self.parameters == other.parameters

    __hash__ = None  # type: ignore[assignment]
