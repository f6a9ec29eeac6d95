"""The command line: what it prints, how it ends, and that nobody ever sees a traceback."""

from __future__ import annotations

import ctypes
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import neardup as nd
from neardup import _native
from neardup.adapters.cli import COMMANDS, run, visible
from neardup.machine import facts

unix = pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX")
DOCUMENTS = [
    {"id": str(number), "text": f"document number {number} of the collection"} for number in range(50)
]


def neardup(*arguments: str, **more: object) -> subprocess.CompletedProcess[str]:
    """Run it as a user does. Nothing may look like a crash, whatever it was asked."""
    environment = {**os.environ, "PYTHONWARNINGS": "error", **dict(more.pop("env", None) or {})}  # type: ignore[call-overload]
    done: subprocess.CompletedProcess[str] = subprocess.run(
        [sys.executable, "-m", "neardup", *arguments],
        capture_output="stdout" not in more,
        stderr=subprocess.PIPE if "stdout" in more else None,
        encoding="utf-8",
        errors="surrogateescape",
        timeout=60,
        env=environment,
        **more,  # type: ignore[call-overload]
    )
    for sign in ("Traceback", "panicked", "internal error", "Exception ignored"):
        assert sign not in done.stderr
    return done


def refused(done: subprocess.CompletedProcess[str], code: int) -> str:
    """The one line that a command ends with when it did not do its work."""
    assert done.returncode == code, done.stderr
    assert re.fullmatch(r"neardup: [^\n]+\n", done.stderr)
    return done.stderr


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.jsonl"
    path.write_text("".join(json.dumps(document) + "\n" for document in DOCUMENTS))
    return path


# --- help ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], []])
def test_help_lists_every_command(arguments: list[str]) -> None:
    done = neardup(*arguments)
    assert done.returncode == 0
    assert done.stderr == ""
    for name, summary in COMMANDS.items():
        assert re.search(rf"^  {name} +{re.escape(summary[:30])}", done.stdout, re.MULTILINE)


@pytest.mark.parametrize("name", sorted(COMMANDS))
@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_every_command_has_help(name: str, flag: str) -> None:
    done = neardup(name, flag)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"Usage: neardup {name} ")


def test_the_version_is_the_packages() -> None:
    assert neardup("--version").stdout == f"neardup, version {nd.__version__}\n"
    assert neardup("-V").stdout == f"neardup, version {nd.__version__}\n"


@pytest.mark.parametrize("level", [None, "scalar"])
def test_verbose_tells_what_the_core_uses_on_this_machine(level: str | None) -> None:
    env = {} if level is None else {"NEARDUP_SIMD": level}
    done = neardup("--version", "--verbose", env=env)
    assert (done.returncode, done.stderr) == (0, "")
    first, *lines = done.stdout.splitlines()
    assert first == f"neardup, version {nd.__version__}"
    shown = dict(line.split(maxsplit=1) for line in lines)
    assert shown.pop("instructions").split()[0] == (level or _native.simd_level())
    assert shown == {name: value for name, value in facts().items() if name != "instructions"}


def test_verbose_without_version_is_a_mistake() -> None:
    done = neardup("--verbose", "schemes")
    assert (done.returncode, done.stdout) == (2, "")
    assert "neardup --version --verbose" in done.stderr


# --- schemes -------------------------------------------------------------------------------------------


def test_schemes_lists_the_table_for_people_and_for_programs() -> None:
    names = {"chars", "text", "vector", "words"}
    lines = neardup("schemes").stdout.splitlines()
    assert names <= {line.split()[0] for line in lines}
    assert names <= json.loads(neardup("schemes", "--json").stdout).keys()


def test_one_scheme_is_printed_with_its_rules() -> None:
    shown = dict(line.split(maxsplit=1) for line in neardup("schemes", "text").stdout.splitlines())
    assert shown["digest"] == nd.scheme("text").digest
    assert shown["tie"].startswith("zero: ")
    assert shown["empty"].startswith("none: ")
    assert shown["bit_order"].startswith("little: ")
    assert json.loads(neardup("schemes", "text", "--json").stdout)["digest"] == shown["digest"]


