"""What a content says to the flow: everything in which texts and images differ is in their rows.

A row is a class with facts (names, defaults, words) and with what is done to its documents: a look at a
batch, fingerprints, and the flow of one run, which proposes candidates and judges them. What a row leaves
out is as it is for documents that nothing special is known about.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Protocol

import numpy as np
import numpy.typing as npt

from neardup.candidates import Candidates
from neardup.errors import InvalidValue
from neardup.files import spare_path
from neardup.fingerprints import Fingerprints
from neardup.observers import SILENT, Observer
from neardup.representatives import Representatives
from neardup.schemes import Scheme
from neardup.settings import MEMORY, Settings, default_scheme
from neardup.sizes import USUAL, Sizes
from neardup.sources import Located, Reading, Source
from neardup.survey import Looked
from neardup.types import Bands, Batch, TextNumbers
from neardup.verdicts import Judge
from neardup.verifiers import Measure

if TYPE_CHECKING:
    import pyarrow as pa

    from neardup import _native
    from neardup.images.overlays import Overlay
    from neardup.index import Index


@dataclass(frozen=True, slots=True, eq=False)
class Work:
    """What a flow is given beside fingerprints and texts: the input once more, settings and means."""

    sources: Sequence[Source]
    settings: Settings = field(default_factory=Settings)
    observer: Observer = SILENT
    spare: Callable[[], AbstractContextManager[str]] = spare_path
    """A file for what does not fit into *memory*, as long as it is needed."""
    threads: int | None = None
    memory: int = MEMORY
    sizes: Sizes = USUAL

    def batches(self) -> Iterator[tuple[int, Batch]]:
        """Another reading of all documents: each batch with the row of its first document."""
        at = 0
        for source in self.sources:
            for batch in source:
                yield at, batch
                at += len(batch)


class Flow(Protocol):
    """The candidates of one run, and the verdicts on them."""

    def propose(self, advance: Callable[..., None], bands: Bands | None = None) -> pa.Table:
        """Pairs that are near enough to be looked at; *advance* is told how many texts are done. *bands* has
        a row for each text, if the content needs some.
        """

    def candidates(self, proposed: pa.Table) -> Candidates:
        """What `propose` gave, now or in an earlier process, as candidates."""

    def judging(
        self, found: Candidates, measure: Measure, frequencies: _native.Frequencies
    ) -> AbstractContextManager[Judge]:
        """The judge of the pairs *found*."""


@dataclass(frozen=True, slots=True)
class Words:
    """What the page of a run says of its documents. What follows the similarity may be HTML of our own."""

    measured: str = "content"
    """What pairs are compared on."""
    part: str = "content"
    """One piece of that, as in: no pixel was compared."""
    silent: str = "empty"
    """What documents without information are."""
    nothing: str = "empty"
    """What there is in them, as in: white space only."""
    near: tuple[str, str] = ("", "")
    """When two are near-duplicates, before and after the least similarity; nothing where that is not said."""
    early: str = "other figures decided there"
    """Why pairs below the least similarity are accepted."""
    terms: Sequence[tuple[str, str]] = (("similarity", "How alike two of them are: 1 is the same."),)
    """Words on the page, and what they mean."""
    marked: bool = False
    """Whether documents are shown as texts, with what only one of two has marked."""


@dataclass(frozen=True, slots=True)
class Side:
    """One document of a pair, as it is shown."""

    id: str
    text: str
    source: str = ""
    fields: Mapping[str, Any] = field(default_factory=dict)
    image: str = ""
    """An image to show instead of the text, as a data: address."""


@dataclass(frozen=True, slots=True)
class Match:
    """A document that is near the one in question.

    `similarity` is measured, or estimated from the distance if *verified* is False.
    """

    id: str
    distance: int
    similarity: float
    accepted: bool
    """Whether a run would take the two for duplicates; False if nothing was measured."""
    reason: str
    """For images, what leads from one to the other; for texts, why it is near or not."""
    verified: bool = True


@dataclass(frozen=True, slots=True)
class Wanted:
    """How a search is to be done. *scheme* names that of an index, if it is not a built-in one."""

    scheme: str | None = None
    ignore_colour: bool = False
    threads: int | None = None
    reading: Reading = field(default_factory=Reading)
    """How files of documents are read."""


class Content:
    """One kind of content."""

    name: ClassVar[str]
    noun: ClassVar[str] = "document"
    """What a document is called."""
    unit: ClassVar[str] = "text"
    """What one is called of which equal documents are copies."""
    format: ClassVar[str | None] = None
    """As what its inputs are read; None for whatever each file is."""
    features: ClassVar[str | None] = None
    """The features of a scheme that are those of this content alone."""
    scheme: ClassVar[str | None] = None
    """The scheme of a run, unless the user names one; None if that depends on the number of documents."""
    defaults: ClassVar[Mapping[str, Any]] = MappingProxyType({})
    """Settings that differ from the usual ones."""
    fields: ClassVar[Collection[str]] = ()
    """Fields that every document has without naming them."""
    figures: ClassVar[tuple[str, str, str]]
    """What the evidence calls the figures of a pair; the first one is the similarity."""
    said: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """What the other figures are called where people read them."""
    reasons: ClassVar[Sequence[str]]
    """The words of verdicts, each at the place that is its code."""
    identical: ClassVar[str]
    """The reason for a copy."""
    spelled: ClassVar[str]
    """The reason for a copy that is not the same letter for letter."""
    doubtful: ClassVar[str | None] = None
    """A reason that accepts, but should be looked at: perhaps two forms."""
    as_seen: ClassVar[bool] = False
    """Whether two are near as some view sees them; otherwise their own fingerprints tell the distance."""
    mapped: ClassVar[bool] = False
    """Whether a verdict has a map, which leads from one document of the pair to the other."""
    remembered: ClassVar[bool] = False
    """Whether the parts of a run are kept for the next one over the same files."""
    words: ClassVar[Words] = Words()

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    def __hash__(self) -> int:
        return hash(type(self))

    # --- what it is ---------------------------------------------------------------------------------------

    def claims(self, data: Any) -> bool:
        """Whether *data* is of this content, as far as names tell."""
        return False

    def check(self, settings: Settings, scheme: Scheme | None) -> None:
        """Raise if these settings are not for this content."""

    def scheme_for(self, documents: int) -> Scheme:
        """The scheme for this many documents, unless the user names one."""
        return default_scheme(documents)

    # --- the flow -----------------------------------------------------------------------------------------

    def look(
        self, batch: Batch, frequencies: _native.Frequencies | None, key: bytes, threads: int | None
    ) -> Looked:
        """What is found in the documents of a batch; their features are counted in *frequencies*."""
        raise NotImplementedError

    def fingerprints(self, scheme: Scheme, batch: Batch, *, threads: int | None = None) -> Fingerprints:
        """The fingerprints of the documents of a batch."""
        return scheme.fingerprints(batch.texts, threads=threads)

    def bands(self, scheme: Scheme, settings: Settings, texts: int) -> int:
        """How many bands of each the flow of this many texts needs."""
        return 0

    def flow(self, prints: Fingerprints, texts: Representatives, work: Work) -> Flow:
        """The flow of one run over *texts*, which have these fingerprints."""
        raise NotImplementedError

    def additions(
        self, judge: Judge, left: TextNumbers, right: TextNumbers, map: npt.NDArray[np.float64]
    ) -> npt.NDArray[np.int8]:
        """Which side of accepted pairs has something added: 1 the left one, -1 the right one, 0 none."""
        return np.zeros(len(left), dtype=np.int8)

    # --- the page -----------------------------------------------------------------------------------------

    def view(self, one: Located, prefix: str) -> tuple[Side, Any]:
        """A document as it is shown, and what `overlay` needs of it."""
        return Side(one.id, one.text, f"{one.batch.file}:{one.batch.places[one.row]}"), None

    def overlay(self, left: Any, right: Any, map: Sequence[float] | None) -> Overlay | None:
        """What two documents look like, one laid over the other as *map* says."""
        return None

    # --- search -------------------------------------------------------------------------------------------

    def question(self, question: str) -> Any:
        """What is searched for: *question* is a file, or a text itself."""
        self._no_search()

    def search(self, asked: Any, data: Sequence[str], wanted: Wanted) -> list[Match]:
        """What is near the one that is *asked* for in files and folders."""
        self._no_search()

    def search_index(self, asked: Any, index: Index, wanted: Wanted) -> list[Match]:
        """The same in an index."""
        self._no_search()

    def reach(self, question: str) -> str:
        """How near a document must be to *question* to be found, in words."""
        self._no_search()

    def index_radius(self, scheme: Scheme) -> int:
        """The radius that an index needs to answer a search."""
        self._no_search()

    def indexed(
        self, batch: Batch, scheme: Scheme, *, threads: int | None = None
    ) -> tuple[Sequence[int], Fingerprints]:
        """What an index holds of a batch: fingerprints, and the row of each."""
        return range(len(batch)), self.fingerprints(scheme, batch, threads=threads)

    def _no_search(self) -> NoReturn:
        raise InvalidValue(f"search is not for {self.noun}s of content {self.name!r}")
