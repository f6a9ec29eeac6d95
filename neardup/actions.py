"""Actions on files: remove the duplicates that a run proved, and bring them back.

A file goes only if the run is whole, the evidence holds its pair with the keeper, and both files are
still the very bytes that were compared: looked at just before, and again after the file was moved
aside, where no program that uses its name can change it. Whatever does not fit stays. Every action
is in the log, on the disk, before it begins; so the log undoes also what a power cut left half done.
"""

from __future__ import annotations

import errno
import hashlib
import os
import secrets
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Final, NamedTuple

import orjson
import pyarrow.compute as pc

from neardup import __version__
from neardup.errors import DamagedFile, InvalidValue, LimitReached, RefusedInput
from neardup.files import sync_folder
from neardup.runs import Input, Run
from neardup.sources import FORMATS, format_of, id_path, path_id
from neardup.sources.files import File
from neardup.sources.streams import Broken
from neardup.types import PROTECTED

ACTIONS: Final = ("trash", "hardlink", "delete")
WHOLE: Final = ("text", "image")  # formats in which a file is one document
LOG: Final = 1  # format of the log
_READ: Final = (
    os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
)


@dataclass(frozen=True, slots=True)
class Removal:
    """A file that a run proved to be a duplicate of another."""

    file: Input
    keeper: Input
    similarity: float


