"""Whether one text is a copy of another: profiles, measures, the tests of a rule, and neighbours that object.

Everything is integers: similarities and shares are in ten-thousandths, rounded down. The numbers of a rule
are handed in by name; docs/quality.md says what each test is for.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import isqrt

from neardup.naive.texts import CJK_ONE, WORD, features_of, is_cjk, normalize_text

Feature = tuple[int, str]
Rule = Mapping[str, int]

WHOLE = 10_000
# From this plain similarity on two texts are neighbours; from this on, nearly the same text.
NEIGHBOUR, SAME = 6000, 9000
# Rivals of a pair that are asked, in each of the two tests.
RIVALS = 16

NEARLY_IDENTICAL = "nearly identical"
SHORT_EDITED = "same short text, edited"
REVISION = "revision"
PERHAPS_FORM = "nearly identical, perhaps a form"
TOO_DIFFERENT = "too different"
OTHER_NUMBERS = "different numbers"
TEMPLATE = "same template, different content"
COMMON_TEXT = "shares mostly common text"
UNCLEAR = "too short to tell a revision from a sibling"
PASSAGE = "a whole passage was replaced"
FRAME = "same frame, other content"
NOT_STRICT = "not close enough for strict"
OTHER_SUBJECT = "same words about another subject"
EVERY_RUN = "every run of three words stands in the other"
LACKS_WORDS = "has words that the other lacks"
OTHER_TITLE = "another subject in the title"
SAME_SUBJECT = "same subject, text rewritten"
CLAUSE = "a clause that only one has"
ACCEPTING = (NEARLY_IDENTICAL, SHORT_EDITED, REVISION, PERHAPS_FORM, SAME_SUBJECT)
MEASURED = (
    *ACCEPTING, TOO_DIFFERENT, OTHER_NUMBERS, TEMPLATE, COMMON_TEXT, UNCLEAR, PASSAGE, FRAME, NOT_STRICT,
    OTHER_SUBJECT, OTHER_TITLE, CLAUSE,
)  # fmt: skip

# --- the profile of a text -------------------------------------------------------------------------------

# 32 x 2^(-j/4): how much a feature counts that is j doublings above the knee.
COMMON = (32, 27, 23, 19, 16, 13, 11, 10, 8, 7, 6, 5, 4, 3, 3, 2, 2, 2, 1, 1, 1, 1, 1, 1)
# The frequency of a feature that nobody else has; it is held by no profile.
ALONE = 1


def knee_of(documents: int) -> int:
    """A feature that at most this many documents have is rare."""
    return max(16, isqrt(documents) // 3)


def common_weight(frequency: int, knee: int) -> int:
    """How much a feature counts where common text counts little.

    >>> [common_weight(frequency, 16) for frequency in (1, 2, 16, 31, 32, 64, 128)]
    [0, 32, 32, 32, 27, 23, 19]
    """
    if frequency <= ALONE:
        return 0
    doublings = max(0, (frequency // knee).bit_length() - 1)
    return COMMON[doublings] if doublings < len(COMMON) else 0


# Lines with words that may belong to a title, and words of a line.
LINES, LINE_WORDS = 6, 24
# A word that stands this often in a text, and more than this many times as often as in the other, is its
# subject.
OFTEN = 3
# Shorter numbers than this may number anything; in a shorter text than this no word stands often.
DIGITS, TITLED = 2, 29


@dataclass(frozen=True)
class Title:
    """What a text says that it is about: its first lines, up to one that has a rare word."""

    words: frozenset[str]
    numbers: frozenset[str]
    """Those of two digits or more, without those that very many documents have."""
    last: frozenset[str]
    """Those of its last line, if one of them is rare."""
    once: frozenset[str]
    """Those that stand once in the text."""
    cjk: bool
    """Whether a third or more of it is CJK characters."""


def title_of(
    text: str, tokens: Sequence[str], is_rare: Callable[[str], bool], tells: Callable[[str], bool]
) -> Title:
    """The title of a text with these *tokens*. A text of one line has none, nor has one of half the text.
    Numbers count that tell something: those that not very many documents have.

    >>> text = "HOME\\nNews 7\\nZip 2.11\\nall the rest of it, at length"
    >>> title = title_of(text, ["word"] * 20, "zip".__eq__, "11".__eq__)
    >>> sorted(title.words), sorted(title.numbers)
    (['home', 'news', 'zip'], ['11'])
    """
    lines: list[list[str]] = []
    last: list[str] = []
    if "\n" in text or "\r" in text:
        for line in map(tokens_of, map(normalize_text, re.split("[\n\r]", text))):
            if not line:
                continue
            if len(line) * 2 > len(tokens):
                break
            lines.append(line[:LINE_WORDS])
            said = [word for word in lines[-1] if not is_number(word)]
            if any(map(is_rare, said)):
                last = said
            if last or len(lines) == LINES:
                break
    words = [word for line in lines for word in line]
    cjk = sum(is_cjk(word[0]) for word in words)
    return Title(
        words=frozenset(word for word in words if not is_number(word)),
        numbers=frozenset(word for word in words if is_number(word) and len(word) >= DIGITS and tells(word)),
        last=frozenset(last),
        once=frozenset(word for word, count in Counter(tokens).items() if count == 1),
        cjk=cjk > 0 and cjk * 3 >= len(words),
    )


@dataclass(frozen=True)
class Profile:
    """What verification knows of one text."""

    occurs: Mapping[Feature, int]
    """bit_length of the occurrences of each feature, of those that others have, too."""
    counts: Mapping[Feature, int]
    """How much each of them counts where common text counts little."""
    rare: frozenset[Feature]
    """Those that few documents have."""
    all: int
    """How many features there are with those that nobody else has."""
    squares: tuple[int, int, int]
    """The squared lengths of the vectors of the three measures; of the plain one over all features."""
    tokens: Sequence[str]
    """Words, and CJK characters, in the order of the text."""
    numbers: frozenset[str]
    """The numbers among them."""
    rare_numbers: frozenset[str]
    """Those of them that few documents have."""
    title: Title
    joined: frozenset[str]
    """The numbers, and what two to four neighbouring ones give when they are joined."""

    @classmethod
    def of(cls, text: str, frequencies: Mapping[Feature, int] | None = None, documents: int = 0) -> Profile:
        """The profile of a text. *frequencies* says how many of the *documents* have each feature; without
        them all features are rare."""
        normal = normalize_text(text)
        found = Counter(features_of(normal, "mixed:4") if normal.strip("_ ") else [])
        frequency = {f: 2 if frequencies is None else frequencies.get(f, 0) for f in found}
        knee = knee_of(documents)
        shared = [feature for feature in found if frequency[feature] > ALONE]
        occurs = {feature: found[feature].bit_length() for feature in shared}
        counts = {feature: common_weight(frequency[feature], knee) for feature in shared}
        rare = frozenset(feature for feature in shared if frequency[feature] <= knee)
        tokens = tokens_of(normal)
        numbers, joined = numbers_of(tokens)

        def common(word: str) -> int:
            """How many documents have a word; without frequencies few."""
            return frequency[CJK_ONE if is_cjk(word[0]) else WORD, word]

        def is_rare(word: str) -> bool:
            return common(word) <= knee

        return cls(
            occurs=occurs,
            counts=counts,
            rare=rare,
            all=len(found),
            squares=(
                sum(count.bit_length() ** 2 for count in found.values()),
                sum((occurs[feature] * counts[feature]) ** 2 for feature in shared),
                sum(occurs[feature] ** 2 for feature in rare),
            ),
            tokens=tokens,
            numbers=numbers,
            rare_numbers=frozenset(filter(is_rare, numbers)),
            title=title_of(text, tokens, is_rare, lambda number: common(number) < 8 * knee),
            joined=joined,
        )


def tokens_of(normal: str) -> list[str]:
    """The words of a normalised text outside CJK, and every CJK character, in order.

    >>> tokens_of("ab 12 漢字x")
    ['ab', '12', '漢', '字', 'x']
    """
    return "".join(f" {letter} " if is_cjk(letter) else letter for letter in normal).split()


def is_number(token: str) -> bool:
    """Whether all letters of a token are numbers."""
    return all(unicodedata.category(letter)[0] == "N" for letter in token)


def numbers_of(tokens: Iterable[str]) -> tuple[frozenset[str], frozenset[str]]:
    """The numbers among the tokens; and with them what two to four neighbouring ones give when joined.

    >>> [sorted(found) for found in numbers_of(["1", "2", "x", "3"])]
    [['1', '2', '3'], ['1', '12', '2', '3']]
    """
    numbers: set[str] = set()
    joined: set[str] = set()
    run: list[str] = []
    for token in tokens:
        run = [*run, token] if is_number(token) else []
        numbers.update(run[-1:])
        joined.update("".join(run[-count:]) for count in range(1, min(len(run), 4) + 1))
    return frozenset(numbers), frozenset(joined)


# --- measures --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Measures:
    """What two texts have in common, whatever else there is in the collection."""

    plain: int
    """Cosine of the features, weighted by their occurrences."""
    weighted: int
    """The same, where common text counts little."""
    rare: int
    """The same over features that few documents have."""


def cosine(dot: int, left: int, right: int) -> int:
    """In ten-thousandths, rounded down; 0 where one side has nothing.

    >>> cosine(1, 1, 2)
    7071
    """
    return min(WHOLE, isqrt(dot * dot * WHOLE * WHOLE // (left * right))) if left and right else 0


def measure(left: Profile, right: Profile) -> Measures:
    """The three similarities of two texts."""

    both = left.occurs.keys() & right.occurs.keys()
    product = {feature: left.occurs[feature] * right.occurs[feature] for feature in both}
    dots = (
        sum(product.values()),
        sum(product[feature] * left.counts[feature] ** 2 for feature in both),
        sum(product[feature] for feature in both & left.rare),
    )
    return Measures(*map(cosine, dots, left.squares, right.squares))


# --- the tests that look at a pair by itself -------------------------------------------------------------


def judge_alone(left: Profile, right: Profile, seen: Measures, rule: Rule) -> str:
    """The reason of a verdict that knows of no other text. Tests 2 to 10a of docs/quality.md."""
    same = same_subject(left, right, rule)
    reason = judge_measured(left, right, seen, rule, same=same)
    if reason not in ACCEPTING or same:
        return reason
    if rule["titles"] and titles(left, right) == OTHER:
        return OTHER_TITLE
    return OTHER_SUBJECT if other_subject(left, right, rule["subject"]) else reason


UNKNOWN, EQUAL, OTHER = range(3)


def titles(left: Profile, right: Profile) -> int:
    """What two titles say: nothing, that both texts are about the same, or that they are not."""
    one, other = left.title, right.title
    if not one.words or not other.words:
        return UNKNOWN
    numbers = bool(one.numbers - right.joined) and bool(other.numbers - left.joined)
    beside = (one.words - other.words <= one.once) and (other.words - one.words <= other.once)
    in_line = bool(one.last) and one.last == other.last and beside
    if (one.words == other.words or in_line) and not numbers:
        return EQUAL

    def names_its_own(own: Profile, alien: Profile) -> bool:
        ours, theirs = Counter(own.tokens), Counter(alien.tokens)
        words = own.title.words - alien.title.words
        return any(ours[word] >= OFTEN and ours[word] > OFTEN * theirs[word] for word in words)

    if min(len(left.tokens), len(right.tokens)) < TITLED or one.cjk or other.cjk:
        return UNKNOWN
    return OTHER if numbers or (names_its_own(left, right) and names_its_own(right, left)) else UNKNOWN


def same_subject(left: Profile, right: Profile, rule: Rule) -> bool:
    """Whether both are about the same, by their titles or by what the user says."""
    if rule["same"]:
        return True
    long_enough = min(len(left.tokens), len(right.tokens)) > rule["short"]
    return bool(rule["titles"] and long_enough and left.title.last and titles(left, right) == EQUAL)


def judge_measured(left: Profile, right: Profile, seen: Measures, rule: Rule, *, same: bool) -> str:
    """Tests 2 to 10: the first that decides gives the reason."""
    if seen.plain < rule["floor"]:
        return TOO_DIFFERENT
    high = seen.plain >= rule["high"]
    if not high and not rule["grey"]:
        return NOT_STRICT
    shorter, longer = sorted((len(left.tokens), len(right.tokens)))
    short, long = longer <= rule["short"], shorter >= rule["long"]
    little = rule["drop"] // 2 if long else rule["drop"]
    if high and seen.rare < rule["rare"] and seen.weighted + little < seen.plain:
        return COMMON_TEXT
    if not high and (seen.rare < rule["rare"] or seen.weighted < rule["weighted"]):
        return COMMON_TEXT

    rare = same or (high and shorter > rule["short"])
    if other_numbers(left, right, rare=rare) * rule["numbers"] > shorter:
        return OTHER_NUMBERS

    ours, theirs = gaps(left.tokens, right.tokens), gaps(right.tokens, left.tokens)
    fewest = min(sum(ours), sum(theirs))
    if high:
        if not short and not long and seen.plain < rule["middle_high"]:
            few = rule["middle_words"] // (1 if seen.weighted < seen.plain else 2)
            if not same and fewest * few > shorter:
                return UNCLEAR
        return NEARLY_IDENTICAL
    if short and seen.rare < rule["short_rare"]:
        return COMMON_TEXT
    both_titled = bool(left.title.words) and bool(right.title.words)
    asks = rule["titles"] and not rule["grey_middle"] and not long and not same
    if asks and both_titled and titles(left, right) != EQUAL:
        return UNCLEAR
    if short:
        return SHORT_EDITED
    if long:
        if not same and min(max(ours, default=0), max(theirs, default=0)) * rule["passage"] > shorter:
            return PASSAGE
        in_passages = sum(ours) + sum(theirs) > rule["gap"] * (len(ours) + len(theirs))
        drops = seen.weighted + rule["drop"] < seen.plain and seen.rare < seen.weighted
        return FRAME if in_passages and drops and not same else REVISION
    rises = seen.weighted >= seen.plain + rule["drop"] and seen.rare >= rule["high"]
    added = rises and fewest * (rule["middle_words"] // 2) <= shorter
    if rule["grey_middle"] or added:
        return REVISION
    return SAME_SUBJECT if same else UNCLEAR


def gaps(own: Sequence[str], other: Sequence[str]) -> list[int]:
    """The lengths of the runs of words in no pair of neighbouring words that the other text has.

    >>> gaps("a b x y c d z".split(), "a b c d".split())
    [2, 1]
    """
    return [end - start for start, end in passages(own, other)]


def passages(own: Sequence[str], other: Sequence[str]) -> list[tuple[int, int]]:
    """Where these runs begin and end.

    >>> passages("a b x y c d z".split(), "a b c d".split())
    [(2, 4), (6, 7)]
    """
    known = set(pairwise(other))
    covered = {place for at, two in enumerate(pairwise(own)) if two in known for place in (at, at + 1)}
    found: list[tuple[int, int]] = []
    for at in range(len(own)):
        if at not in covered:
            joins = bool(found) and at == found[-1][1]
            found.append((found.pop()[0] if joins else at, at + 1))
    return found


def other_numbers(left: Profile, right: Profile, *, rare: bool) -> int:
    """The numbers of one text that the other lacks, joined or not, or the *rare* ones: of the side that has
    fewer."""
    ours, theirs = (side.rare_numbers if rare else side.numbers for side in (left, right))
    return min(len(ours - right.joined), len(theirs - left.joined))


def only_in(own: Profile, other: Profile, first: int) -> set[str]:
    """Words among the *first* of one text that the other has nowhere; numbers are none."""
    return set(own.tokens[:first]) - set(other.tokens) - own.numbers


def other_subject(left: Profile, right: Profile, first: int) -> bool:
    """Whether a word among the first of one text, and one among those of the other, each of which the other
    text has nowhere, occur at least twice between the same two words."""

    def places(profile: Profile, subject: str) -> Counter[tuple[str, str]]:
        words = profile.tokens
        threes = zip(words, words[1:], words[2:], strict=False)
        return Counter((before, behind) for before, middle, behind in threes if middle == subject)

    return any(
        (places(left, ours) & places(right, theirs)).total() >= 2
        for ours in only_in(left, right, first)
        for theirs in only_in(right, left, first)
    )


# --- neighbours ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rivals:
    """The neighbours of a pair that are asked."""

    groups: Sequence[Profile] = ()
    """The nearest one of each group of nearly identical texts that neither of the two is in."""
    all: Sequence[Profile] = ()
    """The nearest ones of any group."""
    both_have_copies: bool = False
    """Whether each of the two is nearly identical to others, of another group than the other one."""


class Neighbourhood:
    """Who is near whom: texts are numbered in keep order, pairs have their plain similarity."""

    def __init__(self, pairs: Mapping[tuple[int, int], int]) -> None:
        self.near: dict[int, dict[int, int]] = {}
        self.group: dict[int, int] = {}
        for (left, right), plain in pairs.items():
            if plain < NEIGHBOUR:
                continue
            for one, other in ((left, right), (right, left)):
                self.near.setdefault(one, {})[other] = plain
                self.group.setdefault(one, one)
            if plain >= SAME:
                old, new = self.group[left], self.group[right]
                self.group = {one: new if label == old else label for one, label in self.group.items()}

    def nearest(self, left: int, right: int) -> list[int]:
        """The neighbours of both, the nearest first; of equally near ones the one to be kept."""
        ours, theirs = self.near.get(left, {}), self.near.get(right, {})
        plain = {one: max(ours.get(one, 0), theirs.get(one, 0)) for one in {*ours, *theirs} - {left, right}}
        return sorted(plain, key=lambda one: (-plain[one], one))

    def of_other_groups(self, left: int, right: int) -> list[int]:
        """The nearest one of every group that neither is in."""
        met = {self.group.get(left), self.group.get(right)}
        found = []
        for one in self.nearest(left, right):
            if self.group[one] not in met:
                met.add(self.group[one])
                found.append(one)
        return found

    def are_two_groups(self, left: int, right: int) -> bool:
        """Whether each is in a group with others that differ from it, and not in a group with the other."""

        def has_others(one: int) -> bool:
            return any(SAME <= plain < WHOLE for plain in self.near.get(one, {}).values())

        apart = self.group.get(left) != self.group.get(right)
        return apart and has_others(left) and has_others(right)

    def rivals(self, left: int, right: int, profile: Callable[[int], Profile]) -> Rivals:
        """The neighbours of a pair that are asked."""
        return Rivals(
            [profile(one) for one in self.of_other_groups(left, right)[:RIVALS]],
            [profile(one) for one in self.nearest(left, right)[:RIVALS]],
            self.are_two_groups(left, right),
        )


def contest(left: Profile, right: Profile, seen: Measures, rule: Rule, rivals: Rivals, reason: str) -> str:
    """Let the neighbours of an accepted pair object. Tests 11 to 13 of docs/quality.md."""
    high = seen.plain >= rule["high"]
    ours, theirs = left.occurs.keys(), right.occurs.keys()
    shared = ours & theirs
    # On the side that has fewer: features that only one of the two has, and those of them that others have.
    differing = max(0, min(left.all, right.all) - len(shared))
    leftover = min(len(ours), len(theirs)) - len(shared)

    def is_sibling(rival: Profile) -> bool:
        def differs(side: Profile) -> bool:
            apart = max(0, min(side.all, rival.all) - len(side.occurs.keys() & rival.occurs.keys()))
            return apart * 4 >= differing * 3

        return len(shared - rival.occurs.keys()) * 4 < differing and differs(left) and differs(right)

    def held_by_few(features: Iterable[Feature]) -> int:
        return sum(sum(one in rival.occurs for rival in rivals.groups) < 2 for one in features)

    def stands_out() -> bool:
        """Whether enough of what is in dispute is the pair's own."""
        own = held_by_few(shared) if leftover else len(shared)
        share = rule["high_contrast" if high else "contrast"]
        least = min(held_by_few(ours - theirs), held_by_few(theirs - ours)) if high else leftover
        against = [leftover, least] if own else [leftover]
        return any(own * WHOLE >= (own + other) * share for other in against)

    little = differing * rule["slot"] < len(shared)
    asks = differing > 0 and differing * rule["fine_slot"] >= len(shared)
    siblings = sum(map(is_sibling, rivals.all)) >= rule["siblings"] if asks else rule["siblings"] == 0
    first = rule["subject"]
    two_families = (
        not high
        and rivals.both_have_copies
        and bool(only_in(left, right, first))
        and bool(only_in(right, left, first))
    )
    overruled = high and same_subject(left, right, rule)
    if not overruled and ((siblings and not little) or two_families or not stands_out()):
        return TEMPLATE
    if high and differ_in_a_clause(left, right, rule, rivals):
        return CLAUSE
    return PERHAPS_FORM if siblings and reason == NEARLY_IDENTICAL and not overruled else reason


