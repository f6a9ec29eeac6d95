"""Index files: they appear whole, nobody's changes are lost, and a change under a map is found."""

from __future__ import annotations

import contextlib
import copy
import os
import pickle
import shutil
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import neardup as nd
from neardup import _native
from neardup.adapters.cli import run
from neardup.errors import ChangedFile, DamagedFile, InvalidType, InvalidValue, LimitReached, NeardupError
from neardup.files import atomic_file, locked
from tests.hamming import near_words
from tests.saving import save_together


def index_of(*values: int, radius: int = 3) -> nd.Index:
    index = nd.Index(64, radius)
    index.add([f"id {value}" for value in values], np.array(values, dtype=np.uint64))
    return index


def names(index: nd.Index) -> list[str]:
    return sorted(index.items()[0])


# --- appearing whole -------------------------------------------------------------------------------------


def test_two_threads_that_save_to_one_path_damage_nothing(tmp_path: Path) -> None:
    tally, wrong = save_together(tmp_path / "index", processes=1, threads=2, saves=12, rows=20_000)
    assert (wrong, tally) == ([], (24, 0, 0, 24))
    assert os.listdir(tmp_path) == ["index"]


def test_processes_with_threads_that_save_to_one_path_damage_nothing(tmp_path: Path) -> None:
    tally, wrong = save_together(tmp_path / "index", processes=2, threads=2, saves=6, rows=2000)
    assert (wrong, tally) == ([], (24, 0, 0, 24))


needs_links = pytest.mark.skipif(not hasattr(os, "O_NOFOLLOW"), reason="needs symbolic links")


