"""`neardup label`: asks in the terminal whether two documents are the same, one key a pair."""

from __future__ import annotations

import os
import shutil
import sys
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import click

from neardup.adapters.cli import visible
from neardup.wording import counted

if TYPE_CHECKING:
    from neardup.calibration.model import Suggestion

KEYS: Final = {"s": "same", "d": "different", "u": "unsure", "b": "back", "q": "quit"}
PROMPT: Final = "s same  d different  u unsure  b back  q quit: "
ANSWER: Final = {"s": True, "d": False, "u": None}
# Below this many columns, one text is shown above the other.
NARROW: Final = 60
LEAST: Final = 20
# What ends a session like q: Ctrl-D, and the end of the terminal.
END: Final = ("\x04", "")
WINDOW: Final = 40_000  # letters of a long text that are compared

# A piece of a text, and whether the other text lacks it.
Piece = tuple[str, bool]


@click.command()
@click.argument("inputs", nargs=-1, required=True, metavar="INPUT...")
@click.option(
    "-o",
    "--output",
    "path",
    default="labels.csv",
    show_default=True,
    metavar="PAIRS.csv",
    help="Where the answers go, behind those that it has.",
)
@click.option("--most", type=click.IntRange(min=1), help="Stop after this many answers.")
@click.option(
    "--sample",
    type=click.IntRange(min=2),
    default=20_000,
    show_default=True,
    help="Largest number of documents to sample.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Another seed draws another sample.")
