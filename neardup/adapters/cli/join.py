"""neardup join: fingerprints in, pairs within a radius out."""

from __future__ import annotations

import json

import click


@click.command("join")
@click.argument("fingerprints", default="-", metavar="[FINGERPRINTS|-]")
@click.option("--other", metavar="FILE", help="Pair FINGERPRINTS with those of FILE, not among themselves.")
@click.option("--radius", type=click.IntRange(min=0), default=3, show_default=True, help="Largest distance.")
@click.option("--recall", type=float, default=1.0, show_default=True, help="Below 1, tables may be sampled.")
@click.option(
    "--bits", type=click.IntRange(min=1), help="Width, if the file does not state it.  [default: 64]"
)
@click.option(
    "-o", "--output", default="-", show_default=True, help="OUT.parquet, .jsonl, .csv or .arrow; - is stdout."
)
@click.option("--overwrite", is_flag=True, help="Replace an output file that exists.")
@click.option("--threads", type=click.IntRange(min=1), help="Threads to use.  [default: all cores]")
@click.option("--json", "as_json", is_flag=True, help="Print a summary as JSON on stderr.")
def command(
    fingerprints: str,
    other: str | None,
    radius: int,
    recall: float,
    bits: int | None,
    output: str,
    overwrite: bool,
    threads: int | None,
    as_json: bool,
) -> None:
    """Find all pairs of fingerprints within a radius.

    FINGERPRINTS is what `neardup fingerprint` writes, or lines of hex or decimal numbers.
    """
    import numpy as np
    import pyarrow as pa

    from neardup.files import check_free
    from neardup.pairs import join
    from neardup.sinks.tables import check_sink, open_sink
    from neardup.sources.fingerprint_files import read

    if output != "-":
        check_sink(output)
        check_free(output, overwrite=overwrite)
    left_ids, left = read(fingerprints, bits)
    right_ids, right = (left_ids, None) if other is None else read(other, bits)
    pairs = join(left, radius, right, recall=recall, threads=threads)
    kind = pa.int64() if isinstance(left_ids, np.ndarray) else pa.large_string()
    other_kind = pa.int64() if isinstance(right_ids, np.ndarray) else pa.large_string()
    about = {
        "neardup.bits": str(left.bits),
        "neardup.digest": left.digest or "",
        "neardup.radius": str(radius),
    }
    schema = pa.schema([("left", kind), ("right", other_kind), ("distance", pa.uint16())], metadata=about)
    names, other_names = pa.array(left_ids, kind), pa.array(right_ids, other_kind)
    with open_sink(output, schema, overwrite=overwrite) as sink:
        for start in range(0, len(pairs), 65536):
            part = slice(start, start + 65536)
            columns = [
                names.take(pa.array(pairs.left[part])),
                other_names.take(pa.array(pairs.right[part])),
                pa.array(pairs.distance[part]),
            ]
            sink.write(pa.RecordBatch.from_arrays(columns, schema=schema))
    missing = len(left) - int(left.valid.sum())
    summary = {
        "fingerprints": len(left),
        "without_information": missing,
        "radius": radius,
        "pairs": len(pairs),
    }
    if as_json:
        click.echo(json.dumps(summary), err=True)
    elif output != "-":
        click.echo(f"{len(pairs):,} pairs among {len(left):,} fingerprints", err=True)
