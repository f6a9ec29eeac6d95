"""`neardup dedupe`: the main job, from files to evidence."""

from __future__ import annotations

import json
import os
import shlex
from collections import Counter
from itertools import islice
from typing import Any

import click

from neardup.adapters.cli import QUARANTINED, REFUSED, bytes_of, check_room, share, visible
from neardup.wording import counted

SOME_BAD = 1_000
# Parameters that do not belong to what a run finds: places, and how it goes about it.
ELSEWHERE = ("inputs", "out", "report", "overwrite", "quiet", "verbose", "as_json", "threads", "memory")


@click.command()
@click.argument("inputs", nargs=-1, required=True, metavar="INPUT...")
@click.option("-o", "--output", "out", required=True, metavar="DIR", help="Folder for the results.")
@click.option(
    "--similarity",
    type=share,
    metavar="S|P%",
    help="Least cosine of two documents' texts, measured; what they share must not be common to many. "
    "For images: the least correlation of what they show.  [default: 0.64; images 0.79]",
)
@click.option(
    "--precision",
    type=click.Choice(["highest", "high", "default", "low"]),
    help="How sure a verdict must be: highest accepts only nearly identical texts, low also what may be "
    "siblings of one template.  [default: default]",
)
@click.option("--strict", is_flag=True, help="The same as --precision highest.")
@click.option("--loose", is_flag=True, help="The same as --precision low.")
@click.option(
    "--verify",
    metavar="RULE",
    help="default, strict, high, loose, jaccard:S, containment:S, preserving or none.",
)
@click.option(
    "--rule",
    metavar="FILE",
    help="Judge by a rule that was learned from your answers (neardup calibrate --rule).",
)
@click.option(
    "--keep",
    metavar="RULES",
    help="What stays: central, longest, shortest, first, last, newest:FIELD, oldest:FIELD, max:FIELD, "
    "min:FIELD, prefer:FIELD=a>b>c, or none; for images also original, sharpest, resolution, "
    "size, oldest:exif and path:PREFIX; several separated by commas. Ties are broken by id.  "
    "[default: central,longest; images central,resolution,size]",
)
@click.option("--protect", multiple=True, metavar="REF", help="Documents that stay whatever happens.")
@click.option(
    "--subject",
    metavar="FIELD",
    help="What a document is about: other values of FIELD are other documents, the same is evidence.",
)
@click.option("--within", metavar="FIELD", help="Compare only documents with the same FIELD.")
@click.option("--across", metavar="FIELD", help="Compare only documents with different FIELDs.")
@click.option(
    "--scheme",
    "scheme_name",
    help="Name or file of the scheme.  [default: text; 128 bits up to 2,000 documents, 256 above]",
)
@click.option("--bits", type=click.IntRange(min=1), help="Width of the fingerprints.")
@click.option(
    "--recall",
    type=share,
    metavar="S|P%",
    default="0.95",
    show_default=True,
    help="Share of the pairs at that similarity that must be found.",
)
@click.option("--radius", type=click.IntRange(min=0), help="Consider pairs within this distance instead.")
@click.option("--exact", is_flag=True, help="Consider all pairs within the radius, at any cost.")
@click.option(
    "--text-field",
    default="text",
    show_default=True,
    help="Field or column with the text; of several, such as title,body or title:2,body, one text is made.",
)
@click.option("--id-field", help="Field or column with the id.  [default: id where present, else file:line]")
@click.option(
    "--source-field",
    help="Field that names the source for --max-loss.  [default: the file; for text files, the folder]",
)
@click.option("--format", "kind", help="Format of the input, if its name does not show it.")
@click.option(
    "--images", is_flag=True, help="Compare images.  [default: if most files of the input are images]"
)
@click.option(
    "--ignore-colour", is_flag=True, help="Treat an image in clearly different colours as the same one."
)
@click.option("--html", is_flag=True, help="Take the main text of HTML files.")
@click.option("--report", metavar="R.html", help="Write a page that shows what was found.")
@click.option("--annotate-only", is_flag=True, help="Write annotations and evidence, but no kept documents.")
@click.option("--save-scheme", is_flag=True, help="Keep the fitted scheme, for later streams.")
@click.option(
    "--max-cluster",
    type=click.IntRange(min=1),
    default=1000,
    show_default=True,
    help="Largest cluster allowed.",
)
@click.option(
    "--max-loss",
    default="50%",
    show_default=True,
    metavar="P%|S",
    help="Largest share a source may lose, such as 60% or 0.6.",
)
@click.option(
    "--max-same",
    default="1%",
    show_default=True,
    metavar="P%|S",
    help="Largest share of over 1,000 documents with one fingerprint.",
)
@click.option("--no-guards", is_flag=True, help="Turn off all guards.")
@click.option("--strict-input", is_flag=True, help="Stop at the first bad record; the same as --max-bad 0.")
@click.option("--max-bad", metavar="N|P%", help="Stop when more records than this are bad.")
@click.option(
    "--memory",
    default="256M",
    show_default=True,
    help="Memory for texts that are verified, and for sorting fingerprints.",
)
@click.option("--threads", type=click.IntRange(min=1), help="Threads to use.  [default: all cores]")
@click.option("--overwrite", is_flag=True, help="Replace another run in the folder once this one is done.")
@click.option("--quiet", is_flag=True, help="Show no progress, and no advice on what to do next.")
@click.option("-v", "--verbose", is_flag=True, help="Also say how pairs were searched.")
@click.option("--json", "as_json", is_flag=True, help="Print the counts as JSON.")
@click.pass_context
def command(
    context: click.Context,
    inputs: tuple[str, ...],
    out: str,
    similarity: float | None,
    precision: str | None,
    strict: bool,
    loose: bool,
    verify: str | None,
    rule: str | None,
    keep: str | None,
    protect: tuple[str, ...],
    subject: str | None,
    within: str | None,
    across: str | None,
    scheme_name: str | None,
    bits: int | None,
    recall: float,
    radius: int | None,
    exact: bool,
    text_field: str,
    id_field: str | None,
    source_field: str | None,
    kind: str | None,
    images: bool,
    ignore_colour: bool,
    html: bool,
    report: str | None,
    annotate_only: bool,
    save_scheme: bool,
    max_cluster: int,
    max_loss: str,
    max_same: str,
    no_guards: bool,
    strict_input: bool,
    max_bad: str | None,
    memory: str,
    threads: int | None,
    overwrite: bool,
    quiet: bool,
    verbose: bool,
    as_json: bool,
) -> int:
    """Find near-duplicates, verify each, and keep one document per cluster.

    INPUT is JSONL, Parquet, CSV, Arrow, text files or folders, plain or compressed; - is standard input.
    DIR gets annotations, evidence, the kept documents and a manifest. To resume an interrupted
    run, give the same command again; to finish one that a guard stopped, give it with another limit. A
    quoted pattern, such as "crawl/*.jsonl", is expanded.
    """
    check_room()
    from neardup.adapters.cli.terminal import Terminal
    from neardup.contents import content_for
    from neardup.guards import GuardLimits
    from neardup.jobs import Job, run_job
    from neardup.keep import parse_keep
    from neardup.schemes import scheme as scheme_of
    from neardup.settings import Settings
    from neardup.sources import ANY, Reading, Tolerance

    if out == "-":
        raise click.UsageError(
            "-o names a folder for several files, not a stream; give -o DIR and read DIR/kept.*"
        )
    from neardup.verifiers import rule_named

    rules = ["strict"] * strict + ["loose"] * loose + ([] if verify is None else [verify])
    rules += [] if precision is None else [rule_named(precision)]
    if len(rules) + (rule is not None) > 1:
        raise click.UsageError("choose one of --precision, --strict, --loose, --verify and --rule")
    content = content_for(list(inputs), format="image" if images else kind, scheme=scheme_name)
    kind, scheme_name = content.format or kind, scheme_name or content.scheme
    said = {name: value for name, value in (("similarity", similarity), ("keep", keep)) if value is not None}
    chosen: dict[str, Any] = {**content.defaults, **said}
    settings = Settings(
        recall=recall,
        radius=radius,
        exact=exact,
        verify=rules[0] if rules else "default",
        rule=rule,
        subject=subject,
        within=within,
        across=across,
        source_field=source_field,
        ignore_colour=ignore_colour,
        guards=GuardLimits(max_cluster, _limit(max_loss), _limit(max_same)),
        **chosen,
    )
    scheme = None if scheme_name is None and bits is None else scheme_of(scheme_name or "text")
    if scheme is not None and bits is not None:
        scheme = scheme_of(scheme, bits=bits)
    tolerance = Tolerance(count=0) if strict_input else ANY if max_bad is None else Tolerance.of(max_bad)
    job = Job(
        inputs=inputs,
        out=out,
        scheme=scheme,
        content=content,
        settings=settings,
        reading=Reading(
            text_field=text_field, id_field=id_field, format=kind, html=html, tolerance=tolerance
        ),
        protect=protect,
        report=report,
        annotate_only=annotate_only,
        guards=not no_guards,
        overwrite=overwrite,
        save_scheme=save_scheme,
        threads=threads,
        memory=bytes_of(memory),
        observer=Terminal(quiet=quiet),
        command=_command(context),
    )
    try:
        done = run_job(job)
    except (KeyboardInterrupt, SystemExit):  # Ctrl-C, SIGTERM
        click.echo(f"neardup: stopped; the same command resumes from what is in {visible(out)}", err=True)
        raise
    counts = done.manifest["counts"]
    if as_json:
        click.echo(json.dumps(counts))
    else:
        click.echo(_counts(counts, content.noun, parse_keep(settings.keep).none))
        if counts["perhaps_forms"]:
            one = counts["perhaps_forms"] == 1
            click.echo(
                f"{counts['perhaps_forms']:,} of these {'differs where its' if one else 'differ where their'}"
                " neighbours differ, too: if they are forms that were filled in, use --strict"
            )
        if counts["without_information"]:
            one = counts["without_information"] == 1
            click.echo(
                f"{counted(counts['without_information'], content.noun)} without information "
                f"{'was' if one else 'were'} kept; without_information.jsonl lists {'it' if one else 'them'}"
            )
    if verbose:
        click.echo(f"neardup: {done.manifest['plan']}", err=True)
    if not quiet:
        _say_next(done.manifest, out, report)
    return tell(done.manifest, out)


