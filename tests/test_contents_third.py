"""A third content is one file and one line: this is the file, and the fixture has the line.

Its documents are 64-bit fingerprints that another program made, written as hexadecimal numbers. Two are
duplicates if they differ in at most two bits, and that is checked exactly.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pytest

import neardup as nd
from neardup import _native, contents
from neardup.adapters import cli
from neardup.arrays import core_texts
from neardup.candidates import Candidates
from neardup.contents import CONTENTS, Content, Words, Work, content_for
from neardup.errors import RefusedInput
from neardup.fingerprints import Fingerprints
from neardup.numbering import steps
from neardup.pairs import join
from neardup.pipeline import checkpoints_in, run
from neardup.proofs import Proofs
from neardup.registry import Registry
from neardup.representatives import Representatives
from neardup.requests import Request
from neardup.runs import Run
from neardup.schemes import Scheme
from neardup.sizes import USUAL
from neardup.sources import open_source
from neardup.survey import Looked
from neardup.types import Bands, Batch, PairNumbers, TextNumbers
from neardup.verdicts import Judge, Judgements
from neardup.verifiers import Verdicts

REACH, NEAR = 4, 2

# --- the file --------------------------------------------------------------------------------------------


class Foreign(Content):
    """Fingerprints that another program made."""

    name = "foreign"
    noun = "fingerprint"
    unit = "number"
    figures = ("similarity", "alike", "apart")
    said: ClassVar = MappingProxyType({"alike": "bits that are alike", "apart": "bits that differ"})
    reasons = ("nearly the same bits", "too many bits differ")
    identical = "same number"
    spelled = "same number, written in another way"
    words = Words(measured="bits", part="bit", silent="zero")

    def claims(self, data: Any) -> bool:
        return isinstance(data, list) and all(
            row.endswith(".bits.jsonl") if isinstance(row, str) else "bits" in row for row in data
        )

    def scheme_for(self, documents: int) -> Scheme:
        return nd.scheme("news")

    def look(
        self, batch: Batch, frequencies: _native.Frequencies | None, key: bytes, threads: int | None
    ) -> Looked:
        words = np.array([int(text, 16) for text in batch.texts.to_pylist()], np.uint64)
        return Looked(
            content=np.stack([words, words], axis=1),
            informative=words != 0,
            lengths=np.zeros(len(batch), np.int64),
            spelling=_native.spellings(core_texts(batch.texts), key),
            prints=words.reshape(-1, 1),
        )

    def flow(self, prints: Fingerprints, texts: Representatives, work: Work) -> ForeignFlow:
        return ForeignFlow(prints, texts, work)


@dataclass(frozen=True)
class ForeignFlow:
    """Pairs within a radius, whose bits are then counted."""

    prints: Fingerprints
    texts: Representatives
    work: Work

    def propose(self, advance: Callable[..., None], bands: Bands | None = None) -> pa.Table:
        near = join(self.prints, REACH)
        columns = (near.left.astype(np.int64), near.right.astype(np.int64), near.distance.astype(np.int32))
        return pa.table(dict(zip(("left", "right", "distance"), columns, strict=True)))

    def candidates(self, proposed: pa.Table) -> Candidates:
        left, right, distance = (column.to_numpy() for column in proposed.columns)
        nobody = TextNumbers(np.zeros(0, np.int64))
        return Candidates(
            TextNumbers(left), TextNumbers(right), distance, REACH, "all of them", self.prints, nobody
        )

    @contextmanager
    def judging(self, *_: Any) -> Iterator[Judge]:
        yield Counting(self.prints, self.work.sizes.round)


@dataclass(frozen=True)
class Counting:
    """Counts the bits that differ."""

    prints: Fingerprints
    round: int

    def parts(self, found: Candidates) -> Iterable[PairNumbers]:
        return (PairNumbers(part) for part in steps(len(found), self.round))

    def judge_part(self, left: TextNumbers, right: TextNumbers) -> Verdicts:
        return self.judge(left, right)

    def judge(self, left: TextNumbers, right: TextNumbers) -> Verdicts:
        pairs = zip(left.tolist(), right.tolist(), strict=True)
        apart = np.array([((self.prints[a] or 0) ^ (self.prints[b] or 0)).bit_count() for a, b in pairs])
        far, alike = apart > NEAR, 1 - apart / 64
        return Verdicts(~far, far.astype(np.uint8), alike, alike, apart / 64)

    def meet(self, found: Candidates, judgements: Judgements) -> None:
        pass


# --- the line --------------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    rows: dict[str, Callable[[], Content]] = {name: CONTENTS.part(name).__class__ for name in CONTENTS}
    rows["foreign"] = Foreign
    monkeypatch.setattr(contents, "CONTENTS", Registry("content", rows))


# --- what it gives ---------------------------------------------------------------------------------------

ROWS = [
    {"id": "a", "bits": "f0f0f0f0f0f0f0f0"},
    {"id": "b", "bits": "f0f0f0f0f0f0f0f3"},  # two bits from a
    {"id": "c", "bits": "f0f0f0f0f0f0f00f"},  # eight bits from a, six from b
    {"id": "d", "bits": "F0F0F0F0F0F0F0F0"},  # a, spelt in another way
    {"id": "e", "bits": "f0f0f0f0f0f0f0ff"},  # four bits from a, two from b
    {"id": "f", "bits": "0"},
]


def rows_of(table: pa.Table, *names: str) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in table.select(names).to_pylist()]


def found() -> nd.Result:
    return nd.dedupe(ROWS, text_field="bits", keep="first", guards=False)


def test_its_documents_are_known_by_their_look() -> None:
    assert content_for(ROWS) == Foreign()
    assert found().request.content == Foreign()


def test_who_stays_is_decided_by_its_verdicts() -> None:
    assert rows_of(found().annotations, "id", "keep", "duplicate_of") == [
        ("a", True, None),
        ("b", False, "a"),
        ("c", True, None),
        ("d", False, "a"),
        ("e", True, None),
        ("f", True, None),
    ]


def test_the_evidence_has_its_figures_and_its_reasons() -> None:
    evidence = found().evidence
    assert [name for name in evidence.column_names if name in Foreign.figures] == list(Foreign.figures)
    assert rows_of(evidence, "keeper", "id", "distance", "apart", "accepted", "reason") == [
        ("a", "b", 2, pytest.approx(2 / 64, abs=1e-4), True, "nearly the same bits"),
        ("a", "d", 0, 1, True, "same number, written in another way"),
        ("a", "e", 4, pytest.approx(4 / 64, abs=1e-4), False, "too many bits differ"),
        ("c", "e", 4, pytest.approx(4 / 64, abs=1e-4), False, "too many bits differ"),
        ("e", "b", 2, pytest.approx(2 / 64, abs=1e-4), True, "nearly the same bits"),
    ]


def test_the_page_speaks_of_it(tmp_path: Path) -> None:
    found().report(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    for words in (
        "2 of 6 fingerprints",
        "on its bits",
        "bits that are alike",
        "same number",
        "f0f0f0f0f0f0f0f3",
    ):
        assert words in page


def test_its_run_is_read_again(tmp_path: Path) -> None:
    result = found()
    result.write(tmp_path / "out")
    again = Run(tmp_path / "out")
    assert (again.content, again.manifest["content"]) == (Foreign(), "foreign")
    assert sorted(map(str, again.evidence.to_pylist())) == sorted(map(str, result.evidence.to_pylist()))


def test_the_command_line_takes_it_as_well(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = tmp_path / "rows.bits.jsonl", tmp_path / "out"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in ROWS))
    options = ["--text-field", "bits", "--keep", "first", "--no-guards", "--quiet"]
    assert cli.run(["dedupe", str(path), "-o", str(out), *options]) == 0
    assert "6 fingerprints: 4 stay" in capsys.readouterr().out
    again = Run(out)
    assert again.content == Foreign()
    assert again.annotations.to_pylist() == found().annotations.to_pylist()


def test_its_parts_are_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in ROWS))
    sizes = replace(USUAL, checkpoint_seconds=-1, round=1)

    def asked() -> Request:
        source = open_source(path, text_field="bits", unique=True, sizes=sizes)
        return Request(source, content=Foreign(), sizes=sizes)

    whole = run(asked())
    judge, calls = Counting.judge, 0

    def ends(self: Counting, left: TextNumbers, right: TextNumbers) -> Verdicts:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise KeyboardInterrupt
        return judge(self, left, right)

    monkeypatch.setattr(Counting, "judge", ends)
    work = str(tmp_path / "work")
    with pytest.raises(KeyboardInterrupt):
        run(asked(), checkpoints=checkpoints_in(work, asked()))
    monkeypatch.setattr(ForeignFlow, "propose", lambda *_: pytest.fail("looked for again"))
    monkeypatch.setattr(Foreign, "look", lambda *_, **__: pytest.fail("looked at again"))
    again = run(asked(), checkpoints=checkpoints_in(work, asked()))
    assert again.evidence.equals(whole.evidence)
    assert calls == 3 + 2  # of four pairs, two had been judged


def test_what_it_cannot_do_is_said(tmp_path: Path) -> None:
    found().write(tmp_path / "out")
    with pytest.raises(
        RefusedInput, match="fingerprints cannot be measured again, so none of them is removed"
    ):
        Proofs(Run(tmp_path / "out"))
    with pytest.raises(ValueError, match="search is not for fingerprints"):
        Foreign().search("f0", [], contents.Wanted())
