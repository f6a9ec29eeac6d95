"""The document encoder: a text, or its tokens, to the bits of an SDR."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from typing import Any, Final

import numpy as np

from neardup.checks import whole
from neardup.compat.htm.refusals import RefusedState, RefusedValue, as_runtime_error
from neardup.compat.htm.sdr import SDR, can_be_listed
from neardup.errors import InvalidType, shown
from neardup.features.htm_tokens import TokenRules, check_rules
from neardup.features.shingles import tokens
from neardup.files import atomic_file, check_path
from neardup.fingerprints import MAX_BITS
from neardup.schemes import Scheme

__all__ = ["SimHashDocumentEncoder", "SimHashDocumentEncoderParameters"]

NAME: Final = "SimHashDocumentEncoder"
VERSION: Final = 1  # of our keys in its JSON
FORMATS: Final = ("BINARY", "PORTABLE", "JSON")
LARGEST: Final = 2**32 - 1


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

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, parameters: SimHashDocumentEncoderParameters | None = None, /, **named: Any) -> None:
        given = SimHashDocumentEncoderParameters() if parameters is None else parameters
        self.initialize(_copy(given, **named))

    def initialize(self, parameters: SimHashDocumentEncoderParameters) -> None:
        """Take other parameters."""
        given = _checked(_copy(parameters))
        if (given.activeBits > 0) == (given.sparsity > 0):
            raise RefusedValue("Need only one argument of: 'activeBits' or 'sparsity'.")
        if given.size <= 0:
            raise RefusedValue("Missing 'size' argument.")
        if given.sparsity > 0:
            given.sparsity = float(np.float32(given.sparsity))
            share = float(np.float32(given.size) * np.float32(given.sparsity))
            given.activeBits = math.floor(min(share, LARGEST) + 0.5)
            if not 0 < given.activeBits < given.size:
                raise RefusedValue(
                    f"sparsity {shown(parameters.sparsity)} asks for {given.activeBits} of {given.size} "
                    f"bits; choose one that asks for 1 to {given.size - 1}"
                )
        self._accept(given)

    def _accept(self, parameters: SimHashDocumentEncoderParameters) -> None:
        with as_runtime_error():
            check_rules(
                parameters.frequencyFloor,
                parameters.frequencyCeiling,
                parameters.encodeOrphans,
                parameters.vocabulary,
            )
            whole("size", parameters.size, 2, MAX_BITS)
        if not 0 < parameters.activeBits < parameters.size:
            raise RefusedValue(
                f"activeBits must be from 1 to size - 1 = {parameters.size - 1}, not {parameters.activeBits}"
            )
        self._parameters = parameters
        self.__dict__.pop("scheme", None)
        self.__dict__.pop("_rules", None)

    @cached_property
    def scheme(self) -> Scheme:
        """The scheme that turns weighted tokens into bits."""
        size, active = self._parameters.size, self._parameters.activeBits
        corrected = self._parameters.corrected
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
        given = self._parameters
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
    def parameters(self) -> SimHashDocumentEncoderParameters:
        """A copy of its parameters, with `activeBits` where `sparsity` was given."""
        return _copy(self._parameters)

    @property
    def size(self) -> int:
        """How many bits its SDRs have."""
        return self._parameters.size

    @property
    def dimensions(self) -> list[int]:
        """The dimensions of its SDRs."""
        return [self._parameters.size]

    def encode(self, document: str | Iterable[str], output: SDR | None = None) -> SDR:
        """The representation of a text or of tokens; written to *output* where one is given."""
        if output is None:
            output = SDR(self.size)
        elif not isinstance(output, SDR):
            raise InvalidType(f"the output must be an SDR, not {shown(output)}")
        elif output.size != self.size:
            raise RefusedValue(f"the output has {output.size} bits, the encoder {self.size}")
        output.sparse = next(self._encoded([document]))
        return output

    def encode_many(self, documents: Iterable[str | Iterable[str]]) -> list[SDR]:
        """The representations of many documents; a token that several have is hashed once."""
        if isinstance(documents, (str, bytes)) or not can_be_listed(documents):
            raise InvalidType(f"documents must be an iterable of documents, not {shown(documents)}")
        return [SDR(self.size, on) for on in self._encoded(documents)]

    def _encoded(self, documents: Iterable[str | Iterable[str]]) -> Iterator[list[int]]:
        """The bits that are on for each document."""
        empty: list[bool] = []

        def weighted() -> Iterator[Iterable[tuple[bytes, int]]]:
            for document in documents:
                cut = self._cut(document)
                empty.append(not cut)
                yield self._rules.weighted(cut)

        for at, votes in enumerate(self.scheme.votes_of_many(weighted())):
            # No token at all gives no bit; tokens that are all dropped give what no votes give.
            yield [] if empty[at] else self.scheme.selected(votes)

    def _cut(self, document: str | Iterable[str]) -> list[str]:
        if isinstance(document, str):
            return tokens(document)
        cut = list(document) if can_be_listed(document) else None
        if cut is None or not all(isinstance(token, str) for token in cut):
            raise InvalidType(f"a document must be a str or an iterable of str, not {shown(document)}")
        return cut

    # --- keeping it ------------------------------------------------------------------------------------

    def to_json(self) -> str:
        """The parameters in the original's JSON form."""
        return json.dumps(self._facts(), indent=4, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str | bytes) -> SimHashDocumentEncoder:
        """The reverse of `to_json`; also reads what the original wrote."""
        encoder = cls.__new__(cls)
        encoder.loadFromString(text)
        return encoder

    def writeToString(self) -> bytes:
        """The parameters as JSON, in the form of the original with the version of ours at the end."""
        return json.dumps({**self._facts(), "neardup": VERSION}, indent=4, ensure_ascii=False).encode()

    def loadFromString(self, text: str | bytes) -> None:
        """Take the parameters from such JSON, or from the original's."""
        try:
            facts = json.loads(text)
            if not isinstance(facts, dict):
                raise ValueError("it is not an object")
            self.__setstate__(facts)
        except (ValueError, TypeError, RecursionError) as error:
            why = str(error).removeprefix(_NOT_OURS)
            raise RefusedState(f"{_NOT_OURS}{why}") from None

    def saveToFile(self, file: str | os.PathLike[str], fmt: str = "BINARY") -> None:
        """Write the parameters to a file; it holds JSON in any format of *fmt*."""
        _check_format(fmt)
        with atomic_file(file, overwrite=True) as target:
            target.write(self.writeToString())

    def loadFromFile(self, file: str | os.PathLike[str], fmt: str = "BINARY") -> None:
        """Take the parameters from a file, of ours or a JSON file of the original."""
        _check_format(fmt)
        with open(check_path(file), "rb") as source:
            self.loadFromString(source.read())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the parameters to a JSON file."""
        self.saveToFile(path, "JSON")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> SimHashDocumentEncoder:
        """The encoder whose parameters a file holds."""
        encoder = cls.__new__(cls)
        encoder.loadFromFile(path, "JSON")
        return encoder

    def _facts(self) -> dict[str, Any]:
        facts: dict[str, Any] = asdict(self._parameters)
        ours = {name: facts.pop(name) for name in ("corrected", "order")}
        facts["vocabulary"] = [
            {"key": key, "value": facts["vocabulary"][key]} for key in sorted(facts["vocabulary"])
        ]
        ordered = {"name": NAME, **{name: facts[name] for name in sorted(facts)}}
        return {**ordered, **{name: value for name, value in ours.items() if value}}

    def __getstate__(self) -> dict[str, Any]:
        return {**self._facts(), "neardup": VERSION}

    def __setstate__(self, state: dict[str, Any]) -> None:
        try:
            facts = dict(state)
            if facts.pop("name", NAME) != NAME:
                raise ValueError("it has another name")
            if (version := facts.pop("neardup", VERSION)) != VERSION:
                raise ValueError(f"its version is {shown(version)}, and {VERSION} is read here")
            if unknown := sorted(set(facts) - _NAMES):
                raise ValueError(f"unknown parameter {unknown[0]!r}")
            facts["vocabulary"] = {row["key"]: row["value"] for row in facts["vocabulary"]}
            self._accept(_checked(SimHashDocumentEncoderParameters(**facts)))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            why = f"it has no {error}" if isinstance(error, KeyError) else str(error)
            raise RefusedState(f"{_NOT_OURS}{why}") from None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SimHashDocumentEncoder):
            return NotImplemented
        return self._parameters == other._parameters

    def __repr__(self) -> str:
        plain = SimHashDocumentEncoderParameters()
        given = {item.name: getattr(self._parameters, item.name) for item in fields(plain)}
        if given["sparsity"] > 0:  # float32, and the number of bits follows from it
            del given["activeBits"]
            given["sparsity"] = float(str(np.float32(given["sparsity"])))
        told = [f"{name}={value!r}" for name, value in given.items() if value != getattr(plain, name)]
        return f"{NAME}({', '.join(told)})"


_NOT_OURS: Final = f"this is not the JSON of a {NAME}: "
_NAMES: Final = {item.name for item in fields(SimHashDocumentEncoderParameters)}


def _copy(parameters: SimHashDocumentEncoderParameters, **named: Any) -> SimHashDocumentEncoderParameters:
    """Parameters that no one else changes."""
    if not isinstance(parameters, SimHashDocumentEncoderParameters):
        raise InvalidType(f"give SimHashDocumentEncoderParameters, not {shown(parameters)}")
    if unknown := sorted(set(named) - _NAMES):
        raise InvalidType(f"there is no parameter {unknown[0]!r}; there are: {', '.join(sorted(_NAMES))}")
    own = replace(parameters, **named)
    if isinstance(own.excludes, (list, tuple, set, frozenset)):
        own.excludes = list(own.excludes)
    if isinstance(own.vocabulary, Mapping):
        own.vocabulary = dict(own.vocabulary)
    return own


def _checked(parameters: SimHashDocumentEncoderParameters) -> SimHashDocumentEncoderParameters:
    """The parameters, if each is of its kind."""
    with as_runtime_error():
        for name in ("size", "activeBits", "frequencyCeiling", "frequencyFloor", "order"):
            setattr(parameters, name, whole(name, getattr(parameters, name), 0, LARGEST))
    for name in ("caseSensitivity", "encodeOrphans", "tokenSimilarity", "corrected"):
        value = getattr(parameters, name)
        if not isinstance(value, (bool, np.bool_)):
            raise InvalidType(f"{name} must be True or False, not {shown(value)}")
        setattr(parameters, name, bool(value))
    share = parameters.sparsity
    if isinstance(share, bool) or not isinstance(share, (int, float, np.integer, np.floating)):
        raise InvalidType(f"sparsity must be a number, not {shown(share)}")
    if not abs(share) < 2**127:
        raise RefusedValue(f"sparsity must be above 0 and below 1, not {shown(share)}")
    parameters.sparsity = float(share)
    if not isinstance(parameters.excludes, list) or not all(
        isinstance(one, str) for one in parameters.excludes
    ):
        raise InvalidType(f"excludes must be a list of str, not {shown(parameters.excludes)}")
    words = parameters.vocabulary
    if not isinstance(words, dict) or not all(isinstance(word, str) for word in words):
        raise InvalidType(f"vocabulary must be a dict of str and weights, not {shown(words)}")
    with as_runtime_error():
        parameters.vocabulary = {
            word: whole(f"the weight of {shown(word)}", weight, 0, LARGEST) for word, weight in words.items()
        }
    return parameters


def _check_format(fmt: object) -> None:
    if not isinstance(fmt, str) or fmt not in FORMATS:
        raise RefusedValue(f"fmt must be {', '.join(FORMATS[:-1])} or {FORMATS[-1]}, not {shown(fmt)}")
