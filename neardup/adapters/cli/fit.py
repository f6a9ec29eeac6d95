"""neardup fit: documents in, a scheme that knows how common each feature is out."""

from __future__ import annotations

import click

from neardup.adapters.cli.fingerprint import tell


@click.command("fit")
@click.argument("inputs", nargs=-1, metavar="[INPUT|-]...")
@click.option("-o", "--output", required=True, metavar="SCHEME.nds", help="File for the fitted scheme.")
@click.option("--scheme", "name", default="text", show_default=True, help="Name or file of the scheme.")
@click.option("--bits", type=click.IntRange(min=1), help="Width, if the scheme has several.")
@click.option(
    "--add", "parts", multiple=True, metavar="PART.nds", help="Add what another fit counted; may be repeated."
)
@click.option(
    "--max-features",
    type=click.IntRange(min=1),
    metavar="N",
    help="Features counted exactly; beyond that, a sketch.  [default: 33554432, 1.1 GB]",
)
@click.option(
    "--text-field",
    default="text",
    show_default=True,
    help="Field or column with the text; of several, such as title,body or title:2,body, one text is made.",
)
@click.option(
    "--format", "kind", help="Format of the input, if its name does not show it: jsonl, csv, text, ..."
)
@click.option("--html", is_flag=True, help="Take the main text of HTML files.")
@click.option("--overwrite", is_flag=True, help="Replace output files that exist.")
@click.option("--threads", type=click.IntRange(min=1), help="Threads to use.  [default: all cores]")
@click.option(
    "--quarantine", "quarantine_path", metavar="FILE", help="Keep bad records there, as JSON Lines."
)
@click.option("--strict", is_flag=True, help="Stop at the first bad record; the same as --max-bad 0.")
@click.option("--max-bad", metavar="N|P%", help="Stop when more records than this are bad.")
@click.option("--quiet", is_flag=True, help="No progress.")
@click.option("--json", "as_json", is_flag=True, help="Print a summary as JSON on stderr.")
def command(
    inputs: tuple[str, ...],
    output: str,
    name: str,
    bits: int | None,
    parts: tuple[str, ...],
    max_features: int | None,
    text_field: str,
    kind: str | None,
    html: bool,
    overwrite: bool,
    threads: int | None,
    quarantine_path: str | None,
    strict: bool,
    max_bad: str | None,
    quiet: bool,
    as_json: bool,
) -> int:
    """Count how many documents have each feature, and save the scheme with its table.

    The file is a scheme like any other: `neardup fingerprint --scheme SCHEME.nds` gives every stream the
    same fingerprints. Parts fitted separately and added with --add give the same bytes as one fit of all.
    """
    from neardup.adapters.cli.terminal import Terminal
    from neardup.files import check_free
    from neardup.schemes import scheme as scheme_of
    from neardup.schemes.fitting import fit_batches
    from neardup.sinks.quarantine import Quarantine
    from neardup.sources import ANY, Tolerance, open_source

    if not inputs and not parts:
        raise click.UsageError("give something to fit on: INPUT, - for standard input, or --add PART.nds")
    check_free(output, overwrite=overwrite)
    scheme = scheme_of(name) if bits is None else scheme_of(name, bits=bits)
    tolerance = Tolerance(count=0) if strict else ANY if max_bad is None else Tolerance.of(max_bad)
    with Quarantine(quarantine_path, overwrite=overwrite) as quarantine:
        source = open_source(
            list(inputs),
            text_field=text_field,
            format=kind,
            html=html,
            again=False,
            on_bad=quarantine.add,
            tolerance=tolerance,
        )
        with Terminal(quiet=quiet).stage("fit", total=source.size) as advance:
            fitted = fit_batches(
                scheme,
                (batch.texts for batch in source),
                parts=[scheme_of(part) for part in parts],
                max_features=max_features,
                threads=threads,
                after=lambda documents: advance(documents, source.consumed),
            )
    table = fitted.frequencies
    assert table is not None
    if table.documents or not source.refused:
        fitted.save(output)
    what = "a sketch of their features" if table.features is None else f"{table.features:,} features"
    click.echo(f"{table.documents:,} documents, {what}; scheme {fitted.digest}", err=True)
    summary = {
        "scheme": fitted.name,
        "digest": fitted.digest,
        "output": output,
        "documents": table.documents,
        "read": source.documents,
        "added": len(parts),
        "features": table.features,
        "max_features": table.max_features,
        "exact": table.features is not None,
        "bad": source.bad,
        "refused": [bad.file for bad in source.refused],
        "skipped": [one.file for one in source.skipped],
        "quarantine": quarantine.path if quarantine.count else None,
    }
    return tell(source, summary, quarantine, as_json=as_json)
