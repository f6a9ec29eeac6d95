"""What the HTM names raise: our errors that are the original's RuntimeError as well."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from neardup.errors import DamagedFile, InvalidValue


class RefusedValue(InvalidValue, RuntimeError):
    """A value that the original refuses, or would not survive."""


class RefusedState(DamagedFile, RuntimeError):
    """A file, a text or a pickle that holds something else."""


@contextmanager
def as_runtime_error() -> Iterator[None]:
    """Any refused value in the block is a RuntimeError, too."""
    try:
        yield
    except InvalidValue as error:
        if isinstance(error, RuntimeError):
            raise
        raise RefusedValue(str(error)) from None
