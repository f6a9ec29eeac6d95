"""Fields named in settings: whether documents have them, and whether a run understands their values."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from neardup.errors import InvalidValue, Said, Setting, shown
from neardup.keep import Keep, undated
from neardup.observers import Observer
from neardup.settings import Settings
from neardup.survey import Documents

KEEP: Final = Setting("keep")
# Settings that name a field.
NAMING: Final = ("subject", "within", "across", "source_field")


def check_fields(
    documents: Documents,
    own: int,
    settings: Settings,
    keep: Keep,
    observer: Observer,
    *,
    given: Collection[str] = (),
) -> None:
    """Raise if the first *own* documents, those of the input, all lack a field: its name is misspelt.

    Those that are *given* are not the user's.
    """
    named = [(Setting(name), "", getattr(settings, name)) for name in NAMING]
    named += [(KEEP, f" {rule.name}", rule.field) for rule in keep.rules]
    for setting, rule_name, name in named:
        if name is None or name in given:
            continue
        lack = documents.fields.column(name).slice(0, own).null_count
        if own and lack == own:
            raise InvalidValue(
                Said(
                    f"no document has a value in the field {name!r} of ",
                    setting,
                    f"{rule_name}; correct its name, or leave the option out",
                )
            )
        if lack and setting.name == "subject":
            observer.note(
                Said(
                    f"{lack:,} of {own:,} documents have no {name!r}; ",
                    setting,
                    " compares them with each other, and goes by their titles",
                )
            )
        if lack and setting.name in ("within", "across"):
            observer.note(
                Said(
                    f"{lack:,} of {own:,} documents have no {name!r}; ", setting, " takes them for one source"
                )
            )


def note_idle_rules(
    documents: Documents, own: int, keep: Keep, observer: Observer, *, given: Collection[str] = ()
) -> None:
    """Report the keep rules that decide nothing, because all documents have one value of a field that is not
    *given*."""
    for rule in keep.rules if own > 1 else ():
        if rule.field is not None and rule.field not in given and rule.score is not None:
            scores = map(rule.score, documents.column(rule.field)[:own])
            first = next(scores)
            if all(score == first for score in scores):
                observer.note(
                    Said(
                        KEEP,
                        f" {rule.name} decides nothing: to it all {own:,} documents have the same "
                        f"{rule.field!r}, or none that it understands",
                    )
                )


def note_undated(documents: Documents, own: int, keep: Keep, observer: Observer) -> int:
    """Report dates that are not understood; returns how many there are."""
    count = 0
    for rule, odd in undated(keep, lambda name: documents.column(name)[:own]):
        count += len(odd)
        observer.note(
            Said(
                f"{len(odd):,} of {own:,} documents have a {rule.field!r} that is not a date in a known "
                f"form, such as {shown(odd[0])}; for ",
                KEEP,
                f" {rule.name} they come last",
            )
        )
    return count
