"""Arrow arrays at the border: what states more than it holds is refused, and who writes its memory does no harm."""

from __future__ import annotations

import ctypes
import io
import mmap
import threading
from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import neardup as nd
from neardup import _native
from neardup.arrays import CoreTexts, checked_column, core_texts
from neardup.errors import InvalidType, InvalidValue
from neardup.keep import keep_order, parse_keep

KINDS = [pa.string(), pa.large_string(), pa.string_view()]
BYTES = [pa.binary(), pa.large_binary(), pa.binary_view()]
WIDTH = {"string": 4, "large_string": 8, "string_view": 16}
TEXTS = [
    "the quick brown fox",
    None,
    "",
    "jumps over the lazy dog",
    "漢字 and more words than fit a view",
    "fox",
]


def expected(texts: list[str | None]) -> list[int | None]:
    scheme = nd.scheme("text")
    return [None if text is None else scheme.fingerprint(text) for text in texts]


def fingerprints(array: Any) -> list[int | None]:
    return list(nd.scheme("text").fingerprints(array))


def with_buffer(array: pa.Array, number: int, buffer: pa.Buffer | None) -> pa.Array:
    buffers = array.buffers()
    buffers[number] = buffer
    return pa.Array.from_buffers(array.type, len(array), buffers, offset=array.offset)


def at_odd_address(buffer: pa.Buffer) -> pa.Buffer:
    return pa.py_buffer(b"\0" + buffer.to_pybytes()).slice(1)


def before_a_guard_page(data: bytes) -> pa.Buffer:
    """A buffer that ends right before a page that nobody may read."""
    page = mmap.PAGESIZE
    pages = (len(data) + page - 1) // page
    memory = mmap.mmap(-1, (pages + 1) * page)
    start = pages * page - len(data)
    memory[start : pages * page] = data
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.mprotect(ctypes.c_void_p(address + pages * page), ctypes.c_size_t(page), 0) == 0
    return pa.foreign_buffer(address + start, len(data), base=memory)


def stream_with_short_buffer(array: pa.Array, number: int, size: int) -> pa.RecordBatch:
    """What a stream holds that says that a buffer of *array* has *size* bytes: the last ones of the stream, which
    stand right before a page that nobody may read."""
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, pa.schema({"text": array.type})) as writer:
        writer.write_batch(pa.record_batch({"text": array}))
    data = bytearray(sink.getvalue())[:-8]  # without the mark of its end
    # In the metadata each buffer is two numbers: where it begins in what follows, and its length.
    begin = 0
    for earlier in array.buffers()[:number]:
        begin += 0 if earlier is None else (earlier.size + 7) // 8 * 8
    buffer = array.buffers()[number]
    assert buffer is not None
    place = data.index(begin.to_bytes(8, "little") + buffer.size.to_bytes(8, "little"))
    body = data.index(array.buffers()[0].to_pybytes())
    end = len(data) - body
    data[place : place + 16] = (end - size).to_bytes(8, "little") + size.to_bytes(8, "little")
    (batch,) = pa.ipc.open_stream(before_a_guard_page(bytes(data)))
    assert batch.column(0).buffers()[number].size == size
    return batch


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_arrays_of_every_kind_are_read_whole_and_sliced(kind: pa.DataType) -> None:
    array = pa.array(TEXTS, kind)
    assert fingerprints(array) == expected(TEXTS)
    for begin in range(len(TEXTS)):
        assert fingerprints(array.slice(begin)) == expected(TEXTS[begin:])
        assert fingerprints(array.slice(begin, 2)) == expected(TEXTS[begin : begin + 2])
    long = pa.array(TEXTS * 10, kind)
    assert fingerprints(long.slice(13, 9)) == expected((TEXTS * 10)[13:22])
    chunked = pa.chunked_array([array.slice(2), array.slice(0, 0), array])
    assert fingerprints(chunked) == expected(TEXTS[2:] + TEXTS)
    assert fingerprints(pa.array([], kind)) == []


@pytest.mark.parametrize("kind", BYTES, ids=str)
def test_the_core_takes_arrays_of_bytes_as_those_of_strings(kind: pa.DataType) -> None:
    array = pa.array([None if text is None else text.encode() for text in TEXTS], kind)
    words, valid = nd.scheme("text").recipe.fingerprints(core_texts(array), None)
    same = nd.scheme("text").fingerprints(pa.array(TEXTS))
    assert np.array_equal(words, same.words)
    assert np.array_equal(valid, same.valid)


