"""`neardup explain`: why two documents are near-duplicates, or not."""

from __future__ import annotations

import dataclasses
import json
import os
import sys
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import click

from neardup.adapters.cli import visible

if TYPE_CHECKING:
    from neardup.contents import Content
    from neardup.explain import ImageExplanation


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
@click.option(
    "--ignore-colour", is_flag=True, help="Treat an image in clearly different colours as the same one."
)
@click.option("--json", "as_json", is_flag=True, help="Write JSON.")
def command(
    left: str,
    right: str,
    run_path: str | None,
    inputs: tuple[str, ...],
    name: str | None,
    features: int,
    ignore_colour: bool,
    as_json: bool,
) -> None:
    """Compare two documents, by id in a run (--run OUT) or as two files.

    Shows fingerprints, distance, verdict, measured similarity, the features that differ and weigh most, and
    a word diff. Two files are judged by the default rule, as if there were no other document.
    For images: what leads from one to the other, and where they then differ.
    """
    if run_path is not None and name is not None:
        raise click.UsageError("the run has its scheme; --scheme is for two files")
    content = _content(run_path, left, right, name)
    if content.name not in EXPLAINED:
        raise click.UsageError(f"there is nothing to explain about {content.noun}s")
    asked = Asked(left, right, run_path, name or content.scheme, inputs, features, ignore_colour)
    found = EXPLAINED[content.name](asked)
    if as_json:
        click.echo(json.dumps(found.facts))
    else:
        found.show()


@dataclass(frozen=True)
class Asked:
    """What is to be explained, and how."""

    left: str
    right: str
    run: str | None
    scheme: str | None
    inputs: tuple[str, ...]
    features: int
    ignore_colour: bool


@dataclass(frozen=True)
class Explained:
    """What there is to say: as JSON, and for people."""

    facts: dict[str, Any]
    show: Callable[[], None]


def _content(run: str | None, left: str, right: str, scheme: str | None) -> Content:
    from neardup.contents import TEXT, content_for
    from neardup.runs import Run

    if run is not None:
        return Run(run).content
    found = content_for(left, scheme=scheme)
    return found if found == TEXT or content_for(right, scheme=scheme) == found else TEXT


def _explain_texts(asked: Asked) -> Explained:
    from neardup.diffs import excerpt, word_diff
    from neardup.explain import explain

    left, right, run = asked.left, asked.right, asked.run
    evidence: dict[str, Any] | None = None
    judged: dict[str, Any] | None = None
    notes: list[str] = []
    weighed: list[tuple[str, int]] = []
    measure, how = "similarity", "the default rule, the two alone"
    if run is not None:
        texts, scheme, evidence, judged, notes, weighed = _from_run(run, left, right, asked.inputs)
        measure, how = _measure(run), "measured now"
    else:
        texts, scheme = _from_files(left, right, asked.scheme or "text")
        judged, notes = _judged_alone(scheme, texts)
    found = explain(scheme, *texts, most=asked.features)
    pieces = excerpt(word_diff(*texts))
    facts: dict[str, Any] = {
        "documents": [left, right],
        **dataclasses.asdict(found),
        "evidence": evidence,
        "judged": judged,
        "weighed": [{"what": words, "percent": percent} for words, percent in weighed],
        "notes": notes,
        "diff": [dataclasses.asdict(piece) for piece in pieces],
    }

    def show() -> None:
        goes = None if run is None else _goes(run, left, right)
        _show(left, right, found, evidence, judged, how, measure, weighed, notes, pieces, goes)

    return Explained(facts, show)


