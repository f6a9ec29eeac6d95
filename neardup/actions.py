"""Actions on files: remove the duplicates that a run proved, and bring them back.

Neither a run nor a log is believed. A file goes only if the run is whole, the evidence holds its pair with
the keeper, both files are still the very bytes that were compared, and the pair, measured again, is one:
looked at just before, and the bytes again after the file was moved aside, where no program that uses its
name can change it. No link is followed on the way to a file. Whatever does not fit stays. Every action
is in the log, on the disk, before it begins; so the log undoes also what a power cut left half done.

What may be touched is what the user named: the inputs of a run that this user's neardup wrote, which its
seal shows (`seals`), or else the folders that are named now.
"""

from __future__ import annotations

import errno
import hashlib
import os
import secrets
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import pyarrow.compute as pc

from neardup.errors import DamagedFile, InvalidValue, RefusedInput, Said, Setting, shown
from neardup.places import Place, folder_of, is_below, reached
from neardup.proofs import Proof, Proofs, Unproved
from neardup.runs import Input, Run
from neardup.runs.folders import OUT
from neardup.seals import own_key
from neardup.sources import FORMATS, format_of, path_id
from neardup.sources.files import File
from neardup.sources.streams import Broken
from neardup.types import PROTECTED
from neardup.undologs import ACTIONS, Entry, Log, Writer, inside, parse_log

# Formats in which a file is one document. No set: what a manifest says may be anything.
WHOLE: Final = tuple(row.name for row in FORMATS.values() if row.whole)
_READ: Final = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)


@dataclass(frozen=True, slots=True)
class Removal:
    """A file that a run proved to be a duplicate of another; from its root on no link is followed to it."""

    file: Input
    keeper: Input
    proof: Proof
    root: str
    keeper_root: str

    @property
    def similarity(self) -> float:
        return self.proof.similarity


@dataclass(frozen=True, slots=True)
class Left:
    """A file that stays as it is, and why; *expected* where the action never takes such a file."""

    path: str
    reason: str
    expected: bool = False


@dataclass(frozen=True, slots=True)
class Removals:
    """What an action is to do: the files that go, and those that are left as they are."""

    action: str
    removals: tuple[Removal, ...]
    left: tuple[Left, ...]
    proofs: Proofs
    trash: str | None = None


@dataclass(slots=True)
class Outcome:
    """What was done, and what was left with the reason."""

    done: list[str] = field(default_factory=list)
    left: list[Left] = field(default_factory=list)


class _Unfit(Exception):
    """A file that is not what it has to be; the message says why it stays."""

    def __init__(self, reason: str, *, expected: bool = False) -> None:
        super().__init__(reason)
        self.expected = expected


# --- what is to go ---------------------------------------------------------------------------------------


def plan_removals(run: Run, action: str, *, trash: str | None = None, within: Sequence[str] = ()) -> Removals:
    """What *action* would do with the duplicates of *run*. Nothing is touched.

    Only files below *within* go, and only if their keepers are there, too; a run that this user's neardup did
    not write needs it.
    """
    if action not in ACTIONS:
        raise InvalidValue(f"unknown action {action!r}; known: {', '.join(ACTIONS)}")
    if action == "trash" and not trash:
        raise InvalidValue("the action trash needs a folder")
    run.check()
    if run.settings.get("verify") == "none":
        raise RefusedInput(
            Said(
                "this run verified nothing (",
                Setting("unverified", words="verify='none'"),
                "); no file is removed on a fingerprint alone",
            )
        )
    own = run.is_own
    if not own and not within:
        raise RefusedInput(
            f"run {run.path!r} was written by another user or neardup, or was changed since{_of(run)}; "
            "if you trust it, name the folders whose files may go and stay: neardup apply RUN FOLDER..."
        )
    _check_whole_files(run)
    folders = _folders(within)
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
            file, other, proof = _pair(id, keeper, inputs, keepers, goes, proofs, action)
            root = _root(file, folders, own)
            removals.append(Removal(file, other, proof, root, _root(other, folders, own, "its keeper ")))
        except _Unfit as fault:
            left.append(Left(id, str(fault), fault.expected))
    place = os.path.abspath(trash) if trash and action == "trash" else None
    return Removals(action, tuple(removals), tuple(left), Proofs(run), place)


