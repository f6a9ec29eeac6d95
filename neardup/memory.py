"""Memory that is given back to the system between the stages of a run."""

from __future__ import annotations

import pyarrow as pa

from neardup import _native


def give_back() -> None:
    """Give the system the memory that the last stage no longer needs."""
    pa.default_memory_pool().release_unused()
    _native.give_back()
