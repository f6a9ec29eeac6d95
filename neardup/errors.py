"""What neardup raises.

Every error says what is wrong, with the value, and the way out. Each is a `NeardupError`
and also the built-in that a caller would expect.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple


class NeardupError(Exception):
    """The base of everything that neardup raises on purpose."""


class InvalidValue(NeardupError, ValueError):
    """A value of the right type that cannot be used."""


class InvalidType(NeardupError, TypeError):
    """A value of the wrong type."""


class UnknownName(NeardupError, ValueError):
    """A part, scheme or rule that is in no table."""


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


class Locked(LimitReached):
    """A collection that another process or thread is writing."""


class Gone(NeardupError, RuntimeError):
    """A collection that was replaced by another one since it was opened."""


class Conflict(NeardupError, ValueError):
    """Something changed, or was said otherwise, since it was looked at."""


class GuardStopped(NeardupError, RuntimeError):
    """A guard stopped a run that was about to do something absurd."""


class Cancelled(NeardupError, RuntimeError):
    """The observer of a run asked it to end."""


class MissingExtra(NeardupError, ImportError):
    """An optional package is needed and not installed, or cannot be imported."""


class Setting(NamedTuple):
    """The name of a setting in a message; whoever shows the message may spell it as its users write it."""

    name: str
    value: Any = None
    words: str | None = None
    """What Python says instead of the name."""

    def __str__(self) -> str:
        return self.name if self.words is None else self.words


class Said(str):
    """A message that names settings. As text it spells them as Python does.

    >>> message = Said("choose one of ", Setting("within"), " and ", Setting("across"))
    >>> print(message, "|", message.spelled(lambda one: f"--{one.name}"))
    choose one of within and across | choose one of --within and --across
    """

    parts: tuple[str | Setting, ...]

    def __new__(cls, *parts: str | Setting) -> Said:
        self = super().__new__(cls, "".join(map(str, parts)))
        self.parts = parts
        return self

    def spelled(self, spell: Callable[[Setting], str]) -> str:
        """The message with every setting as *spell* writes it."""
        return "".join(spell(part) if isinstance(part, Setting) else part for part in self.parts)


def unusable(need: str, package: str, extra: str, error: ImportError) -> MissingExtra:
    """Why *need* has no *package*: it is not installed, or importing it raised *error*.

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
