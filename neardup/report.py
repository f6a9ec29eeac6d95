"""The report of a run: one HTML page that needs nothing but itself.

Ids, texts and file names are hostile until shown otherwise: everything is escaped, characters
that cannot be seen are spelt out, and the page forbids itself (by its content security policy)
every script, every request and every style but its own. Nothing is shown without a limit, and
whatever is left out is counted.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import os
import shlex
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from neardup.contents import Side as Side
from neardup.contents import content_of_run
from neardup.diffs import Shown, excerpt, word_diff, words
from neardup.files import atomic_file
from neardup.guards import Loss
from neardup.wording import a
from neardup.wording import size as bytes_in_words

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

    from neardup.images.overlays import Overlay

CLUSTERS: Final = 25
MEMBERS: Final = 8
LOOKED_AT: Final = 60  # members among which those with the same text are shown as one
PAIRS: Final = 12
SOURCES: Final = 40
EXAMPLES: Final = 10
WINDOW: Final = (
    40_000  # characters of a long text that are compared, from shortly before the first difference
)
MANIFEST: Final = 30_000  # characters of the manifest that are shown
INPUTS: Final = 5  # that are named at the top
LISTED: Final = 50  # entries of a list in the manifest that are shown


@dataclass(frozen=True, slots=True)
class PairView:
    """Two documents that were compared, and what came of it."""

    keeper: Side
    other: Side
    distance: int | None
    similarity: float | None
    figures: Sequence[tuple[str, float]]
    """What else was measured: what it is called for people, and the value."""
    accepted: bool
    reason: str
    overlay: Overlay | None = None
    """For images: the other one laid over the keeper, and what differs."""


@dataclass(frozen=True, slots=True)
class ClusterView:
    """A keeper and some of the documents that were verified against it; *size* counts all, the keeper too."""

    keeper: Side
    members: Sequence[PairView]
    size: int


@dataclass(frozen=True, slots=True)
class GuardView:
    """A guard, what it allows and what it met."""

    name: str
    limit: float
    value: float
    stopped: bool
    examples: Sequence[str] = ()
    what: str = ""
    option: str = ""
    """What to give for the run to pass."""


@dataclass(frozen=True, slots=True)
class Report:
    """Everything that the page shows.

    *summary* may hold: documents, kept, removed, perhaps_forms, clusters, without_information, bad, measured,
    accepted, rejected (counts); similarity, radius, bits, recall, keep, scheme (settings); reasons (reason ->
    accepted, rejected); stopped, annotate_only and files (flags: the last says that every document is a
    file); title, date, folder (of the run), saved (bytes). What is missing is not shown.
    """

    summary: Mapping[str, Any]
    sizes: Mapping[int, int] = field(default_factory=dict)
    distances: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    similarities: Sequence[tuple[float, float, int, int]] = ()
    clusters: Sequence[ClusterView] = ()
    borderline: Sequence[PairView] = ()
    losses: Sequence[Loss] = ()
    guards: Sequence[GuardView] = ()
    without_information: Sequence[str] = ()
    """The first ids of documents that say nothing."""
    plan: str = ""
    manifest: Mapping[str, Any] = field(default_factory=dict)


def write_report(report: Report, path: str | os.PathLike[str]) -> None:
    """Write the page; it appears only when it is complete. The same report gives the same bytes."""
    page = render_report(report).encode()
    with atomic_file(path, overwrite=True) as file:
        file.write(page)


def render_page(template: str, styles: Sequence[str], **values: Any) -> str:
    """A page from its template: everything escaped, and its styles named by digest for its policy."""
    from markupsafe import Markup

    folder = files("neardup") / "templates"
    style = "\n".join((folder / name).read_text(encoding="utf-8").strip() for name in styles)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    page = _environment().get_template(template)
    return page.render(style=Markup(style), style_digest=digest, **values).lstrip()


def render_report(report: Report) -> str:
    """The page as text."""
    accepted = sorted(
        (pair for pair in report.borderline if pair.accepted), key=lambda pair: (_known(pair), pair.other.id)
    )
    rejected = sorted(
        (pair for pair in report.borderline if not pair.accepted),
        key=lambda pair: (-_known(pair), pair.other.id),
    )
    losses = sorted(report.losses, key=lambda loss: (-_share(loss), loss.source))
    overlap = _overlap(report)
    verified = _verified(report)
    stopped = bool(report.summary.get("stopped"))
    content = content_of_run(report.manifest)
    marked = bool(report.summary.get("annotate_only"))
    preserving = _verify(report) == "preserving"
    threshold = overlap[1] if overlap is not None else report.summary.get("similarity")
    threshold = None if preserving else threshold
    return render_page(
        "report.html",
        ["report.css"],
        report=report,
        summary=report.summary,
        size_rows=size_rows(report.sizes),
        distance_chart=distance_chart(report.distances, report.summary.get("radius")),
        similarity_chart=similarity_chart(report.similarities, threshold) if verified else None,
        clusters=report.clusters[:CLUSTERS],
        member_limit=MEMBERS,
        accepted=accepted[:PAIRS],
        rejected=rejected[:PAIRS],
        losses=losses[:SOURCES],
        losses_left=len(losses) - SOURCES,
        example_limit=EXAMPLES,
        manifest=manifest_text(report.manifest),
        verified=verified,
        stopped=stopped,
        gone="would be removed" if stopped else "marked" if marked else "removed",
        whole="none" in str(report.summary.get("keep", "")).split(","),
        overlap=overlap,
        preserving=preserving,
        said=content.words,
        noun=content.noun,
        nouns=f"{content.noun}s",
        a_noun=a(content.noun),
        reasons=_reasons(report.summary.get("reasons", {})),
        early=0 if threshold is None else sum(row[2] for row in report.similarities if row[1] <= threshold),
        inputs=_inputs(report.manifest),
        input_limit=INPUTS,
        folder=_quoted(report.summary.get("folder")),
        command=_command(report),
        files=bool(report.summary.get("files")),
        options=" ".join(guard.option for guard in report.guards if guard.stopped),
        example=_example(report.clusters),
    )


def _reasons(reasons: Mapping[str, tuple[int, int]]) -> tuple[list[tuple[str, int]], ...]:
    """Reasons for which pairs were accepted, and for which they were not, with their counts."""
    both = [[(reason, counts[at]) for reason, counts in reasons.items() if counts[at]] for at in (0, 1)]
    return tuple(sorted(rows, key=lambda row: (-row[1], row[0])) for rows in both)


def _inputs(manifest: Mapping[str, Any]) -> list[dict[str, Any]]:
    rows = manifest.get("inputs")
    return [row for row in rows if isinstance(row, dict) and "name" in row] if isinstance(rows, list) else []


def _quoted(path: object) -> str:
    return shlex.quote(path) if isinstance(path, str) else ""


def _command(report: Report) -> str:
    """What to type for this run."""
    words = report.manifest.get("command")
    folder = report.summary.get("folder")
    if not isinstance(words, list) or not words or not isinstance(folder, str):
        return ""
    return shlex.join([*map(str, words), "-o", folder])


def _example(clusters: Sequence[ClusterView]) -> str:
    """A pair to ask about."""
    pair = next((pair for cluster in clusters for pair in cluster.members), None)
    return "" if pair is None else shlex.join([pair.other.id, pair.keeper.id])


def _grouped(members: Sequence[PairView]) -> list[tuple[PairView, list[PairView]]]:
    """Members of a cluster, those with the same text and reason together: the first, and the others."""
    groups: dict[tuple[str, ...], list[PairView]] = {}
    for number, pair in enumerate(members[:LOOKED_AT]):
        own = (str(number),) if pair.other.image or not pair.other.text else ()
        groups.setdefault((pair.other.text, pair.reason, *own), []).append(pair)
    return [(first, others) for first, *others in groups.values()]


def _first_line(text: str) -> str:
    """The first line of a text that says something."""
    return next((line.strip() for line in text[:2000].splitlines() if line.strip()), "")


def _verified(report: Report) -> bool:
    """Whether the texts were compared, or fingerprints alone decided."""
    settings = report.manifest.get("settings")
    return not isinstance(settings, Mapping) or settings.get("verify") != "none"


def _verify(report: Report) -> str:
    """What decided."""
    settings = report.manifest.get("settings")
    return str(settings.get("verify")) if isinstance(settings, Mapping) else ""


def _overlap(report: Report) -> tuple[str, float] | None:
    """`jaccard` or `containment` and its least value, where that decided instead of a rule."""
    name, _, least = _verify(report).partition(":")
    return (name, float(least)) if least else None


def _known(pair: PairView) -> float:
    return 0.0 if pair.similarity is None else pair.similarity


def _share(loss: Loss) -> float:
    return loss.share


# --- charts ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Row:
    """A labelled bar of a list."""

    label: str
    count: int
    share: float


def size_rows(sizes: Mapping[int, int]) -> list[Row]:
    """Clusters by size, the large ones in bins that double.

    >>> [(row.label, row.count) for row in size_rows({2: 9, 3: 4, 7: 1, 300: 1})]
    [('2', 9), ('3', 4), ('4', 0), ('5–8', 1), ('9–16', 0), ('17–32', 0), ('33–64', 0), ('65–128', 0), \
('129–256', 0), ('257–512', 1)]
    """
    counts: dict[tuple[int, int], int] = {}
    largest = max((size for size in sizes if size > 1), default=0)
    low = 2
    while low <= largest:
        high = low if low < 5 else 1 << (low - 1).bit_length()
        counts[low, high] = 0
        low = high + 1
    for size, count in sizes.items():
        for low, high in counts:
            if low <= size <= high:
                counts[low, high] += count
    most = max(counts.values(), default=0)
    return [
        Row(f"{low:,}" if low == high else f"{low:,}–{high:,}", count, count / most if most else 0)
        for (low, high), count in counts.items()
    ]


@dataclass(frozen=True, slots=True)
class Bar:
    """One column of a chart: accepted pairs upwards, rejected ones downwards. In per cent and pixels."""

    x: float
    width: float
    label: str
    accepted: int
    rejected: int
    up: float
    down: float


@dataclass(frozen=True, slots=True)
class Chart:
    """Columns over an axis. Positions along it are per cent, so that it fits any width."""

    bars: list[Bar]
    ticks: list[tuple[float, str]]
    up: list[tuple[float, str]]
    down: list[tuple[float, str]]
    top: float
    bottom: float
    mark: float | None
    logarithmic: bool

    @property
    def height(self) -> float:
        return self.top + self.bottom


def distance_chart(distances: Mapping[int, tuple[int, int]], radius: int | None) -> Chart | None:
    """Pairs by distance."""
    if not distances:
        return None
    low, high = 0, max(*distances, radius or 0)
    step = max(1, math.ceil((high + 1) / 48))
    bins = []
    for start in range(low, high + 1, step):
        inside = [distances.get(at, (0, 0)) for at in range(start, start + step)]
        label = f"{start}" if step == 1 else f"{start}–{start + step - 1}"
        bins.append((label, sum(one for one, _ in inside), sum(one for _, one in inside)))
    every = max(1, round(len(bins) / 8))
    ticks = [((at + 0.5) / len(bins) * 100, str(at * step)) for at in range(0, len(bins), every)]
    return _chart(bins, ticks, None)


def similarity_chart(
    similarities: Sequence[tuple[float, float, int, int]], threshold: float | None
) -> Chart | None:
    """Pairs by similarity, with a mark where the threshold is."""
    if not similarities:
        return None
    rows = sorted(similarities)
    first = next((at for at, row in enumerate(rows) if row[2] or row[3]), 0)
    rows = rows[max(0, first - 1) :]  # nothing is measured far below the threshold
    low, high = rows[0][0], rows[-1][1]
    span = (high - low) or 1.0
    bins = [(f"{start:.2f} to {end:.2f}", accepted, rejected) for start, end, accepted, rejected in rows]
    step = 0.1 if span <= 0.6 else 0.2
    marks = [at * step for at in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]
    ticks = [((at - low) / span * 100, f"{at:.1f}") for at in marks]
    inside = threshold is not None and low <= threshold <= high
    return _chart(bins, ticks, (threshold - low) / span * 100 if inside and threshold is not None else None)


def _chart(bins: Sequence[tuple[str, int, int]], ticks: list[tuple[float, str]], mark: float | None) -> Chart:
    tall = 150.0
    counts = [count for _, *both in bins for count in both if count]
    most = max(counts, default=1)
    logarithmic = most >= 200 and most > 25 * sorted(counts)[len(counts) // 2]
    most_up = max((up for _, up, _ in bins), default=0)
    most_down = max((down for _, _, down in bins), default=0)

    def length(count: float) -> float:
        if not count:
            return 0.0
        share = math.log10(count + 1) / math.log10(most + 1) if logarithmic else count / most
        return max(1.5, tall * share)

    width = 100 / len(bins)
    bars = [
        Bar(at * width, width, label, up, down, length(up), length(down))
        for at, (label, up, down) in enumerate(bins)
    ]
    top, bottom = (max(length(count), 18.0) + 8 for count in (most_up, most_down))

    def grid(limit: int) -> list[tuple[float, str]]:
        lines = [(length(count), f"{count:,}") for count in _round_counts(limit, logarithmic)]
        apart = lines[0][0] if lines else 0.0
        return lines if apart >= 15 else lines[-1:] if lines and lines[-1][0] >= 15 else []

    return Chart(bars, ticks, grid(most_up), grid(most_down), top, bottom, mark, logarithmic)


def _round_counts(limit: int, logarithmic: bool) -> list[int]:
    """Numbers for grid lines.

    >>> _round_counts(70, False), _round_counts(5000, True), _round_counts(3, False)
    ([20, 40, 60], [10, 100, 1000], [1, 2, 3])
    """
    if limit < 1:
        return []
    if logarithmic:
        return [10**power for power in range(1, len(str(limit)))]
    step = 10 ** (len(str(limit)) - 1)
    nice = next(n for n in (step // 10 * 2, step // 2, step, 2 * step, 5 * step) if n and limit / n <= 4)
    return list(range(nice, limit + 1, nice))


# --- text that is safe to look at ------------------------------------------------------------------------

# Letters that look like nothing though their category is visible: fillers, joiners, selectors.
_BLANKS: Final = frozenset(
    [*"\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0", *map(chr, range(0xFE00, 0xFE10))]
)


def is_unseen(letter: str) -> bool:
    """Whether a character cannot be seen: controls, directions, zero widths, what has no meaning yet.

    >>> [is_unseen(letter) for letter in "a\\n\\u202e\\u200b\\x07"]
    [False, False, True, True, True]
    """
    if letter.isascii():
        return not letter.isprintable() and letter not in "\n\t\r"
    return letter in _BLANKS or unicodedata.category(letter) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")


def spelt(letter: str) -> str:
    """The code of a character and its name."""
    return f"U+{ord(letter):04X} {unicodedata.name(letter, 'CONTROL')}"


def _marked(text: object, limit: int = 0) -> Markup:
    """*text* escaped, what cannot be seen spelt out; cut in the middle when longer than *limit*."""
    from markupsafe import Markup, escape

    shown = str(text)
    if limit and len(shown) > limit:
        shown = f"{shown[: limit * 2 // 3]}…{shown[-limit // 3 :]}"
    if shown.isascii() and shown.isprintable():
        return escape(shown)
    parts: list[Markup] = []
    start = 0
    for at, letter in enumerate(shown):
        if is_unseen(letter):
            parts.append(escape(shown[start:at]))
            parts.append(
                Markup('<span class="unseen" title="{}">{:04X}</span>').format(spelt(letter), ord(letter))
            )
            start = at + 1
    parts.append(escape(shown[start:]))
    return Markup("").join(parts)


def _spelt(text: object) -> str:
    """*text* with invisible characters spelt out, where no markup is possible."""
    return "".join(f"[{ord(letter):04X}]" if is_unseen(letter) else letter for letter in str(text)[:200])


@dataclass(frozen=True, slots=True)
class Comparison:
    """The diff of a pair, ready to be shown."""

    pieces: list[Shown]
    identical: bool
    partial: bool


def _compared(pair: PairView) -> Comparison:
    left, right = pair.keeper.text, pair.other.text
    if left == right:
        return Comparison([], True, False)
    start = 0
    if max(len(left), len(right)) > WINDOW:
        start = max(0, common_start(left, right) - WINDOW // 20)
    ours, theirs = left[start : start + WINDOW], right[start : start + WINDOW]
    steps = word_diff(ours, theirs)
    partial = start + WINDOW < max(len(left), len(right))
    if all(step.same for step in steps) and not partial:
        return Comparison([], True, False)
    pieces = excerpt(steps)
    if start:
        before = len(words(left[:start]))
        pieces.insert(0, Shown("cut", "", "", before, before))
    return Comparison(pieces, False, partial)


def common_start(left: str, right: str) -> int:
    """How many characters at their beginning two texts have in common.

    >>> common_start("near-duplicate", "near-miss"), common_start("", "a"), common_start("ab", "ab")
    (5, 0, 2)
    """
    low, high = 0, min(len(left), len(right))
    while low < high:
        middle = (low + high + 1) // 2
        if left[low:middle] == right[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def manifest_text(manifest: Mapping[str, Any]) -> str:
    """The manifest as JSON, long lists and the whole cut."""
    text = json.dumps(_listed(manifest), indent=2, ensure_ascii=False, default=str)
    if len(text) > MANIFEST:
        return f"{text[:MANIFEST]}\n… {len(text) - MANIFEST:,} more characters are in manifest.json"
    return text


def _listed(value: Any) -> Any:
    if isinstance(value, Mapping):
        short = {str(key): _listed(inner) for key, inner in list(value.items())[:LISTED]}
        if len(value) > LISTED:
            short["…"] = f"{len(value) - LISTED:,} more"
        return short
    if isinstance(value, list | tuple):
        rows = [_listed(inner) for inner in value[:LISTED]]
        return [*rows, f"… {len(value) - LISTED:,} more"] if len(value) > LISTED else rows
    return value


def _count(value: Any) -> str:
    """A number for people; a count gets its commas, a share its digits."""
    if value is None:
        return "–"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    return f"{value:,}" if isinstance(value, int) or value == int(value) else f"{value:.4g}"


def _percent(part: float, whole: float) -> str:
    """
    >>> _percent(1, 3), _percent(1, 100_000), _percent(0, 0), _percent(99_999, 100_000)
    ('33.3\\xa0%', 'under 0.1\\xa0%', '0\\xa0%', 'over 99.9\\xa0%')
    """
    if not whole or not part:
        return "0\xa0%"
    share = part / whole * 100
    if share < 0.1:
        return "under 0.1\xa0%"
    if 99.9 < share < 100:
        return "over 99.9\xa0%"
    return f"{share:.1f}\xa0%"


def _figure(value: float | None) -> str:
    """A similarity; never rounded up to 1."""
    if value is None:
        return "–"
    shown = math.floor(value * 1000 + 1e-9) / 1000
    return f"{shown:.3f}"


def _split(text: str) -> tuple[str, str]:
    """A changed text and the white space behind it, which is not marked."""
    bare = text.rstrip()
    return (bare, text[len(bare) :]) if bare else (text, "")


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    folder = files("neardup") / "templates"
    environment = Environment(
        loader=FunctionLoader(lambda name: (folder / name).read_text(encoding="utf-8")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        marked=_marked,
        compared=_compared,
        count=_count,
        figure=_figure,
        split=_split,
        spelt=_spelt,
        grouped=_grouped,
        first_line=_first_line,
        size=bytes_in_words,
        number=lambda value: f"{value:.2f}",
    )
    environment.globals.update(percent=_percent)
    return environment
