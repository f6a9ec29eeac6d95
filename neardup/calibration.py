"""Calibration: what each setting would find on your documents, measured before anything is decided.

Documents of the collection are sampled, edited copies of them are planted among the others (one
copy a document, so that a copy is as rare as in real life), and the stages of a real run say which
ones are found: that is the recall, for each kind and amount of editing. The precision is measured
where labelled pairs are given. Without them it is only expected, from other collections: whether the
pairs that are accepted among the documents themselves are copies or forms filled in twice, nothing here
can tell. So they are counted and shown, and nothing looser than the default is recommended.
"""

from __future__ import annotations

import csv
import hashlib
import heapq
import math
import os
import random
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup.checks import check_share
from neardup.edits import EDITS, FEWEST_WORDS, Edit, Vocabulary, edited, word_count
from neardup.errors import InvalidValue
from neardup.pipeline import JOIN_RECALL, Flow, Representatives, Settings, default_scheme
from neardup.progress import stage
from neardup.radius import radius_for
from neardup.schemes import Scheme
from neardup.schemes import scheme as scheme_of
from neardup.schemes.fitting import fit_batches
from neardup.sources import Source, open_source
from neardup.stars import stars
from neardup.verify import REASONS, SAME, WHOLE, Verifier, measuring_scheme, parse_measure

Rows = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

MODES: Final = ("default", "strict", "loose")
SIMILARITIES: Final = (0.60, 0.64, 0.68, 0.72, 0.76, 0.80, 0.84, 0.88, 0.92, 0.96)
SAMPLE: Final = 20_000
COPIES: Final = 1_000
ROUNDS: Final = 10
# Another setting must be better than the default one by this much to be recommended.
WORTH_IT: Final = 0.01
# Copies, or labelled pairs, on which a figure must rest to be followed.
FEWEST: Final = 30
# Pairs that are shown to be looked at.
SHOWN: Final = 10

# The share of accepted pairs that are right, by the reason that accepted them, on the labelled
# collections of benchmarks/quality.py --reasons, all together.
KNOWN_PRECISION: Final[dict[str, dict[str, float]]] = {
    "default": {
        "nearly identical": 0.980,
        "nearly identical, perhaps a form": 0.926,
        "same short text, edited": 0.985,
        "revision": 0.956,
    },
    "strict": {"nearly identical": 0.980},
    "loose": {
        "nearly identical": 0.974,
        "nearly identical, perhaps a form": 0.806,
        "same short text, edited": 0.979,
        "revision": 0.616,
    },
}


@dataclass(frozen=True, slots=True)
class Choices:
    """What a user may say about a calibration."""

    sample: int = SAMPLE
    """Documents that are looked at; a collection of fewer is looked at whole."""
    copies: int = COPIES
    """Edited copies that are planted, of all kinds together."""
    edits: int = 20
    """Copies with up to so many per cent changed should be found; more is shown, and not asked for."""
    precision: float = 0.95
    """The least precision that is wanted."""
    recall: float = 0.95
    """The share of pairs at a similarity that the search for candidates must not lose."""
    seed: int = 0

    def __post_init__(self) -> None:
        check_share("precision", self.precision)
        check_share("recall", self.recall)
        for name, least in (("sample", 2), ("copies", 1), ("edits", 1)):
            if getattr(self, name) < least:
                raise InvalidValue(f"{name} must be at least {least}, not {getattr(self, name)}")


