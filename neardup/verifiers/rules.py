"""Rules: when a pair of texts is a pair. The settings of each rule, and its tests, one row each.

The core does the work (src/verify/rule.rs), in integers: similarities and shares in ten-thousandths,
rounded down. docs/quality.md explains what each test is for; its table is printed from `TESTS`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Final

from neardup.errors import InvalidValue, Said, Setting, shown

WHOLE: Final = 10_000
# A candidate from this plain similarity on is a neighbour; from this on, nearly the same text.
NEIGHBOUR: Final = 6000
SAME: Final = 9000
# How many nearest candidates of a text count as its neighbours.
NEIGHBOURS: Final = 32


@dataclass(frozen=True, slots=True)
class TextRule:
    """The settings of a rule. src/verify/rule.rs says what each is for; a test compares the two lists."""

    floor: int = 6400
    high: int = 9000
    high_contrast: int = 7500
    grey: bool = True
    weighted: int = 7000
    rare: int = 3400
    contrast: int = 6000
    short: int = 28
    short_rare: int = 5800
    long: int = 140
    grey_middle: bool = False
    middle_high: int = 9600
    middle_words: int = 40
    passage: int = 10
    gap: int = 3
    drop: int = 500
    numbers: int = 56
    siblings: int = 2
    slot: int = 16
    fine_slot: int = 64
    subject: int = 24
    titles: bool = True
    same: bool = False
    clause: int = 24

    def with_floor(self, similarity: float) -> TextRule:
        """The same rule with at least that plain similarity."""
        floor = round(similarity * WHOLE)
        return replace(
            self, floor=floor, high=max(self.high, floor), middle_high=max(self.middle_high, floor)
        )


# From the strictest on: what one accepts, those after it accept, too.
RULES: Final = {
    "strict": TextRule(high=9500, siblings=1, grey=False, slot=64, rare=5000),
    "high": TextRule(siblings=1, slot=64, weighted=8000, rare=5000, short_rare=7200),
    "default": TextRule(),
    "loose": TextRule(
        middle_high=9000, weighted=6600, contrast=5000, numbers=32, short_rare=3400, grey_middle=True
    ),
}
PRECISIONS: Final = {"highest": "strict", "high": "high", "default": "default", "low": "loose"}
"""The rules by how sure their verdicts are."""


def rule_named(precision: str, verify: str = "default") -> str:
    """The name of the rule of that *precision*.

    >>> rule_named("low")
    'loose'
    """
    if precision not in PRECISIONS:
        raise InvalidValue(f"unknown precision {shown(precision)}; known: {', '.join(PRECISIONS)}")
    if verify not in ("default", PRECISIONS[precision]):
        raise InvalidValue(Said("choose one of ", Setting("precision"), " and ", Setting("verify")))
    return PRECISIONS[precision]


Cell = Callable[[TextRule], str]
OFF: Final = "–"


@dataclass(frozen=True, slots=True)
class Line:
    """One condition of a test in words, and what each rule has there. Holes name settings of the default
    rule; `strict_high` is that of the strict one."""

    words: str
    cell: Cell = lambda rule: ""

    def said(self) -> str:
        """The words with their numbers.

        >>> Line("below {high}, of more than {short} words").said()
        'below 0.90, of more than 28 words'
        """
        default = asdict(RULES["default"])
        shown = {name: _share(default[name]) if name in SHARES else default[name] for name in default}
        edges = {"middle_from": default["short"] + 1, "middle_to": default["long"] - 1}
        return self.words.format(**shown, **edges, strict_high=_share(RULES["strict"].high))


@dataclass(frozen=True, slots=True)
class Test:
    """A test: its number on the page, its name in the core, the reason that it gives, and its conditions."""

    __test__ = False  # not one of pytest's

    number: str
    name: str
    reason: str
    lines: tuple[Line, ...]


SHARES: Final = frozenset(
    {"floor", "high", "high_contrast", "weighted", "rare", "contrast", "short_rare", "middle_high"} | {"drop"}
)


def _share(value: int) -> str:
    return f"{value / WHOLE:.2f}" if value * 100 % WHOLE == 0 else f"{value / WHOLE:g}"


def _is(name: str) -> Cell:
    """The value of a setting."""
    return lambda rule: _share(getattr(rule, name)) if name in SHARES else str(getattr(rule, name))


def _grey(cell: Cell) -> Cell:
    """Only if pairs below `high` can be accepted at all."""
    return lambda rule: cell(rule) if rule.grey else OFF


def _yes(rule: TextRule) -> str:
    return "yes"


def _no(rule: TextRule) -> str:
    return "no"


# In the order of the page. What accepts a pair comes last there; the core gets to it earlier.
TESTS: Final = (
    Test("2", "similarity", "too-different", (Line("similarity below `--similarity`", _is("floor")),)),
    Test(
        "3",
        "strict",
        "not-strict",
        (Line("similarity below", lambda rule: OFF if rule.grey else _is("high")(rule)),),
    ),
    Test(
        "4",
        "common",
        "common-text",
        (
            Line("similarity below {high}, and `weighted` below", _grey(_is("weighted"))),
            Line("or `rare` below", _grey(_is("rare"))),
            Line("from {high} (strict {strict_high}) on: `rare` below", _is("rare")),
            Line("and `weighted` more than {drop} below the similarity"),
            Line("(half of that, if both have {long} words)"),
        ),
    ),
    Test(
        "5",
        "numbers",
        "other-numbers",
        (
            Line(
                "numbers that only one side has, on both sides: more than one in this many words",
                _is("numbers"),
            ),
            Line("only rare ones, if both are about the same subject,"),
            Line("or from {high} on and from {middle_from} words on"),
        ),
    ),
    Test(
        "6",
        "middle-high",
        "unclear",
        (
            Line(
                "from {high} (strict {strict_high}) on, {middle_from} to {middle_to} words: similarity below",
                lambda rule: _is("middle_high")(rule) if rule.middle_high > rule.high else OFF,
            ),
            Line("and more than 1 word in {middle_words} in gaps, on both sides"),
            Line("(twice as many, if `weighted` is not below the similarity)"),
        ),
    ),
    Test(
        "7",
        "short-rare",
        "common-text",
        (Line("below {high}, both at most {short} words: `rare` below", _grey(_is("short_rare"))),),
    ),
    Test(
        "7a",
        "titles",
        "unclear",
        (
            Line(
                "below {high}, not both at least {long} words: both have a title, and not the same",
                _grey(lambda rule: OFF if rule.grey_middle else "no"),
            ),
        ),
    ),
    Test(
        "8",
        "passage",
        "passage",
        (
            Line(
                "below {high}, both at least {long} words: a gap of over 1 word in {passage}, on both sides",
                _grey(_no),
            ),
        ),
    ),
    Test(
        "9",
        "frame",
        "frame",
        (
            Line(
                "the same: gaps of over {gap} words on average, `weighted` more than {drop} below the "
                "similarity, and `rare` below it",
                _grey(_no),
            ),
        ),
    ),
    Test(
        "10",
        "middle",
        "revision",
        (
            Line(
                "below {high}, of {middle_from} to {middle_to} words",
                _grey(lambda rule: "yes" if rule.grey_middle else "only if"),
            ),
            Line("at most 2 words in {middle_words} are in gaps on one side,", _grey(_yes)),
            Line("`rare` is at least {high}, and `weighted` at least {drop} above the similarity"),
        ),
    ),
    Test("", "title", "same-subject", (Line("else, both have the same title", _grey(_yes)),)),
    Test("", "rest", "unclear", (Line("else", _grey(lambda rule: OFF if rule.grey_middle else "no")),)),
    Test(
        "10b",
        "other-title",
        "other-title",
        (
            Line(
                "each title names what the other text hardly speaks of",
                lambda rule: "no" if rule.titles else OFF,
            ),
        ),
    ),
    Test(
        "10a",
        "subject",
        "other-subject",
        (Line("among this many first words, each names a subject that the other does not", _is("subject")),),
    ),
    Test(
        "11",
        "siblings",
        "template",
        (
            Line("at least this many neighbours vary in the same places", _is("siblings")),
            Line(
                "applied only if what differs is at least one part in this many of what is shared",
                _is("slot"),
            ),
        ),
    ),
    Test(
        "11a",
        "families",
        "template",
        (
            Line(
                "below {high}, each has nearly identical neighbours of its own, and names",
                _grey(_is("subject")),
            ),
            Line("among this many first words what the other never has"),
        ),
    ),
    Test(
        "12",
        "own",
        "template",
        (
            Line("others also have what the pair shares: its own part is below", _grey(_is("contrast"))),
            Line("from {high} (strict {strict_high}) on: below", _is("high_contrast")),
            Line("and there what two groups of neighbours have does not count against it"),
        ),
    ),
    Test(
        "12a",
        "clause",
        "clause",
        (
            Line(
                "from {high} (strict {strict_high}) on, both at least {long} words, not of one title: "
                "a passage of this many words, not at its ends,",
                _is("clause"),
            ),
            Line("that only one of them and a neighbour have"),
        ),
    ),
    Test(
        "13",
        "high",
        "nearly-identical",
        (Line("none of these: from {high} (strict {strict_high}) on", _yes),),
    ),
    Test(
        "",
        "form",
        "perhaps-form",
        (
            Line(
                "test 11 would reject it if applied from one part in {fine_slot} of what is shared on",
                lambda rule: "yes" if rule.slot < rule.fine_slot else OFF,
            ),
        ),
    ),
    Test("", "short", "short-edited", (Line("below, both at most {short} words", _grey(_yes)),)),
    Test("", "long", "revision", (Line("below, both at least {long} words", _grey(_yes)),)),
)