def test_a_scheme_written_as_toml_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "own.toml"
    file.write_text(neardup("schemes", "words:2", "--toml").stdout)
    assert nd.scheme(file) == nd.scheme("words:2")
    assert "words:2" in neardup("schemes", str(file)).stdout


# --- distance ------------------------------------------------------------------------------------------


def test_distance_of_texts() -> None:
    done = neardup("distance", "the quick brown fox", "the quick brown fox!")
    assert done.stdout == "0 of 128 bits differ; estimated similarity 1.000\n"
    facts = json.loads(neardup("distance", "one text", "another", "--scheme", "chars:3", "--json").stdout)
    left, right = nd.parse(facts["left"]), nd.parse(facts["right"])
    assert facts["bits"] == 64
    assert facts["distance"] == nd.distance(left, right) > 0
    assert facts["similarity"] == pytest.approx(nd.similarity(facts["distance"], 64), abs=1e-6)


def test_distance_of_fingerprints_and_of_files(tmp_path: Path) -> None:
    done = neardup("distance", "6491fb1f8663d51f", "7243037217045511711", "--fingerprints", "--bits", "64")
    expected = nd.distance(0x6491FB1F8663D51F, 7243037217045511711)
    assert done.stdout.startswith(f"{expected} of 64 bits differ")
    for name in ("one", "two"):
        (tmp_path / name).write_bytes(b"the same bytes, not all of them UTF-8: \xff")
    done = neardup("distance", "--files", str(tmp_path / "one"), str(tmp_path / "two"))
    assert done.stdout.startswith("0 of 128")


# --- how it ends ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fingreprint"], "No such command 'fingreprint'"),
        (["--nonsense"], "No such option"),
        (["distance", "one"], "Missing argument 'RIGHT'"),
        (["distance", "a", "b", "--scheme", "txet"], "unknown scheme 'txet'; known: ahash, chars,"),
        (["distance", "a", "b", "--bits", "0"], "bits must be from 1 to 65536, not 0"),
        (["distance", "a", "b", "--bits", "wide"], "'wide' is not a valid integer"),
        (["distance", "a", "b", "--scheme", "chars:0"], "write chars:N with N from 1 to 64"),
        (["distance", "a", "b", "--scheme", "vector"], "takes arrays of numbers"),
        (["distance", "a", "b", "--fingerprints", "--files"], "choose one of"),
        (["distance", "zz", "1", "--fingerprints"], "'zz' is not a 128-bit fingerprint"),
        (["distance", "...", "b"], "LEFT has no information in it"),
        (["schemes", "txet"], "unknown scheme 'txet'"),
        (["schemes", "--toml"], "--toml writes one scheme; name it"),
        (["schemes", "text", "--toml", "--json"], "choose one of --json and --toml"),
        (["fingerprint", "--scheme", "txet"], "unknown scheme 'txet'"),
        (["fingerprint", "-o", "out.docx"], "out.docx"),
        (["fingerprint", "--threads", "0"], "0 is not in the range"),
    ],
)
def test_a_wrong_argument_is_told_in_one_line_and_ends_with_2(arguments: list[str], message: str) -> None:
    assert message in refused(neardup(*arguments, stdin=subprocess.DEVNULL), 2)


def test_an_input_that_is_not_there_ends_with_4(tmp_path: Path) -> None:
    missing = str(tmp_path / "missing.toml")
    assert "missing.toml" in refused(neardup("schemes", missing), 4)
    assert "missing.toml" in refused(neardup("distance", "--files", missing, missing), 4)
    assert "missing.toml" in refused(neardup("distance", "a", "b", "--scheme", missing), 4)
    assert "missing.toml" in refused(neardup("fingerprint", missing), 4)
    assert "is not a regular file" in refused(neardup("distance", "--files", str(tmp_path), missing), 4)


