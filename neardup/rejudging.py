"""Rejudging: the measured pairs of a finished run, decided anew with another setting.

Nothing is fingerprinted, and no pair is looked for: what the run did not measure stays unmeasured. So what
it looked at must reach as far as the new setting asks. Where the figures of the evidence decide, no text is
compared again; else the texts of its pairs are read and judged, which must give the similarity that the
evidence says.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup.candidates import Candidates
from neardup.contents import TEXT
from neardup.errors import DamagedFile, InvalidValue, NeardupError, RefusedInput, Said, Setting, shown
from neardup.fingerprints import Fingerprints
from neardup.guards import OFF, GuardLimits
from neardup.numbering import steps
from neardup.representatives import Representatives
from neardup.requests import Earlier
from neardup.runs import EVIDENCE, Run
from neardup.runs.manifests import rows
from neardup.schemes import Scheme
from neardup.settings import Settings
from neardup.sizes import USUAL
from neardup.sources import Source
from neardup.survey import Documents
from neardup.types import PairNumbers, RowNumbers, TextNumbers
from neardup.verdicts import Judgements
from neardup.verifiers import WHOLE, Measure, Verdicts, measuring_scheme
from neardup.verifiers.reasons import TABLE, code_of

AGAIN: Final = "run `neardup dedupe` again"
_CODES: Final = {reason.words: code for code, reason in enumerate(TABLE)}


def settings_of(run: Run) -> Settings:
    """The settings of a finished run, as its manifest says them."""
    said = run.settings
    names = {item.name for item in fields(Settings)} - {"guards", "rule"}
    try:
        given = {name: said[name] for name in names if name in said}
        limits = said.get("guards")
        guards = GuardLimits(**limits) if isinstance(limits, dict) else OFF
        return Settings(**given, rule=run.learned, guards=guards)
    except (NeardupError, TypeError) as error:
        raise DamagedFile(f"run {run.path!r} does not say what it was asked: {error}") from None


def earlier_of(run: Run, settings: Settings) -> Earlier:
    """What a finished run measured, if that is all that *settings* need."""
    run.check()
    if run.content != TEXT:
        raise InvalidValue(
            f"run {run.path!r} is over {run.content.noun}s, and only texts are rejudged; {AGAIN}"
        )
    before = settings_of(run)
    if not before.measure.verifies:
        raise InvalidValue(f"run {run.path!r} measured nothing, so there is nothing to decide; {AGAIN}")
    if not settings.measure.verifies:
        raise InvalidValue(
            f"`none` decides by fingerprints alone, and pairs are not looked for here; {AGAIN}"
        )
    if settings.similarity < before.similarity and before.radius is None:
        raise InvalidValue(
            Said(
                f"run {run.path!r} looked for pairs from a similarity of {before.similarity:g} on, and "
                f"{settings.similarity:g} asks for more: {AGAIN} with ",
                Setting("similarity"),
                f" {settings.similarity:g}",
            )
        )
    manifest = run.manifest
    digest = next(row.get("sha256") for row in rows(manifest["outputs"]) if row["name"] == EVIDENCE)
    return Earlier(
        run=str(manifest.get("run")),
        path=run.path,
        digest=str(digest),
        evidence=run.evidence,
        settings=before,
        scheme=str(run.digest),
        radius=run.radius or 0,
        plan=str(manifest.get("plan")),
        alike=_alike(manifest),
        inputs=tuple(rows(manifest.get("inputs"))),
        protected=tuple(rows(manifest.get("protected"))),
    )


def _alike(manifest: Mapping[str, Any]) -> tuple[float, tuple[str, ...]]:
    """The share of documents with one fingerprint, and some of them, as the guard of the run saw them."""
    for row in rows(manifest.get("guards")):
        if row["name"].endswith("max-same") and isinstance(row.get("value"), float):
            return row["value"], tuple(map(str, row.get("examples") or ()))
    return 0.0, ()


def check_same_inputs(earlier: Earlier, source: Source, protected: Source | None) -> None:
    """Raise if what was read now is not what the run read, wherever it is now."""
    for known, one in ((earlier.inputs, source), (earlier.protected, protected)):
        digests = [] if one is None else list(one.digests.values())
        before = [row.get("sha256") for row in known]
        if None not in (*before, *digests) and sorted(map(str, before)) != sorted(map(str, digests)):
            raise RefusedInput(f"the inputs are not those that run {earlier.path!r} read; {AGAIN}")


def facts_of(earlier: Earlier, source: Source, protected: Source | None) -> dict[str, Any]:
    """What the manifest says of the run whose pairs were decided anew: of the same files, all that it
    knew."""
    facts: dict[str, Any] = {
        "rejudged": {"run": earlier.run, "path": earlier.path, "evidence": earlier.digest}
    }
    for name, known, one in (("inputs", earlier.inputs, source), ("protected", earlier.protected, protected)):
        if {row["name"] for row in known} == set({} if one is None else one.digests):
            facts[name] = list(known)
    return facts


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """The pairs of an earlier run among the texts, and what was found for each."""

    found: Candidates
    verdicts: Verdicts


def known_pairs(
    earlier: Earlier, documents: Documents, texts: Representatives, prints: Fingerprints
) -> Known:
    """The pairs of texts that the evidence has, in the order of their numbers."""
    table = earlier.evidence
    ids = documents.ids
    rows = [pc.index_in(_large(table.column(side)), value_set=ids) for side in ("keeper", "id")]
    for side, places in zip(("keeper", "id"), rows, strict=True):
        if places.null_count:
            gone = table.column(side).filter(places.is_null())[0].as_py()
            raise RefusedInput(f"document {shown(gone)} of run {earlier.path!r} is not in the input; {AGAIN}")
    one, other = (texts.of_document[RowNumbers(places.to_numpy())].astype(np.int64) for places in rows)
    # A copy is one text with its keeper; what decided about it stands in another row, or needs no measuring.
    pairs = np.flatnonzero((one != other) & (one >= 0) & (other >= 0))
    left, right = np.minimum(one, other)[pairs], np.maximum(one, other)[pairs]
    _, first = np.unique(left << 32 | right, return_index=True)
    pairs, left, right = pairs[first], left[first], right[first]
    some = table.take(pa.array(pairs))
    found = Candidates(
        left=TextNumbers(left),
        right=TextNumbers(right),
        distance=some.column("distance").to_numpy().astype(np.int32),
        radius=earlier.radius,
        plan=f"the pairs of run {earlier.run}: {earlier.plan}",
        prints=prints,
        crowded=TextNumbers(np.zeros(0, np.int64)),
    )
    return Known(found, _verdicts(earlier, some))


def _large(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return column.cast(pa.large_string())


def _verdicts(earlier: Earlier, table: pa.Table) -> Verdicts:
    figures = []
    for name in TEXT.figures:
        column = table.column(name)
        if column.null_count:
            raise DamagedFile(f"run {earlier.path!r} has a pair without {name!r} in its evidence; {AGAIN}")
        figures.append(column.to_numpy())
    reasons = table.column("reason").to_pylist()
    try:
        code = np.array([_CODES[words] for words in reasons], np.uint8)
    except KeyError as unknown:
        raise InvalidValue(
            f"run {earlier.path!r} has the reason {shown(unknown.args[0])}, "
            f"which this neardup does not give; {AGAIN}"
        ) from None
    return Verdicts(table.column("accepted").to_numpy(), code, *figures)


# --- deciding --------------------------------------------------------------------------------------------


def by_figures(before: Measure, now: Measure) -> bool:
    """Whether the figures of the evidence decide: the same measure, at least as strict."""
    if now.whole is not None:
        return before.name == now.name and now.least >= before.least
    if before.rule is None or now.rule is None or before.learned != now.learned:
        return False
    return replace(before, rule=None) == replace(now, rule=None) and now.rule.floor >= before.rule.floor


def raised(found: Verdicts, measure: Measure) -> Verdicts:
    """The same verdicts with a higher floor, below which a pair is too different whatever else is said of
    it."""
    floor = measure.least if measure.rule is None else measure.rule.floor
    low = np.rint(found.similarity * WHOLE) < floor
    code = np.where(low, np.uint8(code_of("too-different")), found.code)
    return replace(found, accepted=found.accepted & ~low, code=code)


@dataclass(frozen=True, slots=True, eq=False)
class Recalled:
    """Judges pairs by what an earlier run found."""

    found: Candidates
    verdicts: Verdicts

    def parts(self, found: Candidates) -> Iterable[PairNumbers]:
        return (PairNumbers(part) for part in steps(len(found), USUAL.round))

    def judge_part(self, left: TextNumbers, right: TextNumbers) -> Verdicts:
        return self.judge(left, right)

    def judge(self, left: TextNumbers, right: TextNumbers) -> Verdicts:
        keys = self.found.left << 32 | self.found.right
        rows = np.searchsorted(keys, left << 32 | right)
        own = self.verdicts
        return Verdicts(
            own.accepted[rows], own.code[rows], own.similarity[rows], own.weighted[rows], own.rare[rows]
        )

    def meet(self, found: Candidates, judgements: Judgements) -> None:
        pass


def recalled(earlier: Earlier, known: Known, measure: Measure) -> Recalled | None:
    """What judges the pairs of an earlier run by its figures; None where the texts must be compared again."""
    if not by_figures(earlier.settings.measure, measure):
        return None
    return Recalled(known.found, raised(known.verdicts, measure))


def check_same_figures(earlier: Earlier, known: Known, judgements: Judgements, measure: Measure) -> None:
    """Raise if texts that were judged again are not as similar as the run found them."""
    before = earlier.settings.measure
    if before.rule is None or measure.rule is None:
        return  # the similarity is not the same figure
    now, then = judgements.measured[:, 0], np.rint(known.verdicts.similarity * WHOLE).astype(np.uint16)
    if (now != then).any():
        count = int((now != then).sum())
        raise RefusedInput(
            f"{count:,} pairs are not as similar as run {earlier.path!r} says: its inputs changed, "
            f"or another version of neardup made it; {AGAIN}"
        )


def placed(scheme: Scheme) -> bool:
    """Whether documents of one text have one fingerprint: then nothing needs to be fingerprinted."""
    return scheme.normalize == measuring_scheme().normalize