def _command(context: click.Context) -> list[str]:
    """What to type for the same results: every option except places and those that change no result."""
    words = ["neardup", "dedupe", *context.params["inputs"]]
    for option in context.command.params:
        name = str(option.name)
        given = context.get_parameter_source(name)
        if (
            not isinstance(option, click.Option)
            or name in ELSEWHERE
            or given is None
            or given.name == "DEFAULT"
        ):
            continue
        value = context.params[name]
        for one in value if option.multiple else [value]:
            words += [option.opts[-1]] if option.is_flag else [option.opts[-1], str(one)]
    return words


def counts_in_words(manifest: dict[str, Any]) -> str:
    """What a run came to, in one line."""
    from neardup.contents import content_of_run
    from neardup.keep import parse_keep

    none = parse_keep(manifest["settings"]["keep"]).none
    return _counts(manifest["counts"], content_of_run(manifest).noun, none)


def _counts(counts: dict[str, Any], noun: str, none: bool) -> str:
    """The result in one line."""
    stay, gone = counts["kept"], counts["removed"]
    other = "another, and go with it" if none else "one that stays"
    if none and gone == 1:
        other = "another, and goes with it"
    if not gone:
        all_stay = "it stays" if stay == 1 else "all stay"
        return f"{counted(counts['documents'], noun)}: no near-duplicates, {all_stay}"
    return (
        f"{counted(counts['documents'], noun)}: {stay:,} {'stays' if stay == 1 else 'stay'}, "
        f"{gone:,} {'is a near-duplicate' if gone == 1 else 'are near-duplicates'} of {other}, "
        f"in {counted(counts['clusters'], 'cluster')}"
    )


