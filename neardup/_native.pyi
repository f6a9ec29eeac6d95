"""The native core: batches in, numpy out. Use the Python functions; these are their loops."""

from collections.abc import Callable, Sequence
from typing import IO, Any, final

import numpy as np
import numpy.typing as npt

from neardup.arrays import CoreTexts

__version__: str
UNICODE_VERSION: str

def digest(hash: str, data: bytes, size: int, key: bytes | None = None) -> bytes:
    """The first *size* bytes of the digest of *data*."""

@final
class Frequencies:
    """In how many documents each feature was seen, by its 64-bit hash."""

    def __init__(self, max_features: int = ...) -> None: ...
    @property
    def documents(self) -> int: ...
    @property
    def features(self) -> int | None:
        """How many different features; None once it is a sketch."""
    @property
    def max_features(self) -> int: ...
    @property
    def knee(self) -> int:
        """Up to this frequency a feature is rare and keeps its whole weight."""
    @property
    def digest(self) -> str: ...
    def get(self, hash: int) -> int:
        """In how many documents the feature was seen; 0 may also mean 1."""
    def merge(self, other: Frequencies) -> None: ...
    def to_bytes(self) -> bytes: ...
    @staticmethod
    def from_bytes(data: bytes) -> Frequencies: ...

@final
class Recipe:
    """A scheme as the core runs it."""

    def __init__(
        self,
        *,
        normalize: str,
        features: str,
        weights: str,
        hash: str,
        key: bytes | None,
        bits: int,
        digest_slice: str,
        bit_order: str,
        tie: str,
        empty: str,
        frequencies: Frequencies | None,
    ) -> None: ...
    def fingerprint_one(self, text: str) -> list[int] | None: ...
    def fingerprints(
        self, texts: list[str] | CoreTexts, threads: int | None
    ) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.bool_]]: ...
    def banded(
        self, texts: list[str] | CoreTexts, threads: int | None
    ) -> tuple[tuple[npt.NDArray[np.uint64], npt.NDArray[np.bool_]], npt.NDArray[np.uint32]]:
        """The same, and the bands of each text."""
    def fingerprint_of_features(self, features: list[tuple[str, int]]) -> list[int] | None: ...
    def votes(self, features: list[tuple[str, int]]) -> npt.NDArray[np.int64]: ...
    def normalized(self, text: str) -> str: ...
    def features(self, text: str) -> list[tuple[int, str, int]]: ...
    def count(self, texts: list[str] | CoreTexts, into: Frequencies, threads: int | None) -> None: ...

def survey(
    recipe: Recipe, texts: CoreTexts, frequencies: Frequencies | None, key: bytes, threads: int | None
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.bool_], npt.NDArray[np.int64], npt.NDArray[np.uint32]]:
    """128 bits that identify each normalised text, whether there is information in it, its characters, and
    32 bits that tell its spellings apart, keyed with the 32 bytes of *key*; the features are counted into
    *frequencies*."""

def spellings(texts: CoreTexts, key: bytes) -> npt.NDArray[np.uint32]:
    """The 32 bits of each text as it is written, as `survey` gives them."""

