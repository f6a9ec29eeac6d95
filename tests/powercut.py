"""Power cuts: what a killed process wrote and never synced is taken back, wholly or in part.

A kill never loses what reached the page cache, so it cannot find a missing fsync. `powercut.c`, loaded before
libc, keeps a journal of every change below a folder; `cut` turns that folder into what a power cut may have left:

- bytes that no fsync of their file followed are gone, or some of the writes, or some sectors of a write;
- names (create, link, rename, unlink) that no fsync of their folder followed are gone from some point on: a file
  system journals them in order. Folders themselves stay.
"""

from __future__ import annotations

import os
import random
import struct
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

SOURCE = Path(__file__).with_suffix(".c")
RECORD = struct.Struct("<IB3xIIQQQQQ")
MAGIC = 0x50574331
WRITE, TRUNCATE, SYNC, SYNC_FAILED, CREATE, RENAME, UNLINK, SYNC_FOLDER, SYNC_ALL, MAPPED, LINK = range(1, 12)
SECTOR = 512
POLICIES = ("all", "random", "torn", "bytes", "names")
"""What is lost: all of it, some, some sectors of some writes, only bytes, only names."""


class Record(NamedTuple):
    type: int
    path: bytes
    other: bytes
    inode: int
    offset: int
    length: int
    old_size: int
    old: bytes


@dataclass(slots=True)
class Change:
    """A write or a cut of a file that no sync has made durable."""

    record: Record
    new: bytes = b""
    survives: bool = False
    doomed: bool = False
    """A sync of it failed: the system may drop these bytes although a later sync succeeds."""


class PowerCut:
    """The journal of the changes below *folder*, which must be on the file system of *work*."""

    def __init__(self, folder: Path, work: Path) -> None:
        self.folder = folder.resolve()
        self.work = work
        self.journal = work / "journal"
        library = work / "powercut.so"
        if not library.exists():
            command = ["cc", "-O2", "-shared", "-fPIC", "-Wno-unused-result", "-o", str(library), str(SOURCE)]
            subprocess.run([*command, "-ldl", "-lpthread"], check=True)
        self.env = {
            "LD_PRELOAD": str(library),
            "POWERCUT_DIR": str(self.folder),
            "POWERCUT_JOURNAL": str(self.journal),
        }
        """What the environment of the process needs."""

    def restart(self) -> None:
        """Forget everything: what is below the folder now is durable."""
        if self.journal.exists():
            os.truncate(self.journal, 0)
        for path in self.work.glob("journal.saved.*"):
            path.unlink()

    def cut(self, policy: str, rng: random.Random) -> int:
        """Take back what was not durable; how many changes that were."""
        bytes_of, names = pending(self.journal)
        undone = 0
        if policy != "names":
            undone += sum(
                _take_back(path, changes, policy, rng) for path, changes in self._found(bytes_of, names)
            )
        if policy != "bytes" and names:
            lost = len(names) if policy == "all" else rng.randint(0, len(names))
            for record in reversed(names[len(names) - lost :] if lost else []):
                _unname(record)
            undone += lost
        self.restart()
        return undone

    def _found(
        self, bytes_of: dict[int, list[Change]], names: list[Record]
    ) -> Iterator[tuple[str, list[Change]]]:
        """Where the files are whose bytes may be lost, also those that have lost their name since."""
        every = [os.path.join(root, name) for root, _, files in os.walk(self.folder) for name in files]
        every += [os.fsdecode(record.other.rpartition(b"\n")[2]) for record in names if record.other]
        places: dict[int, str] = {}
        for path in every:
            if path and os.path.exists(path):
                places.setdefault(os.lstat(path).st_ino, path)
        yield from ((places[inode], changes) for inode, changes in bytes_of.items() if inode in places)


def records(journal: Path) -> Iterator[Record]:
    """What was noted; the last record may be cut off by the kill."""
    data = journal.read_bytes() if journal.exists() else b""
    at = 0
    while at + RECORD.size <= len(data):
        magic, type, path, other, inode, offset, length, old_size, old = RECORD.unpack_from(data, at)
        assert magic == MAGIC, "the journal is out of step"
        one = at + RECORD.size
        two, three = one + path, one + path + other
        at = three + old
        if at > len(data):
            return
        yield Record(type, data[one:two], data[two:three], inode, offset, length, old_size, data[three:at])


def pending(journal: Path) -> tuple[dict[int, list[Change]], list[Record]]:
    """Changes of bytes by inode, and of names, that nothing has made durable."""
    bytes_of: dict[int, list[Change]] = {}
    names: list[Record] = []
    for record in records(journal):
        # What SQLite keeps in shared memory is made anew by whoever opens the database first.
        if record.path.endswith(b"-shm"):
            continue
        assert record.type != MAPPED, (
            f"a shared writable map of {record.path!r} is not seen: tell nothing by this"
        )
        changes = bytes_of.setdefault(record.inode, [])
        if record.type in (WRITE, TRUNCATE):
            changes.append(Change(record))
        elif record.type == SYNC_FAILED:
            for change in changes:
                change.doomed = not change.survives
        elif record.type == SYNC and any(change.doomed for change in changes):
            for change in changes:
                change.survives = not change.doomed
        elif record.type == SYNC:
            changes.clear()
        elif record.type == SYNC_FOLDER:
            names = [name for name in names if record.path not in _folders(name)]
        elif record.type == SYNC_ALL:
            bytes_of, names = {}, []
        else:
            if record.type == CREATE:  # the number of a file that is gone
                changes.clear()
            names.append(record)
    return {inode: changes for inode, changes in bytes_of.items() if changes}, names


def _folders(name: Record) -> set[bytes]:
    target = name.other.partition(b"\n")[0] if name.type == RENAME else name.path
    return {os.path.dirname(name.path), os.path.dirname(target)}


def _take_back(path: str, changes: list[Change], policy: str, rng: random.Random) -> int:
    """The file as it was durable, and then what reached the disk by chance."""
    undone = 0
    with open(path, "r+b", buffering=0) as file:
        handle = file.fileno()
        for change in reversed(changes):
            record = change.record
            if record.type == WRITE:
                change.new = os.pread(handle, record.length, record.offset)
                os.pwrite(handle, record.old, record.offset)
                os.ftruncate(handle, record.old_size)
            else:
                os.ftruncate(handle, record.old_size)
                os.pwrite(handle, record.old, record.offset)
        chance = 0.0 if policy in ("all", "bytes") else rng.random()
        for change in changes:
            record = change.record
            if change.survives or (not change.doomed and rng.random() < chance):
                if record.type == TRUNCATE:
                    os.ftruncate(handle, record.length)
                else:
                    os.pwrite(handle, change.new, record.offset)
                continue
            undone += 1
            if policy == "torn" and not change.doomed:
                for at in range(0, len(change.new), SECTOR):
                    if rng.random() < 0.5:
                        os.pwrite(handle, change.new[at : at + SECTOR], record.offset + at)
    return undone


def _unname(record: Record) -> None:
    """Take a change of a name back."""
    path, (target, _, kept) = record.path, record.other.partition(b"\n")
    os.makedirs(os.path.dirname(path), exist_ok=True)  # the folder may have been removed since
    if record.type in (CREATE, LINK):
        if _is(path, record.inode):
            os.unlink(path)
    elif record.type == UNLINK:
        if record.other and not os.path.lexists(path):
            os.link(record.other, path)
    elif _is(target, record.inode):
        os.rename(target, path)
        if kept:
            os.link(kept, target)


def _is(path: bytes, inode: int) -> bool:
    return os.path.lexists(path) and os.lstat(path).st_ino == inode
