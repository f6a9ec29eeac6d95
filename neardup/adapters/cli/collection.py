"""neardup collection: documents kept on disk, compared with all that is stored while they come."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from neardup.adapters.cli import QUARANTINED, REFUSED, share, visible

if TYPE_CHECKING:
    from neardup.collections import Answer, Collection, Match

# Documents in one transaction of `add`.
BATCH = 1000
# Seconds by which the clock may be behind without a word.
LATE = 5


@click.group("collection")
def command() -> None:
    """Keep documents in a folder, and find what is near each of them as they come.

    One process writes at a time, any number may read meanwhile. What a command has printed is durable.
    """


_json = click.option("--json", "as_json", is_flag=True, help="Write JSON lines.")
_banks = click.option(
    "--bank", "banks", multiple=True, metavar="NAME|GLOB", help="Look in these banks; -NAME leaves one out."
)
_overwrite = click.option("--overwrite", is_flag=True, help="Replace a file that exists.")


def _opened(path: str, *, read_only: bool = False, **how: Any) -> Collection:
    from neardup.collections import Collection

    opened = Collection.open(path, read_only=read_only, **how)
    if (behind := opened.status()["clock_behind"]) > LATE:
        click.echo(
            f"the clock is {behind:,} s behind the last write to {visible(path)}; "
            "until it has caught up no time passes there",
            err=True,
        )
    return opened


def _line(values: Mapping[str, Any]) -> None:
    click.echo(json.dumps(values, ensure_ascii=False))


def _chosen(banks: Sequence[str]) -> list[str] | None:
    return list(banks) or None


@command.command()
@click.argument("folder")
@click.option(
    "--similarity", type=share, help="From where on two texts are near; 0.64 unless you say otherwise."
)
@click.option("--bank", "banks", multiple=True, metavar="NAME", help="Make this bank as well.")
def create(folder: str, similarity: float | None, banks: tuple[str, ...]) -> None:
    """Make a new, empty collection in FOLDER."""
    from neardup.errors import InvalidValue
    from neardup.store import is_store

    if is_store(folder):
        raise InvalidValue(f"{folder!r} is a collection already")
    with _opened(folder, create=True, similarity=similarity) as made:
        for name in banks:
            made.bank(name)
    click.echo(f"made the collection {visible(folder)}", err=True)


@command.command()
@click.argument("folder")
@click.argument("inputs", nargs=-1, required=True, metavar="INPUT...")
@click.option("--bank", default="main", metavar="NAME", help="The bank that they go to.  [default: main]")
@click.option(
    "--near",
    type=click.Choice(["tell", "skip", "none"]),
    default="tell",
    help="Store what is near and say so, skip it, or do not look.  [default: tell]",
)
@click.option("--expires-after", metavar="TIME", help="Forget them after this time, such as 30d or 12h.")
@click.option("--field", "fields", multiple=True, metavar="NAME", help="Keep this field, too.")
@click.option(
    "--within",
    "within",
    multiple=True,
    metavar="NAME|GLOB",
    help="Compare with documents of these banks only.",
)
@_json
def add(
    folder: str,
    inputs: tuple[str, ...],
    bank: str,
    near: str,
    expires_after: str | None,
    fields: tuple[str, ...],
    within: tuple[str, ...],
    as_json: bool,
) -> int:
    """Store the documents of files or folders (`-`: standard input), and say what each of them is.

    1,000 documents are one transaction: a line is printed when its document is durable.
    """
    counts: dict[str, int] = {}
    with _opened(folder) as opened:
        for name in inputs:
            for part in _batches(name, fields):
                found = opened.add(
                    part, bank=bank, near=near, expires_after=expires_after, banks=_chosen(within)
                )
                for answer in found:
                    counts[answer.status] = counts.get(answer.status, 0) + 1
                    _tell(answer, as_json)
    said = ", ".join(f"{count:,} {status}" for status, count in sorted(counts.items())) or "no document"
    click.echo(f"{said}", err=True)
    return QUARANTINED if counts.get("bad") else 0


def _batches(name: str, fields: Iterable[str]) -> Iterator[list[Any]]:
    """The documents of an input, some at a time. Objects on standard input keep all their fields."""
    from itertools import islice

    from neardup.collections.documents import documents_of

    given = documents_of([name], fields=fields)
    while part := list(islice(given, BATCH)):
        yield part


def _tell(answer: Answer, as_json: bool) -> None:
    if as_json:
        _line(answer.facts())
        return
    words = [answer.id, answer.status]
    if answer.matches:
        best = answer.matches[0]
        words += [best.id, f"{best.similarity:.4f}", best.reason]
    elif answer.reason:
        words.append(answer.reason)
    click.echo("\t".join(map(visible, words)))


@command.command()
@click.argument("folder")
@click.argument("question", required=False, metavar="[TEXT|FILE]")
@click.option("--id", "id", metavar="ID", help="Ask for what is near a stored document.")
@_banks
@click.option("-n", "--limit", type=click.IntRange(min=1), default=20, help="At most so many.  [default: 20]")
@click.option("--nearest", is_flag=True, help="The nearest ones at any distance, near-duplicates or not.")
@click.option("--rejected", is_flag=True, help="Also what was measured and is not a near-duplicate.")
@_json
def search(
    folder: str,
    question: str | None,
    id: str | None,
    banks: tuple[str, ...],
    limit: int,
    nearest: bool,
    rejected: bool,
    as_json: bool,
) -> None:
    """Print the stored documents that are near a text, a file (text or image), or a stored document."""
    with _opened(folder, read_only=True) as opened:
        asked = _question(question, id)
        if nearest:
            found = opened.nearest(**asked, n=limit, banks=_chosen(banks))
        else:
            found = opened.search(**asked, banks=_chosen(banks), limit=limit, rejected=rejected)
    for match in found:
        _show(match, as_json)
    if not found:
        click.echo("nothing is near", err=True)


def _question(question: str | None, id: str | None) -> dict[str, Any]:
    from neardup.contents import content_for
    from neardup.errors import InvalidValue

    if (question is None) == (id is None):
        raise InvalidValue("ask with a text or a file, or with --id")
    if question is None:
        return {"id": id}
    if not os.path.isfile(question):
        return {"text": question}
    if content_for([question]).name == "image":
        return {"picture": question}
    with open(question, encoding="utf-8", errors="replace") as file:
        return {"text": file.read()}


def _show(match: Match, as_json: bool) -> None:
    if as_json:
        _line(match.facts())
        return
    words = [match.id, match.bank, f"{match.similarity:.4f}", str(match.distance)]
    words += ["near" if match.accepted else "not near", match.reason]
    click.echo("\t".join(map(visible, words)))


@command.command()
@click.argument("folder")
@click.argument("ids", nargs=-1, required=True)
def remove(folder: str, ids: tuple[str, ...]) -> None:
    """Remove the documents with these IDS; `-` reads them from standard input, one per line."""
    with _opened(folder) as opened:
        gone = opened.remove(_ids(ids))
    click.echo(f"{gone:,} removed", err=True)


def _ids(ids: Sequence[str]) -> list[str]:
    import sys

    return [line.rstrip("\n") for line in sys.stdin] if list(ids) == ["-"] else list(ids)


@command.command()
@click.argument("folder")
@click.argument("id")
@click.option(
    "--set", "fields", multiple=True, metavar="NAME=VALUE", help="Give a field this value (JSON or text)."
)
@click.option("--unset", multiple=True, metavar="NAME", help="Remove a field.")
@click.option("--expires-after", metavar="TIME", help="Forget it after this time, such as 30d.")
def update(
    folder: str, id: str, fields: tuple[str, ...], unset: tuple[str, ...], expires_after: str | None
) -> None:
    """Change the fields of the document ID, or when it expires. To change its text, add it again."""
    values: dict[str, Any] = dict.fromkeys(unset)
    for field in fields:
        name, equals, value = field.partition("=")
        if not equals or not name:
            raise click.BadParameter(f"{field!r} is not of the form NAME=VALUE", param_hint="--set")
        try:
            values[name] = json.loads(value)
        except ValueError:
            values[name] = value
    with _opened(folder) as opened:
        opened.update(id, fields=values, expires_after=expires_after)


@command.command()
@click.argument("folder")
def expire(folder: str) -> None:
    """Remove what has expired. No question finds it before that either; this makes room."""
    with _opened(folder) as opened:
        click.echo(f"{opened.expire():,} removed", err=True)


@command.command()
@click.argument("folder")
@click.option("--make", metavar="NAME", help="Make this bank, or change it with the options below.")
@click.option("--remove", "gone", metavar="NAME", help="Remove this bank and all its documents.")
@click.option(
    "--expires-after", metavar="TIME", help="How long its documents stay unless they say otherwise."
)
@click.option(
    "--suppress",
    "suppresses",
    multiple=True,
    metavar="GLOB",
    help="Hide matches of these banks where it matches.",
)
@click.option("--enable/--disable", "enabled", default=None, help="Search it without naming it, or not.")
@_json
def banks(
    folder: str,
    make: str | None,
    gone: str | None,
    expires_after: str | None,
    suppresses: tuple[str, ...],
    enabled: bool | None,
    as_json: bool,
) -> None:
    """List the banks; make, change or remove one."""
    with _opened(folder, read_only=make is None and gone is None) as opened:
        if make is not None:
            opened.bank(make, expires_after=expires_after, suppresses=suppresses or None, enabled=enabled)
        if gone is not None:
            click.echo(f"{opened.remove_bank(gone):,} documents removed", err=True)
        rows = opened.banks()
    for row in rows:
        if as_json:
            _line(row)
            continue
        words = [row["bank"], f"{row['documents']:,} documents"]
        words += [f"expire after {row['expires_after']} s"] if row["expires_after"] else []
        words += [f"suppresses {', '.join(row['suppresses'])}"] if row["suppresses"] else []
        words += [] if row["enabled"] else ["disabled"]
        click.echo("\t".join(map(visible, words)))


@command.command()
@click.argument("folder")
@click.option("--since", type=click.IntRange(min=0), default=0, help="Those that changed after this change.")
@_json
def clusters(folder: str, since: int, as_json: bool) -> None:
    """Print the live clusters of two documents or more: number, then the ids, that of the keeper first."""
    with _opened(folder, read_only=True) as opened:
        for one in opened.clusters(since=since):
            if as_json:
                _line(one.facts())
            else:
                click.echo("\t".join([str(one.number), *(visible(member.id) for member in one.members)]))


@command.command()
@click.argument("folder")
@click.option("--say", nargs=3, metavar="ID ID same|different|unsure", help="Say it of two documents.")
@click.option("--by", default="", metavar="NAME", help="Who says it.")
@click.option("--note", default="", help="Why.")
@_json
def verdicts(folder: str, say: tuple[str, str, str] | None, by: str, note: str, as_json: bool) -> None:
    """Print what was said of pairs, or say it. It binds all later answers."""
    with _opened(folder, read_only=say is None) as opened:
        if say is not None:
            opened.verdict(*say, by=by, note=note)
        for row in opened.verdicts():
            if as_json:
                _line(row)
                continue
            words = [row["verdict"], "|".join(row["one"]) or "gone", "|".join(row["other"]) or "gone"]
            click.echo("\t".join(map(visible, [*words, row["by"], row["note"]])))


@command.command()
@click.argument("folder")
def labels(folder: str) -> None:
    """Print the verdicts on texts as labelled pairs: JSON lines with both texts and label 1 or 0."""
    with _opened(folder, read_only=True) as opened:
        for row in opened.labels():
            _line(row)


@command.command()
@click.argument("folder")
def refit(folder: str) -> None:
    """Learn anew how common each feature is, and make all fingerprints with that."""
    with _opened(folder) as opened:
        found = opened.refit()
    click.echo(f"fitted on {found['fitted_on']:,} texts, scheme {found['scheme']}", err=True)


@command.command()
@click.argument("folder")
@_json
def check(folder: str, as_json: bool) -> int:
    """Read every byte, and say what is not as it was written; exits with 4 if there is anything."""
    from neardup.errors import DamagedFile

    status: dict[str, Any] = {}
    try:
        with _opened(folder, read_only=True) as opened:
            found, status = opened.check(), opened.status()
    except DamagedFile as error:  # it cannot even be opened
        found = [str(error)]
    if as_json:
        _line({"problems": found, **status})
    if found:
        for problem in found:
            click.echo(visible(problem), err=as_json)
        click.echo(f"{visible(folder)} is damaged; restore it from a backup", err=True)
        return REFUSED
    click.echo(
        f"{status['documents']:,} documents, {status['contents']:,} contents, change {status['change']:,}, "
        f"SQLite {status['sqlite']}: all is as it was written",
        err=True,
    )
    return 0


@command.command()
@click.argument("folder")
def rebuild(folder: str) -> None:
    """Make all fingerprints and index files anew from the stored contents."""
    with _opened(folder) as opened:
        opened.rebuild()
    click.echo(f"made the index of {visible(folder)} anew", err=True)


@command.command()
@click.argument("folder")
@click.argument("copy")
def backup(folder: str, copy: str) -> None:
    """Write a whole copy of FOLDER to the new folder COPY, and check every byte of it."""
    with _opened(folder) as opened:
        opened.backup(copy)
    click.echo(f"{visible(copy)} is a whole copy of {visible(folder)}", err=True)


@command.command()
@click.argument("copy")
@click.argument("folder")
def restore(copy: str, folder: str) -> None:
    """Make the collection FOLDER of a backup, or of any copied folder, once every byte of it was checked."""
    from neardup.collections.copies import restore as restored

    restored(copy, folder)
    click.echo(f"made the collection {visible(folder)} of {visible(copy)}", err=True)


@command.command()
@click.argument("folder")
@click.argument("file")
@_banks
@_overwrite
def export(folder: str, file: str, banks: tuple[str, ...], overwrite: bool) -> None:
    """Write the documents to FILE: .jsonl or .parquet."""
    with _opened(folder, read_only=True) as opened:
        count = opened.export(file, banks=_chosen(banks), overwrite=overwrite)
    click.echo(f"{count:,} documents in {visible(file)}", err=True)


@command.command()
@click.argument("folder")
@click.option("--since", type=click.IntRange(min=0), default=0, help="Those after this change.")
@click.option("--follow", is_flag=True, help="Go on with what comes, until interrupted.")
def changes(folder: str, since: int, follow: bool) -> None:
    """Print the log: JSON lines that say what happened to which document, in order."""
    import sys
    import time

    with _opened(folder, read_only=True) as opened:
        while True:
            for row in opened.changes(since=since):
                since = row["change"]
                _line(row)
            sys.stdout.flush()
            if not follow:
                return
            time.sleep(0.2)
