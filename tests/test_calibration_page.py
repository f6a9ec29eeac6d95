"""The page of a calibration: one file that needs nothing but itself."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

from neardup.adapters.cli import run

from .corpus import collection, write_jsonl


class Page(HTMLParser):
    """Collects what a page must not have: scripts, styles of elements, addresses."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, str | None]] = []
        self.policy: str | None = ""

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        names = dict(attributes)
        if tag == "meta" and names.get("http-equiv") == "Content-Security-Policy":
            self.policy = names["content"]
        self.found += [(tag, name) for name in names if name == "style" or name.startswith("on")]
        self.found += [
            (tag, value)
            for name, value in attributes
            if name in ("src", "href") and str(value)[:1] not in "#d"
        ]
        if tag in ("script", "iframe", "object"):
            self.found.append((tag, ""))


def test_the_page_needs_nothing_but_itself(tmp_path: Path) -> None:
    page = tmp_path / "cal.html"
    corpus = write_jsonl(tmp_path / "a.jsonl", collection(60))
    arguments = ["calibrate", str(corpus), "--copies", "60", "--quiet", "--report", str(page)]
    assert run(arguments) == 0
    text = page.read_text()
    seen = Page()
    seen.feed(text)
    assert seen.found == []
    assert "default-src 'none'" in (seen.policy or "")
    assert text.count("<polyline") >= 3
    assert run(arguments) == 2  # it exists
    assert run([*arguments, "--overwrite"]) == 0
    assert page.read_text() == text
