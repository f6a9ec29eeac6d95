"""`neardup search`: what of a collection is near to one picture or text."""

from __future__ import annotations

import json
from dataclasses import asdict

import click

from neardup.adapters.cli import visible


@click.command()
@click.argument("question", metavar="IMAGE|TEXT")
@click.option(
    "--in", "data", multiple=True, required=True, metavar="DIR", help="Where to search; may be repeated."
)
@click.option(
    "-n", "--most", type=click.IntRange(min=1), default=20, show_default=True, help="Matches to show."
)
@click.option("--threads", type=click.IntRange(min=1), help="Threads to use.  [default: all cores]")
@click.option("--json", "as_json", is_flag=True, help="Print JSON lines.")
def command(question: str, data: tuple[str, ...], most: int, threads: int | None, as_json: bool) -> int:
    """Find what is near to a picture, a text file, or a text.

    Prints distance, similarity, what leads from one to the other, and the id, the nearest first.
    """
    from neardup.search import search

    for match in search(question, data, threads=threads)[:most]:
        if as_json:
            click.echo(json.dumps(asdict(match)))
        else:
            click.echo(f"{match.distance}\t{match.similarity:.4f}\t{match.rule}\t{visible(match.id)}")
    return 0
