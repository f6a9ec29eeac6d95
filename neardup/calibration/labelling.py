"""Labelling: one question after another to a person, and the answers in a file as soon as they are given.

What is asked next depends on the answers so far: every other question is one of which the rule that they
make knows least. No pair is asked twice, also not in another session over the same file, nor by way of
another line of it.
"""

from __future__ import annotations

import csv
import io
import os
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

import numpy as np

from neardup.calibration.bench import Bench, Own
from neardup.calibration.labels import ANSWERS, HEAD, UNSURE, read_answers
from neardup.calibration.learning import Answers, Fitted, fit, in_order
from neardup.calibration.model import Choices, Suggestion
from neardup.calibration.questions import by_turns, suggestion
from neardup.calibration.sampling import take_sample
from neardup.errors import InvalidValue, LimitReached
from neardup.files import atomic_file, check_path, sync_folder
from neardup.observers import SILENT, Observer
from neardup.schemes import scheme as scheme_of
from neardup.settings import default_scheme
from neardup.sources import Source

# Pairs of which a session looks for the next one.
MOST: Final = 10_000
# Answers after which the rule that they make is made anew.
AGAIN: Final = 5
_WRITTEN: Final = {same: cell for cell, same in ANSWERS.items() if cell and same is not None} | {None: UNSURE}


@dataclass(frozen=True, slots=True, eq=False)
class Pool:
    """The pairs that may be asked about, and the texts of their documents."""

    own: Own
    texts: dict[str, str]

    def __len__(self) -> int:
        return int(self.own.seen.known.sum())


def pool_of(
    source: Source, *, sample: int, seed: int = 0, threads: int | None = None, observer: Observer = SILENT
) -> Pool:
    """The candidate pairs of a sample of documents that a rule can decide."""
    texts, whole = take_sample(source, sample, seed, set(), threads=threads, observer=observer)
    scheme = scheme_of(default_scheme(source.documents))
    bench = Bench(
        list(texts), list(texts.values()), whole, scheme, Choices(sample=sample, seed=seed), threads
    )
    *_, own = bench.run([], np.zeros((0, 2), np.int64))
    return Pool(own, texts)


