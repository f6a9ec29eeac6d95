"""What the page of a run shows: the rows of its tables that are worth a look, and their documents.

All of it comes from a manifest, the tables and the sources, whether the run is about to be written or was
finished long ago: the page is the same.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup.contents import Content, content_of_run
from neardup.guards import Loss, Trip
from neardup.report import (
    CLUSTERS,
    EXAMPLES,
    LOOKED_AT,
    MEMBERS,
    PAIRS,
    ClusterView,
    GuardView,
    PairView,
    Report,
    Side,
)
from neardup.results import ANNOTATIONS, Result
from neardup.sources import Source, path_id
from neardup.verifiers import UNVERIFIED
from neardup.wording import counted

BINS: Final = 40  # of similarities


def report_of(
    result: Result,
    manifest: Mapping[str, Any],
    sources: Sequence[Source],
    *,
    folder: str | None = None,
    when: float | None = None,
    stopped: bool = False,
) -> Report:
    """The page of a result, which *manifest* describes; its texts are read from *sources* once more."""
    return build_report(
        json.loads(json.dumps(manifest)),  # as it is read from a finished run, so that the page is the same
        pa.Table.from_batches(result.annotation_batches(), schema=ANNOTATIONS),
        result.evidence,
        _first_ids(result.without_information_batches()),
        sources,
        folder=folder,
        when=time.time() if when is None else when,
        stopped=stopped,
    )


def _first_ids(batches: Iterable[pa.RecordBatch]) -> list[str]:
    """The first ids, as many as the page shows."""
    return [id for batch in islice(batches, 1) for id in batch.column("id").slice(0, EXAMPLES).to_pylist()]


def build_report(
    manifest: Mapping[str, Any],
    annotations: pa.Table,
    evidence: pa.Table,
    without_information: Sequence[str],
    sources: Sequence[Source],
    *,
    folder: str | None,
    when: float,
    stopped: bool = False,
) -> Report:
    """Everything that the page shows, with the texts that it needs from *sources*, in one more reading.

    *manifest* is what a run writes, *folder* where it is, *when* the time at which it was finished.
    """
    sizes = Counter(Counter(annotations.column("cluster").to_pylist()).values())
    clusters = _largest(annotations, evidence)
    content = content_of_run(manifest)
    borderline = _borderline(evidence, content)
    looked_at = [rows[:LOOKED_AT] for rows in (*clusters.values(), borderline)]
    wanted = {row[side] for rows in looked_at for row in rows for side in ("keeper", "id")}
    sides, looks = _sides(content, sources, wanted)
    views = []
    for keeper, rows in clusters.items():
        members = [_view(content, row, sides, looks) for row in rows[: MEMBERS if looks else LOOKED_AT]]
        views.append(ClusterView(sides.get(keeper, Side(keeper, "")), members, len(rows) + 1))
    # Copies, whose texts need no measuring, are among them.
    measured = evidence.filter(pc.not_equal(evidence.column("reason"), UNVERIFIED)).column("accepted")
    accepted = int(pc.sum(measured).as_py() or 0)
    settings = manifest["settings"]
    summary = {
        **manifest["counts"],
        "measured": len(measured),
        "accepted": accepted,
        "rejected": len(measured) - accepted,
        "bits": manifest["scheme"]["bits"],
        "recall": settings["recall"],
        "keep": settings["keep"],
        "reasons": _reasons(evidence),
        "stopped": stopped,
        "annotate_only": settings["annotate_only"],
        "title": _title(manifest),
        "date": _date(when),
        "folder": folder,
        "files": _are_files(manifest, annotations),
        "saved": None if stopped else _saved(manifest, annotations),
    }
    return Report(
        summary=summary,
        sizes=dict(sizes),
        distances=_distances(evidence),
        similarities=_similarities(evidence),
        clusters=views,
        borderline=[_view(content, row, sides, looks) for row in borderline],
        losses=[Loss(**row) for row in manifest["sources"]],
        guards=[_guard(row) for row in manifest["guards"]],
        without_information=without_information,
        plan=manifest["plan"],
        manifest={key: value for key, value in manifest.items() if key not in ("outputs", "seal")},
    )


def _date(when: float) -> str:
    """The time to the minute, in UTC; SOURCE_DATE_EPOCH replaces it where bytes must be equal."""
    with suppress(KeyError, ValueError):
        when = float(os.environ["SOURCE_DATE_EPOCH"])
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(when))


def _title(manifest: Mapping[str, Any]) -> str:
    """What was deduplicated: the input, or the folder of several."""
    content, names = content_of_run(manifest), [row["name"] for row in manifest["inputs"]]
    if not names:  # a program handed them over
        return f"Near-duplicates in {counted(manifest['counts']['documents'], 'document')}"
    if len(names) == 1:
        return f"Near-duplicates in {os.path.basename(names[0]) or names[0]}"
    what = counted(len(names), content.noun if content.format is not None else "file")
    folder = ""
    with suppress(ValueError):  # no names, or of several drives
        folder = os.path.basename(os.path.commonpath(list(map(os.path.abspath, names))))
    return f"Near-duplicates in {what}" + (f" of {folder}" if folder and "://" not in names[0] else "")


def _own_files(manifest: Mapping[str, Any], annotations: pa.Table) -> list[tuple[int, bool]]:
    """The inputs that are a document each: their bytes, and whether they stay."""
    paths = {path_id(row["name"]): row["bytes"] or 0 for row in manifest["inputs"]}
    mask = pc.is_in(annotations.column("id"), pa.array(list(paths), pa.string()))
    found = annotations.select(["id", "keep"]).filter(mask).to_pylist()
    return [(paths[row["id"]], row["keep"]) for row in found]


def _are_files(manifest: Mapping[str, Any], annotations: pa.Table) -> bool:
    """Whether every document is a file, which `apply` can remove."""
    return len(_own_files(manifest, annotations)) == len(annotations)


def _saved(manifest: Mapping[str, Any], annotations: pa.Table) -> int | None:
    """The bytes by which what stays is smaller than the inputs; None where that is not known."""
    files = _own_files(manifest, annotations)
    saved: int = sum(size for size, keep in files if not keep)
    if len(files) == len(annotations):
        return saved
    kept = [row for row in manifest.get("outputs", ()) if row["name"].startswith("kept")]
    if not kept or any(row["bytes"] is None for row in manifest["inputs"]):
        return None  # nothing was copied, or the sizes are not known
    read = sum(row["bytes"] for row in manifest["inputs"]) - sum(size for size, _ in files)
    saved += read - sum(row["bytes"] for row in kept if not row["name"].endswith(".txt"))
    return max(saved, 0)


def _largest(annotations: pa.Table, evidence: pa.Table) -> dict[str, list[dict[str, Any]]]:
    """The evidence rows of the largest clusters, the least similar members first."""
    gone = annotations.filter(pc.is_valid(annotations.column("duplicate_of")))
    counts = gone.group_by("cluster").aggregate([([], "count_all")])
    order = counts.sort_by([("count_all", "descending"), ("cluster", "ascending")]).slice(0, CLUSTERS)
    names = order.column("cluster").to_pylist()
    keeper = dict(zip(gone.column("id").to_pylist(), gone.column("duplicate_of").to_pylist(), strict=True))
    rows = evidence.filter(
        pc.and_(
            pc.is_in(evidence.column("keeper"), pa.array(names, pa.string())), evidence.column("accepted")
        )
    ).to_pylist()
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    for row in rows:
        if keeper.get(row["id"]) == row["keeper"]:
            found[row["keeper"]].append(row)
    for members in found.values():
        members.sort(key=lambda row: (row["similarity"] or 0.0, row["id"]))
    return found


def _borderline(evidence: pa.Table, content: Content) -> list[dict[str, Any]]:
    """The least similar accepted pairs, and the most similar rejected ones; a copy is not a close call."""
    copies = pc.is_in(evidence.column("reason"), pa.array([content.identical, content.spelled]))
    yes = evidence.filter(pc.and_not(evidence.column("accepted"), copies))
    no = evidence.filter(pc.invert(evidence.column("accepted")))
    ties = [("distance", "descending"), ("keeper", "ascending"), ("id", "ascending")]
    # Nothing is known about what was not measured: it comes first.
    yes = yes.append_column("known", pc.fill_null(yes.column("similarity"), 0.0))
    found: list[dict[str, Any]] = yes.sort_by([("known", "ascending"), *ties]).slice(0, PAIRS).to_pylist()
    found += no.sort_by([("similarity", "descending"), *ties]).slice(0, PAIRS).to_pylist()
    return found


def _sides(
    content: Content, sources: Sequence[Source], wanted: set[str]
) -> tuple[dict[str, Side], dict[str, Any]]:
    """The documents with those ids as they are shown, and what is needed to lay one over the other."""
    found: dict[str, Side] = {}
    looks: dict[str, Any] = {}
    for source in sources:
        for one in source.find(wanted - found.keys()):
            found[one.id], look = content.view(one, source.prefix)
            if look is not None:
                looks[one.id] = look
    return found, looks


def _view(
    content: Content, row: Mapping[str, Any], sides: Mapping[str, Side], looks: Mapping[str, Any]
) -> PairView:
    keeper, other = (sides.get(row[name], Side(row[name], "")) for name in ("keeper", "id"))
    numbers = {name: row[name] for name in ("distance", "similarity", "accepted", "reason")}
    figures = [(said, row[name]) for name, said in content.said.items() if row.get(name) is not None]
    laid = keeper.id in looks and other.id in looks
    over = content.overlay(looks[keeper.id], looks[other.id], row.get("map")) if laid else None
    return PairView(keeper, other, **numbers, figures=figures, overlay=over)


def _reasons(evidence: pa.Table) -> dict[str, tuple[int, int]]:
    counts: dict[str, list[int]] = {}
    for group in evidence.group_by(["reason", "accepted"]).aggregate([([], "count_all")]).to_pylist():
        row = counts.setdefault(group["reason"], [0, 0])
        row[0 if group["accepted"] else 1] += group["count_all"]
    ordered = sorted(counts.items(), key=lambda item: (-item[1][0], -item[1][1], item[0]))
    return {reason: (yes, no) for reason, (yes, no) in ordered}


def _distances(evidence: pa.Table) -> dict[int, tuple[int, int]]:
    distance = evidence.column("distance").to_numpy()
    accepted = evidence.column("accepted").to_numpy()
    yes, no = Counter(distance[accepted].tolist()), Counter(distance[~accepted].tolist())
    return {at: (yes[at], no[at]) for at in sorted({*yes, *no})}


def _similarities(evidence: pa.Table) -> list[tuple[float, float, int, int]]:
    evidence = evidence.filter(evidence.column("similarity").is_valid())
    if not len(evidence):
        return []
    similarity = np.minimum(evidence.column("similarity").to_numpy(), 1.0)
    accepted = evidence.column("accepted").to_numpy()
    edges = np.linspace(0, 1, BINS + 1)
    yes, no = (np.histogram(similarity[mask], edges)[0].tolist() for mask in (accepted, ~accepted))
    return [
        (low, high, a, b)
        for low, high, a, b in zip(edges[:-1].tolist(), edges[1:].tolist(), yes, no, strict=True)
    ]


def _guard(row: Mapping[str, Any]) -> GuardView:
    trip = Trip(**{name: row[name] for name in ("name", "limit", "value", "what", "examples")})
    return GuardView(trip.name, trip.limit, trip.value, trip.stopped, trip.examples, trip.what, trip.option)
