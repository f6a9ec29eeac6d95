"""Labels: what people said of pairs, from a file."""

from __future__ import annotations

import csv
import os
from typing import Final

from neardup.calibration.model import Label
from neardup.errors import InvalidValue

LABEL_NAMES: Final = ("label", "same", "duplicate", "is_duplicate", "match", "verdict")


def read_labels(path: str | os.PathLike[str]) -> list[Label]:
    """Labelled pairs from a CSV or TSV file: `id1,id2,0` or `id1,id2,1` per line.

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
