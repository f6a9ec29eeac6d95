"""neardup fingerprint: documents in, one fingerprint each out."""

from __future__ import annotations

import json
from typing import Any

import click

from neardup.adapters.cli import QUARANTINED, REFUSED, visible
from neardup.fingerprints import FORMS


@click.command("fingerprint")
@click.argument("files", nargs=-1, metavar="[FILES|-]...")
@click.option("--scheme", "name", default="text", show_default=True, help="Name or file of the scheme.")
@click.option("--bits", type=click.IntRange(min=1), help="Width, if the scheme has several.")
@click.option(
    "--text-field",
    default="text",
    show_default=True,
    help="Field or column with the text; of several, such as title,body or title:2,body, one text is made.",
)
@click.option("--id-field", help="Field or column with the id.  [default: id where present, else file:line]")
@click.option(
    "--format", "kind", help="Format of the input, if its name does not show it: jsonl, csv, text, ..."
)
@click.option("--html", is_flag=True, help="Take the main text of HTML files.")
@click.option(
    "-o", "--output", default="-", show_default=True, help="OUT.jsonl, .csv, .parquet or .arrow; - is stdout."
)
@click.option("--overwrite", is_flag=True, help="Replace output files that exist.")
@click.option(
    "--form", type=click.Choice(FORMS), default="hex", show_default=True, help="Text form of a fingerprint."
)
@click.option("--threads", type=click.IntRange(min=1), help="Threads to use.  [default: all cores]")
@click.option(
    "--quarantine", "quarantine_path", metavar="FILE", help="Keep bad records there, as JSON Lines."
)
@click.option("--strict", is_flag=True, help="Stop at the first bad record; the same as --max-bad 0.")
@click.option("--max-bad", metavar="N|P%", help="Stop when more records than this are bad.")
@click.option("--json", "as_json", is_flag=True, help="Print a summary as JSON on stderr.")
def command(
    files: tuple[str, ...],
    name: str,
    bits: int | None,
    text_field: str,
    id_field: str | None,
    kind: str | None,
    html: bool,
    output: str,
    overwrite: bool,
    form: str,
    threads: int | None,
    quarantine_path: str | None,
    strict: bool,
    max_bad: str | None,
    as_json: bool,
) -> int:
    """Fingerprint documents from JSONL, CSV, Parquet, Arrow, text files and folders, plain or compressed; or
    images, with a scheme for them.

    FILES may be folders; without any, standard input is read as JSON Lines.
    """
    import pyarrow as pa

    from neardup.adapters.cli.terminal import Terminal
    from neardup.contents import content_of
    from neardup.files import check_free
    from neardup.schemes import scheme as scheme_of
    from neardup.sinks.quarantine import Quarantine
    from neardup.sinks.tables import check_sink, open_sink
    from neardup.sources import ANY, Tolerance, open_source

    scheme = scheme_of(name) if bits is None else scheme_of(name, bits=bits)
    content = content_of(scheme)
    tolerance = Tolerance(count=0) if strict else ANY if max_bad is None else Tolerance.of(max_bad)
    binary = output != "-" and check_sink(output) in (".parquet", ".arrow")
    if output != "-":
        check_free(output, overwrite=overwrite)
    with Quarantine(quarantine_path, overwrite=overwrite) as quarantine:
        source = open_source(
            list(files) or ["-"],
            text_field=text_field,
            id_field=id_field,
            format=content.format or kind,
            html=html,
            again=False,
            on_bad=quarantine.add,
            tolerance=tolerance,
        )
        schema = _schema(scheme, binary)
        empty = done = 0
        with (
            open_sink(output, schema, overwrite=overwrite) as sink,
            Terminal().stage("fingerprint", total=source.size) as advance,
        ):
            for batch in source:
                prints = content.fingerprints(scheme, batch, threads=threads)
                cells = prints.to_arrow() if binary else pa.array(prints.texts(form), pa.string())
                sink.write(pa.RecordBatch.from_arrays([batch.ids, cells], schema=schema))
                done += len(batch)
                empty += len(batch) - int(prints.valid.sum())
                advance(done, source.consumed)
    summary = {
        "scheme": scheme.name,
        "digest": scheme.digest,
        "bits": scheme.bits,
        "documents": source.documents,
        "without_information": empty,
        "bad": source.bad,
        "refused": [bad.file for bad in source.refused],
        "skipped": [one.file for one in source.skipped],
        "quarantine": quarantine.path if quarantine.count else None,
    }
    return tell(source, summary, quarantine, as_json=as_json)


def _schema(scheme: Any, binary: bool) -> Any:
    import pyarrow as pa

    cells = pa.binary((scheme.bits + 63) // 64 * 8) if binary else pa.string()
    about = {"neardup.bits": str(scheme.bits), "neardup.scheme": scheme.name, "neardup.digest": scheme.digest}
    return pa.schema([("id", pa.large_string()), ("fingerprint", cells)], metadata=about)


def tell(source: Any, summary: dict[str, Any], quarantine: Any, *, as_json: bool) -> int:
    """Print on standard error what was not used, and return the exit code."""
    if as_json:
        click.echo(json.dumps(summary), err=True)
    for one in source.skipped:
        click.echo(f"neardup: skipped {visible(one.file)}: {visible(one.reason)}", err=True)
    for bad in source.refused:
        click.echo(f"neardup: refused {visible(bad.file)}: {visible(bad.reason)}", err=True)
    if source.bad:
        where = (
            f"they are in {visible(quarantine.path)}" if quarantine.path else "--quarantine FILE keeps them"
        )
        click.echo(f"neardup: {source.bad:,} of {source.records:,} records are bad; {where}", err=True)
    return REFUSED if source.refused else QUARANTINED if source.bad else 0
