"""Collections that are killed, or whose machine loses power, at any write or sync; and what must be left.

A round is a process of its own with four threads, each of which adds, updates, removes, touches, judges and,
the first one, expires, refits, rebuilds and makes backups. Each says what it has done after the call returned.
What is found afterwards must be what was said, or that and the one call that each thread was in, whole.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from types import TracebackType
from typing import Any

from .articles import article
from .powercut import POLICIES, PowerCut

# Small, so that a small collection has index files, parts and sweeps of several transactions.
CONSTANTS = (
    ("neardup.collections.live", "MANY", 20),
    ("neardup.collections.generations", "STEP", 16),
    ("neardup.collections.collection", "SWEPT", 3),
    ("neardup.store.sqlite", "LOG_BYTES", 200_000),
    ("neardup.store.stores", "SMALL", 0),
)
THREADS = 4
START = 1_700_000_000
FOLDER, COPY, RESTORED = "a.nd", "copy.nd", "restored.nd"
Model = dict[str, Any]
# Of each thread: families of near-duplicates.
TEXTS = [
    [article(100 * thread + family, edition, words=30) for family in range(25) for edition in range(3)]
    for thread in range(THREADS)
]
OWNER = {
    hashlib.sha256(b"text\0" + text.encode()).hexdigest(): thread
    for thread, texts in enumerate(TEXTS)
    for text in texts
}


# --- what a thread does, and what must come of it ---------------------------------------------------------


def empty() -> Model:
    """What a thread has before it did anything: documents, verdicts, and its second bank."""
    return {"documents": {}, "verdicts": {}, "bank": None}


def applied(model: Model, call: Mapping[str, Any]) -> Model:
    """The model after a call."""
    documents, verdicts = dict(model["documents"]), dict(model["verdicts"])
    bank, now = model["bank"], call["now"]
    what = call["call"]
    if what == "add":
        for one in call["documents"]:
            fields = {"n": one["n"]}
            old = documents.get(one["id"])
            expires = None if call["expires_after"] is None else now + call["expires_after"]
            alive = old is not None and (old[2] is None or old[2] > now)
            if alive and old is not None and old[0] == one["text"] and expires is None:
                expires = old[2]
            documents[one["id"]] = [one["text"], fields, expires]
    elif what == "update":
        text, fields, expires = documents[call["id"]]
        documents[call["id"]] = [text, {**fields, **call["fields"]}, expires]
    elif what == "remove":
        documents = {name: row for name, row in documents.items() if name not in call["ids"]}
    elif what == "touch":
        for name in call["ids"]:
            documents[name] = [*documents[name][:2], now + call["expires_after"]]
    elif what == "expire":
        documents = {name: row for name, row in documents.items() if row[2] is None or row[2] > now}
    elif what == "verdict":
        verdicts[pair_of(*(documents[name][0] for name in call["ids"]))] = call["verdict"]
    elif what == "bank":
        bank = call["expires_after"]
    return {"documents": documents, "verdicts": verdicts, "bank": bank}


def pair_of(one: str, other: str) -> str:
    """A name for two contents, whichever is first."""
    return " ".join(sorted(hashlib.sha256(b"text\0" + text.encode()).hexdigest() for text in (one, other)))


def plan(thread: int, model: Model, calls: int, now: int, rng: random.Random) -> list[dict[str, Any]]:
    """Calls that a thread makes one after the other."""
    made: list[dict[str, Any]] = []
    while len(made) < calls:
        alive = sorted(
            name for name, row in model["documents"].items() if row[2] is None or row[2] > now + 10
        )
        kinds = ["add"] * 5 + ["update", "remove", "verdict", "bank"]
        # Only one thread has a clock, so only its documents may expire.
        kinds += ["touch", "expire", "refit", "backup", "rebuild"] if thread == 0 else []
        what = rng.choice(kinds) if len(alive) > 3 else "add"
        call: dict[str, Any] = {"call": what, "now": now}
        if what == "add":
            count = rng.choice([1, 1, 2, 6, 30 if len(alive) < 20 else 3])
            names = rng.sample(range(80), count)
            call["documents"] = [
                {"id": f"{thread}-{name}", "text": rng.choice(TEXTS[thread]), "n": rng.randrange(1000)}
                for name in names
            ]
            call["expires_after"] = rng.choice([None, 50, 1_000_000]) if thread == 0 else None
            call["near"] = rng.choice(["tell", "none"])
        elif what == "update":
            call |= {"id": rng.choice(alive), "fields": {"m": rng.randrange(1000)}}
        elif what == "remove":
            call["ids"] = rng.sample(alive, rng.randint(1, 3))
        elif what == "touch":
            call |= {"ids": rng.sample(alive, 2), "expires_after": 2_000_000}
        elif what == "verdict":
            one, other = rng.sample(alive, 2)
            if model["documents"][one][0] == model["documents"][other][0]:
                continue
            call |= {"ids": [one, other], "verdict": rng.choice(["same", "different", "unsure"])}
        elif what == "bank":
            call["expires_after"] = rng.randint(1, 1000)
        elif what == "expire":
            now += 100
            call["now"] = now
        made.append(call)
        model = applied(model, call)
    return made


# --- one round after the other ----------------------------------------------------------------------------


@dataclass(slots=True)
class Tally:
    """What was done in all."""

    rounds: int = 0
    kills: int = 0
    cuts: int = 0
    undone: int = 0
    """Cuts that took something back."""
    acknowledged: int = 0
    unfinished: int = 0
    """Calls that were not acknowledged and had happened nevertheless: whole."""
    faults: list[str] = field(default_factory=list)


class Crasher:
    """Does rounds in a folder, crash by crash."""

    def __init__(self, folder: Path, work: Path, *, seed: int = 1) -> None:
        """Crashes in *folder*, with *work* beside it for what the machine remembers."""
        self.folder, self.rng, self.tally = folder, random.Random(seed), Tally()
        self._power = PowerCut(folder, work)
        self._server = subprocess.Popen(
            [sys.executable, "-m", "tests.crashing"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parent.parent,
            env={**os.environ, **self._power.env},
        )  # fmt: skip
        self._models = [empty() for _ in range(THREADS)]
        self._now, self._most = START, 1500
        self._there = False

    def __enter__(self) -> Crasher:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.communicate(timeout=60)

    def life(self, rounds: int, *, cuts: bool) -> None:
        """A new collection, made and used until it has crashed *rounds* times."""
        shutil.rmtree(self.folder)
        self.folder.mkdir()
        self._power.restart()
        self._models, self._now, self._there = [empty() for _ in range(THREADS)], START, False
        for number in range(rounds):
            # The first rounds of most lives end while the collection is made.
            most = 150 if number < 2 and self.rng.random() < 0.7 else round(self._most * 1.1)
            if not self.round(most, cuts=cuts):
                return

    def round(self, most: int, *, cuts: bool) -> bool:
        """Work, crash within *most* writes and syncs, look; whether all is as it must be."""
        rng, tally = self.rng, self.tally
        calls = [plan(thread, self._models[thread], 6, self._now, rng) for thread in range(THREADS)]
        for name in (COPY, RESTORED):
            shutil.rmtree(self.folder / name, ignore_errors=True)
        self._power.restart()
        done = self._ask(do="work", calls=calls, now=self._now, end=rng.randint(1, most), create=True)
        if done["code"] == 0:
            self._most = (self._most + done["made"]) // 2
        acknowledged = [done["said"].get(str(thread), 0) for thread in range(THREADS)]
        self._there |= "-1" in done["said"]
        tally.rounds += 1
        tally.acknowledged += sum(acknowledged)
        faults = self._ended(done, "at work")
        self._cut(cuts)
        # The process that puts things right may be the next to go.
        while rng.random() < 0.25:
            faults += self._ended(
                self._ask(do="open", now=self._now, end=rng.randint(1, 60), create=False), "recovering"
            )
            self._cut(cuts)
        self._now = max([self._now, *(call["now"] for own in calls for call in own)])
        faults += self._compare(calls, acknowledged)
        tally.faults += [f"round {tally.rounds}: {fault}" for fault in faults]
        return not faults

    def _ended(self, done: Mapping[str, Any], when: str) -> list[str]:
        self.tally.kills += done["code"] == -9
        return [f"{when}: {done['err']}"] if done["code"] not in (0, -9) else []

    def _cut(self, cuts: bool) -> None:
        if cuts:
            self.tally.cuts += 1
            self.tally.undone += self._power.cut(self.rng.choice(POLICIES), self.rng) > 0
        self._power.restart()

    def _compare(self, calls: list[list[dict[str, Any]]], acknowledged: list[int]) -> list[str]:
        first = self._ask(do="look", now=self._now, read_only=True) if self.rng.random() < 0.4 else None
        seen = self._ask(do="look", now=self._now, read_only=False)
        for one in (first, seen):
            if one is not None and one["code"] != 0:
                if not self._there and "is not a collection" in one["err"]:
                    return []  # nobody was told that there is one
                if not self._there and one is first and "is being made" in one["err"]:
                    first = None
                    continue
                return [f"refused: {one['err']}"]
        self._there = True
        found = seen["found"]
        if first is not None and first["found"]["rows"] != found["rows"]:
            return ["a reader saw something else before the next writer came"]
        faults: list[str] = list(found["faults"])
        for thread in range(THREADS):
            after = [self._models[thread]]
            for call in calls[thread]:
                after.append(applied(after[-1], call))
            is_there = found["rows"][thread]
            at = acknowledged[thread]
            # A call that sweeps is several transactions, each of them whole.
            partly = at < len(calls[thread]) and calls[thread][at]["call"] == "expire"
            if is_there == after[at]:
                self._models[thread] = after[at]
            elif at + 1 < len(after) and is_there == after[at + 1]:
                self._models[thread] = after[at + 1]
                self.tally.unfinished += 1
            elif partly and _between(after[at + 1], is_there, after[at]):
                self._models[thread] = is_there
            else:
                faults.append(f"thread {thread}: {_difference(after[at], is_there)} after {at} calls")
            made = [call for call in calls[thread][:at] if call["call"] == "backup"]
            again = at < len(calls[thread]) and calls[thread][at]["call"] == "backup"
            if made and not again and found["copy"] is None:
                faults.append("a backup that was made is not there")
        return faults

    def _ask(self, **question: Any) -> dict[str, Any]:
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.write(json.dumps({**question, "folder": str(self.folder)}) + "\n")
        self._server.stdin.flush()
        answer = self._server.stdout.readline()
        assert answer, f"the server ended with {self._server.wait()}"
        found: dict[str, Any] = json.loads(answer)
        return found


def _between(least: Model, found: Model, most: Model) -> bool:
    kept = found["documents"].items()
    return (
        least["documents"].items() <= kept <= most["documents"].items()
        and found["verdicts"] == most["verdicts"]
        and found["bank"] == most["bank"]
    )


def _difference(expected: Model, found: Model) -> str:
    for part in ("documents", "verdicts"):
        for name in sorted(set(expected[part]) | set(found[part])):
            one, other = expected[part].get(name), found[part].get(name)
            if one != other:
                return f"{part} {name:.20}: {str(one)[-60:]} became {str(other)[-60:]}"
    return f"bank: {expected['bank']} became {found['bank']}"


# --- the process that crashes -----------------------------------------------------------------------------


def _serve() -> None:
    from importlib import import_module

    for module, constant, value in CONSTANTS:
        assert hasattr(import_module(module), constant), f"{module} has no {constant}"
        setattr(import_module(module), constant, value)
    for module in ("neardup.collections", "neardup.schemes.fitting", "pyarrow.parquet", "zlib"):
        import_module(module)
    for line in sys.stdin:
        question = json.loads(line)
        with tempfile.TemporaryFile() as told, tempfile.TemporaryFile() as said:
            child = os.fork()
            if child == 0:
                os.dup2(told.fileno(), 2)
                os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
                os._exit(_child(question, said.fileno()))
            _, status = os.waitpid(child, 0)
            told.seek(0)
            said.seek(0)
            answer: dict[str, Any] = {"code": os.waitstatus_to_exitcode(status), "said": {}}
            for each in said.read().decode().splitlines():
                name, _, rest = each.partition(" ")
                if name in ("found", "made"):
                    answer[name] = json.loads(rest)
                else:
                    answer["said"][name] = int(rest)
            answer["err"] = told.read().decode()[-2000:]
        print(json.dumps(answer), flush=True)


def _child(question: dict[str, Any], said: int) -> int:
    tool = ctypes.CDLL(None)
    tool.powercut_end.argtypes, tool.powercut_made.restype = [ctypes.c_long], ctypes.c_long
    tool.powercut_end(question.get("end", 0))
    os.chdir(question["folder"])
    try:
        {"work": _work, "open": _open, "look": _look}[question["do"]](question, said)
    except BaseException as error:
        import traceback

        message = f"{type(error).__name__}: {error}"
        if not hasattr(error, "reason") and type(error).__module__ != "neardup.errors":
            message = traceback.format_exc()
        os.write(2, message.encode())
        return 3
    os.write(said, f"made {tool.powercut_made()}\n".encode())
    return 0


def _open(question: dict[str, Any], said: int) -> None:
    from neardup.collections import Collection
    from neardup.store import is_store

    if is_store(FOLDER):
        Collection.open(FOLDER, clock=lambda: question["now"]).close()


def _work(question: dict[str, Any], said: int) -> None:
    from neardup.collections import Collection

    clock = [question["now"]]
    opened = Collection.open(FOLDER, create=True, clock=lambda: clock[0])
    os.write(said, b"-1 0\n")
    faults: list[BaseException] = []

    def work(thread: int) -> None:
        try:
            for number, call in enumerate(question["calls"][thread], 1):
                if call["now"] > clock[0]:
                    clock[0] = call["now"]
                _call(opened, thread, call)
                os.write(said, f"{thread} {number}\n".encode())
        except BaseException as fault:
            faults.append(fault)

    threads = [Thread(target=work, args=(thread,)) for thread in range(THREADS)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    if faults:
        raise faults[0]
    opened.close()


def _call(opened: Any, thread: int, call: dict[str, Any]) -> None:
    what, own = call["call"], f"w{thread}"
    if what == "add":
        answers = opened.add(
            call["documents"], bank=own, near=call["near"], expires_after=call["expires_after"]
        )
        assert all(one.stored for one in answers), answers
    elif what == "update":
        opened.update(call["id"], fields=call["fields"])
    elif what == "remove":
        assert opened.remove(call["ids"]) == len(call["ids"])
    elif what == "touch":
        assert opened.touch(call["ids"], expires_after=call["expires_after"]) == len(call["ids"])
    elif what == "verdict":
        opened.verdict(*call["ids"], call["verdict"])
    elif what == "bank":
        opened.bank(f"aside{thread}", expires_after=call["expires_after"])
    elif what == "backup":
        from neardup.collections.copies import restore

        for name in (COPY, RESTORED):
            shutil.rmtree(name, ignore_errors=True)
        opened.backup(COPY)
        restore(COPY, RESTORED)
    else:
        getattr(opened, what)()


def _look(question: dict[str, Any], said: int) -> None:
    from neardup.collections import Collection
    from neardup.store import CONTENTS, is_store

    with Collection.open(FOLDER, read_only=question["read_only"], clock=lambda: question["now"]) as opened:
        faults = [f"check: {one}" for one in opened.check()]
        store = opened._store
        rows = _rows(opened)
        contents = {row.number: row for row in store.scan(CONTENTS)}
        for row in contents.values():
            keeper = contents.get(row.keeper)
            if keeper is None or keeper.keeper != keeper.number or keeper.cluster != row.cluster:
                faults.append(f"content {row.number} is in a cluster that nothing keeps")
        if sum(1 for _ in opened.changes()) != store.state.change:
            faults.append("the log has another length than the last change says")
        for thread in range(THREADS):
            for name, row in list(rows[thread]["documents"].items())[:2]:
                if row[2] is not None and row[2] <= question["now"]:
                    continue
                hits = opened.search(text=row[0], banks=[f"w{thread}"], limit=1000)
                if name not in [hit.id for hit in hits]:
                    faults.append(f"document {name} is stored and not found")
    copies = {}
    for name in (COPY, RESTORED):
        if is_store(name):
            with Collection.open(name, read_only=True, clock=lambda: question["now"]) as opened:
                faults += [f"{name}: {one}" for one in opened.check()]
                copies[name] = _rows(opened)
    if len(copies) == 2 and copies[COPY] != copies[RESTORED]:
        faults.append("what was restored is not what was in the backup")
    found = {"rows": rows, "faults": faults, "copy": copies.get(COPY)}
    os.write(said, f"found {json.dumps(found)}\n".encode())


def _rows(opened: Any) -> list[Model]:
    """What there is of each thread, as its model has it."""
    from neardup.store import BANKS, CONTENTS, DOCUMENTS, VERDICTS

    store, found = opened._store, [empty() for _ in range(THREADS)]
    contents = {row.number: row for row in store.scan(CONTENTS)}
    for row in store.scan(DOCUMENTS):
        content = contents[row.content]
        text = opened._shelf.data(content).decode()
        thread = int(row.bank.removeprefix("w"))
        found[thread]["documents"][row.id] = [text, json.loads(row.fields), row.expires]
    for row in store.scan_all(BANKS):
        if row.name.startswith("aside"):
            found[int(row.name.removeprefix("aside"))]["bank"] = row.expires_after
    for row in store.scan_all(VERDICTS):
        pair = " ".join(sorted((row.low.hex(), row.high.hex())))
        found[OWNER[row.low.hex()]]["verdicts"][pair] = row.verdict
    return found


if __name__ == "__main__":
    _serve()
