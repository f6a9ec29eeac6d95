"""`neardup timeline`: what became of each page from one capture to the next."""

from __future__ import annotations

import json

import click

from neardup.adapters.cli import QUARANTINED, REFUSED, bytes_of, check_room, share, visible
from neardup.wording import counted


@click.command()
@click.argument("inputs", nargs=-1, required=True, metavar="INPUT...")
@click.option(
    "--within", default="url", show_default=True, metavar="FIELD", help="Field that names the page."
)
@click.option(
    "--order", default="date", show_default=True, metavar="FIELD", help="Field with the date of a capture."
)
@click.option(
    "--similarity",
    type=share,
    metavar="S|P%",
    default="0.99",
    show_default=True,
    help="Captures at least so similar to the first one of a state have that state.",
)
@click.option(
    "--verify",
    metavar="RULE",
    default="default",
    show_default=True,
    help="The rule that decides, as in dedupe; none asks for the same words.",
)
@click.option(
    "-o",
    "--output",
    default="-",
    metavar="OUT",
    help="Where the rows go: .jsonl, .parquet, .arrow or .csv.  [default: standard output, as JSON Lines]",
)
@click.option("--report", metavar="R.html", help="Write a page that shows how the pages changed.")
@click.option("--scheme", "name", help="Name or file of the scheme of the fingerprints.  [default: text]")
@click.option(
    "--text-field",
    default="text",
    show_default=True,
    help="Field or column with the text; of several, such as title,body or title:2,body, one text is made.",
)
@click.option("--id-field", help="Field or column with the id.  [default: id where present, else file:line]")
@click.option("--format", "kind", help="Format of the input, if its name does not show it.")
@click.option("--overwrite", is_flag=True, help="Replace files that exist.")
@click.option(
    "--quarantine", "quarantine_path", metavar="FILE", help="Keep bad records there, as JSON Lines."
)
@click.option("--strict-input", is_flag=True, help="Stop at the first bad record; the same as --max-bad 0.")
@click.option("--max-bad", metavar="N|P%", help="Stop when more records than this are bad.")
@click.option(
    "--memory", default="256M", show_default=True, help="Memory for texts; the rest goes to a temporary file."
)
@click.option("--threads", type=click.IntRange(min=1), help="Threads to use.  [default: all cores]")
@click.option("--quiet", is_flag=True, help="Show no progress.")
@click.option("--json", "as_json", is_flag=True, help="Print a summary as JSON on stderr.")
def command(
    inputs: tuple[str, ...],
    within: str,
    order: str,
    similarity: float,
    verify: str,
    output: str,
    report: str | None,
    name: str | None,
    text_field: str,
    id_field: str | None,
    kind: str | None,
    overwrite: bool,
    quarantine_path: str | None,
    strict_input: bool,
    max_bad: str | None,
    memory: str,
    threads: int | None,
    quiet: bool,
    as_json: bool,
) -> int:
    """Compare the captures of each page by time: how alike, which state, what changed.

    INPUT is WARC, JSONL, Parquet, CSV or Arrow, plain or compressed; - is standard input. A row is written
    for each capture. Captures that say the same have one state; a state that comes back keeps its number.
    """
    check_room()
    from neardup.adapters.cli.terminal import Terminal
    from neardup.files import check_free
    from neardup.sinks.quarantine import Quarantine
    from neardup.sinks.tables import check_sink, open_sink
    from neardup.sources import ANY, Tolerance, open_source
    from neardup.timelines import (
        SCHEMA,
        Choices,
        Shown,
        page_scheme,
        pages_of,
        table,
        write_page,
    )

    choices = Choices(within=within, order=order, similarity=similarity, verify=verify)
    scheme = page_scheme(name)
    if output != "-":
        check_sink(output)
        check_free(output, overwrite=overwrite)
    if report is not None:
        check_free(report, overwrite=overwrite)
    tolerance = Tolerance(count=0) if strict_input else ANY if max_bad is None else Tolerance.of(max_bad)
    shown = Shown()
    states = repeated = 0
    with Quarantine(quarantine_path, overwrite=overwrite) as quarantine:
        source = open_source(
            list(inputs),
            text_field=text_field,
            id_field=id_field,
            fields=choices.fields,
            format=kind,
            again=False,
            on_bad=quarantine.add,
            tolerance=tolerance,
        )
        with (
            pages_of(
                source,
                choices,
                scheme,
                on_bad=quarantine.add,
                memory=bytes_of(memory),
                threads=threads,
                observer=Terminal(quiet=quiet),
            ) as pages,
            open_sink(output, SCHEMA, overwrite=overwrite) as sink,
        ):
            for page in pages:
                sink.write(table([page]))
                states += page.states
                repeated += page.repeated
                if report is not None:
                    shown.add(page)
        if report is not None:
            write_page(shown, report, choices, overwrite=overwrite)
    bad = source.bad + pages.left_out
    summary = {
        "pages": pages.count,
        "captures": pages.captures - repeated,
        "repeated": repeated,
        "states": states,
        "bad": bad,
        "refused": [one.file for one in source.refused],
        "skipped": [one.file for one in source.skipped],
        "quarantine": quarantine.path if quarantine.count else None,
    }
    if as_json:
        click.echo(json.dumps(summary), err=True)
    elif not quiet:
        told = f"{counted(pages.captures - repeated, 'capture')} of {counted(pages.count, 'page')}"
        click.echo(f"{told}, {counted(states, 'state')}", err=True)
    for word, rows in (("skipped", source.skipped), ("refused", source.refused)):
        for one in rows:
            click.echo(f"neardup: {word} {visible(one.file)}: {visible(one.reason)}", err=True)
    if bad:
        where = (
            f"they are in {visible(quarantine.path)}" if quarantine.path else "--quarantine FILE keeps them"
        )
        records = source.documents + source.bad
        click.echo(f"neardup: {bad:,} of {counted(records, 'record')} are bad; {where}", err=True)
    return REFUSED if source.refused else QUARANTINED if bad else 0
