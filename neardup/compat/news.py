"""The news clustering functions of a TypeScript package, in Python spelling.

`compute_simhash` is the original's, which knows ASCII words only: every Chinese or Cyrillic text is
0000000000000000. `compute_simhash_unicode` does the same with the words of all scripts.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from typing import Any, Final, Literal

import numpy as np

from neardup import hashes
from neardup.checks import check_text
from neardup.clusters import groups
from neardup.distances import distance
from neardup.errors import InvalidType, InvalidValue, shown
from neardup.fingerprints import Fingerprints, format
from neardup.pairs import join
from neardup.schemes import scheme

__all__ = [
    "Article",
    "ArticleGroup",
    "are_articles_similar",
    "calculate_hamming_distance",
    "compute_simhash",
    "compute_simhash_unicode",
    "distance_to_similarity",
    "fnv1a64",
    "get_match_type",
    "group_articles_by_similarity",
    "hamming_distance",
    "is_near_duplicate",
]

BITS: Final = 64
RADIUS: Final = 3
SIMILAR: Final = 10
MatchType = Literal["exact", "near", "similar", "different"]

_NEWS: Final = scheme("news")
_UNICODE: Final = scheme("news-unicode")


def fnv1a64(text: str) -> int:
    """FNV-1a with 64 bits over UTF-16 units.

    >>> fnv1a64("hello")
    11831194018420276491
    """
    check_text("the text", text)
    return hashes.fnv1a64(memoryview(text.encode("utf-16-le", "surrogatepass")).cast("H"))


def compute_simhash(text: str) -> str:
    """The fingerprint of a text by its ASCII words, as 16 hexadecimal digits; all 0 where it has none.

    >>> compute_simhash("The president announced new trade policies today")
    '6491fb1f8663d51f'
    """
    return format(_NEWS.fingerprint(text) or 0, BITS)


def compute_simhash_unicode(text: str) -> str | None:
    """The same by the words of all scripts; None if a text has none: it equals no other.

    >>> compute_simhash("你好 世界"), compute_simhash_unicode("你好 世界"), compute_simhash_unicode("…")
    ('0000000000000000', 'afacc14c865dc129', None)
    """
    value = _UNICODE.fingerprint(text)
    return None if value is None else format(value, BITS)


def hamming_distance(hash1: str, hash2: str) -> int:
    """In how many bits two hexadecimal numbers of any length differ.

    >>> hamming_distance("1", "ffff")
    15
    """
    return distance(_number(hash1), _number(hash2))


def calculate_hamming_distance(hash1: str, hash2: str) -> int:
    """In how many bits two fingerprints of 16 hexadecimal digits differ.

    >>> calculate_hamming_distance("ffffffffffffffff", "efffffffffffffff")
    1
    """
    return distance(_fingerprint(hash1), _fingerprint(hash2))


def is_near_duplicate(hash1: str, hash2: str, threshold: float = RADIUS) -> bool:
    """Whether two fingerprints differ in at most *threshold* bits."""
    return hamming_distance(hash1, hash2) <= threshold


def distance_to_similarity(distance: float) -> float:
    """1 - distance / 64: the share of equal bits, not the cosine that `neardup.similarity` estimates.

    >>> distance_to_similarity(32)
    0.5
    """
    return 1 - _real(distance) / BITS


def get_match_type(distance: float) -> MatchType:
    """exact at 0, near up to 3, similar up to 10, different above.

    >>> get_match_type(0), get_match_type(3), get_match_type(10), get_match_type(11)
    ('exact', 'near', 'similar', 'different')
    """
    if _real(distance) == 0:
        return "exact"
    if distance <= RADIUS:
        return "near"
    return "similar" if distance <= SIMILAR else "different"


@dataclass(frozen=True, slots=True)
class Article:
    """What is grouped. A mapping with these keys, or with the original's (`simHash`), does as well."""

    id: str
    sim_hash: str
    published_at: str | datetime
    headline: str = ""
    source_domain: str = ""
    content: str | None = None


@dataclass(frozen=True, slots=True)
class ArticleGroup:
    """Articles near the newest of them."""

    id: str
    center_article_id: str
    member_ids: list[str]
    average_distance: float


AnyArticle = Article | Mapping[str, Any]


def are_articles_similar(article1: AnyArticle, article2: AnyArticle, threshold: float = RADIUS) -> bool:
    """Whether the fingerprints of two articles differ in at most *threshold* bits."""
    return calculate_hamming_distance(_field(article1, "sim_hash"), _field(article2, "sim_hash")) <= threshold


def group_articles_by_similarity(
    articles: Iterable[AnyArticle], threshold: float = RADIUS
) -> list[ArticleGroup]:
    """Groups around the newest article that is in none yet; of equally old ones the first given leads."""
    given = list(articles)
    times = [_milliseconds(_field(article, "published_at")) for article in given]
    newest_first = sorted(range(len(given)), key=lambda at: -times[at])
    ids = [_field(given[at], "id") for at in newest_first]
    texts = [_field(given[at], "sim_hash") for at in newest_first]
    if len(set(ids)) < 2:  # nothing to compare, so the original looks at no fingerprint
        return [ArticleGroup("cluster-1", ids[0], ids[:1], 0)] if ids else []
    prints = Fingerprints.of(map(_fingerprint, texts), BITS)
    return [
        ArticleGroup(
            f"cluster-{number}",
            ids[rows[0]],
            [ids[row] for row in rows],
            sum(distances) / len(distances) if distances else 0,
        )
        for number, (rows, distances) in enumerate(_stars(prints, ids, threshold), 1)
    ]


