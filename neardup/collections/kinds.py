"""Kinds of content in a collection: how one is kept, fingerprinted, asked for and compared.

A row for each content of `contents`; what differs between texts and images in a collection is here and
nowhere else in this package. To add one, write its class and add its line to `KINDS`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup.contents import CONTENTS, Content
from neardup.distances import distances
from neardup.errors import InvalidValue
from neardup.fingerprints import Fingerprints
from neardup.images.comparisons import compare
from neardup.images.prints import asked, stored
from neardup.images.proposals import RADIUS
from neardup.images.rules import rule_of
from neardup.images.thumbs import Thumbnail, decode
from neardup.pairs import join
from neardup.radius import radius_for
from neardup.registry import Registry
from neardup.schemes import Scheme
from neardup.schemes import scheme as scheme_of
from neardup.verifiers import WHOLE, judged_pairs, parse_measure

# What is kept of an image beside its thumbnail and the digest of its file.
FACTS: Final = ("width", "height", "pixels", "inner_pixels", "bytes", "exif")
# The share of pairs of the least similarity that are within the radius.
RECALL: Final = 0.95


@dataclass(frozen=True, slots=True)
class Kept:
    """A content as the store keeps it: its bytes, and the digest that equal contents share."""

    kind: str
    data: bytes
    digest: bytes


@dataclass(frozen=True, slots=True)
class Judged:
    """What was measured of the one in question and one other: figures in ten-thousandths."""

    similarity: int
    weighted: int
    rare: int
    accepted: bool
    reason: str


class Kind(Protocol):
    """One kind of content."""

    name: ClassVar[str]
    least: ClassVar[float]
    """The similarity from which two are near, unless the collection says otherwise."""
    fitted: ClassVar[bool]
    """Whether its scheme learns from what is stored."""

    @property
    def content(self) -> Content:
        """The row of `contents`."""

    def scheme(self) -> Scheme:
        """The scheme that a collection begins with."""

    def radius(self, scheme: Scheme, similarity: float) -> int:
        """How far apart two fingerprints of near contents may be."""

    def prints(self, scheme: Scheme, contents: Sequence[bytes]) -> list[list[bytes]]:
        """The fingerprints that are kept of each content: none if there is no information in it."""

    def questions(
        self, scheme: Scheme, contents: Sequence[bytes]
    ) -> tuple[Fingerprints, npt.NDArray[np.int64]]:
        """The fingerprints to ask with, and the content of each."""

    def judge(
        self,
        question: bytes,
        others: Sequence[bytes],
        prints: Sequence[Sequence[bytes]],
        scheme: Scheme,
        similarity: float,
    ) -> list[Judged]:
        """What is to be said of *question* and each of the *others*, which have these *prints*."""

    def fields(self, data: bytes) -> dict[str, Any]:
        """What is known of a content without looking at its document."""


def words_of(prints: Sequence[bytes], bits: int) -> Fingerprints:
    """Fingerprints that were kept as bytes."""
    words = np.frombuffer(b"".join(prints), dtype="<u8").astype(np.uint64)
    return Fingerprints(words.reshape(len(prints), (bits + 63) // 64), bits=bits)


def _kept_words(prints: Fingerprints) -> list[bytes]:
    return [row.astype("<u8").tobytes() for row in prints.words]


class Texts:
    """Texts, as UTF-8."""

    name: ClassVar = "text"
    least: ClassVar = 0.64
    fitted: ClassVar = True

    @property
    def content(self) -> Content:
        return CONTENTS.part("text")

    def scheme(self) -> Scheme:
        return scheme_of("text", bits=256, weights="log-df-open")

    def radius(self, scheme: Scheme, similarity: float) -> int:
        return radius_for(similarity, RECALL, scheme.bits)

    def prints(self, scheme: Scheme, contents: Sequence[bytes]) -> list[list[bytes]]:
        found = scheme.fingerprints(_texts(contents))
        rows = zip(_kept_words(found), found.valid.tolist(), strict=True)
        return [[words] if informative else [] for words, informative in rows]

    def questions(
        self, scheme: Scheme, contents: Sequence[bytes]
    ) -> tuple[Fingerprints, npt.NDArray[np.int64]]:
        return scheme.fingerprints(_texts(contents)), np.arange(len(contents))

    def judge(
        self,
        question: bytes,
        others: Sequence[bytes],
        prints: Sequence[Sequence[bytes]],
        scheme: Scheme,
        similarity: float,
    ) -> list[Judged]:
        # What is near one of the others is a neighbour of the pair, and may object to it.
        texts = [one.decode() for one in others]
        pairs = [(question.decode(), text) for text in texts]
        own = [(row, one[0]) for row, one in enumerate(prints) if one]
        if len(own) > 1:
            near = join(words_of([one for _, one in own], scheme.bits), self.radius(scheme, similarity))
            pairs += [(texts[own[left][0]], texts[own[right][0]]) for left, right, _ in near]
        measure = parse_measure("default", similarity)
        found = judged_pairs(pairs, measure, scheme.frequencies, open=True)
        return [
            Judged(
                round(one.similarity * WHOLE),
                round(one.weighted * WHOLE),
                round(one.rare * WHOLE),
                one.accepted,
                one.reason,
            )
            for one, _ in zip(found, others, strict=False)
        ]

    def fields(self, data: bytes) -> dict[str, Any]:
        return {}


def kept_text(text: str) -> Kept:
    """A text as it is kept; lone surrogates, which no UTF-8 can hold, become U+FFFD."""
    try:
        data = text.encode()
    except UnicodeEncodeError:
        data = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()
    return Kept("text", data, hashlib.sha256(b"text\0" + data).digest())


def _texts(contents: Sequence[bytes]) -> pa.Array:
    return pa.array(contents, pa.large_binary()).cast(pa.large_string())


class Images:
    """Images, as thumbnails. The file itself is not kept."""

    name: ClassVar = "image"
    least: ClassVar = 0.79
    fitted: ClassVar = False

    @property
    def content(self) -> Content:
        return CONTENTS.part("image")

    def scheme(self) -> Scheme:
        return scheme_of("image")

    def radius(self, scheme: Scheme, similarity: float) -> int:
        return RADIUS * scheme.bits // 256

    def prints(self, scheme: Scheme, contents: Sequence[bytes]) -> list[list[bytes]]:
        made = stored(_thumbs(contents))
        found: list[list[bytes]] = [[] for _ in contents]
        for image, words in zip(made.image.tolist(), _kept_words(made.prints), strict=True):
            found[image].append(words)
        return found

    def questions(
        self, scheme: Scheme, contents: Sequence[bytes]
    ) -> tuple[Fingerprints, npt.NDArray[np.int64]]:
        made = asked(_thumbs(contents))
        return Fingerprints(made.prints.words, bits=scheme.bits, digest=scheme.digest), made.image

    def judge(
        self,
        question: bytes,
        others: Sequence[bytes],
        prints: Sequence[Sequence[bytes]],
        scheme: Scheme,
        similarity: float,
    ) -> list[Judged]:
        one, rule = _thumbnail(question), rule_of("default", similarity)
        found = []
        for other in others:
            seen = compare(one, _thumbnail(other), rule)
            mean, share, fine = (round(float(np.clip(seen.found[at], 0, 1)) * WHOLE) for at in (9, 10, 12))
            found.append(Judged(mean, share, fine, seen.accepted, seen.reason))
        return found

    def fields(self, data: bytes) -> dict[str, Any]:
        return _facts(data)[0]


def kept_image(data: bytes) -> Kept:
    """An image file as it is kept: what is known of it, and its thumbnail."""
    found = decode(data)
    facts = {
        "width": found.width,
        "height": found.height,
        "pixels": found.pixels,
        "inner_pixels": found.inner_pixels,
        "bytes": len(data),
        "exif": found.taken,
    }
    return kept_thumbnail(found.thumb, hashlib.sha256(data).hexdigest(), facts)


def kept_thumbnail(thumb: bytes, sha256: str, facts: Mapping[str, Any]) -> Kept:
    """The same of an image that was decoded, from a file with that digest."""
    said = json.dumps({name: facts[name] for name in FACTS} | {"sha256": sha256}, sort_keys=True).encode()
    data = len(said).to_bytes(4, "little") + said + thumb
    return Kept("image", data, hashlib.sha256(b"image\0" + bytes.fromhex(sha256)).digest())


def _facts(data: bytes) -> tuple[dict[str, Any], bytes]:
    size = int.from_bytes(data[:4], "little")
    facts: dict[str, Any] = json.loads(data[4 : 4 + size])
    return facts, data[4 + size :]


def thumb_of(data: bytes) -> bytes:
    """The thumbnail of an image that is kept."""
    return _facts(data)[1]


def _thumbnail(data: bytes) -> Thumbnail:
    facts, thumb = _facts(data)
    return Thumbnail(facts["width"], facts["height"], facts["exif"], False, thumb)


def _thumbs(contents: Sequence[bytes]) -> npt.NDArray[np.uint8]:
    return np.stack([np.frombuffer(_facts(one)[1], dtype=np.uint8) for one in contents])


KINDS: Final[Registry[Kind]] = Registry("kind of content", {"text": Texts, "image": Images})


def kind_of(name: str) -> Kind:
    """The kind of that name."""
    return KINDS.part(name)


# --- what is kept of a content ---------------------------------------------------------------------------

PLAIN, ZSTD = b"\0", b"\1"


def compressed(data: bytes) -> bytes:
    """*data* as it is stored: a byte that names the way, and what it made."""
    made: bytes = pa.compress(data, codec="zstd", asbytes=True)
    return ZSTD + made if len(made) < len(data) else PLAIN + data


def decompressed(data: bytes, size: int) -> bytes:
    """What `compressed` was given."""
    if data[:1] == PLAIN:
        return data[1:]
    if data[:1] != ZSTD:
        raise InvalidValue(f"a content is compressed in a way that this neardup does not know ({data[:1]!r})")
    found: bytes = pa.decompress(data[1:], decompressed_size=size, codec="zstd", asbytes=True)
    return found


def fingerprint_distance(one: Sequence[bytes], other: Sequence[bytes], bits: int) -> int:
    """How far apart two contents are: the least distance of their fingerprints; *bits* if one has none."""
    if not one or not other:
        return bits
    left = words_of([a for a in one for _ in other], bits)
    right = words_of([b for _ in one for b in other], bits)
    return int(distances(left.words, right.words).min())


def checked_similarity(settings: Mapping[str, Any], kind: Kind) -> float:
    """The least similarity of a collection with these *settings*."""
    found = settings.get("similarity", {}).get(kind.name, kind.least)
    return float(found)