def differ_in_a_clause(left: Profile, right: Profile, rule: Rule, rivals: Rivals) -> bool:
    """Whether only one of two long texts has a passage, between words of both, that a neighbour has, too."""
    shorter, least, edge = min(len(left.tokens), len(right.tokens)), rule["clause"], rule["long"] // 2
    one_title = rule["same"] or (rule["titles"] and titles(left, right) == EQUAL)
    if shorter < rule["long"] or not least or one_title:
        return False

    def held(own: Sequence[str], other: Sequence[str]) -> bool:
        inner = (
            own[start:end]
            for start, end in passages(own, other)
            if end - start >= least and start >= edge and end + edge <= len(own)
        )
        return any(
            sum(gaps(words, rival.tokens)) * 4 <= len(words) for words in inner for rival in rivals.all
        )

    return held(left.tokens, right.tokens) or held(right.tokens, left.tokens)


def judge(left: Profile, right: Profile, rule: Rule, rivals: Rivals | None = None) -> tuple[str, Measures]:
    """The verdict on a pair among its *rivals*: the reason in words, and the measures that it rests on.

    >>> rule = {"floor": 6400, "high": 9000, "grey": 0, "same": 0, "titles": 0, "short": 28}
    >>> judge(Profile.of("the cat sat"), Profile.of("a dog ran"), rule)[0]
    'too different'
    """
    seen = measure(left, right)
    reason = judge_alone(left, right, seen, rule)
    if rivals is not None and reason in ACCEPTING:
        reason = contest(left, right, seen, rule, rivals, reason)
    return reason, seen