def _stars(prints: Fingerprints, ids: list[Any], threshold: float) -> Iterator[tuple[list[int], list[int]]]:
    """The rows of each group, its centre first, and the distances of the others to it."""
    radius = min(math.floor(threshold), BITS)
    if len(set(ids)) == len(ids) and radius >= 0:
        found = groups(prints, radius)
        distances = iter(found.distance.tolist())
        for rows in found:
            yield rows, [next(distances) for _ in rows[1:]]
        return
    # Two articles with one id: whichever comes first into a group keeps the other out of all.
    near: dict[int, list[tuple[int, int]]] = {}
    for left, right, far in join(prints, radius) if radius >= 0 else ():
        near.setdefault(left, []).append((right, far))
    taken = set()
    for center, name in enumerate(ids):
        if name not in taken:
            taken.add(name)
            members = [(row, far) for row, far in near.get(center, ()) if ids[row] not in taken]
            first = {ids[row]: (row, far) for row, far in reversed(members)}
            taken.update(first)
            chosen = sorted(first.values())
            yield [center, *(row for row, _ in chosen)], [far for _, far in chosen]


# --- what comes from outside -----------------------------------------------------------------------------

_FOREIGN: Final = {"sim_hash": "simHash", "published_at": "publishedAt"}
_HEX: Final = re.compile(r"[0-9A-Fa-f]+", re.ASCII)
_DATE: Final = re.compile(
    r"(\d{4})(?:-(\d\d)(?:-(\d\d))?)?"
    r"(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d+))?)?\s*(Z|[+-]\d\d:?\d\d)?)?",
    re.ASCII | re.IGNORECASE,
)


def _field(article: AnyArticle, name: str) -> Any:
    if not isinstance(article, Mapping):
        if not hasattr(article, name):
            raise InvalidType(f"an article must be an Article or a mapping, not {shown(article)}")
        return getattr(article, name)
    for key in (name, _FOREIGN.get(name, name)):
        if key in article:
            return article[key]
    raise InvalidValue(f"an article needs {name!r}; this one has: {', '.join(map(str, article))}")


def _real(distance: float) -> float:
    if not isinstance(distance, (int, float, np.number)):
        raise InvalidType(f"a distance must be a number, not {shown(distance)}")
    return distance


def _number(text: str) -> int:
    if not isinstance(text, str):
        raise InvalidType(f"a hash must be a str of hexadecimal digits, not {shown(text)}")
    if not _HEX.fullmatch(text.rstrip()):
        raise InvalidValue(f"{text!r} is not a hexadecimal number")
    return int(text, 16)


def _fingerprint(text: str) -> int:
    if not isinstance(text, str) or len(text) != BITS // 4 or not _HEX.fullmatch(text):
        raise InvalidValue(f"Hashes must be 16-character hex strings, not {shown(text)}")
    return int(text, 16)


def _milliseconds(moment: object) -> int:
    """Milliseconds since 1970. A time without an offset is UTC, so that no result depends on the machine."""
    if isinstance(moment, str):
        moment = _parsed(moment)
    elif isinstance(moment, date) and not isinstance(moment, datetime):
        moment = datetime(moment.year, moment.month, moment.day)
    if not isinstance(moment, datetime):
        raise InvalidType(f"published_at must be an ISO date or a datetime, not {moment!r}")
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=timezone.utc)
    return (moment - datetime(1970, 1, 1, tzinfo=timezone.utc)) // timedelta(milliseconds=1)


def _parsed(text: str) -> datetime:
    # Python 3.10 reads neither "Z" nor a fraction of other than 3 or 6 digits.
    found = _DATE.fullmatch(text.strip())
    if not found:
        raise InvalidValue(f"{text!r} is not a date; write it like 2024-01-31 or 2024-01-31T12:00:00Z")
    year, month, day, hour, minute, second, fraction, zone = found.groups()
    try:
        moment = datetime(int(year), int(month or 1), int(day or 1), tzinfo=timezone.utc)
        if int(hour or 0) > 24 or int(minute or 0) > 59 or int(second or 0) > 59:
            raise ValueError("no such time of day")
        if int(hour or 0) == 24 and (int(minute), int(second or 0), int(fraction or 0)) != (0, 0, 0):
            raise ValueError("no such time of day")
        moment += timedelta(
            hours=int(hour or 0),
            minutes=int(minute or 0),
            seconds=int(second or 0),
            milliseconds=int((fraction or "")[:3].ljust(3, "0")),
        )
        if zone and zone not in "Zz":
            offset = timedelta(hours=int(zone[1:3]), minutes=int(zone[-2:]))
            moment += offset if zone[0] == "-" else -offset
    except (ValueError, OverflowError) as error:
        raise InvalidValue(f"{text!r} is not a date: {error}") from None
    return moment
