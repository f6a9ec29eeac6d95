"""Passes over whole inputs: what a checkpoint holds is not done again, and the answer is the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import neardup as nd
from neardup.checkpoints import Checkpoints
from neardup.contents import Content
from neardup.errors import ChangedInput
from neardup.fingerprints import Fingerprints
from neardup.observers import SILENT
from neardup.parts import Surveyed
from neardup.passes import Passes
from neardup.requests import Request
from neardup.schemes import Scheme
from neardup.schemes.computing import banded
from neardup.sources import Source, open_source
from neardup.types import Batch

from .corpus import collection, write_jsonl
from .stages import representatives

ROWS = collection(40)
TEXTS = representatives(ROWS)
SCHEME = nd.scheme("text")


def passes(path: Path, work: Path | None = None, *, scheme: nd.Scheme = SCHEME) -> Passes:
    """Over the documents in *path*; with *work*, a checkpoint is due after every batch."""
    checkpoints = Checkpoints(None if work is None else str(work), "key", seconds=-1.0)
    return Passes(Request(open_source(path, unique=True), scheme=scheme), SILENT, checkpoints)


def unread(monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on, to read is a failure."""
    monkeypatch.setattr(Source, "batches", lambda *_, **__: pytest.fail("read again"))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write_jsonl(tmp_path / "a.jsonl", ROWS)


def table(part: Surveyed) -> pa.Table:
    return part.documents.table().drop_columns(["content", "spelling"])  # under a key that is drawn


def test_a_survey_that_is_complete_is_not_made_again(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = passes(path, tmp_path / "work").survey()
    assert table(first).equals(table(passes(path).survey()))
    unread(monkeypatch)
    again = passes(path, tmp_path / "work").survey()
    assert again.documents.table().equals(first.documents.table())
    assert (again.key, again.first) == (first.key, len(ROWS))


def test_after_the_survey_every_reading_must_give_the_same(path: Path) -> None:
    one = passes(path)
    one.survey()
    path.write_text(path.read_text().replace(ROWS[3]["text"], "another text"))
    with pytest.raises((ChangedInput, nd.errors.RefusedInput)):
        list(one.request.source)


def test_fingerprints_stand_where_their_texts_want_them(path: Path) -> None:
    one = passes(path)
    one.survey()
    prints = one.fingerprint(SCHEME, TEXTS)
    wanted = SCHEME.fingerprints([ROWS[row]["text"] for row in TEXTS.document])
    assert TEXTS.own(prints) == Fingerprints(
        wanted.words, bits=wanted.bits, valid=wanted.valid, digest=wanted.digest
    )
    assert not prints.words.flags.writeable


def test_fingerprints_that_are_complete_are_not_made_again(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = passes(path, tmp_path / "work")
    one.survey()
    first = one.fingerprint(SCHEME, TEXTS)
    unread(monkeypatch)
    assert passes(path, tmp_path / "work").fingerprint(SCHEME, TEXTS) == first


def test_bands_stand_where_their_texts_do_and_are_not_made_again(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, fitted = passes(path, tmp_path / "work"), nd.scheme("text")
    one.survey()
    bands = np.zeros((len(TEXTS), 5), dtype=np.uint32)
    one.fingerprint(fitted, TEXTS, bands=bands)
    wanted = banded(fitted, pa.array([ROWS[row]["text"] for row in TEXTS.document], pa.string()))[1]
    assert np.array_equal(bands, wanted[:, :5])
    unread(monkeypatch)
    again = np.zeros_like(bands)
    passes(path, tmp_path / "work").fingerprint(fitted, TEXTS, bands=again)
    assert np.array_equal(again, bands)


def test_one_document_needs_no_fingerprint(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = representatives(ROWS[:1])
    unread(monkeypatch)
    prints = passes(path).fingerprint(SCHEME, text)
    assert not prints.valid.any()


def test_candidates_that_were_found_are_not_looked_for_again(path: Path, tmp_path: Path) -> None:
    one = passes(path, tmp_path / "work")
    one.checkpoints.remember(str(tmp_path / "remembered"))
    one.survey()
    prints = one.fingerprint(SCHEME, TEXTS)
    found = one.candidates(one.flow(prints, TEXTS), len(TEXTS))
    assert len(found)
    nothing = Fingerprints(np.zeros_like(prints.words), bits=prints.bits)
    later = passes(path, tmp_path / "work")
    again = later.candidates(later.flow(nothing, TEXTS), len(TEXTS))
    assert np.array_equal(again.left, found.left)
    assert np.array_equal(again.right, found.right)


def test_a_document_that_repeats_a_text_is_not_fingerprinted_again(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str | None] = []
    own = Content.fingerprints

    def noted(self: Content, scheme: Scheme, batch: Batch, *, threads: int | None = None) -> Fingerprints:
        seen.extend(batch.texts.to_pylist())
        return own(self, scheme, batch, threads=threads)

    monkeypatch.setattr(Content, "fingerprints", noted)
    texts = ["one and the same text", "another", "one and the same text", "One and the same text", "..."]
    result = nd.dedupe([{"id": str(at), "text": text} for at, text in enumerate(texts)], guards=False)
    assert seen == ["one and the same text", "another", None, "One and the same text", "..."]
    assert result.annotations.column("duplicate_of").to_pylist() == [None, None, "0", "0", None]
    assert result.annotations.column("distance").to_pylist()[2:4] == [0, 0]
