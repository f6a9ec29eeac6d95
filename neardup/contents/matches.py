"""What the searches of all contents share: the order of matches, and the scheme of an index."""

from __future__ import annotations

from typing import Final

from neardup.contents.model import Match
from neardup.errors import Said, SchemeMismatch, Setting
from neardup.index import Index
from neardup.schemes import Scheme
from neardup.schemes import scheme as scheme_of

NOT_VERIFIED: Final = "not verified"


def nearest_first(found: list[Match]) -> list[Match]:
    """The most similar ones first."""
    return sorted(found, key=lambda one: (-one.similarity, one.distance, one.id))


def scheme_of_index(index: Index, name: str | None, *known: str) -> Scheme:
    """The scheme that *index* was built with: the one named, or the one of *known* that fits."""
    if name is not None:
        found = scheme_of(name)
        if index.bits != found.bits or index.digest not in (None, found.digest):
            raise SchemeMismatch(
                f"the index was built with scheme {index.digest} of {index.bits} bits, not with {name!r} "
                f"({found.digest}, {found.bits} bits); name the one it was built with"
            )
        return found
    for one in known:
        found = scheme_of(one)
        if index.digest == found.digest:
            return found
    raise SchemeMismatch(
        Said(
            f"the index was built with scheme {index.digest or '(not named)'}, none of {', '.join(known)}; "
            "name it with ",
            Setting("scheme"),
        )
    )
