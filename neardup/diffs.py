"""Word diffs: where two texts agree and where they do not, in time that no text makes quadratic.

Words that both texts have once are laid out first (patience diff), and only the small gaps between
them are given to difflib. A gap that is too large is one change: coarse, never slow, never wrong.
CJK characters count as words. White space belongs to the word before it and is not compared.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final

from neardup import cjk

GAP: Final = 10_000  # words of one side times words of the other, up to which difflib is used
WORK: Final = 1_000_000  # the same, in all gaps of one diff
DEPTH: Final = 12

_WORD: Final = re.compile(rf"(?:[{cjk.CLASS}]|[^\W{cjk.CLASS}]+|[^\w\s])\s*|\s+")


@dataclass(frozen=True, slots=True)
class Step:
    """A run of words that both texts have, or what one has where the other has something else.

    The words carry the white space that follows them: joined, they are the text.
    """

    same: bool
    left: tuple[str, ...]
    right: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Shown:
    """A piece of a diff to be shown: `same`, `change`, or `cut` with how many words were left out."""

    op: str
    left: str
    right: str
    left_cut: int = 0
    right_cut: int = 0


def words(text: str) -> list[str]:
    """The words of *text*, each with the white space after it; CJK by character.

    >>> words("to be,  or 漢字")
    ['to ', 'be', ',  ', 'or ', '漢', '字']
    """
    return _WORD.findall(text)


def word_diff(left: str, right: str) -> list[Step]:
    """The steps from *left* to *right*.

    >>> for step in word_diff("the old house by the sea", "the new house by the sea"):
    ...     print(step.same, step.left, step.right)
    True ('the ',) ('the ',)
    False ('old ',) ('new ',)
    True ('house ', 'by ', 'the ', 'sea') ('house ', 'by ', 'the ', 'sea')
    """
    ours, theirs = words(left), words(right)
    a, b = [word.rstrip() for word in ours], [word.rstrip() for word in theirs]
    steps: list[Step] = []
    at_a = at_b = 0
    for start_a, start_b, length in [*_blocks(a, b), (len(a), len(b), 0)]:
        if start_a > at_a or start_b > at_b:
            steps.append(Step(False, tuple(ours[at_a:start_a]), tuple(theirs[at_b:start_b])))
        at_a, at_b = start_a + length, start_b + length
        if length:
            steps.append(Step(True, tuple(ours[start_a:at_a]), tuple(theirs[start_b:at_b])))
    return steps


def _blocks(a: list[str], b: list[str]) -> list[tuple[int, int, int]]:
    """Runs that both have: where in *a*, where in *b*, how long; in order, none touching the next."""
    found: list[tuple[int, int, int]] = []
    work = WORK
    todo = [(0, len(a), 0, len(b), 0)]
    while todo:
        low_a, high_a, low_b, high_b, depth = todo.pop()
        start = _equal(a, b, low_a, low_b, min(high_a - low_a, high_b - low_b), 1)
        if start:
            found.append((low_a, low_b, start))
            low_a, low_b = low_a + start, low_b + start
        end = _equal(a, b, high_a - 1, high_b - 1, min(high_a - low_a, high_b - low_b), -1)
        if end:
            high_a, high_b = high_a - end, high_b - end
            found.append((high_a, high_b, end))
        if low_a == high_a or low_b == high_b:
            continue
        anchors = _anchors(a[low_a:high_a], b[low_b:high_b]) if depth < DEPTH else []
        if anchors:
            at_a, at_b = low_a, low_b
            for one, other in anchors:
                todo.append((at_a, low_a + one, at_b, low_b + other, depth + 1))
                found.append((low_a + one, low_b + other, 1))
                at_a, at_b = low_a + one + 1, low_b + other + 1
            todo.append((at_a, high_a, at_b, high_b, depth + 1))
            continue
        size = (high_a - low_a) * (high_b - low_b)
        if size <= min(GAP, work):
            work -= size
            matcher = SequenceMatcher(None, a[low_a:high_a], b[low_b:high_b], autojunk=False)
            for block in matcher.get_matching_blocks():
                if block.size:
                    found.append((low_a + block.a, low_b + block.b, block.size))
    return _joined(sorted(found))


def _equal(a: list[str], b: list[str], at_a: int, at_b: int, most: int, step: int) -> int:
    """How many words are equal from here on, forwards or backwards."""
    count = 0
    while count < most and a[at_a] == b[at_b]:
        at_a, at_b, count = at_a + step, at_b + step, count + 1
    return count


def _anchors(a: list[str], b: list[str]) -> list[tuple[int, int]]:
    """Places of words that each side has once, the most of them that are in the same order."""
    once = {word for word, count in Counter(a).items() if count == 1}
    once &= {word for word, count in Counter(b).items() if count == 1}
    places = {word: at for at, word in enumerate(b) if word in once}
    pairs = [(at, places[word]) for at, word in enumerate(a) if word in once]
    ends: list[int] = []  # the smallest place that ends an increasing run of each length
    last: list[int] = []
    before: list[int] = []
    for number, (_, place) in enumerate(pairs):
        length = bisect_left(ends, place)
        before.append(last[length - 1] if length else -1)
        if length == len(ends):
            ends.append(place)
            last.append(number)
        else:
            ends[length], last[length] = place, number
    run: list[tuple[int, int]] = []
    number = last[-1] if last else -1
    while number >= 0:
        run.append(pairs[number])
        number = before[number]
    return run[::-1]


def _joined(blocks: Sequence[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    joined: list[tuple[int, int, int]] = []
    for start_a, start_b, length in blocks:
        if joined and joined[-1][0] + joined[-1][2] == start_a and joined[-1][1] + joined[-1][2] == start_b:
            joined[-1] = (*joined[-1][:2], joined[-1][2] + length)
        else:
            joined.append((start_a, start_b, length))
    return joined


def excerpt(steps: Sequence[Step], *, context: int = 10, change: int = 60, limit: int = 260) -> list[Shown]:
    """What is worth showing of a diff: the changes with *context* words around them.

    A change shows at most *change* words per side, everything together about *limit* per side, and a word
    at most 80 characters; each `cut` says how many words it replaces.

    >>> excerpt(word_diff("a b c d e f", "a b c d e g"), context=2)
    [Shown(op='cut', left='', right='', left_cut=3, right_cut=3), \
Shown(op='same', left='d e ', right='d e ', left_cut=0, right_cut=0), \
Shown(op='change', left='f', right='g', left_cut=0, right_cut=0)]
    """
    shown: list[Shown] = []
    spent = 0
    for number, step in enumerate(steps):
        if spent >= limit:
            rest = steps[number:]
            left, right = (sum(len(side) for side in sides) for sides in _sides(rest))
            shown.append(Shown("cut", "", "", left, right))
            break
        if step.same:
            head = context if number else 0
            tail = context if number + 1 < len(steps) else 0
            if len(steps) == 1:
                head = limit
            spent += min(len(step.left), head + tail)
            shown += _shortened(step, head, tail)
        else:
            spent += min(change, max(len(step.left), len(step.right)))
            shown.append(Shown("change", _text(step.left[:change]), _text(step.right[:change])))
            left, right = (max(0, len(side) - change) for side in (step.left, step.right))
            if left or right:
                shown.append(Shown("cut", "", "", left, right))
    return shown


def _sides(steps: Sequence[Step]) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
    return [step.left for step in steps], [step.right for step in steps]


def _shortened(step: Step, head: int, tail: int) -> Iterator[Shown]:
    count = len(step.left)
    if count <= head + tail + 2:
        yield Shown("same", _text(step.left), _text(step.right))
        return
    if head:
        yield Shown("same", _text(step.left[:head]), _text(step.right[:head]))
    yield Shown("cut", "", "", count - head - tail, count - head - tail)
    if tail:
        yield Shown("same", _text(step.left[-tail:]), _text(step.right[-tail:]))


def _text(parts: Sequence[str]) -> str:
    return "".join(part if len(part) <= 80 else f"{part[:60]}…{part[-15:]}" for part in parts)
