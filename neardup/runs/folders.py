"""Run folders: the names of a run's files, and what may be done to a folder that holds some of them.

Only what is known to be of a run is replaced or removed: a name alone does not prove it.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import count
from typing import Final

from neardup.errors import InvalidValue, LimitReached, Said, Setting
from neardup.files import atomic_file, sweep
from neardup.runs.manifests import MANIFEST, known, listed
from neardup.sources import FORMATS
from neardup.sources.streams import SUFFIXES

ANNOTATIONS: Final = "annotations.parquet"
EVIDENCE: Final = "evidence.parquet"
SCHEME: Final = "scheme.nd"  # there if the run was to keep its fitted scheme
QUARANTINE: Final = "quarantine.jsonl"
WITHOUT_INFORMATION: Final = "without_information.jsonl"
REPORT: Final = "report.html"
# The page of a run that a guard stopped, beside the run that it would have replaced.
STOPPED: Final = "stopped.html"
# The folder of an unfinished run, and in it the file that says where its page is.
WORK: Final = ".neardup"
NOTED: Final = "report"
# The names that a run gives; kept files end as `sinks.kept` names them.
_ENDINGS: Final = "|".join([*FORMATS, "tsv", "tab", "arrows", "txt"])
_OUTPUT: Final = re.compile(
    "|".join(map(re.escape, (ANNOTATIONS, EVIDENCE, QUARANTINE, WITHOUT_INFORMATION, SCHEME)))
    + rf"|kept(-[0-9]+)?\.({_ENDINGS})({'|'.join(map(re.escape, SUFFIXES))})?"
)
OUT: Final = Setting("out")
OVERWRITE: Final = Setting("overwrite")


def foreign_page(page: str) -> Said:
    """What is said of a file that is about to be replaced by a report, and is none."""
    report = Setting("report")
    return Said(
        f"{page!r} exists and is not a report of this run; name another ", report, ", or use ", OVERWRITE
    )


def is_output(name: str) -> bool:
    """Whether a run gives that name to a file, the manifest and the page aside."""
    return _OUTPUT.fullmatch(name) is not None


def is_same(one: str, other: str) -> bool:
    """Whether both paths are one file that is there."""
    with suppress(OSError, ValueError):  # a pipe, an address
        return os.path.samefile(one, other)
    return False


def beside(page: str, out: str) -> bool:
    """Whether *page* is directly in the folder *out*."""
    return os.path.dirname(os.path.abspath(page)) == os.path.abspath(out)


@contextmanager
def alone(out: str, work: str) -> Iterator[None]:
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
                Said(f"another process works in {out!r}; wait for it, or choose another ", OUT)
            ) from None
        yield


# --- the page of an unfinished run ----------------------------------------------------------------------


def noted(out: str) -> str | None:
    """Where the page of an unfinished run in *out* is, or was about to be."""
    try:
        with open(os.path.join(out, WORK, NOTED), "rb") as file:
            return os.fsdecode(file.read())
    except FileNotFoundError:
        return None


def note_page(out: str, page: str) -> None:
    """Say in the work folder that *page* is of this run, before there is one."""
    with atomic_file(os.path.join(out, WORK, NOTED), overwrite=True) as file:
        file.write(os.fsencode(os.path.abspath(page)))


def stop_page(out: str) -> str:
    """A place for the page of a stop beside the run in *out*, where there is nothing but such a page."""
    own, names_listed = noted(out), listed(known(out))
    names = (STOPPED if number == 1 else f"{number}-{STOPPED}" for number in count(1))
    pages = ((name, os.path.join(out, name)) for name in names)
    return next(
        page
        for name, page in pages
        if not os.path.lexists(page) or (own == os.path.abspath(page) and name not in names_listed)
    )


def drop_page(out: str) -> None:
    """Remove the page of an earlier stop: what it says of the folder is about to be wrong."""
    page = noted(out)
    if page is None or os.path.basename(page) in listed(known(out)):
        return  # there is none, or it is that of the finished run
    if os.path.dirname(page) == os.path.abspath(out):
        with suppress(FileNotFoundError):
            os.unlink(page)


# --- what an earlier run left ----------------------------------------------------------------------------


def outputs(out: str) -> list[str]:
    """The files in *out* that have the names of outputs."""
    names = os.listdir(out) if os.path.isdir(out) else []
    return sorted(name for name in names if is_output(name))


def check_unused(out: str, page: str | None) -> None:
    """Raise if files that no unfinished run wrote would be replaced; *page* where one will be written."""
    if page is not None and os.path.lexists(page) and noted(out) != os.path.abspath(page):
        raise InvalidValue(foreign_page(page))
    if os.path.isdir(os.path.join(out, WORK)):
        return
    if found := outputs(out):
        raise InvalidValue(
            Said(
                f"{os.path.join(out, found[0])!r} exists but is not of a run; choose another folder, or use ",
                OVERWRITE,
            )
        )


def clear(out: str, *, with_outputs: bool) -> None:
    """Remove what an unfinished run left, also the outputs, if they are its own; its finished parts stay."""
    if with_outputs:
        remove_outputs(out)
    work = os.path.join(out, WORK)
    for folder in (out, work):
        sweep(folder)
    for entry in os.scandir(work):
        if entry.is_dir(follow_symlinks=False):  # texts that were set aside
            shutil.rmtree(entry.path, ignore_errors=True)


def remove_run(out: str) -> None:
    """Remove a finished run.

    The manifest last: as long as it exists, what it lists is known to belong to a run.
    """
    remove_outputs(out, listed(known(out)))
    os.unlink(os.path.join(out, MANIFEST))


def remove_outputs(out: str, others: Sequence[str] = ()) -> None:
    """Remove what has the name of an output, and the *others* that a manifest listed."""
    for path in (os.path.join(out, name) for name in {*outputs(out), *others}):
        if os.path.lexists(path) and not os.path.isdir(path):
            os.unlink(path)
