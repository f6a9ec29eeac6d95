"""Prints the tables of docs/quality.md that say what the code does, or writes them into the page.

    python tools/quality_tables.py [--write]

A table is between `<!-- table: NAME -->` and `<!-- end -->`. A test compares the page with it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from neardup.verifiers import FIGURES, RULES, TESTS, UNVERIFIED
from neardup.verifiers.reasons import BY_MEASURE, MEASURED, UNMEASURED

PAGE = Path(__file__).parent.parent / "docs" / "quality.md"


def rows(cells: Iterable[Sequence[str]]) -> list[str]:
    """Rows of a Markdown table."""
    return ["| " + " | ".join(row) + " |" for row in cells]


def tests() -> str:
    """The tests of the rule: what each asks, with which numbers, and the reason that it gives."""
    words = {reason.name: reason for reason in (*MEASURED, *UNMEASURED, *BY_MEASURE)}
    equal = [words[name].words for name in ("identical", "spelled")]
    table = [
        ["", "test", *RULES, "reason"],
        ["---"] * (len(RULES) + 3),
        [
            "1",
            "the normalised texts are equal",
            *["yes"] * len(RULES),
            " or ".join(f"`{one}`" for one in equal),
        ],
    ]
    for test in TESTS:
        reason = words[test.reason]
        said = f"`{reason.words}`" if reason.accepts else f"no: `{reason.words}`"
        for at, line in enumerate(test.lines):
            cells = [line.cell(rule) for rule in RULES.values()]
            table.append(["" if at else test.number, line.said(), *cells, "" if at else said])
    return "\n".join(rows(table))


def reasons() -> str:
    """The reasons, and how to read each."""
    order = {"identical": 0, "spelled": 1}
    named = [reason for reason in (*MEASURED, *UNMEASURED, *BY_MEASURE) if reason.words != UNVERIFIED]
    named.sort(key=lambda reason: (not reason.accepts, order.get(reason.name, 2)))
    table = [["reason", "accepted", "read it as"], ["---"] * 3]
    table += [[f"`{one.words}`", "yes" if one.accepts else "no", one.read_as] for one in named]
    return "\n".join(rows(table))


def figures() -> str:
    """What a learned rule looks at, and what is said of a pair that has more of it, or less."""
    table = [["figure", "what it is", "more of it", "less of it"], ["---"] * 4]
    table += [[f"`{one.name}`", one.what, f"`{one.more}`", f"`{one.less}`"] for one in FIGURES]
    return "\n".join(rows(table))


TABLES = {"tests": tests, "reasons": reasons, "figures": figures}


def printed(page: str) -> str:
    """The *page* with its tables as the code has them."""
    for name, table in TABLES.items():
        pattern = re.compile(rf"(<!-- table: {name} -->\n).*?(\n<!-- end -->)", re.DOTALL)
        escaped = table().replace("\\", r"\\")
        page, found = pattern.subn(rf"\g<1>{escaped}\g<2>", page)
        if found != 1:
            raise SystemExit(f"{PAGE}: no place for the table {name!r}")
    return page


if __name__ == "__main__":
    page = printed(PAGE.read_text(encoding="utf-8"))
    if "--write" in sys.argv:
        PAGE.write_text(page, encoding="utf-8")
    else:
        print("\n\n".join(table() for table in TABLES.values()))
