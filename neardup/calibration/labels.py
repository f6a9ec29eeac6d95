"""Labels: what people said of pairs, from a file."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable
from typing import Final

from neardup.calibration.model import Label
from neardup.errors import InvalidValue, shown

LABEL_NAMES: Final = ("label", "same", "duplicate", "is_duplicate", "match", "verdict")
# What the third cell says; of those that are not answered, or unsure, nothing is known.
ANSWERS: Final = {"1": True, "0": False, "?": None, "": None}
UNSURE: Final = "?"
HEAD: Final = ("id1", "id2", "label")


def read_labels(path: str | os.PathLike[str]) -> list[Label]:
    """Labelled pairs from a CSV or TSV file: `id1,id2,0` or `id1,id2,1` per line, `?` if unsure.

    A first line whose third cell is one of `LABEL_NAMES` names the columns.
    """
    labels = [Label(one, other, same) for one, other, same in read_answers(path) if same is not None]
    if not labels:
        raise InvalidValue(f"{os.fspath(path)!r} holds no labelled pair; write id1,id2,0 or id1,id2,1")
    return labels


def read_answers(path: str | os.PathLike[str]) -> list[tuple[str, str, bool | None]]:
    """The rows of such a file, with those that say nothing of their pair."""
    name = os.fspath(path)
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            text = file.read()
    except UnicodeDecodeError as error:
        raise InvalidValue(
            f"{name!r} is not UTF-8: {error.reason} at byte {error.start}; save it as UTF-8"
        ) from None
    first = text.partition("\n")[0]
    found: list[tuple[str, str, bool | None]] = []
    reader = csv.reader(io.StringIO(text, newline=""), delimiter="\t" if "\t" in first else ",")
    try:
        for row in reader:
            cells = [cell.strip() for cell in row]
            if not any(cells):
                continue
            if len(cells) >= 3 and cells[2] in ANSWERS:
                found.append((cells[0], cells[1], ANSWERS[cells[2]]))
            elif found or reader.line_num > 1 or len(cells) < 3 or cells[2].lower() not in LABEL_NAMES:
                way_out = "write id1,id2,0 or id1,id2,1" + (
                    ", or id1,id2,label" if reader.line_num == 1 else ""
                )
                raise InvalidValue(f"{name!r}, line {reader.line_num}: {way_out}")
    except csv.Error as error:
        raise InvalidValue(f"{name!r}, line {reader.line_num}: {error}") from None
    return found


def one_each(labels: Iterable[Label]) -> list[Label]:
    """Each labelled pair once, whichever document it names first; an error where two labels contradict."""
    met: dict[frozenset[str], Label] = {}
    for label in labels:
        before = met.setdefault(frozenset((label.one, label.other)), label)
        if label.one == label.other:
            raise InvalidValue(f"labels: {shown(label.one)} is paired with itself; name two documents")
        if before.same != label.same:
            raise InvalidValue(
                f"labels: {shown(label.one)} and {shown(label.other)} are called the same and different; "
                "leave one of the lines"
            )
    return list(met.values())
