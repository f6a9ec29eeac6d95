"""States: each capture of a page compared with the one before, with the first one, and with states seen.

A verdict here rests on the two texts alone: no other document is a neighbour, and every word counts as rare.
So what is said of a page does not depend on what else is in the input.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import Final

from neardup.diffs import excerpt, word_diff
from neardup.edits import word_count
from neardup.fingerprints import format
from neardup.schemes import Scheme
from neardup.timelines.model import Capture, Choices, Comparison, Page
from neardup.timelines.shelves import Held, digest_of
from neardup.verifiers import (
    IDENTICAL,
    NO_INFORMATION,
    SPELLED,
    Verifier,
    measuring_scheme,
    parse_measure,
)

NEAREST: Final = 8
"""How many states, the nearest ones, a text is compared with that is not in the state before it."""


@dataclass(frozen=True, slots=True)
class _Text:
    """What is known of a text that the verifier holds under *number*, that of the first capture with it."""

    number: int
    digest: bytes
    spelled: bytes
    """Equal for texts that differ in case, spacing and punctuation alone."""
    says: bool
    """Whether there is anything to compare."""
    print: int | None


class Comparing:
    """Compares the captures of pages, one page after the other."""

    def __init__(
        self,
        choices: Choices,
        bits: int,
        *,
        memory: int,
        spill: str | None = None,
        threads: int | None = None,
    ) -> None:
        """Fingerprints have so many *bits*. Texts that take more than *memory* bytes go to a file *spill*."""
        measure = parse_measure(choices.verify, choices.similarity)
        self._verifies = measure.verifies
        measured = measure if measure.verifies else parse_measure("default")
        self._verifier = Verifier(measured, None, memory=memory, spill=spill, threads=threads)
        self._measuring: Scheme = measuring_scheme()
        self._bits = bits

    def page(self, name: str, captures: Iterable[Held]) -> Page:
        """The page of that *name* with its *captures*, which come by time."""
        found: list[Capture] = []
        repeated = 0
        last: Held | None = None
        # The first text, the one before, and the first one of each state.
        first, before, states = None, None, list[_Text]()
        by_spelling: dict[bytes, int] = {}
        for held in captures:
            if last is not None and held.same_as(last):
                repeated += 1
                continue
            if last is None or first is None or before is None:
                first = before = self._set_aside(1, held)
                states.append(first)
                by_spelling[first.spelled] = 1
                found.append(self._capture(held, first, 1))
            elif held.digest == before.digest:
                found.append(self._again(found[-1], held, before))
            else:
                now = self._set_aside(len(found) + 1, held)
                own = found[-1].state
                to_before, to_first, to_state = self._compare([before, first, states[own - 1]], now)
                state = by_spelling.get(now.spelled, own if to_state.same else 0)
                state = state or self._nearest(states, now, own)
                new = state > len(states)
                states += [now] * new
                by_spelling.setdefault(now.spelled, state)
                capture = self._capture(held, now, state, found[-1], new=new)
                found.append(_differing(capture, to_before, to_first, last.text, held.text))
                if before not in (first, states[own - 1]):
                    self._verifier.remove([before.number])
                before = now
            last = held
        self._verifier.remove(sorted({one.number for one in (first, before, *states) if one is not None}))
        return Page(name, tuple(found), repeated)

    def _set_aside(self, number: int, held: Held) -> _Text:
        self._verifier.add([number], [held.text])
        spelled = self._measuring.normalized(held.text)
        return _Text(number, held.digest, digest_of(spelled), bool(spelled), held.print)

    def _nearest(self, states: Sequence[_Text], now: _Text, before: int) -> int:
        """The state that *now* is the same as, or the next number; it is not the one *before*."""
        others = [
            (distance, state)
            for state, text in enumerate(states, 1)
            if state != before and (distance := _distance(text, now)) is not None
        ]
        near = [state for _, state in sorted(others)[:NEAREST]]
        verdicts = self._compare([states[state - 1] for state in near], now)
        return next((state for state, one in zip(near, verdicts, strict=True) if one.same), len(states) + 1)

    def _compare(self, others: Sequence[_Text], now: _Text) -> list[Comparison]:
        """*now* compared with each of the *others*."""
        found = {other.number: _plainly(other, now) for other in others}
        asked = [other for other in others if found[other.number] is None]
        asked = list({other.number: other for other in asked}.values())
        verdicts = self._verifier.judge([other.number for other in asked], [now.number] * len(asked))
        for other, verdict in zip(asked, verdicts, strict=True):
            same, similarity = verdict.accepted and self._verifies, round(verdict.similarity, 4)
            found[other.number] = Comparison(_distance(other, now), similarity, same, verdict.reason)
        return [compared for other in others if (compared := found[other.number]) is not None]

    def _capture(
        self, held: Held, now: _Text, state: int, last: Capture | None = None, *, new: bool = False
    ) -> Capture:
        """A capture, not compared yet."""
        changed = last is not None and state != last.state
        return Capture(
            number=1 if last is None else last.number + 1,
            id=held.id,
            date=held.date,
            time=time_of(held.moment),
            state=state,
            run=1 if last is None else last.run + changed,
            returned=changed and not new,
            words=word_count(held.text),
            fingerprint=None if now.print is None else format(now.print, self._bits),
        )

    def _again(self, last: Capture, held: Held, text: _Text) -> Capture:
        """A capture whose text is that of the *last* one."""
        same = _plainly(text, text)
        capture = self._capture(held, text, last.state, last)
        return replace(capture, before=same, first=last.first or same)


def _differing(capture: Capture, before: Comparison, first: Comparison, old: str, new: str) -> Capture:
    """*capture* with what is different from the text before."""
    steps = word_diff(old, new)
    changes = [step for step in steps if not step.same]
    return replace(
        capture,
        before=before,
        first=first,
        added=sum(word_count("".join(step.right)) for step in changes),
        removed=sum(word_count("".join(step.left)) for step in changes),
        passages=len(changes),
        diff=tuple(excerpt(steps)) if changes else (),
    )


def _plainly(one: _Text, other: _Text) -> Comparison | None:
    """What is known of two texts without measuring them."""
    if not (one.says and other.says):
        return Comparison(None, None, one.says == other.says, NO_INFORMATION)
    if one.spelled == other.spelled:
        reason = IDENTICAL if one.digest == other.digest else SPELLED
        return Comparison(_distance(one, other), 1.0, True, reason)
    return None


def _distance(one: _Text, other: _Text) -> int | None:
    """None if one of them has no fingerprint."""
    if one.print is None or other.print is None:
        return None
    return (one.print ^ other.print).bit_count()


def time_of(moment: float) -> str:
    """A moment, in seconds since 1970, as ISO 8601 writes it.

    >>> time_of(1714564800.0), time_of(0.5)
    ('2024-05-01T12:00:00Z', '1970-01-01T00:00:00.500000Z')
    """
    return datetime.fromtimestamp(moment, timezone.utc).isoformat().replace("+00:00", "Z")
