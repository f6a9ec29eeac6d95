"""Arrow arrays at the border: what a program or a file hands over is checked before it is read.

pyarrow trusts the lengths that an array states. An array that nobody validated, such as one that was read
from a stream, may state more than its memory holds, and both pyarrow and the core would read beyond it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from neardup.errors import InvalidType, InvalidValue, shown

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

BATCH: Final = 10_000  # documents of an iterable that are taken at a time


@dataclass(frozen=True, slots=True)
class CoreTexts:
    """An Arrow array of texts as the core takes it, through the C data interface, which leaves out the sizes
    of its buffers: here they are."""

    array: pa.Array
    sizes: list[int]


def core_texts(array: pa.Array) -> CoreTexts:
    """*array*, of strings or bytes, for the core. Its memory is not copied, even if it may be
    written to: the core reads each byte of a text once."""
    check(array)
    return CoreTexts(array, [0 if buffer is None else buffer.size for buffer in array.buffers()])


def without(array: pa.Array, gone: npt.NDArray[np.bool_]) -> pa.Array:
    """*array* with nulls where *gone* says so; its values are not copied.

    >>> import numpy as np, pyarrow as pa
    >>> without(pa.array(["a", "b", None, "c"])[1:], np.array([False, False, True])).to_pylist()
    ['b', None, None]
    """
    import numpy as np
    import pyarrow as pa

    before = np.ones(array.offset, dtype=bool)
    stays = np.concatenate([before, array.is_valid().to_numpy(zero_copy_only=False) & ~gone])
    bits = pa.py_buffer(np.packbits(stays, bitorder="little"))
    return pa.Array.from_buffers(array.type, len(array), [bits, *array.buffers()[1:]], offset=array.offset)


def check(array: pa.Array) -> None:
    """Refuse an array that states more than its buffers hold. This takes no time, whatever its length."""
    import pyarrow as pa

    try:
        array.validate()
    except pa.ArrowException as error:
        raise InvalidValue(f"the Arrow array is broken: {_reason(error)}") from None
    # Older versions do not check the views of a view array.
    if _is_view(array.type) and len(array):
        validity, views = array.buffers()[:2]
        rows = array.offset + len(array)
        if views is None or views.size < 16 * rows or (validity and validity.size < (rows + 7) // 8):
            raise InvalidValue("the Arrow array is broken: it is shorter than it says")


def check_dictionary(array: pa.DictionaryArray) -> None:
    """Refuse an array with numbers outside its dictionary."""
    import pyarrow.compute as pc

    check(array)
    bounds = pc.min_max(array.indices).as_py()
    if bounds["min"] is not None and not 0 <= bounds["min"] <= bounds["max"] < len(array.dictionary):
        raise InvalidValue("the Arrow array is broken: it names entries that its dictionary lacks")


def checked_column(column: Any) -> Any:
    """An array or chunked array whose every value can be read."""
    import pyarrow as pa

    if isinstance(column, pa.ChunkedArray):
        return pa.chunked_array([_checked(chunk) for chunk in column.chunks], column.type)
    return _checked(column)


def checked_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
    """*batch*, if every value can be read. Whether its texts are UTF-8 is not checked."""
    import pyarrow as pa

    return pa.RecordBatch.from_arrays([_checked(column) for column in batch.columns], schema=batch.schema)


def _checked(array: pa.Array) -> pa.Array:
    import pyarrow as pa

    check(array)
    kind = array.type
    binary = {"string": pa.binary(), "large_string": pa.large_binary(), "string_view": pa.binary_view()}
    array = _with_own_places(array)
    try:
        # As bytes, so that every offset is checked, but no letter.
        (array.view(binary[str(kind)]) if str(kind) in binary else array).validate(full=True)
    except pa.ArrowException as error:
        raise InvalidValue(f"the Arrow array is broken: {_reason(error)}") from None
    return array


def _with_own_places(array: pa.Array) -> pa.Array:
    """*array* with offsets, or views, that nothing else can write, so that they stay what was checked.

    Arrow calls its memory immutable, but a numpy array or a bytearray may be behind it. Writing to the
    texts themselves changes what they say, and nothing else.
    """
    import pyarrow as pa

    widths = {
        "string": 4,
        "binary": 4,
        "large_string": 8,
        "large_binary": 8,
        "string_view": 16,
        "binary_view": 16,
    }
    width = widths.get(str(array.type))
    validity, *places = array.buffers()
    if (
        not len(array)
        or width is None
        or not any(buffer and buffer.is_mutable for buffer in (validity, places[0]))
    ):
        return array
    first = array.offset // 8 * 8  # validity bits are in whole bytes
    rows = array.offset - first + len(array)
    ends = 0 if width == 16 else 1
    own = [
        None if validity is None else pa.py_buffer(validity.slice(first // 8, (rows + 7) // 8).to_pybytes()),
        pa.py_buffer(places[0].slice(first * width, (rows + ends) * width).to_pybytes()),
    ]
    return pa.Array.from_buffers(array.type, len(array), [*own, *places[1:]], -1, array.offset - first)


def _is_view(kind: pa.DataType) -> bool:
    return str(kind) in ("string_view", "binary_view")


def _reason(error: Exception) -> str:
    return " ".join(str(error).split())[:200]


def batches(documents: Any) -> Iterator[Any]:
    """Lists of documents, or the chunks of an Arrow array as they are."""
    if isinstance(documents, (str, bytes, Mapping)) or not isinstance(documents, Iterable):
        if not hasattr(documents, "__arrow_c_stream__") and not hasattr(documents, "__arrow_c_array__"):
            raise InvalidType(
                f"documents must be a list, an iterable or an Arrow array of texts, not {shown(documents)}"
            )
    elif isinstance(documents, (list, tuple)):
        for begin in range(0, len(documents), BATCH * 100):
            yield list(documents[begin : begin + BATCH * 100])
        return
    if hasattr(documents, "__arrow_c_stream__") or hasattr(documents, "__arrow_c_array__"):
        yield from _arrow_chunks(documents)
        return
    try:
        iterator = iter(documents)
    except TypeError:  # an array without dimensions claims to be iterable
        raise InvalidType(f"documents must be a list of texts, not {shown(documents)}") from None
    while batch := list(islice(iterator, BATCH)):
        yield batch


def _arrow_chunks(documents: Any) -> Iterator[Any]:
    import pyarrow as pa

    if not isinstance(documents, (pa.Array, pa.ChunkedArray)):
        stream = hasattr(documents, "__arrow_c_stream__")
        try:
            documents = pa.chunked_array(documents) if stream else pa.array(documents)
        except (pa.ArrowException, TypeError, ValueError):
            raise InvalidType(f"not an Arrow array of texts: {shown(documents)}") from None
    chunks = documents.chunks if isinstance(documents, pa.ChunkedArray) else [documents]
    for chunk in chunks:
        if pa.types.is_dictionary(chunk.type):
            check_dictionary(chunk)
            chunk = chunk.dictionary_decode()
        if pa.types.is_null(chunk.type):
            chunk = chunk.cast(pa.string())
        if str(chunk.type) not in ("string", "large_string", "string_view"):
            raise InvalidType(f"an Arrow array of texts must hold strings, not {chunk.type}; cast it first")
        yield chunk
