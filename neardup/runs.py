"""Run directories: what a deduplication left behind, read again and checked (docs/formats/run.md)."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from neardup.errors import DamagedFile, InvalidValue, RefusedInput, shown
from neardup.files import file_digest
from neardup.pictures import RULES as PICTURE_RULES
from neardup.pictures import Rule as PictureRule
from neardup.pictures import rule_of
from neardup.schemes import Scheme
from neardup.seals import holds, own_key, seal
from neardup.sources import Source, id_path, open_source, path_id
from neardup.types import PROTECTED
from neardup.verify import IDENTICAL, SPELLED, Measure, measuring_scheme, parse_measure

ANNOTATIONS: Final = "annotations.parquet"
EVIDENCE: Final = "evidence.parquet"
MANIFEST: Final = "manifest.json"
SCHEME: Final = "scheme.nd"  # there when the run was asked to keep its fitted scheme
COLUMNS: Final = {
    ANNOTATIONS: ("id", "cluster", "keep", "duplicate_of", "distance", "similarity"),
    EVIDENCE: (
        "keeper",
        "id",
        "distance",
        "similarity",
        "common",
        "rare",
        "accepted",
        "rule",
        "scheme",
        "radius",
    ),
}
# The types of columns that are no text, and the columns in which nothing is missing.
TYPES: Final = {
    "keep": pa.bool_(),
    "accepted": pa.bool_(),
    "distance": pa.int32(),
    "radius": pa.int32(),
    **dict.fromkeys(("similarity", "common", "rare"), pa.float64()),
}
WHOLE_COLUMNS: Final = ("id", "keeper", "keep", "accepted")
DECISION: Final = ("keep", "cluster", "duplicate_of")  # columns of the annotations
FIGURES: Final = ("distance", "similarity")
NAME_THEM: Final = "name the inputs (explain: with --input, apply: behind RUN)"


@dataclass(frozen=True, slots=True)
class Input:
    """A file that a run read: its path as it was given, and what it was then (*modified* in nanoseconds).

    *root* is the folder that was named, and walked to find it; None where the file itself was named.
    """

    path: str
    bytes: int | None
    sha256: str | None
    modified: int | None = None
    root: str | None = None

    @property
    def id(self) -> str:
        """The id of the document that is the whole file."""
        return path_id(self.path)


class Run:
    """A run directory. Nothing is read before it is asked for."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        if not os.path.isdir(self.path):
            raise InvalidValue(
                f"{self.path!r} is no run directory; give the folder that `neardup dedupe -o` made"
            )

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """Versions, settings, inputs, outputs and counts."""
        try:
            with open(os.path.join(self.path, MANIFEST), "rb") as file:
                found = json.load(file)
        except FileNotFoundError:
            raise InvalidValue(
                f"{self.path!r} has no {MANIFEST}: it is no run directory, or the run did not end; "
                "repeat the same `neardup dedupe` to continue it"
            ) from None
        except (ValueError, RecursionError) as error:
            raise DamagedFile(f"{os.path.join(self.path, MANIFEST)!r} is damaged: {error}") from None
        if not isinstance(found, dict):
            raise DamagedFile(f"{os.path.join(self.path, MANIFEST)!r} is damaged: it is no JSON object")
        return found

    @cached_property
    def annotations(self) -> pa.Table:
        """One row a document, sorted by id."""
        return self._table(ANNOTATIONS)

    @cached_property
    def evidence(self) -> pa.Table:
        """One row a measured pair, sorted by keeper and id."""
        return self._table(EVIDENCE)

    @property
    def settings(self) -> Mapping[str, Any]:
        found = self.manifest.get("settings")
        return found if isinstance(found, dict) else {}

    @property
    def is_own(self) -> bool:
        """Whether the manifest, and with it all it has the digest of, is what this user's neardup wrote."""
        try:
            return holds(own_key(), self.manifest.get("seal"), *_sealed_parts(self.manifest))
        except RecursionError:  # deeper than anything that we write
            return False

    @property
    def measure(self) -> Measure:
        """What decided whether a pair of texts is one."""
        return parse_measure(*self._rule())

    @property
    def picture_rule(self) -> PictureRule:
        """The same for pictures."""
        name, similarity = self._rule()
        if name not in PICTURE_RULES:
            raise DamagedFile(f"run {self.path!r} has no rule for pictures, but {shown(name)}")
        return rule_of(name, similarity, ignore_colour=self.settings.get("ignore_colour") is True)

    def _rule(self) -> tuple[str, float | None]:
        name, similarity = self.settings.get("verify") or "default", self.settings.get("similarity")
        number = isinstance(similarity, int | float) and 0 < similarity <= 1
        if not isinstance(name, str) or not (similarity is None or number):
            raise DamagedFile(f"run {self.path!r} does not say by which rule it judged")
        return name, similarity

    @property
    def radius(self) -> int | None:
        """Up to which distance pairs were looked at."""
        counts = self.manifest.get("counts")
        return counts.get("radius") if isinstance(counts, dict) else None

    @cached_property
    def inputs(self) -> tuple[Input, ...]:
        """The files that were read."""
        return _files(self.manifest.get("inputs"))

    @cached_property
    def protected(self) -> tuple[Input, ...]:
        """The files of documents that stay whatever happens."""
        return _files(self.manifest.get("protected"))

    def _table(self, name: str) -> pa.Table:
        path = os.path.join(self.path, name)
        try:
            table = pq.read_table(path, page_checksum_verification=True)
        except FileNotFoundError:
            raise InvalidValue(
                f"{path!r} is missing: this run did not end, or it is another folder"
            ) from None
        except (pa.ArrowException, OSError) as error:
            raise DamagedFile(f"{path!r} is damaged: {error}") from None
        missing = [column for column in COLUMNS[name] if column not in table.column_names]
        if missing:
            raise DamagedFile(f"{path!r} has no column {missing[0]!r}; it was not written by neardup")
        table = table.select(list(COLUMNS[name]))
        for column in table.schema:
            wanted = TYPES.get(column.name, pa.string())
            if column.type != wanted:
                raise DamagedFile(
                    f"{path!r} was not written by neardup: {column.name!r} is {column.type}, not {wanted}"
                )
            if column.name in WHOLE_COLUMNS and table.column(column.name).null_count:
                raise DamagedFile(f"{path!r} was not written by neardup: {column.name!r} is null in a row")
        return table

    def problems(self) -> list[str]:
        """What is wrong with the files of the run; empty if it is complete and as it was written."""
        found = []
        rows = _rows(self.manifest.get("outputs"))
        for name in (ANNOTATIONS, EVIDENCE):
            if not any(row["name"] == name for row in rows):
                found.append(f"{name} is not listed in {MANIFEST}")
        for row in rows:
            path = os.path.join(self.path, row["name"])
            if os.path.basename(row["name"]) != row["name"]:
                found.append(f"{row['name']} is not in the run directory")
            elif not os.path.isfile(path):
                found.append(f"{row['name']} is missing")
            elif row.get("sha256") not in (None, file_digest(path)):
                found.append(f"{row['name']} is not what the run wrote: its SHA-256 is another")
        return found

    def check(self) -> None:
        """Raise if the run is not complete or not as it was written."""
        if found := self.problems():
            raise DamagedFile(f"run {self.path!r} cannot be trusted: {'; '.join(found)}")

    def pair(self, left: str, right: str) -> dict[str, Any] | None:
        """The evidence of two documents, in whichever order they were compared."""
        table = self.evidence
        keeper, other = table.column("keeper"), table.column("id")
        either = pc.or_(
            pc.and_(pc.equal(keeper, left), pc.equal(other, right)),
            pc.and_(pc.equal(keeper, right), pc.equal(other, left)),
        )
        rows = table.filter(either).slice(0, 1).to_pylist()
        return rows[0] if rows else None

    def neighbours(self, id: str, most: int) -> list[str]:
        """Documents that were measured against *id* or against its keeper, the nearest first."""
        row = self.document(id)
        own = pa.array([id, row["duplicate_of"]] if row is not None else [id], pa.string())
        identical = pc.is_in(self.evidence.column("rule"), value_set=pa.array([IDENTICAL, SPELLED]))
        table = self.evidence.filter(pc.invert(identical))
        met = [pc.is_in(table.column(side), value_set=own) for side in ("keeper", "id")]
        near = table.filter(pc.or_(*met)).sort_by("distance").slice(0, most)
        return [row[side] for row in near.to_pylist() for side in ("keeper", "id")]

    def first_pair(self) -> tuple[str, str] | None:
        """A document that goes and its keeper; the first one of the annotations."""
        with pq.ParquetFile(os.path.join(self.path, ANNOTATIONS)) as file:
            for batch in file.iter_batches(columns=["id", "duplicate_of"]):
                rows = batch.filter(batch.column("duplicate_of").is_valid()).slice(0, 1).to_pylist()
                if rows:
                    return rows[0]["id"], rows[0]["duplicate_of"]
        return None

    def document(self, id: str) -> dict[str, Any] | None:
        """The annotation of one document."""
        rows = self.annotations.filter(pc.equal(self.annotations.column("id"), id)).slice(0, 1).to_pylist()
        return rows[0] if rows else None

    def named(self, id: str) -> str:
        """The id of a document as this run writes it: what is only among the protected ones has a prefix."""
        if not self.protected or id.startswith(PROTECTED) or self.document(id) is not None:
            return id
        return PROTECTED + id

    def path_of(self, id: str) -> str:
        """The path of a document that is a file."""
        return id_path(id.removeprefix(PROTECTED) if self.document(id) is None else id)

    def _annotated(self, ids: set[str]) -> set[str]:
        """Those of *ids* that have an annotation; a protected document has none."""
        column = self.annotations.column("id")
        return set(column.filter(pc.is_in(column, value_set=pa.array(sorted(ids), column.type))).to_pylist())

    def source(self, inputs: Sequence[str] = ()) -> Source:
        """The documents of the run, read again: from its own inputs, or from *inputs*."""
        return self._open(list(inputs) or [one.path for one in self.inputs], named=bool(inputs))

    def sources(self, inputs: Sequence[str] = ()) -> list[Source]:
        """Its documents, and those that it protected, as they were: a file that changed is refused."""
        found = [self.source(inputs)]
        if self.protected and not inputs:
            found.append(self._open([one.path for one in self.protected], named=False, prefix=PROTECTED))
        for one in () if inputs else (*self.inputs, *self.protected):
            if one.sha256 is None or "://" in one.path:
                continue
            status = os.stat(one.path)
            same = (status.st_size, status.st_mtime_ns) == (one.bytes, one.modified)
            if not same and file_digest(one.path) != one.sha256:
                raise RefusedInput(f"{one.path!r} changed since the run; run `neardup dedupe` again")
        return found

    def _open(self, given: list[str], *, named: bool, prefix: str = "") -> Source:
        if not given or "<stdin>" in given:
            raise RefusedInput(f"this run read standard input, which cannot be read again; {NAME_THEM}")
        missing = next(filter(_is_missing, given), None)
        if missing is not None and not named:
            raise RefusedInput(
                f"{missing!r} is not here; go to the folder where the run was made, or {NAME_THEM}"
            )
        if not named and any("://" in name for name in given) and not self.is_own:
            raise RefusedInput(
                f"run {self.path!r} was written by another user or neardup, or was changed since, and names "
                f"an address, {shown(next(name for name in given if '://' in name))}; {NAME_THEM}"
            )
        settings = self.settings
        return open_source(
            given,
            prefix=prefix,
            text_field=settings.get("text_field") or "text",
            id_field=settings.get("id_field"),
            format=settings.get("format"),
            html=bool(settings.get("html")),
            unique=True,
        )

    def texts(
        self, ids: Iterable[str], inputs: Sequence[str] = (), *, whole: bool = False
    ) -> tuple[dict[str, str], Scheme, Scheme]:
        """The texts of some documents, the run's scheme and the measuring one, in one reading of the inputs.

        A document without an annotation is looked for among the protected ones, or in *inputs*.
        A fitted scheme is fitted again, unless the run kept it; its digest shows that it is the same.
        The measuring one is fitted if the *whole* input is to be read.
        """
        wanted = set(ids)
        scheme = self._scheme()
        fit = scheme.weights == "log-df" and scheme.digest != self.digest
        # A run fits its scheme with the table by which it verifies.
        measuring = measuring_scheme()
        table = measuring.fit([]).frequencies if fit or whole else None
        found: dict[str, str] = {}
        own = self._annotated(wanted)
        guarded = [one.path for one in self.protected]
        if inputs:  # among these may be what was protected, under another path
            digests = {one.sha256 for one in self.protected}
            moved = [path for path in inputs if os.path.isfile(path) and file_digest(path) in digests]
            inputs = [path for path in inputs if path not in moved]
            if moved or any(map(_is_missing, guarded)):
                guarded = moved
        sources = [(self.source(inputs), own)]
        if guarded:
            sources.append((self._open(guarded, named=False, prefix=PROTECTED), wanted - own))
        for batch, some in ((batch, some) for source, some in sources for batch in source):
            if table is not None:
                measuring.count(batch.texts, table)
            mask = pc.is_in(batch.ids, value_set=pa.array(sorted(some), pa.large_string()))
            if pc.any(mask).as_py():
                found.update(
                    zip(batch.ids.filter(mask).to_pylist(), batch.texts.filter(mask).to_pylist(), strict=True)
                )
            if table is None and len(found) == len(wanted):
                break
        if fit:
            scheme = replace(scheme, frequencies=table)
        return found, scheme, replace(measuring, frequencies=table)

    def mask(self, source: Source, *, same_bytes: bool) -> npt.NDArray[np.bool_]:
        """Which documents of *source*, in its order, stay. With *same_bytes* its files must be unchanged."""
        self.check()
        ids = [batch.ids for batch in source]
        if same_bytes:
            known = {one.path: one.sha256 for one in self.inputs}
            for name, digest in source.digests.items():
                if known.get(name) not in (None, digest):
                    raise RefusedInput(f"{name!r} changed since the run; run `neardup dedupe` again")
        kept = self.annotations
        places = pc.index_in(
            pa.chunked_array(ids, pa.large_string()), value_set=kept.column("id").cast(pa.large_string())
        )
        if places.null_count:
            row = pc.indices_nonzero(places.is_null())[0].as_py()
            name = pa.chunked_array(ids)[row].as_py()
            raise RefusedInput(f"document {name!r} is not in run {self.path!r}; these are other inputs")
        taken = kept.column("keep").combine_chunks().take(places.combine_chunks())
        found: npt.NDArray[np.bool_] = taken.to_numpy(zero_copy_only=False).astype(bool)
        return found

    @property
    def digest(self) -> str | None:
        """The digest of the scheme that the run used."""
        scheme = self.manifest.get("scheme")
        return scheme.get("digest") if isinstance(scheme, dict) else None

    def _scheme(self) -> Scheme:
        from neardup.schemes import scheme as scheme_of

        facts = self.manifest.get("scheme")
        facts = dict(facts) if isinstance(facts, dict) else {}
        kept = os.path.join(self.path, os.path.basename(str(facts.get("file") or SCHEME)))
        if os.path.isfile(kept):
            return scheme_of(kept)
        known = scheme_of("text").facts()
        row: dict[str, Any] = {key: facts.get(key, value) for key, value in known.items()}
        return Scheme(**row)


