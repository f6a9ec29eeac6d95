"""A run directory: what a deduplication left behind, read again and checked (docs/formats/run.md)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from neardup import results
from neardup.contents import Content, content_of_run
from neardup.errors import DamagedFile, InvalidValue, RefusedInput, Said, Setting, shown
from neardup.files import file_digest
from neardup.results import evidence_schema
from neardup.runs import manifests
from neardup.runs.folders import ANNOTATIONS, EVIDENCE, SCHEME
from neardup.runs.manifests import MANIFEST, Input
from neardup.schemes import Scheme
from neardup.seals import holds, own_key
from neardup.sources import Reading, Source, among, id_path, open_source, values_of
from neardup.types import PROTECTED
from neardup.verifiers import (
    IDENTICAL,
    SPELLED,
    LearnedRule,
    Measure,
    learned_measure,
    measuring_scheme,
    parse_measure,
)
from neardup.verifiers.measures import with_floor

# What the evidence called the figures of every content in runs of format 1.
OLD_FIGURES: Final = ("similarity", "common", "rare")
# Columns in which nothing is missing.
WHOLE_COLUMNS: Final = ("id", "keeper", "keep", "accepted")
INPUTS: Final = Setting("inputs", words="the inputs")


class Run:
    """A run directory. Nothing is read before it is needed."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        if not os.path.isdir(self.path):
            raise InvalidValue(
                f"{self.path!r} is not a run directory; give the folder that `neardup dedupe -o` made"
            )

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """Versions, settings, inputs, outputs and counts."""
        return manifests.read(self.path)

    @cached_property
    def annotations(self) -> pa.Table:
        """One row per document, sorted by id."""
        return self._checked(ANNOTATIONS, self._read(ANNOTATIONS), results.ANNOTATIONS)

    @cached_property
    def evidence(self) -> pa.Table:
        """One row per measured pair, sorted by keeper and id."""
        table = self._read(EVIDENCE)
        if self.manifest.get("format") == 1:
            table = table.rename_columns(self._old_names(table.column_names))
        schema = evidence_schema(self.content, learned=self.settings.get("rule") is not None)
        if self.content.mapped and "map" not in table.column_names:  # of an older run
            table = table.append_column("map", pa.nulls(len(table), schema.field("map").type))
        return self._checked(EVIDENCE, table, schema)

    def _old_names(self, names: Sequence[str]) -> list[str]:
        """The *names* of columns of format 1, as they are called now."""
        now = {"rule": "reason", **dict(zip(OLD_FIGURES, self.content.figures, strict=True))}
        return [now.get(name, name) for name in names]

    @property
    def content(self) -> Content:
        """What kind of documents the run was over."""
        return content_of_run(self.manifest)

    @property
    def settings(self) -> Mapping[str, Any]:
        found = self.manifest.get("settings")
        return found if isinstance(found, dict) else {}

    @property
    def is_own(self) -> bool:
        """Whether the manifest, and with it all it has the digest of, is what this user's neardup wrote."""
        try:
            return holds(own_key(), self.manifest.get("seal"), *manifests.sealed_parts(self.manifest))
        except RecursionError:  # deeper than anything that we write
            return False

    @property
    def measure(self) -> Measure:
        """What decided whether a pair of texts is one."""
        name, similarity = self.judged_by
        if self.learned is None:
            return parse_measure(name, similarity)
        found = learned_measure(self.learned)
        return found if similarity is None else with_floor(found, similarity)

    @cached_property
    def learned(self) -> LearnedRule | None:
        """The rule that was learned and decided, if one did."""
        rule = self.settings.get("rule")
        return None if rule is None else LearnedRule.of_facts(rule, f"the rule of run {self.path!r}")

    @property
    def judged_by(self) -> tuple[str, float | None]:
        """The name of its rule, and the least similarity if that was set."""
        name, similarity = self.settings.get("verify") or "default", self.settings.get("similarity")
        number = isinstance(similarity, int | float) and 0 < similarity <= 1
        if not isinstance(name, str) or not (similarity is None or number):
            raise DamagedFile(f"run {self.path!r} does not say by which rule it judged")
        return name, similarity

    @property
    def radius(self) -> int | None:
        """Up to which distance pairs were considered."""
        counts = self.manifest.get("counts")
        return counts.get("radius") if isinstance(counts, dict) else None

    @cached_property
    def inputs(self) -> tuple[Input, ...]:
        """The files that were read."""
        return manifests.inputs(self.manifest.get("inputs"))

    @cached_property
    def protected(self) -> tuple[Input, ...]:
        """The files of documents that stay whatever happens."""
        return manifests.inputs(self.manifest.get("protected"))

    def _read(self, name: str) -> pa.Table:
        path = os.path.join(self.path, name)
        try:
            return pq.read_table(path, page_checksum_verification=True)
        except FileNotFoundError:
            raise InvalidValue(
                f"{path!r} is missing: this run did not finish, or it is another folder"
            ) from None
        except (pa.ArrowException, OSError) as error:
            raise DamagedFile(f"{path!r} is damaged: {error}") from None

    def _checked(self, name: str, table: pa.Table, schema: pa.Schema) -> pa.Table:
        """*table* with the columns of *schema*, if they are what neardup writes."""
        path = os.path.join(self.path, name)
        missing = [column for column in schema.names if column not in table.column_names]
        if missing:
            raise DamagedFile(f"{path!r} has no column {missing[0]!r}; it was not written by neardup")
        table = table.select(schema.names)
        for column in table.schema:
            wanted = schema.field(column.name).type
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
        rows = manifests.rows(self.manifest.get("outputs"))
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
        identical = pc.is_in(self.evidence.column("reason"), value_set=pa.array([IDENTICAL, SPELLED]))
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
            raise RefusedInput(
                Said("this run read standard input, which cannot be read again; name ", INPUTS)
            )
        missing = next(filter(_is_missing, given), None)
        if missing is not None and not named:
            raise RefusedInput(
                Said(f"{missing!r} is not here; go to the folder where the run was made, or name ", INPUTS)
            )
        if not named and any("://" in name for name in given) and not self.is_own:
            raise RefusedInput(
                Said(
                    f"run {self.path!r} was written by another user or neardup, or was changed since, and "
                    f"names an address, {shown(next(name for name in given if '://' in name))}; name ",
                    INPUTS,
                )
            )
        return open_source(given, Reading.of(self.settings), prefix=prefix, unique=True)

    def texts(
        self, ids: Iterable[str], inputs: Sequence[str] = (), *, whole: bool = False
    ) -> tuple[dict[str, str], Scheme, Scheme]:
        """The texts of some documents, the run's scheme and the measuring one, in one reading of the inputs.

        A document without an annotation is looked for among the protected ones, or in *inputs*.
        A fitted scheme is fitted again, unless the run kept it; its digest shows that it is the same.
        The measuring one is fitted if the *whole* input is to be read.
        """
        wanted = set(ids)
        scheme = self.scheme_used()
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
        for source, some in sources:
            if table is None:
                found.update((one.id, one.text) for one in source.find(some - found.keys()))
                continue
            values = values_of(some)
            for batch in source:
                measuring.count(batch.texts, table)
                found.update((one.id, one.text) for one in among(batch, values))
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

    def scheme_used(self) -> Scheme:
        """The scheme that the run used; not fitted, unless the run kept it."""
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
