"""Scheme files: TOML, with the table of document frequencies behind it (docs/formats/scheme.md)."""

from __future__ import annotations

import hashlib
import json
import os
import struct
import sys
from dataclasses import fields, replace
from typing import Any, Final

from neardup import _native
from neardup.errors import DamagedFile, InvalidValue, SchemeMismatch
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
_FACTS: Final = {item.name for item in fields(Scheme)} - {"key", "frequencies"}


def _check(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=_CHECK_SIZE).digest()


def to_toml(scheme: Scheme) -> str:
    """The scheme as TOML. The secret of a keyed scheme is not in it; its digest tells the right one."""
    lines = [f"format = {FORMAT}"]
    lines += [f"{name} = {json.dumps(value)}" for name, value in scheme.facts().items()]
    lines.append(f"digest = {json.dumps(scheme.digest)}")
    return "\n".join(lines) + "\n"


def write(scheme: Scheme, path: str | os.PathLike[str]) -> None:
    """Write a scheme file; it appears only when it is complete."""
    text = to_toml(scheme).encode()
    with atomic_file(path, overwrite=True) as file:
        if scheme.frequencies is None:
            file.write(text)
        else:
            table = scheme.frequencies.to_bytes()
            content = _HEAD.pack(MAGIC, VERSION, len(text), len(table)) + text + table
            file.write(content)
            file.write(_check(content))


def read(path: str | os.PathLike[str], key: str | None = None) -> Scheme:
    """The scheme of a file; *key* is the secret of a keyed one."""
    shown = check_path(path)
    with open(path, "rb") as file:
        data = file.read()
    table = None
    if data.startswith(MAGIC):
        if len(data) < _HEAD.size:
            raise DamagedFile(f"scheme file {shown!r} is damaged: it ends in its head")
        _, version, text_size, table_size = _HEAD.unpack_from(data)
        if version > VERSION:
            raise InvalidValue(
                f"scheme file {shown!r} has format version {version}; this neardup reads up to {VERSION}"
            )
        if version == 0 or _HEAD.size + text_size + table_size + _CHECK_SIZE != len(data):
            raise DamagedFile(f"scheme file {shown!r} is damaged: its lengths do not fit its size")
        content, check = data[:-_CHECK_SIZE], data[-_CHECK_SIZE:]
        if _check(content) != check:
            raise DamagedFile(f"scheme file {shown!r} is damaged: its checksum does not match")
        data = content[_HEAD.size : _HEAD.size + text_size]
        try:
            table = _native.Frequencies.from_bytes(content[_HEAD.size + text_size :])
        except ValueError as error:
            raise DamagedFile(f"scheme file {shown!r}: {error}") from None
    return _from_toml(data, shown, key, table)


def _from_toml(data: bytes, shown: str, key: str | None, table: _native.Frequencies | None) -> Scheme:
    try:
        facts: dict[str, Any] = tomllib.loads(data.decode())
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidValue(f"scheme file {shown!r} is not TOML: {error}") from None
    version = facts.pop("format", FORMAT)
    digest = facts.pop("digest", None)
    if version != FORMAT:
        raise InvalidValue(
            f"scheme file {shown!r} has scheme format {version!r}; this neardup knows {FORMAT}"
        )
    if unknown := sorted(set(facts) - _FACTS):
        raise InvalidValue(
            f"scheme file {shown!r}: unknown field {unknown[0]!r}; known: {', '.join(sorted(_FACTS))}"
        )
    if "name" not in facts:
        raise InvalidValue(f'scheme file {shown!r} has no name; add a line name = "..."')
    scheme = replace(Scheme(**facts, key=key), frequencies=table)
    if digest is not None and digest != scheme.digest:
        reason = "the key is another one" if key is not None else "its fields or its table were changed"
        raise SchemeMismatch(
            f"scheme file {shown!r} says digest {digest} but gives {scheme.digest}: {reason}"
        )
    return scheme
