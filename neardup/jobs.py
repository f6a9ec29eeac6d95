"""A deduplication job: inputs in, a run directory out (docs/formats/run.md).

Every file appears when it is complete, `manifest.json` last: a folder with a manifest is a
finished run. Until then finished parts stand in `.neardup/`, and the same job goes on from them.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from itertools import count, islice
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup import __version__
from neardup.errors import DamagedFile, InvalidValue, LimitReached, RefusedInput
from neardup.files import atomic_file, check_folder, check_free, file_digest, sweep
from neardup.guards import Loss, Trip
from neardup.overlays import Look, overlay
from neardup.pictures import IDENTICAL as IDENTICAL_FILE
from neardup.pipeline import ANNOTATIONS as ANNOTATION_SCHEMA
from neardup.pipeline import EVIDENCE as EVIDENCE_SCHEMA
from neardup.pipeline import MEMORY, Flow, Result, Settings, check_choices, check_guards, run_key, stamps
from neardup.pipeline import STOPPED as STOPPED_PARTS
from neardup.pipeline import WITHOUT_INFORMATION as WITHOUT_INFORMATION_SCHEMA
from neardup.progress import by_share, note, stage
from neardup.report import EXAMPLES, LOOKED_AT, ClusterView, GuardView, PairView, Report, Side, write_report
from neardup.runs import ANNOTATIONS, EVIDENCE, MANIFEST, SCHEME, Run, sealed
from neardup.schemes import Scheme
from neardup.sinks.kept import copy_kept
from neardup.sinks.quarantine import Quarantine
from neardup.sinks.tables import open_sink
from neardup.sources import ANY, FORMATS, Source, Tolerance, id_path, open_source, path_id
from neardup.sources.images import cache_folder
from neardup.sources.limits import DEFAULT, Limits
from neardup.sources.streams import SUFFIXES
from neardup.thumbs import BadPicture, address, look
from neardup.types import PROTECTED
from neardup.verify import IDENTICAL, SPELLED, UNVERIFIED
from neardup.wording import counted

WORK: Final = ".neardup"
QUARANTINE: Final = "quarantine.jsonl"
WITHOUT_INFORMATION: Final = "without_information.jsonl"
REPORT: Final = "report.html"
# Of a run that a guard stopped, beside the one that it would have replaced.
STOPPED: Final = "stopped.html"
FORMAT: Final = 1
# The names that a run gives; kept files end as `sinks.kept` names them.
_ENDINGS: Final = "|".join([*FORMATS, "tsv", "tab", "arrows", "txt"])
_OUTPUT: Final = re.compile(
    r"annotations\.parquet|evidence\.parquet|(quarantine|without_information)\.jsonl|scheme\.nd"
    rf"|kept(-[0-9]+)?\.({_ENDINGS})({'|'.join(map(re.escape, SUFFIXES))})?"
)
# In the work folder: where the page of an unfinished run stands.
NOTED: Final = "report"
SHOWN_CLUSTERS: Final = 25
SHOWN_MEMBERS: Final = 8
SHOWN_PAIRS: Final = 12
BINS: Final = 40
_FOREIGN_PAGE: Final = "{!r} exists and is no report of this run; name another --report, or use --overwrite"


@dataclass(frozen=True, slots=True)
class Reading:
    """How the inputs are read."""

    text_field: str = "text"
    id_field: str | None = None
    format: str | None = None
    html: bool = False
    limits: Limits = DEFAULT
    tolerance: Tolerance = ANY

    def open(
        self,
        paths: Sequence[str],
        fields: Iterable[str],
        quarantine: Quarantine | None = None,
        prefix: str = "",
    ) -> Source:
        """The documents of *paths*, with *prefix* before their ids."""
        return open_source(
            list(paths),
            text_field=self.text_field,
            id_field=self.id_field,
            fields=fields,
            html=self.html,
            format=self.format,
            limits=self.limits,
            on_bad=None if quarantine is None else quarantine.add,
            unique=True,
            tolerance=self.tolerance,
            prefix=prefix,
        )


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """What to do, and where to write it."""

    inputs: Sequence[str]
    out: str
    scheme: Scheme | None = None
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
    quiet: bool = False
    command: Sequence[str] = ()
    """What to type for the same results, but for the places they go to; for the manifest."""


@dataclass(frozen=True, slots=True, eq=False)
class Done:
    """A finished job."""

    manifest: dict[str, Any]
    source: Source | None
    """What was read; None where the run had been finished before."""


def run_job(job: Job) -> Done:
    """Do it, or go on with it; everything is written when this returns."""
    check_choices(job.settings, job.scheme, job.threads)
    check_folder(job.out)
    # A run that --overwrite replaces stays whole until the new one has its results.
    work = os.path.join(job.out, WORK)
    stands = job.overwrite and bool(_manifest(job.out))
    quarantine = Quarantine(os.path.join(work if stands else job.out, QUARANTINE), overwrite=True)
    source = _open(job, job.inputs, quarantine)
    protected = _open(job, job.protect, quarantine, PROTECTED) if job.protect else None
    key = run_key(job.settings, job.scheme, [_facts(job), *stamps(source), "protected", *stamps(protected)])
    _check_report(job, [one for one in (source, protected) if one is not None])
    if (done := _finished(job, key)) is not None:
        _drop_report(job)
        shutil.rmtree(os.path.join(job.out, WORK), ignore_errors=True)  # of a run killed at its very end
        return Done(_reported(job, done, [source] if protected is None else [source, protected]), None)
    _check_free(job)
    try:
        os.makedirs(work, exist_ok=True)
    except OSError as error:
        raise LimitReached(f"no folder can be made at {job.out!r}: {error.strerror}") from None
    os.makedirs(os.path.dirname(os.path.abspath(_page(job))), exist_ok=True)
    with _alone(job.out, work):
        _clear(job.out, outputs=not stands)
        flow = Flow(
            job.settings,
            job.scheme,
            threads=job.threads,
            memory=job.memory,
            work=work,
            key=key,
            quiet=job.quiet,
            tell=note,
        )
        if html := 0 if job.reading.html or job.reading.format else _html_files(source):
            note(
                f"{counted(html, 'input is', 'inputs are')} HTML, compared with all tags; "
                "--html takes the main text of a page"
            )
        if job.reading.format == "image":
            flow.checkpoints.remember(_remembered(key, source, protected))
        with _named(quarantine, stands), quarantine:
            result = flow.run(source, protected)
            if _faults(source, protected) and not quarantine.count:
                # The parts of an earlier process stand for the first reading: once more for the bad ones.
                for one in (source, protected):
                    for _ in one or ():
                        pass
        if not source.documents:
            why = _nothing(source, quarantine)
            raise RefusedInput(f"{why}{_leave_nothing(job, work, quarantine)}; there is no result")
        stopped = job.guards and any(trip.stopped for trip in result.guards)
        if stopped:
            flow.save_stopped(result, [source] if protected is None else [source, protected])
        if stands and stopped and os.path.dirname(os.path.abspath(_page(job))) == os.path.abspath(job.out):
            job = replace(job, report=_stop_page(job.out))
        elif stands and not stopped:
            _remove_run(job.out)
            if quarantine.count:
                os.replace(os.path.join(work, QUARANTINE), os.path.join(job.out, QUARANTINE))
        _drop_report(job)
        if stopped:
            _note_report(job)
            _write_page(
                job, result, describe(job, result, source, protected), source, protected, stopped=True
            )
            check_guards(result, _page(job))
        manifest, fault = _write(job, result, source, protected, key, quarantine)
        for name in STOPPED_PARTS:
            flow.checkpoints.forget(name)
        flow.checkpoints.drop()
    if fault is not None:
        raise LimitReached(
            f"the results are complete in {job.out!r}, but there is no report: {fault}; "
            f"`neardup report {job.out} -o PAGE` writes one from them"
        )
    return Done(manifest, source)


def _html_files(source: Source) -> int:
    """How many inputs are pages by their names."""
    return sum(getattr(one, "suffix", "") in (".html", ".htm", ".xhtml") for one in source.inputs)


def _leave_nothing(job: Job, work: str, quarantine: Quarantine) -> str:
    """Remove what a run without documents made: words on the quarantine, if it stays.

    It stays if it has more to say than one line does. It blocks no later run, whose own will replace it.
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
    names = [repr(getattr(one, "name", "the input")) for one in source.inputs]
    where = names[0] if len(names) == 1 else counted(len(names), "input")
    refused = [f"{bad.file!r} {bad.reason}" for bad in source.refused]
    reasons = refused if len(names) > 1 else [bad.reason for bad in source.refused]
    if source.bad:
        rows = quarantine_rows(quarantine.path) if quarantine.path else []
        row = next((row for row in rows if row["line"] is not None), rows[0] if rows else {})
        such = f", such as line {row['line']} of {row['file']!r}: {row['reason']}" if row else ""
        reasons.append(counted(source.bad, "bad record") + such)
    if source.skipped and not reasons:
        one = source.skipped[0]
        reasons.append(
            f"{counted(len(source.skipped), 'file')} passed by, such as {one.file!r}, which {one.reason}"
        )
    why = f": {reasons[0]}" if reasons else ""
    more = f"; {counted(len(reasons) - 1, 'more reason')}" if len(reasons) > 1 else ""
    return f"no document came from {where}{why}{more}"