def test_a_dictionary_is_read_unless_its_numbers_lie_outside() -> None:
    array = pa.array(TEXTS).dictionary_encode()
    assert fingerprints(array) == expected(TEXTS)
    outside = pa.DictionaryArray.from_arrays(pa.array([0, 7]), pa.array(["a few words", "more"]), safe=False)
    with pytest.raises(InvalidValue, match="its dictionary lacks"):
        fingerprints(outside)


def test_a_stream_with_too_few_validity_bits_is_refused() -> None:
    texts = pa.array([None if row % 3 else "a few words" for row in range(200_000)])
    batch = stream_with_short_buffer(texts, 0, 8)
    column = batch.column(0)
    with pytest.raises(InvalidValue, match=r"broken.*25000.*got 8"):
        fingerprints(column)
    with pytest.raises(InvalidValue, match="broken"):
        nd.scheme("text").fit(column)
    with pytest.raises(InvalidValue, match="broken"):
        nd.dedupe(pa.Table.from_batches([batch]))
    with pytest.raises(InvalidValue, match="broken"):
        nd.dedupe(column)


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("number", [0, 1])
def test_buffers_that_end_at_a_page_are_refused_or_read_to_their_end(kind: pa.DataType, number: int) -> None:
    texts = ["some words", None, None] * 10_000
    array = pa.array(texts, kind)
    rows = len(texts) + (number == 1 and kind != pa.string_view())
    needed = rows * WIDTH[str(kind)] if number else (rows + 7) // 8
    data = array.buffers()[number].to_pybytes()[:needed]
    exact = with_buffer(array, number, before_a_guard_page(data))
    assert fingerprints(exact)[-3:] == expected(texts[-3:])
    for size in ((needed - 1) // 8 * 8, 8, 0):
        batch = stream_with_short_buffer(array, number, size)
        with pytest.raises(InvalidValue, match="broken"):
            fingerprints(batch.column(0))
        with pytest.raises(InvalidValue, match="broken"):
            nd.dedupe(batch)


def test_offsets_that_go_down_or_outside_are_refused() -> None:
    data = pa.py_buffer(b"some words and some more")
    for offsets in ([0, 9, 4, 24], [0, -4, 9, 24], [0, 30, 31, 24], [0, 2**31 - 1, 9, 24]):
        for kind, width in ((pa.string(), "<i4"), (pa.large_string(), "<i8")):
            places = pa.py_buffer(np.array(offsets, width).tobytes())
            broken = pa.Array.from_buffers(kind, 3, [None, places, data])
            with pytest.raises(InvalidValue, match=r"outside its buffers|broken"):
                fingerprints(broken)
            with pytest.raises(InvalidValue, match="broken"):
                nd.dedupe(pa.table({"text": broken}))
            with pytest.raises(InvalidValue, match="broken"):
                nd.dedupe(broken)


@pytest.mark.parametrize(
    "view", [(20, 0, 0, 5), (20, 0, 1, 0), (20, 0, -1, 0), (20, 0, 0, -3), (-1, 0, 0, 0)]
)
def test_views_that_lie_outside_are_refused(view: tuple[int, ...]) -> None:
    places = pa.py_buffer(np.array(view, "<i4").tobytes())
    broken = pa.Array.from_buffers(pa.string_view(), 1, [None, places, pa.py_buffer(b"twenty bytes of text")])
    with pytest.raises(InvalidValue, match=r"outside its buffers|broken"):
        fingerprints(broken)
    with pytest.raises(InvalidValue, match="broken"):
        nd.dedupe(pa.table({"text": broken}))


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_offsets_and_texts_at_odd_addresses_are_read(kind: pa.DataType) -> None:
    array = pa.array(TEXTS, kind)
    for number, buffer in enumerate(array.buffers()):
        if buffer is not None:
            array = with_buffer(array, number, at_odd_address(buffer))
    assert all(buffer is None or buffer.address % 2 for buffer in array.buffers())
    assert fingerprints(array) == expected(TEXTS)
    assert fingerprints(array.slice(3)) == expected(TEXTS[3:])


def test_bytes_that_are_no_utf8_are_replaced_in_every_kind() -> None:
    data = b"no utf-8 \xff\xe4 in here, and \xc3"
    array = pa.array([data], pa.binary()).view(pa.string())
    assert fingerprints(array) == expected([data.decode("utf-8", "replace")])


@pytest.mark.parametrize("what", ["texts", "offsets", "views"])
def test_memory_that_another_thread_writes_gives_a_text_or_an_error(what: str) -> None:
    """Neither a panic (RuntimeError) nor a crash, whatever the core meets."""
    rows = 3_000
    text = "Grüße aus dem Süden, 漢字 und Ελληνικά: " * 6
    array = pa.array([text] * rows, pa.string_view() if what == "views" else pa.large_string())
    number = 2 if what == "texts" else 1
    memory = np.frombuffer(array.buffers()[number].to_pybytes(), np.uint8).copy()
    array = with_buffer(array, number, pa.py_buffer(memory))
    random = np.random.default_rng(7)
    noise = random.integers(0, 256, len(memory), dtype=np.uint8)
    own = memory.copy()
    stop = threading.Event()
    refusals = () if what == "texts" else (InvalidValue,)  # texts are read whatever they say

    def write() -> None:
        while not stop.is_set():
            memory[:] = noise
            memory[:] = own

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for name in ("text", "chars:4", "words:3"):
            for _ in range(4):
                with suppress(*refusals):
                    assert len(nd.scheme(name).fingerprints(array)) == rows
        table = _native.Frequencies()
        for _ in range(2):
            with suppress(*refusals):
                nd.scheme("text").count(array, table)
                keep_order(parse_keep("first"), array, np.zeros(rows, np.uint32), {})
    finally:
        stop.set()
        writer.join()


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("number", [0, 1])
def test_places_that_were_checked_stay_as_they_were_whoever_writes_them(
    kind: pa.DataType, number: int
) -> None:
    array = pa.array(TEXTS * 3, kind)
    memory = np.frombuffer(array.buffers()[number].to_pybytes(), np.uint8).copy()
    column = checked_column(with_buffer(array, number, pa.py_buffer(memory)).slice(11))
    memory[:] = 0xFF
    assert column.to_pylist() == (TEXTS * 3)[11:]


def test_texts_are_read_without_a_copy_of_the_array() -> None:
    before = pa.total_allocated_bytes()
    array = pa.array(["some words of a text"] * 1000)
    own = pa.total_allocated_bytes() - before
    given = core_texts(array)
    assert given.array is array
    assert pa.total_allocated_bytes() - before == own
    nd.scheme("text").fingerprints(array)
    assert pa.total_allocated_bytes() - before == own


def test_an_array_is_released_after_each_call() -> None:
    before = pa.total_allocated_bytes()
    texts = core_texts(pa.array(TEXTS * 100))
    assert pa.total_allocated_bytes() > before
    for _ in range(50):
        nd.scheme("text").recipe.fingerprints(texts, 1)
    with pytest.raises(InvalidValue):
        nd.scheme("text").recipe.fingerprints(CoreTexts(texts.array, []), 1)
    del texts
    assert pa.total_allocated_bytes() == before


@pytest.mark.parametrize("value", [None, {}, 7, "text", pa.array(["a text"]), {"layout": "string"}])
def test_the_core_takes_nothing_but_arrays_that_came_through_the_door(value: Any) -> None:
    with pytest.raises(InvalidType, match="not an Arrow array of texts"):
        nd.scheme("text").recipe.fingerprints(value, None)


def test_the_core_refuses_sizes_that_do_not_fit_the_array() -> None:
    array = pa.array(["some words", None])
    for sizes in ([], [1, 12], [1, 12, 10, 7], [0, 12, 10], [1, 8, 10], [1, 11, 10]):
        with pytest.raises(InvalidValue, match=r"shorter than it says|has not the buffers"):
            nd.scheme("text").recipe.fingerprints(CoreTexts(array, sizes), None)
    with pytest.raises(InvalidValue, match="outside its buffers"):
        nd.scheme("text").recipe.fingerprints(CoreTexts(array, [1, 12, 9]), None)
    numbers = pa.array([1, 2])
    with pytest.raises(InvalidType, match="not an Arrow array of texts"):
        nd.scheme("text").recipe.fingerprints(CoreTexts(numbers, [0, 16]), None)


def test_fingerprints_of_an_array_with_too_few_validity_bits_are_refused() -> None:
    values = pa.array([None if row % 3 else bytes(8) for row in range(1000)], pa.binary(8))
    broken = stream_with_short_buffer(values, 0, 8).column(0)
    for array in (broken, pa.chunked_array([broken])):
        with pytest.raises(InvalidValue, match="broken"):
            nd.Fingerprints.from_arrow(array)
