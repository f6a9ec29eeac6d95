"""Writing a run: every file of a result, the manifest last."""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from neardup import results
from neardup.errors import LimitReached
from neardup.observers import SILENT, Observer, by_share, checked
from neardup.report import write_report
from neardup.results import Result
from neardup.runs import manifests
from neardup.runs.folders import (
    ANNOTATIONS,
    EVIDENCE,
    QUARANTINE,
    SCHEME,
    WITHOUT_INFORMATION,
    note_page,
)
from neardup.runs.manifests import Asked, describe, output, sealed
from neardup.runs.pages import page_output
from neardup.runs.views import report_of
from neardup.sinks.kept import copy_kept
from neardup.sinks.quarantine import Quarantine
from neardup.sinks.tables import open_sink
from neardup.sources import Source
from neardup.threads import Pool


def write_run(
    out: str,
    asked: Asked,
    result: Result,
    source: Source,
    protected: Source | None = None,
    *,
    run: str,
    quarantine: Quarantine,
    page: str | None = None,
    observer: Observer = SILENT,
    more: Mapping[str, Any] = MappingProxyType({}),
) -> tuple[dict[str, Any], Exception | None]:
    """Write all files into *out*; the manifest, and what kept the *page* from being written, if anything did.

    *run* is the name of the run: `Asked.run_id`. *more* is what else the manifest says.
    """
    outputs = _write_tables(out, asked, result, source, observer)
    if asked.save_scheme:
        result.scheme.save(os.path.join(out, SCHEME))
        outputs.append(output(out, SCHEME))
    if quarantine.count:
        outputs.append(output(out, QUARANTINE))
    manifest = {**describe(asked, result, source, protected), **more, "run": run, "outputs": outputs}
    fault = None
    if page is not None:
        note_page(out, page)
        try:
            sources = [source] if protected is None else [source, protected]
            write_report(report_of(result, manifest, sources, folder=out), page)
            outputs += page_output(out, page)
        except (LimitReached, OSError) as error:  # the results are worth more than their page
            fault = error
    manifest = sealed(manifest)
    manifests.write(out, manifest)
    return manifest, fault


def _write_tables(
    out: str, asked: Asked, result: Result, source: Source, observer: Observer
) -> list[dict[str, Any]]:
    """Annotations, evidence and what stays; their rows of the manifest."""
    counts = result.summary
    content = result.request.content
    tables = (
        (ANNOTATIONS, results.ANNOTATIONS, result.annotation_batches, counts["documents"]),
        (
            EVIDENCE,
            result.evidence_schema,
            result.evidence_batches,
            counts["measured_pairs"] + counts["removed"],
        ),
        (
            WITHOUT_INFORMATION,
            results.WITHOUT_INFORMATION,
            result.without_information_batches,
            counts["without_information"],
        ),
    )
    with (
        observer.stage(
            "write", total=counts["documents"], unit=f"{content.noun}s", what=content.noun
        ) as advance,
        Pool(1) as pool,  # the largest file is written and digested while the others are
    ):
        kept = pool.submit(_write_kept, out, asked, result, source)
        outputs = []
        for step, (name, schema, batches, most) in enumerate(tables):
            if name == WITHOUT_INFORMATION and not most:
                continue
            tell, rows = by_share(advance, counts["documents"], step, len(tables)), 0
            with open_sink(os.path.join(out, name), schema, overwrite=True) as sink:
                for batch in checked(batches(), observer):
                    sink.write(batch)
                    rows += len(batch)
                    tell(min(rows / max(most, 1), 1.0))
            outputs.append(output(out, name))
        outputs += kept.result()
        by_share(advance, counts["documents"])(1.0)
    return outputs


def _write_kept(out: str, asked: Asked, result: Result, source: Source) -> list[dict[str, Any]]:
    made = {} if asked.annotate_only else copy_kept(source, result.keep_mask, out, overwrite=True)
    return [output(out, os.path.basename(path), digest) for path, digest in made.items()]