def quarantine_rows(path: str | os.PathLike[str], most: int = 1000) -> list[dict[str, Any]]:
    """The first rows of a quarantine file."""
    with open(path, "rb") as file:
        return [json.loads(line) for line in islice(file, most)]


@contextmanager
def _named(quarantine: Quarantine, stands: bool) -> Iterator[None]:
    """Say where the bad records are, if those of the run before *stand* where one looks for them."""
    try:
        yield
    except LimitReached as error:
        if stands and quarantine.count:
            raise LimitReached(f"{error}; it is {quarantine.path!r}") from None
        raise


def _remembered(key: str, *sources: Source | None) -> str:
    """Where the parts of a run over these very files are remembered."""
    found = hashlib.blake2b(f"{key} {os.getcwd()}".encode("utf-8", "surrogateescape"), digest_size=16)
    for one in (one for source in sources if source is not None for one in source.inputs):
        with suppress(OSError, AttributeError):
            found.update(os.stat(one.path).st_ino.to_bytes(8, "little"))
    return os.path.join(cache_folder(), "runs", found.hexdigest())


def _open(job: Job, paths: Sequence[str], quarantine: Quarantine, prefix: str = "") -> Source:
    """The documents of *paths*, without what an earlier process of this job left in the output folder."""
    source = job.reading.open(paths, job.settings.fields, quarantine, prefix)
    out = os.path.realpath(job.out)
    kept = []
    for one in source.inputs:
        path = getattr(one, "path", None)
        if path is None or not os.path.realpath(path).startswith(out + os.sep):
            kept.append(one)
        elif not getattr(one, "walked", True):
            folder, name = os.path.split(os.path.realpath(path))
            if folder == out and (_OUTPUT.fullmatch(name) or name in _listed(_manifest(out))):
                raise InvalidValue(f"{path!r} is an input, and an output would replace it; choose another -o")
            kept.append(one)
        elif os.path.realpath(getattr(one, "root", "")) == out:
            raise InvalidValue(f"{job.out!r} is an input as well; choose another folder for the results")
    source.inputs = kept
    return source