@click.option(
    "--text-field",
    default="text",
    show_default=True,
    help="Field or column with the text; of several, such as title,body or title:2,body, one text is made.",
)
@click.option("--id-field", help="Field or column with the id.  [default: id where present, else file:line]")
@click.option("--format", "kind", help="Format of the input, if its name does not show it.")
@click.option("--html", is_flag=True, help="Take the main text of HTML files.")
@click.option("--threads", type=click.IntRange(min=1), help="Threads to use.  [default: all cores]")
@click.option("--quiet", is_flag=True, help="Show no progress.")
def command(
    inputs: tuple[str, ...],
    path: str,
    most: int | None,
    sample: int,
    seed: int,
    text_field: str,
    id_field: str | None,
    kind: str | None,
    html: bool,
    threads: int | None,
    quiet: bool,
) -> int:
    """Ask whether two documents are the same, for `neardup calibrate --labels` to learn from.

    Shows two similar documents side by side, what differs marked, and takes one key. Each answer is on the
    disk before the next question. Ask again with the same file and it goes on where it stopped: no pair
    comes twice.
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise click.UsageError(
            "label asks in a terminal; write pairs by hand as id1,id2,1 or id1,id2,0 a line"
        )
    from neardup.adapters.cli.terminal import Terminal
    from neardup.calibration.labelling import Session, check_pool, pool_of
    from neardup.files import check_path
    from neardup.sources import open_source

    check_path(path)
    source = open_source(
        list(inputs), text_field=text_field, id_field=id_field, format=kind, html=html, unique=True
    )
    pool = pool_of(source, sample=sample, seed=seed, threads=threads, observer=Terminal(quiet=quiet))
    check_pool(pool)
    session = Session.over(pool, path)
    if session.answers:
        click.echo(f"{counted(session.answers, 'pair')} answered before, in {visible(path)}")
    with keys() as read:
        while (pair := session.next()) is not None and (most is None or len(session.given) < most):
            show(pair, session.answers + 1)
            key = _asked(read)
            if key == "q":
                break
            if key == "b":
                click.echo("the pair before again" if session.undo() else "there is no answer to take back")
            else:
                session.answer(ANSWER[key])
    if pair is None:
        click.echo("there is no other pair to ask about")
    _tell(session.answers, (session.count(True), session.count(False), session.count(None)), path, inputs)
    return 0


def _tell(answers: int, counts: tuple[int, int, int], path: str, inputs: tuple[str, ...]) -> None:
    import shlex

    same, different, unsure = counts
    click.echo(
        f"{counted(answers, 'answer')} in {visible(path)}: "
        f"{same:,} the same, {different:,} different, {unsure:,} unsure"
    )
    if answers:
        named = " ".join(shlex.quote(one) for one in inputs)
        click.echo(
            f"to learn from them: neardup calibrate {visible(named)} --labels {visible(shlex.quote(path))} "
            "--rule rule.toml"
        )


def _asked(read: Callable[[], str]) -> str:
    """The key that was pressed, of those that mean something."""
    click.echo(PROMPT, nl=False)
    while True:
        key = read()
        if key in END:
            key = "q"
        if key.lower() in KEYS:
            click.echo(KEYS[key.lower()])
            return key.lower()


@contextmanager
def keys() -> Iterator[Callable[[], str]]:
    """What reads one key, not waiting for a line; the terminal is as it was afterwards."""
    try:
        import termios
        import tty
    except ImportError:  # Windows
        from importlib import import_module

        yield import_module("msvcrt").getwch
        return
    waiting: list[str] = []
    terminal = sys.stdin.fileno()

    def read() -> str:
        while not waiting:
            data = os.read(terminal, 1 << 10)
            if not data:
                return ""
            # Arrows and other keys send several letters, of which none is an answer.
            waiting.extend("" if data.startswith(b"\x1b") else data.decode("utf-8", "replace"))
        return waiting.pop(0)

    before = termios.tcgetattr(terminal)
    try:
        tty.setcbreak(terminal)
        yield read
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)


# --- two texts ------------------------------------------------------------------------------------------


def show(pair: Suggestion, number: int) -> None:
    """Print a question."""
    width = max(LEAST, shutil.get_terminal_size().columns - 1)
    colour = not os.environ.get("NO_COLOR") and os.environ.get("TERM", "dumb") != "dumb"
    for line in laid_out(pair, number, width, colour=colour):
        click.echo(line, color=colour)


def laid_out(pair: Suggestion, number: int, width: int, *, colour: bool) -> list[str]:
    """The lines of a question, none wider than *width*."""
    from neardup.diffs import excerpt, word_diff

    pieces = excerpt(word_diff(*(text[:WINDOW] for text in pair.texts)))
    sides: list[list[Piece]] = [[], []]
    for piece in pieces:
        for side, text, cut in zip(
            sides, (piece.left, piece.right), (piece.left_cut, piece.right_cut), strict=True
        ):
            if piece.op == "cut":
                side += [(f" [... {cut:,} words ...] ", False)] if cut else []
            elif text:
                side.append((text, piece.op == "change"))
    titles = [f"{name}: {visible(id)}" for name, id in (("left", pair.one), ("right", pair.other))]
    head = f"-- {number:,} -- similarity {pair.similarity:.3f} --"
    found = ["", *wrapped([(head, False)], width, colour=False)]
    if width < NARROW:
        for title, side in zip(titles, sides, strict=True):
            found += [
                *wrapped([(title, False)], width, colour=False),
                *wrapped(side, width, colour=colour),
                "",
            ]
        return found
    column = (width - 3) // 2
    columns = [
        [*wrapped([(title, False)], column, colour=False), "", *wrapped(side, column, colour=colour)]
        for title, side in zip(titles, sides, strict=True)
    ]
    for row in range(max(map(len, columns))):
        left, right = (lines[row] if row < len(lines) else "" for lines in columns)
        found.append(f"{left}{' ' * (column - cells(left))} | {right}".rstrip())
    return [*found, ""]


ON, OFF = "\x1b[7m", "\x1b[0m"


def wrapped(pieces: list[Piece], width: int, *, colour: bool) -> list[str]:
    """Pieces as lines of at most *width* columns; what is marked is reversed, or in brackets without
    colour."""
    letters: list[tuple[str, bool]] = []
    for text, marked in pieces:
        body = text.rstrip()
        for at, letter in enumerate(text):
            inside = marked and at < len(body)
            if inside and at == 0 and not colour:
                letters.append(("[", True))
            shown = letter if letter == "\n" else " " if letter == "\t" else visible(letter)
            letters += [(one, inside) for one in shown]
            if inside and at + 1 == len(body) and not colour:
                letters.append(("]", True))
    lines: list[str] = []
    line: list[tuple[str, bool]] = []
    for letter, marked in letters:
        if letter == "\n":
            lines.append(_joined(line, colour))
            line = []
            continue
        if cells("".join(one for one, _ in line)) + cells(letter) > width:
            space = next((at for at in range(len(line) - 1, 0, -1) if line[at][0] == " "), None)
            rest = [] if space is None else line[space + 1 :]
            lines.append(_joined(line if space is None else line[:space], colour))
            line = rest
        line.append((letter, marked))
    return [*lines, _joined(line, colour)]


def _joined(line: list[tuple[str, bool]], colour: bool) -> str:
    if not colour:
        return "".join(letter for letter, _ in line)
    text, on = "", False
    for letter, marked in line:
        if marked != on:
            text += ON if marked else OFF
            on = marked
        text += letter
    return text + OFF if on else text


def cells(text: str) -> int:
    """How many columns *text* takes: wide letters two, marks that sit on others none.

    >>> cells("abc"), cells("漢字"), cells("e\\u0301"), cells("\\x1b[7ma\\x1b[0m")
    (3, 4, 1, 1)
    """
    text = text.replace(ON, "").replace(OFF, "")
    return sum(
        0 if unicodedata.combining(letter) else 2 if unicodedata.east_asian_width(letter) in "WF" else 1
        for letter in text
    )
