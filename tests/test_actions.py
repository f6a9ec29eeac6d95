"""Files removed and brought back, with everything changing underneath.

`python -m tests.test_actions 10000` runs that many trials instead of the few of the test, and so does
NEARDUP_TRIALS=10000 for the test itself.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from PIL import Image, ImageOps

from neardup import actions
from neardup.actions import plan_removals, remove, undo
from neardup.adapters.cli import run as cli
from neardup.errors import DamagedFile, InvalidValue, RefusedInput
from neardup.runs import Run
from neardup.undologs import Writer

from .killed import Killer
from .rundirs import make_run

ACTIONS = ["trash", "hardlink", "delete"]
TRIALS = int(os.environ.get("NEARDUP_TRIALS", "300"))


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """in/a.txt stays; in/b.txt is the same, in/c.txt nearly the same; in/d.txt is another."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").mkdir()
    for name, text in {"a": "one text\n", "b": "one text\n", "c": "one Text\n", "d": "another\n"}.items():
        (tmp_path / "in" / f"{name}.txt").write_text(text)
    (tmp_path / "in/b.txt").chmod(0o640)
    os.utime(tmp_path / "in/b.txt", (1_600_000_000, 1_600_000_000))
    names = [f"in/{name}.txt" for name in "abcd"]
    make_run(
        tmp_path / "out",
        names,
        {"in/a.txt": None, "in/b.txt": "in/a.txt", "in/c.txt": "in/a.txt", "in/d.txt": None},
    )
    return tmp_path


def tree(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in sorted((folder / "in").iterdir())}