def _faults(source: Source, protected: Source | None) -> int:
    """How many rows the quarantine must have."""
    return sum(one.bad + len(one.refused) for one in (source, protected) if one is not None)


@contextmanager
def _alone(out: str, work: str) -> Iterator[None]:
    """Only one process works in a folder at a time."""
    with open(os.path.join(work, "lock"), "wb") as file:
        try:
            import fcntl
        except ImportError:  # Windows
            yield
            return
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise LimitReached(
                f"another process works in {out!r}; wait for it, or choose another -o"
            ) from None
        yield


def _page(job: Job) -> str:
    """Where the report goes, also that of a guard that stops a run without --report."""
    return os.path.join(job.out, REPORT) if job.report is None else job.report


def _check_report(job: Job, sources: Sequence[Source]) -> None:
    """Raise if the report would replace an input or a file of the run."""
    page = _page(job)
    check_folder(os.path.dirname(page) or ".")
    check_free(page, overwrite=True)
    folder = os.path.realpath(os.path.dirname(os.path.abspath(page)))
    place = os.path.relpath(os.path.join(folder, os.path.basename(page)), os.path.realpath(job.out))
    if place.split(os.sep)[0] in (MANIFEST, WORK) or _OUTPUT.fullmatch(place):
        raise InvalidValue(
            f"--report {page!r} is the place of a file of the run; take {os.path.join(job.out, REPORT)!r}"
        )
    inputs = (getattr(one, "path", None) for source in sources for one in source.inputs)
    if os.path.exists(page) and any(path and _same(path, page) for path in inputs):
        raise InvalidValue(f"--report {page!r} is an input, and would replace it; name another file")


