"""What a collection answers: matches, what became of documents that were added, clusters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

NEW, UNCHANGED, UPDATED = "new", "unchanged", "updated"
IDENTICAL, NEAR, SILENT, BAD = "identical", "near-duplicate", "without information", "bad"
STATUSES: Final = (NEW, UNCHANGED, UPDATED, IDENTICAL, NEAR, SILENT, BAD)
NOT_VERIFIED: Final = "not verified: only its fingerprint was given"


@dataclass(frozen=True, slots=True)
class Match:
    """A stored document that is near the one in question, and why."""

    id: str
    bank: str
    distance: int
    """Bits in which the fingerprints differ."""
    similarity: float
    """Measured on the contents; estimated from the distance if not *verified*."""
    weighted: float
    """The same, in which common text counts little; for images the share of blocks that agree."""
    rare: float
    """The same, over text that few documents have; for images the share of fine blocks."""
    accepted: bool
    """Whether they are near-duplicates."""
    reason: str
    verified: bool
    cluster: int
    fields: Mapping[str, Any] = field(default_factory=dict)

    def facts(self) -> dict[str, Any]:
        """As JSON has it."""
        return {name: getattr(self, name) for name in self.__slots__ if name != "fields"} | {
            "fields": dict(self.fields)
        }


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of one document that was added."""

    id: str
    status: str
    """new, unchanged, updated, identical, near-duplicate, without information, or bad."""
    stored: bool
    """Whether it is in the collection now."""
    cluster: int | None = None
    matches: tuple[Match, ...] = ()
    """What it matches, the nearest first: none where it was not looked for."""
    reason: str = ""
    """Why it is bad."""

    def facts(self) -> dict[str, Any]:
        """As JSON has it."""
        found: dict[str, Any] = {"id": self.id, "status": self.status, "stored": self.stored}
        if self.cluster is not None:
            found["cluster"] = self.cluster
        if self.reason:
            found["reason"] = self.reason
        return found | {"matches": [match.facts() for match in self.matches]}


@dataclass(frozen=True, slots=True)
class Added:
    """What one call of `add` did: an answer for each document, in their order."""

    answers: tuple[Answer, ...]
    change: int
    """The number of the last change: whoever has seen it sees these documents."""

    def __len__(self) -> int:
        return len(self.answers)

    def __iter__(self) -> Iterator[Answer]:
        return iter(self.answers)

    def __getitem__(self, at: int) -> Answer:
        return self.answers[at]

    def counts(self) -> dict[str, int]:
        """How many documents have each status."""
        return {
            status: number
            for status in STATUSES
            if (number := sum(answer.status == status for answer in self.answers))
        }


@dataclass(frozen=True, slots=True)
class Member:
    """A document of a cluster, and what was measured of it and the keeper."""

    id: str
    bank: str
    keeps: bool
    """Whether its content is that of the keeper."""
    similarity: float
    reason: str


@dataclass(frozen=True, slots=True)
class Cluster:
    """A keeper, and documents that were each compared with it and accepted."""

    number: int
    """Given once and never again to another cluster."""
    keeper: str
    """The id of the first document with the content that was there first."""
    members: tuple[Member, ...]

    def facts(self) -> dict[str, Any]:
        """As JSON has it."""
        members = [{name: getattr(one, name) for name in one.__slots__} for one in self.members]
        return {"cluster": self.number, "keeper": self.keeper, "members": members}
