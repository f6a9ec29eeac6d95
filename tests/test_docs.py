"""Every Python block of the README and of docs/ runs and shows what it says."""

from __future__ import annotations

import doctest
import os
import re
from pathlib import Path

import click
import pytest

from neardup.adapters.cli import COMMANDS, cli

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_shows_what_happens(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "__main__"}
    runner = doctest.DocTestRunner(optionflags=OPTIONS)
    text = page.read_text("utf-8")
    out: list[str] = []
    for block in BLOCK.finditer(text):
        line = text[: block.start(1)].count("\n")
        if ">>>" not in block[1]:
            exec(compile("\n" * line + block[1], str(page), "exec"), names)
            continue
        parsed = doctest.DocTestParser().get_doctest(block[1], names, page.name, str(page), line)
        parsed.globs = names  # one page is one session
        runner.run(parsed, out=out.append, clear_globs=False)
    assert not out, "".join(out)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text("utf-8")):
        assert os.path.exists(page.parent / target), f"{page.name} links to {target}"


def test_the_readme_lists_every_command_and_no_other() -> None:
    """In its table: "| `neardup fit`, `search` | what they do |"."""
    rows = re.findall(r"^\| (`neardup [^|]*) \|", (ROOT / "README.md").read_text("utf-8"), re.MULTILINE)
    named = [name.removeprefix("neardup ") for row in rows for name in re.findall(r"`([^`]+)`", row)]
    assert sorted(named) == sorted(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_part_of_a_command_is_in_the_docs(name: str) -> None:
    command = cli.get_command(click.Context(cli), name)
    parts = command.list_commands(click.Context(command)) if isinstance(command, click.Group) else []
    pages = "".join(page.read_text("utf-8") for page in PAGES)
    for part in parts:
        assert re.search(rf"`(neardup )?{name} {part}\b|^neardup {name} {part}\b", pages, re.MULTILINE), part
