"""`neardup search`: what of a collection is near to one image or text."""

from __future__ import annotations

import json
from dataclasses import asdict

import click

from neardup.adapters.cli import visible


@click.command()
@click.argument("question", metavar="IMAGE|TEXT")
@click.option(
    "--in",
    "data",
    multiple=True,
    required=True,
    metavar="DIR|INDEX",
    help="Files, folders or an index of `neardup index build`; may be repeated.",
)
@click.option("--scheme", help="Scheme of the index.  [default: text or image, whichever it was built with]")
@click.option(
    "-n", "--most", type=click.IntRange(min=1), default=20, show_default=True, help="Matches to show."
)
@click.option(
    "--ignore-colour", is_flag=True, help="Treat an image in clearly different colours as the same one."
)
@click.option(
    "--text-field",
    default="text",
    show_default=True,
    help="Field or column with the text; of several, such as title,body, one text is made.",
)
@click.option("--id-field", help="Field or column with the id.  [default: id where present, else file:line]")
@click.option("--rejected", is_flag=True, help="Also list texts that are similar but not duplicates.")
@click.option("--threads", type=click.IntRange(min=1), help="Threads to use.  [default: all cores]")
@click.option("--json", "as_json", is_flag=True, help="Print JSON lines.")
def command(
    question: str,
    data: tuple[str, ...],
    scheme: str | None,
    most: int,
    ignore_colour: bool,
    text_field: str,
    id_field: str | None,
    rejected: bool,
    threads: int | None,
    as_json: bool,
) -> int:
    """Find what is near an image, a text file, or a text.

    Prints distance, similarity, the reason, and the id, nearest first. A text is listed if `neardup dedupe`
    would take the two for duplicates. What an index returns is read and measured; if that is not possible,
    the line says that it was not verified.
    """
    from neardup.search import reach, search
    from neardup.sources import Reading

    found = search(
        question,
        data,
        scheme=scheme,
        ignore_colour=ignore_colour,
        rejected=rejected,
        threads=threads,
        reading=Reading(text_field=text_field, id_field=id_field),
    )
    if not found:
        where = ", ".join(data)
        click.echo(f"neardup: nothing within {visible(reach(question))} in {visible(where)}", err=True)
    for match in found[:most]:
        if as_json:
            click.echo(json.dumps(asdict(match)))
        else:
            click.echo(f"{match.distance}\t{match.similarity:.4f}\t{match.reason}\t{visible(match.id)}")
    return 0
