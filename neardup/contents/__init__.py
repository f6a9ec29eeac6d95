"""Contents: what kind of documents there are. To add one, write its file and add its line here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from neardup.contents.images import Images
from neardup.contents.model import Content, Flow, Match, Side, Wanted, Words, Work
from neardup.contents.texts import Texts
from neardup.registry import Registry
from neardup.schemes import Scheme
from neardup.schemes import scheme as scheme_of

__all__ = [
    "CONTENTS",
    "TEXT",
    "Content",
    "Flow",
    "Match",
    "Side",
    "Wanted",
    "Words",
    "Work",
    "content_for",
    "content_of",
    "content_of_run",
]

CONTENTS: Final[Registry[Content]] = Registry("content", {"text": Texts, "image": Images})
TEXT: Final = CONTENTS.part("text")


def content_of(scheme: Scheme | None) -> Content:
    """The content that a scheme is for; that of texts without one."""
    rows = map(CONTENTS.part, CONTENTS)
    return next((one for one in rows if scheme is not None and one.features == scheme.features), TEXT)


def content_for(data: Any, *, format: str | None = None, scheme: str | Scheme | None = None) -> Content:
    """The content that *format* or *scheme* says; without these the one that claims *data*, or texts."""
    rows = [CONTENTS.part(name) for name in CONTENTS]
    if format is not None and (said := [one for one in rows if one.format == format]):
        return said[0]
    if scheme is not None:
        return content_of(scheme_of(scheme))
    return next((one for one in rows if format is None and one.claims(data)), TEXT)


def content_of_run(manifest: Mapping[str, Any]) -> Content:
    """The content of a finished run. Older ones do not name it, but how they read and their scheme."""
    name, settings, scheme = (manifest.get(key) for key in ("content", "settings", "scheme"))
    if isinstance(name, str) and name in CONTENTS:
        return CONTENTS.part(name)
    format = settings.get("format") if isinstance(settings, Mapping) else None
    features = scheme.get("features") if isinstance(scheme, Mapping) else None
    for one in map(CONTENTS.part, CONTENTS):
        pairs = ((one.format, format), (one.features, features))
        if any(own is not None and own == said for own, said in pairs):
            return one
    return TEXT