def runs_of(tokens: Sequence[str], count: int) -> set[tuple[str, ...]]:
    """Every run of that many words."""
    return {tuple(tokens[at : at + count]) for at in range(len(tokens) + 1 - count)}


def stands_in(own: Profile, other: Profile) -> bool:
    """Whether every run of three words of one text stands in the other; of fewer words, all of them in order.

    >>> stands_in(Profile.of("b c d"), Profile.of("A b, C d"))
    True
    """
    count = min(len(own.tokens), 3)
    return runs_of(own.tokens, count) <= runs_of(other.tokens, count)


def judge_preserving(left: Profile, right: Profile) -> tuple[str, Measures]:
    """The verdict of `preserving`: whether one of the two says nothing that the other lacks."""
    reason = EVERY_RUN if stands_in(left, right) or stands_in(right, left) else LACKS_WORDS
    return reason, measure(left, right)


def judge_share(left: Profile, right: Profile, name: str, least: int) -> tuple[str, Measures]:
    """The verdict of a share of features, `jaccard` or `containment`, from *least* on.

    It takes the place of the plain similarity.
    """
    shared = len(left.occurs.keys() & right.occurs.keys())
    whole = left.all + right.all - shared if name == "jaccard" else min(left.all, right.all)
    figure = shared * WHOLE // max(whole, 1)
    seen = measure(left, right)
    reason = REVISION if figure >= max(1, least) else TOO_DIFFERENT
    return reason, Measures(figure, seen.weighted, seen.rare)