def _same(one: str, other: str) -> bool:
    with suppress(OSError, ValueError):  # a pipe, an address
        return os.path.samefile(one, other)
    return False


def _noted(out: str) -> str | None:
    """Where the page of an unfinished run in *out* stands, or was about to."""
    try:
        with open(os.path.join(out, WORK, NOTED), "rb") as file:
            return os.fsdecode(file.read())
    except FileNotFoundError:
        return None


def _note_report(job: Job) -> None:
    """Say in the work folder that the report is of this run, before there is one."""
    with atomic_file(os.path.join(job.out, WORK, NOTED), overwrite=True) as file:
        file.write(os.fsencode(os.path.abspath(_page(job))))


def _stop_page(out: str) -> str:
    """A place for the page of a stop beside the run in *out*, where nothing stands but such a page."""
    noted, listed = _noted(out), _listed(_manifest(out))
    names = (STOPPED if number == 1 else f"{number}-{STOPPED}" for number in count(1))
    pages = ((name, os.path.join(out, name)) for name in names)
    return next(
        page
        for name, page in pages
        if not os.path.lexists(page) or (noted == os.path.abspath(page) and name not in listed)
    )


def _drop_report(job: Job) -> None:
    """Remove the page of an earlier stop: what it says of the folder is about to be wrong."""
    noted = _noted(job.out)
    if noted is not None and os.path.basename(noted) in _listed(_manifest(job.out)):
        return  # it is that of the finished run
    if noted is not None and os.path.dirname(noted) == os.path.abspath(job.out):
        with suppress(FileNotFoundError):
            os.unlink(noted)


def _outputs(out: str) -> list[str]:
    """The files in *out* that have the names of outputs."""
    names = os.listdir(out) if os.path.isdir(out) else []
    return sorted(name for name in names if _OUTPUT.fullmatch(name))


def _check_free(job: Job) -> None:
    """Raise if files that no unfinished run wrote would be replaced."""
    if job.overwrite:
        return
    page = _page(job)
    written = job.guards or job.report is not None
    if written and os.path.lexists(page) and _noted(job.out) != os.path.abspath(page):
        raise InvalidValue(_FOREIGN_PAGE.format(page))
    if os.path.isdir(os.path.join(job.out, WORK)):
        return
    if found := _outputs(job.out):
        raise InvalidValue(
            f"{os.path.join(job.out, found[0])!r} exists and is of no run; "
            "choose another folder, or use --overwrite"
        )


def _clear(out: str, *, outputs: bool) -> None:
    """Remove what an unfinished run left, also *outputs*, if they are its own; its finished parts stay."""
    if outputs:
        _remove_outputs(out)
    work = os.path.join(out, WORK)
    for folder in (out, work):
        sweep(folder)
    for entry in os.scandir(work):
        if entry.is_dir(follow_symlinks=False):  # texts that were set aside
            shutil.rmtree(entry.path, ignore_errors=True)


def _facts(job: Job) -> dict[str, Any]:
    reading = job.reading
    return {
        "text_field": reading.text_field,
        "id_field": reading.id_field,
        "format": reading.format,
        "html": reading.html,
        "limits": asdict(reading.limits),
    }


def _run_id(job: Job, key: str) -> str:
    """What must be equal for a finished run to be the one that is asked for; the report is made from it."""
    wanted = [key, job.annotate_only, job.save_scheme, asdict(job.settings.guards) if job.guards else None]
    return hashlib.blake2b(json.dumps(wanted).encode(), digest_size=16).hexdigest()


def _manifest(out: str) -> dict[str, Any]:
    """What the manifest in *out* says; nothing if it is none."""
    try:
        with open(os.path.join(out, MANIFEST), "rb") as file:
            found = json.load(file)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        found = None
    return found if isinstance(found, dict) else {}


