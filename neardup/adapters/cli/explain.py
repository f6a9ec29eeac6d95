"""`neardup explain`: why two documents are near-duplicates, or not."""

from __future__ import annotations

import dataclasses
import json
import sys
from typing import Any

import click

from neardup.adapters.cli import visible


@click.command()
@click.argument("left")
@click.argument("right")
@click.option(
    "--run", "run_path", type=click.Path(exists=True, file_okay=False), help="LEFT and RIGHT are ids in it."
)
@click.option("--input", "inputs", multiple=True, help="Read the run's documents from there instead.")
@click.option("--scheme", "name", help="Name or file of the scheme, for two files.  [default: text]")
@click.option(
    "--features", default=12, show_default=True, type=click.IntRange(min=0), help="Features to show."
)
@click.option("--json", "as_json", is_flag=True, help="Write JSON.")
def command(
    left: str,
    right: str,
    run_path: str | None,
    inputs: tuple[str, ...],
    name: str | None,
    features: int,
    as_json: bool,
) -> None:
    """Compare two documents, by id in a run (--run OUT) or as two files.

    Shows fingerprints, distance, measured similarity, the features that differ and weigh most, and a
    word diff.
    """
    from neardup.diffs import excerpt, word_diff
    from neardup.explain import explain

    evidence: dict[str, Any] | None = None
    notes: list[str] = []
    if run_path is not None:
        if name is not None:
            raise click.UsageError("the run has its scheme; --scheme is for two files")
        texts, scheme, evidence, notes = _from_run(run_path, left, right, inputs)
    else:
        texts, scheme = _from_files(left, right, name or "text")
    found = explain(scheme, *texts, most=features)
    pieces = excerpt(word_diff(*texts))
    if as_json:
        facts: dict[str, Any] = {
            "documents": [left, right],
            **dataclasses.asdict(found),
            "evidence": evidence,
            "notes": notes,
            "diff": [dataclasses.asdict(piece) for piece in pieces],
        }
        click.echo(json.dumps(facts))
    else:
        _show(left, right, found, evidence, notes, pieces)


def _from_run(
    path: str, left: str, right: str, inputs: tuple[str, ...]
) -> tuple[list[str], Any, dict[str, Any] | None, list[str]]:
    from neardup.errors import InvalidValue
    from neardup.runs import Run

    run = Run(path)
    rows = []
    for id in (left, right):
        if (row := run.document(id)) is None:
            raise InvalidValue(f"no document {id!r} in run {path!r}")
        rows.append(row)
    texts, scheme = run.texts([left, right], inputs)
    for id in (left, right):
        if id not in texts:
            raise InvalidValue(f"document {id!r} is not in the inputs any more; give them with --input")
    notes = [_fate(row) for row in rows]
    if run.digest not in (None, scheme.digest):
        notes.append("the inputs changed since the run: fingerprints here are not those of the run")
    evidence = run.pair(left, right)
    if evidence is None:
        notes.append("the run did not measure this pair; the figures are computed now")
    return [texts[left], texts[right]], scheme, evidence, notes


def _fate(row: dict[str, Any]) -> str:
    if row["keep"]:
        return f"{row['id']} stays"
    return f"{row['id']} goes; it duplicates {row['duplicate_of']}"


def _from_files(left: str, right: str, name: str) -> tuple[list[str], Any]:
    from neardup.errors import RefusedInput
    from neardup.schemes import scheme
    from neardup.sources.reading import Unfit
    from neardup.sources.text import decoded

    texts = []
    for path in (left, right):
        try:
            with open(path, "rb") as file:
                texts.append(decoded(file.read()))
        except FileNotFoundError:
            raise RefusedInput(f"no file {path!r}; for ids in a run give it with --run") from None
        except Unfit as fault:
            raise RefusedInput(f"{path!r} {fault}") from None
    return texts, scheme(name)


def _show(
    left: str, right: str, found: Any, evidence: dict[str, Any] | None, notes: list[str], pieces: list[Any]
) -> None:
    rows = [
        ("left", f"{found.left or 'no information'}  {left}"),
        ("right", f"{found.right or 'no information'}  {right}"),
    ]
    apart = found.distance if evidence is None else evidence["distance"]
    if apart is not None:
        rows.append(("distance", f"{apart} of {found.bits} bits"))
    if evidence is None:
        rows.append(("similarity", f"{found.similarity:.3f}"))
    else:
        verdict = "accepted" if evidence["accepted"] else "rejected"
        rows.append(("verdict", f"{verdict}: {evidence['rule']}"))
        for key, what in (
            ("similarity", "similarity"),
            ("common", "without common text"),
            ("rare", "rare text only"),
        ):
            if evidence[key] is not None:
                rows.append((what, f"{evidence[key]:.3f}"))
    rows.append(("scheme", f"{found.scheme} {found.digest}"))
    width = max(len(key) for key, _ in rows)
    for key, value in rows:
        click.echo(f"{key:<{width}}  {visible(value)}")
    for note in notes:
        click.echo(f"note: {visible(note)}")
    if found.differences:
        click.echo("\nfeatures that differ, the heaviest first (left / right occurrences):")
        for one in found.differences:
            known = "" if one.documents is None else f", in {one.documents:,} documents"
            click.echo(
                f"  {one.share:6.1%}  {visible(repr(one.text))} {one.left} / {one.right} ({one.kind}{known})"
            )
    click.echo()
    if all(piece.op != "change" for piece in pieces):
        click.echo("word for word the same")
        return
    if sys.stdout.isatty():
        _show_colours(pieces)
    else:
        click.echo("".join(_plain(piece) for piece in pieces).rstrip())


def _plain(piece: Any) -> str:
    if piece.op == "same":
        return _lines(piece.left)
    if piece.op == "cut":
        return f"[... {max(piece.left_cut, piece.right_cut):,} words ...] "
    gone, new = piece.left.rstrip(), piece.right.rstrip()
    shown = (f"[-{_lines(gone)}-]" if gone else "") + (f"{{+{_lines(new)}+}}" if new else "")
    longer: str = piece.right or piece.left
    return shown + longer[len(longer.rstrip()) :]


def _show_colours(pieces: list[Any]) -> None:
    from rich.console import Console
    from rich.text import Text

    text = Text()
    for piece in pieces:
        if piece.op == "same":
            text.append(_lines(piece.left))
        elif piece.op == "cut":
            text.append(f"… {max(piece.left_cut, piece.right_cut):,} words … ", style="dim italic")
        else:
            text.append(_lines(piece.left), style="red strike")
            text.append(_lines(piece.right), style="green underline")
    Console(highlight=False, markup=False, emoji=False).print(text)


def _lines(text: str) -> str:
    """*text* safe for a terminal, its line ends kept."""
    return "".join(part if part in "\n\t" else visible(part) for part in _parts(text))


def _parts(text: str) -> list[str]:
    import re

    return re.split(r"([\n\t])", text)
