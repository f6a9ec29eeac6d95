"""`neardup check`: are two runs equal, or is one run whole."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import click

from neardup.adapters.cli import visible

DIFFERENT = 1


@click.command()
@click.argument("left", type=click.Path(exists=True, file_okay=False))
@click.argument("right", type=click.Path(exists=True, file_okay=False), required=False)
@click.option(
    "--examples", default=20, show_default=True, type=click.IntRange(min=0), help="Differences to show."
)
@click.option("--json", "as_json", is_flag=True, help="Write JSON.")
def command(left: str, right: str | None, examples: int, as_json: bool) -> int:
    """Check that two runs are equal, or show where they differ; with one run, that its files are whole.

    Exits with 0 if they are equal (or whole), 1 if not.
    """
    from neardup.runs import Run, compare_runs

    if right is None:
        problems = Run(left).problems()
        if as_json:
            click.echo(json.dumps({"whole": not problems, "problems": problems}))
        else:
            click.echo("\n".join(map(visible, problems)) if problems else "the run is complete and unchanged")
        return DIFFERENT if problems else 0
    found = compare_runs(Run(left), Run(right), most=examples)
    if as_json:
        click.echo(json.dumps({"equal": found.equal, **dataclasses.asdict(found)}))
        return 0 if found.equal else DIFFERENT
    if found.equal:
        click.echo("equal: the same decision, with the same evidence, for every document")
    else:
        click.echo("different:")
        for count, one, what in (
            (found.only_left, "document", f"only in {left}"),
            (found.only_right, "document", f"only in {right}"),
            (found.changed, "document", "with another decision"),
            (found.figures, "document", "with the same decision and another distance or similarity"),
            (found.pairs, "pair", "with other evidence"),
        ):
            if count:
                click.echo(f"  {count:,} {one}{'' if count == 1 else 's'} {visible(what)}")
    _list("documents", found.examples)
    _list("settings", found.settings[:examples])
    _list("inputs", found.inputs[:examples])
    return 0 if found.equal else DIFFERENT


def _list(title: str, changes: Any) -> None:
    if changes:
        click.echo(f"{title} that differ:")
    for one in changes:
        click.echo(
            f"  {visible(one.id)}: {one.column} {visible(repr(one.left))} -> {visible(repr(one.right))}"
        )
