"""What neardup raises.

Every error says what is wrong, with the value, and the way out. Each is a `NeardupError`
and also the built-in that a caller would expect.
"""

from __future__ import annotations


class NeardupError(Exception):
    """The base of everything that neardup raises on purpose."""


class InvalidValue(NeardupError, ValueError):
    """A value of the right type that cannot be used."""


class InvalidType(NeardupError, TypeError):
    """A value of the wrong type."""


class UnknownName(NeardupError, ValueError):
    """A part, scheme or rule that no table holds."""


class SchemeMismatch(NeardupError, ValueError):
    """Fingerprints of two schemes were about to be compared."""


class DamagedFile(NeardupError, ValueError):
    """A file of ours whose bytes are not what was written."""


class RefusedInput(NeardupError, ValueError):
    """An input file that cannot be read at all."""


class LimitReached(NeardupError, RuntimeError):
    """A limit, the disk or a permission stopped the work."""


class GuardStopped(NeardupError, RuntimeError):
    """A guard stopped a run that was about to do something absurd."""


class MissingExtra(NeardupError, ImportError):
    """An optional package is needed and not installed."""
