"""From documents to what stays, and why: survey, candidates, verdicts, stars, rows.

A document is a mapping with `id`, `text` and other fields. Documents with the same normalised text are one
text; texts are numbered in keep order. What goes was compared directly with what stays.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from neardup.naive.judging import (
    ACCEPTING,
    EVERY_RUN,
    LACKS_WORDS,
    WHOLE,
    Feature,
    Measures,
    Neighbourhood,
    Profile,
    Rule,
    judge,
    judge_preserving,
    judge_share,
    stands_in,
)
from neardup.naive.keeping import Document, Pair, absorb, best_keepers, keep_order, stars
from neardup.naive.pairs import join_nearest
from neardup.naive.texts import distance, features_of, fingerprint, normalize_text

Row = dict[str, Any]

PROTECTED = "protected:"
# How many of a text's nearest candidates are considered.
NEIGHBOURS = 32

IDENTICAL = "identical text"
SPELLED = "identical but for case, spacing or punctuation"
UNVERIFIED = "fingerprint only, not verified"


def dedupe(
    documents: Sequence[Document],
    *,
    radius: int,
    rule: Rule | None = None,
    share: tuple[str, int] | None = None,
    preserving: bool = False,
    keep: str = "central,longest",
    within: str | None = None,
    across: str | None = None,
    subject: str | None = None,
    protect: Sequence[Document] = (),
    bits: int = 128,
) -> tuple[list[Row], list[Row]]:
    """The rows of the annotations and of the evidence.

    Pairs are judged by the numbers of a *rule*, or by a *share* of features (`jaccard` or `containment`) from
    that many ten-thousandths on; *preserving*, a text goes only for one that says all that it says. Without
    any of these all pairs within the radius are accepted.
    """
    known = survey(documents, protect, keep, within, across, subject, bits)
    near, crowded = join_nearest(known.text_prints(), radius, NEIGHBOURS, known.comparable)
    verdicts = Verdicts(known, {(left, right): far for left, right, far in near}, rule, share, preserving)
    keeper = choose(known, verdicts, crowded, radius, keep)
    return rows_of(known, verdicts, keeper, none="none" in keep.split(","))


# --- survey ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Survey:
    """What is known of the documents before any two are compared."""

    documents: Sequence[Document]
    """Those of the input, then those that are protected."""
    fixed: frozenset[int]
    """The rows of these."""
    normal: Sequence[str]
    prints: Sequence[int | None]
    frequencies: Mapping[Feature, int]
    """In how many documents each feature is."""
    source: Sequence[Any]
    """What `across` looks at."""
    group: Sequence[Any]
    """What `within` and `subject` look at."""
    named: Sequence[bool]
    """Whether a document has a subject: all of its group are about the same."""
    across: bool
    stands: Sequence[int]
    """For each text the row of the document that represents it."""
    text: Sequence[int | None]
    """For each row its text; None without information."""

    def text_prints(self) -> list[int | None]:
        """The fingerprint of each text."""
        return [self.prints[row] for row in self.stands]

    def comparable(self, left: int, right: int) -> bool:
        """Whether two texts may be compared."""
        one, other = self.stands[left], self.stands[right]
        if one in self.fixed and other in self.fixed:
            return False
        if self.across and self.source[one] == self.source[other]:
            return False
        return bool(self.group[one] == self.group[other])

    def apart(self, left: int, right: int) -> int:
        """The distance of two documents."""
        return distance(self.prints[left] or 0, self.prints[right] or 0)


def survey(
    documents: Sequence[Document],
    protect: Sequence[Document],
    keep: str,
    within: str | None,
    across: str | None,
    subject: str | None,
    bits: int,
) -> Survey:
    """Look at every document by itself."""
    everything = [*documents, *({**document, "id": PROTECTED + document["id"]} for document in protect)]
    fixed = frozenset(range(len(documents), len(everything)))
    texts = [document["text"] for document in everything]
    normal = [normalize_text(text) for text in texts]
    informs = [bool(text.strip("_ ")) for text in normal]
    frequencies = Counter(
        feature
        for text, tells in zip(normal, informs, strict=True)
        for feature in set(features_of(text, "mixed:4") if tells else ())
    )
    source = [across and document.get(across) for document in everything]
    group = [tuple(name and document.get(name) for name in (within, subject)) for document in everything]

    def identity(row: int) -> tuple[Any, ...]:
        """Sources and groups have their own texts; with `across`, protected ones do too."""
        return normal[row], source[row], group[row], bool(across) and row in fixed

    first: dict[tuple[Any, ...], int] = {}
    for row in keep_order(everything, keep, fixed=fixed):
        if informs[row]:
            first.setdefault(identity(row), row)
    number = {name: text for text, name in enumerate(first)}
    return Survey(
        documents=everything,
        fixed=fixed,
        normal=normal,
        prints=[
            fingerprint(text, weights="log-df", bits=bits, frequencies=frequencies, documents=len(normal))
            for text in texts
        ],
        frequencies=frequencies,
        source=source,
        group=group,
        named=[subject is not None and document.get(subject) is not None for document in everything],
        across=across is not None,
        stands=list(first.values()),
        text=[number.get(identity(row)) for row in range(len(everything))],
    )


# --- verdicts --------------------------------------------------------------------------------------------


class Verdicts:
    """Each candidate pair, the lower text first: how far apart the two are, and what was found of them."""

    def __init__(
        self,
        known: Survey,
        apart: Mapping[Pair, int],
        rule: Rule | None,
        share: tuple[str, int] | None,
        preserving: bool,
    ) -> None:
        self.rule, self.share, self.preserving = rule, share, preserving
        self.measures = rule is not None or share is not None or preserving
        documents = known.documents
        self.named = [known.named[row] for row in known.stands]
        self.profiles = [
            Profile.of(documents[row]["text"], known.frequencies, len(documents)) for row in known.stands
        ]
        self.apart: dict[Pair, int] = {}
        self.reason: dict[Pair, str] = {}
        self.seen: dict[Pair, Measures] = {}
        # Each pair by itself says which texts are near each other; then the neighbours may object.
        for asks in (False, True):
            self.around = Neighbourhood({pair: seen.plain for pair, seen in self.seen.items()})
            for pair, far in apart.items():
                self.look(pair, far, asks=asks)

    def look(self, pair: Pair, far: int, *, asks: bool = True) -> None:
        """Judge a pair that is so *far* apart."""
        left, right = (self.profiles[text] for text in pair)
        self.apart[pair] = far
        if self.rule is not None:
            rivals = self.around.rivals(*pair, self.profiles.__getitem__) if asks else None
            rule = {**self.rule, "same": self.named[pair[0]]}
            self.reason[pair], self.seen[pair] = judge(left, right, rule, rivals)
        elif self.share is not None:
            self.reason[pair], self.seen[pair] = judge_share(left, right, *self.share)
        elif self.preserving:
            self.reason[pair], self.seen[pair] = judge_preserving(left, right)
        else:
            self.reason[pair] = UNVERIFIED

    def accepts(self, pair: Pair) -> bool:
        """Whether a pair that was judged was accepted."""
        return self.reason[pair] in (*ACCEPTING, EVERY_RUN, UNVERIFIED)

    def lets_go(self, goes: int, stays: int) -> bool:
        """Whether a text may go for another, by the verdict on the two."""
        if not self.accepts(both(goes, stays)):
            return False
        return not self.preserving or stands_in(self.profiles[goes], self.profiles[stays])


def both(one: int, other: int) -> Pair:
    """The pair of two texts."""
    return min(one, other), max(one, other)


# --- stars -----------------------------------------------------------------------------------------------


def choose(known: Survey, verdicts: Verdicts, crowded: set[int], radius: int, keep: str) -> dict[int, int]:
    """For each text the one that stays for it. Pairs that crowded keepers meet are added to the verdicts."""
    count, stands, fixed = len(known.stands), known.stands, known.fixed
    met = {text for pair in verdicts.apart for text in pair}
    # The keep order may now use the number of accepted pairs of a text.
    order, central = list(range(count)), "central" in keep.split(",")
    if central:
        pairs = [two for one, other in verdicts.reason for two in ((one, other), (other, one))]
        degree = Counter(stands[text] for text, other in pairs if verdicts.lets_go(other, text))
        rows = keep_order(known.documents, keep, stands, fixed=fixed, degree=degree)
        order = sorted(order, key=lambda text: rows.index(stands[text]))
    rank = {text: place for place, text in enumerate(order)}

    def lets_go(goes: int, stays: int) -> bool:
        return verdicts.lets_go(order[goes], order[stays])

    def accepted() -> list[Pair]:
        return [both(rank[one], rank[two]) for one, two in verdicts.reason if verdicts.accepts((one, two))]

    def near(place: int) -> list[int]:
        """What a keeper is near to, of all that are near to anything."""
        hub, prints = order[place], known.text_prints()
        others = [text for text in met if text != hub and known.comparable(hub, text)]
        others = [text for text in others if distance(prints[hub] or 0, prints[text] or 0) <= radius]
        return [rank[text] for text in others if stands[text] not in fixed]

    def takes(one: int, other: int) -> bool:
        pair = both(order[one], order[other])
        if pair not in verdicts.reason:
            verdicts.look(pair, known.apart(stands[pair[0]], stands[pair[1]]))
        return lets_go(other, one)

    def preference(goes: int, one: int) -> tuple[int, int, int, int]:
        pair = both(order[goes], order[one])
        seen = verdicts.seen.get(pair, Measures(0, 0, 0))
        return -seen.weighted, -seen.plain, verdicts.apart[pair], one

    later_goes = [(one, two) for one, two in accepted() if lets_go(two, one)]
    keeper = stars(count, later_goes, {rank[text] for text in range(count) if stands[text] in fixed})
    leads = {one for place, one in enumerate(keeper) if one != place}
    absorb(keeper, sorted({rank[text] for text in crowded} & leads), near, takes)
    keeper = best_keepers(keeper, accepted(), preference, lets_go, any_keeper=central)
    return {order[place]: order[one] for place, one in enumerate(keeper)}


# --- rows ------------------------------------------------------------------------------------------------


def rows_of(
    known: Survey, verdicts: Verdicts, keeper: Mapping[int, int], *, none: bool
) -> tuple[list[Row], list[Row]]:
    """Back to documents: a copy goes for the one that represents its text, or for what that one goes for."""
    ids = [document["id"] for document in known.documents]
    everything = range(len(ids))
    kept_by = list(everything)
    for row, text in enumerate(known.text):
        if text is not None and row not in known.fixed:
            # With `across`, a copy was not compared with those of its own source.
            is_copy = known.stands[text] != row and not known.across
            if keeper[text] != text or is_copy:
                kept_by[row] = known.stands[keeper[text]]
    goes = [row for row in everything if kept_by[row] != row]

    def said(one: int, other: int, pair: Pair | None, far: int) -> Row:
        """The evidence on two documents: they are copies, or what was found for the *pair* of their texts."""
        reason = "" if pair is None else verdicts.reason[pair]
        goes = known.text[other]
        accepted = pair is None or goes is None or verdicts.lets_go(goes, sum(pair) - goes)
        if not accepted and verdicts.preserving:
            reason = LACKS_WORDS
        seen = None if pair is None else verdicts.seen.get(pair)
        if accepted and known.normal[one] == known.normal[other]:
            seen = Measures(WHOLE, WHOLE, WHOLE)
            alike = known.documents[one]["text"] == known.documents[other]["text"]
            reason = IDENTICAL if alike else SPELLED
        return {
            "keeper": ids[one],
            "id": ids[other],
            "distance": far,
            "similarity": None if seen is None else seen.plain / WHOLE,
            "weighted": None if seen is None else seen.weighted / WHOLE,
            "rare": None if seen is None else seen.rare / WHOLE,
            "accepted": accepted,
            "reason": reason,
        }

    def deciding(row: int) -> Pair | None:
        """The pair that says why a document goes; of a copy of what stays there is none."""
        text = known.text[row]
        return None if text is None or keeper[text] == text else both(text, keeper[text])

    evidence = {row: said(kept_by[row], row, deciding(row), known.apart(kept_by[row], row)) for row in goes}
    others = []
    # Pairs that decided nothing, or were rejected: the one that stays is named first.
    for pair in (verdicts.reason.keys() if verdicts.measures else set()) - set(map(deciding, goes)):
        one, other = (known.stands[text] for text in pair)
        if (one in evidence) == (other in evidence):
            # The one that could go is named second.
            swaps = verdicts.lets_go(*pair) and not verdicts.lets_go(*pair[::-1])
        else:
            swaps = one in evidence
        one, other = (other, one) if swaps else (one, other)
        others.append(said(one, other, pair, verdicts.apart[pair]))

    cluster, keeps = list(kept_by), [row not in evidence for row in everything]
    if none:
        for row, text in enumerate(known.text if known.across else ()):
            members = [one for one in keeper if keeper[one] == text != one]
            if members and text is not None and row not in evidence and row not in known.fixed:
                # A copy of what others go for is a duplicate of one of them.
                cluster[row] = known.stands[text]
                if cluster[row] != row:
                    pair = both(text, min(members))
                    others.append(said(known.stands[min(members)], row, pair, verdicts.apart[pair]))
        size = Counter(kept_by)
        keeps = [keeps[row] and (row in known.fixed or size[cluster[row]] == 1) for row in everything]

    annotations = [
        {
            "id": ids[row],
            "cluster": ids[cluster[row]],
            "keep": keeps[row],
            "duplicate_of": evidence[row]["keeper"] if row in evidence else None,
            "distance": evidence[row]["distance"] if row in evidence else None,
            "similarity": evidence[row]["similarity"] if row in evidence else None,
        }
        for row in everything
        if row not in known.fixed
    ]
    rows = [*evidence.values(), *others]
    return annotations, sorted(rows, key=lambda row: (row["keeper"].encode(), row["id"].encode()))
