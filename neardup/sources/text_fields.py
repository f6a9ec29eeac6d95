"""Text fields: which fields of a record are its text, and how several become one.

`title,body` is the title, a blank line and the body: everything that looks at the document sees this one
text, so words of two fields are next to each other where the fields meet. `title:2,body` says the title
twice. A field that a record lacks, or that is empty, leaves nothing behind.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

from neardup.errors import InvalidType, InvalidValue, Said, Setting, shown
from neardup.registry import plain_number

BETWEEN: Final = "\n\n"
MOST: Final = 64
"""Fields of a text, each as often as it counts."""
NAME: Final = Setting("text_field")

_LETTER: Final = re.compile(r"\\[,:\\]|.", re.DOTALL)
_SPECIAL: Final = re.compile(r"\\(?=[,:\\]|\Z)|,|:(?=[0-9]+\Z)")


def checked(value: Any) -> str:
    r"""*value*, what a user gives as text_field, in its one spelling: names in a list are taken as they are.

    >>> checked("title,body"), checked(["title", "title", "body"]), checked(["a,b"]), checked("dc:title")
    ('title,body', 'title:2,body', 'a\\,b', 'dc:title')
    """
    if isinstance(value, str):
        names = names_of(value)
    elif isinstance(value, Sequence) and all(isinstance(name, str) for name in value):
        names = tuple(value)
    else:
        raise InvalidType(Said(NAME, f" must be the name of a field, or several, not {shown(value)}"))
    if not names or ("" in names and len(names) > 1):
        what = "names no field" if not names else "has an empty name among others"
        raise InvalidValue(Said(NAME, f" {shown(value)} {what}; write it as title,body"))
    if len(names) > MOST:
        raise InvalidValue(Said(NAME, f" makes a text of {len(names)} fields; {MOST} are the most"))
    parts: list[tuple[str, int]] = []
    for name in names:
        if parts and parts[-1][0] == name:
            parts[-1] = name, parts[-1][1] + 1
        else:
            parts.append((name, 1))
    return ",".join(
        _SPECIAL.sub(r"\\\g<0>", name) + (f":{times}" if times > 1 else "") for name, times in parts
    )


@lru_cache(64)
def names_of(text: str) -> tuple[str, ...]:
    r"""The fields that *text* names, each as often as it counts. `\,` and `\:` are letters of a name.

    >>> names_of("title:2,body"), names_of(r"a\,b,c\:2"), names_of("dc:title")
    (('title', 'title', 'body'), ('a,b', 'c:2'), ('dc:title',))
    """
    letters: list[list[str]] = [[]]
    for letter in _LETTER.findall(text):
        if letter == ",":
            letters.append([])
        else:
            letters[-1].append(letter)
    return tuple(name for part in letters for name in _part(part, text))


def _part(letters: list[str], text: str) -> list[str]:
    """One name as often as it counts."""
    times = 1
    if ":" in letters:
        colon = len(letters) - 1 - letters[::-1].index(":")
        digits = "".join(letters[colon + 1 :])
        if digits.isascii() and digits.isdigit():
            number = plain_number(digits, 1, MOST)
            if number is None:
                raise InvalidValue(
                    Said(
                        NAME,
                        f" {shown(text)}: a field counts 1 to {MOST} times, not {digits[:20]}; "
                        "a colon of the name itself is written \\:",
                    )
                )
            letters, times = letters[:colon], number
    return ["".join(letter[-1] for letter in letters)] * times


def one_text(parts: Sequence[str]) -> str:
    """The text of which *parts* are the fields.

    >>> one_text(["A title", "", "and a body"])
    'A title\\n\\nand a body'
    """
    return BETWEEN.join(filter(None, parts))


def no_field(names: Sequence[str]) -> str:
    """The reason of a record that has none of *names*.

    >>> no_field(("title", "title", "body"))
    "has no field 'title' or 'body'"
    """
    return f"has no field {' or '.join(map(repr, dict.fromkeys(names)))}"


def all_null(names: Sequence[str]) -> str:
    """The reason of a record in which all of *names* are null.

    >>> all_null(("title", "title", "body"))
    "its 'title' and 'body' are null"
    """
    different = list(map(repr, dict.fromkeys(names)))
    return f"its {' and '.join(different)} {'is' if len(different) == 1 else 'are'} null"