def _listed(manifest: dict[str, Any]) -> list[str]:
    """The files of its folder that a manifest lists as outputs, such as the report."""
    rows = manifest.get("outputs")
    names = [row.get("name") for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
    return [name for name in names if isinstance(name, str) and os.path.basename(name) == name]


def _finished(job: Job, key: str) -> dict[str, Any] | None:
    """The manifest of the same run, if it is there; an error if another one is."""
    if job.overwrite or not os.path.lexists(os.path.join(job.out, MANIFEST)):
        return None
    found = _manifest(job.out)
    if found.get("run") == _run_id(job, key):
        # A page that is gone is written again.
        gone = "" if job.report is None else f"{os.path.basename(job.report)} is missing"
        if problems := [problem for problem in Run(job.out).problems() if problem != gone]:
            raise DamagedFile(f"{job.out!r} holds this run, but {problems[0]}; use --overwrite to repeat it")
        return found
    raise InvalidValue(
        f"{job.out!r} holds another run, or the same with other outputs; "
        "choose another folder, or use --overwrite"
    )


def _remove_run(out: str) -> None:
    """Remove a finished run.

    The manifest last: as long as it stands, what it lists is known to be of a run.
    """
    _remove_outputs(out, _listed(_manifest(out)))
    os.unlink(os.path.join(out, MANIFEST))


def _remove_outputs(out: str, listed: Sequence[str] = ()) -> None:
    """Remove what has the name of an output, and what a manifest *listed*."""
    for path in (os.path.join(out, name) for name in {*_outputs(out), *listed}):
        if os.path.lexists(path) and not os.path.isdir(path):
            os.unlink(path)


# --- what is written -------------------------------------------------------------------------------------


def _write(
    job: Job, result: Result, source: Source, protected: Source | None, key: str, quarantine: Quarantine
) -> tuple[dict[str, Any], Exception | None]:
    """Write all files, the manifest last; what kept the report from being written, if anything did."""
    counts = result.summary
    noun = "picture" if job.reading.format == "image" else "document"
    tables = (
        (ANNOTATIONS, ANNOTATION_SCHEMA, result.annotation_batches, counts["documents"]),
        (EVIDENCE, EVIDENCE_SCHEMA, result.evidence_batches, counts["measured_pairs"] + counts["removed"]),
        (
            WITHOUT_INFORMATION,
            WITHOUT_INFORMATION_SCHEMA,
            result.without_information_batches,
            counts["without_information"],
        ),
    )
    with (
        stage("write", total=counts["documents"], unit=f"{noun}s", what=noun, quiet=job.quiet) as advance,
        ThreadPoolExecutor(1) as pool,  # the largest file is written and digested while the others are
    ):
        kept = pool.submit(_write_kept, job, result, source)
        outputs = []
        for step, (name, schema, batches, most) in enumerate(tables):
            if name == WITHOUT_INFORMATION and not most:
                continue
            tell, rows = by_share(advance, counts["documents"], step, len(tables)), 0
            with open_sink(os.path.join(job.out, name), schema, overwrite=True) as sink:
                for batch in batches():
                    sink.write(batch)
                    rows += len(batch)
                    tell(min(rows / max(most, 1), 1.0))
            outputs.append(_output(job.out, name))
        outputs += kept.result()
        by_share(advance, counts["documents"])(1.0)
    if job.save_scheme:
        result.scheme.save(os.path.join(job.out, SCHEME))
        outputs.append(_output(job.out, SCHEME))
    if quarantine.count:
        outputs.append(_output(job.out, QUARANTINE))
    manifest = {
        **describe(job, result, source, protected),
        "run": _run_id(job, key),
        "outputs": outputs,
    }
    fault = None
    if job.report is not None:
        _note_report(job)
        try:
            _write_page(job, result, manifest, source, protected)
            outputs += _page_output(job.out, job.report)
        except (LimitReached, OSError) as error:  # the results are worth more than their page
            fault = error
    manifest = sealed(manifest)
    _write_manifest(job.out, manifest)
    return manifest, fault


def _write_manifest(out: str, manifest: Mapping[str, Any]) -> None:
    with atomic_file(os.path.join(out, MANIFEST), overwrite=True) as file:
        # A lone surrogate, of a file name that is no UTF-8, becomes the escape that JSON has for it.
        file.write(json.dumps(manifest, indent=2, ensure_ascii=False).encode("utf-8", "backslashreplace"))
        file.write(b"\n")


def _page_output(out: str, page: str) -> list[dict[str, Any]]:
    """The report as an output, if it stands in the folder of the run."""
    if os.path.dirname(os.path.abspath(page)) != os.path.abspath(out):
        return []
    return [_output(out, os.path.basename(page))]


def _write_kept(job: Job, result: Result, source: Source) -> list[dict[str, Any]]:
    made = {} if job.annotate_only else copy_kept(source, result.keep_mask, job.out, overwrite=True)
    return [_output(job.out, os.path.basename(path), digest) for path, digest in made.items()]


def _output(folder: str, name: str, digest: str | None = None) -> dict[str, Any]:
    path = os.path.join(folder, name)
    return {"name": name, "bytes": os.path.getsize(path), "sha256": digest or file_digest(path)}


def describe(job: Job, result: Result, source: Source, protected: Source | None = None) -> dict[str, Any]:
    """What was done, in the words of the manifest."""
    sources = [source] if protected is None else [source, protected]
    settings = asdict(job.settings)
    settings.update(_facts(job), annotate_only=job.annotate_only, no_guards=not job.guards)
    return {
        "neardup": __version__,
        "format": FORMAT,
        "command": list(job.command),
        "scheme": {**result.scheme.facts(), "digest": result.scheme.digest},
        "settings": settings,
        "plan": result.plan,
        "inputs": _inputs(source),
        "protected": [] if protected is None else _inputs(protected),
        "counts": {**result.summary, "bad": sum(one.bad for one in sources)},
        "sources": [asdict(loss) for loss in result.losses],
        "guards": [{**asdict(trip), "stopped": trip.stopped} for trip in result.guards],
        "refused": [
            {"file": path_id(bad.file), "reason": bad.reason} for source in sources for bad in source.refused
        ],
        "skipped": [
            {"file": path_id(one.file), "reason": one.reason} for source in sources for one in source.skipped
        ],
    }


def _inputs(source: Source) -> list[dict[str, Any]]:
    rows = []
    files = {getattr(one, "name", None): one for one in source.inputs}
    for name, digest in source.digests.items():
        size = os.path.getsize(name) if os.path.isfile(name) else None
        row = {"name": name, "bytes": size, "sha256": digest}
        row["modified"] = getattr(files[name], "modified", None)
        if getattr(files[name], "walked", False):
            row["root"] = files[name].root
        if (reduced := getattr(files[name], "reduced", None)) is not None:
            row["reduced"] = reduced
        rows.append(row)
    return rows


# --- the report ------------------------------------------------------------------------------------------


def _write_page(
    job: Job,
    result: Result,
    manifest: Mapping[str, Any],
    source: Source,
    protected: Source | None,
    *,
    stopped: bool = False,
) -> None:
    """Write the page of a run that is about to be finished, or that a guard stopped."""
    report = build_report(
        json.loads(json.dumps(manifest)),  # as it is read from a finished run, so that the page is the same
        pa.Table.from_batches(result.annotation_batches(), schema=ANNOTATION_SCHEMA),
        pa.Table.from_batches(result.evidence_batches(), schema=EVIDENCE_SCHEMA),
        _first_ids(result.without_information_batches()),
        [source] if protected is None else [source, protected],
        folder=job.out,
        when=time.time(),
        stopped=stopped,
    )
    write_report(report, _page(job))


def _reported(job: Job, manifest: dict[str, Any], sources: Sequence[Source]) -> dict[str, Any]:
    """Write the report of a finished run, if it is asked for and not there; the manifest may list it then."""
    if job.report is None or is_page_of(job.report, manifest["run"]):
        return manifest
    if os.path.lexists(job.report):
        raise InvalidValue(_FOREIGN_PAGE.format(job.report))
    return write_run_report(Run(job.out), job.report, sources)


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
        _same(os.path.join(run.path, name), page) for name in _listed(run.manifest) if _OUTPUT.fullmatch(name)
    ):
        raise InvalidValue(f"{page!r} is the place of a file of the run; name another file")
    if any(_same(one.path, page) for one in (*run.inputs, *run.protected)):
        raise InvalidValue(f"{page!r} is an input, and would be replaced; name another file")
    write_run_report(run, page, run.sources(inputs))


