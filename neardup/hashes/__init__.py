"""Feature hashes: bytes in, digest out. To add one, write it in src/hash/mod.rs and add its line here.

A digest is bytes; `digest_slice` and `bit_order` of a scheme say which of them make the
fingerprint, and which comes first. Hashes of 64 bits give their value little-endian.
"""

from __future__ import annotations

from collections.abc import Iterable
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
    """Bits of a digest; None if it has as many as requested."""
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
    # For compatibility, from here on (src/hash/foreign.rs).
    Hash("fnv1-64", "FNV-1", 64),
    Hash("fnv1-64-zero", "FNV-1 that gives 0 for nothing, as pbtk's does", 64),
    Hash("fnv1a64-zero", "FNV-1a that gives 0 for nothing, as pbtk's does", 64),
    Hash("fnv1a64-utf16", "FNV-1a over UTF-16 units, as the news system applies it", 64),
    Hash("metro64", "MetroHash64, seed 0", 64),
    Hash("highway64", "HighwayHash64, key 0", 64),
    Hash("murmur1", "MurmurHash1, seed 0: 32 bits, the upper half of 64 is 0", 64),
    Hash("murmur2", "MurmurHash2, seed 0: 32 bits, the upper half of 64 is 0", 64),
    Hash("murmur2-64a", "MurmurHash64A, seed 0", 64),
    Hash("murmur3-sum64", "the halves of MurmurHash3 x64 128 added, as pbtk does", 64),
    Hash("shake256-msb", "SHAKE256, any width, the highest bit of a byte first"),
)


def fnv1a64(units: Iterable[int]) -> int:
    """FNV-1a with 64 bits over units of any width, such as the UTF-16 units of a text.

    >>> fnv1a64(b"hello")
    11831194018420276491
    """
    value = 0xCBF29CE484222325
    for unit in units:
        value = (value ^ unit) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return value


def _slip(name: str) -> Hash:
    # pbtk's published program adds the bit's number to a shift count without parentheses: every byte of a
    # hash shows its lowest bit at the even places and the complement at the odd ones. Kept, because values
    # of that program are stored somewhere.
    if name not in HASHES or HASHES.part(name).bits != 64 or name == "mix":
        raise InvalidValue(f"hash 'slip:{name}': write slip:HASH with a hash of 64 bits")
    return Hash(
        f"slip:{name}", f"{name} with 8 of its 64 bits in use, as pbtk's published program has it", 64
    )


def _shake256_htm(bits: str) -> Hash:
    # The HTM encoder's copying loop stops one bit early. Kept: its users have stored representations.
    if not bits.isascii() or not bits.isdigit() or int(bits) < 1:
        raise InvalidValue(f"hash 'shake256-htm:{bits}': write shake256-htm:BITS")
    return Hash(f"shake256-htm:{bits}", "shake256-msb with the last bit as the HTM encoder copies it")


HASHES: Registry[Hash] = Registry(
    "hash",
    {
        **{row.name: lambda row=row: row for row in _ROWS},
        "slip": _slip,
        "shake256-htm": _shake256_htm,
    },
)
