"""Parts of a run: what its stages keep in checkpoints, and take from them when it resumes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup import _native
from neardup.checkpoints import Checkpoints
from neardup.fingerprints import Fingerprints
from neardup.guards import Loss, Met, trips
from neardup.numbering import Flags, steps
from neardup.representatives import Representatives
from neardup.requests import Request
from neardup.results import ANNOTATIONS, WITHOUT_INFORMATION, Result
from neardup.runs import outputs
from neardup.survey import Again, Documents
from neardup.types import Bands, PrintPlaces, RowNumbers

# The parts of a run that a guard stopped.
STOPPED: Final = ("annotations", "evidence", "without_information", "fitted", "stopped", "input-0", "input-1")


@dataclass(frozen=True, slots=True, eq=False)
class Surveyed:
    """What has been surveyed so far."""

    documents: Documents
    frequencies: _native.Frequencies
    key: bytes
    """The secret by which this run identifies texts."""
    first: int
    """How many of the documents are from the input; protected ones follow."""
    batches: int = 0
    counts: Sequence[dict[str, Any]] | None = None
    """What each source counted; None while not all is read."""

    @property
    def fixed(self) -> Flags:
        """Which documents are protected."""
        fixed = np.zeros(len(self.documents), dtype=bool)
        fixed[self.first :] = True
        return fixed


def save_survey(checkpoints: Checkpoints, part: Surveyed) -> None:
    """Keep what has been surveyed so far."""
    # The table first, under a name of its own: the survey says which table belongs to it.
    name = "frequencies" if part.counts is not None else f"frequencies-{len(part.documents)}"
    data = pa.array([part.frequencies.to_bytes()], pa.large_binary())
    checkpoints.save(name, pa.table({"bytes": data}))
    notes = {"frequencies": name, "key": part.key.hex(), "first": part.first}
    notes |= {"batches": part.batches, "sources": part.counts}
    table = part.documents.table()
    metadata = {**(table.schema.metadata or {}), b"notes": json.dumps(notes).encode()}
    checkpoints.save("survey", table.replace_schema_metadata(metadata))
    checkpoints.forget_others("frequencies", name)


def load_survey(checkpoints: Checkpoints) -> Surveyed | None:
    """What was surveyed before, if anything was."""
    if (table := checkpoints.load("survey")) is None:
        return None
    notes = json.loads((table.schema.metadata or {})[b"notes"])
    if (counted := checkpoints.load(notes["frequencies"])) is None:
        return None
    return Surveyed(
        documents=Documents.of(table),
        frequencies=_native.Frequencies.from_bytes(counted.column("bytes")[0].as_py()),
        key=bytes.fromhex(notes["key"]),
        first=notes["first"],
        batches=notes["batches"],
        counts=notes["sources"],
    )


def save_fingerprints(
    checkpoints: Checkpoints,
    prints: Fingerprints,
    texts: Representatives,
    count: int,
    bands: Bands | None = None,
) -> None:
    """Keep the fingerprints of the first *count* documents, and the bands of those that are texts."""
    each = 0 if bands is None else bands.shape[1]

    def batches() -> Iterator[pa.RecordBatch]:
        for part in steps(count):
            places = texts.place(RowNumbers(part))
            some = Fingerprints(prints.words[places], bits=prints.bits, valid=prints.valid[places])
            columns = {"fingerprint": some.to_arrow()}
            if bands is not None:
                own = np.zeros((len(places), each), dtype=np.uint32)
                own[places < len(bands)] = bands[places[places < len(bands)]]
                columns["bands"] = pa.FixedSizeListArray.from_arrays(pa.array(own.ravel()), each)
            yield pa.record_batch(columns, schema)

    schema = pa.schema([("fingerprint", pa.binary(prints.words.shape[1] * 8))])
    if bands is not None:
        schema = schema.append(pa.field("bands", pa.list_(pa.uint32(), each)))
    checkpoints.save_batches("fingerprints", schema, batches())


def bands_of(part: pa.RecordBatch, *, into: Bands, at: PrintPlaces) -> None:
    """Put the bands that were kept of some documents where those of the texts belong."""
    put_bands(part.column("bands").flatten().to_numpy().reshape(len(at), -1), into=into, at=at)


def put_bands(own: Bands, *, into: Bands, at: PrintPlaces) -> None:
    """Put the bands of some documents where those of the texts belong; copies of a text have none."""
    texts = at < len(into)
    into[at[texts]] = own[texts]


def save_stopped(checkpoints: Checkpoints, result: Result, request: Request) -> None:
    """Keep *result*, which a guard stopped: with another limit, the same run has nothing left to find."""
    if result.restored:
        return
    notes = {
        "summary": result.summary,
        "plan": result.plan,
        "digest": result.scheme.digest,
        "losses": [asdict(loss) for loss in result.losses],
        "met": asdict(result.met),
        "sources": [source.counts() for source in request.sources],
    }
    frequencies = None
    if request.scheme is None or request.scheme.frequencies is None:
        frequencies = result.scheme.frequencies
    fitted = b"" if frequencies is None else frequencies.to_bytes()
    save = checkpoints.save_batches
    save("annotations", ANNOTATIONS, result.annotation_batches())
    save("evidence", result.evidence_schema, result.evidence_batches())
    save("without_information", WITHOUT_INFORMATION, result.without_information_batches())
    for number, source in enumerate(request.sources):
        assert isinstance(source.expected, Again)
        checkpoints.save(f"input-{number}", source.expected.table())
    checkpoints.save("fitted", pa.table({"bytes": pa.array([fitted], pa.large_binary())}))
    # The last one: it shows that the others are there.
    mask = pa.table({"keep": result.keep_mask})
    checkpoints.save("stopped", mask.replace_schema_metadata({b"notes": json.dumps(notes).encode()}))


def load_stopped(checkpoints: Checkpoints, request: Request) -> Result | None:
    """The result of the same run, if a guard stopped it; its limits may have been different."""
    mask = checkpoints.load("stopped")
    fitted = None if mask is None else checkpoints.load("fitted")
    tables = [checkpoints.opened(name) for name in STOPPED[:3]] if fitted is not None else [None]
    read = [checkpoints.load(f"input-{number}") for number in range(len(request.sources))]
    if mask is None or fitted is None or any(table is None for table in (*tables, *read)):
        return None
    notes = json.loads((mask.schema.metadata or {})[b"notes"])
    met = Met(**{**notes["met"], "losses": [Loss(**loss) for loss in notes["met"]["losses"]]})
    scheme = request.scheme or request.content.scheme_for(met.documents)
    if scheme.weights == "log-df" and scheme.frequencies is None:
        table = _native.Frequencies.from_bytes(fitted.column("bytes")[0].as_py())
        scheme = replace(scheme, frequencies=table)
    if scheme.digest != notes["digest"]:
        return None
    for source, counts, known in zip(request.sources, notes["sources"], read, strict=True):
        source.restore(counts)
        assert known is not None
        source.expected = Again.of(known)
    annotations, evidence, without = (table for table in tables if table is not None)

    def annotation_batches(*, input_order: bool = False) -> Iterator[pa.RecordBatch]:
        own = request.source.expected
        if not input_order or not isinstance(own, Again):
            return iter(annotations.to_batches())
        places = pc.index_in(own.ids.cast(pa.string()), value_set=annotations.column("id"))
        return iter(annotations.take(places).to_batches())

    return Result(
        summary=notes["summary"],
        scheme=scheme,
        plan=notes["plan"],
        guards=trips(request.settings.guards, met),
        met=met,
        losses=tuple(Loss(**loss) for loss in notes["losses"]),
        request=request,
        outputs=outputs,
        keep_mask=mask.column("keep").to_numpy(),
        annotation_batches=annotation_batches,
        evidence_batches=lambda: iter(evidence.to_batches()),
        without_information_batches=lambda: iter(without.to_batches()),
        restored=True,
    )