def _explain_images(asked: Asked) -> Explained:
    from neardup.errors import RefusedInput
    from neardup.explain import explain_images
    from neardup.files import file_digest
    from neardup.images.proposals import RADIUS
    from neardup.images.rules import RULES, rule_of
    from neardup.images.thumbs import BadImage
    from neardup.runs import Run
    from neardup.schemes import scheme
    from neardup.types import PROTECTED

    left, right, run_path, ignore_colour = asked.left, asked.right, asked.run, asked.ignore_colour
    evidence, notes, rule = None, [], rule_of("default", ignore_colour=ignore_colour)
    if run_path is not None:
        run = Run(run_path)
        left, right = run.named(left), run.named(right)
        guarded = {PROTECTED + one.id: one.sha256 for one in run.protected}
        notes = _fates(run, (left, right), guarded)
        known = {one.id: one.sha256 for one in run.inputs} | guarded
        for id in (left, right):
            path = run.path_of(id)
            if os.path.isfile(path) and known.get(id) not in (None, file_digest(path)):
                notes.append(f"{id} changed since the run")
        evidence = run.pair(left, right)
        if evidence is None:
            notes.append("the run did not measure this pair; the figures are computed now")
        told = run.settings
        if told.get("verify") in RULES:
            rule = rule_of(
                told["verify"],
                told.get("similarity"),
                ignore_colour=ignore_colour or bool(told.get("ignore_colour")),
            )
    data = []
    for id in (left, right):
        try:
            with open(id if run_path is None else run.path_of(id), "rb") as file:
                data.append(file.read())
        except OSError as error:
            raise RefusedInput(f"{id!r} cannot be read: {error.strerror}") from None
    try:
        found = explain_images(scheme(asked.scheme or "image"), data[0], data[1], rule=rule)
    except BadImage as fault:
        raise RefusedInput(f"{left!r} and {right!r} cannot be compared: {fault}") from None
    if found.proposed is None:
        notes.append(f"no part, turn or mirror is within {RADIUS} bits: a run would not look at this pair")
    facts = {
        "documents": [left, right],
        **dataclasses.asdict(found),
        "evidence": evidence,
        "notes": notes,
    }
    return Explained(facts, lambda: _show_images(left, right, found, evidence, notes))


def _show_images(
    left: str, right: str, found: ImageExplanation, evidence: dict[str, Any] | None, notes: list[str]
) -> None:
    verdict, reason = (
        (found.accepted, found.reason) if evidence is None else (evidence["accepted"], evidence["reason"])
    )
    rows = []
    for side, print, name, (width, height), reduced in zip(
        ("left", "right"), (found.left, found.right), (left, right), found.sizes, found.reduced, strict=True
    ):
        scale = ", decoded at a reduced scale" if reduced else ""
        rows.append((side, f"{print or 'no information'}  {name} ({width} x {height}{scale})"))
    if found.distance is not None:
        rows.append(("distance", f"{found.distance} of {found.bits} bits, as they are"))
    if found.proposed is not None:
        rows.append(("nearest view", f"{found.proposed} of 256 bits"))
    rows += [
        ("verdict", f"{'accepted' if verdict else 'rejected'}: {reason}"),
        ("similarity", f"{found.similarity:.3f}"),
        ("blocks that agree", f"{found.agree:.3f} ({_counted(found.differs)})"),
        ("by what they show", f"{found.agreement:.3f}, {found.fine_agreement:.3f} on the finer image"),
        ("shown by the other", f"{found.left_shown:.0%} of left, {found.right_shown:.0%} of right"),
        ("map", " ".join(f"{number:.3f}" for number in found.map)),
        ("scheme", f"{found.scheme} {found.digest}"),
    ]
    _table(rows, notes)
    other = "right" if found.differs_of == "left" else "left"
    border = "" if found.boxes[found.differs_of == "right"] == (0, 0, 1, 1) else " without its border"
    click.echo(
        f"\nthe {found.differs_of} image{border}, block by block "
        f"(. the same, # differs, - too plain to tell, blank: not in the {other} one):"
    )
    for line in found.differs:
        click.echo(f"  |{line}|")


# How the documents of a content are explained.
EXPLAINED: Final[dict[str, Callable[[Asked], Explained]]] = {"text": _explain_texts, "image": _explain_images}


def _counted(rows: Sequence[str]) -> str:
    """How many of the blocks that show something agree."""
    same, other = (sum(row.count(mark) for row in rows) for mark in ".#")
    return f"{same} of {same + other}"