@dataclass(frozen=True, slots=True)
class Left:
    """A file that stays as it is, and why."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class Plan:
    """What an action is to do."""

    action: str
    removals: tuple[Removal, ...]
    left: tuple[Left, ...]
    trash: str | None = None

    @property
    def bytes(self) -> int:
        """How much the files to go hold."""
        return sum(one.file.bytes or 0 for one in self.removals)


@dataclass(slots=True)
class Outcome:
    """What was done, and what was left with the reason."""

    done: list[str] = field(default_factory=list)
    left: list[Left] = field(default_factory=list)


class _Unfit(Exception):
    """A file that is not what it has to be; the message says why it stays."""


# --- what is to go ---------------------------------------------------------------------------------------


def plan_removals(run: Run, action: str, *, trash: str | None = None) -> Plan:
    """What *action* would do with the duplicates of *run*. Nothing is touched."""
    if action not in ACTIONS:
        raise InvalidValue(f"unknown action {action!r}; known: {', '.join(ACTIONS)}")
    if action == "trash" and not trash:
        raise InvalidValue("the action trash needs a folder")
    run.check()
    if run.settings.get("verify") == "none":
        raise RefusedInput(
            "this run verified nothing (--verify none); no file is removed on a fingerprint alone"
        )
    _check_whole_files(run)
    inputs = {one.id: one for one in run.inputs}
    keepers = {**{PROTECTED + one.id: one for one in run.protected}, **inputs}
    table = run.annotations
    removed = table.filter(pc.invert(table.column("keep")))
    goes = set(removed.column("id").to_pylist())
    proofs = _proofs(run)
    removals, left = [], []
    for id, keeper in zip(
        removed.column("id").to_pylist(), removed.column("duplicate_of").to_pylist(), strict=True
    ):
        try:
            removals.append(_removal(id, keeper, inputs, keepers, goes, proofs, action))
        except _Unfit as fault:
            left.append(Left(id, str(fault)))
    return Plan(action, tuple(removals), tuple(left), None if trash is None else os.path.abspath(trash))


def _check_whole_files(run: Run) -> None:
    """Raise unless every input is one document; else an id inside a file could name another file."""
    if not run.inputs:
        raise RefusedInput("this run has no input files; write what is kept with -o instead")
    for one in (*run.inputs, *run.protected):
        name = _format(one.path, run.settings.get("format"))
        if name is not None and name not in WHOLE:
            raise RefusedInput(
                f"{one.path!r} holds many documents ({name}); this is for documents that are files: "
                "write what is kept with -o instead"
            )


def _format(path: str, asked: str | None) -> str | None:
    file = File(path)
    if file.is_remote or not os.path.isfile(path):
        # It cannot be removed; its name tells whether it held many documents.
        return next((row.name for row in FORMATS.values() if file.suffix in row.suffixes), None)
    try:
        return format_of(file, asked)[0]
    except Broken:
        return None


def _proofs(run: Run) -> dict[tuple[str, str], float]:
    table = run.evidence
    table = table.filter(pc.and_(table.column("accepted"), table.column("similarity").is_valid()))
    columns = (table.column(name).to_pylist() for name in ("keeper", "id", "similarity"))
    return {(keeper, id): similarity for keeper, id, similarity in zip(*columns, strict=True)}


def _removal(
    id: str,
    keeper: str | None,
    inputs: dict[str, Input],
    keepers: dict[str, Input],
    goes: set[str],
    proofs: dict[tuple[str, str], float],
    action: str,
) -> Removal:
    if id not in inputs:
        raise _Unfit("is not a file that the run read")
    if keeper is None or keeper not in keepers:
        raise _Unfit("its keeper is not a file that the run read")
    if keeper == id or keeper in goes:
        raise _Unfit("is the last copy: its keeper is to go too")
    if (keeper, id) not in proofs:
        raise _Unfit("was not verified against its keeper")
    file, other = inputs[id], keepers[keeper]
    if not file.sha256 or not other.sha256:
        raise _Unfit("the run has no digest of it, or of its keeper")
    if action == "hardlink" and file.sha256 != other.sha256:
        raise _Unfit("is not byte for byte its keeper; a hard link would replace its content")
    return Removal(file, other, proofs[keeper, id])


# --- doing it --------------------------------------------------------------------------------------------


def _nothing(step: str) -> None:
    """Between two steps of an action; tests change the files here."""


def remove(plan: Plan, log: str | os.PathLike[str], *, between: Callable[[str], None] = _nothing) -> Outcome:
    """Do what *plan* says, file by file, and write it to *log*, which must not exist yet.

    *between* is called with the name of each step that follows; it is there for tests.
    """
    outcome = Outcome(left=list(plan.left))
    with _Log(log, plan) as lines:
        for number, removal in enumerate(plan.removals):
            path = removal.file.path
            try:
                _remove(number, removal, plan, lines, between)
                outcome.done.append(path)
            except _Unfit as fault:
                outcome.left.append(Left(removal.file.id, str(fault)))
            except OSError as error:
                outcome.left.append(Left(removal.file.id, f"cannot be removed: {error.strerror or error}"))
    return outcome


def _remove(number: int, removal: Removal, plan: Plan, lines: _Log, between: Callable[[str], None]) -> None:
    path, keeper = os.path.abspath(removal.file.path), os.path.abspath(removal.keeper.path)
    between("check")
    before = _verified(path, removal.file)
    _verified(keeper, removal.keeper, what="its keeper ")
    _check_apart(path, keeper)
    aside = os.path.join(os.path.dirname(path), f".neardup-{secrets.token_hex(8)}.aside")
    target = _trash_name(plan.trash, path) if plan.trash is not None else None
    lines.write(
        step="begin",
        number=number,
        path=path_id(path),
        keeper=path_id(keeper),
        aside=path_id(aside),
        target=None if target is None else path_id(target),
        sha256=removal.file.sha256,
        keeper_sha256=removal.keeper.sha256,
        size=before.st_size,
        modified=before.st_mtime_ns,
        mode=stat.S_IMODE(before.st_mode),
        owner=[before.st_uid, before.st_gid],
    )
    between("aside")
    os.rename(path, aside)
    try:
        between("check again")
        after = _verified(aside, removal.file)
        if (after.st_dev, after.st_ino) != (before.st_dev, before.st_ino):
            raise _Unfit("was replaced while it was looked at")
        _verified(keeper, removal.keeper, what="its keeper ")
        _check_apart(aside, keeper)
        _finish(plan.action, path, aside, keeper, target)
    except BaseException:
        kept = _put_back(aside, path)
        lines.write(step="left", number=number, path=path_id(kept))
        raise
    sync_folder(os.path.dirname(path))
    lines.write(step="done", number=number)


def _finish(action: str, path: str, aside: str, keeper: str, target: str | None) -> None:
    if action == "delete":
        os.unlink(aside)
    elif action == "trash":
        assert target is not None
        os.makedirs(os.path.dirname(target), exist_ok=True)
        _move(aside, target)
        sync_folder(os.path.dirname(target))
    else:
        os.link(keeper, path, follow_symlinks=False)
        os.unlink(aside)


def _check_apart(path: str, keeper: str) -> None:
    """Raise if two paths are one file: then removing it would remove the keeper's bytes' other name."""
    if os.path.samestat(os.lstat(path), os.lstat(keeper)):
        raise _Unfit("is the same file as its keeper under another name")


def _verified(path: str, wanted: Input, *, what: str = "") -> os.stat_result:
    """The status of a file whose size, time and bytes are those that the run saw."""
    try:
        handle = os.open(path, _READ)
    except OSError as error:
        reason = "is a symbolic link" if error.errno == errno.ELOOP else f"cannot be read: {error.strerror}"
        raise _Unfit(f"{what}{reason}") from None
    with os.fdopen(handle, "rb") as file:
        first = os.fstat(handle)
        if not stat.S_ISREG(first.st_mode):
            raise _Unfit(f"{what}is not a regular file")
        if wanted.bytes is not None and first.st_size != wanted.bytes:
            raise _Unfit(f"{what}changed since the run: its size is another")
        if wanted.modified is not None and first.st_mtime_ns != wanted.modified:
            raise _Unfit(f"{what}changed since the run: its time is another")
        if _digest(file) != wanted.sha256:
            raise _Unfit(f"{what}changed since the run: its content is another")
        last = os.fstat(handle)
    try:
        named = os.lstat(path)
    except OSError:
        raise _Unfit(f"{what}went away while it was looked at") from None
    if len({(one.st_dev, one.st_ino, one.st_size, one.st_mtime_ns) for one in (first, last, named)}) > 1:
        raise _Unfit(f"{what}changed while it was looked at")
    return last


def _digest(file: Any) -> str:
    found = hashlib.sha256()
    while piece := file.read(1 << 20):
        found.update(piece)
    return found.hexdigest()


def _trash_name(trash: str, path: str) -> str:
    """Where in *trash* a file goes: under its whole path, with a number where that is taken."""
    inside = os.path.splitdrive(path)[1].lstrip("/\\")
    target = os.path.join(trash, inside)
    number = 1
    while os.path.lexists(target):
        target = os.path.join(trash, f"{inside}~{number}")
        number += 1
    return target


def _move(source: str, target: str) -> None:
    """Give a file another name that must be free; across file systems it is copied, checked and synced."""
    try:
        os.link(source, target, follow_symlinks=False)
    except FileExistsError:
        raise _Unfit(f"{target!r} exists") from None
    except OSError as error:
        if error.errno not in (errno.EXDEV, errno.EPERM, errno.ENOTSUP, errno.EMLINK, errno.ENOSYS):
            raise
        _copy(source, target)
    os.unlink(source)


def _copy(source: str, target: str) -> None:
    """A copy of *source*, with its time and mode, under a name that must be free."""
    handle = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
    try:
        with os.fdopen(handle, "wb") as out, open(source, "rb") as file:
            shutil.copyfileobj(file, out, 1 << 20)
            out.flush()
            os.fsync(out.fileno())
        shutil.copystat(source, target)
        with open(source, "rb") as one, open(target, "rb") as other:
            if _digest(one) != _digest(other):
                raise _Unfit("changed while it was copied")
    except BaseException:
        os.unlink(target)
        raise


def _put_back(aside: str, path: str) -> str:
    """Give a file that was moved aside its name again, or one beside it; where it is now."""
    if not os.path.lexists(aside):
        return path
    names = [path, *(f"{path}~{number}" for number in range(1, 1000))]
    for name in names:
        with suppress(_Unfit):
            _move(aside, name)
            return name
    return aside


class _Log:
    """JSON Lines, each on the disk before the next thing happens."""

    def __init__(self, path: str | os.PathLike[str], plan: Plan) -> None:
        self._path = os.path.abspath(path)
        try:
            handle = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o644)
        except FileExistsError:
            raise InvalidValue(f"log {self._path!r} exists; choose another name with --log") from None
        except OSError as error:
            raise LimitReached(f"cannot write the log {self._path!r}: {error.strerror}") from None
        self._file = os.fdopen(handle, "wb")
        try:
            self.write(log=LOG, neardup=__version__, action=plan.action)
            sync_folder(os.path.dirname(self._path))
        except BaseException:
            self._file.close()
            raise

    def write(self, **cells: Any) -> None:
        self._file.write(orjson.dumps(cells, option=orjson.OPT_APPEND_NEWLINE))
        self._file.flush()
        os.fsync(self._file.fileno())

    def __enter__(self) -> _Log:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()


# --- bringing it back ------------------------------------------------------------------------------------


class _Entry(NamedTuple):
    action: str
    path: str
    keeper: str
    aside: str
    target: str | None
    row: dict[str, Any]


def undo(log: str | os.PathLike[str], *, dry_run: bool = False) -> Outcome:
    """Bring back what the actions in *log* removed, the last first. Nothing that exists is replaced.

    May be called again: what is back already stays as it is.
    """
    outcome = Outcome()
    for entry in reversed(list(_entries(log))):
        try:
            if _restore(entry, dry_run):
                outcome.done.append(entry.path)
        except _Unfit as fault:
            outcome.left.append(Left(path_id(entry.path), str(fault)))
        except OSError as error:
            outcome.left.append(
                Left(path_id(entry.path), f"cannot be brought back: {error.strerror or error}")
            )
    return outcome


def _entries(log: str | os.PathLike[str]) -> Iterator[_Entry]:
    """What was begun and not put back at once."""
    with open(log, "rb") as file:
        lines = file.read().split(b"\n")
    rows = []
    for number, line in enumerate(lines, 1):
        try:
            rows.append(orjson.loads(line) if line else None)
        except orjson.JSONDecodeError:
            if number < len(lines):  # the last line may be cut: what it says had not begun
                raise DamagedFile(f"log {os.fspath(log)!r} is damaged in line {number}") from None
    head, *rest = [row for row in rows if isinstance(row, dict)] or [{}]
    if head.get("log") != LOG or head.get("action") not in ACTIONS:
        raise InvalidValue(f"{os.fspath(log)!r} is no undo log of this neardup")
    put_back = {row.get("number") for row in rest if row.get("step") == "left"}
    for row in rest:
        if row.get("step") == "begin" and row.get("number") not in put_back:
            target = row.get("target")
            yield _Entry(
                head["action"],
                id_path(row["path"]),
                id_path(row["keeper"]),
                id_path(row["aside"]),
                None if target is None else id_path(target),
                row,
            )


def _restore(entry: _Entry, dry_run: bool) -> bool:
    """Bring one file back; False if it is there already."""
    path, row = entry.path, entry.row
    wanted = Input(path, row["size"], row["sha256"])
    if os.path.lexists(path):
        if entry.action == "hardlink" and _is_link(path, entry.keeper):
            if not dry_run:
                _own_copy(path, row)
            return True
        with suppress(_Unfit):
            _verified(path, wanted)
            return False
        raise _Unfit("another file has its name now; move it away first")
    for place in (entry.aside, entry.target):
        if place is not None and os.path.lexists(place):
            _verified(place, wanted, what=f"{place!r} ")
            if not dry_run:
                os.makedirs(os.path.dirname(path), exist_ok=True)
                _move(place, path)
                sync_folder(os.path.dirname(path))
            return True
    if row["sha256"] != row["keeper_sha256"]:
        where = "was deleted" if entry.action == "delete" else f"is not at {entry.target!r}"
        raise _Unfit(f"{where}, and no byte for byte copy of it is kept")
    _verified(entry.keeper, wanted, what="its copy ")
    if not dry_run:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        _copy(entry.keeper, path)
        _dress(path, row)
        sync_folder(os.path.dirname(path))
    return True


def _is_link(path: str, keeper: str) -> bool:
    return os.path.lexists(keeper) and os.path.samestat(os.lstat(path), os.lstat(keeper))


def _own_copy(path: str, row: dict[str, Any]) -> None:
    """Put a copy in the place of a hard link."""
    beside = os.path.join(os.path.dirname(path), f".neardup-{secrets.token_hex(8)}.aside")
    _copy(path, beside)
    _dress(beside, row)
    os.replace(beside, path)
    sync_folder(os.path.dirname(path))


def _dress(path: str, row: dict[str, Any]) -> None:
    """Give a file the owner, mode and time that it had."""
    with suppress(OSError, AttributeError):
        os.chown(path, *row["owner"])
    os.chmod(path, row["mode"])
    os.utime(path, ns=(row["modified"], row["modified"]))