def _say_next(manifest: dict[str, Any], out: str, report: str | None) -> None:
    """Say where the results are, and what can be done with them."""
    from neardup.runs import Run

    run, folder = Run(out), shlex.quote(out)
    kept = [row["name"] for row in manifest["outputs"] if row["name"].startswith("kept")]
    page = "" if report is None else f", the page is {report}"
    stays = f"; {', '.join(os.path.join(out, name) for name in kept[:3])} has what stays" if kept else ""
    lines = [f"the results are in {out}{stays}{page}"]
    if (pair := run.first_pair()) is not None:
        one, other = map(shlex.quote, pair)
        lines.append(f"why two are a pair:  neardup explain {one} {other} --run {folder}")
        if manifest["settings"]["annotate_only"]:
            lines.append(f"write what stays:    neardup apply {folder} -o DIR")
        elif kept == ["kept.txt"]:
            lines.append(f"remove the files:    neardup apply {folder} --trash DIR   (undo brings them back)")
        if report is None:
            page = shlex.quote(os.path.join(out, "report.html"))
            lines.append(f"look at the pairs:   neardup report {folder} -o {page}")
    for line in lines:
        click.echo(f"neardup: {visible(line)}", err=True)


def tell(manifest: dict[str, object], out: str) -> int:
    """Say on standard error what was not used, and give the exit code."""
    counts = manifest["counts"]
    assert isinstance(counts, dict)
    refused, skipped = manifest["refused"], manifest["skipped"]
    assert isinstance(refused, list)
    assert isinstance(skipped, list)
    for word, rows in (("skipped", skipped), ("refused", refused)):
        for row in rows:
            click.echo(f"neardup: {word} {visible(row['file'])}: {visible(row['reason'])}", err=True)
    if counts["bad"]:
        where = os.path.join(out, "quarantine.jsonl")
        such = visible(where + _most(where, refused))
        click.echo(
            f"neardup: {counted(counts['bad'], 'bad record is', 'bad records are')} in {such}", err=True
        )
    return REFUSED if refused else QUARANTINED if counts["bad"] else 0


def _most(path: str, refused: list[dict[str, str]]) -> str:
    """The most frequent reason among the first bad records, and where the first of those is."""
    with open(path, "rb") as file:
        rows = [json.loads(line) for line in islice(file, SOME_BAD)]
    rows = [row for row in rows if {"file": row["file"], "reason": row["reason"]} not in refused]
    for reason, _ in Counter(row["reason"] for row in rows).most_common(1):
        row = next(row for row in rows if row["reason"] == reason)
        line = "" if row["line"] is None else f" line {row['line']}"
        return f", such as {row['file']!r}{line}: {reason}"
    return ""


def _limit(text: str) -> float:
    value = share(text)
    if not 0 <= value <= 1:
        raise click.UsageError(f"{text!r} is not a share such as 50% or 0.5")
    return value
