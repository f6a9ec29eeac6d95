"""How inputs are read: the user's options, in one place, and what a reader is asked for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Final, cast

from neardup.errors import InvalidType, UnknownName, shown
from neardup.sizes import USUAL
from neardup.sources.formats import FORMATS
from neardup.sources.limits import ANY, DEFAULT, InputLimits, Tolerance
from neardup.sources.text_fields import checked, names_of

DEFAULT_ID: Final = "id"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How the inputs are read. Without *id_field*, the field `id` is used if there is one.

    *text_field* names one field, or several (`title,body`, or a list); it is kept in its one spelling.
    """

    text_field: str | Sequence[str] = "text"
    id_field: str | None = None
    format: str | None = None
    html: bool = False
    limits: InputLimits = DEFAULT
    tolerance: Tolerance = ANY

    def __post_init__(self) -> None:
        object.__setattr__(self, "text_field", checked(self.text_field))
        if self.id_field is not None and not isinstance(self.id_field, str):
            raise InvalidType(f"id_field must be the name of a field, not {shown(self.id_field)}")
        if self.format is not None and self.format not in FORMATS:
            raise UnknownName(f"unknown format {self.format!r}; known: {', '.join(FORMATS)}")

    @property
    def text_names(self) -> tuple[str, ...]:
        """The fields that are the text, in their order, each as often as it counts."""
        return names_of(cast(str, self.text_field))

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
