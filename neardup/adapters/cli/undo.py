"""`neardup undo`: restore the files that `neardup apply` removed."""

from __future__ import annotations

import json

import click

from neardup.adapters.cli.apply import tell_left

SOME_LEFT = 5


@click.command()
@click.argument("log", type=click.Path(exists=True, dir_okay=False))
@click.argument("folders", nargs=-1, metavar="[FOLDER]...")
@click.option("--dry-run", is_flag=True, help="Say what would be restored; touch nothing.")
@click.option("--json", "as_json", is_flag=True, help="Write JSON.")
def command(log: str, folders: tuple[str, ...], dry_run: bool, as_json: bool) -> int:
    """Restore what the actions in LOG removed. Nothing that exists is replaced; it may be repeated.

    If FOLDERs are given, everything that LOG names, including the trash, must be inside them. They are
    required for a log that another user or an earlier neardup wrote, or that was changed.

    Exits with 5 if a file could not be restored, with 4 if LOG names what it must not, and with 2 if it
    is damaged; in the last two cases nothing was touched.
    """
    from neardup.actions import undo

    outcome = undo(log, within=folders, dry_run=dry_run)
    if as_json:
        left = [{"path": one.path, "reason": one.reason} for one in outcome.left]
        click.echo(json.dumps({"dry_run": dry_run, "files": len(outcome.done), "left": left}))
    else:
        tell_left(outcome)
        would = "would be " if dry_run else ""
        click.echo(f"{len(outcome.done):,} files {would}brought back, {len(outcome.left):,} not")
    return SOME_LEFT if outcome.left else 0
