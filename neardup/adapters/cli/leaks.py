"""`neardup leaks`: is a test set in a training set, as whole documents or as quotations?"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from neardup.adapters.cli import LEAKED, QUARANTINED, REFUSED, check_room, share, visible
from neardup.quotations.defaults import FORMATS, MOST, WORDS
from neardup.wording import counted

if TYPE_CHECKING:
    from neardup.sources import Source

SHOWN = 5


@click.command()
@click.argument("train", metavar="TRAIN...", nargs=-1, required=True)
@click.option(
    "--against",
    multiple=True,
    required=True,
    metavar="TEST",
    help="The test set: a file or folder; may be given again.",
)
@click.option("-o", "--out", metavar="DIR", help="Write the tables, a page and a summary to this folder.")
@click.option(
    "--words",
    type=click.IntRange(5, 1000),
    default=WORDS,
    show_default=True,
    help="Fewest words of a passage.",
)
@click.option(
    "--most",
    type=click.IntRange(1, 10_000),
    default=MOST,
    show_default=True,
    help="List a passage in this many training documents; count it in all.",
)
@click.option("--only", type=click.Choice(["documents", "passages"]), help="Look for one of the two only.")
@click.option("--similarity", type=share, metavar="S", help="Least similarity of whole documents.")
@click.option("--verify", default="default", show_default=True, metavar="RULE", help="As dedupe --verify.")
@click.option("--fail-on-leaks", is_flag=True, help="Exit with 7 if anything is found.")
@click.option(
    "--text-field",
    default="text",
    show_default=True,
    help="Field or column with the text; of several, such as title,body or title:2,body, one text is made.",
)
@click.option("--id-field", help="Field or column with the id.  [default: id where present, else file:line]")
@click.option("--format", "kind", help="Format of the inputs, if their names do not show it.")
@click.option("--html", is_flag=True, help="Take the main text of HTML files.")
@click.option(
    "--table", type=click.Choice(FORMATS), default=FORMATS[0], show_default=True, help="Format of the tables."
)
@click.option("--threads", type=click.IntRange(min=1), help="Threads to use.  [default: all cores]")
@click.option("--overwrite", is_flag=True, help="Replace the results of another search in the folder.")
@click.option("--quiet", is_flag=True, help="Show no progress.")
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
def command(
    train: tuple[str, ...],
    against: tuple[str, ...],
    out: str | None,
    words: int,
    most: int,
    only: str | None,
    similarity: float | None,
    verify: str,
    fail_on_leaks: bool,
    text_field: str,
    id_field: str | None,
    kind: str | None,
    html: bool,
    table: str,
    threads: int | None,
    overwrite: bool,
    quiet: bool,
    as_json: bool,
) -> int:
    """Find what of a test set is in the training set TRAIN: whole documents, and quoted passages.

    The test set is held in memory; TRAIN is read in batches and may be of any size. Whole documents are
    compared as dedupe compares them. Passages are runs of words that both have, exactly, with their places.
    """
    check_room()
    from neardup.adapters.cli.terminal import Terminal
    from neardup.contents import TEXT, content_for
    from neardup.errors import InvalidValue, RefusedInput
    from neardup.quotations.search import Asked, search, settings_of
    from neardup.quotations.writing import check_out, write_leaks
    from neardup.sources import Reading, open_source
    from neardup.types import PROTECTED

    if out is not None:
        check_out(out, table, overwrite=overwrite)
    for paths in (train, against):
        if content_for(list(paths), format=kind) != TEXT:
            raise InvalidValue("leaks compares texts, and these are images; use dedupe with --protect")
    reading = Reading(text_field=text_field, id_field=id_field, format=kind, html=html)
    asked = Asked(
        train=open_source(list(train), reading, unique=True),
        test=open_source(list(against), reading, unique=True, prefix=PROTECTED),
        words=words,
        most=most,
        documents=only != "passages",
        passages=only != "documents",
        settings=settings_of(similarity, verify),
        threads=threads,
    )
    found = search(asked, Terminal(quiet=quiet))
    for source, paths in ((asked.train, train), (asked.test, against)):
        if not source.documents:
            named = repr(paths[0]) if len(paths) == 1 else counted(len(paths), "input")
            raise RefusedInput(f"no document came from {named}{_why(source)}; nothing was compared")
    if out is not None:
        inputs = {"train": list(train), "against": list(against)}
        write_leaks(found, out, format=table, overwrite=overwrite, inputs=inputs)
    summary = found.summary
    if as_json:
        click.echo(json.dumps(dict(summary)))
    else:
        click.echo(_found(summary))
        for row in found.leaks.slice(0, SHOWN).to_pylist():
            click.echo(f"  {visible(_line(row))}")
        if found.leaks.num_rows > SHOWN:
            click.echo(f"  ... {found.leaks.num_rows - SHOWN:,} more")
    if summary["passages_not_listed"]:
        more = counted(summary["passages_not_listed"], "more passage is", "more passages are")
        click.echo(
            f"neardup: {more} counted, not listed: over {most} training documents share them", err=True
        )
    if out is not None and not quiet:
        click.echo(f"neardup: {visible(os.path.join(out, 'report.html'))} shows what was found", err=True)
    sources = (asked.train, asked.test)
    for one in (bad for source in sources for bad in source.refused):
        click.echo(f"neardup: refused {visible(one.file)}: {visible(one.reason)}", err=True)
    if summary["bad"]:
        click.echo(
            f"neardup: {counted(summary['bad'], 'bad record was', 'bad records were')} left out", err=True
        )
    if fail_on_leaks and found.found:
        return LEAKED
    return REFUSED if any(one.refused for one in sources) else QUARANTINED if summary["bad"] else 0


def _why(source: Source) -> str:
    """Why there are no documents, if anything says it."""
    if source.refused:
        return f": it {source.refused[0].reason}"
    return f": {counted(source.bad, 'record is bad', 'records are bad')}" if source.bad else ""


def _found(summary: Mapping[str, Any]) -> str:
    """The result in one line."""
    leaked = summary["test_leaked"]
    verb = "is" if leaked == 1 else "are"
    are = f"{leaked:,} of {counted(summary['test_documents'], 'test document')} {verb}"
    hows = {
        "documents": f"{summary['test_documents_whole']:,} as a whole",
        "passages": f"{summary['test_documents_quoted']:,} in passages of {summary['words']} words or more",
    }
    how = ", ".join(hows[one] for one in summary["looked_for"])
    where = f"{summary['train_leaking']:,} of {counted(summary['train_documents'], 'training document')}"
    return f"{are} in the training set: {how}; {where} share something"


def _line(row: dict[str, object]) -> str:
    if row["kind"] == "document":
        return f"{row['test']} is {row['train']}: {row['reason']}"
    text = " ".join(str(row["passage"]).split())
    shown = text if len(text) <= 60 else text[:57] + "..."
    places = (f"{row[side]} at {row[f'{side}_start']} to {row[f'{side}_end']}" for side in ("test", "train"))
    return f"{', '.join(places)}: {row['words']} words, {shown!r}"