def write_run_report(run: Run, page: str, sources: Sequence[Source]) -> dict[str, Any]:
    """Write the report of a finished run; the manifest, which lists it if it stands beside the others."""
    place = os.path.join(run.path, MANIFEST)
    status = os.stat(place)
    without = os.path.join(run.path, WITHOUT_INFORMATION)
    try:
        report = build_report(
            run.manifest,
            run.annotations,
            run.evidence,
            [row["id"] for row in quarantine_rows(without, EXAMPLES)] if os.path.exists(without) else [],
            sources,
            folder=run.path,
            when=status.st_mtime,
        )
    except (AttributeError, KeyError, TypeError) as error:
        raise DamagedFile(f"{place!r} is not as a run writes it: {error!r}") from None
    os.makedirs(os.path.dirname(os.path.abspath(page)), exist_ok=True)
    write_report(report, page)
    manifest = run.manifest
    if row := _page_output(run.path, page):
        rest = [one for one in manifest["outputs"] if one["name"] != row[0]["name"]]
        own = run.is_own  # what is not, does not become it
        manifest = {**manifest, "outputs": [*rest, *row]}
        manifest = sealed(manifest) if own else {**manifest, "seal": None}
        _write_manifest(run.path, manifest)
        os.utime(place, ns=(status.st_atime_ns, status.st_mtime_ns))  # when the run was finished
    return manifest


