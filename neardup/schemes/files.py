"""Scheme files: TOML, followed by the table of document frequencies (docs/formats/scheme.md)."""

from __future__ import annotations

import hashlib
import json
import os
import struct
import sys
from dataclasses import fields, replace
from typing import Any, Final

from neardup import _native
from neardup.errors import DamagedFile, InvalidValue, SchemeMismatch, shown
from neardup.files import atomic_file, check_path
from neardup.schemes.model import FORMAT, Scheme

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

MAGIC: Final = b"NDSCHEME"
VERSION: Final = 1
_HEAD: Final = struct.Struct("<8sIIQ")  # magic, version, length of the TOML, length of the table
_CHECK_SIZE: Final = 16
MAX_TOML: Final = 1 << 16
MAX_NESTING: Final = 1000  # of brackets and dots: parsers recurse for the first, and copy for the second
_FACTS: Final = {item.name for item in fields(Scheme)} - {"key", "frequencies"}


def _check(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=_CHECK_SIZE).digest()


def to_toml(scheme: Scheme) -> str:
    """The scheme as TOML. The secret of a keyed scheme is not in it; its digest tells the right one."""
    lines = [f"format = {FORMAT}"]
    lines += [f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in scheme.facts().items()]
    lines.append(f"digest = {json.dumps(scheme.digest)}")
    return "\n".join(lines) + "\n"


def to_bytes(scheme: Scheme) -> bytes:
    """The scheme as its file holds it."""
    text = to_toml(scheme).encode()
    if scheme.frequencies is None:
        return text
    table = scheme.frequencies.to_bytes()
    content = _HEAD.pack(MAGIC, VERSION, len(text), len(table)) + text + table
    return content + _check(content)


def write(scheme: Scheme, path: str | os.PathLike[str]) -> None:
    """Write a scheme file; it appears only when it is complete."""
    data = to_bytes(scheme)
    with atomic_file(path, overwrite=True) as file:
        file.write(data)


def read(path: str | os.PathLike[str], key: str | None = None) -> Scheme:
    """The scheme of a file; *key* is the secret of a keyed one."""
    what = f"scheme file {check_path(path)!r}"
    with open(path, "rb") as file:
        return from_bytes(file.read(), key, what)


def from_bytes(data: bytes, key: str | None = None, what: str = "the scheme") -> Scheme:
    """The scheme in the bytes of `to_bytes`; errors call it *what*.

    >>> from_bytes(to_bytes(Scheme("mine", bits=32))).bits
    32
    """
    table = None
    if data.startswith(MAGIC):
        if len(data) < _HEAD.size:
            raise DamagedFile(f"{what} is damaged: it ends in its head")
        _, version, text_size, table_size = _HEAD.unpack_from(data)
        if version > VERSION:
            raise InvalidValue(f"{what} has format version {version}; this neardup reads up to {VERSION}")
        if version == 0 or _HEAD.size + text_size + table_size + _CHECK_SIZE != len(data):
            raise DamagedFile(f"{what} is damaged: its lengths do not fit its size")
        content, check = data[:-_CHECK_SIZE], data[-_CHECK_SIZE:]
        if _check(content) != check:
            raise DamagedFile(f"{what} is damaged: its checksum does not match")
        data = content[_HEAD.size : _HEAD.size + text_size]
        try:
            table = _native.Frequencies.from_bytes(content[_HEAD.size + text_size :])
        except ValueError as error:
            raise DamagedFile(f"{what}: {error}") from None
    return _from_toml(data, what, key, table)


def _from_toml(data: bytes, what: str, key: str | None, table: _native.Frequencies | None) -> Scheme:
    if len(data) > MAX_TOML:
        raise InvalidValue(f"{what} has {len(data):,} bytes of TOML; a scheme has at most {MAX_TOML:,}")
    try:
        if sum(map(data.count, (b"[", b"{", b"."))) > MAX_NESTING:
            raise RecursionError
        facts: dict[str, Any] = tomllib.loads(data.decode())
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidValue(f"{what} is not TOML: {error}") from None
    except RecursionError:
        raise InvalidValue(f"{what} is nested too deeply; a scheme is flat: lines of name = value") from None
    version = facts.pop("format", FORMAT)
    digest = facts.pop("digest", None)
    if version != FORMAT:
        raise InvalidValue(f"{what} has scheme format {shown(version)}; this neardup knows {FORMAT}")
    if unknown := sorted(set(facts) - _FACTS):
        raise InvalidValue(f"{what}: unknown field {shown(unknown[0])}; known: {', '.join(sorted(_FACTS))}")
    if "name" not in facts:
        raise InvalidValue(f'{what} has no name; add a line name = "..."')
    scheme = replace(Scheme(**facts, key=key), frequencies=table)
    if digest is not None and digest != scheme.digest:
        reason = (
            "the key is another one"
            if key is not None
            else "its fields or its table were changed, or the Unicode version is another"
        )
        raise SchemeMismatch(f"{what} says digest {shown(digest)} but gives {scheme.digest}: {reason}")
    return scheme
