"""What a calibration is asked for, and what it found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from neardup.checks import check_share
from neardup.errors import InvalidValue
from neardup.settings import Settings
from neardup.verifiers import LearnedRule

Rows = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

MODES: Final = ("default", "strict", "loose")
SIMILARITIES: Final = (0.60, 0.64, 0.68, 0.72, 0.76, 0.80, 0.84, 0.88, 0.92, 0.96)
SAMPLE: Final = 20_000
COPIES: Final = 1_000


@dataclass(frozen=True, slots=True)
class Choices:
    """What a user may say about a calibration."""

    sample: int = SAMPLE
    """How many documents are sampled; a smaller collection is taken whole."""
    copies: int = COPIES
    """Edited copies that are planted, of all kinds together."""
    edits: int = 20
    """Copies with up to this many per cent changed should be found; more is shown, but does not count."""
    precision: float = 0.95
    """The least precision that is wanted."""
    recall: float = 0.95
    """The share of pairs at a similarity that the search for candidates must not lose."""
    seed: int = 0

    def __post_init__(self) -> None:
        check_share("precision", self.precision)
        check_share("recall", self.recall)
        for name, least in (("sample", 2), ("copies", 1), ("edits", 1)):
            if getattr(self, name) < least:
                raise InvalidValue(f"{name} must be at least {least}, not {getattr(self, name)}")


@dataclass(frozen=True, slots=True)
class Label:
    """A person's verdict on two documents."""

    one: str
    other: str
    same: bool


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """Pairs, one row each: what was measured and what each mode says."""

    plain: npt.NDArray[np.float64]
    distance: npt.NDArray[np.int64]
    identical: Flags
    accepted: dict[str, Flags]
    reason: dict[str, npt.NDArray[np.uint8]]

    def __len__(self) -> int:
        return len(self.plain)

    def found(self, mode: str, similarity: float, radius: int) -> Flags:
        """Which pairs a run with that setting would accept."""
        near = (self.distance <= radius) & (self.plain >= similarity)
        return self.identical | (near & self.accepted[mode])

    def rows(self, rows: Any) -> Measured:
        """Some of them."""
        return Measured(
            self.plain[rows],
            self.distance[rows],
            self.identical[rows],
            {mode: values[rows] for mode, values in self.accepted.items()},
            {mode: values[rows] for mode, values in self.reason.items()},
        )

    @classmethod
    def joined(cls, parts: Sequence[Measured]) -> Measured:
        """The rows of all *parts*."""
        return cls(
            np.concatenate([part.plain for part in parts]),
            np.concatenate([part.distance for part in parts]),
            np.concatenate([part.identical for part in parts]),
            {mode: np.concatenate([part.accepted[mode] for part in parts]) for mode in MODES},
            {mode: np.concatenate([part.reason[mode] for part in parts]) for mode in MODES},
        )


@dataclass(frozen=True, slots=True)
class Row:
    """One setting and what to expect of it. A figure is None if nothing can be said."""

    mode: str
    similarity: float
    radius: int
    recall: float | None
    margin: float | None
    """The recall is this close to the true one 19 times out of 20."""
    precision: float | None
    """Expected: how often the reasons for which pairs are accepted here were right on other collections."""
    pairs: int
    """Pairs of different texts that would be accepted among the sampled documents, as they are."""
    doubtful: int
    """Those of them that are not nearly identical."""
    removed: int
    """How many of the sampled documents would be removed."""
    labelled: int = 0
    """Labelled pairs that would be accepted: what the measured precision rests on."""
    measured_precision: float | None = None
    measured_recall: float | None = None

    @property
    def looser(self) -> bool:
        """Whether it accepts what the default does not."""
        return self.mode == "loose" or (self.mode == "default" and self.similarity < Settings().similarity)

    @property
    def options(self) -> str:
        """The options of `neardup dedupe` that select it."""
        mode = "" if self.mode == "default" else f" --{self.mode}"
        return f"--similarity {self.similarity:g}{mode}"

    @property
    def best_recall(self) -> float | None:
        """Measured on the labels if there are any, else on the planted copies."""
        return self.recall if self.measured_recall is None else self.measured_recall


@dataclass(frozen=True, slots=True)
class EditRow:
    """One kind and amount of editing: how similar the copies are, and the share each setting finds."""

    name: str
    kind: str
    percent: int
    counted: bool
    copies: int
    similarity: float
    """The middle one of the copies."""
    recall: dict[str, list[float]]
    """Mode -> a figure for each of the similarities."""


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A pair of the documents' own to be reviewed and labelled: one that the marked setting accepts, or one
    of which an answer would teach a rule most."""

    one: str
    other: str
    similarity: float
    reason: str
    texts: tuple[str, str] = field(default=("", ""), repr=False)
    """For the page."""
    accepted: bool = True
    """Whether the default rule accepts it."""

    def facts(self) -> dict[str, Any]:
        """The same without the texts."""
        return {name: value for name, value in asdict(self).items() if name != "texts"}


@dataclass(frozen=True, slots=True)
class Calibration:
    """Everything that was found."""

    documents: int
    sampled: int
    copies: int
    rounds: int
    bits: int
    scheme: str
    similarities: tuple[float, ...]
    rows: tuple[Row, ...]
    edits: tuple[EditRow, ...]
    labels: int
    recommended: Row | None
    """None if no setting is good enough."""
    marked: Row
    """The recommended one, or the one that comes nearest."""
    why: str
    suggestions: tuple[Suggestion, ...]
    choices: Choices
    learned: LearnedRule | None = None
    """The rule that the labels make, if they are enough."""
    unlearned: str = ""
    """Why they are not, if there are any."""
    asked_next: tuple[Suggestion, ...] = ()
    """The pairs of which an answer would teach it most, those first."""

    def facts(self) -> dict[str, Any]:
        """All of it as plain values, for JSON."""
        found = asdict(replace(self, suggestions=(), asked_next=()))
        for name in ("suggestions", "asked_next"):
            found[name] = [pair.facts() for pair in getattr(self, name)]
        if self.learned is not None:
            found["learned"] = self.learned.facts()
        return {**found, "command": self.command}

    def of(self, mode: str) -> list[Row]:
        """The rows of one mode, by similarity."""
        return [row for row in self.rows if row.mode == mode]

    def precision(self, row: Row) -> float | None:
        """Measured if there are labels, else expected."""
        return row.measured_precision if self.labels else row.precision

    @property
    def command(self) -> str | None:
        """The options of `neardup dedupe` for the recommended setting."""
        return None if self.recommended is None else self.recommended.options
