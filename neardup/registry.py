"""Tables of named parts: a name in text, such as `chars:3`, to the part it means."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Generic, TypeVar

from neardup.errors import InvalidValue, UnknownName, shown

Part = TypeVar("Part")


class Registry(Generic[Part]):
    """Parts by name. A name may carry an argument after a colon: `chars:3`.

    >>> sizes = Registry("size", {"small": lambda: 1, "of": lambda n: int(n)})
    >>> sizes.part("small"), sizes.part("of:7")
    (1, 7)
    >>> sizes.part("huge")
    Traceback (most recent call last):
    neardup.errors.UnknownName: unknown size 'huge'; known: of, small
    """

    def __init__(
        self,
        kind: str,
        rows: Mapping[str, Callable[..., Part]],
        *,
        written: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """*written* says how to write a name that needs an argument, for the error about an unknown one."""
        self.kind = kind
        self._rows = dict(rows)
        self._written = dict(written)

    def part(self, text: str) -> Part:
        """The part that *text* names, built with its argument if it has one."""
        name, colon, argument = text.partition(":")
        if name not in self._rows:
            known = ", ".join(self._written.get(row, row) for row in sorted(self._rows))
            raise UnknownName(f"unknown {self.kind} {shown(text)}; known: {known}")
        try:
            return self._rows[name](argument) if colon else self._rows[name]()
        except TypeError:
            need = "takes no argument" if colon else "needs an argument"
            raise InvalidValue(f"{self.kind} {shown(text)}: {name!r} {need}") from None

    def __contains__(self, name: object) -> bool:
        return name in self._rows

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)


def plain_number(argument: str, lowest: int, highest: int) -> int | None:
    """The number from *lowest* to *highest* that *argument* writes in plain digits, or None.

    >>> plain_number("3", 1, 9), plain_number("10", 1, 9), plain_number("٣", 1, 9)
    (3, None, None)
    """
    if not argument.isascii() or not argument.isdigit() or len(argument) > len(str(highest)):
        return None
    number = int(argument)
    return number if lowest <= number <= highest else None