def test_a_damaged_scheme_file_is_told_in_one_line(tmp_path: Path) -> None:
    file = tmp_path / "scheme.nds"
    nd.scheme("text").fit(["a text", "a text"]).save(file)
    content = bytearray(file.read_bytes())
    content[-20] ^= 1
    file.write_bytes(content)
    assert "its checksum does not match" in refused(neardup("distance", "a", "b", "--scheme", str(file)), 2)


def test_bad_records_end_with_3_and_good_ones_are_there(corpus: Path, tmp_path: Path) -> None:
    with corpus.open("a") as file:
        file.write("{ no json\n")
    out = tmp_path / "out.jsonl"
    done = neardup("fingerprint", str(corpus), "-o", str(out))
    assert done.returncode == 3
    assert [json.loads(line)["id"] for line in out.read_text().splitlines()] == [
        row["id"] for row in DOCUMENTS
    ]


@unix
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("arguments", [["schemes"], ["--help"], ["distance", "a", "b", "--json"]])
def test_a_full_disk_ends_with_5(arguments: list[str]) -> None:
    with open("/dev/full", "w") as full:
        done = neardup(*arguments, stdout=full)
    assert "No space left on device" in refused(done, 5)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 64 KB of which nearly nothing is free."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "neardup", str(folder)]
    try:
        done = subprocess.run(mount, capture_output=True, text=True)
    except FileNotFoundError:
        pytest.skip("there is no program to mount a disk with")
    if done.returncode:
        pytest.skip(f"mounting a disk is not allowed here: {done.stderr.strip()}")
    try:
        (folder / "other.bin").write_bytes(b"x" * 56 * 1024)
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@unix
@pytest.mark.parametrize("there", ["", "the report of before"])
def test_a_report_to_a_full_disk_is_one_line_and_damages_nothing(
    corpus: Path, tmp_path: Path, small_disk: Path, there: str
) -> None:
    report = small_disk / "report.html"
    if there:
        report.write_text(there)
    out = tmp_path / "out"
    done = neardup("dedupe", str(corpus), "-o", str(out), "--quiet", "--overwrite", "--report", str(report))
    assert "No space left on device" in refused(done, 5)
    assert (report.read_text() if report.exists() else "") == there
    assert sorted(os.listdir(small_disk)) == ["other.bin"] + ["report.html"] * bool(there)
    # Nothing is lost: the same command with room for the report writes it.
    done = neardup("dedupe", str(corpus), "-o", str(out), "--quiet", "--report", str(tmp_path / "page.html"))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "page.html").read_text().endswith("</html>")


@unix
def test_texts_that_cannot_be_set_aside_are_one_line_with_the_way_out(
    tmp_path: Path, small_disk: Path
) -> None:
    path = tmp_path / "captures.jsonl"
    rows = [{"url": "p", "date": f"{2000 + at}", "text": f"capture {at} " + "x" * 200_000} for at in range(9)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    few = {"env": {"TMPDIR": str(small_disk)}}
    done = neardup("timeline", str(path), "--quiet", "--memory", "1M", **few)
    told = refused(done, 5)
    assert f"no room to set texts aside in {str(small_disk)!r}: No space left on device" in told
    assert "raise --memory" in told
    assert neardup("timeline", str(path), "--quiet", **few).returncode == 0


def give_up_rights() -> None:
    """From the next program on root may read no more than others: the two rights to pass over modes go."""
    drop_from_bounding_set = 24
    for right in (1, 2):
        if ctypes.CDLL(None).prctl(drop_from_bounding_set, right, 0, 0, 0):
            raise OSError("the right to read everything cannot be given up")


@unix
def test_a_file_without_permission_ends_with_5(tmp_path: Path) -> None:
    if os.geteuid() == 0 and sys.platform != "linux":
        pytest.skip("root may read everything")
    file = tmp_path / "secret"
    file.write_text("text")
    file.chmod(0)
    given_up = give_up_rights if os.geteuid() == 0 else None
    refused(neardup("distance", "--files", str(file), str(file), preexec_fn=given_up), 5)


@unix
def test_a_closed_standard_output_is_no_crash() -> None:
    command = f"{sys.executable} -m neardup schemes >&-"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=60)
    assert "Traceback" not in done.stderr
    assert done.returncode in (0, 5)


