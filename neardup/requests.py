"""Requests: what one run is to do, and what must be equal for it to use the parts of another."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field, replace
from typing import Final

from neardup import __version__
from neardup.contents import TEXT, Content
from neardup.guards import OFF
from neardup.schemes import Scheme
from neardup.settings import MEMORY, Settings
from neardup.sizes import USUAL, Sizes
from neardup.sources import Source
from neardup.sources.files import stamp

# The layout of checkpoints.
PARTS: Final = 9


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """Documents, and how they are to be deduplicated."""

    source: Source
    settings: Settings = field(default_factory=Settings)
    scheme: Scheme | None = None
    """None for the one that fits the number of documents."""
    content: Content = TEXT
    """What kind of documents they are."""
    protected: Source | None = None
    """Documents that stay whatever happens."""
    threads: int | None = None
    memory: int = MEMORY
    sizes: Sizes = USUAL

    @property
    def sources(self) -> list[Source]:
        """The input, and what is protected."""
        return [self.source] if self.protected is None else [self.source, self.protected]


def run_key(request: Request) -> str:
    """What must be equal for the parts of one run to be used by another; limits of guards do not matter.

    Inputs are identified by name, size and time; anything that is not a file equals no other.
    """
    inputs = [[stamp(one) for one in source.inputs] for source in request.sources]
    facts = {
        "version": [__version__, PARTS],
        "content": request.content.name,
        "settings": asdict(replace(request.settings, guards=OFF)),
        "scheme": request.scheme and request.scheme.digest,
        "reading": [source.request.facts() for source in request.sources],
        "inputs": inputs,
    }
    said = json.dumps(facts, sort_keys=True, default=str).encode()
    return hashlib.blake2b(said, digest_size=16).hexdigest()
