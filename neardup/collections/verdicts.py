"""Verdicts: what people said of two contents. They bind every later answer.

They stand on the digests of both contents: whoever changes one of the documents makes them stale, and giving
it the old content again makes them hold again.
"""

from __future__ import annotations

from typing import Any, Final

from neardup.errors import InvalidType, InvalidValue, shown
from neardup.store import VERDICTS, Store, Verdict

SAME, DIFFERENT, UNSURE = "same", "different", "unsure"
ANSWERS: Final = (SAME, DIFFERENT, UNSURE)
LONGEST: Final = 10_000


def check_answer(verdict: Any) -> str:
    """*verdict* if it is one."""
    if not isinstance(verdict, str):
        raise InvalidType(f"a verdict must be a str, not {shown(verdict)}")
    if verdict not in ANSWERS:
        raise InvalidValue(f"unknown verdict {shown(verdict)}; say one of: {', '.join(ANSWERS)}")
    return verdict


def check_words(name: str, value: Any) -> str:
    """*value* if it is a text that can be stored."""
    if not isinstance(value, str):
        raise InvalidType(f"{name} must be a str, not {shown(value)}")
    if len(value) > LONGEST or "\0" in value or any("\ud800" <= letter <= "\udfff" for letter in value):
        raise InvalidValue(f"{name} {shown(value)} cannot be stored; use up to {LONGEST:,} plain characters")
    return value


def said_of(store: Store, digest: bytes) -> dict[bytes, Verdict]:
    """What was said of a content, by the digest of the other one."""
    if not store.coming.verdicts:
        return {}
    found: dict[bytes, Verdict] = {row.high: row for row in store.find(VERDICTS, "low", [digest])}
    return found | {row.low: row for row in store.find(VERDICTS, "high", [digest])}


def words_for(row: Verdict) -> str:
    """The reason of a match that somebody decided."""
    by = f" by {row.by}" if row.by else ""
    return {SAME: "said to be the same", DIFFERENT: "said to be different", UNSURE: "said to be unsure"}[
        row.verdict
    ] + by