@dataclass(frozen=True, slots=True)
class Label:
    """What a person said of two documents."""

    one: str
    other: str
    same: bool


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """Pairs, a row each: what was measured and what each mode says."""

    plain: npt.NDArray[np.float64]
    distance: npt.NDArray[np.int64]
    identical: Flags
    accepted: dict[str, Flags]
    reason: dict[str, npt.NDArray[np.uint8]]

    def __len__(self) -> int:
        return len(self.plain)

    def found(self, mode: str, similarity: float, radius: int) -> Flags:
        """Which pairs a run with that setting would accept."""
        near = (self.distance <= radius) & (self.plain >= similarity)
        return self.identical | (near & self.accepted[mode])

    def rows(self, rows: Any) -> Measured:
        """Some of them."""
        return Measured(
            self.plain[rows],
            self.distance[rows],
            self.identical[rows],
            {mode: values[rows] for mode, values in self.accepted.items()},
            {mode: values[rows] for mode, values in self.reason.items()},
        )

    @classmethod
    def joined(cls, parts: Sequence[Measured]) -> Measured:
        """The rows of all *parts*."""
        return cls(
            np.concatenate([part.plain for part in parts]),
            np.concatenate([part.distance for part in parts]),
            np.concatenate([part.identical for part in parts]),
            {mode: np.concatenate([part.accepted[mode] for part in parts]) for mode in MODES},
            {mode: np.concatenate([part.reason[mode] for part in parts]) for mode in MODES},
        )


@dataclass(frozen=True, slots=True)
class Row:
    """One setting and what is to be expected of it. A figure is None where nothing can be said."""

    mode: str
    similarity: float
    radius: int
    recall: float | None
    margin: float | None
    """The recall is as near to the true one 19 times of 20."""
    precision: float | None
    """Expected: how often the reasons for which pairs are accepted here were right on other collections."""
    pairs: int
    """Pairs of different texts that would be accepted among the documents looked at, as they are."""
    doubtful: int
    """Those of them that are not nearly identical."""
    removed: int
    """Documents that would go, of those looked at."""
    labelled: int = 0
    """Labelled pairs that would be accepted: what the measured precision rests on."""
    measured_precision: float | None = None
    measured_recall: float | None = None

    @property
    def looser(self) -> bool:
        """Whether it accepts what the default does not."""
        return self.mode == "loose" or (self.mode == "default" and self.similarity < Settings().similarity)

    @property
    def options(self) -> str:
        """The options of `neardup dedupe` that ask for it."""
        mode = "" if self.mode == "default" else f" --{self.mode}"
        return f"--similarity {self.similarity:g}{mode}"

    @property
    def best_recall(self) -> float | None:
        """Measured where there are labels, else of the planted copies."""
        return self.recall if self.measured_recall is None else self.measured_recall


@dataclass(frozen=True, slots=True)
class EditRow:
    """One kind and amount of editing: how similar the copies are, and the share each setting finds."""

    name: str
    kind: str
    percent: int
    counted: bool
    copies: int
    similarity: float
    """The middle one of the copies."""
    recall: dict[str, list[float]]
    """Mode -> a figure for each of the similarities."""


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A pair of the documents' own that the marked setting accepts, to be looked at and labelled."""

    one: str
    other: str
    similarity: float
    rule: str


@dataclass(frozen=True, slots=True)
class Calibration:
    """Everything that was found."""

    documents: int
    sampled: int
    copies: int
    rounds: int
    bits: int
    scheme: str
    similarities: tuple[float, ...]
    rows: tuple[Row, ...]
    edits: tuple[EditRow, ...]
    labels: int
    recommended: Row | None
    """None where no setting is good enough."""
    marked: Row
    """The recommended one, or the one that comes nearest."""
    why: str
    suggestions: tuple[Suggestion, ...]
    choices: Choices

    def facts(self) -> dict[str, Any]:
        """All of it as plain values, for JSON."""
        return {**asdict(self), "command": self.command}

    def of(self, mode: str) -> list[Row]:
        """The rows of one mode, by similarity."""
        return [row for row in self.rows if row.mode == mode]

    def precision(self, row: Row) -> float | None:
        """Measured where there are labels, else expected."""
        return row.measured_precision if self.labels else row.precision

    @property
    def command(self) -> str | None:
        """The options of `neardup dedupe` that ask for what is recommended."""
        return None if self.recommended is None else self.recommended.options