def _fates(run: Any, ids: tuple[str, str], protected: Container[str]) -> list[str]:
    """What became of each document. Those of --protect have no annotation."""
    from neardup.errors import InvalidValue
    from neardup.types import PROTECTED

    notes = []
    for id in ids:
        if (row := run.document(id)) is not None:
            notes.append(f"{id} stays" if row["keep"] else _gone(row))
        elif id in protected:
            notes.append(f"{id} is protected and stays")
        elif run.protected:
            raise InvalidValue(
                f"no document {id.removeprefix(PROTECTED)!r} in run {run.path!r}, nor in what it protected; "
                "if its file is elsewhere now, name it with --input"
            )
        else:
            raise InvalidValue(f"no document {id!r} in run {run.path!r}")
    return notes


def _goes(path: str, left: str, right: str) -> str | None:
    """Which of the two the run removes, "left" or "right"; None if neither or both."""
    from neardup.runs import Run

    run = Run(path)
    rows = [run.document(id) for id in (left, right)]
    gone = [row is not None and not row["keep"] for row in rows]
    return None if gone[0] == gone[1] else "left" if gone[0] else "right"


def _gone(row: dict[str, Any]) -> str:
    if row["duplicate_of"] is None:  # with --keep none
        return f"{row['id']} goes with its cluster"
    return f"{row['id']} goes; it duplicates {row['duplicate_of']}"


def _table(rows: list[tuple[str, str]], notes: list[str]) -> None:
    width = max(len(key) for key, _ in rows)
    for key, value in rows:
        click.echo(f"{key:<{width}}  {visible(value)}")
    for note in notes:
        click.echo(f"note: {visible(note)}")


def _from_run(
    path: str, left: str, right: str, inputs: tuple[str, ...]
) -> tuple[list[str], Any, dict[str, Any] | None, dict[str, Any] | None, list[str], list[tuple[str, int]]]:
    """Texts and scheme; the evidence, or what is measured now where the run has none; notes; and what weighed
    most, if a learned rule decided."""
    from neardup.errors import InvalidValue
    from neardup.explain import judge, weigh
    from neardup.runs import Run
    from neardup.verifiers import NEIGHBOURS

    run = Run(path)
    left, right = run.named(left), run.named(right)
    if not run.protected:
        _fates(run, (left, right), ())  # a wrong id is reported before anything is read
    evidence = run.pair(left, right)
    others: list[str] = []
    again = evidence is None or run.learned is not None
    if again:
        others = [id for one in (left, right) for id in run.neighbours(one, NEIGHBOURS)]
        others = sorted(set(others) - {left, right})
    texts, scheme, whole = run.texts([left, right, *others], inputs, whole=again)
    notes = _fates(run, (left, right), texts)
    for id in (left, right):
        if id not in texts:
            raise InvalidValue(f"document {id!r} is not in the inputs any more; give them with --input")
    if run.digest not in (None, scheme.digest):
        notes.append("the inputs changed since the run: fingerprints here are not those of the run")
    both = [texts[left], texts[right]]
    radius = 0 if run.radius is None else run.radius
    near = [texts[id] for id in others if id in texts]
    weighed = weigh(run.measure, scheme, radius, whole, [*both, *near]) if again else []
    if evidence is not None:
        return both, scheme, evidence, None, notes, weighed
    notes.append(_unmeasured(run, scheme, left, right, both))
    found = judge(run.measure, scheme, radius, whole, [*both, *near])
    return both, scheme, None, None if found is None else dataclasses.asdict(found), notes, weighed


def _unmeasured(run: Any, scheme: Any, left: str, right: str, texts: list[str]) -> str:
    """Why the run did not measure a pair."""
    from neardup.distances import distance

    prints = [scheme.fingerprint(text) for text in texts]
    for id, print in zip((left, right), prints, strict=True):
        if print is None:
            return f"not a candidate in this run: {id} has no information and is compared with nothing"
    apart = distance(*prints)
    if run.radius is not None and apart > run.radius:
        return f"not a candidate in this run: distance {apart} is above its radius of {run.radius}"
    if all(run.document(id) is None for id in (left, right)):
        return "not measured in this run: both are protected"
    for name in ("within", "across", "subject"):
        if run.settings.get(name) is not None:
            return f"not measured in this run, which compares only {name} {run.settings[name]!r}"
    return "not measured in this run: one is a copy of another document, or the search missed the pair"


