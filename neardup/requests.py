"""Requests: what one run is to do, and what must be equal for it to use the parts of another."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from neardup import __version__
from neardup.contents import TEXT, Content
from neardup.guards import OFF
from neardup.schemes import Scheme
from neardup.settings import MEMORY, Settings
from neardup.sizes import USUAL, Sizes
from neardup.sources import Source
from neardup.sources.files import stamp

if TYPE_CHECKING:
    import pyarrow as pa

# The layout of checkpoints.
PARTS: Final = 9


@dataclass(frozen=True, slots=True, eq=False)
class Earlier:
    """What a finished run measured, to be decided anew (`rejudging`)."""

    run: str
    """Its name."""
    path: str
    digest: str
    """Of its evidence."""
    evidence: pa.Table
    settings: Settings
    scheme: str
    """The digest of its scheme."""
    radius: int
    plan: str
    alike: tuple[float, tuple[str, ...]]
    """The largest share of documents with one fingerprint, and some of them."""
    inputs: tuple[dict[str, Any], ...]
    """The files that it read, as its manifest has them."""
    protected: tuple[dict[str, Any], ...]


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
    only_protected: bool = False
    """Whether documents of the input are compared with protected ones alone."""
    threads: int | None = None
    memory: int = MEMORY
    sizes: Sizes = USUAL
    earlier: Earlier | None = None
    """A finished run whose measured pairs are taken, instead of looking for some."""

    @property
    def sources(self) -> list[Source]:
        """The input, and what is protected."""
        return [self.source] if self.protected is None else [self.source, self.protected]


def run_key(request: Request) -> str:
    """What must be equal for the parts of one run to be used by another; limits of guards do not matter.

    Inputs are identified by name, size and time; anything that is not a file equals no other.
    """
    inputs = [[stamp(one) for one in source.inputs] for source in request.sources]
    facts: dict[str, Any] = {
        "version": [__version__, PARTS],
        "content": request.content.name,
        "settings": asdict(replace(request.settings, guards=OFF)),
        "scheme": request.scheme and request.scheme.digest,
        "reading": [source.request.facts() for source in request.sources],
        "inputs": inputs,
    }
    if request.only_protected:
        facts["only_protected"] = True
    if request.earlier is not None:
        facts["earlier"] = [request.earlier.run, request.earlier.digest]
    said = json.dumps(facts, sort_keys=True, default=str).encode()
    return hashlib.blake2b(said, digest_size=16).hexdigest()
