"""The report page as text: complete, the same every time, with nothing in it that could act."""

import base64
import hashlib
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from neardup.guards import Loss
from neardup.report import (
    ClusterView,
    GuardView,
    PairView,
    Report,
    Side,
    distance_chart,
    is_unseen,
    render_report,
    similarity_chart,
    size_rows,
    write_report,
)

from .rundirs import figures

anything = st.text(st.characters(), max_size=40) | st.sampled_from(
    ["<script>", '"><img onerror=x>', "{{ 1 }}", "\ud800", "\x00"]
)


class Tags(HTMLParser):
    """Every tag and attribute name of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.names: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.names |= {name for name, _ in attrs}


def report_of(text: str, **summary: object) -> Report:
    one, other = Side(text, f"{text} a b c", text, {text: text}), Side(f"{text}2", f"{text} a d c", text)
    pair = PairView(one, other, 3, 0.91, figures(0.8, 0.7), True, text)
    near = PairView(one, other, 3, 0.79, figures(0.2, 0.1), False, text)
    facts = {"documents": 4, "kept": 3, "removed": 1, "clusters": 1, "title": text, "keep": text, "saved": 7}
    facts |= {"date": text, "folder": text, **summary}
    return Report(
        summary=facts,
        sizes={2: 1},
        distances={3: (1, 1)},
        similarities=[(0.7, 0.8, 0, 1), (0.8, 1.0, 1, 0)],
        clusters=[ClusterView(one, [pair], 2)],
        borderline=[pair, near],
        losses=[Loss(text, 4, 1)],
        guards=[GuardView(text, 1, 2, True, [text], text, text)],
        plan=text,
        manifest={
            text: [text],
            "neardup": text,
            "run": text,
            "command": ["neardup", text],
            "inputs": [{"name": text, "bytes": 3}],
        },
    )


@given(anything)
def test_no_text_adds_a_tag_or_an_attribute(text: str) -> None:
    plain, tried = Tags(), Tags()
    plain.feed(render_report(report_of("plain\u200b")))
    tried.feed(render_report(report_of(text)))
    assert tried.tags <= plain.tags
    assert tried.names <= plain.names


@given(anything)
def test_every_page_is_utf8_and_shows_what_cannot_be_seen(text: str) -> None:
    page = render_report(report_of(text))
    page.encode()
    assert not [letter for letter in page if is_unseen(letter)]


def test_the_policy_allows_this_style_and_nothing_else() -> None:
    page = render_report(report_of("x"))
    style = page.split("<style>")[1].split("</style>")[0]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]+)"', page)
    assert policy is not None
    assert policy[1] == (
        f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'"
    )
    assert "url(" not in style
    assert "@import" not in style
    assert not re.findall(r"(?:src|href)=[\"'](?!#|data:)", page)


def test_the_same_report_is_the_same_bytes(tmp_path: Path) -> None:
    for name in ("one.html", "two.html"):
        write_report(report_of("x"), tmp_path / name)
    assert (tmp_path / "one.html").read_bytes() == (tmp_path / "two.html").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one.html", "two.html"]


def test_an_empty_run_has_a_page() -> None:
    page = render_report(Report(summary={"documents": 0, "kept": 0, "removed": 0}))
    assert "No near-duplicates were found in 0 documents" in page


def test_a_stopped_run_says_so_first() -> None:
    page = render_report(report_of("x", stopped=True))
    assert "A guard stopped this run; nothing was removed." in page


def test_a_stopped_run_calls_nothing_removed() -> None:
    page = render_report(report_of("x", stopped=True))
    said = re.sub(r"<style>.*?</style>", "", page, flags=re.DOTALL)
    assert '<span class="role removed">would be removed</span>' in said
    assert "</span> would be removed</dt><dd>1</dd>" in said
    assert "3 would stay, 1 would be removed" in said
    for words in (">removed<", "</span> removed<", "What stays is", "<code>evidence.parquet</code>"):
        assert words not in said
        assert words in render_report(report_of("x"))


def test_marked_documents_are_not_called_removed() -> None:
    page = render_report(report_of("x", annotate_only=True))
    assert "marked, not removed" in page
    assert ">removed<" not in page


@given(
    st.dictionaries(st.integers(0, 300), st.tuples(st.integers(0, 10**7), st.integers(0, 10**7)), max_size=60)
)
def test_a_chart_counts_every_pair_and_stays_inside(distances: dict[int, tuple[int, int]]) -> None:
    chart = distance_chart(distances, 42)
    if chart is None:
        assert not distances
        return
    assert sum(bar.accepted for bar in chart.bars) == sum(one for one, _ in distances.values())
    assert sum(bar.rejected for bar in chart.bars) == sum(one for _, one in distances.values())
    assert all(bar.x >= 0 and bar.x + bar.width <= 100.001 for bar in chart.bars)
    assert all(bar.up <= chart.top and bar.down <= chart.bottom for bar in chart.bars)


@given(st.dictionaries(st.integers(1, 10**6), st.integers(1, 10**6), max_size=30))
def test_size_rows_count_every_cluster(sizes: dict[int, int]) -> None:
    assert sum(row.count for row in size_rows(sizes)) == sum(
        count for size, count in sizes.items() if size > 1
    )


def test_the_threshold_is_marked_where_it_is() -> None:
    chart = similarity_chart([(0.6, 0.8, 0, 3), (0.8, 1.0, 2, 0)], 0.8)
    assert chart is not None
    assert chart.mark is not None
    assert abs(chart.mark - 50) < 0.01


def test_what_nobody_verified_is_not_called_compared() -> None:
    report = replace(report_of("x"), manifest={"settings": {"verify": "none"}})
    assert "Fingerprints alone decided" in render_report(report)
    assert "compared directly, on its text" not in render_report(report)
    assert "compared directly, on its text" in render_report(report_of("x"))


def test_the_page_says_what_preserving_asks_for() -> None:
    report = replace(report_of("x", similarity=0.64), manifest={"settings": {"verify": "preserving"}})
    page = render_report(report)
    assert "every run of three words of it stands in the one that stays" in page
    assert "at least <strong>0.64" not in page


def test_the_page_says_what_share_decided_and_marks_it() -> None:
    report = replace(report_of("x", similarity=0.64), manifest={"settings": {"verify": "jaccard:0.75"}})
    page = render_report(report)
    assert "<strong>0.75</strong> of all features" in page
    assert "0.64" not in page


def test_whole_clusters_that_go_have_no_document_that_stays() -> None:
    assert "none of which stays" in render_report(report_of("x", keep="none,longest"))
    page = render_report(report_of("x", keep="none"))
    assert "Of each cluster no document stays, by the rule <code>none</code>" in page
    assert "one document stays" not in page
    assert "What stays is on the left" not in page
    assert "Of each cluster one document stays" in render_report(report_of("x", keep="longest"))


def test_where_fingerprints_decided_nothing_is_called_measured() -> None:
    facts = {"measured": 0, "accepted": 0, "rejected": 0, "radius": 45}
    report = replace(report_of("x", **facts), manifest={"settings": {"verify": "none"}})
    page = render_report(report)
    assert "Nothing was measured: fingerprints alone decided." in page
    assert "differ in at most <strong>45</strong> bits" in page
    for words in ("pairs up to 45 were measured", "were measured on the real text", "Pairs by similarity"):
        assert words not in page
        assert words in render_report(report_of("x", **facts))


def test_what_goes_is_struck_through_and_what_stays_is_not() -> None:
    keeper, other = (
        Side("stays", "the old house was sold to a painter"),
        Side("goes", "the old house was sold to a writer"),
    )
    pair = PairView(keeper, other, 5, 0.9, figures(0.9, 0.8), True, "revision")
    no = replace(pair, accepted=False, reason="too different")
    page = render_report(Report(summary={"documents": 2, "removed": 1}, borderline=[pair]))
    assert "<del>writer</del>" in page
    assert "<ins>painter</ins>" in page
    page = render_report(Report(summary={"documents": 2, "removed": 0}, borderline=[no]))
    assert "<mark>writer</mark>" in page
    assert "<mark>painter</mark>" in page
    assert "<del>" not in page
    page = render_report(Report(summary={"documents": 2, "removed": 2, "keep": "none"}, borderline=[pair]))
    assert "<del>writer</del>" in page
    assert "<del>painter</del>" in page


def test_reasons_to_accept_come_before_those_to_reject() -> None:
    reasons = {"shares mostly common text": (0, 308_683), "revision": (12, 3), "identical text": (40, 0)}
    page = render_report(Report(summary={"documents": 9, "removed": 5, "reasons": reasons}))
    said = [
        page.index(words)
        for words in ("Pairs accepted", "identical text", ">revision<", "Pairs rejected", "mostly common")
    ]
    assert said == sorted(said)


def test_members_with_the_same_text_are_shown_once() -> None:
    keeper = Side("k", "the old house was sold to a painter")
    pairs = [
        PairView(
            keeper,
            Side(f"m{at}", "the old house was sold to a writer"),
            5,
            0.9,
            figures(0.9, 0.8),
            True,
            "revision",
        )
        for at in range(4)
    ]
    page = render_report(
        Report(summary={"documents": 7, "removed": 6}, clusters=[ClusterView(keeper, pairs, 7)])
    )
    assert page.count("<del>writer</del>") == 1
    assert "and 3 more with the same text" in page
    assert "2 more members are not shown" in page


def test_accepted_pairs_left_of_the_threshold_are_explained() -> None:
    rows = [(0.6, 0.7, 3, 9), (0.7, 0.8, 1, 0), (0.8, 0.9, 5, 0)]
    page = render_report(Report(summary={"documents": 9, "removed": 5, "similarity": 0.8}, similarities=rows))
    assert "4 accepted pairs lie left of the threshold" in page
    page = render_report(Report(summary={"documents": 9, "removed": 5, "similarity": 0.6}, similarities=rows))
    assert "left of the threshold" not in page
