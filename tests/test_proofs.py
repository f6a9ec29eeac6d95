"""Proofs: a pair of files measured again, before one of them goes."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from neardup.proofs import Proof, Proofs, Unproved, remeasured
from neardup.runs import Input, Run
from neardup.verifiers import IDENTICAL, SPELLED, parse_measure

from .corpus import BASE, edited, words
from .rundirs import make_run

LONG, EDITED, OTHER = " ".join(BASE), " ".join(edited(BASE, 1, 2)), " ".join(words(7, 200))
DEFAULT = parse_measure("default")


@pytest.mark.parametrize(
    ("left", "right", "accepted"),
    [
        (LONG, LONG, True),
        (LONG, LONG.upper(), True),
        (LONG, EDITED, True),
        (LONG, OTHER, False),
        (LONG, "...", False),
    ],
)
def test_two_texts_are_judged_as_if_there_were_no_other(left: str, right: str, accepted: bool) -> None:
    assert remeasured(DEFAULT, left, right).accepted == accepted


def test_texts_that_are_the_same_are_told_by_their_spelling() -> None:
    assert remeasured(DEFAULT, LONG, LONG)[2] == IDENTICAL
    assert remeasured(DEFAULT, LONG, LONG.upper())[2] == SPELLED


def written(folder: Path, name: str, text: str) -> Input:
    path = folder / name
    path.write_text(text)
    return Input(str(path), len(text), hashlib.sha256(text.encode()).hexdigest())


@pytest.fixture
def proofs(tmp_path: Path) -> Proofs:
    written(tmp_path, "a.txt", LONG)
    make_run(tmp_path / "out", [str(tmp_path / "a.txt")], {str(tmp_path / "a.txt"): None})
    return Proofs(Run(tmp_path / "out"))


def figure(left: str, right: str) -> float:
    return remeasured(DEFAULT, left, right).similarity


def test_what_the_evidence_says_is_measured_again(proofs: Proofs, tmp_path: Path) -> None:
    keeper, file = written(tmp_path, "a.txt", LONG), written(tmp_path, "b.txt", EDITED)
    proofs.check(file, keeper, Proof(figure(LONG, EDITED), "revision"))
    with pytest.raises(Unproved, match="measured again its similarity is"):
        proofs.check(file, keeper, Proof(figure(LONG, EDITED) - 0.01, "revision"))


def test_files_of_the_same_bytes_need_no_reading(proofs: Proofs, tmp_path: Path) -> None:
    keeper, file = written(tmp_path, "a.txt", LONG), written(tmp_path, "b.txt", LONG)
    (tmp_path / "b.txt").unlink()
    proofs.check(file, keeper, Proof(1.0, IDENTICAL))


def test_what_is_not_the_text_that_it_is_said_to_be_is_unproved(proofs: Proofs, tmp_path: Path) -> None:
    keeper = written(tmp_path, "a.txt", LONG)
    with pytest.raises(Unproved, match="is not the text of its keeper"):
        proofs.check(written(tmp_path, "b.txt", EDITED), keeper, Proof(1.0, IDENTICAL))
    with pytest.raises(Unproved, match="is not a duplicate of its keeper"):
        proofs.check(written(tmp_path, "c.txt", OTHER), keeper, Proof(0.9, "revision"))


def test_a_file_that_changed_or_went_is_unproved(proofs: Proofs, tmp_path: Path) -> None:
    keeper, file = written(tmp_path, "a.txt", LONG), written(tmp_path, "b.txt", EDITED)
    proof = Proof(figure(LONG, EDITED), "revision")
    (tmp_path / "b.txt").write_text(EDITED + " ")
    with pytest.raises(Unproved, match="changed since the run"):
        proofs.check(file, keeper, proof)
    (tmp_path / "b.txt").unlink()
    with pytest.raises(Unproved, match="cannot be measured again"):
        proofs.check(file, keeper, proof)