def calibrate(
    data: Any,
    *,
    labels: Iterable[Label] = (),
    scheme: str | Scheme | None = None,
    text_field: str = "text",
    id_field: str | None = None,
    choices: Choices | None = None,
    threads: int | None = None,
    quiet: bool = True,
    source: Source | None = None,
) -> Calibration:
    """Measure what each setting would find in *data*: a path, several, a table or documents.

    The same data, seed and labels give the same answer, whatever the order of the documents.
    """
    choices = choices or Choices()
    if source is None:
        source = open_source(data, text_field=text_field, id_field=id_field, unique=True)
    pairs = list(labels)
    wanted = {id for label in pairs for id in (label.one, label.other)}
    sample, whole = take_sample(source, choices.sample, choices.seed, wanted, threads=threads, quiet=quiet)
    known = {id: row for row, id in enumerate(sample)}
    if missing := sorted(wanted - known.keys()):
        others = f" ({len(missing):,} ids are not there)" if len(missing) > 1 else ""
        raise InvalidValue(f"labels: no document {missing[0]!r} in the input{others}")
    texts = list(sample.values())
    rounds = plant(list(sample), texts, choices)
    if scheme is None:
        scheme = default_scheme(source.documents)
    bench = _Bench(list(sample), texts, whole, scheme_of(scheme), choices, threads)
    labelled = np.array([(known[label.one], known[label.other]) for label in pairs], np.int64).reshape(-1, 2)
    planted: list[Measured] = []
    with stage("calibrate", quiet=quiet) as advance:
        # The documents' own pairs as a run would meet them: no copy is there yet.
        _, judged, own = bench.run([], labelled)
        advance(len(sample), 0)
        for number, copies in enumerate(rounds, start=2):
            planted.append(bench.run(copies)[0])
            advance(len(sample) * number, 0)
    flat = [copy for one in rounds for copy in one]
    edits = _edit_rows(flat, Measured.joined(planted), bench.radii, choices)
    same = np.array([label.same for label in pairs], dtype=bool)
    rows = tuple(
        _row(mode, similarity, radius, edits, at, own, judged, same)
        for mode in MODES
        for at, (similarity, radius) in enumerate(zip(SIMILARITIES, bench.radii, strict=True))
    )
    counted = sum(row.copies for row in edits if row.counted)
    advice = recommend(rows, choices, copies=counted, labels=len(pairs), same=int(same.sum()))
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
        suggestions=own.suggestions(advice.row, {frozenset((label.one, label.other)) for label in pairs}),
        choices=choices,
    )


# --- the sample and what is planted ----------------------------------------------------------------------


def take_sample(
    source: Source,
    size: int,
    seed: int,
    wanted: set[str],
    *,
    threads: int | None = None,
    quiet: bool = True,
) -> tuple[dict[str, str], Scheme]:
    """Texts by id, of *size* documents and of those that are *wanted*; and how common features are in all.

    Which ones does not depend on the order of the input: those whose id has the smallest hash.
    """
    heap: list[tuple[int, str, str]] = []
    asked: dict[str, str] = {}

    def texts() -> Iterator[Any]:
        for batch in source:
            for id, text in zip(batch.ids.to_pylist(), batch.texts.to_pylist(), strict=True):
                if id in wanted:
                    asked[id] = text
                # The heap has the largest on top: what is to go next.
                place = -_hash(seed, id)
                if len(heap) < size:
                    heapq.heappush(heap, (place, id, text))
                elif place > heap[0][0]:
                    heapq.heapreplace(heap, (place, id, text))
            yield batch.texts

    with stage("sample", total=source.size, quiet=quiet) as advance:
        whole = fit_batches(
            measuring_scheme(),
            texts(),
            threads=threads,
            after=lambda documents: advance(documents, source.consumed),
        )
    chosen = {id: text for _, id, text in sorted(heap, reverse=True)}
    return {**chosen, **{id: asked[id] for id in sorted(asked) if id not in chosen}}, whole


def _hash(seed: int, text: str) -> int:
    key = f"{seed}:{text}".encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(key, digest_size=8).digest(), "little")


@dataclass(frozen=True, slots=True)
class Copy:
    """An edited copy: of which document, and how it was changed."""

    of: int
    edit: Edit
    text: str


