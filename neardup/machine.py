"""What speed depends on, and what a report of a fault should name."""

from __future__ import annotations

from platform import machine, python_version, system

from neardup import _native


def facts() -> dict[str, str]:
    """Each fact by its name, in words."""
    here = ", ".join(_native.simd_levels())
    return {
        "core": _native.__version__,
        "instructions": f"{_native.simd_level()} (this processor has {here}; NEARDUP_SIMD chooses)",
        "unicode": _native.UNICODE_VERSION,
        "python": python_version(),
        "threads": str(_native.usual_threads()),
        "system": f"{system()} {machine()}",
    }
