"""Settings: everything a user may choose about what is a duplicate and what stays."""

from __future__ import annotations

import os
from dataclasses import InitVar, dataclass, field
from typing import Final

from neardup.checks import check_share, check_text, check_threads, whole
from neardup.errors import InvalidType, InvalidValue, Said, Setting, shown
from neardup.guards import OFF, GuardLimits
from neardup.keep import parse_keep
from neardup.schemes import Scheme
from neardup.schemes import scheme as scheme_of
from neardup.verifiers import (
    LearnedRule,
    Measure,
    check_rule,
    learned_measure,
    parse_measure,
    rule_named,
)
from neardup.verifiers.measures import with_floor

# 128 bits separate up to this many documents well enough. On 5,000 real documents, 256 bits propose a
# ninth of the pairs, and the whole run takes 0.6 of the time.
NARROW: Final = 2_000
# Bytes for texts that are verified, and for sorting fingerprints, unless the user says otherwise.
MEMORY: Final = 256 << 20


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything a user may choose about what is a duplicate and what stays."""

    similarity: float = 0.64
    recall: float = 0.95
    radius: int | None = None
    exact: bool = False
    verify: str = "default"
    rule: LearnedRule | str | os.PathLike[str] | None = None
    """A rule that was learned from answers (`neardup calibrate`), or its file: it decides instead of
    `verify`."""
    precision: InitVar[str | None] = None
    """How sure a verdict must be, in place of *verify*, whose rules its words name."""
    keep: str = "central,longest"
    subject: str | None = None
    """The field that says what a document is about: another value is another document, the same evidence."""
    within: str | None = None
    across: str | None = None
    source_field: str | None = None
    ignore_colour: bool = False
    """Whether an image in clearly different colours is still the same one."""
    guards: GuardLimits = field(default_factory=GuardLimits)

    def __post_init__(self, precision: str | None) -> None:
        check_share("similarity", self.similarity)
        check_share("recall", self.recall)
        if self.radius is not None:
            whole("radius", self.radius, 0)
        for name in ("exact", "ignore_colour"):
            if not isinstance(getattr(self, name), bool):
                raise InvalidType(f"{name} must be True or False, not {shown(getattr(self, name))}")
        for name in ("subject", "within", "across", "source_field"):
            if getattr(self, name) is not None:
                check_text(name, getattr(self, name))
        if self.within is not None and self.across is not None:
            raise InvalidValue("choose one of within and across")
        if self.guards is None or isinstance(self.guards, bool):
            object.__setattr__(self, "guards", GuardLimits() if self.guards else OFF)
        if not isinstance(self.guards, GuardLimits):
            raise InvalidType(
                f"guards must be Limits of neardup.guards, or False for none, not {shown(self.guards)}"
            )
        parse_keep(check_text("keep", self.keep))
        if precision is not None:
            object.__setattr__(self, "verify", rule_named(precision, self.verify))
        measure = parse_measure(check_text("verify", self.verify))
        if self.rule is not None:
            if self.verify != "default":
                raise InvalidValue(Said("choose one of ", Setting("rule"), " and ", Setting("verify")))
            object.__setattr__(self, "rule", check_rule(self.rule))
        elif measure.learned is not None:
            object.__setattr__(self, "rule", measure.learned)
            object.__setattr__(self, "verify", "default")
        _ = self.measure  # what it cannot be is said now

    @property
    def learned(self) -> LearnedRule | None:
        """The rule that was learned and decides, if one does."""
        return self.rule if isinstance(self.rule, LearnedRule) else None

    @property
    def measure(self) -> Measure:
        """What decides on a pair of texts."""
        if self.learned is not None:
            return with_floor(learned_measure(self.learned), self.similarity)
        return parse_measure(self.verify, self.similarity)

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields of a document that these settings use."""
        asked = (*parse_keep(self.keep).fields, self.subject, self.within, self.across)
        asked += (self.source_field,)
        return tuple(dict.fromkeys(name for name in asked if name is not None))


def default_scheme(documents: int) -> Scheme:
    """The scheme for a collection of this many documents, unless the user names one."""
    return scheme_of("text", bits=128 if documents <= NARROW else 256)


def check_choices(settings: Settings, scheme: Scheme | None, threads: int | None) -> None:
    """Raise if a run with these settings is impossible, whatever the content; before it begins."""
    check_threads(threads)
    if settings.radius is not None:
        widest = default_scheme(NARROW + 1) if scheme is None else scheme
        whole("radius", settings.radius, 0, widest.bits)
