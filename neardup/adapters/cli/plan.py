"""neardup plan: how a join would go about it, and at what cost."""

from __future__ import annotations

import dataclasses
import json

import click


@click.command("plan")
@click.argument("fingerprints", default="-", metavar="[FINGERPRINTS|-]")
@click.option("--radius", type=click.IntRange(min=0), default=3, show_default=True, help="Largest distance.")
@click.option("--recall", type=float, default=1.0, show_default=True, help="Below 1, tables may be sampled.")
@click.option(
    "--bits", type=click.IntRange(min=1), help="Width, if the file does not state it.  [default: 64]"
)
@click.option("--threads", type=click.IntRange(min=1), help="Threads to use.  [default: all cores]")
@click.option("--json", "as_json", is_flag=True, help="Write JSON.")
def command(
    fingerprints: str, radius: int, recall: float, bits: int | None, threads: int | None, as_json: bool
) -> None:
    """Show how `neardup join` would find the pairs, how long it would take and with how much memory."""
    from neardup.planner import plan
    from neardup.sources.fingerprint_files import read

    _, prints = read(fingerprints, bits)
    chosen = plan(prints, radius, recall=recall, threads=threads)
    click.echo(json.dumps(dataclasses.asdict(chosen)) if as_json else str(chosen))
