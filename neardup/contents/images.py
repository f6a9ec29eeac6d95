"""Images: how they are looked at, how candidates are proposed, and how they are judged."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup import _native
from neardup.arrays import core_texts
from neardup.candidates import Candidates
from neardup.contents import image_search
from neardup.contents.model import Content, Flow, Match, Side, Wanted, Words, Work
from neardup.errors import InvalidValue, Said, Setting
from neardup.fingerprints import Fingerprints
from neardup.images import comparisons, proposals, rules
from neardup.images.additions import additions
from neardup.images.prints import asked, stored
from neardup.images.thumbs import THUMB, BadImage, Thumbs, address, look
from neardup.images.views import WHOLE, fingerprints_of
from neardup.index import Index
from neardup.numbering import steps
from neardup.observers import by_share
from neardup.representatives import Representatives
from neardup.schemes import Scheme
from neardup.schemes import scheme as scheme_of
from neardup.settings import Settings
from neardup.sources import Located, id_path, mostly_images
from neardup.sources.images import FIELDS
from neardup.survey import Looked
from neardup.types import Bands, Batch, PairNumbers, TextNumbers
from neardup.verdicts import Judge, Judgements
from neardup.verifiers import Measure, Verdicts, parse_measure

if TYPE_CHECKING:
    from neardup.images.overlays import Look, Overlay


class Images(Content):
    """Documents that are image files."""

    name = "image"
    noun = "image"
    unit = "image"
    format = "image"
    features = "picture"
    scheme = "image"
    defaults: ClassVar = MappingProxyType({"similarity": 0.79, "keep": "central,resolution,size"})
    fields = FIELDS
    figures = ("similarity", "agreement", "fine_agreement")
    said: ClassVar = MappingProxyType(
        {"agreement": "blocks that agree", "fine_agreement": "fine blocks that agree"}
    )
    reasons = rules.REASONS
    identical = rules.IDENTICAL
    spelled = rules.IDENTICAL
    as_seen = True
    mapped = True
    remembered = True
    words = Words(
        measured="pixels",
        part="pixel",
        silent="of one colour",
        nothing="one colour",
        near=(
            "Two images count as near-duplicates when, one laid upon the other, the blocks of both that show "
            "something correlate by at least",
            "on the mean (1 is the same) <em>and</em> most blocks agree by themselves: one layout with "
            "another content is not enough.",
        ),
        early="so many blocks of both agree by themselves that a lower mean will do",
        terms=(
            (
                "similarity",
                "Mean correlation of the blocks of two images that show something, one laid upon the other: "
                "1 is the same image. Measured on pixels, not estimated.",
            ),
            (
                "blocks that agree",
                "The share of those blocks that correlate by themselves, in the coarse image and in the fine "
                "one.",
            ),
            ("mirror, rot90, crop, turned, …", "What leads from one image to the other."),
        ),
    )

    def claims(self, data: Any) -> bool:
        return mostly_images(data)

    def check(self, settings: Settings, scheme: Scheme | None) -> None:
        if settings.learned is not None:
            raise InvalidValue(Said(Setting("rule"), " is learned on texts, and these are images"))
        other = parse_measure(settings.verify).name not in (*rules.RULES, "none")
        if scheme is None and other:
            raise InvalidValue(
                f"images are verified by default, strict, loose or none, not by {settings.verify!r}"
            )
        if settings.subject is not None:
            raise InvalidValue(
                "a subject is for texts; to compare only images with the same field, use within"
            )
        if scheme is not None and (other or scheme.hash != "dct-signs"):
            raise InvalidValue(
                "images are verified by default, strict, loose or none, with scheme image, "
                f"not by {settings.verify!r} with scheme {scheme.name!r}"
            )

    def scheme_for(self, documents: int) -> Scheme:
        return scheme_of("image")

    def look(
        self, batch: Batch, frequencies: _native.Frequencies | None, key: bytes, threads: int | None
    ) -> Looked:
        """Contents are those of the files; images have no lengths."""
        thumbs = _thumbs(batch)
        digests = b"".join(bytes.fromhex(text)[:16] for text in batch.texts.to_pylist())
        content = np.frombuffer(digests, dtype="<u8").astype(np.uint64).reshape(-1, 2)
        words, informative = fingerprints_of(thumbs, [WHOLE], threads=threads)
        spelling = _native.spellings(core_texts(batch.texts), key)
        lengths = np.zeros(len(batch), dtype=np.int64)
        return Looked(content, informative, lengths, spelling, prints=words)

    def fingerprints(self, scheme: Scheme, batch: Batch, *, threads: int | None = None) -> Fingerprints:
        if scheme.hash != "dct-signs":
            return scheme.fingerprints(map(id_path, batch.ids.to_pylist()), threads=threads)
        words, valid = fingerprints_of(_thumbs(batch), [WHOLE], threads=threads)
        return Fingerprints(words, bits=scheme.bits, valid=valid, digest=scheme.digest)

    def flow(self, prints: Fingerprints, texts: Representatives, work: Work) -> Flow:
        return ImageFlow(prints, texts, work)

    def additions(
        self, judge: Judge, left: TextNumbers, right: TextNumbers, map: npt.NDArray[np.float64]
    ) -> npt.NDArray[np.int8]:
        if not isinstance(judge, Laying):
            return super().additions(judge, left, right, map)
        thumbs, threads = judge.flow.thumbs, judge.flow.work.threads
        one, other = left.astype(np.int64), right.astype(np.int64)
        return additions(thumbs, one, other, map, threads=threads)

    def view(self, one: Located, prefix: str) -> tuple[Side, Look | None]:
        """An image made small for the page, without what its file says beside the pixels."""
        try:
            with open(id_path(one.id.removeprefix(prefix)), "rb") as file:
                data = file.read()
            seen = look(data)
        except (OSError, BadImage):
            return Side(one.id, "", one.batch.file), None
        image, colours = seen
        scale = " (decoded at a reduced scale)" if image.reduced else ""
        facts = {"pixels": f"{image.width} x {image.height}{scale}", "bytes": f"{len(data):,}"}
        return Side(one.id, "", one.batch.file, facts, address(colours)), seen

    def overlay(self, left: Look, right: Look, map: Sequence[float] | None) -> Overlay:
        from neardup.images.overlays import overlay

        return overlay(left, right, None if map is None else np.asarray(map))

    def question(self, question: str) -> bytes:
        with open(question, "rb") as file:
            return file.read()

    def search(self, asked: bytes, data: Sequence[str], wanted: Wanted) -> list[Match]:
        return image_search.search_images(
            asked, data, ignore_colour=wanted.ignore_colour, threads=wanted.threads
        )

    def search_index(self, asked: bytes, index: Index, wanted: Wanted) -> list[Match]:
        return image_search.search_image_index(
            asked, index, wanted.scheme, ignore_colour=wanted.ignore_colour, threads=wanted.threads
        )

    def reach(self, question: str) -> str:
        return f"{image_search.RADIUS} of 256 bits of the image {question!r}, in any turn or part"

    def index_radius(self, scheme: Scheme) -> int:
        return proposals.RADIUS * scheme.bits // 256

    def indexed(
        self, batch: Batch, scheme: Scheme, *, threads: int | None = None
    ) -> tuple[Sequence[int], Fingerprints]:
        """The whole image and, if it has flat borders, also what is inside them."""
        if scheme.hash != "dct-signs":
            return super().indexed(batch, scheme, threads=threads)
        kept = stored(_thumbs(batch), threads=threads)
        return kept.image.tolist(), Fingerprints(kept.prints.words, bits=scheme.bits, digest=scheme.digest)


def _thumbs(batch: Batch) -> Thumbs:
    if batch.images is None:
        raise InvalidValue(f"scheme 'image' is for image files, and {batch.file!r} holds texts; pass paths")
    return batch.images


@dataclass(eq=False)
class ImageFlow:
    """The candidates among the images of one run, and the verdicts on them."""

    prints: Fingerprints
    texts: Representatives
    work: Work
    ways: Ways | None = None
    """In which ways the images of each candidate pair may lie on each other."""

    @cached_property
    def thumbs(self) -> Thumbs:
        """The thumbnails of the images that stand for others, on the disk where memory does not do."""
        texts, work = self.texts, self.work
        wanted = np.full(len(texts.of_document), -1, dtype=np.int64)
        wanted[texts.document] = np.arange(len(texts.document))
        shape = (len(texts.document), THUMB)
        thumbs: Thumbs
        if shape[0] * THUMB > work.memory:
            with work.spare() as path:  # the map stays when the name goes
                thumbs = np.memmap(path, dtype=np.uint8, mode="w+", shape=shape)
        else:
            thumbs = np.zeros(shape, dtype=np.uint8)
        for at, batch in work.batches():
            numbers = wanted[at : at + len(batch)]
            thumbs[numbers[numbers >= 0]] = _thumbs(batch)[numbers >= 0]
        return thumbs

    @property
    def radius(self) -> int:
        radius = self.work.settings.radius
        return proposals.RADIUS if radius is None else radius

    def propose(self, advance: Callable[..., None], bands: Bands | None = None) -> pa.Table:
        """Pairs of images that are near enough, each with the ways to lay one on the other."""
        tell = [by_share(advance, len(self.texts), step, 4) for step in range(4)]
        thumbs, threads = self.thumbs, self.work.threads
        tell[0](1.0)
        asking = asked(thumbs, threads=threads)
        kept = asking.as_they_are
        tell[1](1.0)
        ways = proposals.propose(kept, asking, self.radius, threads=threads, tell=tell[2])
        if self.work.settings.radius is None:
            ways = proposals.merged(
                ways, proposals.propose_by_corners(thumbs, whole=self.prints, threads=threads)
            )
        found = ways.table()
        tell[3](1.0)
        way = (
            f"{len(kept.prints)} fingerprints of {len(self.texts.of_document)} images, "
            f"{len(asking.prints)} asked for, radius {self.radius}"
        )
        return found.replace_schema_metadata({b"plan": way.encode()})

    def candidates(self, proposed: pa.Table) -> Candidates:
        self.ways = ways = Ways.of(proposed, self.texts)
        return Candidates(
            left=TextNumbers(ways.keys >> 32),
            right=TextNumbers(ways.keys & 0xFFFFFFFF),
            distance=ways.proposals.distance[ways.begin],
            radius=self.radius,
            plan=(proposed.schema.metadata or {})[b"plan"].decode(),
            prints=self.prints,
            crowded=TextNumbers(np.zeros(0, dtype=np.int64)),
        )

    @contextmanager
    def judging(
        self, found: Candidates, measure: Measure, frequencies: _native.Frequencies
    ) -> Iterator[Judge]:
        assert self.ways is not None
        settings = self.work.settings
        rule = rules.rule_of(measure.name, settings.similarity, ignore_colour=settings.ignore_colour)
        yield Laying(self, self.ways, rule)


@dataclass(frozen=True, slots=True, eq=False)
class Ways:
    """For each candidate pair, which rows of the proposals belong to it (*begin* to *end*)."""

    proposals: proposals.Proposals
    keys: npt.NDArray[np.int64]
    """The pairs, sorted, each as left << 32 | right."""
    begin: npt.NDArray[np.int64]
    end: npt.NDArray[np.int64]

    @classmethod
    def of(cls, proposed: pa.Table, texts: Representatives) -> Ways:
        """Those of the pairs that may be compared."""
        ways = proposals.Proposals.of(proposed)
        low, high = np.minimum(ways.left, ways.right), np.maximum(ways.left, ways.right)
        allowed = texts.comparable(TextNumbers(low), TextNumbers(high))
        first = np.ones(len(low), dtype=bool)
        first[1:] = (low[1:] != low[:-1]) | (high[1:] != high[:-1])
        begin = np.flatnonzero(first)
        end = np.append(begin[1:], len(low))
        chosen = allowed[begin]
        begin, end = begin[chosen], end[chosen]
        return cls(ways, low[begin] << 32 | high[begin], begin, end)


@dataclass(frozen=True, slots=True)
class Laying:
    """Judges pairs of images, laid on each other in the ways that were found for each pair."""

    flow: ImageFlow
    ways: Ways
    rule: rules.ImageRule

    def parts(self, found: Candidates) -> Iterable[PairNumbers]:
        return (PairNumbers(part) for part in steps(len(found), self.flow.work.sizes.round))

    def judge_part(self, left: TextNumbers, right: TextNumbers) -> Verdicts:
        return self.judge(left, right)

    def judge(self, left: TextNumbers, right: TextNumbers) -> Verdicts:
        ways = self.ways
        rows = np.searchsorted(ways.keys, left << 32 | right)
        seen = comparisons.verify(
            self.flow.thumbs,
            ways.proposals,
            ways.begin[rows],
            ways.end[rows],
            self.rule,
            threads=self.flow.work.threads,
        )
        mean, share, fine = (np.clip(seen.found[:, at], 0.0, 1.0) for at in (9, 10, 12))
        return Verdicts(seen.accepted, seen.reason, mean, share, fine, map=seen.map)

    def meet(self, found: Candidates, judgements: Judgements) -> None:
        pass
