"""Features with weights, as a user gives them: checked, and with weights that are integers."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable, Mapping

from neardup.checks import whole
from neardup.errors import InvalidType, InvalidValue, shown

Weighted = str | tuple[str, int | float]
Features = Mapping[str, int | float] | Iterable[Weighted]


def text_of(value: object) -> str:
    if not isinstance(value, str):
        raise InvalidType(f"a text must be a str, not {type(value).__name__}")
    return value


def weighted_features(features: Features) -> list[tuple[str, int]]:
    """Features with integer weights. Floats are scaled to integers that keep 53 bits of the largest one.

    >>> weighted_features({"a": 2, "b": 1}), weighted_features(["a", ("b", 3)])
    ([('a', 2), ('b', 1)], [('a', 1), ('b', 3)])
    """
    try:
        if isinstance(features, (str, bytes)):
            raise TypeError
        items = iter(features.items() if isinstance(features, Mapping) else features)
    except TypeError:
        raise InvalidType(
            f"a document must be a str, tokens, (token, weight) pairs or a dict, not {shown(features)}"
        ) from None
    pairs: list[tuple[str, int | float]] = []
    for item in items:
        token, weight = item if isinstance(item, tuple) and len(item) == 2 else (item, 1)
        if not isinstance(token, str):
            raise InvalidType(f"a feature must be a str or a (str, weight) pair, not {shown(item)}")
        pairs.append((token, _weight(token, weight)))
    largest = max((abs(weight) for _, weight in pairs), default=0)
    if all(isinstance(weight, int) for _, weight in pairs):
        if largest >= 1 << 62:
            raise InvalidValue(f"a weight must be below 2**62, not {shown(largest)}")
        return [(encodable(token), int(weight)) for token, weight in pairs]
    pairs = [(token, _float(token, weight)) for token, weight in pairs]
    largest = max(abs(weight) for _, weight in pairs)
    shift = 53 - math.frexp(largest)[1]
    return [(encodable(token), round(math.ldexp(weight, shift))) for token, weight in pairs]


def byte_features(features: Iterable[tuple[bytes, int]]) -> list[tuple[bytes, int]]:
    try:
        pairs = [(feature, weight) for feature, weight in features]
    except (TypeError, ValueError):
        raise InvalidType(f"features must be (bytes, weight) pairs, not {shown(features)}") from None
    for feature, _ in pairs:
        if not isinstance(feature, bytes):
            raise InvalidType(f"a feature must be bytes here, not {shown(feature)}")
    largest = (1 << 62) // max(len(pairs), 1)
    return [(feature, whole("a weight", weight, -largest, largest)) for feature, weight in pairs]


def _weight(token: str, weight: object) -> int | float:
    if isinstance(weight, bool) or not isinstance(weight, numbers.Real):
        raise InvalidType(f"the weight of {shown(token)} must be a number, not {shown(weight)}")
    if isinstance(weight, numbers.Integral):
        return int(weight)
    return _float(token, weight)


def _float(token: str, weight: numbers.Real | float) -> float:
    try:
        value = float(weight)
    except OverflowError:
        value = math.inf
    if not math.isfinite(value):
        raise InvalidValue(f"the weight of {shown(token)} must be finite, not {value}")
    return value


def encodable(token: str) -> str:
    return (
        token.encode("utf-16", "surrogatepass").decode("utf-16", "replace") if not token.isascii() else token
    )