@unix
@pytest.mark.parametrize("arguments", [["schemes"], ["schemes", "text"], ["fingerprint"]])
def test_a_reader_that_goes_away_is_no_error(arguments: list[str], corpus: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = neardup(*arguments, *([str(corpus)] if arguments == ["fingerprint"] else []), stdout=writing)
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (0, "")


@unix
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_it_with_its_number_and_leaves_no_half_file(
    number: signal.Signals, code: int, tmp_path: Path
) -> None:
    out = tmp_path / "out.jsonl"
    child = subprocess.Popen(
        [sys.executable, "-m", "neardup", "fingerprint", "-", "-o", str(out)],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert child.stdin is not None
    # More than a pipe holds: when it is written, the command is reading.
    child.stdin.write(b"".join(json.dumps(row).encode() + b"\n" for row in DOCUMENTS * 200))
    child.stdin.flush()
    child.send_signal(number)
    child.stdin.close()
    child.stdin = None
    _, err = child.communicate(timeout=60)
    assert b"Traceback" not in err
    if child.returncode == 0:  # it was faster than the signal
        assert len(out.read_text().splitlines()) == len(DOCUMENTS) * 200
    else:
        assert child.returncode == code
        assert list(tmp_path.iterdir()) == []


# --- what it prints ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a\x1b[31mb", "a\nb", "a\x07b", "a\u202eb", "a\x9bb", "a\r"])
def test_control_characters_do_not_reach_the_terminal(name: str) -> None:
    for done in (
        neardup("schemes", name),
        neardup("distance", "a", "b", "--scheme", f"./{name}"),
        neardup(name),
    ):
        line = refused(done, done.returncode)
        assert all(letter.isprintable() for letter in line[:-1])


def test_visible_escapes_what_a_terminal_would_obey() -> None:
    assert visible("plain ümläut 漢字") == "plain ümläut 漢字"
    assert visible("\x1b]0;title\x07\n\u202e") == "\\x1b]0;title\\x07\\n\\u202e"


@unix
def test_an_argument_that_is_no_utf8_is_no_crash() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "neardup", "distance", b"caf\xe9", b"caf\xe9"], capture_output=True, timeout=60
    )
    assert done.returncode == 0
    assert done.stdout.startswith(b"0 of 128")


@unix
@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_terminal_that_knows_few_letters_is_no_crash(encoding: str, tmp_path: Path) -> None:
    file = tmp_path / "own.toml"
    file.write_text('name = "naive 漢字"\n', encoding="utf-8")
    few = {"PYTHONIOENCODING": encoding, "LC_ALL": "C", "PYTHONUTF8": "0"}
    done = neardup("schemes", str(file), env=few)
    assert (done.returncode, done.stderr) == (0, "")
    assert re.search(r"^name +naive (漢字|\\u6f22\\u5b57)$", done.stdout, re.MULTILINE)
    assert neardup("schemes", "naïve 漢字", env=few).returncode == 2


def test_the_secret_of_a_keyed_scheme_is_nowhere_in_the_output(tmp_path: Path) -> None:
    file = tmp_path / "keyed.toml"
    nd.scheme("text", hash="blake3-keyed", key="a long secret").save(file)
    done = neardup("schemes", str(file))
    assert "needs a secret" in refused(done, 2)
    assert "a long secret" not in done.stdout + done.stderr + file.read_text()


def test_a_system_without_threads_is_one_clear_line(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(thread: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    assert run(["dedupe", str(corpus), "-o", str(tmp_path / "out")]) == 5
    assert capsys.readouterr().err.startswith("neardup: the system gives no thread")
