"""Fields that settings name: a misspelt one is an error, an idle or half empty one is told."""

from __future__ import annotations

import pytest

from neardup.errors import InvalidValue
from neardup.fields import check_fields, note_idle_rules, note_undated
from neardup.keep import parse_keep
from neardup.observers import Observer
from neardup.settings import Settings

from .corpus import Rows
from .stages import documents


class Heard(Observer):
    """Remembers what it is told."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str, *, minor: bool = False) -> None:
        self.notes.append(text)


def rows(**fields: list[object]) -> Rows:
    count = len(next(iter(fields.values())))
    return [
        {"id": f"{at}", "text": f"text {at}", **{name: fields[name][at] for name in fields}}
        for at in range(count)
    ]


def checked(settings: Settings, data: Rows, own: int | None = None) -> list[str]:
    heard = Heard()
    found = documents(data, *settings.fields)
    keep = parse_keep(settings.keep)
    check_fields(found, len(data) if own is None else own, settings, keep, heard)
    return heard.notes


def test_a_field_that_no_document_has_is_misspelt() -> None:
    with pytest.raises(InvalidValue, match="no document has a value in the field 'rnk'"):
        checked(Settings(keep="max:rnk"), rows(rank=[1, 2], rnk=[None, None]))


def test_a_field_that_protected_documents_alone_have_is_misspelt() -> None:
    with pytest.raises(InvalidValue, match="'rank'"):
        checked(Settings(keep="max:rank"), rows(rank=[None, 2]), own=1)


def test_documents_without_a_source_are_told_once_of_one_source() -> None:
    (note,) = checked(Settings(within="site"), rows(site=["a", None, "b"]))
    assert note.startswith("1 of 3 documents have no 'site'")
    assert checked(Settings(keep="max:site"), rows(site=[1, None, 3])) == []


def test_a_rule_to_which_all_documents_are_alike_is_told() -> None:
    heard, keep = Heard(), parse_keep("max:one,max:other,longest")
    found = documents(rows(one=[1, 1.0], other=[1, 2]), *keep.fields)
    note_idle_rules(found, 2, keep, heard)
    assert len(heard.notes) == 1
    assert "decides nothing: to it all 2 documents have the same 'one'" in heard.notes[0]


def test_dates_that_are_not_understood_are_counted() -> None:
    heard, keep = Heard(), parse_keep("newest:date")
    found = documents(rows(date=["2024-01-01", "1/2/2024", "", None, "soon"]), "date")
    assert note_undated(found, 5, keep, heard) == 2
    assert "2 of 5 documents" in heard.notes[0]
    assert "'1/2/2024'" in heard.notes[0]
