"""How inputs are read: the user's options, in one place, and what a reader is asked for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Final

from neardup.errors import InvalidType, UnknownName, shown
from neardup.sizes import USUAL
from neardup.sources.formats import FORMATS
from neardup.sources.limits import ANY, DEFAULT, InputLimits, Tolerance

DEFAULT_ID: Final = "id"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How the inputs are read. Without *id_field*, the field `id` is used if there is one."""

    text_field: str = "text"
    id_field: str | None = None
    format: str | None = None
    html: bool = False
    limits: InputLimits = DEFAULT
    tolerance: Tolerance = ANY

    def __post_init__(self) -> None:
        for name, value in (("text_field", self.text_field), ("id_field", self.id_field)):
            if not isinstance(value, str) and (value is not None or name == "text_field"):
                raise InvalidType(f"{name} must be the name of a field, not {shown(value)}")
        if self.format is not None and self.format not in FORMATS:
            raise UnknownName(f"unknown format {self.format!r}; known: {', '.join(FORMATS)}")

    def facts(self) -> dict[str, Any]:
        """What decides which documents are read, for a manifest."""
        return {
            "text_field": self.text_field,
            "id_field": self.id_field,
            "format": self.format,
            "html": self.html,
            "limits": asdict(self.limits),
        }

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Reading:
        """How a run read whose manifest has these *settings*."""
        return cls(
            text_field=settings.get("text_field") or "text",
            id_field=settings.get("id_field"),
            format=settings.get("format"),
            html=bool(settings.get("html")),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Request(Reading):
    """The same, and what else a reader is asked for: extra fields, and the records as they are."""

    fields: tuple[str, ...] = ()
    raw: bool = False
    block: int = USUAL.block
    """Bytes of texts in a batch."""

    @classmethod
    def of_reading(cls, reading: Reading, extra: Iterable[str], block: int = USUAL.block) -> Request:
        """What *reading* says, and the *extra* fields."""
        said = {part.name: getattr(reading, part.name) for part in fields(Reading)}
        return cls(**said, fields=tuple(extra), block=block)

    @property
    def id_name(self) -> str:
        return DEFAULT_ID if self.id_field is None else self.id_field
