"""The pages of finished runs: written from what is in the folder, and known by the name of their run."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from neardup.errors import DamagedFile, InvalidValue
from neardup.files import check_folder, check_free
from neardup.report import EXAMPLES, write_report
from neardup.runs import manifests
from neardup.runs.folders import WITHOUT_INFORMATION, beside, is_output, is_same
from neardup.runs.manifests import MANIFEST, listed, sealed
from neardup.runs.run import Run
from neardup.runs.views import build_report
from neardup.sinks.quarantine import first_rows
from neardup.sources import Source


def report_run(
    path: str | os.PathLike[str], page: str, inputs: Sequence[str] = (), *, overwrite: bool = False
) -> None:
    """Write the report of the finished run at *path* to *page*.

    The texts that it shows are read from the inputs of the run again, or from *inputs*.
    """
    run = Run(path)
    run.check()
    check_folder(os.path.dirname(page) or ".")
    check_free(page, overwrite=overwrite or is_page_of(page, run.manifest.get("run")))
    if os.path.basename(page) == MANIFEST or any(
        is_same(os.path.join(run.path, name), page) for name in listed(run.manifest) if is_output(name)
    ):
        raise InvalidValue(f"{page!r} is where the run has another file; name a different one")
    if any(is_same(one.path, page) for one in (*run.inputs, *run.protected)):
        raise InvalidValue(f"{page!r} is an input, and would be replaced; name another file")
    write_run_report(run, page, run.sources(inputs))


def write_run_report(run: Run, page: str, sources: Sequence[Source]) -> dict[str, Any]:
    """Write the report of a finished run; the manifest, which lists it if it is beside the others."""
    place = os.path.join(run.path, MANIFEST)
    status = os.stat(place)
    without = os.path.join(run.path, WITHOUT_INFORMATION)
    try:
        report = build_report(
            run.manifest,
            run.annotations,
            run.evidence,
            [row["id"] for row in first_rows(without, EXAMPLES)] if os.path.exists(without) else [],
            sources,
            folder=run.path,
            when=status.st_mtime,
        )
    except (AttributeError, KeyError, TypeError) as error:
        raise DamagedFile(f"{place!r} is not as a run writes it: {error!r}") from None
    os.makedirs(os.path.dirname(os.path.abspath(page)), exist_ok=True)
    write_report(report, page)
    manifest = run.manifest
    if row := page_output(run.path, page):
        rest = [one for one in manifest["outputs"] if one["name"] != row[0]["name"]]
        own = run.is_own  # what is not, does not become it
        manifest = {**manifest, "outputs": [*rest, *row]}
        manifest = sealed(manifest) if own else {**manifest, "seal": None}
        manifests.write(run.path, manifest)
        os.utime(place, ns=(status.st_atime_ns, status.st_mtime_ns))  # when the run was finished
    return manifest


def is_page_of(page: str | os.PathLike[str], run: object) -> bool:
    """Whether the file *page* is a report of the finished run with that name."""
    with suppress(OSError), open(page, "rb") as file:
        return f'<meta name="neardup-run" content="{run}">'.encode() in file.read(1 << 14)
    return False


def page_output(out: str, page: str) -> list[dict[str, Any]]:
    """The report as an output, if it is in the folder of the run."""
    return [manifests.output(out, os.path.basename(page))] if beside(page, out) else []
