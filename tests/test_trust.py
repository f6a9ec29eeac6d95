"""`apply` and `undo` believe no file: not the run, not the log, not whatever is where a folder was."""

import json
import os
import random
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.actions import plan_removals, rehearse, remove, undo
from neardup.adapters.cli import run as cli
from neardup.errors import DamagedFile, NeardupError, RefusedInput
from neardup.places import reached
from neardup.proofs import remeasured
from neardup.runs import Run
from neardup.seals import own_key, state_folder
from neardup.undologs import parse_log
from neardup.verifiers import parse_measure

from .corpus import edited, words
from .rundirs import input_row, make_run, output_row
from .test_actions import image

TEXTS = {
    "a": " ".join(words(1, 200)),
    "b": " ".join(words(1, 200)),
    "c": " ".join(words(2, 200)),
    "sub/d": " ".join(words(3, 200)),
    "sub/e": " ".join(words(3, 200)) + " at last",
}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """in/b.txt and in/sub/e.txt go in the run that is in `out`, and nothing else."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in/sub").mkdir(parents=True)
    for name, text in TEXTS.items():
        (tmp_path / f"in/{name}.txt").write_text(text)
    assert cli(["dedupe", "in", "-o", "out", "--quiet"]) == 0
    gone = [one.file.path for one in plan_removals(Run("out"), "delete").removals]
    assert len(gone) == 2
    return tmp_path


def tree(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_symlink()
    }


def edit(path: Path, change: Callable[[Any], None]) -> None:
    """Change what a JSON file says."""
    facts = json.loads(path.read_text())
    change(facts)
    path.write_text(json.dumps(facts))


def reasons(action: str = "delete", run: str = "out", within: tuple[str, ...] = ()) -> dict[str, str]:
    """Why files stay; the dry run must say the same as what is done."""
    plan = plan_removals(Run(run), action, within=within)
    said = rehearse(plan)
    done = remove(plan, "log.jsonl")
    os.unlink("log.jsonl")
    assert (said.done, said.left) == (done.done, done.left)
    return {left.path: left.reason for left in done.left}


# --- a run that is not believed --------------------------------------------------------------------------


def forge(name: str, text: str) -> None:
    """Put another text in the place of a file, and make the manifest say that it was read."""
    Path(name).write_text(text)

    def change(facts: Any) -> None:
        facts["inputs"] = [
            {**row, **input_row(name)} if row["name"] == name else row for row in facts["inputs"]
        ]

    edit(Path("out/manifest.json"), change)


def test_a_manifest_with_the_digest_of_another_file_deletes_nothing(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gone = plan_removals(Run("out"), "delete").removals[0].file.path
    forge(gone, "the only copy of something else")
    before = tree(home / "in")
    assert cli(["apply", "out", "--delete", "--yes"]) == 4
    said = capsys.readouterr().err
    assert "was written by another user or neardup, or was changed since (it names files in 'in')" in said
    assert "name the folders" in said
    assert tree(home / "in") == before
    assert cli(["apply", "out", "in", "--delete", "--yes", "--log", "log.jsonl"]) == 3
    assert "is not the text of its keeper, which the evidence says it is" in capsys.readouterr().err
    assert (home / gone).read_text() == "the only copy of something else"


def test_a_run_of_another_user_needs_the_folders_to_be_named(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = (one.file.id for one in plan_removals(Run("out"), "delete").removals)
    monkeypatch.setenv("NEARDUP_STATE", str(home / "other"))
    with pytest.raises(RefusedInput, match="another user"):
        plan_removals(Run("out"), "delete")
    stays = "is not below the folders that were named"
    assert reasons(within=("out",)) == {first: stays, second: stays}
    assert reasons(within=("in/sub",)) == {first: stays}
    assert reasons(within=("in",)) == {second: "cannot be read: No such file or directory"}  # it went before


def test_where_no_key_can_be_kept_a_run_is_made_and_needs_the_folders(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("NEARDUP_STATE", "/dev/null/nowhere")
    assert cli(["dedupe", "in", "-o", "again", "--quiet"]) == 0
    assert json.loads(Path("again/manifest.json").read_text())["seal"] is None
    assert cli(["apply", "again", "--delete"]) == 4
    capsys.readouterr()
    assert cli(["apply", "again", "in", "--trash", "bin", "--yes", "--log", "log.jsonl"]) == 0
    assert f"neardup undo log.jsonl {home}/bin {home}/in\n" in capsys.readouterr().out
    assert cli(["undo", "log.jsonl"]) == 4
    assert cli(["undo", "log.jsonl", "in", "bin"]) == 0
    assert len(tree(home / "in")) == len(TEXTS)


def test_the_key_is_for_the_user_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEARDUP_STATE", str(tmp_path / "state"))
    assert own_key() is None
    key = own_key(make=True)
    assert key is not None
    assert own_key(make=True) == key
    path = Path(state_folder()) / "seal.key"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [one.name for one in path.parent.iterdir()] == ["seal.key"]
    path.chmod(0o644)
    assert own_key(make=True) is None
    path.unlink()
    path.symlink_to("/dev/zero")
    assert own_key(make=True) is None


def test_a_run_that_is_forged_from_end_to_end_takes_nothing_that_is_no_duplicate(home: Path) -> None:
    names = ["in/a.txt", "in/c.txt"]
    make_run(home / "forged", names, {"in/a.txt": None, "in/c.txt": "in/a.txt"})
    found = reasons(run="forged", within=("in",))
    assert found == {"in/c.txt": "measured again, it is not a duplicate of its keeper: too different"}


@pytest.mark.parametrize("rule", ["identical text", "identical but for case, spacing or punctuation"])
def test_texts_that_are_said_to_be_identical_and_are_not_stay(home: Path, rule: str) -> None:
    # As two texts are that somebody made for one hash: nearly the same, and said to be the same.
    names = ["in/sub/d.txt", "in/sub/e.txt"]
    make_run(
        home / "forged",
        names,
        {"in/sub/d.txt": None, "in/sub/e.txt": "in/sub/d.txt"},
        similarity=1.0,
        rule=rule,
    )
    found = reasons(run="forged")
    assert found == {"in/sub/e.txt": "is not the text of its keeper, which the evidence says it is"}


def test_a_similarity_that_is_not_the_one_of_the_evidence_is_refused(home: Path) -> None:
    names = ["in/sub/d.txt", "in/sub/e.txt"]
    make_run(home / "forged", names, {"in/sub/d.txt": None, "in/sub/e.txt": "in/sub/d.txt"}, similarity=0.7)
    (reason,) = reasons(run="forged").values()
    assert reason.startswith("measured again its similarity is 0.9")
    assert reason.endswith("not 0.7000 as the evidence says")


def test_images_are_laid_upon_each_other_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("in").mkdir()
    first = image(random.Random(1))
    first.save("in/a.png")
    first.resize((90, 70)).save("in/b.png")
    image(random.Random(2)).save("in/c.png")
    keepers = {"in/a.png": None, "in/b.png": "in/a.png", "in/c.png": "in/a.png"}
    make_run(tmp_path / "forged", list(keepers), keepers, format="image", similarity=0.79)
    found = reasons(run="forged")
    assert found == {
        "in/c.png": "measured again, it is not a duplicate of its keeper: does not show the same"
    }
    assert not Path("in/b.png").exists()


@pytest.mark.parametrize("verify", ["default", "strict", "loose", "jaccard:0.6", "containment:0.7"])
def test_whatever_a_run_proved_is_proved_again(
    verify: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("in").mkdir()
    for number in range(12):
        text = words(number, 160)
        Path(f"in/{number}.txt").write_text(" ".join(text))
        Path(f"in/{number}-edited.txt").write_text(" ".join(edited(text, number, number % 5)))
        Path(f"in/{number}-loud.txt").write_text(" ".join(text).upper())
    assert cli(["dedupe", "in", "-o", "out", "--quiet", "--no-guards", "--verify", verify]) == 0
    assert reasons() == {}
    counts = json.loads(Path("out/manifest.json").read_text())["counts"]
    assert len(os.listdir("in")) == counts["kept"] < 16


def test_what_says_no_more_than_its_keeper_is_proved_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("in").mkdir()
    text = words(1, 160)
    Path("in/part.txt").write_text(" ".join(text[:140]))
    Path("in/whole.txt").write_text(" ".join(text))
    assert cli(["dedupe", "in", "-o", "out", "--quiet", "--no-guards", "--verify", "preserving"]) == 0
    assert reasons() == {}
    assert os.listdir("in") == ["whole.txt"]


def test_measured_again_only_the_one_that_says_less_may_go() -> None:
    whole, part = " ".join(words(1, 60)), " ".join(words(1, 60)[:50])
    measure = parse_measure("preserving")
    assert remeasured(measure, whole, part).accepted
    turned = remeasured(measure, part, whole)
    assert not turned.accepted
    assert turned.reason == "has words that the other lacks"


def test_compressed_files_and_pages_are_measured_as_they_were_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import gzip

    monkeypatch.chdir(tmp_path)
    Path("in").mkdir()
    text = words(1, 160)
    Path("in/a.txt").write_text(" ".join(text))
    Path("in/b.txt.gz").write_bytes(gzip.compress(" ".join(edited(text, 1, 4)).encode()))
    assert cli(["dedupe", "in", "-o", "out", "--quiet", "--no-guards"]) == 0
    assert reasons() == {}
    assert len(os.listdir("in")) == 1


def test_a_run_of_others_makes_no_network_call(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def remote(facts: Any) -> None:
        facts["inputs"][0]["name"] = "https://example.invalid/a.jsonl"

    edit(Path("out/manifest.json"), remote)
    assert cli(["apply", "out", "-o", "kept"]) == 4
    assert "names an address, 'https://example.invalid/a.jsonl'" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["in/../secret.txt", "{home}/secret.txt"])
def test_a_path_outside_the_inputs_is_refused(home: Path, name: str) -> None:
    name = name.format(home=home)
    (home / "secret.txt").write_text(TEXTS["a"])
    make_run(home / "forged", ["in/a.txt", name], {"in/a.txt": None, name: "in/a.txt"})

    def walked(facts: Any) -> None:
        for row in facts["inputs"]:
            row["root"] = "in"

    edit(home / "forged/manifest.json", walked)
    assert reasons(run="forged", within=("in",)) == {name: "is not below the folders that were named"}
    assert (home / "secret.txt").exists()


def test_a_folder_that_became_a_link_is_not_followed(home: Path) -> None:
    gone = next(
        one.file.path for one in plan_removals(Run("out"), "delete").removals if "sub" in one.file.path
    )
    shutil.copytree("in/sub", "elsewhere", copy_function=shutil.copy2)
    shutil.rmtree("in/sub")
    os.symlink(home / "elsewhere", "in/sub")
    assert reasons()[gone] == "cannot be read: 'sub' on the way to it is a symbolic link"
    assert len(tree(home / "elsewhere")) == 2


def test_a_link_that_the_user_named_is_followed(home: Path) -> None:
    os.mkdir("real")
    os.rename("in", "real/in")
    os.symlink("real", "via")
    assert cli(["dedupe", "via/in", "-o", "again", "--quiet"]) == 0
    assert cli(["apply", "again", "--trash", "bin", "--yes", "--log", "log.jsonl"]) == 0
    assert len(tree(home / "real")) == 3
    assert cli(["undo", "log.jsonl"]) == 0
    assert len(tree(home / "real")) == len(TEXTS)


def test_a_link_in_the_trash_is_not_followed(home: Path) -> None:
    (home / "bin").mkdir()
    (home / "elsewhere").mkdir()
    first = home.parts[1]
    os.symlink(home / "elsewhere", home / "bin" / first)
    before = tree(home / "in")
    assert cli(["apply", "out", "--trash", "bin", "--yes", "--log", "log.jsonl"]) == 3
    assert tree(home / "in") == before
    assert not list((home / "elsewhere").iterdir())


def manifests() -> Iterator[tuple[str, Any]]:
    value: Any
    for value in (None, 7, -1.5, "x", [], {}, [[]], True, "\0", "\ud800", 10**40):
        for name in ("settings", "inputs", "protected", "outputs", "scheme", "counts", "seal"):
            yield name, value
        for name in ("verify", "similarity", "format", "html", "radius"):
            yield f"settings.{name}", value
        for name in ("name", "bytes", "sha256", "modified", "root"):
            yield f"inputs.{name}", value


def test_a_manifest_of_any_content_is_no_internal_error(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = tree(home / "in")
    good = Path("out/manifest.json").read_text()
    for name, value in manifests():
        facts = json.loads(good)
        part, _, key = name.partition(".")
        for row in facts[part] if part == "inputs" and key else [facts[part] if key else facts]:
            row[key or part] = value
        Path("out/manifest.json").write_text(json.dumps(facts))
        code = cli(["apply", "out", "in", "--delete"])
        assert code != 1, (name, value, capsys.readouterr().err)
    for deep in (100, 400, 900):
        Path("out/manifest.json").write_text(good[:-2] + ', "more": ' + "[" * deep + "]" * deep + "}")
        assert cli(["apply", "out", "--delete"]) in (2, 4)
    Path("out/manifest.json").write_text("[" * 100_000)
    assert cli(["apply", "out", "in", "--delete"]) == 2
    assert tree(home / "in") == before


@pytest.mark.parametrize("name", ["annotations.parquet", "evidence.parquet"])
def test_tables_with_other_types_or_without_values_are_refused(
    home: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    good = pq.read_table(f"out/{name}")
    for column in good.column_names:
        for values in (pa.nulls(len(good), good.schema.field(column).type), pa.array([[1]] * len(good))):
            changed = good.set_column(good.column_names.index(column), column, values)
            pq.write_table(changed, f"out/{name}")

            def listed(facts: Any) -> None:
                others = [row for row in facts["outputs"] if row["name"] != name]
                facts["outputs"] = [*others, output_row(Path("out") / name)]

            edit(Path("out/manifest.json"), listed)
            code = cli(["apply", "out", "in", "--delete"])
            assert code in (0, 2, 3), (column, capsys.readouterr().err)
            assert code == 2 or pa.types.is_null(values.type) or values.type == good.schema.field(column).type


# --- a log that is not believed --------------------------------------------------------------------------


@pytest.fixture
def log(home: Path) -> Path:
    assert cli(["apply", "out", "--trash", "bin", "--yes", "--log", "log.jsonl"]) == 0
    assert len(tree(home / "in")) == 3
    return home / "log.jsonl"


def lines_of(log: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.read_text().splitlines()]


def write(log: Path, rows: list[dict[str, Any]]) -> None:
    log.write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.mark.parametrize("version", [1, 2])
def test_a_written_log_makes_no_authorized_keys(
    version: int, log: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wanted = home / ".ssh/authorized_keys"
    head, row, *_ = lines_of(log)
    row["target"] = row["target"].replace(row["path"], str(wanted))
    row["path"], row["root"] = str(wanted), str(home)
    row["aside"] = str(wanted.parent / os.path.basename(row["aside"]))
    (source,) = (path for path in (home / "bin").rglob("b.txt*"))
    Path(row["target"]).parent.mkdir(parents=True)
    shutil.copy2(source, row["target"])
    if version == 1:
        head = {name: head[name] for name in ("neardup", "action")} | {"log": 1}
        row = {name: value for name, value in row.items() if name not in ("root", "seal")}
    write(log, [head, row])
    before = tree(home)
    assert cli(["undo", "log.jsonl"]) == 4
    said = capsys.readouterr().err
    assert "was written by another user or neardup, or was changed since" in said
    assert ".ssh" in said  # whoever is asked to trust it sees where
    assert cli(["undo", "log.jsonl", "in", "bin"]) == 4
    assert f"names '{wanted}', which is not below the folders that were named" in capsys.readouterr().err
    assert tree(home) == before


@pytest.mark.parametrize("change", ["path", "a line less", "another order", "a line more"])
def test_a_log_that_was_changed_is_refused_as_a_whole(change: str, log: Path, home: Path) -> None:
    rows = lines_of(log)
    if change == "path":
        rows[3]["modified"] += 1
    elif change == "a line less":
        del rows[2]
    elif change == "another order":
        rows[1:5] = [*rows[3:5], *rows[1:3]]
    else:
        rows.append({**rows[1], "number": 99})
    write(log, rows)
    before = tree(home)
    with pytest.raises(RefusedInput, match="was changed since"):
        undo(log)
    assert tree(home) == before


def test_a_log_whose_end_is_cut_brings_back_what_it_tells(log: Path, home: Path) -> None:
    data = log.read_bytes()
    for size in range(len(data.splitlines()[0]), len(data), 5):
        log.write_bytes(data[:size])
        assert undo(log, dry_run=True).left == []
    assert len(undo(log).done) == 2
    assert len(tree(home / "in")) == len(TEXTS)


def test_a_log_of_the_first_format_is_undone_where_the_user_says(log: Path, home: Path) -> None:
    head, *rows = lines_of(log)
    for row in rows:
        row.pop("root", None)
        row.pop("seal")
    write(log, [{"log": 1, "neardup": "0.1", "action": head["action"]}, *rows])
    assert cli(["undo", "log.jsonl"]) == 4
    assert cli(["undo", "log.jsonl", "in"]) == 4  # the trash is not among them
    assert cli(["undo", "log.jsonl", "in", "bin"]) == 0
    assert len(tree(home / "in")) == len(TEXTS)


def test_a_log_of_others_gives_no_rights_away(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cli(["apply", "out", "--delete", "--yes", "--log", "log.jsonl"]) == 0
    rows = lines_of(home / "log.jsonl")
    rows[1]["mode"] = 0o4755
    write(home / "log.jsonl", rows)
    assert cli(["undo", "log.jsonl", "in"]) == 5  # of what is not the same byte for byte no copy is left
    assert stat.S_IMODE(Path(rows[1]["path"]).stat().st_mode) == 0o755


def mutations(row: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield from ({name: row[name] for name in row if name != gone} for gone in row)
    values: tuple[Any, ...] = (
        None,
        7,
        -1,
        2**70,
        1.5,
        True,
        "x",
        "",
        [],
        {},
        [1],
        "/a/../b",
        "a/b",
        "file:%00",
        "/",
        "/\0",
    )
    yield from ({**row, name: value} for name in row for value in values)
    yield {**row, "more": [[[]]]}


def test_a_damaged_log_is_told_in_one_line(log: Path, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows, before = lines_of(log), tree(home)
    del before["log.jsonl"]
    for at in (0, 1, 2):
        for changed in mutations(rows[at]):
            write(log, [*rows[:at], changed, *rows[at + 1 :]])
            assert cli(["undo", "log.jsonl"]) in (2, 4)
            said = capsys.readouterr().err
            assert said.startswith("neardup: ")
            assert said.count("\n") == 1
            assert cli(["undo", "log.jsonl", str(home), "--dry-run"]) in (0, 2, 4, 5)
            assert "internal error" not in capsys.readouterr().err
    for data in (b"", b"\n", b"{}\n", b"[]\n", b"\xff\n", b'{"log": 2', b"[" * 100_000 + b"\n"):
        log.write_bytes(data)
        assert cli(["undo", "log.jsonl"]) == 2
    after = tree(home)
    del after["log.jsonl"]
    assert after == before


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
)
NAMES = ["log", "neardup", "action", "trash", "seal", "step", "number", "path", "root", "keeper", "aside"]
NAMES += ["target", "sha256", "keeper_sha256", "size", "modified", "mode", "owner"]
CELLS = JSON | st.sampled_from([0, 1, 2, "begin", "done", "left", "trash", "delete", "/a/b", "a" * 64])
ROWS = st.lists(st.dictionaries(st.sampled_from(NAMES), CELLS), max_size=4)
HEAD = {"log": 2, "neardup": "0", "action": "delete", "trash": None, "seal": None}


@given(st.binary(max_size=200) | ROWS)
def test_any_bytes_are_a_log_or_an_error_of_ours(data: bytes | list[dict[str, Any]]) -> None:
    if not isinstance(data, bytes):
        rows = [HEAD, *data]
        data = b"\n".join(json.dumps(row).encode() for row in rows) + b"\n"
    with suppress(NeardupError):
        parse_log(data)


def test_a_deep_line_is_a_damaged_log() -> None:
    head = orjson.dumps(HEAD)
    for deep in (100, 500, 1000, 5000):
        with pytest.raises(DamagedFile):
            parse_log(head + b'\n{"step": ' + b"[" * deep + b"]" * deep + b"}\n")


def test_a_folder_that_became_a_link_gets_nothing_back(log: Path, home: Path) -> None:
    shutil.rmtree("in/sub")
    (home / "elsewhere").mkdir()
    os.symlink(home / "elsewhere", "in/sub")
    assert cli(["undo", "log.jsonl"]) == 5
    assert not list((home / "elsewhere").iterdir())
    os.unlink("in/sub")
    assert cli(["undo", "log.jsonl"]) == 0  # and its folder with it
    assert len(tree(home / "in")) == len(TEXTS) - 1  # but for the one that was in the folder


def test_a_link_in_the_trash_gives_nothing_back(log: Path, home: Path) -> None:
    (first,) = (home / "bin").iterdir()
    os.rename(first, home / "moved")
    os.symlink(home / "moved", first)
    assert cli(["undo", "log.jsonl"]) == 5
    assert len(tree(home / "in")) == 3


def test_undo_leaves_no_empty_folders_in_the_trash(home: Path) -> None:
    (home / "bin").mkdir()
    (home / "bin/mine").mkdir()
    assert cli(["apply", "out", "--trash", "bin", "--yes", "--log", "log.jsonl"]) == 0
    assert cli(["undo", "log.jsonl", "--dry-run"]) == 0
    assert len([path for path in (home / "bin").rglob("*") if path.is_file()]) == 2
    assert cli(["undo", "log.jsonl"]) == 0
    assert [path.name for path in (home / "bin").rglob("*")] == ["mine"]


def test_undo_keeps_folders_of_the_trash_that_hold_something(log: Path, home: Path) -> None:
    folder = next((home / "bin").rglob("b.txt")).parent
    (folder / "another").write_text("x")
    assert cli(["undo", "log.jsonl"]) == 0
    assert list((home / "bin").rglob("*.txt")) == []
    assert (folder / "another").exists()


def test_what_fails_leaves_no_folders_in_the_trash(home: Path) -> None:
    def change(step: str) -> None:
        if step == "check again":
            for path in Path("in").glob("**/.neardup-*"):
                path.write_text("changed underneath")

    plan = plan_removals(Run("out"), "trash", trash="bin")
    assert remove(plan, "log.jsonl", between=change).done == []
    assert not Path("bin").exists()
    assert len(tree(home / "in")) == len(TEXTS)


def test_an_undo_that_was_cut_between_two_names_is_finished(log: Path, home: Path) -> None:
    target = next((home / "bin").rglob("b.txt"))
    os.link(target, "in/b.txt")  # as a power cut leaves it
    assert len(undo(log).done) == 1
    assert not target.exists()
    assert not list((home / "bin").iterdir())
    assert Path("in/b.txt").read_text() == TEXTS["b"]


def test_a_place_is_reached_by_no_link(tmp_path: Path) -> None:
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "a/link").symlink_to("b")
    (tmp_path / "a/file").write_text("x")
    base = str(tmp_path)
    with reached(f"{base}/a/b/new", base) as place:
        assert not place.exists()
        os.close(place.open(os.O_WRONLY | os.O_CREAT | os.O_EXCL))
        os.rename(tmp_path / "a/b", tmp_path / "moved")  # what is held stays what it was
        assert place.exists()
    assert (tmp_path / "moved/new").exists()
    for path in (f"{base}/a/link/new", f"{base}/a/file/new", f"{base}/a/none/new", f"{base}-other/x"):
        with pytest.raises(OSError, match=r"link|folder|No such|below"), reached(path, base):
            pass
    with reached(f"{base}/c/d/new", base, make=True) as place:
        assert not place.exists()
    assert (tmp_path / "c/d").is_dir()