def test_without_yes_nothing_is_touched(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = tree(files)
    assert cli(["apply", "out", "--delete"]) == 0
    assert "dry run: 2 files" in capsys.readouterr().out
    assert tree(files) == before
    assert not list((files / "out").glob("undo*"))


def test_delete_says_how_many_files_cannot_come_back(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli(["apply", "out", "--delete", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["restorable"], facts["lost"]) == (1, 1)
    assert cli(["apply", "out", "--delete"]) == 0
    assert "bring back 1 of them; 1 would be gone for good" in capsys.readouterr().out
    assert cli(["apply", "out", "--delete", "--yes", "--log", "log.jsonl"]) == 0
    said = capsys.readouterr().out
    assert "to bring 1 of them back: neardup undo log.jsonl\n1 cannot be brought back" in said
    outcome = undo("log.jsonl")
    assert (len(outcome.done), len(outcome.left)) == (1, 1)  # as was said


def test_where_nothing_can_come_back_undo_is_not_offered(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (files / "in/b.txt").write_text("changed since")
    assert cli(["apply", "out", "--delete", "--yes"]) == 3
    said = capsys.readouterr().out
    assert "1 cannot be brought back" in said
    assert "neardup undo" not in said


def test_all_that_goes_to_the_trash_can_come_back(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli(["apply", "out", "--trash", "bin"]) == 0
    assert "gone for good" not in capsys.readouterr().out
    assert cli(["apply", "out", "--trash", "bin", "--yes"]) == 0
    said = capsys.readouterr().out
    assert "to bring them back: neardup undo" in said
    assert "cannot" not in said


@pytest.mark.parametrize("action", ACTIONS)
def test_duplicates_go_and_come_back(files: Path, action: str) -> None:
    before = tree(files)
    status = (files / "in/b.txt").stat()
    flag = ["--trash", "bin"] if action == "trash" else [f"--{action}"]
    assert cli(["apply", "out", *flag, "--yes", "--log", "log.jsonl"]) == 0
    if action == "hardlink":  # only what is the same byte for byte
        assert (files / "in/b.txt").samefile(files / "in/a.txt")
        assert tree(files) == before
    else:
        assert tree(files) == {"a.txt": "one text\n", "d.txt": "another\n"}
    outcome = undo("log.jsonl")
    after = (files / "in/b.txt").stat()
    if action == "delete":
        assert [left.path for left in outcome.left] == [str(files / "in/c.txt")]
        assert "deleted" in outcome.left[0].reason
        del before["c.txt"]
    assert tree(files) == before
    assert not (files / "in/b.txt").samefile(files / "in/a.txt")
    assert (after.st_mode, after.st_mtime_ns) == (status.st_mode, status.st_mtime_ns)
    again = undo("log.jsonl")
    assert again.done == []
    assert tree(files) == before


def test_trash_takes_two_files_of_one_name(files: Path) -> None:
    assert cli(["apply", "out", "--trash", "bin", "--yes"]) == 0
    (files / "in/b.txt").write_text("one text\n")
    make_run(files / "out2", ["in/a.txt", "in/b.txt"], {"in/a.txt": None, "in/b.txt": "in/a.txt"})
    assert cli(["apply", "out2", "--trash", "bin", "--yes"]) == 0
    assert sorted(path.name for path in (files / "bin").rglob("b.txt*")) == ["b.txt", "b.txt~1"]


def test_undo_replaces_nothing(files: Path) -> None:
    assert cli(["apply", "out", "--trash", "bin", "--yes", "--log", "log.jsonl"]) == 0
    (files / "in/b.txt").write_text("something new")
    outcome = undo("log.jsonl")
    assert [left.path for left in outcome.left] == [str(files / "in/b.txt")]
    assert (files / "in/b.txt").read_text() == "something new"
    assert (files / "in/c.txt").read_text() == "one Text\n"
    assert cli(["undo", "log.jsonl"]) == 5


def test_undo_in_a_dry_run_touches_nothing(files: Path) -> None:
    assert cli(["apply", "out", "--trash", "bin", "--yes", "--log", "log.jsonl"]) == 0
    gone = tree(files)
    assert cli(["undo", "log.jsonl", "--dry-run"]) == 0
    assert tree(files) == gone


def test_where_everything_is_left_nothing_is_said_to_be_brought_back(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (files / "in/a.txt").write_text("changed\n")
    assert cli(["apply", "out", "--delete", "--yes"]) == 3
    said = capsys.readouterr().out
    assert said == "nothing was done: 2 files left as they are\n"


def left_of(folder: str, action: str = "delete") -> dict[str, str]:
    plan = plan_removals(Run(folder), action)
    return {left.path: left.reason for left in remove(plan, f"{folder}/log.jsonl").left}


def test_the_last_copy_stays(files: Path) -> None:
    names = ["in/a.txt", "in/b.txt"]
    make_run(files / "ring", names, {"in/a.txt": "in/b.txt", "in/b.txt": "in/a.txt"})
    assert set(left_of("ring").values()) == {"is the last copy: its keeper would go, too"}
    (files / "in/a.txt").unlink()
    assert "its keeper cannot be read" in left_of("out")["in/b.txt"]
    assert (files / "in/b.txt").exists()


def test_what_was_not_verified_stays(files: Path) -> None:
    make_run(
        files / "weak",
        ["in/a.txt", "in/b.txt"],
        {"in/a.txt": None, "in/b.txt": "in/a.txt"},
        unproved=("in/b.txt",),
    )
    assert left_of("weak") == {"in/b.txt": "was not verified against its keeper"}


def test_a_protected_file_is_a_keeper_and_never_goes(files: Path) -> None:
    make_run(
        files / "new",
        ["in/b.txt"],
        {"in/a.txt": None, "in/b.txt": "protected:in/a.txt"},
        protected=("in/a.txt",),
    )
    assert left_of("new") == {}
    assert sorted(tree(files)) == ["a.txt", "c.txt", "d.txt"]
    make_run(files / "old", ["in/c.txt"], {"in/a.txt": "in/c.txt", "in/c.txt": None}, protected=("in/a.txt",))
    assert left_of("old") == {"in/a.txt": "is not a file that the run read"}


def test_a_run_that_verified_nothing_removes_nothing(files: Path) -> None:
    make_run(
        files / "bare", ["in/a.txt", "in/b.txt"], {"in/a.txt": None, "in/b.txt": "in/a.txt"}, verify="none"
    )
    with pytest.raises(RefusedInput, match="verified nothing"):
        plan_removals(Run("bare"), "delete")


def test_a_file_outside_the_inputs_stays(files: Path) -> None:
    make_run(
        files / "wide", ["in/a.txt"], {"in/a.txt": None, "in/b.txt": "in/a.txt", "/etc/passwd": "in/a.txt"}
    )
    assert set(left_of("wide").values()) == {"is not a file that the run read"}


def test_ids_inside_a_file_never_name_files(files: Path) -> None:
    lines = [{"id": "in/a.txt", "text": "x"}, {"id": "docs.jsonl", "text": "x"}]
    Path("docs.jsonl").write_text("\n".join(map(json.dumps, lines)))
    make_run(files / "mixed", ["docs.jsonl", "in/a.txt"], {"in/a.txt": None, "docs.jsonl": "in/a.txt"})
    with pytest.raises(RefusedInput, match="holds many documents"):
        plan_removals(Run("mixed"), "delete")
    assert cli(["apply", "mixed", "--delete", "--yes"]) == 4


def test_a_damaged_run_moves_nothing(files: Path) -> None:
    with (files / "out/evidence.parquet").open("ab") as file:
        file.write(b"x")
    with pytest.raises(DamagedFile):
        plan_removals(Run("out"), "delete")


def test_links_and_other_names_of_the_keeper_stay(files: Path) -> None:
    (files / "in/b.txt").unlink()
    (files / "in/b.txt").symlink_to("a.txt")
    (files / "in/c.txt").unlink()
    (files / "in/c.txt").hardlink_to(files / "in/a.txt")
    make_run(files / "linked", ["in/a.txt", "in/c.txt"], {"in/a.txt": None, "in/c.txt": "in/a.txt"})
    assert left_of("out")["in/b.txt"] == "is a symbolic link"
    assert left_of("linked")["in/c.txt"] == "is the same file as its keeper under another name"


def test_names_of_any_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names = ["a.txt", os.fsdecode(b"\xff\xfe\n'\"$(x).txt"), "\x1b[31mred.txt", "-rf", "file:x%41"]
    for name in names:
        Path(name).write_text("the same")
    from neardup.sources import path_id

    make_run(tmp_path / "out", names, {path_id(name): None if name == "a.txt" else "a.txt" for name in names})
    assert cli(["apply", "out", "--trash", "bin", "--yes", "--log", "log.jsonl"]) == 0
    assert [name for name in names if os.path.lexists(name)] == ["a.txt"]
    assert undo("log.jsonl").left == []
    assert all(Path(name).read_text() == "the same" for name in names)


def test_an_existing_log_is_not_overwritten(files: Path) -> None:
    Path("log.jsonl").write_text("mine")
    with pytest.raises(InvalidValue, match="exists"):
        remove(plan_removals(Run("out"), "delete"), "log.jsonl")
    Path("log.jsonl").write_text("{}\n")
    with pytest.raises(InvalidValue, match="not an undo log"):
        undo("log.jsonl")


class Cut(BaseException):
    """The power went."""


class Power:
    """It lasts for this many calls."""

    def __init__(self, calls: int) -> None:
        self.calls = calls

    def counted(self, real: Callable[..., object]) -> Callable[..., object]:
        def call(*given: object, **named: object) -> object:
            self.calls -= 1
            return self.needed(real)(*given, **named)

        return call

    def needed(self, real: Callable[..., object]) -> Callable[..., object]:
        def call(*given: object, **named: object) -> object:
            if self.calls < 0:
                raise Cut
            return real(*given, **named)

        return call


@pytest.mark.parametrize("action", ACTIONS)
def test_undo_repairs_what_a_power_cut_left(
    files: Path, action: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The program dies after each system call that changes something, without any clean-up."""
    before = tree(files)
    monkeypatch.setattr(actions, "_put_back", lambda aside, path: path)  # the dead clean up nothing
    ended = False
    for limit in range(60):
        power = Power(limit)
        log = f"log{limit}.jsonl"
        with monkeypatch.context() as patch:
            for name in ("rename", "unlink", "link", "fsync"):
                patch.setattr(os, name, power.counted(getattr(os, name)))
            patch.setattr(Writer, "write", power.needed(Writer.write))
            try:
                remove(plan_removals(Run("out"), action, trash="bin" if action == "trash" else None), log)
            except Cut:
                ended = False
            else:
                ended = True
        if os.path.exists(log) and os.path.getsize(log):
            outcome = undo(log)
            expected = (
                [str(files / "in/c.txt")] if action == "delete" and not (files / "in/c.txt").exists() else []
            )
            assert [left.path for left in outcome.left] == expected
        for name in set(before) - set(tree(files)):  # what only a delete may have taken
            assert action == "delete"
            assert name == "c.txt"
            (files / "in" / name).write_text(before[name])
        for path in (files / "in").glob(".*"):
            path.unlink()
        assert tree(files) == before
        if ended:
            break
        make_again(files)
    assert ended


def seen(folder: Path) -> dict[str, tuple[bytes, int, int]]:
    """What is below a folder, hidden files too: bytes, mode and time."""
    return {
        str(path.relative_to(folder)): (path.read_bytes(), path.stat().st_mode, path.stat().st_mtime_ns)
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.mark.parametrize("action", ACTIONS)
def test_what_was_killed_at_any_step_comes_back(files: Path, action: str) -> None:
    """A process that applies, and one that undoes, killed at each of its steps; the next one finishes."""
    before, kills = seen(files / "in"), 0
    flags = ["--trash", str(files / "bin")] if action == "trash" else [f"--{action}"]
    with Killer() as killer:

        def apply(step: int) -> int:
            shutil.rmtree("out")
            make_run(Path("out"), ["in/a.txt", "in/b.txt"], {"in/a.txt": None, "in/b.txt": "in/a.txt"})
            Path("log.jsonl").unlink(missing_ok=True)
            asked = ["apply", "out", *flags, "--yes", "--log", "log.jsonl"]
            return killer.run(asked, step=step, folder=str(files)).code

        def undo(step: int) -> int:
            return killer.run(["undo", "log.jsonl"], step=step, folder=str(files)).code

        for step in range(2, 500, 2):  # after each call
            ended = apply(step) == 0
            if os.path.exists("log.jsonl") and os.path.getsize("log.jsonl"):
                assert undo(0) == 0
            assert seen(files / "in") == before, f"apply was killed at step {step}"
            assert not os.path.exists("bin") or not os.listdir("bin"), f"apply was killed at step {step}"
            if ended:
                break
            kills += 1
        for step in range(2, 500, 2):
            assert apply(0) == 0
            ended = undo(step) == 0
            assert undo(0) == 0
            assert seen(files / "in") == before, f"undo was killed at step {step}"
            assert not os.path.exists("bin") or not os.listdir("bin")
            if ended:
                break
            kills += 1
    assert ended
    assert kills > 8


def make_again(folder: Path) -> None:
    """The same run over the files as they are now."""
    shutil.rmtree(folder / "out")
    names = [f"in/{name}.txt" for name in "abcd"]
    make_run(
        folder / "out",
        names,
        {"in/a.txt": None, "in/b.txt": "in/a.txt", "in/c.txt": "in/a.txt", "in/d.txt": None},
    )


# --- files that change underneath ------------------------------------------------------------------------


def texts(rng: random.Random, folder: Path) -> list[str]:
    """Some texts below `in`, and a run over them; their names."""
    Path("in").mkdir()
    names = [f"in/{number}.txt" for number in range(rng.randint(2, 6))]
    for name in names:
        Path(name).write_text(
            f"{rng.choice(['text', 'Text'])} {rng.randint(0, 1)}"
        )  # two texts, four spellings
    keepers = {name: None if name == names[0] else rng.choice(names[: names.index(name)]) for name in names}
    keepers = {
        name: None if keeper is None or keepers[keeper] is not None else keeper
        for name, keeper in keepers.items()
    }
    make_run(Path("out"), names, keepers)
    return names


LIBRARIES = 8


def images(rng: random.Random, folder: Path) -> list[str]:
    """The same with images and a real run over them, copied from one of a few libraries."""
    number = rng.randrange(LIBRARIES)
    library = folder / f"library{number}"
    if not library.exists():
        here = os.getcwd()
        (library / "in").mkdir(parents=True)
        os.chdir(library)
        draw = random.Random(number)
        shown = [image(draw) for _ in range(2)]
        for at in range(draw.randint(4, 7)):
            one = shown[at % 2]
            if at >= 4:
                one = draw.choice([ImageOps.mirror, ImageOps.grayscale, lambda im: im.resize((90, 70))])(one)
            one.save(f"in/{at}.png")
        assert cli(["dedupe", "in", "-o", "out", "--quiet", "--no-guards"]) == 0
        os.chdir(here)
    shutil.copytree(library, ".", dirs_exist_ok=True)
    return sorted(f"in/{name}" for name in os.listdir("in"))


def image(rng: random.Random) -> Image.Image:
    cells = bytes(rng.randrange(256) for _ in range(12 * 9))
    return Image.frombytes("L", (12, 9), cells).resize((120, 90), Image.Resampling.BICUBIC).convert("RGB")


def test_explain_finds_a_image_that_is_protected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, number in (("in/a.png", 1), ("in/b.png", 2), ("ref/a.png", 1)):
        Path(name).parent.mkdir(exist_ok=True)
        image(random.Random(number)).save(name)
    assert cli(["dedupe", "in", "--protect", "ref", "-o", "out", "--quiet", "--no-guards"]) == 0
    capsys.readouterr()
    assert cli(["explain", "in/a.png", "ref/a.png", "--run", "out"]) == 0
    shown = capsys.readouterr().out
    assert (
        "note: in/a.png goes; it duplicates protected:ref/a.png\nnote: protected:ref/a.png is protected and stays"
        in shown
    )
    assert cli(["explain", "in/a.png", "out/manifest.json", "--run", "out"]) == 2


def trial(seed: int, folder: Path, prepare: Callable[[random.Random, Path], list[str]]) -> int:
    """Change files between all steps of an action; how many went. No content may be lost that was not proved."""
    rng = random.Random(seed)
    work = folder / str(seed)
    work.mkdir()
    os.chdir(work)
    names = prepare(rng, folder)
    contents = {name: Path(name).read_bytes() for name in names}
    judged = {name: hashlib.sha256(data).hexdigest() for name, data in contents.items()}
    action = rng.choice(ACTIONS)
    plan = plan_removals(Run("out"), action, trash="bin")
    precious: set[bytes] = set()  # contents that no run has judged
    touched: set[str] = set()
    fresh = iter(range(1000))

    at = -1

    def disturb(step: str) -> None:
        nonlocal at
        at += step == "check"
        if rng.random() < 0.5:
            return
        current = plan.removals[at].file.path
        name = rng.choice([current, *names])
        kind = rng.choice((0, 0, 1, 1, 2, 3, 4, 5))
        # Also through a link.
        touched.update(
            one
            for one in names
            if one == name or (os.path.exists(one) and os.path.exists(name) and os.path.samefile(one, name))
        )
        content = f"new  {next(fresh)}".encode()  # some have the length of the old content
        if rng.random() < 0.5 and os.path.isfile(name):
            content = content.ljust(os.path.getsize(name))
        if kind == 0 and os.path.lexists(name):
            stat = os.stat(name)
            Path(name).write_bytes(content)
            if rng.random() < 0.5:
                os.utime(name, ns=(stat.st_atime_ns, stat.st_mtime_ns))  # the change is hidden
            precious.add(content)
        elif kind == 1 and os.path.lexists(name):
            Path("fresh").write_bytes(content)
            os.replace("fresh", name)
            precious.add(content)
        elif kind == 2 and not os.path.lexists(name):
            Path(name).write_bytes(content)
            precious.add(content)
        elif kind == 3 and os.path.lexists(name):
            precious.discard(Path(name).read_bytes())
            os.unlink(name)
        elif kind == 4 and os.path.lexists(name):
            precious.discard(Path(name).read_bytes())
            other = rng.choice(names)
            if other != name:
                os.unlink(name)
                os.symlink(os.path.basename(other), name)
        elif kind == 5:
            with open(rng.choice(names), "ab") as file:  # also through a link
                file.write(b"")
        # What other programs overwrote is not our loss.
        there = {path.read_bytes() for path in Path("in").iterdir() if path.is_file()}
        there |= (
            {path.read_bytes() for path in Path("bin").rglob("*") if path.is_file()}
            if os.path.isdir("bin")
            else set()
        )
        precious.intersection_update(there)

    taken = {one.file.path: one.keeper.path for one in plan.removals}

    def watched(step: str) -> None:
        with suppress(OSError):
            disturb(step)

    outcome = remove(plan, "log.jsonl", between=watched)
    there = {path.read_bytes() for path in Path("in").iterdir() if path.is_file()}
    if os.path.isdir("bin"):
        there |= {path.read_bytes() for path in Path("bin").rglob("*") if path.is_file()}
    assert precious <= there, f"seed {seed}: {precious - there} was lost"
    for path in outcome.done:
        assert path in taken, f"seed {seed}: {path} was not to go"
        keeper = taken[path]
        if path.endswith(".txt"):
            assert contents[path].lower() == contents[keeper].lower(), f"seed {seed}: {path} was no copy"
        if keeper not in touched:
            kept = Path(keeper).read_bytes()
            assert hashlib.sha256(kept).hexdigest() == judged[keeper], f"seed {seed}: {keeper} was lost"
    assert not list(Path("in").glob(".neardup-*")), f"seed {seed}: a file was left aside"
    undo("log.jsonl")
    assert precious <= {path.read_bytes() for path in Path("in").iterdir() if path.is_file()} | there
    return len(outcome.done)


def trials(count: int, prepare: Callable[[random.Random, Path], list[str]] = texts) -> int:
    """How many files went in *count* trials in which nothing was lost."""
    here = os.getcwd()
    gone = 0
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as folder:
        try:
            for seed in range(count):
                gone += trial(seed, Path(folder), prepare)
                shutil.rmtree(Path(folder) / str(seed))
        finally:
            os.chdir(here)
    return gone


@pytest.mark.parametrize("prepare", [texts, images])
def test_nothing_unproved_is_lost_when_files_change_underneath(
    prepare: Callable[[random.Random, Path], list[str]],
) -> None:
    assert trials(TRIALS, prepare) > TRIALS // 3  # and the trials do remove files


if __name__ == "__main__":
    asked = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    for prepare in (texts, images):
        found = trials(asked, prepare)
        print(f"{asked:,} trials with {prepare.__name__}: {found:,} files removed, nothing lost")
