"""Power cuts: what neardup has written stays whole, and what it said was done stays done.

First that the tool tells good writers from bad ones, then the three things that must not be lost: an index,
a run folder, and the files of a user. Linux only, and it needs a C compiler, which the core needs as well.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import neardup as nd
from neardup.actions import undo
from neardup.runs.folders import WORK

from .corpus import files_of
from .hamming import near_words
from .killed import Killer
from .powercut import POLICIES, PowerCut
from .rundirs import make_run
from .test_resume import arguments, make_inputs

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="changes of files are noted by a library for Linux"),
    pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler"),
]

CUTS = 6


class Machine(NamedTuple):
    """Jobs in a folder, and the switch of the power."""

    folder: Path
    killer: Killer
    power: PowerCut

    def clear(self) -> None:
        shutil.rmtree(self.folder)
        self.folder.mkdir()

    def work(self, *words: object, step: int = 0) -> int:
        """Do a job, up to a step if one is given; how many steps it made."""
        done = self.killer.run([str(word) for word in words], step=step, folder=str(self.folder))
        assert done.code in ((0, 4) if step == 0 else (-signal.SIGKILL,)), done.err
        return done.steps


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    folder, work = tmp_path_factory.mktemp("machine"), tmp_path_factory.mktemp("power")
    power = PowerCut(folder, work)
    with Killer(**power.env) as killer:
        yield Machine(folder, killer, power)


def steps_of(steps: int, rng: random.Random) -> list[int]:
    """At which steps the power goes; 0 is after the last one."""
    return [0, *sorted(rng.sample(range(1, steps + 1), min(CUTS, steps)))]


# --- the tool --------------------------------------------------------------------------------------------

WRITERS = {
    "in place": "open('file', 'w').write('new')",
    "without a sync": "f = open('temporary', 'w'); f.write('new'); f.close(); os.rename('temporary', 'file'); folder()",
    "folder not synced": "f = open('temporary', 'w'); f.write('new'); f.flush(); os.fsync(f); os.rename('temporary', 'file')",
    "whole": "f = open('temporary', 'w'); f.write('new'); f.flush(); os.fsync(f); os.rename('temporary', 'file'); folder()",
    "ours": "from neardup.files import atomic_file\nwith atomic_file('file', overwrite=True) as f: f.write(b'new')",
}
LEFT = {"in place": "old", "without a sync": "", "folder not synced": "old", "whole": "new", "ours": "new"}


@pytest.mark.parametrize("writer", WRITERS)
def test_what_no_sync_made_durable_is_taken_back(machine: Machine, writer: str) -> None:
    machine.clear()
    file = machine.folder / "file"
    file.write_text("old")
    machine.power.restart()
    folder = "import os\ndef folder(): os.fsync(os.open('.', os.O_RDONLY))\n"
    command = [sys.executable, "-c", folder + WRITERS[writer]]
    env = {**os.environ, **machine.power.env, "PYTHONPATH": str(Path(__file__).parent.parent)}
    subprocess.run(command, check=True, cwd=machine.folder, env=env)
    assert file.read_text() == "new"
    assert (machine.power.cut("all", random.Random(1)) > 0) == (LEFT[writer] != "new")
    assert file.read_text() == LEFT[writer]


# --- an index --------------------------------------------------------------------------------------------


def test_an_index_is_the_old_or_the_new_one_after_a_power_cut(machine: Machine) -> None:
    machine.clear()
    (machine.folder / "a.jsonl").write_text('{"id": "new", "text": "some words of a text"}\n')
    path = machine.folder / "index"
    index = nd.Index(128, 3, digest=nd.scheme("text").digest)
    index.add([f"row {row}" for row in range(3000)], near_words(3000, 2, 1))
    index.save(path)
    old = path.read_bytes()
    adding = ("index", "add", "index", "a.jsonl", "--scheme", "text")
    steps = machine.work(*adding)
    assert len(nd.Index.load(path)) == 3001
    rng, sizes = random.Random(1), set()
    for step in steps_of(steps, rng):
        path.write_bytes(old)
        machine.power.restart()
        machine.work(*adding, step=step)
        machine.power.cut(rng.choice(POLICIES), rng)
        sizes.add(len(nd.Index.load(path)))
        assert sizes <= {3000, 3001}
        if step == 0:
            assert sizes == {3001}, "what was said to be saved is gone"
    assert sizes == {3000, 3001}


# --- a run folder ----------------------------------------------------------------------------------------


def test_a_run_folder_after_a_power_cut_ends_with_the_same_bytes(machine: Machine) -> None:
    machine.clear()
    folder = make_inputs(machine.folder)
    steps = machine.work(*arguments(folder))
    expected = files_of(folder / "out")
    rng, undone = random.Random(2), 0
    for step in steps_of(steps, rng):
        shutil.rmtree(folder / "out")
        machine.power.restart()
        machine.work(*arguments(folder), step=step)
        undone += machine.power.cut(rng.choice(POLICIES), rng)
        found = files_of(folder / "out") if (folder / "out").exists() else {}
        whole = {name: data for name, data in found.items() if not name.startswith(".")}
        assert whole.items() <= expected.items(), f"not complete after step {step}"
        assert step > 0 or whole == expected, "what was said to be written is gone"
        machine.work(*arguments(folder))
        assert files_of(folder / "out") == expected, f"another result after step {step} of {steps}"
        assert not (folder / "out" / WORK).exists()
    assert undone > 0


# --- the files of a user ---------------------------------------------------------------------------------

TEXTS = {"a.txt": "one text\n", "b.txt": "one text\n", "c.txt": "one Text\n", "d.txt": "another\n"}
KEEPERS = {"in/a.txt": None, "in/b.txt": "in/a.txt", "in/c.txt": "in/a.txt", "in/d.txt": None}


def tree(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in (folder / "in").iterdir() if path.name in TEXTS}


@pytest.mark.parametrize(
    "action", [["--trash", "bin"], ["--hardlink"], ["--delete"]], ids=lambda words: words[0]
)
def test_undo_brings_files_back_after_a_power_cut(
    machine: Machine, action: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(machine.folder.parent)
    rng, undone = random.Random(3), 0
    applying = ("apply", "out", *action, "--log", "log.jsonl", "--yes")

    def lay_out() -> None:
        machine.clear()
        monkeypatch.chdir(machine.folder)
        Path("in").mkdir()
        for name, text in TEXTS.items():
            Path("in", name).write_text(text)
        make_run(machine.folder / "out", sorted(KEEPERS), KEEPERS)
        machine.power.restart()

    lay_out()
    steps = machine.work(*applying)
    taken = set(TEXTS) - set(tree(machine.folder))
    assert action == ["--hardlink"] or taken == {"b.txt", "c.txt"}
    for step in steps_of(steps, rng):
        lay_out()
        machine.work(*applying, step=step)
        undone += machine.power.cut(rng.choice(POLICIES), rng)
        if os.path.exists("log.jsonl") and os.path.getsize("log.jsonl"):
            undo("log.jsonl")
        found = tree(machine.folder)
        for name in set(TEXTS) - set(found):
            assert (action, name) == (["--delete"], "c.txt"), f"{name} is lost after step {step} of {steps}"
        assert found.items() <= TEXTS.items(), f"a file changed after step {step} of {steps}"
    assert undone > 0