def _is_missing(path: str) -> bool:
    return "://" not in path and not os.path.exists(path)


def _rows(value: Any) -> list[dict[str, Any]]:
    """The entries of a list in the manifest that name a file."""
    if not isinstance(value, list):
        return []
    return [row for row in value if isinstance(row, dict) and isinstance(row.get("name"), str)]


def _files(value: Any) -> tuple[Input, ...]:
    return tuple(map(_file, _rows(value)))


def _file(row: dict[str, Any]) -> Input:
    """An input as the manifest tells it. What has the wrong type is as if it were not told."""
    found = {
        name: row[name] if type(row.get(name)) is kind else None
        for name, kind in (("bytes", int), ("sha256", str), ("modified", int), ("root", str))
    }
    try:
        os.fsencode(row["name"])
    except UnicodeError:
        raise DamagedFile(f"the manifest names {shown(row['name'])}, which no file can be called") from None
    return Input(row["name"], **found)


def sealed(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """*manifest* with the seal of the user; a null where there is no place for a key.

    Only for what this process knows to be so: who changes a manifest asks first whether the run `is_own`.
    """
    return {**manifest, "seal": seal(own_key(make=True), *_sealed_parts(manifest))}


def _sealed_parts(manifest: Mapping[str, Any]) -> tuple[bytes, bytes]:
    body = {name: value for name, value in manifest.items() if name != "seal"}
    # As it is read again: keys are texts and tuples lists.
    body = json.loads(json.dumps(body))
    return b"run", json.dumps(body, sort_keys=True, separators=(",", ":")).encode("ascii")


# --- two runs --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Change:
    """A document, or pair, that two runs tell differently."""

    id: str
    column: str
    left: Any
    right: Any


@dataclass(frozen=True, slots=True)
class Differences:
    """Where two runs differ. They are equal if they say the same, figures too, of every document and pair.

    Settings and inputs that differ explain a difference and are none by themselves: the same documents
    in other files must give the same result.
    """

    settings: tuple[Change, ...]
    inputs: tuple[Change, ...]
    only_left: int
    only_right: int
    changed: int
    """Documents with another decision: `keep`, `cluster` or `duplicate_of`."""
    figures: int
    """Documents with the same decision, and another `distance` or `similarity`."""
    pairs: int
    examples: tuple[Change, ...]

    @property
    def equal(self) -> bool:
        return not (self.only_left or self.only_right or self.changed or self.figures or self.pairs)


def compare_runs(left: Run, right: Run, *, most: int = 20) -> Differences:
    """Where two runs differ, with at most *most* examples."""
    for run in (left, right):
        run.check()
    a, b = left.annotations.combine_chunks(), right.annotations.combine_chunks()
    examples: list[Change] = []
    in_b = pc.is_in(a.column("id"), value_set=b.column("id"))
    in_a = pc.is_in(b.column("id"), value_set=a.column("id"))
    gone, new = a.filter(pc.invert(in_b)), b.filter(pc.invert(in_a))
    examples += [Change(id, "id", id, None) for id in gone.column("id").slice(0, most).to_pylist()]
    examples += [Change(id, "id", None, id) for id in new.column("id").slice(0, most).to_pylist()]
    a, b = _by(a.filter(in_b), "id"), _by(b.filter(in_a), "id")
    changed = _changed(a, b, DECISION)
    figures = pc.and_not(_changed(a, b, FIGURES), changed)
    rows = [
        row for which in (changed, figures) for row in pc.indices_nonzero(which).slice(0, most).to_pylist()
    ]
    for row in rows[:most]:
        ours, theirs = a.slice(row, 1).to_pylist()[0], b.slice(row, 1).to_pylist()[0]
        examples += [
            Change(ours["id"], column, ours[column], theirs[column])
            for column in COLUMNS[ANNOTATIONS][1:]
            if ours[column] != theirs[column]
        ]
    pairs = _pairs_apart(left.evidence, right.evidence)
    return Differences(
        settings=_settings_apart(left.manifest, right.manifest),
        inputs=_inputs_apart(left, right),
        only_left=len(gone),
        only_right=len(new),
        changed=pc.sum(changed).as_py() or 0,
        figures=pc.sum(figures).as_py() or 0,
        pairs=pairs,
        examples=tuple(examples[:most]),
    )


def _by(table: pa.Table, *names: str) -> pa.Table:
    return table.sort_by([(name, "ascending") for name in names])


def _changed(a: pa.Table, b: pa.Table, columns: Sequence[str]) -> Any:
    """Which rows differ in a column."""
    found = pa.array([False] * len(a)) if not len(a) else pc.not_equal(a.column("id"), b.column("id"))
    for name in columns:
        ours, theirs = a.column(name), b.column(name)
        other = pc.if_else(
            pc.and_(ours.is_valid(), theirs.is_valid()),
            pc.fill_null(pc.not_equal(ours, theirs), False),
            pc.xor(ours.is_valid(), theirs.is_valid()),
        )
        found = pc.or_(found, other)
    return found


def _pairs_apart(a: pa.Table, b: pa.Table) -> int:
    """How many pairs stand in one table only, or differ."""
    a, b = _by(a, "keeper", "id"), _by(b, "keeper", "id")
    if len(a) == len(b) and a.combine_chunks().equals(b.combine_chunks()):
        return 0
    ours, theirs = ({tuple(row.values()) for row in table.to_pylist()} for table in (a, b))
    return len({row[:2] for row in ours ^ theirs})


def _settings_apart(a: Mapping[str, Any], b: Mapping[str, Any]) -> tuple[Change, ...]:
    found = []
    for part in ("neardup", "scheme", "settings"):
        ours, theirs = (
            {part: one} if not isinstance(one, dict) else one for one in (a.get(part), b.get(part))
        )
        for name in sorted(ours.keys() | theirs.keys()):
            if ours.get(name) != theirs.get(name):
                shown = name if name == part else f"{part}.{name}"
                found.append(Change(shown, "setting", ours.get(name), theirs.get(name)))
    return tuple(found)


def _inputs_apart(a: Run, b: Run) -> tuple[Change, ...]:
    ours, theirs = ({one.path: one.sha256 for one in run.inputs} for run in (a, b))
    return tuple(
        Change(name, "sha256", ours.get(name), theirs.get(name))
        for name in sorted(ours.keys() | theirs.keys())
        if ours.get(name) != theirs.get(name)
    )