@final
class Verifier:
    """Measures and judges pairs of documents, whose texts were set aside."""

    def __init__(
        self,
        recipe: Recipe,
        frequencies: Frequencies | None,
        memory: int,
        spill: str | None,
        open: bool = False,
    ) -> None:
        """With *open*, a feature that *frequencies* do not know is rare if two of the texts have it."""
    def expect(self, count: int, wanted: npt.NDArray[np.int64]) -> None:
        """From now on texts of the *wanted* numbers, below *count*, are expected, and no others."""
    @property
    def text_bytes(self) -> int:
        """How many bytes of texts are set aside."""

    def add(self, numbers: npt.NDArray[np.int64], texts: CoreTexts) -> None:
        """Set aside the texts of an Arrow array where *numbers* names a document (-1: none)."""
    def remove(self, numbers: npt.NDArray[np.int64]) -> int:
        """Forget the texts of these numbers; how many there were."""
    def measure(
        self, left: npt.NDArray[np.int64], right: npt.NDArray[np.int64], threads: int | None
    ) -> npt.NDArray[np.uint32]:
        """Plain, weighted and rare similarity, shared features, and all of each side, one row per pair."""
    def preserved(
        self, left: npt.NDArray[np.int64], right: npt.NDArray[np.int64], threads: int | None
    ) -> npt.NDArray[np.uint8]:
        """Of each pair, which text says nothing that the other lacks: 1 for the left one, 2 for the right,
        3 for both."""
    def titles(
        self, left: npt.NDArray[np.int64], right: npt.NDArray[np.int64], threads: int | None
    ) -> npt.NDArray[np.uint8]:
        """What the titles of each pair say: nothing (0), that both are about the same (1), or not (2)."""
    def set_neighbours(
        self,
        left: npt.NDArray[np.int64],
        right: npt.NDArray[np.int64],
        plain: npt.NDArray[np.uint16],
        same: int,
    ) -> None: ...
    def judge(
        self,
        left: npt.NDArray[np.int64],
        right: npt.NDArray[np.int64],
        rule: dict[str, Any],
        threads: int | None,
    ) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint16], npt.NDArray[np.uint16], npt.NDArray[np.uint16]]:
        """The reason of each pair's verdict, and its plain, weighted and rare similarity."""
    def judge_together(
        self,
        left: npt.NDArray[np.int64],
        right: npt.NDArray[np.int64],
        rule: dict[str, Any],
        bounds: tuple[int, int],
        threads: int | None,
    ) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint16], npt.NDArray[np.uint16], npt.NDArray[np.uint16]]:
        """The same of all pairs of some documents: neighbours, and nearly identical, from *bounds* on."""

    def figures(
        self,
        left: npt.NDArray[np.int64],
        right: npt.NDArray[np.int64],
        rule: dict[str, Any],
        bounds: tuple[int, int] | None,
        threads: int | None,
    ) -> tuple[
        tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint16], npt.NDArray[np.uint16], npt.NDArray[np.uint16]],
        npt.NDArray[np.uint16],
    ]:
        """The verdicts of `judge_together`, or without *bounds* of `judge`, and a row of figures for each
        pair."""

def figure_names() -> list[str]:
    """The names of the figures of a pair, in the order of their columns."""

def text_rule() -> tuple[list[tuple[str, int]], list[tuple[str, bool]], list[tuple[str, str]]]:
    """The settings of the default rule, its reasons and whether each accepts, its tests and their reasons."""