def _of(run: Run) -> str:
    """The folders whose files a run would remove, so that the user can decide whether it may."""
    found = sorted({one.root or os.path.dirname(one.path) or "." for one in run.inputs})
    more = f" and {len(found) - 3:,} more folders" if len(found) > 3 else ""
    return f" (it names files in {', '.join(map(shown, found[:3]))}{more})" if found else ""


def _folders(within: Sequence[str]) -> tuple[str, ...]:
    """Folders that the user names now, by the name that was given and by the one without links."""
    return tuple(
        dict.fromkeys(one for name in within for one in (os.path.abspath(name), os.path.realpath(name)))
    )


def _root(one: Input, folders: Sequence[str], own: bool, what: str = "") -> str:
    """The folder from which no link is followed to a file: one that the run, or the user now, named."""
    path = os.path.abspath(one.path)
    named = folder_of(path, folders)
    if folders and named is None:
        raise _Unfit(f"{what}is not below the folders that were named")
    root = named if named is not None and not own else os.path.abspath(one.root or path)
    if "\0" in path or not is_below(path, root):
        raise _Unfit(f"{what}lies outside the inputs of the run")
    return os.path.dirname(path) if root == path else root


def _check_whole_files(run: Run) -> None:
    """Raise unless every input is one document; else an id inside a file could name another file."""
    if not run.inputs:
        raise RefusedInput(Said("this run has no input files; write what is kept with ", OUT, " instead"))
    for one in (*run.inputs, *run.protected):
        name = _format(one.path, run.settings.get("format"))
        if name is not None and name not in WHOLE:
            raise RefusedInput(
                Said(
                    f"{one.path!r} holds many documents ({name}); this is for documents that are files: "
                    "write what is kept with ",
                    OUT,
                    " instead",
                )
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


def _proofs(run: Run) -> dict[tuple[str, str], Proof]:
    table = run.evidence
    table = table.filter(pc.and_(table.column("accepted"), table.column("similarity").is_valid()))
    # Of images there is nothing beside the similarity and the reason that is used.
    more = [name for name in ("weighted", "rare") if name in table.column_names]
    names = ("keeper", "id", "similarity", "reason", *more)
    columns = (table.column(name).to_pylist() for name in names)
    return {(keeper, id): Proof(*found) for keeper, id, *found in zip(*columns, strict=True)}


def _pair(
    id: str,
    keeper: str | None,
    inputs: dict[str, Input],
    keepers: dict[str, Input],
    goes: set[str],
    proofs: dict[tuple[str, str], Proof],
    action: str,
) -> tuple[Input, Input, Proof]:
    if id not in inputs:
        raise _Unfit("is not a file that the run read")
    if keeper is None or keeper not in keepers:
        raise _Unfit("its keeper is not a file that the run read")
    if keeper == id or keeper in goes:
        raise _Unfit("is the last copy: its keeper would go, too")
    if (keeper, id) not in proofs:
        raise _Unfit("was not verified against its keeper")
    file, other = inputs[id], keepers[keeper]
    if not file.sha256 or not other.sha256:
        raise _Unfit("the run has no digest of it, or of its keeper")
    if action == "hardlink" and file.sha256 != other.sha256:
        raise _Unfit("is not byte for byte its keeper; a hard link would replace its content", expected=True)
    return file, other, proofs[keeper, id]


# --- doing it --------------------------------------------------------------------------------------------


def _nothing(step: str) -> None:
    """Between two steps of an action; tests change the files here."""


def remove(
    plan: Removals, log: str | os.PathLike[str], *, between: Callable[[str], None] = _nothing
) -> Outcome:
    """Do what *plan* says, file by file, and write it to *log*, which must not exist yet.

    *between* is called with the name of each step that follows; it is there for tests.
    """
    with Writer(log, plan.action, plan.trash) as lines:
        return _each(plan, lambda number, removal: _remove(number, removal, plan, lines, between))


def rehearse(plan: Removals) -> Outcome:
    """What `remove` would do now, with the same checks and measurements; nothing is touched."""
    return _each(plan, lambda number, removal: _rehearse(removal, plan))


def _each(plan: Removals, act: Callable[[int, Removal], None]) -> Outcome:
    outcome = Outcome(left=list(plan.left))
    for number, removal in enumerate(plan.removals):
        try:
            act(number, removal)
            outcome.done.append(removal.file.path)
        except (_Unfit, Unproved) as fault:
            outcome.left.append(Left(removal.file.id, str(fault)))
        except OSError as error:
            outcome.left.append(Left(removal.file.id, f"cannot be removed: {error.strerror or error}"))
    return outcome


@contextmanager
def _both(removal: Removal) -> Iterator[tuple[Place, Place]]:
    """The file that is to go, and its keeper."""
    with ExitStack() as stack:
        path, keeper = (os.path.abspath(one.path) for one in (removal.file, removal.keeper))
        place = stack.enter_context(_found(path, removal.root))
        yield place, stack.enter_context(_found(keeper, removal.keeper_root, what="its keeper "))


@contextmanager
def _found(path: str, root: str | None, *, what: str = "") -> Iterator[Place]:
    with ExitStack() as stack:
        try:
            place = stack.enter_context(reached(path, root))
        except OSError as error:
            raise _Unfit(f"{what}cannot be read: {error.strerror}") from None
        yield place


def _rehearse(removal: Removal, plan: Removals) -> None:
    with _both(removal) as (place, keeper):
        _looked_at(place, keeper, removal, plan)


def _looked_at(place: Place, keeper: Place, removal: Removal, plan: Removals) -> os.stat_result:
    """The status of a file that may go: it and its keeper are what the run compared, and are a pair."""
    before = _verified(place, removal.file)
    _verified(keeper, removal.keeper, what="its keeper ")
    _check_apart(place, keeper)
    plan.proofs.check(removal.file, removal.keeper, removal.proof)
    return before


def _remove(
    number: int, removal: Removal, plan: Removals, lines: Writer, between: Callable[[str], None]
) -> None:
    between("check")
    with ExitStack() as stack:
        place, keeper = stack.enter_context(_both(removal))
        before = _looked_at(place, keeper, removal, plan)
        aside = place.beside(f".neardup-{secrets.token_hex(8)}.aside")
        target = None if plan.trash is None else _trash_name(plan.trash, place.path)
        lines.write(
            step="begin",
            number=number,
            path=path_id(place.path),
            root=path_id(removal.root),
            keeper=path_id(keeper.path),
            aside=path_id(aside.path),
            target=None if target is None else path_id(target),
            sha256=removal.file.sha256,
            keeper_sha256=removal.keeper.sha256,
            size=before.st_size,
            modified=before.st_mtime_ns,
            mode=stat.S_IMODE(before.st_mode),
            owner=[before.st_uid, before.st_gid],
        )
        between("aside")
        place.rename(aside)
        try:
            between("check again")
            after = _verified(aside, removal.file)
            if (after.st_dev, after.st_ino) != (before.st_dev, before.st_ino):
                raise _Unfit("was replaced while it was being checked")
            _verified(keeper, removal.keeper, what="its keeper ")
            _check_apart(aside, keeper)
            _finish(plan, place, aside, keeper, target)
        except BaseException:
            kept = _put_back(aside, place)
            if target is not None and plan.trash is not None:
                _prune(target, plan.trash, plan.trash)
            lines.write(step="left", number=number, path=path_id(kept.path))
            raise
        place.sync()
        lines.write(step="done", number=number)


def _finish(plan: Removals, place: Place, aside: Place, keeper: Place, target: str | None) -> None:
    if plan.action == "delete":
        aside.unlink()
    elif plan.action == "trash":
        assert target is not None
        with reached(target, plan.trash, make=True) as there:
            _move(aside, there)
            there.sync()
    else:
        keeper.link(place)
        aside.unlink()


def _check_apart(place: Place, keeper: Place) -> None:
    """Raise if two paths are one file: then removing it would remove the keeper's bytes' other name."""
    if os.path.samestat(place.status(), keeper.status()):
        raise _Unfit("is the same file as its keeper under another name")


def _verified(place: Place, wanted: Input, *, what: str = "") -> os.stat_result:
    """The status of a file whose size, time and bytes are those that the run saw."""
    try:
        handle = place.open(_READ)
    except OSError as error:
        reason = "is a symbolic link" if error.errno == errno.ELOOP else f"cannot be read: {error.strerror}"
        raise _Unfit(f"{what}{reason}") from None
    with os.fdopen(handle, "rb") as file:
        first = os.fstat(handle)
        if not stat.S_ISREG(first.st_mode):
            raise _Unfit(f"{what}is not a regular file")
        if wanted.bytes is not None and first.st_size != wanted.bytes:
            raise _Unfit(f"{what}changed since the run: it has another size")
        if wanted.modified is not None and first.st_mtime_ns != wanted.modified:
            raise _Unfit(f"{what}changed since the run: it has another time")
        if _digest(file) != wanted.sha256:
            raise _Unfit(f"{what}changed since the run: it has other content")
        last = os.fstat(handle)
    try:
        named = place.status()
    except OSError:
        raise _Unfit(f"{what}disappeared while it was being checked") from None
    if len({(one.st_dev, one.st_ino, one.st_size, one.st_mtime_ns) for one in (first, last, named)}) > 1:
        raise _Unfit(f"{what}changed while it was being checked")
    return last


def _digest(file: Any) -> str:
    found = hashlib.sha256()
    while piece := file.read(1 << 20):
        found.update(piece)
    return found.hexdigest()


def _trash_name(trash: str, path: str) -> str:
    """Where in *trash* a file goes: under its whole path, with a number where that is taken."""
    target = first = os.path.join(trash, inside(path))
    number = 1
    while os.path.lexists(target):
        target = f"{first}~{number}"
        number += 1
    return target


def _move(source: Place, target: Place) -> None:
    """Give a file another name that must be free; across file systems it is copied, checked and synced."""
    try:
        source.link(target)
    except FileExistsError:
        raise _Unfit(f"{target.path!r} exists") from None
    except OSError as error:
        if error.errno not in (errno.EXDEV, errno.EPERM, errno.ENOTSUP, errno.EMLINK, errno.ENOSYS):
            raise
        _copy(source, target)
    source.unlink()


class Dress(NamedTuple):
    """What a file has beside its bytes."""

    mode: int
    modified: int
    owner: tuple[int, int] | None


def _copy(source: Place, target: Place, dress: Dress | None = None) -> None:
    """A copy of *source* under a name that must be free, dressed as it or as *dress* says."""
    try:
        handle = target.open(os.O_RDWR | os.O_CREAT | os.O_EXCL)
    except FileExistsError:
        raise _Unfit(f"{target.path!r} exists") from None
    try:
        with os.fdopen(handle, "w+b") as out, os.fdopen(source.open(_READ), "rb") as file:
            shutil.copyfileobj(file, out, 1 << 20)
            out.flush()
            file.seek(0)
            out.seek(0)
            if _digest(file) != _digest(out):
                raise _Unfit("changed while it was copied")
            _dress(out.fileno(), target.path, file.fileno(), dress)
            os.fsync(out.fileno())
    except BaseException:
        target.unlink()
        raise


def _dress(handle: int, path: str, source: int, dress: Dress | None) -> None:
    """Give an open file the mode, time and attributes of another, or what *dress* says."""
    named: Any = handle if os.utime in os.supports_fd else path
    if dress is None:
        status = os.fstat(source)
        dress = Dress(stat.S_IMODE(status.st_mode), status.st_mtime_ns, None)
        with suppress(OSError, AttributeError):
            for name in os.listxattr(source):
                os.setxattr(handle, name, os.getxattr(source, name))
    if dress.owner is not None:
        with suppress(OSError, AttributeError):
            os.chown(named, *dress.owner)
    os.chmod(named, dress.mode)
    os.utime(named, ns=(dress.modified, dress.modified))


def _put_back(aside: Place, place: Place) -> Place:
    """Give a file that was moved aside its name again, or one beside it; where it is now."""
    if not aside.exists():
        return place
    name = os.path.basename(place.path)
    for other in (place, *(place.beside(f"{name}~{number}") for number in range(1, 1000))):
        with suppress(_Unfit):
            _move(aside, other)
            return other
    return aside


def _prune(target: str, trash: str, base: str | None) -> None:
    """Remove the folders in *trash* on the way to *target* that are empty; *base* is for `reached`."""
    folder = os.path.dirname(target)
    while folder != trash and is_below(folder, trash):
        try:
            with reached(folder, base) as place:
                place.rmdir()
        except OSError:  # it is not empty, or was never made
            if os.path.lexists(folder):
                return
        folder = os.path.dirname(folder)


# --- bringing it back ------------------------------------------------------------------------------------


def undo(log: str | os.PathLike[str], *, within: Sequence[str] = (), dry_run: bool = False) -> Outcome:
    """Bring back what the actions in *log* removed, the last first. Nothing that exists is replaced.

    A log that this user's neardup did not write needs *within*: the folders, the trash among them, in which
    all that it names must lie. May be called again: what is back already stays as it is.
    """
    found, trusted = _checked(os.fspath(log), _folders(within))
    outcome = Outcome()
    for entry in reversed(found.entries):
        try:
            if _restore(entry, trusted, dry_run):
                outcome.done.append(entry.path)
            if not dry_run and entry.target is not None and entry.trash is not None:
                _prune(entry.target, entry.trash, trusted.base(entry, entry.target))
        except _Unfit as fault:
            outcome.left.append(Left(path_id(entry.path), str(fault)))
        except OSError as error:
            outcome.left.append(
                Left(path_id(entry.path), f"cannot be brought back: {error.strerror or error}")
            )
    return outcome


@dataclass(frozen=True, slots=True)
class _Trusted:
    """From where files are reached: the folders that a log of our own names, or those that the user names."""

    own: bool
    folders: tuple[str, ...]

    def base(self, entry: Entry, path: str) -> str | None:
        """The folder from which no link is followed to *path*."""
        if not self.own:
            return folder_of(path, self.folders)
        if path in (entry.path, entry.aside):
            return entry.root
        return entry.trash if path == entry.target else None


def _checked(path: str, folders: tuple[str, ...]) -> tuple[Log, _Trusted]:
    """The log at *path*, if it may do what it says; nothing is touched before all of it was checked."""
    with open(path, "rb") as file:
        data = file.read()
    try:
        log = parse_log(data)
    except InvalidValue as fault:
        raise InvalidValue(f"{path!r} cannot be undone: {fault}") from None
    except DamagedFile as fault:
        raise DamagedFile(f"log {path!r} is damaged, nothing was brought back: {fault}") from None
    own = log.is_own(own_key())
    if not own and not folders:
        raise RefusedInput(
            f"log {path!r} was written by another user or neardup, or was changed since{_places(log)}; "
            "if you trust it, name the folders that it may touch: neardup undo LOG FOLDER..."
        )
    for one in (one for entry in log.entries for one in entry.paths if folders):
        if folder_of(one, folders) is None:
            raise RefusedInput(f"log {path!r} names {one!r}, which is not below the folders that were named")
    return log, _Trusted(own, folders)


def _places(log: Log) -> str:
    """The folders that a log would touch, so that the user can decide whether it may."""
    if not log.entries:
        return ""
    ours = _common(os.path.dirname(entry.path) for entry in log.entries)
    trash = {entry.trash for entry in log.entries if entry.trash is not None}
    return f" (it names files in {', '.join(map(repr, [*ours, *sorted(trash)]))})"


def _common(folders: Iterable[str]) -> list[str]:
    try:
        return [os.path.commonpath(list(folders))]
    except ValueError:  # of several drives
        return []


def _restore(entry: Entry, trusted: _Trusted, dry_run: bool) -> bool:
    """Bring one file back; False if it is there already."""
    wanted = Input(entry.path, entry.size, entry.sha256)
    dress = _dress_of(entry, trusted)
    with ExitStack() as stack:

        def at(path: str | None) -> Place | None:
            """The place, if something is there."""
            if path is None:
                return None
            try:
                place = stack.enter_context(reached(path, trusted.base(entry, path)))
            except FileNotFoundError:
                return None
            return place if place.exists() else None

        there, aside, target, keeper = map(at, (entry.path, entry.aside, entry.target, entry.keeper))
        if entry.sha256 != entry.keeper_sha256:
            keeper = None
        if aside is not None and keeper is not None and _is_cut(aside, keeper):
            # An undo before this one was cut short while it made its copy.
            if not dry_run:
                aside.unlink()
            aside = None
        linked = False
        if entry.action == "hardlink" and there is not None and keeper is not None:
            linked = _is_same(there, keeper)
        if there is not None and not linked:
            _check_back(there, wanted)
            if not dry_run:
                _drop_names(there, aside, target)
            return False
        place = aside or target
        if place is not None:
            _verified(place, wanted, what=f"{place.path!r} ")
        elif keeper is not None:
            _verified(keeper, wanted, what="its copy ")
        elif entry.sha256 == entry.keeper_sha256:
            raise _Unfit(f"its copy {entry.keeper!r} is gone, too")
        else:
            where = "was deleted" if entry.action == "delete" else f"is not at {entry.target!r}"
            raise _Unfit(f"{where}, and no byte for byte copy of it is kept")
        if dry_run:
            return True
        there = stack.enter_context(reached(entry.path, trusted.base(entry, entry.path), make=True))
        if place is None:
            assert keeper is not None
            place = there.beside(os.path.basename(entry.aside))
            _copy(keeper, place, dress)
        elif keeper is not None:
            _dress_again(place, dress)
        if linked:
            place.replace(there)
        else:
            _move(place, there)
            _drop_names(there, target)
        there.sync()
    return True


def _check_back(there: Place, wanted: Input) -> None:
    """Raise if what has the name of the file is another one."""
    try:
        _verified(there, wanted)
    except _Unfit:
        raise _Unfit("another file has its name now; move it away first") from None


def _drop_names(there: Place, *places: Place | None) -> None:
    """Remove other names of a file, where something was cut short between giving one and taking one."""
    for place in places:
        if place is not None and place.exists() and _is_same(there, place):
            place.unlink()


def _is_cut(place: Place, whole: Place) -> bool:
    """Whether a file is the beginning of another, and less."""
    if not all(stat.S_ISREG(one.status().st_mode) for one in (place, whole)):
        return False
    with os.fdopen(place.open(_READ), "rb") as part, os.fdopen(whole.open(_READ), "rb") as file:
        if os.fstat(part.fileno()).st_size >= os.fstat(file.fileno()).st_size:
            return False
        while piece := part.read(1 << 20):
            if file.read(len(piece)) != piece:
                return False
    return True


def _dress_again(place: Place, dress: Dress) -> None:
    """Dress a copy that an undo was cut short at; one that is dressed stays as it is."""
    status = place.status()
    if (stat.S_IMODE(status.st_mode), status.st_mtime_ns) != (dress.mode, dress.modified):
        with os.fdopen(place.open(_READ), "rb") as file:
            _dress(file.fileno(), place.path, file.fileno(), dress)


def _is_same(one: Place, other: Place) -> bool:
    return os.path.samestat(one.status(), other.status())


def _dress_of(entry: Entry, trusted: _Trusted) -> Dress:
    """The mode, time and owner of a file as the log has them; a log by anybody else gives no rights away."""
    if trusted.own:
        return Dress(entry.mode, entry.modified, entry.owner)
    return Dress(entry.mode & 0o777, entry.modified, None)
