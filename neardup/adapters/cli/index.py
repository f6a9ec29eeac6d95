"""neardup index: fingerprints kept in a file that answers what is within a radius."""

from __future__ import annotations

import json

import click


@click.group("index")
def command() -> None:
    """Build, change and search an index of fingerprints."""


@command.command()
@click.argument("index")
@click.argument("fingerprints", default="-", metavar="[FINGERPRINTS|-]")
@click.option(
    "--radius", type=click.IntRange(min=0), default=3, show_default=True, help="Largest it will answer."
)
@click.option(
    "--bits", type=click.IntRange(min=1), help="Width, where the file does not tell.  [default: 64]"
)
@click.option("--overwrite", is_flag=True, help="Replace an index that exists.")
def build(index: str, fingerprints: str, radius: int, bits: int | None, overwrite: bool) -> None:
    """Write INDEX from the fingerprints of a file."""
    from neardup.files import check_free
    from neardup.index import Index
    from neardup.sources.fingerprint_files import read

    check_free(index, overwrite=overwrite)
    ids, prints = read(fingerprints, bits)
    built = Index(prints.bits, radius, digest=prints.digest)
    built.add(ids, prints)
    built.save(index)
    click.echo(f"{len(built):,} fingerprints in {index}", err=True)


@command.command()
@click.argument("index")
@click.argument("fingerprints", default="-", metavar="[FINGERPRINTS|-]")
@click.option("--update", is_flag=True, help="Replace the fingerprints of ids that are there.")
def add(index: str, fingerprints: str, update: bool) -> None:
    """Add the fingerprints of a file to INDEX."""
    from neardup.index import Index
    from neardup.sources.fingerprint_files import read

    opened = Index.load(index)
    ids, prints = read(fingerprints, opened.bits)
    (opened.update if update else opened.add)(ids, prints)
    opened.save(index)
    click.echo(f"{len(opened):,} fingerprints in {index}", err=True)


@command.command()
@click.argument("index")
@click.argument("ids", nargs=-1, required=True)
def remove(index: str, ids: tuple[str, ...]) -> None:
    """Remove IDS from INDEX; `-` reads them from standard input, one a line."""
    import sys

    from neardup.index import Index

    names = [line.rstrip("\n") for line in sys.stdin] if ids == ("-",) else list(ids)
    opened = Index.load(index)
    gone = opened.remove(names)
    if not gone and all(name.lstrip("-").isdecimal() for name in names):
        gone = opened.remove([int(name) for name in names])
    opened.save(index)
    click.echo(f"{gone:,} removed, {len(opened):,} fingerprints left in {index}", err=True)


@command.command()
@click.argument("index")
@click.argument("fingerprints", default="-", metavar="[FINGERPRINTS|-]")
@click.option("--radius", type=click.IntRange(min=0), help="Largest distance.  [default: that of the index]")
@click.option("--nearest", type=click.IntRange(min=1), metavar="N", help="The N nearest, however far.")
@click.option("--json", "as_json", is_flag=True, help="Write JSON lines.")
def search(index: str, fingerprints: str, radius: int | None, nearest: int | None, as_json: bool) -> None:
    """Print what INDEX holds within the radius of each fingerprint: query, id, distance."""
    from neardup.adapters.cli import visible
    from neardup.index import Index
    from neardup.sources.fingerprint_files import read

    opened = Index.load(index)
    ids, prints = read(fingerprints, opened.bits)
    found = opened.search(prints, radius) if nearest is None else opened.nearest(prints, nearest)
    for row, name, distance in found:
        query = str(ids[row])
        if as_json:
            click.echo(json.dumps({"query": query, "id": name, "distance": distance}, ensure_ascii=False))
        else:
            click.echo(f"{visible(query)}\t{visible(str(name))}\t{distance}")