def is_page_of(page: str | os.PathLike[str], run: object) -> bool:
    """Whether the file *page* is a report of the finished run with that name."""
    with suppress(OSError), open(page, "rb") as file:
        return f'<meta name="neardup-run" content="{run}">'.encode() in file.read(1 << 14)
    return False


def build_report(
    manifest: Mapping[str, Any],
    annotations: pa.Table,
    evidence: pa.Table,
    without_information: Sequence[str],
    sources: Sequence[Source],
    *,
    folder: str,
    when: float,
    stopped: bool = False,
) -> Report:
    """Everything that the page shows, with the texts that it needs from *sources*, in one more reading.

    *manifest* is what a run writes, *folder* where it stands, *when* the time at which it was finished.
    """
    sizes = Counter(Counter(annotations.column("cluster").to_pylist()).values())
    clusters = _largest(annotations, evidence)
    borderline = _borderline(evidence)
    looked_at = [rows[:LOOKED_AT] for rows in (*clusters.values(), borderline)]
    wanted = {row[side] for rows in looked_at for row in rows for side in ("keeper", "id")}
    sides, looks = _sides(sources, wanted)
    views = []
    for keeper, rows in clusters.items():
        members = [_view(row, sides, looks) for row in rows[: SHOWN_MEMBERS if looks else LOOKED_AT]]
        views.append(ClusterView(sides.get(keeper, Side(keeper, "")), members, len(rows) + 1))
    # Copies, whose texts need no measuring, are among them.
    measured = evidence.filter(pc.not_equal(evidence.column("rule"), UNVERIFIED)).column("accepted")
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
        "rules": _rules(evidence),
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
        borderline=[_view(row, sides, looks) for row in borderline],
        losses=[Loss(**row) for row in manifest["sources"]],
        guards=[_guard(row) for row in manifest["guards"]],
        without_information=without_information,
        plan=manifest["plan"],
        manifest={key: value for key, value in manifest.items() if key not in ("outputs", "seal")},
    )


def _date(when: float) -> str:
    """The time to the minute, in UTC; SOURCE_DATE_EPOCH stands for it where bytes must be equal."""
    with suppress(KeyError, ValueError):
        when = float(os.environ["SOURCE_DATE_EPOCH"])
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(when))


def _title(manifest: Mapping[str, Any]) -> str:
    """What was deduplicated: the input, or the folder of several."""
    names = [row["name"] for row in manifest["inputs"]]
    if len(names) == 1:
        return f"Near-duplicates in {os.path.basename(names[0]) or names[0]}"
    what = counted(len(names), "picture" if manifest["settings"]["format"] == "image" else "file")
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