def _measure(path: str) -> str:
    """What the column `similarity` of a run holds."""
    from neardup.runs import Run

    measure = Run(path).measure
    return measure.name if measure.threshold else "similarity"


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


def _judged_alone(scheme: Any, texts: list[str]) -> tuple[dict[str, Any] | None, list[str]]:
    """The verdict of the default rule on two texts without neighbours, or a note why there is none."""
    from neardup.explain import judge
    from neardup.verifiers import measuring_scheme, parse_measure

    found = judge(parse_measure("default"), scheme, 0, measuring_scheme().fit(texts), texts)
    if found is None:
        return None, ["no verdict: a text without information is compared with nothing"]
    return dataclasses.asdict(found), []


def _show(
    left: str,
    right: str,
    found: Any,
    evidence: dict[str, Any] | None,
    judged: dict[str, Any] | None,
    how: str,
    measure: str,
    weighed: list[tuple[str, int]],
    notes: list[str],
    pieces: list[Any],
    goes: str | None,
) -> None:
    from neardup.contents import TEXT

    rows = [
        ("left", f"{found.left or 'no information'}  {left}"),
        ("right", f"{found.right or 'no information'}  {right}"),
    ]
    apart = found.distance if evidence is None else evidence["distance"]
    if apart is not None:
        rows.append(("distance", f"{apart} of {found.bits} bits"))
    figures = evidence or judged
    if figures is not None:
        verdict = "accepted" if figures["accepted"] else "rejected"
        rows.append(("verdict", f"{verdict}: {figures['reason']}{f' ({how})' if judged else ''}"))
    if figures is None or figures["similarity"] is None:
        now = "" if figures is None else " (measured now)"
        rows.append(("similarity", f"{found.similarity:.3f}{now}"))
    else:
        rows.append((measure, f"{figures['similarity']:.3f}"))
        rows += [(said, f"{figures[key]:.3f}") for key, said in TEXT.said.items() if key in figures]
    rows.append(("scheme", f"{found.scheme} {found.digest}"))
    if evidence is not None and evidence.get("rule"):
        rows.append(("rule", evidence["rule"]))
    _table(rows, notes)
    if weighed:
        click.echo("\nwhat weighed most for the learned rule (below 0 against the pair):")
        for words, percent in weighed:
            click.echo(f"  {percent:+4} %  {words}")
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
    # As in any diff what is struck through is on the left, unless it is the right one that goes.
    struck = goes or "left"
    click.echo(f"[-only {struck}{', which goes' if goes else ''}-] {{+only {_other(struck)}+}}")
    if sys.stdout.isatty():
        _show_colours(pieces, struck)
    else:
        click.echo("".join(_plain(piece, struck) for piece in pieces).rstrip())


def _other(side: str) -> str:
    return "right" if side == "left" else "left"


def _plain(piece: Any, struck: str) -> str:
    if piece.op == "same":
        return _lines(piece.left)
    if piece.op == "cut":
        return f"[... {max(piece.left_cut, piece.right_cut):,} words ...] "
    gone, kept = (getattr(piece, side).rstrip() for side in (struck, _other(struck)))
    shown = (f"[-{_lines(gone)}-]" if gone else "") + (f"{{+{_lines(kept)}+}}" if kept else "")
    longer: str = piece.right or piece.left
    return shown + longer[len(longer.rstrip()) :]


def _show_colours(pieces: list[Any], struck: str) -> None:
    from rich.console import Console
    from rich.text import Text

    text = Text()
    for piece in pieces:
        if piece.op == "same":
            text.append(_lines(piece.left))
        elif piece.op == "cut":
            text.append(f"… {max(piece.left_cut, piece.right_cut):,} words … ", style="dim italic")
        else:
            text.append(_lines(getattr(piece, struck)), style="red strike")
            text.append(_lines(getattr(piece, _other(struck))), style="green underline")
    Console(highlight=False, markup=False, emoji=False).print(text)


def _lines(text: str) -> str:
    """*text* safe for a terminal, its line ends kept."""
    return "".join(part if part in "\n\t" else visible(part) for part in _parts(text))


def _parts(text: str) -> list[str]:
    import re

    return re.split(r"([\n\t])", text)
