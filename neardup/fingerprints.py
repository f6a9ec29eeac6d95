"""Fingerprints: many of one width, and the text forms of one.

Word 0 holds the lowest 64 bits. A row without information (`valid` is False) has no
fingerprint: it is never equal or near to anything, whatever its words hold.
"""

from __future__ import annotations

import base64
import binascii
import operator
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from neardup.arrays import check
from neardup.errors import InvalidType, InvalidValue, SchemeMismatch, shown

if TYPE_CHECKING:
    import pyarrow as pa

FORMS: Final = ("hex", "decimal", "bits", "base64")
MAX_BITS: Final = 1 << 16


def check_bits(bits: int) -> int:
    """*bits* if it can be the width of a fingerprint."""
    if isinstance(bits, bool) or not isinstance(bits, int):
        raise InvalidType(f"bits must be an integer, not {shown(bits)}")
    if not 1 <= bits <= MAX_BITS:
        raise InvalidValue(f"bits must be from 1 to {MAX_BITS}, not {shown(bits)}")
    return int(bits)


class Fingerprints:
    """The fingerprints of many documents, in one block of memory.

    >>> prints = Fingerprints.of([5, None, 2**64 - 1], bits=64)
    >>> prints[0], prints[1], len(prints)
    (5, None, 3)
    >>> prints.hex()
    ['0000000000000005', None, 'ffffffffffffffff']
    """

    __slots__ = ("bits", "digest", "valid", "words")

    def __init__(
        self,
        words: npt.ArrayLike,
        *,
        bits: int | None = None,
        valid: npt.ArrayLike | None = None,
        digest: str | None = None,
    ) -> None:
        """*words* is uint64 of shape (n,) or (n, words per fingerprint); *digest* names the scheme."""
        block = _array(words, "fingerprints")
        if block.dtype != np.dtype(np.uint64):
            raise InvalidType(
                f"fingerprints must be a uint64 array, not {block.dtype}; use Fingerprints.of for integers"
            )
        if block.ndim == 1:
            block = block.reshape(-1, 1)
        if block.ndim != 2 or block.shape[1] == 0:
            raise InvalidValue(f"fingerprints must have shape (n,) or (n, words), not {block.shape}")
        width = check_bits(block.shape[1] * 64 if bits is None else bits)
        if (width + 63) // 64 != block.shape[1]:
            raise InvalidValue(
                f"{width} bits need {(width + 63) // 64} words per fingerprint, not {block.shape[1]}"
            )
        if valid is None:
            flags = np.ones(len(block), dtype=bool)
        else:
            flags = _array(valid, "valid")
            if flags.dtype != np.dtype(bool) or flags.shape != (len(block),):
                raise InvalidValue(
                    f"valid must be {len(block)} booleans, not {flags.dtype} of shape {flags.shape}"
                )
        spare = block.shape[1] * 64 - width
        if spare and len(block) and int(block[:, -1].max()) >> (64 - spare):
            raise InvalidValue(f"a fingerprint has bits above its {width} bits")
        if digest is not None and not isinstance(digest, str):
            raise InvalidType(f"digest must be a str, not {shown(digest)}")
        self.words: npt.NDArray[np.uint64] = np.ascontiguousarray(block)
        self.valid: npt.NDArray[np.bool_] = flags
        self.bits: int = width
        self.digest: str | None = digest

    @classmethod
    def of(cls, values: Iterable[int | None], bits: int = 64, digest: str | None = None) -> Fingerprints:
        """From integers; None for a document without information."""
        width = check_bits(bits)
        size = (width + 63) // 64 * 8
        try:
            given = iter(values)
        except TypeError:
            raise InvalidType(f"fingerprints must be integers in a list, not {shown(values)}") from None
        block = bytearray()
        valid: list[bool] = []
        for value in given:
            block += b"\0" * size if value is None else check_value(value, width).to_bytes(size, "little")
            valid.append(value is not None)
        words = np.frombuffer(bytes(block), dtype="<u8").astype(np.uint64, copy=False)
        return cls(
            words.reshape(len(valid), size // 8), bits=width, valid=np.array(valid, dtype=bool), digest=digest
        )

    def __len__(self) -> int:
        return len(self.words)

    def __getitem__(self, row: int) -> int | None:
        try:
            at = operator.index(row)
        except TypeError:
            raise InvalidType(f"a row is given by its number, not {shown(row)}") from None
        if not -len(self) <= at < len(self):
            raise IndexError(f"there is no row {shown(row)}; there are {len(self)}")
        if not self.valid[at]:
            return None
        return int.from_bytes(self.words[at].astype("<u8").tobytes(), "little")

    def __iter__(self) -> Iterator[int | None]:
        return (self[row] for row in range(len(self)))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Fingerprints):
            return NotImplemented
        return (
            self.bits == other.bits
            and bool(np.array_equal(self.valid, other.valid))
            and bool(np.array_equal(self.words[self.valid], other.words[other.valid]))
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        missing = len(self) - int(self.valid.sum())
        without = f", {missing} without information" if missing else ""
        return f"<{len(self)} fingerprints of {self.bits} bits{without}>"

    def texts(self, form: str = "hex") -> list[str | None]:
        """Every fingerprint in one text form; None if there is no information."""
        return [None if value is None else format(value, self.bits, form) for value in self]

    def hex(self) -> list[str | None]:
        """Every fingerprint as lower-case hexadecimal digits, highest first."""
        return self.texts("hex")

    def to_arrow(self) -> pa.Array:
        """An Arrow array of fixed-size binary, little-endian; null if there is no information."""
        import pyarrow as pa

        size = self.words.shape[1] * 8
        data = pa.py_buffer(np.ascontiguousarray(self.words, dtype="<u8"))
        mask = pa.py_buffer(np.packbits(self.valid, bitorder="little").tobytes())
        return pa.FixedSizeBinaryArray.from_buffers(pa.binary(size), len(self), [mask, data])

    @classmethod
    def from_arrow(cls, array: Any, bits: int | None = None, digest: str | None = None) -> Fingerprints:
        """The reverse of `to_arrow`; *array* may be chunked."""
        import pyarrow as pa

        chunks = array.chunks if isinstance(array, pa.ChunkedArray) else [array]
        for chunk in chunks:
            if isinstance(chunk, pa.Array):
                check(chunk)
        if isinstance(array, pa.ChunkedArray):
            array = array.combine_chunks()
        size = array.type.byte_width if isinstance(array, pa.FixedSizeBinaryArray) else 0
        if size == 0 or size % 8:
            kind = array.type if isinstance(array, pa.Array) else shown(array)
            raise InvalidType(f"fingerprints must be fixed-size binary of whole 64-bit words, not {kind}")
        end = array.offset + len(array)
        data = array.buffers()[1] if end else b""
        words = np.frombuffer(data, dtype="<u8", count=end * size // 8).reshape(end, size // 8)
        words = words[array.offset :].astype(np.uint64)
        valid = np.asarray(array.is_valid().to_numpy(zero_copy_only=False), dtype=bool)
        words[~valid] = 0
        return cls(words, bits=bits, valid=valid, digest=digest)


def check_value(value: int, bits: int) -> int:
    """*value* if it is a fingerprint of *bits* bits."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise InvalidType(f"a fingerprint must be an integer, not {shown(value)}")
    value = int(value)
    if value < 0 or value.bit_length() > bits:
        raise InvalidValue(
            f"{shown(value)} is not a fingerprint of {bits} bits; it must be from 0 to 2**{bits} - 1"
        )
    return value


def check_comparable(left: Fingerprints, right: Fingerprints) -> None:
    """Raise unless the two may be compared: one width and, where known, one scheme."""
    if left.bits != right.bits:
        raise SchemeMismatch(
            f"cannot compare {left.bits}-bit fingerprints with {right.bits}-bit ones; "
            "fingerprint both with the same scheme"
        )
    if left.digest and right.digest and left.digest != right.digest:
        raise SchemeMismatch(
            f"cannot compare fingerprints of scheme {left.digest} with those of {right.digest}; "
            "fingerprint both with the same scheme"
        )


def format(value: int, bits: int, form: str = "hex") -> str:
    """*value* in a text form: hex, decimal, bits (highest first) or base64 (little-endian bytes).

    >>> format(0x6491FB1F8663D51F, 64), format(5, 8, "bits"), format(5, 64, "base64")
    ('6491fb1f8663d51f', '00000101', 'BQAAAAAAAAA=')
    """
    value = check_value(value, check_bits(bits))
    _check_form(form)
    if form == "hex":
        return f"{value:0{(bits + 3) // 4}x}"
    if form == "bits":
        return f"{value:0{bits}b}"
    if form == "base64":
        return base64.b64encode(value.to_bytes((bits + 7) // 8, "little")).decode()
    try:
        return str(value)
    except ValueError:  # Python's guard against slow conversions
        raise InvalidValue(f"{bits} bits are too many for decimal digits; use hex, bits or base64") from None


def parse(text: str, bits: int = 64, form: str | None = None) -> int:
    """The fingerprint that *text* writes; without *form* it is recognised from the text itself.

    A text with one binary digit per bit is a bit string; one with as many
    hexadecimal digits as the width needs is hex (also with 0x); base64 has its own length;
    anything else must be a decimal number.

    >>> parse("6491fb1f8663d51f") == 0x6491fb1f8663d51f, parse("5"), parse("BQAAAAAAAAA=")
    (True, 5, 5)
    """
    if not isinstance(text, str):
        raise InvalidType(f"a fingerprint's text must be a str, not {shown(text)}")
    width = check_bits(bits)
    if form is None:
        form = _form_of(text, width)
    else:
        _check_form(form)
    try:
        if form == "base64":
            value = int.from_bytes(base64.b64decode(text, validate=True), "little")
        else:
            digits = text[2:] if form == "hex" and text[:2] in ("0x", "0X") else text
            if not digits.isascii() or not digits.isalnum():
                raise ValueError
            value = int(digits, {"hex": 16, "decimal": 10, "bits": 2}[form])
    except (ValueError, binascii.Error):
        raise InvalidValue(
            f"{shown(text, 80)} is not a {width}-bit fingerprint; write hex, decimal, bits or base64"
        ) from None
    return check_value(value, width)


def _array(values: npt.ArrayLike, what: str) -> npt.NDArray[Any]:
    try:
        return np.asarray(values)
    except (TypeError, ValueError, OverflowError):
        raise InvalidType(f"{what} must be an array of one type, not {shown(values)}") from None


def _check_form(form: object) -> None:
    if not isinstance(form, str):
        raise InvalidType(f"form must be a str, not {shown(form)}")
    if form not in FORMS:
        raise InvalidValue(f"unknown form {shown(form)}; known: {', '.join(FORMS)}")


def _form_of(text: str, bits: int) -> str:
    if len(text) == bits and bits > 1 and set(text) <= set("01"):
        return "bits"
    if text[:2] in ("0x", "0X") or len(text) == (bits + 3) // 4:
        return "hex"
    if len(text) == (bits + 7) // 8 // 3 * 4 + 4 * ((bits + 7) // 8 % 3 > 0) and not text.isdigit():
        return "base64"
    return "decimal"
