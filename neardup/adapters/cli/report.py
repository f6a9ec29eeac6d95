"""`neardup report`: the page of a finished run."""

from __future__ import annotations

import click

from neardup.adapters.cli import visible


@click.command()
@click.argument("run_path", metavar="RUN", type=click.Path(exists=True, file_okay=False))
@click.option("-o", "--output", "page", required=True, metavar="PAGE.html", help="Where to write the page.")
@click.option("--input", "inputs", multiple=True, help="Read the run's documents from there instead.")
@click.option("--overwrite", is_flag=True, help="Replace another file of that name.")
def command(run_path: str, page: str, inputs: tuple[str, ...], overwrite: bool) -> None:
    """Write the page that `neardup dedupe --report` writes, from the finished run in RUN.

    Nothing is computed again. The texts or images that it shows are read from the inputs that the run
    names, so call it where the run was made, or name them with --input.
    """
    from neardup.runs.pages import report_run

    report_run(run_path, page, inputs, overwrite=overwrite)
    click.echo(f"neardup: wrote {visible(page)}", err=True)
