"""Feature hashes: bytes in, digest out. To add one, write it in src/hash.rs and add its line here.

A digest is bytes; `digest_slice` and `bit_order` of a scheme say which of them make the
fingerprint, and which comes first. Hashes of 64 bits give their value little-endian.
"""

from __future__ import annotations

from dataclasses import dataclass

from neardup import _native
from neardup.errors import InvalidValue
from neardup.registry import Registry


@dataclass(frozen=True, slots=True)
class Hash:
    """A named hash function."""

    name: str
    summary: str
    bits: int | None = None
    """Bits of a digest; None where it has as many as are asked for."""
    keyed: bool = False
    """Whether it needs a secret."""

    def digest(self, data: bytes, size: int, key: bytes | None = None) -> bytes:
        """The first *size* bytes of the digest of *data*."""
        if self.keyed and not key:
            raise InvalidValue(f"hash {self.name!r} needs a key; pass key=...")
        if self.bits is not None and size * 8 > self.bits:
            raise InvalidValue(f"a {self.name} digest has {self.bits} bits, not {size * 8}")
        return _native.digest(self.name, data, size, key)


_ROWS = (
    Hash("mix", "our own: two multiplications a word; fast, any width, not for hostile text"),
    Hash("fnv1a64", "FNV-1a; for compatibility: on short features some of its bits are constant", 64),
    Hash("xxh64", "XXH64, seed 0", 64),
    Hash("xxh3-128", "XXH3 with 128 bits", 128),
    Hash("murmur3-128", "MurmurHash3 x64 128, seed 0", 128),
    Hash("md5", "MD5", 128),
    Hash("sha1", "SHA-1", 160),
    Hash("shake256", "SHAKE256, any width"),
    Hash("blake3-keyed", "BLAKE3 under a secret key, any width; for hostile collections", keyed=True),
)

HASHES = Registry("hash", {row.name: lambda row=row: row for row in _ROWS})
