"""neardup: find near-duplicate documents and images, prove what was found, remove only what was proved."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from neardup.clusters import components, groups
    from neardup.collections import Collection, Stream
    from neardup.distances import distance, similarity
    from neardup.errors import NeardupError
    from neardup.fingerprints import Fingerprints, format, parse
    from neardup.index import Index
    from neardup.pairs import join, join_batches
    from neardup.pipeline import dedupe
    from neardup.planner import plan
    from neardup.quotations import Leaks, leaks
    from neardup.results import Result
    from neardup.schemes import Scheme, scheme
    from neardup.settings import Settings
    from neardup.timelines import timeline
    from neardup.verifiers import verify

__version__ = "0.1.0"

# Names are looked up when first used, so that `neardup --help` loads no heavy package.
_HOME = {
    "distance": "neardup.distances",
    "similarity": "neardup.distances",
    "NeardupError": "neardup.errors",
    "Fingerprints": "neardup.fingerprints",
    "format": "neardup.fingerprints",
    "parse": "neardup.fingerprints",
    "Scheme": "neardup.schemes",
    "scheme": "neardup.schemes",
    "Collection": "neardup.collections",
    "Stream": "neardup.collections",
    "components": "neardup.clusters",
    "groups": "neardup.clusters",
    "join": "neardup.pairs",
    "Result": "neardup.results",
    "Settings": "neardup.settings",
    "dedupe": "neardup.pipeline",
    "join_batches": "neardup.pairs",
    "Index": "neardup.index",
    "plan": "neardup.planner",
    "verify": "neardup.verifiers",
    "timeline": "neardup.timelines",
    "Leaks": "neardup.quotations",
    "leaks": "neardup.quotations",
}

__all__ = [
    "Collection",
    "Fingerprints",
    "Index",
    "Leaks",
    "NeardupError",
    "Result",
    "Scheme",
    "Settings",
    "Stream",
    "components",
    "dedupe",
    "distance",
    "format",
    "groups",
    "join",
    "join_batches",
    "leaks",
    "parse",
    "plan",
    "scheme",
    "similarity",
    "timeline",
    "verify",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'neardup' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