class Passages:
    """Texts whose passages are looked for in others: first all are added, then others are looked at."""

    def __init__(self, words: int, most: int) -> None:
        """For passages of *words* words on, of which *most* places each are listed."""
    def add(self, texts: CoreTexts, threads: int | None) -> None:
        """Add texts that are looked for."""
    def look(
        self, texts: CoreTexts, threads: int | None
    ) -> tuple[int, npt.NDArray[np.uint32], npt.NDArray[np.uint32], int]:
        """The words of the next texts; a row for each text that shares something (its row, its words, those
        that are shared, whether it is the first with some run); a row for each passage (the place of its text
        among those, the text that was added, where it begins in both, its words); how many more there are."""
    def stretches(self) -> npt.NDArray[np.uint32]:
        """What of each text that was added is shared: the text, the words where it begins and ends, in how
        many texts its most common run is, and the first of them."""
    def texts_with(self, passages: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
        """In how many texts the most common run of each passage is."""
    @property
    def words(self) -> npt.NDArray[np.uint32]:
        """How many words each text that was added has."""

def word_places(text: str) -> npt.NDArray[np.uint32]:
    """Where each word of a text begins and ends, in characters."""

# The Hamming engine. Arrays must be C-contiguous and not written by anyone during the call.

_Words = npt.NDArray[np.uint64]
_Valid = npt.NDArray[np.bool_] | None
_Rows = npt.NDArray[np.uint32]
_Distances = npt.NDArray[np.uint16]

# Fingerprints: their words, and which have information, unless all have.
_Prints = tuple[_Words, _Valid]

# Bits, radius, recall, threads, plan, memory.
_Request = tuple[int, int, float, int | None, str | None, int | None]

# A plan: its method, its blocks (bits, radius, parts), its tables and the bits of their keys; collisions,
# seconds, bytes and recall.
_Plan = tuple[str, list[tuple[int, int, int]], int, int, float, float, int, float]

def join(
    prints: _Prints,
    other: _Prints | None,
    request: _Request,
    tell: Callable[[float], None] | None,
) -> tuple[_Rows, _Rows, _Distances]:
    """Sorted pairs (left, right, distance) within the radius; *tell* hears the share that is done."""

def join_nearest(
    prints: _Prints,
    bands: npt.NDArray[np.uint32] | None,
    most: int,
    comparable: tuple[npt.NDArray[np.int32] | None, npt.NDArray[np.int32] | None, _Valid],
    request: _Request,
    tell: Callable[[float], None] | None,
) -> tuple[tuple[_Rows, _Rows, _Distances], _Rows, _Plan]:
    """The pairs of `join` among the *most* nearest of either row, the rows of the others, and the plan.

    *comparable* says which rows may be paired: those of the same number, of different numbers, and not both
    with a flag. With *bands*, only rows that share one are compared, and there is no plan.
    """

def join_plan(prints: _Prints, other: int | None, request: _Request) -> _Plan:
    """What `join` would do, with this many *other* rows."""

def groups(
    prints: _Prints, order: _Rows | None, request: _Request
) -> tuple[_Rows, _Rows, _Rows, _Rows, _Distances]:
    """The group of each row, the centres; of each other row, by group: itself, its centre, the distance."""

def components(left: _Rows, right: _Rows, count: int) -> _Rows:
    """The smallest row connected with each row."""

def set_simd(level: str) -> None:
    """Use this level from now on, or the best one below it that the machine has.

    They are `scalar`, `neon`, `avx2`, `avx512-base` and `avx512`. An empty text asks the environment again.
    """

def simd_level() -> str:
    """The level in use."""

def simd_levels() -> list[str]:
    """Those that this processor has, the best last."""

def usual_threads() -> int:
    """How many threads a call uses that names no number."""

class HammingIndex:
    """The native part of `neardup.Index`."""

    bits: int
    radius: int

    def __init__(self, bits: int, radius: int) -> None: ...
    def __len__(self) -> int: ...
    def nbytes(self) -> int: ...
    def segments(self) -> list[tuple[int, list[tuple[int, int]]]]: ...
    def add(
        self,
        ids: npt.NDArray[np.int64] | list[str],
        prints: _Prints,
        threads: int | None,
        replaced: npt.NDArray[np.int64] | list[str] | None,
    ) -> None:
        """Add one fingerprint for each id, in place of all that *replaced* have."""
    def add_one(self, id: int | str, value: int) -> None: ...
    def search_one(self, value: int, radius: int) -> list[tuple[Any, int]]: ...
    def remove(self, ids: npt.NDArray[np.int64] | list[str]) -> int: ...
    def remove_one(self, id: int | str, value: int) -> int: ...
    def search(self, prints: _Prints, radius: int, threads: int | None) -> tuple[_Rows, Any, _Distances]: ...
    def nearest(self, prints: _Prints, count: int, threads: int | None) -> tuple[_Rows, Any, _Distances]: ...
    def items(self) -> tuple[npt.NDArray[np.int64] | list[str], _Words]:
        """The ids of all entries, and their words, one after the other."""
    def write_to(self, file: IO[bytes], digest: str) -> bytes:
        """Write the index to an open file; its stamp."""
    @staticmethod
    def load(path: str, mapped: bool) -> tuple[HammingIndex, str, bytes]:
        """The index of a file, mapped or read into memory; the digest of its scheme and its stamp."""
    @staticmethod
    def read_from(data: bytes) -> tuple[HammingIndex, str, bytes]:
        """The same of the bytes of a file."""

class SimhashValue:
    """A value and its bits: a base of `Simhash`, for objects that are small."""

    value: int
    f: int
    _options: Any
    def __init__(self, *arguments: Any, **options: Any) -> None: ...

class StreamIndex:
    """Named fingerprints that are added, removed and queried one by one: a base of `SimhashIndex`."""

    def __init__(self, *arguments: Any, **options: Any) -> None: ...
    def _start(self, plain: type, bits: int, radius: int, blocks: list[tuple[int, int]], limit: int) -> None:
        """Start again. A block is given by its first bit and the one after it. Objects of the class *plain*
        have the value that the native part of them has."""
    def add(self, obj_id: Any, simhash: Any) -> None:
        """Put in a fingerprint; one of up to 1,024 bits waits for the next query, to be added with others."""
    def delete(self, obj_id: Any, simhash: Any) -> None:
        """Take out the entry of that id and fingerprint, if there is one."""
    def get_near_dups(self, simhash: Any) -> list[str]:
        """The ids of what is within the radius, the nearest first; calls `_warn` if blocks are crowded."""
    def _entries(self) -> tuple[list[str], npt.NDArray[np.uint64]]:
        """The ids and the words of all entries."""
    def _asked(self) -> npt.NDArray[np.uint64]:
        """The words of everything that was removed, or queried and not found."""

class PairStream:
    """A join whose pairs come in batches."""

    def __init__(
        self, prints: _Prints, other: _Prints | None, bits: int, radius: int, threads: int | None
    ) -> None: ...
    def take(self, most: int) -> tuple[_Rows, _Rows, _Distances]:
        """The next pairs, about `most` of them; none at the end."""

def check_index(data: bytes) -> None:
    """Raise DamagedFile unless the bytes are those of an index file."""

def index_stamp(path: str) -> bytes | None:
    """16 bytes that two index files share if they are the same; None if it is not an index file."""

_Column = tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8]]