@dataclass(slots=True)
class Session:
    """Questions about a pool, and the file with the answers."""

    pool: Pool
    path: str
    given: list[tuple[int, bool | None]] = field(default_factory=list)
    """The rows of the pool that were answered in this session, in their order."""
    _known: dict[frozenset[str], bool | None] = field(default_factory=dict)
    _asked: dict[str, int] = field(default_factory=dict)
    _fitted: Fitted | None = None
    _again: int | None = None
    _turns: list[int] = field(default_factory=list)
    _row_of: dict[frozenset[str], int] = field(default_factory=dict)
    _at: int = 0
    _delimiter: str = ","

    @classmethod
    def over(cls, pool: Pool, path: str | os.PathLike[str]) -> Session:
        """A session whose answers go to the file at *path*, behind those that it has."""
        session = cls(pool, check_path(path))
        session._turns = list(islice(by_turns(pool.own), MOST))
        session._row_of = {_key(pool.own.pair(row)): row for row in session._turns}
        if os.path.lexists(session.path):
            with open(session.path, encoding="utf-8-sig", errors="replace") as file:
                session._delimiter = "\t" if "\t" in file.readline() else ","
            for one, other, same in read_answers(session.path):
                session._note(_key((one, other)), same)
        session._learn()
        return session

    @property
    def answers(self) -> int:
        """How many pairs the file has an answer for."""
        return len(self._known)

    def count(self, same: bool | None) -> int:
        """How many of them are the same, different, or unsure (None)."""
        return sum(one is same for one in self._known.values())

    def next(self) -> Suggestion | None:
        """The pair to be asked about now; None where all were."""
        row = self._next()
        if row is None:
            return None
        self._at = row
        pair = suggestion(self.pool.own, row)
        texts = self.pool.texts
        return Suggestion(
            pair.one,
            pair.other,
            pair.similarity,
            pair.reason,
            (texts[pair.one], texts[pair.other]),
            pair.accepted,
        )

    def answer(self, same: bool | None) -> None:
        """Write the answer to the pair that `next` gave; it is on the disk when this returns."""
        row = self._at
        one, other = self.pool.own.pair(row)
        self._append([one, other, _WRITTEN[same]])
        self._again = None
        self.given.append((row, same))
        self._note(_key((one, other)), same)
        if len(self.given) % AGAIN == 0:
            self._learn()

    def undo(self) -> bool:
        """Take back the last answer of this session, whose pair is asked again; whether there was one."""
        if not self.given:
            return False
        row, _ = self.given.pop()
        pair = self.pool.own.pair(row)
        rows = self._rows()
        if tuple(rows[-1][:2]) != pair:
            raise LimitReached(
                f"another program changed {self.path!r}; start again, and nothing is asked twice"
            )
        self._write(rows[:-1])
        del self._known[_key(pair)]
        for id in _key(pair):
            self._asked[id] -= 1
        self._again = row
        return True

    # --- what to ask ---------------------------------------------------------------------------------------

    def _note(self, pair: frozenset[str], same: bool | None) -> None:
        self._known[pair] = same
        for id in pair:
            self._asked[id] = self._asked.get(id, 0) + 1

    def _next(self) -> int | None:
        if self._again is not None:
            return self._again
        own = self.pool.own
        left = [row for row in self._turns if _key(own.pair(row)) not in self._known]
        if not left:
            return None
        # Documents that nobody was asked about come first, however useful the others are.
        asked = {row: sum(self._asked.get(id, 0) for id in _key(own.pair(row))) for row in left}
        fewest = min(asked.values())
        fresh = [row for row in left if asked[row] == fewest]
        if self._fitted is None or len(self._known) % 2:
            # As many that the default accepts as that it rejects.
            met = [self._row_of[pair] for pair in self._known if pair in self._row_of]
            wanted = 2 * int(own.seen.accepted[np.array(met, np.intp)].sum()) <= len(met)
            return next((row for row in fresh if bool(own.seen.accepted[row]) == wanted), fresh[0])
        far = np.abs(self._fitted.scores(own.seen.figures[fresh]))
        return min(zip(far.tolist(), fresh, strict=True), key=lambda found: (found[0], own.pair(found[1])))[1]

    def _learn(self) -> None:
        """The rule that the answers make, if they are enough."""
        rows = [(self._row_of[pair], same) for pair, same in self._known.items() if pair in self._row_of]
        told = [(row, same) for row, same in rows if same is not None]
        own = self.pool.own
        numbers = np.array([row for row, _ in told], np.intp)
        flags = np.array([same for _, same in told], bool)
        pairs = [own.pair(row) for row, _ in told]
        answers = Answers(pairs, own.seen.figures[numbers], flags, own.seen.accepted[numbers])
        if answers.enough:
            ordered = in_order(answers)
            self._fitted = fit(ordered.figures, ordered.same)

    # --- the file ------------------------------------------------------------------------------------------

    def _line(self, cells: list[Any]) -> str:
        file = io.StringIO(newline="")
        csv.writer(file, delimiter=self._delimiter, lineterminator="\n").writerow(cells)
        return file.getvalue()

    def _append(self, cells: list[str]) -> None:
        is_new = not os.path.lexists(self.path) or not os.path.getsize(self.path)
        text = (self._line(list(HEAD)) if is_new else "") + self._line(cells)
        with open(self.path, "ab+") as file:
            if not is_new:
                file.seek(-1, os.SEEK_END)
                text = text if file.read(1) == b"\n" else "\n" + text
            file.write(text.encode("utf-8", "surrogatepass"))
            file.flush()
            os.fsync(file.fileno())
        if is_new:
            sync_folder(os.path.dirname(os.path.abspath(self.path)))

    def _rows(self) -> list[list[str]]:
        with open(self.path, encoding="utf-8", errors="surrogateescape", newline="") as file:
            return [row for row in csv.reader(file, delimiter=self._delimiter) if row]

    def _write(self, rows: list[list[str]]) -> None:
        text = "".join(map(self._line, rows))
        with atomic_file(self.path, overwrite=True) as file:
            file.write(text.encode("utf-8", "surrogateescape"))


def _key(pair: tuple[str, str]) -> frozenset[str]:
    """A pair as a file of answers names it: in any order, without white space around an id."""
    return frozenset(id.strip() for id in pair)


def check_pool(pool: Pool) -> None:
    """Raise if there is nothing to ask."""
    if not len(pool):
        raise InvalidValue(
            "no two different documents of the input are similar enough to be asked about; "
            "nothing needs a rule here, or the sample is too small"
        )