def _first_ids(batches: Iterator[pa.RecordBatch]) -> list[str]:
    """The first ids, as many as the page shows."""
    return [id for batch in islice(batches, 1) for id in batch.column("id").slice(0, EXAMPLES).to_pylist()]


def _largest(annotations: pa.Table, evidence: pa.Table) -> dict[str, list[dict[str, Any]]]:
    """The evidence rows of the largest clusters, the least similar members first."""
    gone = annotations.filter(pc.is_valid(annotations.column("duplicate_of")))
    counts = gone.group_by("cluster").aggregate([([], "count_all")])
    order = counts.sort_by([("count_all", "descending"), ("cluster", "ascending")]).slice(0, SHOWN_CLUSTERS)
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


def _borderline(evidence: pa.Table) -> list[dict[str, Any]]:
    """Accepted pairs that were least similar, and rejected ones that were most; a copy is no close call."""
    copies = pc.is_in(evidence.column("rule"), pa.array([IDENTICAL, SPELLED, IDENTICAL_FILE]))
    yes = evidence.filter(pc.and_not(evidence.column("accepted"), copies))
    no = evidence.filter(pc.invert(evidence.column("accepted")))
    ties = [("distance", "descending"), ("keeper", "ascending"), ("id", "ascending")]
    # Of what was not measured nothing is known: it comes first.
    yes = yes.append_column("known", pc.fill_null(yes.column("similarity"), 0.0))
    found: list[dict[str, Any]] = (
        yes.sort_by([("known", "ascending"), *ties]).slice(0, SHOWN_PAIRS).to_pylist()
    )
    found += no.sort_by([("similarity", "descending"), *ties]).slice(0, SHOWN_PAIRS).to_pylist()
    return found


def _sides(sources: Sequence[Source], wanted: set[str]) -> tuple[dict[str, Side], dict[str, Look]]:
    """The documents with those ids; of pictures also what is to be seen of them."""
    found: dict[str, Side] = {}
    looks: dict[str, Look] = {}
    values = pa.array(sorted(wanted), pa.large_string())
    for source in sources:
        for batch in source:
            rows = np.flatnonzero(pc.is_in(batch.ids, values).to_numpy(zero_copy_only=False))
            for row in rows.tolist():
                id = batch.ids[row].as_py()
                found[id] = (
                    Side(id, batch.texts[row].as_py(), f"{batch.file}:{batch.places[row]}")
                    if batch.pictures is None
                    else _picture(id, id_path(id.removeprefix(source.prefix)), batch.file, looks)
                )
            if len(found) == len(wanted):
                return found, looks
    return found, looks


def _picture(id: str, path: str, source: str, looks: dict[str, Look]) -> Side:
    """A picture made small for the page, without what its file says beside the pixels."""
    try:
        with open(path, "rb") as file:
            data = file.read()
        picture, colours = looks[id] = look(data)
    except (OSError, BadPicture):
        return Side(id, "", source)
    scale = " (decoded at a reduced scale)" if picture.reduced else ""
    facts = {"pixels": f"{picture.width} x {picture.height}{scale}", "bytes": f"{len(data):,}"}
    return Side(id, "", source, facts, address(colours))


def _view(row: Mapping[str, Any], sides: Mapping[str, Side], looks: Mapping[str, Look]) -> PairView:
    keeper, other = (sides.get(row[name], Side(row[name], "")) for name in ("keeper", "id"))
    numbers = {name: row[name] for name in ("distance", "similarity", "common", "rare", "accepted", "rule")}
    if keeper.id in looks and other.id in looks:
        return PairView(keeper, other, **numbers, overlay=overlay(looks[keeper.id], looks[other.id]))
    return PairView(keeper, other, **numbers)


def _rules(evidence: pa.Table) -> dict[str, tuple[int, int]]:
    counts: dict[str, list[int]] = {}
    for group in evidence.group_by(["rule", "accepted"]).aggregate([([], "count_all")]).to_pylist():
        row = counts.setdefault(group["rule"], [0, 0])
        row[0 if group["accepted"] else 1] += group["count_all"]
    ordered = sorted(counts.items(), key=lambda item: (-item[1][0], -item[1][1], item[0]))
    return {rule: (yes, no) for rule, (yes, no) in ordered}


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
