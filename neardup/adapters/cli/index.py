"""neardup index: fingerprints kept in a file that answers what is within a radius."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import click

from neardup.adapters.cli import QUARANTINED, REFUSED, visible

if TYPE_CHECKING:
    from neardup.index import Index
    from neardup.schemes import Scheme


@click.group("index")
def command() -> None:
    """Build, change and search an index of fingerprints."""


_scheme = click.option(
    "--scheme",
    metavar="NAME|FILE",
    help="Fingerprint documents: files or folders of texts, or of images (image).",
)
_text_field = click.option(
    "--text-field",
    default="text",
    show_default=True,
    help="Field or column with the text of documents; of several, such as title,body, one text is made.",
)
_id_field = click.option(
    "--id-field",
    help="Field or column with the id of documents.  [default: id where present, else file:line]",
)


@command.command()
@click.argument("index")
@click.argument("data", default="-", metavar="[FINGERPRINTS|DOCUMENTS|-]")
@_scheme
@_text_field
@_id_field
@click.option(
    "--radius",
    type=click.IntRange(min=0),
    help="Largest radius it will answer.  [default: 3; with --scheme, what search needs]",
)
@click.option(
    "--bits", type=click.IntRange(min=1), help="Width, if the file does not state it.  [default: 64]"
)
@click.option("--overwrite", is_flag=True, help="Replace an index that exists.")
def build(
    index: str,
    data: str,
    scheme: str | None,
    text_field: str,
    id_field: str | None,
    radius: int | None,
    bits: int | None,
    overwrite: bool,
) -> int:
    """Write INDEX from the fingerprints of a file, or, with --scheme, from documents.

    `neardup search IMAGE|TEXT --in INDEX` searches an index of documents.
    """
    from neardup.files import check_free
    from neardup.index import Index
    from neardup.sources.fingerprint_files import read

    check_free(index, overwrite=overwrite)
    if scheme is not None:
        from neardup.schemes import scheme as scheme_of
        from neardup.search import index_radius

        recipe = scheme_of(scheme) if bits is None else scheme_of(scheme, bits=bits)
        wide = index_radius(recipe) if radius is None else radius
        built = Index(recipe.bits, wide, digest=recipe.digest)
        code = _fill(built, data, recipe, text_field, id_field)
    else:
        ids, prints = read(data, bits)
        built = Index(prints.bits, 3 if radius is None else radius, digest=prints.digest)
        built.add(ids, prints)
        code = 0
    built.save(index, overwrite=overwrite)
    _tell(built, index)
    return code


@command.command()
@click.argument("index")
@click.argument("data", default="-", metavar="[FINGERPRINTS|DOCUMENTS|-]")
@_scheme
@_text_field
@_id_field
@click.option("--update", is_flag=True, help="Replace the fingerprints of ids that are already there.")
def add(
    index: str, data: str, scheme: str | None, text_field: str, id_field: str | None, update: bool
) -> int:
    """Add the fingerprints of a file, or, with --scheme, of documents, to INDEX.

    Documents replace those with the same ids. Waits for another process that is changing INDEX.
    """
    from neardup.sources.fingerprint_files import read

    with _edited(index) as opened:
        if scheme is not None:
            from neardup.schemes import scheme as scheme_of

            code = _fill(opened, data, scheme_of(scheme), text_field, id_field)
        else:
            ids, prints = read(data, opened.bits)
            (opened.update if update else opened.add)(ids, prints)
            code = 0
    _tell(opened, index)
    return code


@contextmanager
def _edited(index: str) -> Iterator[Index]:
    """INDEX, to be changed by nobody else; it is saved when the block ends."""
    from neardup.errors import LimitReached
    from neardup.index import Index

    with ExitStack() as stack:
        try:
            opened = stack.enter_context(Index.edit(index, wait=False))
        except LimitReached:
            click.echo(f"neardup: another process changes {visible(index)}; waiting for it", err=True)
            opened = stack.enter_context(Index.edit(index))
        yield opened


def _fill(opened: Index, data: str, scheme: Scheme, text_field: str, id_field: str | None) -> int:
    """Fingerprint documents into an index; the exit code."""
    from neardup.errors import RefusedInput
    from neardup.search import fill
    from neardup.sources import Reading

    source = fill(opened, [data], scheme, reading=Reading(text_field=text_field, id_field=id_field))
    for bad in source.refused:
        click.echo(f"neardup: left out {visible(bad.file)}: {visible(bad.reason)}", err=True)
    if source.bad:
        click.echo(f"neardup: {source.bad:,} of {source.records:,} records are bad; left out", err=True)
    if not source.documents and (source.bad or source.refused):
        raise RefusedInput(f"no document came from {data!r}; nothing was written")
    return REFUSED if source.refused else QUARANTINED if source.bad else 0


def _tell(opened: Index, index: str) -> None:
    click.echo(f"{len(opened):,} fingerprints in {visible(index)}", err=True)


@command.command()
@click.argument("index")
@click.argument("ids", nargs=-1, required=True)
def remove(index: str, ids: tuple[str, ...]) -> None:
    """Remove IDS from INDEX; `-` reads them from standard input, one per line.

    Waits for another process that is changing INDEX.
    """
    import sys

    names = [line.rstrip("\n") for line in sys.stdin] if ids == ("-",) else list(ids)
    with _edited(index) as opened:
        gone = opened.remove(names)
        if not gone and all(name.lstrip("-").isdecimal() for name in names):
            gone = opened.remove([int(name) for name in names])
    click.echo(f"{gone:,} removed, {len(opened):,} fingerprints left in {visible(index)}", err=True)


@command.command()
@click.argument("index")
@click.argument("fingerprints", default="-", metavar="[FINGERPRINTS|-]")
@click.option("--radius", type=click.IntRange(min=0), help="Largest distance.  [default: that of the index]")
@click.option("--nearest", type=click.IntRange(min=1), metavar="N", help="The N nearest, at any distance.")
@click.option("--json", "as_json", is_flag=True, help="Write JSON lines.")
def search(index: str, fingerprints: str, radius: int | None, nearest: int | None, as_json: bool) -> None:
    """Print what INDEX holds within the radius of each fingerprint: query, id, distance."""
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
