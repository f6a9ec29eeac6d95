"""`neardup rejudge`: a finished run decided anew, from what it measured."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from typing import Any

import click

from neardup.adapters.cli import check_room, share, visible


@click.command()
@click.argument("run_path", metavar="RUN", type=click.Path(exists=True, file_okay=False))
@click.option("-o", "--output", "out", metavar="DIR", help="Folder for the results.  [default: RUN-rejudged]")
@click.option(
    "--similarity", type=share, metavar="S|P%", help="Another least similarity, not below that of RUN."
)
@click.option(
    "--precision",
    type=click.Choice(["highest", "high", "default", "low"]),
    help="How sure a verdict must be: highest accepts only nearly identical texts, low also what may be "
    "siblings of one template.",
)
@click.option("--strict", is_flag=True, help="The same as --precision highest.")
@click.option("--loose", is_flag=True, help="The same as --precision low.")
@click.option("--verify", metavar="RULE", help="default, strict, high, loose, jaccard:S or containment:S.")
@click.option("--rule", metavar="FILE", help="Judge by a rule that was learned from your answers.")
@click.option("--input", "inputs", multiple=True, help="Read the run's documents from there instead.")
@click.option("--report", metavar="R.html", help="Write a page that shows what was found.")
@click.option("--annotate-only", is_flag=True, help="Write annotations and evidence, but no kept documents.")
@click.option("--no-guards", is_flag=True, help="Turn off all guards; else those of RUN hold.")
@click.option("--threads", type=click.IntRange(min=1), help="Threads to use.  [default: all cores]")
@click.option("--overwrite", is_flag=True, help="Replace another run in the folder once this one is done.")
@click.option("--quiet", is_flag=True, help="Show no progress.")
@click.option("--json", "as_json", is_flag=True, help="Print the counts as JSON.")
def command(
    run_path: str,
    out: str | None,
    similarity: float | None,
    precision: str | None,
    strict: bool,
    loose: bool,
    verify: str | None,
    rule: str | None,
    inputs: tuple[str, ...],
    report: str | None,
    annotate_only: bool,
    no_guards: bool,
    threads: int | None,
    overwrite: bool,
    quiet: bool,
    as_json: bool,
) -> int:
    """Decide the pairs that RUN measured anew, and write the run that this makes.

    No pair is looked for: it takes a reading of the inputs, and where another rule decides a comparison of
    the texts of those pairs. RUN stays as it is. What it did not measure is not found: a lower similarity
    needs a new `neardup dedupe`, and a pair that only a looser setting looks at is missed.
    """
    check_room()
    from neardup.adapters.cli.dedupe import counts_in_words, tell
    from neardup.adapters.cli.terminal import Terminal
    from neardup.jobs import Job, run_job
    from neardup.rejudging import earlier_of, settings_of
    from neardup.runs import Run
    from neardup.sources import Reading
    from neardup.verifiers import rule_named

    rules = ["strict"] * strict + ["loose"] * loose + ([] if verify is None else [verify])
    rules += [] if precision is None else [rule_named(precision)]
    if len(rules) + (rule is not None) > 1:
        raise click.UsageError("choose one of --precision, --strict, --loose, --verify and --rule")
    if not rules and rule is None and similarity is None:
        raise click.UsageError(
            "say what is to be decided anew: --similarity, --precision, --verify or --rule"
        )
    run = Run(run_path)
    run.check()
    before = settings_of(run)
    changes: dict[str, Any] = {}
    if rule is not None:
        changes |= {"rule": rule, "verify": "default"}
    elif rules:
        changes |= {"rule": None, "verify": rules[0]}
    if similarity is not None:
        changes["similarity"] = similarity
    settings = replace(before, **changes)
    out = out or f"{os.path.normpath(run_path)}-rejudged"
    if os.path.realpath(out) == os.path.realpath(run_path):
        raise click.UsageError("RUN stays as it is; name another folder with -o")
    earlier = earlier_of(run, settings)
    sources = run.sources(inputs)  # what changed since, or is gone, is said before anything is written
    paths = list(inputs) or [one.path for one in run.inputs]
    del sources
    words = ["neardup", "rejudge", run_path]
    for name, value in (("similarity", similarity), ("verify", rules[0] if rules else None), ("rule", rule)):
        words += [] if value is None else [f"--{name}", str(value)]
    done = run_job(
        Job(
            inputs=paths,
            out=out,
            scheme=run.scheme_used(),
            content=run.content,
            settings=settings,
            reading=Reading.of(run.settings),
            protect=[one.path for one in run.protected],
            report=report,
            annotate_only=annotate_only or bool(run.settings.get("annotate_only")),
            guards=not (no_guards or run.settings.get("no_guards")),
            overwrite=overwrite,
            threads=threads,
            observer=Terminal(quiet=quiet),
            command=words,
            earlier=earlier,
        )
    )
    counts = done.manifest["counts"]
    if as_json:
        click.echo(json.dumps(counts))
    else:
        click.echo(counts_in_words(done.manifest))
    if not quiet:
        click.echo(f"neardup: the results are in {visible(out)}; {visible(run_path)} is as it was", err=True)
    return tell(done.manifest, out)
