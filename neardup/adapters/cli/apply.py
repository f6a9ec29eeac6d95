"""`neardup apply`: act on what a run decided. Writes kept records, or removes files that are duplicates."""

from __future__ import annotations

import json
import os
from datetime import datetime, timezone
from typing import Any

import click

from neardup.adapters.cli import visible

SHOWN = 20
SOME_LEFT = 3


@click.command()
@click.argument("run_path", metavar="RUN", type=click.Path(exists=True, file_okay=False))
@click.argument("inputs", nargs=-1)
@click.option(
    "-o", "--output", metavar="DIR", help="Write the kept records there, in the format they came in."
)
@click.option("--overwrite", is_flag=True, help="Replace kept files that exist.")
@click.option("--trash", metavar="DIR", help="Move duplicates there (documents that are files).")
@click.option("--hardlink", is_flag=True, help="Make byte-for-byte duplicates hard links to their keepers.")
@click.option("--delete", is_flag=True, help="Delete duplicates; only byte-for-byte copies can be restored.")
@click.option("--yes", is_flag=True, help="Do it. Without it, files are only listed.")
@click.option(
    "--log", "log_path", metavar="FILE", help="Undo log.  [default: in RUN, with the time in its name]"
)
@click.option("--json", "as_json", is_flag=True, help="Write JSON.")
def command(
    run_path: str,
    inputs: tuple[str, ...],
    output: str | None,
    overwrite: bool,
    trash: str | None,
    hardlink: bool,
    delete: bool,
    yes: bool,
    log_path: str | None,
    as_json: bool,
) -> int:
    """Act on what RUN decided: its annotations say by id what stays.

    With -o, the kept records of INPUTS (by default the run's own inputs) are written to DIR.
    With --trash, --hardlink or --delete, documents that are whole files are removed: a dry run unless
    --yes is given; each file is compared with its keeper again just before, and `neardup undo`
    restores it from the log. A deleted file can be restored only if its keeper is the same byte for byte.
    INPUTS are then the folders in which files may be removed, and which hold their keepers; they are
    required for a run that another user wrote, or that was changed.

    Exits with 3 if a file that the run would remove was left as it is.
    """
    chosen = [name for name, on in (("trash", trash), ("hardlink", hardlink), ("delete", delete)) if on]
    if len(chosen) + (output is not None) != 1:
        raise click.UsageError("choose one of -o DIR, --trash DIR, --hardlink and --delete")
    if output is not None:
        return _copy(run_path, inputs, output, overwrite, as_json)
    return _remove(run_path, inputs, chosen[0], trash, yes, log_path, as_json)


def _copy(run_path: str, inputs: tuple[str, ...], output: str, overwrite: bool, as_json: bool) -> int:
    from neardup.files import check_folder
    from neardup.runs import Run
    from neardup.sinks.kept import copy_kept

    check_folder(output)
    run = Run(run_path)
    source = run.source(inputs)
    mask = run.mask(source, same_bytes=not inputs)
    os.makedirs(output, exist_ok=True)
    made = list(copy_kept(source, mask, output, overwrite=overwrite))
    kept = int(mask.sum())
    if as_json:
        click.echo(json.dumps({"kept": kept, "removed": len(mask) - kept, "files": made}))
    else:
        click.echo(f"{kept:,} of {len(mask):,} documents kept, in {visible(', '.join(made) or 'no file')}")
    return 0


def _remove(
    run_path: str,
    inputs: tuple[str, ...],
    action: str,
    trash: str | None,
    yes: bool,
    log_path: str | None,
    as_json: bool,
) -> int:
    from neardup.actions import plan_removals, rehearse, remove
    from neardup.runs import Run
    from neardup.seals import own_key

    plan = plan_removals(Run(run_path), action, trash=trash, within=inputs)
    log = None
    if yes:
        moment = datetime.now(timezone.utc).strftime("%Y%m%dT%H%M%S.%fZ")
        log = log_path or os.path.join(run_path, f"undo-{moment}.jsonl")
        outcome = remove(plan, log)
    else:
        outcome = rehearse(plan)
    code = 0 if all(one.expected for one in outcome.left) else SOME_LEFT
    gone = set(outcome.done)
    removals = [one for one in plan.removals if one.file.path in gone]
    back = _restorable(action, removals)
    lost = len(removals) - back
    roots = sorted({one.root for one in removals})
    if as_json:
        left = [{"id": one.path, "reason": one.reason} for one in outcome.left]
        facts: dict[str, Any] = {"action": action, "dry_run": not yes, "folders": list(map(_text, roots))}
        facts |= {"files": list(map(_text, outcome.done)), "left": left, "log": log}
        click.echo(json.dumps({**facts, "restorable": back, "lost": lost}))
        return code
    if not yes:
        for one in removals[:SHOWN]:
            keeper = visible(one.keeper.path)
            click.echo(f"{action}: {visible(one.file.path)} (keeper {keeper}, {one.similarity:.3f})")
        if len(removals) > SHOWN:
            click.echo(f"... and {len(removals) - SHOWN:,} more")
        for root in roots[:SHOWN]:
            click.echo(f"in: {visible(root)}")
        if len(roots) > SHOWN:
            click.echo(f"in: {len(roots) - SHOWN:,} more")
    tell_left(outcome)
    if yes and not outcome.done:
        click.echo(f"nothing was done: {len(outcome.left):,} files left as they are")
    elif yes:
        click.echo(f"{len(outcome.done):,} files removed ({action}), {len(outcome.left):,} left as they are")
        if back:
            which = f"{back:,} of them" if lost else "them"
            named = [log or "", *(_touched(removals, plan.trash) if own_key() is None else [])]
            click.echo(f"to bring {which} back: neardup undo {' '.join(map(visible, named))}")
        if lost:
            click.echo(f"{lost:,} cannot be brought back: no byte for byte copy of them stays")
    else:
        size = sum(one.file.bytes or 0 for one in removals)
        click.echo(
            f"dry run: {len(removals):,} files, {size:,} bytes would go, {len(outcome.left):,} would be left "
            "as they are; nothing was touched. Add --yes to do it."
        )
        if lost:
            click.echo(
                f"`neardup undo` could bring back {back:,} of them; {lost:,} would be gone for good: no byte "
                "for byte copy of them stays. With --trash DIR all could be brought back."
            )
    return code


def _touched(removals: list[Any], trash: str | None) -> list[str]:
    """The folders to name to `undo` if there is no key to seal its log."""
    roots = {root for one in removals for root in (one.root, one.keeper_root)}
    return sorted(roots if trash is None else {*roots, trash})


def _text(path: str) -> str:
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def _restorable(action: str, removals: list[Any]) -> int:
    """How many of the removed files can be restored: of a deleted one, the keeper is the only copy."""
    return sum(action != "delete" or one.file.sha256 == one.keeper.sha256 for one in removals)


def tell_left(outcome: Any) -> None:
    """Print on standard error which files stay as they are, and why."""
    for one in outcome.left[:SHOWN]:
        click.echo(f"left: {visible(one.path)}: {visible(one.reason)}", err=True)
    if len(outcome.left) > SHOWN:
        click.echo(f"left: {len(outcome.left) - SHOWN:,} more", err=True)