def give_back() -> None:
    """Give memory that was freed back to the system."""

def check_thread_memory() -> None:
    """Raise MemoryError where a new thread would not find what it needs to begin."""

def watch(look: Callable[[], None] | None) -> Callable[[], None] | None:
    """From now on long calls that this thread makes call *look* every 50 ms, and end with what it raises.

    Returns what they called before.
    """

def ordered(
    ids: CoreTexts,
    rows: npt.NDArray[np.int32] | None,
    keys: list[tuple[npt.NDArray[np.uint32], bool]],
    threads: int | None,
) -> npt.NDArray[np.int32]:
    """The places of *rows*, or of all, in the order of their keys, then of their ids. A key is a number for
    each id, and whether the highest comes first."""

def one_of_each(
    content: npt.NDArray[np.uint64], codes: npt.NDArray[np.uint32] | None, order: npt.NDArray[np.int32]
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """The document of each text, the text of each document, and for each text the first that is equal
    except for its code."""

def most_alike(words: npt.NDArray[np.uint64], valid: npt.NDArray[np.bool_]) -> npt.NDArray[np.uint32]:
    """The valid rows that hold the most frequent value."""

def stars(
    count: int,
    left: npt.NDArray[np.int32],
    right: npt.NDArray[np.int32],
    fixed: npt.NDArray[np.bool_] | None,
) -> npt.NDArray[np.int32]:
    """For each of *count* documents, numbered in keep order, the one that stays for it, itself if it stays.
    Pairs are accepted ones, sorted by left and right, left before right; *fixed* ones are never taken."""

class Uniques:
    def __init__(self) -> None: ...
    def add(self, ids: list[str], places: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]: ...
    @property
    def nbytes(self) -> int: ...

def line_ends(data: bytes) -> int: ...
def read_jsonl(
    block: bytes, text: str, id: str
) -> tuple[_Column, _Column | None, npt.NDArray[np.int64]] | None:
    """Offsets and bytes of texts and ids, and where lines begin; None for a block with a doubtful line."""

def read_jsonl_fields(
    block: bytes, fields: Sequence[str], id: str, between: str, limit: int
) -> tuple[_Column, _Column | None, npt.NDArray[np.int64]] | None:
    """The same for texts made of several *fields*, with *between* between two; None also if no line has one
    of them or a text is longer than *limit* bytes."""

def walk_pairs(
    documents: int, left: npt.NDArray[np.int64], right: npt.NDArray[np.int64], least: int
) -> tuple[npt.NDArray[np.uint32], list[int]]:
    """An order of pairs in which near documents are together, and where its parts end."""

def image_fingerprints(
    thumbs: npt.NDArray[np.uint8],
    views: npt.NDArray[np.int64],
    symmetries: npt.NDArray[np.uint8],
    least: int,
    threads: int | None,
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.bool_]]:
    """Words and validity of thumbnails (n x 16384) through views (1/65536 pixels) and masks of symmetries."""

def image_agreements(
    thumbs: npt.NDArray[np.uint8],
    left: npt.NDArray[np.int64],
    right: npt.NDArray[np.int64],
    maps: npt.NDArray[np.float64],
    threads: int | None,
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.uint8]]:
    """For each pair of thumbnails 20 numbers: the map, how far they agree, how they lean; and 64 marks.

    A mark says of a block of the left one: 0 the same, 1 differs, 2 not in the right one, 3 too plain.
    """

def image_regions(
    thumbs: npt.NDArray[np.uint8],
    left: npt.NDArray[np.int64],
    right: npt.NDArray[np.int64],
    warps: npt.NDArray[np.float64],
    threads: int | None,
) -> npt.NDArray[np.int32]:
    """11 counts of windows for each pair of thumbnails, laid by a map and a lean (8 numbers)."""

def image_corners(
    thumbs: npt.NDArray[np.uint8], most: int, threads: int | None
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32], npt.NDArray[np.uint64]]:
    """Corners of thumbnails: the image of each, its place in the unit square, its 256 bits."""

def image_maps(
    matches: npt.NDArray[np.float32], ends: npt.NDArray[np.int64], least: int, threads: int | None
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """For each run of matches (x, y left; x, y right) the map that they elect and its votes; 0 for none."""
