"""Learned rules: what a person's answers to "are these the same?" make of the figures of a pair.

A rule is a whole number for each figure: the weight of how far the figure is from its middle. The sum
decides, and what weighed most is the reason. It can never accept a pair below the least similarity of the
default rule. A rule is a TOML file (docs/formats/rule.md), whose digest covers all that it says.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from neardup import __version__
from neardup.errors import DamagedFile, InvalidType, InvalidValue, shown
from neardup.files import atomic_file, check_path
from neardup.verifiers.figures import FIGURES, NAMES, VERSION
from neardup.verifiers.reasons import code_of, learned_code
from neardup.verifiers.rules import RULES, WHOLE

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FORMAT: Final = 1
# No rule is longer: anything larger is not one.
MOST_BYTES: Final = 1 << 16
# The largest weight of a rule that is made here; what a file may say.
LARGEST: Final = 1000
MOST: Final = 1_000_000
MOST_BIAS: Final = MOST * WHOLE * (len(FIGURES) + 1)
FLOOR: Final = RULES["default"].floor
COMMENT: Final = "# A rule that neardup learned from labelled pairs. Its digest covers every value.\n"

Figures = npt.NDArray[np.uint16]
Codes = npt.NDArray[np.uint8]
Parts = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Weight:
    """How much a figure counts, and from which value on it speaks the other way."""

    figure: str
    weight: int
    middle: int


@dataclass(frozen=True, slots=True)
class Share:
    """A share in ten-thousandths, and the interval that holds the true one 19 times out of 20 (Wilson)."""

    right: int
    of: int
    share: int
    low: int
    high: int


@dataclass(frozen=True, slots=True)
class Learned:
    """What a rule was learned from, and how good it was on labels that it had not seen."""

    labels: int
    """Pairs that were used: those that any rule could accept, and that are not one text."""
    same: int
    """Those of them that are the same."""
    folds: int
    """Parts of the labels, each of which was judged by a rule that was learned from the others."""
    precision: Share
    recall: Share
    default_precision: Share
    """The same of the default rule, on the same labels."""
    default_recall: Share


@dataclass(frozen=True, slots=True)
class LearnedRule:
    """A rule: a weight for each figure in the order of the table, and what all pairs begin with."""

    weights: tuple[Weight, ...]
    bias: int
    learned: Learned
    figures: int = VERSION
    made_by: str = __version__

    @property
    def digest(self) -> str:
        """32 hexadecimal digits over all that the rule says."""
        said = json.dumps(asdict(self), sort_keys=True, separators=(",", ":"))
        return hashlib.blake2b(said.encode("ascii", "backslashreplace"), digest_size=16).hexdigest()

    def facts(self) -> dict[str, Any]:
        """All of it as plain values with its digest, as a manifest holds it."""
        return {**asdict(self), "digest": self.digest}

    @classmethod
    def of_facts(cls, facts: Any, where: str) -> LearnedRule:
        """The reverse of `facts`; *where* they are from, for an error."""
        return _of_facts(facts, where)

    def parts(self, figures: Figures) -> Parts:
        """What each figure adds to the score of each pair; the last column is what all pairs begin with."""
        weight = np.array([one.weight for one in self.weights], np.int64)
        middle = np.array([one.middle for one in self.weights], np.int64)
        found = np.empty((len(figures), len(weight) + 1), np.int64)
        found[:, :-1] = (figures.astype(np.int64) - middle) * weight
        found[:, -1] = self.bias
        return found

    def scores(self, figures: Figures) -> npt.NDArray[np.int64]:
        """How far each pair is on the side of the same (0 and more), or of others."""
        found: npt.NDArray[np.int64] = self.parts(figures).sum(axis=1)
        return found

    def judge(self, figures: Figures, code: Codes) -> tuple[npt.NDArray[np.bool_], Codes]:
        """Which pairs are accepted, and the reasons: *code* has those of the default rule.

        What is too different for that stays so, whatever the figures are.
        """
        parts = self.parts(figures)
        low = code == code_of("too-different")
        accepted = (parts.sum(axis=1) >= 0) & ~low
        # What weighed most for the verdict; of equal ones, the first.
        most = np.where(accepted[:, None], parts, -parts).argmax(axis=1)
        middle = np.array([one.middle for one in self.weights] + [0], np.int64)
        value = np.append(figures.astype(np.int64), np.zeros((len(figures), 1), np.int64), axis=1)
        above = value[np.arange(len(figures)), most] >= middle[most]
        said = learned_code(most, accepted=accepted, above=above)
        return accepted, np.where(low, code, said).astype(np.uint8)


def weighed(rule: LearnedRule, figures: Figures, count: int) -> list[tuple[str, int]]:
    """What weighed most on one pair, in words, each with its part of the score in per cent of all parts."""
    parts = rule.parts(figures.reshape(1, -1))[0, :-1]
    whole = max(int(np.abs(parts).sum()), 1)
    order = sorted(range(len(parts)), key=lambda at: (-abs(int(parts[at])), at))
    found = []
    for at in order[:count]:
        figure, middle = FIGURES[at], rule.weights[at].middle
        words = figure.more if int(figures[at]) >= middle else figure.less
        found.append((words, round(100 * int(parts[at]) / whole)))
    return found


# --- files -----------------------------------------------------------------------------------------------


def read_rule(path: str | os.PathLike[str]) -> LearnedRule:
    """The rule in a file."""
    name = check_path(path)
    with open(name, "rb") as file:
        data = file.read(MOST_BYTES + 1)
    return parse_rule(data, repr(name))


def parse_rule(data: bytes, where: str) -> LearnedRule:
    """The rule that the bytes of a file say; *where* they are from, for an error."""
    try:
        if len(data) > MOST_BYTES:
            raise ValueError("it is too long")
        said = tomllib.loads(data.decode("utf-8"))
    except (ValueError, RecursionError) as error:  # no UTF-8, no TOML
        raise DamagedFile(
            f"{where} is not a rule: {shown(' '.join(str(error).split()), 120)}; "
            "`neardup calibrate` writes one from labelled pairs"
        ) from None
    if "neardup-rule" not in said:
        raise DamagedFile(
            f"{where} is not a rule of neardup; `neardup calibrate` writes one from labelled pairs"
        )
    if said["neardup-rule"] != FORMAT:
        raise InvalidValue(
            f"{where} has format {shown(said['neardup-rule'])}, and this neardup reads format {FORMAT}; "
            "learn it again from the labels with `neardup calibrate`"
        )
    weights = said.get("weights")
    if isinstance(weights, dict):
        rows = [
            {"figure": name, "weight": row[0], "middle": row[1]}
            if isinstance(row, list) and len(row) == 2
            else None
            for name, row in weights.items()
        ]
        said["weights"] = rows
    del said["neardup-rule"]
    return _of_facts(said, where)


def to_toml(rule: LearnedRule) -> str:
    """The text of the file.

    >>> rule = LearnedRule(tuple(Weight(name, 0, 0) for name in NAMES), 1, _nothing())
    >>> parse_rule(to_toml(rule).encode(), "here") == rule
    True
    """
    lines = [COMMENT.rstrip("\n"), f"neardup-rule = {FORMAT}", f'digest = "{rule.digest}"']
    lines += [f"figures = {rule.figures}", f"made_by = {json.dumps(rule.made_by)}", f"bias = {rule.bias}"]
    lines += ["", "# What it was learned from; shares in ten-thousandths, on labels that it had not seen."]
    lines += ["[learned]"]
    learned = asdict(rule.learned)
    lines += [f"{name} = {value}" for name, value in learned.items() if isinstance(value, int)]
    for name, value in learned.items():
        if isinstance(value, dict):
            lines.append(f"{name} = {{{', '.join(f'{key} = {number}' for key, number in value.items())}}}")
    lines += ["", "# For each figure its weight, and the middle from which it is counted.", "[weights]"]
    lines += [f"{one.figure} = [{one.weight}, {one.middle}]" for one in rule.weights]
    return "\n".join(lines) + "\n"


def write_rule(rule: LearnedRule, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
    """Write the file; it appears only when it is complete."""
    with atomic_file(path, overwrite=overwrite) as file:
        file.write(to_toml(rule).encode())


def _nothing() -> Learned:
    share = Share(0, 0, 0, 0, WHOLE)
    return Learned(0, 0, 0, share, share, share, share)


class _Wrong(Exception):
    """What is wrong with a rule."""


def _of_facts(facts: Any, where: str) -> LearnedRule:
    try:
        said = _table(facts, {*(item.name for item in fields(LearnedRule)), "digest"}, "the rule")
        version = _number(said["figures"], "figures", 0, MOST)
        if version != VERSION:
            raise InvalidValue(
                f"{where} was learned on version {version} of the figures, and this neardup has version "
                f"{VERSION}; learn it again from the same labels with `neardup calibrate`"
            )
        rows = said["weights"]
        if not isinstance(rows, list | tuple):
            raise _Wrong("it has no weights")
        known = {"figure", "weight", "middle"}
        weights = tuple(_weight(_table(row, known, "a weight")) for row in rows)
        if tuple(one.figure for one in weights) != NAMES:
            raise _Wrong("its figures are not those of this neardup")
        made_by = said["made_by"]
        if not isinstance(made_by, str) or not re.fullmatch(r"[0-9A-Za-z.+-]{1,40}", made_by):
            raise _Wrong("it does not say which neardup made it")
        rule = LearnedRule(
            weights=weights,
            bias=_number(said["bias"], "bias", -MOST_BIAS, MOST_BIAS),
            learned=_learned(said["learned"]),
            figures=version,
            made_by=made_by,
        )
        if said["digest"] != rule.digest:
            raise _Wrong("its digest is that of another one; it was changed after it was learned")
    except _Wrong as wrong:
        raise DamagedFile(
            f"{where} is damaged: {wrong}; learn the rule again from the labels with `neardup calibrate`"
        ) from None
    return rule


def _table(said: Any, names: set[str], what: str) -> dict[str, Any]:
    """*said*, if it is a table that has exactly these names."""
    if not isinstance(said, Mapping):
        raise _Wrong(f"{what} is not a table")
    if odd := sorted(map(str, said.keys() ^ names)):
        raise _Wrong(
            f"{what} has no {odd[0]!r}"
            if odd[0] in names
            else f"{what} has {shown(odd[0])}, which is unknown"
        )
    return dict(said)


def _number(value: Any, name: str, least: int, most: int) -> int:
    if type(value) is not int or not least <= value <= most:
        raise _Wrong(f"{name} is {shown(value)}, and must be a whole number from {least} to {most}")
    return value


def _weight(row: dict[str, Any]) -> Weight:
    if not isinstance(row["figure"], str):
        raise _Wrong("a weight has no figure")
    name = shown(row["figure"])
    return Weight(
        row["figure"],
        _number(row["weight"], f"the weight of {name}", -MOST, MOST),
        _number(row["middle"], f"the middle of {name}", 0, WHOLE),
    )


def _learned(said: Any) -> Learned:
    row = _table(said, {item.name for item in fields(Learned)}, "learned")
    labels, same, folds = (_number(row[name], name, 0, 1 << 40) for name in ("labels", "same", "folds"))
    names = ("precision", "recall", "default_precision", "default_recall")
    return Learned(labels, same, folds, *(_share(row[name], name) for name in names))


def _share(said: Any, name: str) -> Share:
    row = _table(said, {item.name for item in fields(Share)}, name)
    return Share(**{key: _number(value, f"{name}.{key}", 0, 1 << 40) for key, value in row.items()})


def check_rule(rule: Any) -> LearnedRule:
    """A rule, or the one in the file of that name."""
    if isinstance(rule, LearnedRule):
        return rule
    if not isinstance(rule, str | os.PathLike):
        raise InvalidType(f"rule must be a LearnedRule or the path of its file, not {shown(rule)}")
    return read_rule(rule)
