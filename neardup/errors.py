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


class ChangedInput(RefusedInput):
    """An input that did not give the same documents when it was read again."""


class LimitReached(NeardupError, RuntimeError):
    """A limit, the disk or a permission stopped the work."""


class NotWritten(LimitReached, OSError):
    """A file could not be written: disk full, no permission, no such folder."""


class ChangedFile(LimitReached):
    """Another program changed a file of ours since it was read."""


class GuardStopped(NeardupError, RuntimeError):
    """A guard stopped a run that was about to do something absurd."""


class MissingExtra(NeardupError, ImportError):
    """An optional package is needed and not installed, or cannot be imported."""


def unusable(need: str, package: str, extra: str, error: ImportError) -> MissingExtra:
    """Why *need* has no *package*: it is not there, or it is there and *error* came out of it.

    >>> str(unusable("WARC", "no_such_package", "warc", ImportError("?")))
    "WARC needs no_such_package; install it: pip install 'neardup[warc]'"
    """
    from importlib.util import find_spec

    if find_spec(package) is None:
        return MissingExtra(f"{need} needs {package}; install it: pip install 'neardup[{extra}]'")
    return MissingExtra(
        f"{need} needs {package}; it is installed but cannot be imported: {' '.join(str(error).split())}; "
        f"install one that fits: pip install --upgrade 'neardup[{extra}]'"
    )


def shown(value: object, length: int = 60) -> str:
    """*value* for a message: in one line of at most *length* characters, whatever it is.

    >>> shown("x" * 99, 9), shown(10**9999)
    ("'xxxxx...", 'int')
    """
    try:
        text = repr(value)
    except Exception:  # such as an integer of more digits than Python prints
        text = type(value).__name__
    text = " ".join(text.split()) if "\n" in text else text
    return text if len(text) <= length else text[: length - 3] + "..."
