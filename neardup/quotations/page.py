"""The page of what was found: one HTML file that needs nothing but itself, like the report of a run.

Ids and texts are hostile until shown otherwise; `report.render_page` escapes them and spells out what cannot
be seen.
"""

from __future__ import annotations

import os

from neardup.checks import check_flag
from neardup.files import atomic_file, check_path
from neardup.quotations.model import Leaks
from neardup.report import render_page


def render(found: Leaks) -> str:
    """The page as text."""
    return render_page("leaks.html", ("report.css", "leaks.css"), found=found, summary=found.summary)


def write_page(found: Leaks, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
    """Write the page; it appears only when it is complete."""
    page = render(found).encode()
    with atomic_file(check_path(path), overwrite=check_flag("overwrite", overwrite)) as file:
        file.write(page)
