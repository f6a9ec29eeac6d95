"""Calibration: what each setting would find on your documents, measured before anything is decided.

Documents of the collection are sampled, edited copies of them are planted among the others (one
copy per document, so that a copy is as rare as in real life), and the stages of a real run say which
ones are found: that is the recall, for each kind and amount of editing. The precision is measured
if labelled pairs are given. Without them it is only expected, from other collections: nothing here can
tell whether the pairs that are accepted among the documents themselves are copies or forms filled in
twice. So they are counted and shown, and nothing looser than the default is recommended.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from neardup.calibration.advice import Advice, edit_rows, recommend, row_of
from neardup.calibration.bench import Bench, Own, Seen
from neardup.calibration.labels import LABEL_NAMES, one_each, read_answers, read_labels
from neardup.calibration.learning import FEWEST, FEWEST_OF_A_KIND, Answers, learn
from neardup.calibration.model import (
    COPIES,
    MODES,
    SAMPLE,
    SIMILARITIES,
    Calibration,
    Choices,
    EditRow,
    Flags,
    Label,
    Measured,
    Row,
    Suggestion,
)
from neardup.calibration.questions import first_questions, most_useful, with_texts, write_questions
from neardup.calibration.sampling import Copy, plant, take_sample
from neardup.errors import InvalidValue
from neardup.observers import SILENT, Observer, checked, watching
from neardup.schemes import Scheme
from neardup.schemes import scheme as scheme_of
from neardup.settings import default_scheme
from neardup.sources import Source, open_source
from neardup.verifiers import LearnedRule
from neardup.wording import counted

__all__ = [
    "COPIES",
    "LABEL_NAMES",
    "MODES",
    "SAMPLE",
    "SIMILARITIES",
    "Advice",
    "Calibration",
    "Choices",
    "Copy",
    "EditRow",
    "Label",
    "Measured",
    "Own",
    "Row",
    "Suggestion",
    "calibrate",
    "plant",
    "read_answers",
    "read_labels",
    "recommend",
    "take_sample",
    "write_questions",
]


def calibrate(
    data: Any,
    *,
    labels: Iterable[Label] = (),
    scheme: str | Scheme | None = None,
    text_field: str | Sequence[str] = "text",
    id_field: str | None = None,
    choices: Choices | None = None,
    threads: int | None = None,
    observer: Observer = SILENT,
    source: Source | None = None,
) -> Calibration:
    """Measure what each setting would find in *data*: a path, several, a table or documents.

    The same data, seed and labels give the same answer, whatever the order of the documents.
    """
    choices = choices or Choices()
    if source is None:
        source = open_source(data, text_field=text_field, id_field=id_field, unique=True)
    pairs = one_each(labels)
    wanted = {id for label in pairs for id in (label.one, label.other)}
    sample, whole = take_sample(
        source, choices.sample, choices.seed, wanted, threads=threads, observer=observer
    )
    # A file of labels has no white space around its cells.
    known = {id.strip(): row for row, id in enumerate(sample)}
    known |= {id: row for row, id in enumerate(sample)}
    if missing := sorted(wanted - known.keys()):
        others = f" ({len(missing):,} ids are not there)" if len(missing) > 1 else ""
        raise InvalidValue(f"labels: no document {missing[0]!r} in the input{others}")
    texts = list(sample.values())
    rounds = plant(list(sample), texts, choices)
    if scheme is None:
        scheme = default_scheme(source.documents)
    bench = Bench(list(sample), texts, whole, scheme_of(scheme), choices, threads)
    labelled = np.array([(known[label.one], known[label.other]) for label in pairs], np.int64).reshape(-1, 2)
    planted: list[Measured] = []
    with watching(observer, source), observer.stage("calibrate") as advance:
        # The documents' own pairs as a run would find them: there is no copy yet.
        _, judged, seen, own = bench.run([], labelled)
        advance(len(sample), 0)
        for number, copies in enumerate(checked(rounds, observer), start=2):
            planted.append(bench.run(copies)[0])
            advance(len(sample) * number, 0)
    flat = [copy for one in rounds for copy in one]
    edits = edit_rows(flat, Measured.joined(planted), bench.radii, choices)
    same = np.array([label.same for label in pairs], dtype=bool)
    rows = tuple(
        row_of(mode, similarity, radius, edits, at, own, judged, same)
        for mode in MODES
        for at, (similarity, radius) in enumerate(zip(SIMILARITIES, bench.radii, strict=True))
    )
    counted = sum(row.copies for row in edits if row.counted)
    advice = recommend(rows, choices, copies=counted, labels=len(pairs), same=int(same.sum()))
    answered = {frozenset((label.one, label.other)) for label in pairs}
    suggestions = own.suggestions(advice.row, answered)
    rule, why = _learned(pairs, seen, same, judged.identical)
    following = first_questions(own, answered) if rule is None else most_useful(own, rule, answered)
    return Calibration(
        documents=source.documents,
        sampled=len(sample),
        copies=len(flat),
        rounds=len(rounds),
        bits=bench.scheme.bits,
        scheme=bench.scheme.name,
        similarities=SIMILARITIES,
        rows=rows,
        edits=edits,
        labels=len(pairs),
        recommended=advice.row if advice.good else None,
        marked=advice.row,
        why=advice.why,
        suggestions=with_texts(suggestions, sample),
        choices=choices,
        learned=rule,
        unlearned=why,
        asked_next=with_texts(following, sample),
    )


def _learned(
    labels: Sequence[Label], seen: Seen, same: Flags, identical: Flags
) -> tuple[LearnedRule | None, str]:
    """The rule that the labels make; or none, and why."""
    if not labels:
        return None, ""
    pairs = [(label.one, label.other) for label in labels]
    answers = Answers(pairs, seen.figures, same, seen.accepted).rows(np.flatnonzero(seen.known))
    if not answers.enough:
        yes = int(answers.same.sum())
        return None, (
            f"{counted(len(answers), 'labelled pair')} a rule can decide ({yes:,} the same): "
            f"{FEWEST} are needed, and {FEWEST_OF_A_KIND} of either kind; the others are one text, "
            "or too different for any rule"
        )
    return learn(answers, missed=int((same & ~seen.known & ~identical).sum())), ""
