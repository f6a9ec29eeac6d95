"""Seals: how a user's neardup recognises what it wrote itself.

A run and an undo log say which files go and which come back. A digest shows that one of them is
damaged, but a forger writes the digests as well. A seal is made with a key that only
the user can read, created when it is first needed: without the key nobody can make or change what
is sealed. The key never leaves the machine, and losing it only means having to name folders.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import stat
from contextlib import suppress
from typing import Final

KEY: Final = "seal.key"
BYTES: Final = 32


def state_folder() -> str:
    """Where the key is: NEARDUP_STATE, or the user's folder for such things."""
    home = os.environ.get("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local", "state")
    return os.environ.get("NEARDUP_STATE") or os.path.join(home, "neardup")


def own_key(*, make: bool = False) -> bytes | None:
    """The key of the user; with *make*, one is drawn if there is none. None if there cannot be one."""
    path = os.path.join(state_folder(), KEY)
    with suppress(OSError):
        if make and not os.path.lexists(path):
            _draw(path)
        return _read(path)
    return None


def _read(path: str) -> bytes | None:
    """The key, if nobody else can have written or read it."""
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    with os.fdopen(os.open(path, flags | getattr(os, "O_BINARY", 0)), "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            return None
        if hasattr(os, "geteuid") and (status.st_uid != os.geteuid() or status.st_mode & 0o077):
            return None
        found = file.read(BYTES + 1)
    return found if len(found) == BYTES else None


def _draw(path: str) -> None:
    """A new key under a name that is free; if two processes draw one, the first one's stays."""
    folder = os.path.dirname(path)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    drawn = os.path.join(folder, f".{secrets.token_hex(8)}.tmp")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    try:
        with os.fdopen(os.open(drawn, flags, 0o600), "wb") as file:
            file.write(secrets.token_bytes(BYTES))
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(drawn, path)
        except FileExistsError:
            pass
        except OSError:  # a file system without hard links
            os.rename(drawn, path)
    finally:
        with suppress(OSError):
            os.unlink(drawn)


def seal(key: bytes | None, *parts: bytes) -> str | None:
    """The seal of *parts*, in their order; None without a key.

    >>> seal(None, b"text"), seal(bytes(32), b"a", b"bc") == seal(bytes(32), b"ab", b"c")
    (None, False)
    """
    if key is None:
        return None
    made = hmac.new(key, digestmod=hashlib.sha256)
    for part in parts:
        made.update(len(part).to_bytes(8, "little") + part)
    return made.hexdigest()


def holds(key: bytes | None, found: object, *parts: bytes) -> bool:
    """Whether *found* is the seal of *parts* that *key* makes."""
    made = seal(key, *parts)
    return (
        made is not None and isinstance(found, str) and found.isascii() and hmac.compare_digest(made, found)
    )
