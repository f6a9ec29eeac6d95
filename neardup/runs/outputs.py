"""Outputs of a result that was found in memory: its page, and the folder that a job would have written."""

from __future__ import annotations

import os

from neardup.errors import InvalidValue
from neardup.files import check_folder, check_free, check_path
from neardup.report import write_report
from neardup.requests import Request, run_key
from neardup.results import Result, check_guards
from neardup.runs.folders import QUARANTINE, WORK, alone, check_unused
from neardup.runs.manifests import Asked, describe, known
from neardup.runs.views import report_of
from neardup.runs.writing import write_run
from neardup.sinks.quarantine import Quarantine


def write_page(result: Result, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
    """Write the report of *result*; the documents that it shows are read once more."""
    page = check_path(path)
    check_folder(os.path.dirname(page) or ".")
    check_free(page, overwrite=overwrite)
    request = result.request
    told = describe(_asked(request), result, request.source, request.protected)
    stopped = any(trip.stopped for trip in result.guards)
    os.makedirs(os.path.dirname(os.path.abspath(page)), exist_ok=True)
    write_report(report_of(result, told, request.sources, stopped=stopped), page)


def write_folder(result: Result, path: str | os.PathLike[str]) -> None:
    """Write *result* as a run folder.

    What a program handed over is not a file to copy from: its documents are not among the outputs,
    and of bad records the first ones are. Raises GuardStopped if a guard says that too much would go.
    """
    check_guards(result)
    out = check_path(path)
    check_folder(out)
    check_unused(out, None)
    if known(out):
        raise InvalidValue(f"{out!r} holds a run; choose another folder")
    work = os.path.join(out, WORK)
    os.makedirs(work, exist_ok=True)
    request = result.request
    asked = _asked(request)
    with alone(out, work):
        with Quarantine(os.path.join(out, QUARANTINE)) as quarantine:
            for bad in result.bad:
                quarantine.add(bad)
        write_run(
            out,
            asked,
            result,
            request.source,
            request.protected,
            run=asked.run_id(run_key(request)),
            quarantine=quarantine,
        )
        os.unlink(os.path.join(work, "lock"))
    os.rmdir(work)


def _asked(request: Request) -> Asked:
    files = all(one.path is not None for one in request.source.inputs)
    return Asked(request.settings, request.source.request, annotate_only=not files)
