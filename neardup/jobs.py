"""A deduplication job: inputs in, a run directory out (docs/formats/run.md).

Every file appears when it is complete, `manifest.json` last: a folder with a manifest is a
finished run. Until then finished parts are in `.neardup/`, and the same job resumes from them.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any, Final

from neardup.contents import Content, content_of
from neardup.errors import DamagedFile, InvalidValue, LimitReached, RefusedInput, Said, Setting
from neardup.files import check_folder, check_free
from neardup.observers import SILENT, Observer, watching
from neardup.parts import STOPPED as STOPPED_PARTS
from neardup.parts import save_stopped
from neardup.pipeline import checkpoints_in, run
from neardup.rejudging import check_same_inputs, facts_of
from neardup.report import write_report
from neardup.requests import Earlier, Request, run_key
from neardup.results import check_guards
from neardup.runs import MANIFEST, Asked, Run
from neardup.runs.folders import (
    OUT,
    OVERWRITE,
    QUARANTINE,
    REPORT,
    WORK,
    alone,
    beside,
    check_unused,
    clear,
    drop_page,
    foreign_page,
    is_output,
    is_same,
    note_page,
    remove_run,
    stop_page,
)
from neardup.runs.manifests import describe, known, listed
from neardup.runs.pages import is_page_of, write_run_report
from neardup.runs.views import report_of
from neardup.runs.writing import write_run
from neardup.schemes import Scheme
from neardup.settings import MEMORY, Settings, check_choices
from neardup.sinks.quarantine import Quarantine, first_rows
from neardup.sizes import USUAL, Sizes
from neardup.sources import Reading, Source, open_source
from neardup.sources.images import cache_folder
from neardup.types import PROTECTED
from neardup.wording import counted

HTML: Final = Setting("html")


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """What to do, and where to write it."""

    inputs: Sequence[str]
    out: str
    scheme: Scheme | None = None
    content: Content | None = None
    """What kind of documents the inputs are; if None, the one that the scheme is for."""
    settings: Settings = field(default_factory=Settings)
    reading: Reading = field(default_factory=Reading)
    protect: Sequence[str] = ()
    report: str | None = None
    annotate_only: bool = False
    guards: bool = True
    overwrite: bool = False
    save_scheme: bool = False
    threads: int | None = None
    memory: int = MEMORY
    observer: Observer = SILENT
    sizes: Sizes = USUAL
    command: Sequence[str] = ()
    """What to type for the same results, except for the places they go to; for the manifest."""
    earlier: Earlier | None = None
    """A finished run over the same inputs, whose measured pairs are decided anew."""

    @property
    def asked(self) -> Asked:
        """What its manifest says about it."""
        return Asked(
            self.settings, self.reading, self.annotate_only, self.save_scheme, self.guards, self.command
        )


@dataclass(frozen=True, slots=True, eq=False)
class Done:
    """A finished job."""

    manifest: dict[str, Any]
    source: Source | None
    """What was read; None if the run had been finished before."""


def run_job(job: Job) -> Done:
    """Run the job, or resume it; everything is written when this returns."""
    content = job.content or content_of(job.scheme)
    check_choices(job.settings, job.scheme, job.threads)
    content.check(job.settings, job.scheme)
    check_folder(job.out)
    # A run that --overwrite replaces stays whole until the new one has its results.
    work = os.path.join(job.out, WORK)
    replaces = job.overwrite and bool(known(job.out))
    quarantine = Quarantine(os.path.join(work if replaces else job.out, QUARANTINE), overwrite=True)
    source = _open(job, job.inputs, quarantine)
    protected = _open(job, job.protect, quarantine, PROTECTED) if job.protect else None
    request = Request(
        source=source,
        settings=job.settings,
        scheme=job.scheme,
        content=content,
        protected=protected,
        threads=job.threads,
        memory=job.memory,
        sizes=job.sizes,
        earlier=job.earlier,
    )
    key, sources = run_key(request), request.sources
    _check_page(job, sources)
    if (done := _finished(job, key)) is not None:
        drop_page(job.out)
        shutil.rmtree(os.path.join(job.out, WORK), ignore_errors=True)  # of a run killed at its very end
        return Done(_reported(job, done, sources), None)
    if not job.overwrite:
        check_unused(job.out, _page(job) if job.guards or job.report is not None else None)
    try:
        os.makedirs(work, exist_ok=True)
    except OSError as error:
        raise LimitReached(f"no folder can be made at {job.out!r}: {error.strerror}") from None
    os.makedirs(os.path.dirname(os.path.abspath(_page(job))), exist_ok=True)
    with watching(job.observer, source, protected), alone(job.out, work):
        clear(job.out, with_outputs=not replaces)
        checkpoints = checkpoints_in(work, request)
        if html := 0 if job.reading.html or job.reading.format else _html_files(source):
            are = counted(html, "input is", "inputs are")
            job.observer.note(
                Said(f"{are} HTML, compared with all tags; ", HTML, " takes the main text of a page")
            )
        if request.content.remembered:
            checkpoints.remember(_remembered(key, sources))
        with _named(quarantine, replaces), quarantine:
            result = run(request, job.observer, checkpoints)
            if any(one.bad or one.refused for one in sources) and not quarantine.count:
                # Parts of an earlier process replace the first reading: read once more for the bad records.
                for one in sources:
                    for _ in one:
                        pass
        if not source.documents:
            why = _nothing(source, quarantine)
            raise RefusedInput(f"{why}{_leave_nothing(job, work, quarantine)}; there is no result")
        if job.earlier is not None:
            check_same_inputs(job.earlier, source, protected)
        stopped = job.guards and any(trip.stopped for trip in result.guards)
        if stopped:
            save_stopped(checkpoints, result, request)
        if replaces and stopped and beside(_page(job), job.out):
            job = replace(job, report=stop_page(job.out))
        elif replaces and not stopped:
            remove_run(job.out)
            if quarantine.count:
                os.replace(os.path.join(work, QUARANTINE), os.path.join(job.out, QUARANTINE))
        drop_page(job.out)
        if stopped:
            note_page(job.out, _page(job))
            told = describe(job.asked, result, source, protected)
            write_report(report_of(result, told, sources, folder=job.out, stopped=True), _page(job))
            check_guards(result, _page(job))
        manifest, fault = write_run(
            job.out,
            job.asked,
            result,
            source,
            protected,
            run=job.asked.run_id(key),
            quarantine=quarantine,
            page=job.report,
            observer=job.observer,
            more={} if job.earlier is None else facts_of(job.earlier, source, protected),
        )
        for name in STOPPED_PARTS:
            checkpoints.forget(name)
        checkpoints.drop()
    if fault is not None:
        raise LimitReached(
            f"the results are complete in {job.out!r}, but there is no report: {fault}; "
            f"`neardup report {job.out} -o PAGE` writes one from them"
        )
    return Done(manifest, source)


def _open(job: Job, paths: Sequence[str], quarantine: Quarantine, prefix: str = "") -> Source:
    """The documents of *paths*, without what an earlier process of this job left in the output folder."""
    source = open_source(
        list(paths),
        job.reading,
        fields=job.settings.fields,
        on_bad=quarantine.add,
        unique=True,
        prefix=prefix,
        sizes=job.sizes,
    )
    out = os.path.realpath(job.out)
    kept = []
    for one in source.inputs:
        if one.path is None or not os.path.realpath(one.path).startswith(out + os.sep):
            kept.append(one)
        elif not one.walked:
            folder, name = os.path.split(os.path.realpath(one.path))
            if folder == out and (is_output(name) or name in listed(known(out))):
                raise InvalidValue(
                    Said(f"{one.path!r} is an input, and an output would replace it; choose another ", OUT)
                )
            kept.append(one)
        elif os.path.realpath(one.root or "") == out:
            raise InvalidValue(f"{job.out!r} is an input as well; choose another folder for the results")
    source.inputs = kept
    return source


def _page(job: Job) -> str:
    """Where the report goes, including that of a guard that stops a run without --report."""
    return os.path.join(job.out, REPORT) if job.report is None else job.report


def _check_page(job: Job, sources: Sequence[Source]) -> None:
    """Raise if the report would replace an input or a file of the run."""
    page = _page(job)
    check_folder(os.path.dirname(page) or ".")
    check_free(page, overwrite=True)
    folder = os.path.realpath(os.path.dirname(os.path.abspath(page)))
    place = os.path.relpath(os.path.join(folder, os.path.basename(page)), os.path.realpath(job.out))
    if place.split(os.sep)[0] in (MANIFEST, WORK) or is_output(place):
        raise InvalidValue(
            Said(
                Setting("report"),
                f" {page!r} is where the run puts another file; take {os.path.join(job.out, REPORT)!r}",
            )
        )
    inputs = (one.path for source in sources for one in source.inputs)
    if os.path.exists(page) and any(path and is_same(path, page) for path in inputs):
        raise InvalidValue(
            Said(Setting("report"), f" {page!r} is an input, and would replace it; name another file")
        )


def _finished(job: Job, key: str) -> dict[str, Any] | None:
    """The manifest of the same run, if it is there; an error if another one is."""
    if job.overwrite or not os.path.lexists(os.path.join(job.out, MANIFEST)):
        return None
    found = known(job.out)
    if found.get("run") == job.asked.run_id(key):
        # A page that is gone is written again.
        gone = "" if job.report is None else f"{os.path.basename(job.report)} is missing"
        if problems := [problem for problem in Run(job.out).problems() if problem != gone]:
            raise DamagedFile(
                Said(f"{job.out!r} holds this run, but {problems[0]}; use ", OVERWRITE, " to repeat it")
            )
        return found
    raise InvalidValue(
        Said(
            f"{job.out!r} holds another run, or the same with other outputs; choose another folder, or use ",
            OVERWRITE,
        )
    )


def _reported(job: Job, manifest: dict[str, Any], sources: Sequence[Source]) -> dict[str, Any]:
    """Write the report of a finished run if it is wanted and missing; the manifest may then list it."""
    if job.report is None or is_page_of(job.report, manifest["run"]):
        return manifest
    if os.path.lexists(job.report):
        raise InvalidValue(foreign_page(job.report))
    return write_run_report(Run(job.out), job.report, sources)


# --- what goes wrong --------------------------------------------------------------------------------------


def _html_files(source: Source) -> int:
    """How many inputs are HTML pages, by their names."""
    return sum(one.suffix in (".html", ".htm", ".xhtml") for one in source.inputs)


def _leave_nothing(job: Job, work: str, quarantine: Quarantine) -> str:
    """Remove what a run without documents made. Returns words on the quarantine, if it stays.

    It stays if it holds more than one line can say. It does not block a later run, whose own replaces it.
    """
    keep = quarantine.path is not None and quarantine.count > 1
    if quarantine.path is not None and quarantine.count == 1:
        os.unlink(quarantine.path)
    for entry in os.scandir(work):
        if entry.name not in ("lock", QUARANTINE):
            os.unlink(entry.path) if entry.is_file(follow_symlinks=False) else shutil.rmtree(entry.path)
    if keep:
        return f"; {quarantine.path} has all that was bad"
    shutil.rmtree(work, ignore_errors=True)
    with suppress(OSError):  # it was there before, with other files
        os.rmdir(job.out)
    return ""


def _nothing(source: Source, quarantine: Quarantine) -> str:
    """Why no document came from an input."""
    names = [repr(one.name) for one in source.inputs]
    where = names[0] if len(names) == 1 else counted(len(names), "input")
    refused = [f"{bad.file!r} {bad.reason}" for bad in source.refused]
    reasons = refused if len(names) > 1 else [bad.reason for bad in source.refused]
    if source.bad:
        rows = first_rows(quarantine.path) if quarantine.path else []
        row = next((row for row in rows if row["line"] is not None), rows[0] if rows else {})
        such = f", such as line {row['line']} of {row['file']!r}: {row['reason']}" if row else ""
        reasons.append(counted(source.bad, "bad record") + such)
    if source.skipped and not reasons:
        one = source.skipped[0]
        reasons.append(
            f"{counted(len(source.skipped), 'file')} skipped, such as {one.file!r}, which {one.reason}"
        )
    why = f": {reasons[0]}" if reasons else ""
    more = f"; {counted(len(reasons) - 1, 'more reason')}" if len(reasons) > 1 else ""
    return f"no document came from {where}{why}{more}"


@contextmanager
def _named(quarantine: Quarantine, replaces: bool) -> Iterator[None]:
    """Add to errors where the bad records are, if those of the previous run *stand* in the usual place."""
    try:
        yield
    except LimitReached as error:
        if replaces and quarantine.count:
            raise LimitReached(f"{error}; it is {quarantine.path!r}") from None
        raise


def _remembered(key: str, sources: Sequence[Source]) -> str:
    """Where the parts of a run over exactly these files are remembered."""
    found = hashlib.blake2b(f"{key} {os.getcwd()}".encode("utf-8", "surrogateescape"), digest_size=16)
    for path in (one.path for source in sources for one in source.inputs):
        with suppress(OSError):
            found.update(b"" if path is None else os.stat(path).st_ino.to_bytes(8, "little"))
    return os.path.join(cache_folder(), "runs", found.hexdigest())