def plant(ids: Sequence[str], texts: Sequence[str], choices: Choices) -> list[list[Copy]]:
    """The edited copies of each round: never two of one document, and of at most a third of them.

    Many copies of one text would be a cluster, in which each has company that a lone copy has not.
    """
    vocabulary = Vocabulary(texts)
    able = [row for row, text in enumerate(texts) if word_count(text) >= FEWEST_WORDS]
    if not able:
        raise InvalidValue(
            f"no document of the input has {FEWEST_WORDS} words or more; there is nothing to calibrate on"
        )
    size = max(1, len(able) // 3)
    made: list[Copy] = []
    for number in range(min(choices.copies, size * ROUNDS)):
        row = able[number % len(able)]
        # Another kind for the same document in each turn.
        edit = EDITS[(number + number // len(able)) % len(EDITS)]
        donor = texts[able[(number + 1 + number // len(able)) % len(able)]]
        chance = random.Random(_hash(choices.seed, f"{ids[row]}:{edit.name}"))
        text = edited(texts[row], edit, vocabulary, donor, chance)
        made.append(Copy(row, edit, text))
    rounds = [made[at : at + size] for at in range(0, len(made), size)]
    # An edit that has nothing to work on (no paragraphs to move) leaves the text as it is.
    return [[copy for copy in one if copy.text != texts[copy.of]] for one in rounds]


# --- measuring -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Own:
    """The candidate pairs of the documents themselves, which nobody planted."""

    pairs: Rows
    """By the number of the text, in keep order."""
    measured: Measured
    ids: list[str]
    """Of the document that stands for each text."""
    copies: int
    """Documents whose text another one has."""

    def removed(self, accepted: Flags) -> int:
        """How many documents would go if those pairs were accepted."""
        pairs = self.pairs[accepted]
        # As `--keep central` does: what has most pairs stays.
        degree = np.bincount(pairs.ravel(), minlength=len(self.ids))
        rank = np.empty(len(self.ids), dtype=np.int64)
        rank[np.argsort(-degree, kind="stable")] = np.arange(len(self.ids))
        low, high = np.sort(rank[pairs], axis=1).T
        order = np.lexsort((high, low))
        keeper = stars(len(rank), low[order], high[order])
        return self.copies + int((keeper != np.arange(len(keeper))).sum())

    def suggestions(self, row: Row, labelled: set[frozenset[str]]) -> tuple[Suggestion, ...]:
        """Pairs that *row* accepts, the least similar first, no document twice and none of the *labelled*."""
        rows = np.flatnonzero(self.measured.found(row.mode, row.similarity, row.radius))
        found: list[Suggestion] = []
        met: set[str] = set()
        for at in rows[np.argsort(self.measured.plain[rows], kind="stable")].tolist():
            one, other = sorted(self.ids[text] for text in self.pairs[at].tolist())
            if met & {one, other} or frozenset((one, other)) in labelled:
                continue
            met |= {one, other}
            rule = REASONS[self.measured.reason[row.mode][at]]
            found.append(Suggestion(one, other, float(self.measured.plain[at]), rule))
            if len(found) == SHOWN:
                break
        return tuple(found)


class _Bench:
    """The stages of a run, on the sampled documents with copies planted among them."""

    def __init__(
        self,
        ids: Sequence[str],
        texts: Sequence[str],
        whole: Scheme,
        scheme: Scheme,
        choices: Choices,
        threads: int | None,
    ) -> None:
        self.scheme, self._whole = scheme, whole
        self._ids, self._texts, self._threads = list(ids), list(texts), threads
        self._settings = Settings(similarity=SIMILARITIES[0], recall=choices.recall)
        share = min(choices.recall / JOIN_RECALL, 0.999)
        self.radii = [radius_for(similarity, share, scheme.bits) for similarity in SIMILARITIES]

    def run(self, copies: Sequence[Copy], labelled: Rows | None = None) -> tuple[Measured, Measured, Own]:
        """What is found of the planted pairs, of the labelled ones, and with these of the documents' own."""
        count = len(self._ids)
        ids = [*self._ids, *(f"copy {number} of {copy.of}" for number, copy in enumerate(copies))]
        table = pa.table(
            {
                "id": pa.array(ids, pa.large_string()),
                "text": pa.array([*self._texts, *(copy.text for copy in copies)], pa.large_string()),
            }
        )
        source = open_source(table)
        flow = Flow(self._settings, self.scheme, threads=self._threads)
        documents, _, fixed = flow.survey([source])
        # As common as in the whole collection, of which this is a sample, with the copies in it.
        frequencies = fit_batches(
            measuring_scheme(),
            [table.column("text").slice(count)],
            parts=[self._whole],
            threads=self._threads,
        ).frequencies
        fitted = self.scheme
        if fitted.weights == "log-df" and fitted.frequencies is None:
            fitted = replace(fitted, frequencies=frequencies)
        same = Representatives.of(documents, self._settings, flow.keep, fixed, self._threads)
        prints = flow.fingerprint([source], fitted, same)
        found = flow.candidates(prints, same)

        planted = np.array([(copy.of, count + at) for at, copy in enumerate(copies)], np.int64).reshape(-1, 2)
        asked = np.zeros((0, 2), np.int64) if labelled is None else labelled
        rows = np.concatenate([planted, asked])
        text = same.of_document[rows].astype(np.int64)
        # The documents' own pairs: candidates that no copy is in.
        is_copy = same.document >= count
        own = np.flatnonzero(~is_copy[found.left] & ~is_copy[found.right] & (labelled is not None))
        natural = np.stack([found.left[own], found.right[own]], axis=1)

        everyone = np.unique(np.concatenate([found.left, found.right, text[text >= 0]]))
        numbers = np.full(len(documents), -1, dtype=np.int64)
        numbers[same.document[everyone]] = everyone
        with tempfile.TemporaryDirectory(prefix="neardup-") as folder:
            verifier = Verifier(
                flow.measure,
                frequencies,
                len(same.document),
                wanted=everyone,
                spill=os.path.join(folder, "texts"),
                memory=flow.memory,
                threads=self._threads,
            )
            at = 0
            for batch in source:
                verifier.add(numbers[at : at + len(batch)], batch.texts)
                at += len(batch)
            verifier.meet(found.left, found.right)
            pairs = _judged(
                verifier, text, _distances(prints.words, prints.valid, same.place(rows), fitted.bits)
            )
            own_pairs = _judged(verifier, natural, found.distance[own].astype(np.int64))
        split = len(planted)
        known = [ids[document] for document in same.document.tolist()]
        spare = int((same.of_document >= 0).sum()) - len(known)
        return (
            pairs.rows(slice(split)),
            pairs.rows(slice(split, None)),
            Own(natural, own_pairs, known, spare),
        )


def _judged(verifier: Verifier, pairs: Rows, distance: npt.NDArray[np.int64]) -> Measured:
    """Pairs of texts (-1 where there is no information), judged in every mode."""
    count = len(pairs)
    identical = (pairs[:, 0] == pairs[:, 1]) & (pairs[:, 0] >= 0)
    asked = np.flatnonzero(~identical & (pairs >= 0).all(axis=1))
    plain = np.where(identical, 1.0, 0.0)
    accepted = {mode: identical.copy() for mode in MODES}
    reason = {mode: np.full(count, REASONS.index("too different"), np.uint8) for mode in MODES}
    for mode in MODES:
        measure = parse_measure(mode, SIMILARITIES[0])
        for at in range(0, len(asked), 8192):
            part = asked[at : at + 8192]
            left, right = np.sort(pairs[part], axis=1).T
            found = verifier.judge(np.ascontiguousarray(left), np.ascontiguousarray(right), measure)
            plain[part] = found.plain
            accepted[mode][part] = found.accepted
            reason[mode][part] = found.reason
    return Measured(plain, distance, identical, accepted, reason)


def _distances(words: npt.NDArray[np.uint64], valid: Flags, rows: Rows, bits: int) -> npt.NDArray[np.int64]:
    """Distances of pairs of documents; more than any where one has no fingerprint."""
    apart = np.ascontiguousarray(words[rows[:, 0]] ^ words[rows[:, 1]])
    counts = np.unpackbits(apart.view(np.uint8), axis=1).sum(axis=1).astype(np.int64)
    return np.where(valid[rows].all(axis=1), counts, bits + 1)


# --- what follows ----------------------------------------------------------------------------------------


def _edit_rows(
    copies: Sequence[Copy], planted: Measured, radii: Sequence[int], choices: Choices
) -> tuple[EditRow, ...]:
    made = []
    for edit in EDITS:
        rows = np.flatnonzero([copy.edit == edit for copy in copies])
        if not len(rows):
            continue
        some = planted.rows(rows)
        recall = {
            mode: [
                float(some.found(mode, similarity, radius).mean())
                for similarity, radius in zip(SIMILARITIES, radii, strict=True)
            ]
            for mode in MODES
        }
        middle = float(np.median(some.plain))
        counted = edit.percent <= choices.edits
        made.append(EditRow(edit.name, edit.kind, edit.percent, counted, len(rows), middle, recall))
    return tuple(made)


def _row(
    mode: str,
    similarity: float,
    radius: int,
    edits: Sequence[EditRow],
    at: int,
    own: Own,
    judged: Measured,
    same: Flags,
) -> Row:
    counted = [row for row in edits if row.counted]
    recall = margin = None
    if counted:
        # Every kind and amount counts alike, however many copies of it there are.
        shares = [row.recall[mode][at] for row in counted]
        recall = sum(shares) / len(shares)
        # As if one more were found and one more missed: of two copies that were found, not all are.
        near = [
            (share * row.copies + 1) / (row.copies + 2) for share, row in zip(shares, counted, strict=True)
        ]
        spread = sum(share * (1 - share) / row.copies for share, row in zip(near, counted, strict=True))
        margin = 1.96 * math.sqrt(spread) / len(counted)
    natural = own.measured
    found = natural.found(mode, similarity, radius)
    doubtful = found & (natural.plain < SAME / WHOLE)
    pairs = int(found.sum())
    right = sum(
        KNOWN_PRECISION[mode].get(REASONS[code], 1.0) * int(number)
        for code, number in enumerate(np.bincount(natural.reason[mode][found], minlength=len(REASONS)))
    )
    yes = judged.found(mode, similarity, radius)
    good = int((yes & same).sum())
    return Row(
        mode=mode,
        similarity=similarity,
        radius=radius,
        recall=recall,
        margin=margin,
        precision=right / pairs if pairs else None,
        pairs=pairs,
        doubtful=int(doubtful.sum()),
        removed=own.removed(found),
        labelled=int(yes.sum()),
        measured_precision=good / int(yes.sum()) if yes.any() else None,
        measured_recall=good / int(same.sum()) if same.any() else None,
    )


class Advice(NamedTuple):
    """A setting; whether it is good enough to be recommended; and why, or why not."""

    row: Row
    good: bool
    why: str


def recommend(rows: Sequence[Row], choices: Choices, *, copies: int, labels: int, same: int) -> Advice:
    """The setting with the best recall among those that are precise enough, or the most precise one.

    The default stays unless something is better by a clear margin. Nothing looser is recommended on
    precision that was not measured: siblings of one form, if the collection has them, are not in what is
    expected. *copies* and *labels* are what the figures rest on, *same* are the labels that say yes.
    """

    def precision(row: Row) -> float | None:
        return row.measured_precision if labels else row.precision

    usual = next(row for row in rows if row.mode == "default" and row.similarity == Settings().similarity)
    if not labels and copies < FEWEST:
        return Advice(usual, True, f"it is the default, and too little was measured: {copies} copies")
    if labels and all(precision(row) is None for row in rows):
        why = "it is the default, and no setting accepts a labelled pair: label some that are accepted"
        return Advice(usual, True, why)
    # A setting that accepts nothing makes no mistake; but of labels it has passed no test.
    known = [(row, precision(row)) for row in rows if labels or not row.looser]
    reach = [row for row, found in known if (not labels if found is None else found >= choices.precision)]
    if not reach:
        return _none_reaches(
            [(row, found) for row, found in known if found is not None], choices, labels=labels, same=same
        )
    good = [row for row in reach if not row.looser or row.labelled >= FEWEST]
    target = f"a precision of {choices.precision:g}"
    if not good:
        why = f"only settings looser than the default reach {target}, on fewer than {FEWEST} labelled pairs"
        return Advice(usual, False, f"{why}: label more")
    highest = max(row.best_recall or 0.0 for row in good)
    near = [row for row in good if (row.best_recall or 0.0) >= highest - WORTH_IT]
    best = min(
        near,
        key=lambda row: (
            row != usual,
            MODES.index(row.mode),
            abs(row.similarity - usual.similarity),
            row.similarity,
        ),
    )
    word = "measured" if labels else "expected"
    if best == usual:
        why = f"no other setting with {target}, {word}, finds over {WORTH_IT:.0%} more than the default"
        if not labels:
            why = "it is the default; nothing looser is recommended on a precision that is only expected"
    elif usual not in good:
        found = precision(usual)
        told = "was not measured" if found is None else f"is {found:.3f}, {word}: below {choices.precision:g}"
        why = f"the default's precision {told}; this one finds most of those that reach it"
    else:
        more = (best.best_recall or 0.0) - (usual.best_recall or 0.0)
        why = f"it finds {more:.1%} more than the default with {target} or more, {word}"
    return Advice(best, True, why)


def _none_reaches(known: Sequence[tuple[Row, float]], choices: Choices, *, labels: int, same: int) -> Advice:
    """The most precise setting, of equal ones the strictest, and what to look at."""
    strictness = ("loose", "default", "strict")
    best, highest = max(known, key=lambda one: (one[1], strictness.index(one[0].mode), one[0].similarity))
    look = "look at what it accepts; if a field tells siblings apart, use --within or --across"
    if not labels:
        look = "label pairs that it accepts, to have it measured"
    elif not same:
        look = "no label says that two are the same, so that recall cannot be measured: label some that are"
    word = "measured" if labels else "expected"
    why = (
        f"none reaches a precision of {choices.precision:g}; the highest is {highest:.3f}, {word}, "
        f"of {best.options}; {look}"
    )
    return Advice(best, False, why)


# --- labels ----------------------------------------------------------------------------------------------


LABEL_NAMES: Final = ("label", "same", "duplicate", "is_duplicate", "match", "verdict")


def read_labels(path: str | os.PathLike[str]) -> list[Label]:
    """Labelled pairs from a CSV or TSV file: `id1,id2,0` or `id1,id2,1` a line.

    A first line whose third cell is one of `LABEL_NAMES` names the columns.
    """
    with open(path, encoding="utf-8-sig", newline="") as file:
        text = file.read()
    first = text.partition("\n")[0]
    labels: list[Label] = []
    for number, row in enumerate(csv.reader(text.splitlines(), delimiter="\t" if "\t" in first else ","), 1):
        cells = [cell.strip() for cell in row]
        if not any(cells):
            continue
        if len(cells) >= 3 and cells[2] in ("0", "1"):
            labels.append(Label(cells[0], cells[1], cells[2] == "1"))
        elif number > 1 or len(cells) < 3 or cells[2].lower() not in LABEL_NAMES:
            way_out = "write id1,id2,0 or id1,id2,1" + (", or id1,id2,label" if number == 1 else "")
            raise InvalidValue(f"{os.fspath(path)!r}, line {number}: {way_out}")
    if not labels:
        raise InvalidValue(f"{os.fspath(path)!r} holds no labelled pair; write id1,id2,0 or id1,id2,1")
    return labels