@needs_links
def test_a_planted_link_is_not_written_through(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    folder = tmp_path / "shared"
    folder.mkdir()
    # The name of old, and the names of now if anybody could foresee them.
    (folder / f".x.idx.{os.getpid()}.tmp").symlink_to(victim)
    index_of(1, 2).save(folder / "x.idx")
    monkeypatch.setattr("secrets.token_hex", lambda size: "0" * (2 * size))
    (folder / f".neardup-{'0' * 16}.tmp").symlink_to(victim)
    with pytest.raises(FileExistsError):
        index_of(1, 2, 3).save(folder / "x.idx")
    assert victim.read_text() == "precious"
    assert not (folder / "x.idx").is_symlink()
    assert names(nd.Index.load(folder / "x.idx")) == ["id 1", "id 2"]


@needs_links
def test_a_link_in_the_place_of_the_file_is_replaced_and_what_it_points_to_stays(tmp_path: Path) -> None:
    index_of(1).save(tmp_path / "real")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with nd.Index.edit(tmp_path / "link") as index:
        index.add_one("id 2", 2)
    assert not (tmp_path / "link").is_symlink()
    assert names(nd.Index.load(tmp_path / "link")) == ["id 1", "id 2"]
    assert names(nd.Index.load(tmp_path / "real")) == ["id 1"]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has other permissions")
def test_a_new_file_has_the_mode_of_the_umask_and_a_replaced_one_keeps_its_own(tmp_path: Path) -> None:
    path = tmp_path / "index"
    before = os.umask(0o027)
    try:
        index_of(1).save(path)
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
        path.chmod(0o604)
        index_of(2).save(path)
        assert stat.S_IMODE(path.stat().st_mode) == 0o604
    finally:
        os.umask(before)


def test_a_file_that_may_not_be_replaced_is_not(tmp_path: Path) -> None:
    index_of(1).save(tmp_path / "index")
    with pytest.raises(InvalidValue, match="exists"):
        index_of(2).save(tmp_path / "index", overwrite=False)
    index_of(2).save(tmp_path / "other", overwrite=False)
    assert sorted(os.listdir(tmp_path)) == ["index", "other"]
    assert names(nd.Index.load(tmp_path / "index")) == ["id 1"]


def test_of_two_that_make_a_file_only_one_does(tmp_path: Path) -> None:
    with contextlib.ExitStack() as stack:
        stack.enter_context(pytest.raises(InvalidValue, match="exists"))
        one = stack.enter_context(atomic_file(tmp_path / "file"))
        one.write(b"one")
        with atomic_file(tmp_path / "file") as other:
            other.write(b"other")
    assert (tmp_path / "file").read_bytes() == b"other"
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_device_is_not_replaced_by_a_file(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/dev/full")
    for path in ("/dev/full", tmp_path / "link"):
        with pytest.raises(InvalidValue, match="a device or a pipe"):
            index_of(1).save(path)
    assert stat.S_ISCHR(os.stat("/dev/full").st_mode)
    assert (tmp_path / "link").is_symlink()


# --- two writers -----------------------------------------------------------------------------------------

ADD_ONE = """
import sys
import neardup as nd
index = nd.Index.load(sys.argv[1])
index.add_one(sys.argv[2], 5)
print("loaded", flush=True)
sys.stdin.readline()
try:
    index.save(sys.argv[1])
    print("saved")
except nd.NeardupError as error:
    print(type(error).__name__, error)
"""


def child(code: str, *arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_the_second_of_two_processes_that_load_add_and_save_is_told(tmp_path: Path) -> None:
    path = tmp_path / "index"
    index_of(1, 2).save(path)
    children = [child(ADD_ONE, path, name) for name in ("first", "second")]
    for one in children:
        assert one.stdout is not None
        assert one.stdout.readline() == "loaded\n"
    first, second = (one.communicate("go\n", timeout=60)[0] for one in children)
    assert first == "saved\n"
    assert second.startswith("ChangedFile ")
    assert "since it was loaded; load it again and repeat" in second
    assert names(nd.Index.load(path)) == ["first", "id 1", "id 2"]


def test_what_was_saved_by_the_same_index_is_no_foreign_change(tmp_path: Path) -> None:
    path = tmp_path / "index"
    index_of(1).save(path)
    index = nd.Index.load(path)
    for value in (2, 3):
        index.add_one(f"id {value}", value)
        index.save(path)
    index.save(tmp_path / "elsewhere")
    index_of(9).save(path)
    with pytest.raises(ChangedFile):
        index.save(path)
    with pytest.raises(NeardupError):
        index.save(tmp_path / "." / "index")
    assert names(nd.Index.load(path)) == ["id 9"]
    path.unlink()
    index.save(path)  # nothing is there to lose
    assert names(nd.Index.load(path)) == ["id 1", "id 2", "id 3"]


def test_an_index_that_was_not_loaded_replaces_what_is_there(tmp_path: Path) -> None:
    path = tmp_path / "index"
    index_of(1).save(path)
    fresh = index_of(2)
    for _ in range(2):
        fresh.save(path)
        assert names(nd.Index.load(path)) == ["id 2"]
        index_of(3).save(path)


def test_threads_that_edit_one_index_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "index"
    index_of(0).save(path)

    def work(number: int) -> None:
        for step in range(5):
            with nd.Index.edit(path) as index:
                index.add_one(f"{number} {step}", number)

    workers = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(nd.Index.load(path)) == 1 + 4 * 5


def test_an_edit_that_fails_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "index"
    index_of(1).save(path)
    before = path.read_bytes()
    with pytest.raises(InvalidValue), nd.Index.edit(path) as index:
        index.update(["id 2"], np.array([2], dtype=np.uint64)), index.add_one("id 3", -1)
    assert path.read_bytes() == before
    with pytest.raises(FileNotFoundError), nd.Index.edit(tmp_path / "none"):
        pass


def test_one_that_will_not_wait_is_told_who_is_busy(tmp_path: Path) -> None:
    path = tmp_path / "index"
    index_of(1).save(path)

    def impatient() -> None:
        with nd.Index.edit(path, wait=False):
            pass

    with nd.Index.edit(path) as index, ThreadPoolExecutor(1) as pool:
        with pytest.raises(LimitReached, match="another process or thread changes"):
            pool.submit(impatient).result()
        index.add_one("id 2", 2)
    with nd.Index.edit(path, wait=False):
        pass
    assert names(nd.Index.load(path)) == ["id 1", "id 2"]


def test_who_saves_inside_an_edit_does_not_wait_for_itself(tmp_path: Path) -> None:
    path = tmp_path / "index"
    index_of(1).save(path)
    with nd.Index.edit(path) as index:
        index.add_one("id 2", 2)
        for other in (index, index_of(9)):
            with pytest.raises(LimitReached, match="saved when that `edit` ends"):
                other.save(path)
        with pytest.raises(LimitReached, match="being changed here already"), nd.Index.edit(path):
            pass
        index.save(tmp_path / "copy")
    assert names(nd.Index.load(path)) == names(nd.Index.load(tmp_path / "copy")) == ["id 1", "id 2"]
    index_of(3).save(path)
    assert names(nd.Index.load(path)) == ["id 3"]


HOLD = """
import sys
import neardup as nd
with nd.Index.edit(sys.argv[1]) as index:
    index.add_one("lost", 5)
    print("locked", flush=True)
    sys.stdin.readline()
"""


def test_a_killed_process_leaves_no_lock(tmp_path: Path) -> None:
    path = tmp_path / "index"
    index_of(1).save(path)
    holder = child(HOLD, path)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "locked\n"
    with pytest.raises(LimitReached), locked(path, wait=False):
        pass
    holder.kill()
    holder.communicate(timeout=60)
    with nd.Index.edit(path, wait=False) as index:
        index.add_one("id 2", 2)
    assert names(nd.Index.load(path)) == ["id 1", "id 2"]
    assert os.listdir(tmp_path) == ["index"]


def test_two_commands_that_add_to_one_index_both_do(tmp_path: Path) -> None:
    path = tmp_path / "n.idx"
    for number in range(3):
        lines = [f'{{"id": "{number}-{row}", "text": "{number} {row} some words"}}\n' for row in range(50)]
        (tmp_path / f"h{number}.jsonl").write_text("".join(lines))
    assert run(["index", "build", str(path), str(tmp_path / "h0.jsonl"), "--scheme", "text"]) == 0
    adders = [
        subprocess.Popen(
            [sys.executable, "-m", "neardup", "index", "add", path, tmp_path / name, "--scheme", "text"],
            stderr=subprocess.PIPE,
            text=True,
        )
        for name in ("h1.jsonl", "h2.jsonl")
    ]
    told = [adder.communicate(timeout=120)[1] for adder in adders]
    assert [adder.returncode for adder in adders] == [0, 0], told
    assert sorted(text.splitlines()[-1].split()[0] for text in told) == ["100", "150"]
    assert len(nd.Index.load(path)) == 150


def test_a_command_that_must_wait_says_so(tmp_path: Path) -> None:
    path = tmp_path / "index"
    index_of(1).save(path)
    (tmp_path / "more.csv").write_text("id,fingerprint\nid 2,2\n")
    command = [sys.executable, "-m", "neardup", "index", "add", str(path), str(tmp_path / "more.csv")]
    with nd.Index.edit(path) as index:
        index.add_one("id 3", 3)
        waiting = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert waiting.stderr is not None
        assert "waiting for it" in waiting.stderr.readline()
    assert waiting.communicate(timeout=60)[1].startswith("3 fingerprints")
    assert names(nd.Index.load(path)) == ["id 1", "id 2", "id 3"]


# --- a file that changes under its map -------------------------------------------------------------------


Mapped = tuple[Path, nd.Index, np.ndarray]


@pytest.fixture
def mapped(tmp_path: Path) -> Mapped:
    path, rows = tmp_path / "index", near_words(30_000, 1, 1)
    index = nd.Index(64, 3)
    index.add([f"id {row}" for row in range(len(rows))], rows)
    index.save(path)
    os.utime(path, (1_000_000, 1_000_000))  # no clock is so coarse that a change stays unseen
    return path, nd.Index.load(path), rows


USES = {
    "search": lambda index, rows: index.search(rows[:9]),
    "search_one": lambda index, rows: index.search_one(int(rows[0, 0])),
    "nearest": lambda index, rows: index.nearest(rows[:2], n=3),
    "items": lambda index, rows: index.items(),
    "add": lambda index, rows: index.add(["new"], rows[:1]),
    "add_one": lambda index, rows: index.add_one("new", 1),
    "remove": lambda index, rows: index.remove(["id 1"]),
    "remove_one": lambda index, rows: index.remove_one("id 1", int(rows[1, 0])),
    "save": lambda index, rows: index.save(index._origin.path + ".copy"),
    "pickle": lambda index, rows: pickle.dumps(index),
}


def cut(path: Path) -> None:
    os.truncate(path, 100)


def overwrite(path: Path) -> None:
    size = path.stat().st_size
    with open(path, "r+b") as file:
        file.write(b"\xff" * size)


def scramble(path: Path) -> None:
    size = path.stat().st_size
    with open(path, "r+b") as file:
        file.write(np.random.default_rng(1).bytes(size))


def copy_over(path: Path) -> None:
    index_of(1).save(path.with_name("other"))
    shutil.copyfile(path.with_name("other"), path)


@pytest.mark.parametrize("damage", [cut, overwrite, scramble, copy_over])
@pytest.mark.parametrize("use", USES)
def test_a_file_that_is_changed_in_place_is_an_error_and_no_wrong_answer(
    mapped: Mapped, use: str, damage: Callable[[Path], None]
) -> None:
    path, index, rows = mapped
    damage(path)
    for _ in range(2):
        with pytest.raises(ChangedFile, match="was changed while it was in use; load it again"):
            USES[use](index, rows)
    assert not Path(f"{path}.copy").exists()


@pytest.mark.parametrize("use", USES)
def test_a_file_that_is_replaced_does_no_harm_to_who_has_it_mapped(mapped: Mapped, use: str) -> None:
    path, index, rows = mapped
    index_of(1).save(path)
    USES[use](index, rows)
    assert ("id 7", 0) in index.search_one(int(rows[7, 0]))


@pytest.mark.parametrize("use", USES)
def test_what_was_read_into_memory_does_not_depend_on_the_file(mapped: Mapped, use: str) -> None:
    path, _, rows = mapped
    index = nd.Index.load(path, map=False)
    expected = list(index.search(rows[:50]))
    overwrite(path)
    cut(path)
    assert list(index.search(rows[:50])) == expected
    USES[use](index, rows)


@pytest.mark.parametrize("map", [True, False])
def test_a_file_that_changes_while_it_is_loaded_is_refused(mapped: Mapped, map: bool) -> None:
    path, done = mapped[0], threading.Event()

    def touch() -> None:
        for second in count(1_000_000):
            os.utime(path, (second, second))
            if done.is_set():
                return

    def load_often() -> None:
        for _ in range(1000):  # some load is soon met in its middle
            nd.Index.load(path, map=map)

    toucher = threading.Thread(target=touch)
    toucher.start()
    try:
        with pytest.raises(ChangedFile, match="was changed while it was read; load it again"):
            load_often()
    finally:
        done.set()
        toucher.join()


def test_an_index_whose_mapped_part_is_gone_needs_its_file_no_more(mapped: Mapped) -> None:
    path, index, rows = mapped
    index.add([f"more {row}" for row in range(30_000)], rows)
    index.remove(["id 1"])
    index.save(path.with_name("whole"))
    cut(path)
    assert ("more 7", 0) in index.search_one(int(rows[7, 0]))


# --- what a loader accepts can be used -------------------------------------------------------------------


def test_bits_above_those_of_the_index_are_refused_by_the_loader_and_by_add_one(tmp_path: Path) -> None:
    for bits in (12, 60, 100):
        index = nd.Index(bits, 3)
        for value in (2**bits, 2**64 if bits < 64 else 2**128):
            with pytest.raises(InvalidValue, match=f"not a fingerprint of {bits} bits"):
                index.add_one("a", value)
            with pytest.raises(InvalidValue, match=f"not a fingerprint of {bits} bits"):
                index.search_one(value)
        index.add_one("a", 2**bits - 1)
        index.save(tmp_path / "index")
        assert nd.Index.load(tmp_path / "index").items()[1].bits == bits
    # A file that says it has fewer bits than its fingerprints, with all its checksums right.
    wide = nd.Index(64, 3)
    wide.add_one("a", 2**63)
    wide.save(tmp_path / "index")
    data = bytearray((tmp_path / "index").read_bytes())
    data[24:28] = (12).to_bytes(4, "little")
    header = int.from_bytes(data[12:16], "little")
    data[header - 16 : header] = _native.digest("xxh3-128", bytes(data[: header - 16]), 16)
    with pytest.raises(DamagedFile, match="bits above its 12 bits"):
        _native.check_index(bytes(data))
    (tmp_path / "index").write_bytes(data)
    for map in (True, False):
        with pytest.raises(DamagedFile, match="bits above its 12 bits"):
            nd.Index.load(tmp_path / "index", map=map)


# --- pickling --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("copied", [lambda one: pickle.loads(pickle.dumps(one)), copy.deepcopy, copy.copy])
@pytest.mark.parametrize("ids", [["a", "ß", "漢"], [5, -1, 5], [0, 1, 2], []])
def test_an_index_is_pickled_and_copied_whole(
    copied: Callable[[nd.Index], nd.Index], ids: list[Any], tmp_path: Path
) -> None:
    index = nd.Index(128, 5, digest="scheme")
    index.add(ids, nd.Fingerprints.of([3, 2**127, 7][: len(ids)], bits=128))
    index.save(tmp_path / "index")
    for one in (index, nd.Index.load(tmp_path / "index"), nd.Index.load(tmp_path / "index", map=False)):
        other = copied(one)
        assert (other.bits, other.radius, other.digest, len(other)) == (128, 5, "scheme", len(ids))
        assert other.items()[0] == one.items()[0]
        assert list(other.items()[1]) == list(one.items()[1])
        other.remove(ids)
        assert (len(other), len(one)) == (0, len(ids))


def test_a_pickled_index_is_the_bytes_of_its_file_and_is_checked_as_such(tmp_path: Path) -> None:
    index = index_of(1, 2, 3)
    index.save(tmp_path / "index")
    data = pickle.dumps(index)
    assert (tmp_path / "index").read_bytes() in data
    at = data.index(b"NDINDEX\n") + 200
    damaged = data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
    with pytest.raises(DamagedFile, match="damaged"):
        pickle.loads(damaged)
    wrong: Any
    for wrong in (None, "text", bytearray(b"NDINDEX\n")):
        with pytest.raises(InvalidType):
            nd.Index._restored(wrong, None)
    with pytest.raises(DamagedFile):
        nd.Index._restored(b"", None)


def test_a_copy_of_a_loaded_index_knows_where_it_came_from(tmp_path: Path) -> None:
    path = tmp_path / "index"
    index_of(1).save(path)
    one = nd.Index.load(path)
    other = pickle.loads(pickle.dumps(one))
    one.add_one("id 2", 2)
    one.save(path)
    other.add_one("id 3", 3)
    with pytest.raises(ChangedFile):
        other.save(path)


class Named(nd.Index):
    """An index with a name."""

    name: str


def test_a_class_made_of_index_keeps_what_it_added() -> None:
    own = Named(64, 2)
    own.name = "mine"
    own.add_one("a", 1)
    other = pickle.loads(pickle.dumps(own))
    assert (type(other), other.name, names(other)) == (Named, "mine", ["a"])


def test_matches_are_pickled() -> None:
    found = index_of(1, 2).search(np.array([1], dtype=np.uint64))
    assert list(pickle.loads(pickle.dumps(found))) == list(found)


# --- memory, and no panic --------------------------------------------------------------------------------

LIMITED = """
import io, os, pickle, resource, sys, tempfile
import numpy as np
import neardup as nd
from neardup.compat.simhash import Simhash, SimhashIndex

def limit(room):
    with open("/proc/self/status") as file:
        own = next(int(line.split()[1]) << 10 for line in file if line.startswith("VmSize:"))
    resource.setrlimit(resource.RLIMIT_AS, (own + room, resource.getrlimit(resource.RLIMIT_AS)[1]))

def free():
    resource.setrlimit(resource.RLIMIT_AS, (resource.getrlimit(resource.RLIMIT_AS)[1],) * 2)

rng = np.random.default_rng(1)
rows = rng.integers(0, 2**64, (int(sys.argv[2]), 1), dtype=np.uint64)
rows.setflags(write=False)
numbers = rng.permutation(len(rows))
index = nd.Index(64, 3)
index.add(numbers[:1000], rows[:1000])
index.search(rows[:20000]), index.nearest(rows[:9]), index.remove([-1])
equal = nd.Index(64, 0)
equal.add(np.zeros(30_000, dtype=np.int64), np.zeros((30_000, 1), dtype=np.uint64))
asked = np.zeros((3000, 1), dtype=np.uint64)
texts = [f"document {row}" for row in range(len(rows))]
full = nd.Index(64, 3)
full.add(numbers, rows)
stream, one = SimhashIndex([], k=3), Simhash(5)

def streamed():
    for row in range(4_000_000):
        stream.add(f"a name that is not short at all {row}", one)

def big():
    for start in range(0, len(rows), 5000):
        index.add(numbers[start:start + 5000], rows[start:start + 5000])

work = {
    "add": lambda: index.add(numbers, rows),
    "add texts": lambda: nd.Index(64, 3).add(texts, rows),
    "add often": big,
    "update": lambda: index.update(numbers, rows),
    "search": lambda: equal.search(asked),
    "nearest": lambda: equal.nearest(asked, n=30_000),
    "items": lambda: full.items(),
    "remove": lambda: full.remove(numbers),
    "pickle": lambda: pickle.dumps(full),
    "save": lambda: full.save(os.path.join(tempfile.mkdtemp(), "x")),
    "stream": streamed,
}[sys.argv[1]]
before = index.search_one(int(rows[7, 0]))
limit(int(sys.argv[3]) << 20)
try:
    work()
    said = "enough"
except MemoryError:
    said = "MemoryError"
free()
assert index.search_one(int(rows[7, 0])) == before or sys.argv[1] == "add often"
assert len(index) == 1000 or sys.argv[1] == "add often"
names, prints = index.items()
assert len(names) == len(prints) == len(index)
known = dict(zip(numbers.tolist(), rows[:, 0].tolist()))
assert all(known[name] == print for name, print in zip(names, prints.words[:, 0].tolist()))
index.add(numbers[:10], rows[:10])
assert len(full) in (0, len(rows))
print(said)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs a limit of memory")
@pytest.mark.parametrize(
    ("work", "rows", "room"),
    [
        ("add", 4_000_000, 40),
        ("add", 4_000_000, 100),
        ("add texts", 1_000_000, 40),
        ("update", 2_000_000, 40),
        ("add often", 2_000_000, 30),
        ("search", 100_000, 40),
        ("nearest", 100_000, 40),
        ("items", 2_000_000, 30),
        ("remove", 2_000_000, 30),
        ("pickle", 2_000_000, 40),
        ("save", 2_000_000, 40),
        ("stream", 100_000, 60),
    ],
)
def test_an_index_that_finds_no_memory_raises_memory_error_and_stays_as_it_was(
    work: str, rows: int, room: int
) -> None:
    # What was freed goes back to the system, so that the limit is all there is.
    known = {"MALLOC_ARENA_MAX": "1", "MALLOC_MMAP_THRESHOLD_": "65536"}
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, work, str(rows), str(room)],
        capture_output=True,
        text=True,
        env=os.environ | known,
    )
    assert (done.returncode, done.stdout) == (0, "MemoryError\n"), done.stderr


def test_a_stream_index_refuses_blocks_that_are_outside_its_bits() -> None:
    stream = _native.StreamIndex()
    for blocks in ([(0, 65)], [(60, 50)], [(10**9, 10**9 + 1)]):
        with pytest.raises(InvalidValue, match="no bits"):
            stream._start(object, 64, 3, blocks, 10)


def test_a_wrong_width_at_the_binding_is_an_error_and_no_panic() -> None:
    index = _native.HammingIndex(64, 3)
    wide = np.zeros((3, 2), dtype=np.uint64)
    for call in (
        lambda: index.search((wide, None), 3, 1),
        lambda: index.nearest((wide, None), 3, 1),
        lambda: index.search((np.zeros((3, 0), dtype=np.uint64), None), 3, 1),
        lambda: index.nearest((np.zeros((3, 0), dtype=np.uint64), None), 3, 1),
        lambda: index.search((wide[:, :1].copy(), np.zeros(1, dtype=bool)), 3, 1),
        lambda: _native.HammingIndex(10**9, 3),
    ):
        with contextlib.suppress(Exception):  # a PanicException is none
            call()


# --- exit codes ------------------------------------------------------------------------------------------


def test_an_index_of_refused_files_is_not_written_and_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 but cut")
    path = tmp_path / "index"
    assert run(["index", "build", str(path), str(tmp_path / "bad.parquet"), "--scheme", "text"]) == 4
    assert "no document came from" in capsys.readouterr().err
    assert not path.exists()
    (tmp_path / "good.jsonl").write_text('{"id": "a", "text": "some words"}\n')
    assert run(["index", "build", str(path), str(tmp_path), "--scheme", "text"]) == 4
    assert len(nd.Index.load(path)) == 1
    before = path.read_bytes()
    assert run(["index", "add", str(path), str(tmp_path / "bad.parquet"), "--scheme", "text"]) == 4
    assert path.read_bytes() == before
    (tmp_path / "half.jsonl").write_text('{"id": "b", "text": "some words"}\n{"id": "c"\n')
    assert run(["index", "add", str(path), str(tmp_path / "half.jsonl"), "--scheme", "text"]) == 3
    assert len(nd.Index.load(path)) == 2
