"""The undo log: what `actions` is about to do, on the disk before it is done (docs/formats/run.md).

A log says where files are restored to, so each line is sealed together with all before it (`seals`), and
whatever is read is checked as if a stranger had written it: the type of each cell, and that its paths
belong together. For bytes that are not a log, or not whole, `parse_log` raises before anything is done.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, NoReturn

import orjson

from neardup import __version__
from neardup.errors import DamagedFile, InvalidValue, LimitReached, Said, Setting, shown
from neardup.files import sync_folder
from neardup.places import is_below
from neardup.seals import holds, own_key, seal
from neardup.sources import id_path, path_id

ACTIONS: Final = ("trash", "hardlink", "delete")
FORMAT: Final = 2  # 1 had no seals, no roots, and no trash in its first line
_ASIDE: Final = re.compile(r"\.neardup-[0-9a-f]{16}\.aside")
_SHA256: Final = re.compile("[0-9a-f]{64}")
_BEGIN: Final = (
    *("step", "number", "path", "keeper", "aside", "target"),
    *("sha256", "keeper_sha256", "size", "modified", "mode", "owner"),
)
_KEYS: Final = {1: _BEGIN, FORMAT: (*_BEGIN, "root", "seal")}
_NUMBERED: Final = re.compile("(~[1-9][0-9]{0,8})?")


class Writer:
    """JSON Lines, each on the disk before the next thing happens, and sealed together with all before it."""

    def __init__(self, path: str | os.PathLike[str], action: str, trash: str | None) -> None:
        self._path = os.path.abspath(path)
        self._key, self._last = own_key(make=True), b""
        try:
            handle = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o644)
        except FileExistsError:
            raise InvalidValue(
                Said(f"log {self._path!r} exists; choose another name with ", Setting("log"))
            ) from None
        except OSError as error:
            raise LimitReached(f"cannot write the log {self._path!r}: {error.strerror}") from None
        self._file = os.fdopen(handle, "wb")
        try:
            place = None if trash is None else path_id(trash)
            self.write(log=FORMAT, neardup=__version__, action=action, trash=place)
            sync_folder(os.path.dirname(self._path))
        except BaseException:
            self._file.close()
            raise

    def write(self, **cells: Any) -> None:
        made = seal(self._key, b"log", self._last, orjson.dumps(cells))
        self._last = (made or "").encode()
        self._file.write(orjson.dumps({**cells, "seal": made}, option=orjson.OPT_APPEND_NEWLINE))
        self._file.flush()
        os.fsync(self._file.fileno())

    def __enter__(self) -> Writer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()


@dataclass(frozen=True, slots=True)
class Entry:
    """A file whose removal began, and was not undone at once, according to a log. Paths are absolute."""

    action: str
    number: int
    path: str
    keeper: str
    aside: str
    target: str | None
    sha256: str
    keeper_sha256: str
    size: int
    modified: int
    mode: int
    owner: tuple[int, int]
    root: str | None
    """The folder from which no link is followed; a log of format 1 does not say."""
    trash: str | None

    @property
    def paths(self) -> tuple[str, ...]:
        """All that is read or made to bring the file back."""
        return (self.path, self.aside, self.keeper, *(() if self.target is None else (self.target,)))


@dataclass(frozen=True, slots=True)
class Log:
    """An undo log: what may be restored, and its lines with the seal of each."""

    action: str
    entries: tuple[Entry, ...]
    lines: tuple[tuple[bytes, Any], ...]

    def is_own(self, key: bytes | None) -> bool:
        """Whether every line is sealed with *key*, after the lines before it."""
        last = b""
        for line, found in self.lines:
            if not holds(key, found, b"log", last, line):
                return False
            last = str(found).encode()
        return True


def parse_log(data: bytes) -> Log:
    """The undo log in some bytes. InvalidValue if it is not one, DamagedFile if a line is not as written.

    The last line may be incomplete, as a power cut leaves it: what it says had not begun.
    """
    *lines, last = data.split(b"\n")
    rows = [_row(line, number) for number, line in enumerate(lines, 1)]
    with suppress(DamagedFile):
        rows.append(_row(last, len(rows) + 1))
    head = rows[0] if rows else {}
    version, action = head.get("log"), head.get("action")
    if type(version) is not int or version not in (1, FORMAT) or action not in ACTIONS:
        raise InvalidValue("it is not an undo log of this neardup")
    assert isinstance(action, str)
    first, trash = _Cells(head, 1), None
    first.check("log", "neardup", "action", *(() if version == 1 else ("trash", "seal")))
    if version == FORMAT:
        trash = first.path_or_none("trash", wanted=action == "trash")
    begun: dict[int, Entry] = {}
    ended: set[int] = set()
    for at, row in enumerate(rows[1:], 2):
        cells = _Cells(row, at)
        cells.check(*_KEYS[version])
        step, number = row.get("step"), cells.count("number")
        if step == "begin":
            if number in begun or number in ended:
                cells.fail(f"{number} begins a second time")
            begun[number] = cells.entry(number, action, version, trash)
        elif step in ("done", "left"):
            if number not in begun or number in ended:
                cells.fail(f"{number} ends and did not begin")
            ended.add(number)
            if step == "left":
                cells.path("path")
                del begun[number]
        else:
            cells.fail("'step' is none that is known")
    told = (({name: row[name] for name in row if name != "seal"}, row.get("seal")) for row in rows)
    return Log(action, tuple(begun.values()), tuple((orjson.dumps(cells), found) for cells, found in told))


def _row(line: bytes, number: int) -> dict[str, Any]:
    try:
        found = orjson.loads(line)
    except orjson.JSONDecodeError:
        raise DamagedFile(f"line {number} is not JSON") from None
    if not isinstance(found, dict):
        raise DamagedFile(f"line {number} is not an object")
    return found


class _Cells:
    """A line of a log: its cells, each of the type that it must have."""

    def __init__(self, row: dict[str, Any], line: int) -> None:
        self._row, self._line = row, line

    def fail(self, reason: str) -> NoReturn:
        raise DamagedFile(f"line {self._line}: {reason}")

    def check(self, *known: str) -> None:
        """Raise if there is a cell of another name, or one that is more than a text, a number or a few."""
        for name, value in self._row.items():
            few = value if type(value) is list else [value]
            if name not in known or not all(one is None or type(one) in (str, int) for one in few):
                self.fail(f"{shown(name)} does not belong there")

    def _typed(self, name: str, kind: type) -> Any:
        value = self._row.get(name)
        if type(value) is not kind:
            self.fail(f"{name!r} is missing, or is not what it should be")
        return value

    def count(self, name: str, low: int = 0, high: int = 2**63 - 1) -> int:
        value: int = self._typed(name, int)
        if not low <= value <= high:
            self.fail(f"{name!r} is out of range")
        return value

    def digest(self, name: str) -> str:
        value: str = self._typed(name, str)
        if not _SHA256.fullmatch(value):
            self.fail(f"{name!r} is not a SHA-256")
        return value

    def path(self, name: str) -> str:
        """An absolute path that goes up nowhere."""
        path = id_path(self._typed(name, str))
        try:
            os.fsencode(path)
        except UnicodeError:
            self.fail(f"{name!r} cannot be the name of a file")
        if not os.path.isabs(path) or os.path.normpath(path) != path or "\0" in path:
            self.fail(f"{name!r} is not a whole path")
        return path

    def path_or_none(self, name: str, *, wanted: bool) -> str | None:
        if wanted:
            return self.path(name)
        if self._row.get(name) is not None:
            self.fail(f"{name!r} does not belong to this action")
        return None

    def entry(self, number: int, action: str, version: int, trash: str | None) -> Entry:
        path, keeper, aside = (self.path(name) for name in ("path", "keeper", "aside"))
        target = None
        if version == FORMAT or action == "trash":  # others of format 1 may name one that was never used
            target = self.path_or_none("target", wanted=action == "trash")
        root = self.path("root") if version == FORMAT else None
        if root is not None and (path == root or not is_below(path, root)):
            self.fail("'path' is not below 'root'")
        if os.path.dirname(aside) != os.path.dirname(path) or not _ASIDE.fullmatch(os.path.basename(aside)):
            self.fail("'aside' is not a name beside 'path'")
        if path == keeper:
            self.fail("'path' is its own keeper")
        if target is not None:
            trash = self._trash(target, path, trash)
        owner = self._typed("owner", list)
        if len(owner) != 2 or not all(type(one) is int and 0 <= one < 2**32 for one in owner):
            self.fail("'owner' is not two numbers")
        return Entry(
            action=action,
            number=number,
            path=path,
            keeper=keeper,
            aside=aside,
            target=target,
            sha256=self.digest("sha256"),
            keeper_sha256=self.digest("keeper_sha256"),
            size=self.count("size"),
            modified=self.count("modified", -(2**63)),
            mode=self.count("mode", 0, 0o7777),
            owner=(owner[0], owner[1]),
            root=root,
            trash=trash,
        )

    def _trash(self, target: str, path: str, trash: str | None) -> str:
        """The trash that holds *target*, where *path* goes in it."""
        end = os.sep + inside(path)
        if trash is None:
            trash = target[: target.rfind(end)] if end in target else ""
        first = os.path.join(trash, inside(path))
        if not trash or not target.startswith(first) or not _NUMBERED.fullmatch(target[len(first) :]):
            self.fail("'target' is not the place of 'path' in the trash")
        return trash


def inside(path: str) -> str:
    """A whole path as it is below the trash."""
    return os.path.splitdrive(path)[1].lstrip("/\\")
