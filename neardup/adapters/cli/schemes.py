"""`neardup schemes`: the table of schemes, or one of them in full."""

from __future__ import annotations

import json

import click


@click.command()
@click.argument("name", required=False)
@click.option("--json", "as_json", is_flag=True, help="Write JSON.")
@click.option("--toml", "as_toml", is_flag=True, help="Write the scheme as a file that --scheme reads.")
def command(name: str | None, as_json: bool, as_toml: bool) -> None:
    """List the schemes, or print the scheme NAME (or in the file NAME) in full."""
    from neardup.schemes import SCHEMES, scheme, summaries, to_toml

    if as_json and as_toml:
        raise click.UsageError("choose one of --json and --toml")
    if name is None:
        if as_toml:
            raise click.UsageError("--toml writes one scheme; name it")
        rows = summaries()
        if as_json:
            click.echo(json.dumps(rows, indent=2, ensure_ascii=False))
            return
        width = max(map(len, rows))
        for row, summary in rows.items():
            click.echo(f"{row:<{width}}  {summary}")
        return
    wanted = f"{name}:3" if name in SCHEMES and name in ("chars", "words") else name
    chosen = scheme(wanted)
    if as_toml:
        click.echo(to_toml(chosen), nl=False)
    elif as_json:
        click.echo(json.dumps({**chosen.facts(), "digest": chosen.digest}, indent=2, ensure_ascii=False))
    else:
        described = chosen.describe()
        width = max(map(len, described))
        for key, value in described.items():
            click.echo(f"{key:<{width}}  {value}")
