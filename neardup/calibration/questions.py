"""Questions: the pairs of which a person's answer would teach most, and in which order to ask.

Without a rule, as many are asked that the default accepts as that it rejects, of every reason in turn,
since an answer to one kind says little of the next. With one, those come first of which the rule knows
least. No document is asked about twice in one list.
"""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, zip_longest
from typing import Final

import numpy as np

from neardup.calibration.bench import Own, Seen
from neardup.calibration.labels import HEAD
from neardup.calibration.model import Suggestion
from neardup.files import atomic_file
from neardup.verifiers import REASONS, LearnedRule

MOST: Final = 100  # pairs in a list of questions

Pair = tuple[str, str]


def most_useful(
    own: Own, rule: LearnedRule, answered: set[frozenset[str]], most: int = MOST
) -> tuple[Suggestion, ...]:
    """The pairs of the documents' own of which *rule* knows least, none of those that are *answered*."""
    rows = np.flatnonzero(own.seen.known)
    far = np.abs(rule.scores(own.seen.figures[rows]))
    ids = [own.pair(row) for row in rows.tolist()]
    order = sorted(range(len(rows)), key=lambda at: (int(far[at]), ids[at]))
    return tuple(_chosen(own, (int(rows[at]) for at in order), answered, most))


def first_questions(own: Own, answered: set[frozenset[str]], most: int = MOST) -> tuple[Suggestion, ...]:
    """What to ask as long as nothing was learned: near the decision of the default, of every reason in
    turn."""
    return tuple(_chosen(own, by_turns(own), answered, most))


def by_turns(own: Own) -> Iterator[int]:
    """The rows of pairs: one that is accepted, one that is not, and so on; of each the reasons in turn."""
    seen = own.seen
    sides = []
    for accepted in (True, False):
        queues = []
        rows = np.flatnonzero(seen.known & (seen.accepted == accepted))
        for code in np.unique(seen.code[rows]).tolist():
            # The least similar that was accepted, the most similar that was not.
            plain = own.measured.plain
            some = rows[seen.code[rows] == code].tolist()
            queues.append(
                sorted(some, key=lambda row: (plain[row] if accepted else -plain[row], own.pair(row)))
            )
        sides.append(_in_turn(queues))
    return _in_turn(sides)


def _in_turn(queues: Iterable[Iterable[int]]) -> Iterator[int]:
    return (row for row in chain.from_iterable(zip_longest(*queues, fillvalue=-1)) if row >= 0)


def _chosen(own: Own, rows: Iterable[int], answered: set[frozenset[str]], most: int) -> Iterator[Suggestion]:
    met: set[str] = set()
    for row in rows:
        one, other = own.pair(row)
        if met & {one, other} or frozenset((one, other)) in answered:
            continue
        met |= {one, other}
        yield suggestion(own, row)
        most -= 1
        if not most:
            return


def suggestion(own: Own, row: int) -> Suggestion:
    """The pair in that row, as it is shown."""
    seen: Seen = own.seen
    one, other = own.pair(row)
    reason, accepted = REASONS[seen.code[row]], bool(seen.accepted[row])
    return Suggestion(one, other, float(own.measured.plain[row]), reason, accepted=accepted)


def with_texts(pairs: Iterable[Suggestion], texts: Mapping[str, str]) -> tuple[Suggestion, ...]:
    """The same with the texts of each."""
    return tuple(replace(pair, texts=(texts[pair.one], texts[pair.other])) for pair in pairs)


def write_questions(
    pairs: Sequence[Suggestion], path: str | os.PathLike[str], *, overwrite: bool = False
) -> None:
    """Write pairs to be labelled: JSON lines with their texts if the name ends so, else CSV to be filled
    in."""
    if os.fspath(path).endswith((".jsonl", ".ndjson")):
        rows = [
            {"id1": pair.one, "id2": pair.other, "label": None, "similarity": round(pair.similarity, 4)}
            | {"reason": pair.reason, "text1": pair.texts[0], "text2": pair.texts[1]}
            for pair in pairs
        ]
        data = "".join(json.dumps(row) + "\n" for row in rows)
    else:
        file = io.StringIO(newline="")
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*HEAD, "similarity", "reason"])
        writer.writerows([pair.one, pair.other, "", f"{pair.similarity:.4f}", pair.reason] for pair in pairs)
        data = file.getvalue()
    with atomic_file(path, overwrite=overwrite) as out:
        out.write(data.encode("utf-8", "surrogatepass"))
