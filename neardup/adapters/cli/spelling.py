"""How the command line spells the settings that messages of the core name: here and nowhere else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from neardup.errors import Said, Setting

# Settings that are not spelled as an option of their name.
SPELLED: Final[dict[str, Callable[[Any], str]]] = {
    "out": lambda value: "-o",
    "inputs": lambda value: "the inputs (explain: with --input, apply: behind RUN)",
    "unverified": lambda value: "--verify none",
    "guards": lambda trips: f"give {' '.join(trip.option for trip in trips)}, or --no-guards",
}


def option(setting: Setting) -> str:
    """The option for a setting.

    >>> option(Setting("source_field")), option(Setting("out"))
    ('--source-field', '-o')
    """
    if setting.name in SPELLED:
        return SPELLED[setting.name](setting.value)
    return "--" + setting.name.replace("_", "-")


def spelled(message: object) -> str:
    """A message of the core, or an error, in the words of the command line."""
    if isinstance(message, Exception) and message.args:
        message = message.args[0] if isinstance(message.args[0], Said) else str(message)
    return message.spelled(option) if isinstance(message, Said) else str(message)
