"""neardup calibrate: what each setting would find on the user's documents, and which one to take."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from neardup.adapters.cli import QUARANTINED, REFUSED, visible

if TYPE_CHECKING:
    from neardup.calibration import Calibration, Row
    from neardup.verifiers.learned import Share

SOME = 5  # pairs to ask next that are shown
WHOLE = 10_000


@click.command("calibrate")
@click.argument("inputs", nargs=-1, required=True, metavar="INPUT...")
@click.option(
    "--labels", metavar="PAIRS.csv", help="Pairs that you judged, one per line: id1,id2,0 or id1,id2,1."
)
@click.option(
    "--target-precision",
    "precision",
    type=float,
    default=0.95,
    show_default=True,
    help="Least share of the accepted pairs that must be right.",
)
@click.option(
    "--edits",
    type=click.IntRange(1, 50),
    default=20,
    show_default=True,
    metavar="P",
    help="Copies with up to P per cent changed should be found.",
)
@click.option(
    "--sample",
    type=click.IntRange(min=2),
    default=20_000,
    show_default=True,
    help="Largest number of documents to sample.",
)
@click.option(
    "--copies",
    type=click.IntRange(min=1),
    default=1_000,
    show_default=True,
    help="Edited copies to plant among them.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Another seed draws another sample.")
@click.option("--scheme", "name", help="Name or file of the scheme.  [default: that of dedupe]")
@click.option("--bits", type=click.IntRange(min=1), help="Width of the fingerprints.")
@click.option(
    "--text-field",
    default="text",
    show_default=True,
    help="Field or column with the text; of several, such as title,body or title:2,body, one text is made.",
)
@click.option("--id-field", help="Field or column with the id.  [default: id where present, else file:line]")
@click.option("--format", "kind", help="Format of the input, if its name does not show it.")
@click.option("--html", is_flag=True, help="Take the main text of HTML files.")
@click.option(
    "--rule", metavar="RULE.toml", help="Write the rule that the labels make; dedupe --rule judges by it."
)
@click.option(
    "--ask",
    metavar="PAIRS.csv",
    help="Write the pairs of which an answer would help most, those first (or .jsonl).",
)
@click.option(
    "--report", metavar="CAL.html", help="Write a page with the curves, and with the pairs to be judged."
)
@click.option("--overwrite", is_flag=True, help="Replace files that exist.")
@click.option("--threads", type=click.IntRange(min=1), help="Threads to use.  [default: all cores]")
@click.option("--quiet", is_flag=True, help="Show no progress.")
@click.option("--json", "as_json", is_flag=True, help="Write everything that was measured as JSON.")
def command(
    inputs: tuple[str, ...],
    labels: str | None,
    precision: float,
    edits: int,
    sample: int,
    copies: int,
    seed: int,
    name: str | None,
    bits: int | None,
    text_field: str,
    id_field: str | None,
    kind: str | None,
    html: bool,
    rule: str | None,
    ask: str | None,
    report: str | None,
    overwrite: bool,
    threads: int | None,
    quiet: bool,
    as_json: bool,
) -> int:
    """Plant edited copies of your own documents among them, and see which ones each setting finds.

    With --labels, a rule is learned from them, too: --rule writes it. Nothing else is written but what
    --report and --ask name. The same input, labels and seed give the same answer.
    """
    from neardup.adapters.cli.terminal import Terminal
    from neardup.calibration import Choices, calibrate, read_labels, write_questions
    from neardup.calibration.page import write_page
    from neardup.errors import InvalidValue
    from neardup.files import check_free
    from neardup.schemes import scheme as scheme_of
    from neardup.sources import open_source
    from neardup.verifiers import write_rule

    if labels is None and rule is not None:
        raise click.UsageError(
            "a rule is learned from answers; give them with --labels (neardup label asks for them)"
        )
    for path in (rule, ask, report):
        if path is not None:
            check_free(path, overwrite=overwrite)
    overrides = {} if bits is None else {"bits": bits}
    chosen = None if name is None and bits is None else scheme_of(name or "text", **overrides)
    choices = Choices(sample=sample, copies=copies, edits=edits, precision=precision, seed=seed)
    pairs = [] if labels is None else read_labels(labels)
    source = open_source(
        list(inputs), text_field=text_field, id_field=id_field, format=kind, html=html, unique=True
    )
    found = calibrate(
        None,
        labels=pairs,
        scheme=chosen,
        choices=choices,
        threads=threads,
        observer=Terminal(quiet=quiet),
        source=source,
    )
    if report is not None:
        write_page(found, report, overwrite=overwrite)
    if ask is not None:
        write_questions(found.asked_next, ask, overwrite=overwrite)
    if rule is not None and found.learned is not None:
        write_rule(found.learned, rule, overwrite=overwrite)
    if as_json:
        click.echo(json.dumps(found.facts()))
    else:
        _show(found)
        _show_learned(found, rule)
    if rule is not None and found.learned is None:
        raise InvalidValue(f"no rule is learned: {found.unlearned}; neardup label asks for more")
    for bad in source.refused:
        click.echo(f"neardup: refused {visible(bad.file)}: {visible(bad.reason)}", err=True)
    if source.bad:
        click.echo(
            f"neardup: {source.bad:,} of {source.records:,} records are bad and were left out", err=True
        )
    return REFUSED if source.refused else QUARANTINED if source.bad else 0


def _show(found: Calibration) -> None:
    from neardup.calibration import MODES

    labels = f", {found.labels:,} labelled pairs" if found.labels else ""
    planted = f"{found.copies:,} edited copies planted among them"
    click.echo(f"{found.sampled:,} of {found.documents:,} documents, {planted}{labels}")
    expected = (
        "planted copies found, precision expected from other collections,\n"
        "and among your documents as they are: pairs accepted, documents that would go"
    )
    measured = "measured on the labels: recall, precision, labelled pairs accepted"
    for title in (expected, measured) if found.labels else (expected,):
        click.echo(f"\n{title}\nsimilarity" + "".join(f"  {mode:^34}" for mode in MODES))
        for at, similarity in enumerate(found.similarities):
            cells = [_cell(found, found.of(mode)[at], title == measured) for mode in MODES]
            click.echo(f"{similarity:10.2f}  " + "  ".join(cells).rstrip())
    best = found.marked
    at = found.similarities.index(best.similarity)
    click.echo(f"\nshare found at * by kind of change (up to {found.choices.edits} % counts):")
    for one in found.edits:
        asked = "" if one.counted else "   not counted"
        click.echo(
            f"  {one.name:12}  {one.recall[best.mode][at]:6.1%} of {one.copies:4}   "
            f"similarity {one.similarity:.2f}{asked}"
        )
    click.echo(
        f"\namong your documents as they are, * accepts {best.pairs:,} pairs, and {best.removed:,} of "
        f"{found.sampled:,} documents would go."
    )
    if found.suggestions:
        click.echo(
            "Whether these pairs are right, only labels can tell: siblings of one form look like copies.\n"
            "Look at some, nearest to the border first, and give them with --labels (id1,id2,1 or 0 a line):"
        )
        for pair in found.suggestions:
            click.echo(f"  {pair.similarity:.3f}  {pair.reason}  {visible(pair.one)}  {visible(pair.other)}")
    if found.recommended is None:
        click.echo(f"\nno setting is recommended: {found.why}")
    else:
        click.echo(f"\nrecommended: neardup dedupe {found.command}\nbecause {found.why}")


def _show_learned(found: Calibration, path: str | None) -> None:
    if found.learned is None:
        if found.unlearned:
            click.echo(f"\nno rule is learned from the labels: {found.unlearned}")
        return
    learned = found.learned.learned
    click.echo(
        f"\na rule learned from {learned.labels:,} labelled pairs ({learned.same:,} the same), "
        "on labels that it had not seen:\n             precision                     recall"
    )
    for name, precision, recall in (
        ("learned", learned.precision, learned.recall),
        ("default", learned.default_precision, learned.default_recall),
    ):
        click.echo(f"  {name}    {_share(precision):28}  {_share(recall)}")
    weights = sorted(found.learned.weights, key=lambda one: -abs(one.weight))[:5]
    click.echo(f"what weighs most: {', '.join(f'{one.figure} {one.weight:+}' for one in weights)}")
    if path is None:
        click.echo("write it with --rule RULE.toml; neardup dedupe --rule RULE.toml judges by it")
    else:
        click.echo(f"neardup dedupe --rule {visible(path)} judges by it ({found.learned.digest})")
    if found.asked_next:
        click.echo("the pairs to ask next, the most useful first (--ask PAIRS.csv writes them all):")
        for pair in found.asked_next[:SOME]:
            click.echo(f"  {pair.similarity:.3f}  {pair.reason}  {visible(pair.one)}  {visible(pair.other)}")


def _share(found: Share) -> str:
    if not found.of:
        return "–"
    return (
        f"{found.share / WHOLE:.3f} ({found.low / WHOLE:.2f} to {found.high / WHOLE:.2f}, {found.of:,} pairs)"
    )


def _cell(found: Calibration, row: Row, labelled: bool) -> str:
    mark = "*" if row == found.marked else " "
    if labelled:
        figures = f"{_figure(row.measured_recall)}    {_figure(row.measured_precision)} {row.labelled:8,}"
        return f"{mark}{figures}".ljust(34)
    margin = "" if row.margin is None else f"±{row.margin:.3f}"
    return (
        f"{mark}{_figure(row.recall)}{margin} {_figure(row.precision)} {row.pairs:7,} {row.removed:6,}".ljust(
            34
        )
    )


def _figure(value: float | None) -> str:
    return "  –  " if value is None else f"{value:.3f}"
