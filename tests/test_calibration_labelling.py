"""neardup label: what it asks, and the file with the answers; in a real terminal."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
import termios
from collections.abc import Callable, Iterator
from fcntl import ioctl
from pathlib import Path
from struct import pack
from typing import Any

import pytest

from neardup.adapters.cli.label import PROMPT, cells, laid_out, wrapped
from neardup.calibration import Choices, Suggestion, calibrate, read_answers, read_labels
from neardup.calibration.labelling import Pool, Session, pool_of
from neardup.errors import InvalidValue, LimitReached
from neardup.sources import open_source

from .corpus import collection, write_jsonl


def families(count: int) -> list[dict[str, str]]:
    """Documents of which many are similar."""
    rows = []
    for at in range(count):
        words = f"the report of group {at % 5} says that all is well with house".split()
        words += [f"word{at % 5}x{place}" for place in range(20)]
        words[at % 20] = f"other{at}"
        rows.append({"id": f"d{at}", "text": " ".join(words)})
    return rows


@pytest.fixture(scope="module")
def pool() -> Pool:
    return pool_of(open_source(families(40), unique=True), sample=100)


def asked(session: Session, most: int, answer: Callable[[Suggestion], bool | None]) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    while len(found) < most and (pair := session.next()) is not None:
        found.append((pair.one, pair.other))
        session.answer(answer(pair))
    return found


def is_even(pair: Suggestion) -> bool:
    return int(pair.one[1:]) % 2 == 0


# --- sessions --------------------------------------------------------------------------------------------


def test_no_pair_is_asked_twice_also_not_in_the_next_session(pool: Pool, tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    first = asked(Session.over(pool, path), 25, is_even)
    second = asked(Session.over(pool, path), 10_000, is_even)
    assert len(first) == 25
    assert len({frozenset(pair) for pair in first + second}) == len(pool) == len(first) + len(second)
    assert [(one, other) for one, other, _ in read_answers(path)] == first + second


def test_both_that_are_accepted_and_that_are_not_are_asked(pool: Pool, tmp_path: Path) -> None:
    session, met = Session.over(pool, tmp_path / "labels.csv"), []
    for _ in range(6):
        pair = session.next()
        assert pair is not None
        met.append(pair.accepted)
        session.answer(None)
    assert met == [True, False] * 3


def test_documents_that_were_not_asked_about_come_first(pool: Pool, tmp_path: Path) -> None:
    pairs = asked(Session.over(pool, tmp_path / "labels.csv"), 10, is_even)
    assert len({id for pair in pairs for id in pair}) == 20


def test_an_answer_is_in_the_file_before_the_next_question(
    pool: Pool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, synced = tmp_path / "labels.csv", []
    own = os.fsync
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(os.fstat(handle).st_size) or own(handle))
    session = Session.over(pool, path)
    for same, cell in ((True, "1"), (False, "0"), (None, "?")):
        pair = session.next()
        assert pair is not None
        session.answer(same)
        assert path.read_text().splitlines()[-1] == f"{pair.one},{pair.other},{cell}"
        assert path.stat().st_size in synced  # on the disk, and not only on the way there
    assert path.read_text().splitlines()[0] == "id1,id2,label"
    assert (session.answers, session.count(True), session.count(None)) == (3, 1, 1)


def test_what_was_taken_back_is_asked_again_and_gone_from_the_file(pool: Pool, tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    session = Session.over(pool, path)
    assert not session.undo()
    asked(session, 3, is_even)
    before = path.read_text()
    (last,) = asked(session, 1, is_even)
    assert session.undo()
    assert path.read_text() == before
    pair = session.next()
    assert pair is not None
    assert (pair.one, pair.other) == last
    assert [session.undo() for _ in range(4)] == [True, True, True, False]
    assert session.answers == 0


def test_a_file_that_was_changed_meanwhile_is_not_cut(pool: Pool, tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    session = Session.over(pool, path)
    asked(session, 2, is_even)
    path.write_text(path.read_text() + "x,y,1\n")
    with pytest.raises(LimitReached, match="another program changed"):
        session.undo()
    assert path.read_text().endswith("x,y,1\n")


def test_answers_go_behind_a_file_that_somebody_wrote(pool: Pool, tmp_path: Path) -> None:
    path = tmp_path / "labels.tsv"
    path.write_text("d0\td5\t1\nfrom elsewhere\tx\t0")  # without an end of line
    session = Session.over(pool, path)
    assert session.answers == 2
    (pair,) = asked(session, 1, lambda pair: True)
    assert read_answers(path) == [("d0", "d5", True), ("from elsewhere", "x", False), (*pair, True)]


def test_ids_with_commas_quotes_and_line_ends_are_read_as_they_were(tmp_path: Path) -> None:
    rows = [{**row, "id": f'{row["id"]},"\u2028 of\nline'} for row in families(12)]
    odd = pool_of(open_source(rows, unique=True), sample=100)
    path = tmp_path / "labels.csv"
    pairs = asked(Session.over(odd, path), 3, lambda pair: True)
    assert [(one, other) for one, other, _ in read_answers(path)] == pairs
    assert Session.over(odd, path).answers == 3


def test_white_space_around_an_id_makes_no_other_pair_of_it(tmp_path: Path) -> None:
    rows = [{**row, "id": f" {row['id']} "} for row in families(12)]
    odd, path = pool_of(open_source(rows, unique=True), sample=100), tmp_path / "labels.csv"
    first = asked(Session.over(odd, path), 5, lambda pair: True)
    second = asked(Session.over(odd, path), 1000, lambda pair: True)
    assert len({frozenset(pair) for pair in first + second}) == len(odd) == len(first) + len(second)
    found = calibrate(rows, labels=read_labels(path), choices=Choices(copies=5))
    assert found.labels == len(odd)


def test_the_same_answers_lead_to_the_same_questions(pool: Pool, tmp_path: Path) -> None:
    both = [asked(Session.over(pool, tmp_path / name), 40, is_even) for name in ("a.csv", "b.csv")]
    assert both[0] == both[1]


# --- how it is shown ------------------------------------------------------------------------------------


def question(left: str, right: str, width: int, *, colour: bool = False) -> list[str]:
    return laid_out(Suggestion("a", "b", 0.8123, "", (left, right)), 3, width, colour=colour)


def test_two_texts_are_side_by_side_and_one_above_the_other_where_there_is_no_room() -> None:
    wide = question("the old house", "the new house", 80)
    assert any(re.search(r"the \[old\] house +\| the \[new\] house", line) for line in wide)
    narrow = question("the old house", "the new house", 40)
    assert not any("|" in line for line in narrow)
    assert narrow.index("the [old] house") < narrow.index("the [new] house")


@pytest.mark.parametrize("width", [20, 40, 80, 200])
@pytest.mark.parametrize("colour", [False, True])
def test_no_line_is_wider_than_the_terminal(width: int, *, colour: bool) -> None:
    left = "漢字 and very" + "long" * 40 + " words\twith café\u0301 " * 5
    for line in question(left, left.replace("very", "quite"), width, colour=colour):
        assert cells(line) <= width, line


def test_what_would_command_a_terminal_is_escaped() -> None:
    hostile = "clear \x1b[2J and \x07 bell \u202e turned \x9b31m"
    shown = "\n".join(question(hostile, hostile + " more", 80))
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", shown)
    assert r"\x1b[2J" in shown


def test_what_differs_is_reversed_with_colour_and_ends_with_the_line() -> None:
    lines = wrapped([("same ", False), ("other words here", True)], 12, colour=True)
    assert lines[0] == "same \x1b[7mother\x1b[0m"
    assert all(line.count("\x1b[7m") == line.count("\x1b[0m") for line in lines)


# --- a real terminal -----------------------------------------------------------------------------------


class Screen:
    """A process in a terminal of its own."""

    def __init__(self, arguments: list[str], columns: int = 100, **more: str) -> None:
        self.terminal, inner = pty.openpty()
        ioctl(inner, termios.TIOCSWINSZ, pack("HHHH", 40, columns, 0, 0))
        self.before = termios.tcgetattr(inner)
        self.inner = inner
        command = [sys.executable, "-m", "neardup", "label", *arguments]
        environment = {**os.environ, "TERM": "xterm", **more}
        self.process = subprocess.Popen(
            command, stdin=inner, stdout=inner, stderr=inner, env=environment, start_new_session=True
        )
        self.seen = ""

    def until(self, what: str) -> str:
        """What it shows up to *what*."""
        while what not in self.seen:
            ready, _, _ = select.select([self.terminal], [], [], 60)
            assert ready, f"it shows no {what!r}: {self.seen!r}"
            self.seen += os.read(self.terminal, 1 << 16).decode("utf-8", "replace")
        shown, _, self.seen = self.seen.partition(what)
        return shown

    def press(self, keys: str) -> None:
        os.write(self.terminal, keys.encode())

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.inner)
        os.close(self.terminal)


@pytest.fixture
def screen(tmp_path: Path) -> Iterator[Callable[..., Screen]]:
    corpus = write_jsonl(tmp_path / "a.jsonl", families(12))
    opened: list[Screen] = []

    def start(*arguments: Any, **more: Any) -> Screen:
        opened.append(
            Screen([str(corpus), "-o", str(tmp_path / "labels.csv"), "--quiet", *arguments], **more)
        )
        return opened[-1]

    yield start
    for one in opened:
        one.close()


def test_one_key_answers_a_pair_and_the_next_session_goes_on(
    screen: Callable[..., Screen], tmp_path: Path
) -> None:
    first = screen()
    shown = first.until(PROMPT)
    assert "-- 1 --" in shown
    assert "\x1b[7m" in shown
    first.press("s")
    assert first.until(PROMPT).startswith("same")
    first.press("x\x1b[A d")  # what means nothing, an arrow among it, is passed over
    first.until("different")
    first.until(PROMPT)
    first.press("b")
    first.until("the pair before again")
    first.until(PROMPT)
    first.press("u")
    first.until("unsure")
    first.until(PROMPT)
    first.press("q")
    assert "2 answers" in first.until("to learn from them")
    assert first.process.wait(60) == 0
    assert [same for *_, same in read_answers(tmp_path / "labels.csv")] == [True, None]
    second = screen(NO_COLOR="1", columns=50)
    shown = second.until(PROMPT)
    assert "2 pairs answered before" in shown
    assert "-- 3 --" in shown
    assert "\x1b" not in shown
    assert " | " not in shown
    second.press("\x04")
    assert second.process.wait(60) == 0


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_leaves_the_terminal_as_it_was_and_the_answers_in_the_file(
    screen: Callable[..., Screen], tmp_path: Path, sent: signal.Signals, code: int
) -> None:
    one = screen()
    one.until(PROMPT)
    one.press("d")
    one.until(PROMPT)
    one.process.send_signal(sent)
    assert one.process.wait(60) == code
    assert termios.tcgetattr(one.inner) == one.before
    assert [same for *_, same in read_answers(tmp_path / "labels.csv")] == [False]


def test_without_a_terminal_it_says_what_to_do(tmp_path: Path) -> None:
    corpus = write_jsonl(tmp_path / "a.jsonl", collection(4))
    command = [sys.executable, "-m", "neardup", "label", str(corpus)]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "asks in a terminal" in done.stderr


def test_where_nothing_is_similar_there_is_nothing_to_ask() -> None:
    from neardup.calibration.labelling import check_pool

    with pytest.raises(InvalidValue, match="nothing needs a rule"):
        check_pool(
            pool_of(open_source([{"id": "a", "text": "one two"}, {"id": "b", "text": "three"}]), sample=10)
        )
