"""Optional packages: each is told apart as missing, or as there and broken, and the command is named."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import neardup

ROOT = Path(neardup.__file__).parent.parent

WARC = (
    "b'WARC/1.1\\r\\nWARC-Type: response\\r\\nWARC-Target-URI: http://a/\\r\\nContent-Type: application/http\\r\\n'"
    "b'Content-Length: 2\\r\\n\\r\\nxx\\r\\n\\r\\n'"
)
HEIC = "b'\\0\\0\\0\\x18ftypheic\\0\\0\\0\\0mif1heic' + bytes(100)"
# An extra, the module it brings, and a program that needs it.
NEEDS = {
    "html": ("resiliparse", "from neardup.sources.html import main_text; main_text(b'<p>x')"),
    "warc": (
        "fastwarc",
        f"open('a.warc', 'wb').write({WARC}); from neardup.sources import open_source; list(open_source('a.warc'))",
    ),
    "remote": ("fsspec", "from neardup.sources import open_source; list(open_source('memory://a.jsonl'))"),
    "zh": (
        "rjieba",
        "open('a.txt', 'w', encoding='utf-8').write('\\u4f60\\u597d'); from neardup.compat.qyoki import CorpusReader;"
        "CorpusReader().read_corpus_from_path('a.txt')",
    ),
    "heic": ("pillow_heif", f"from neardup.images.thumbs import decode; decode({HEIC})"),
}


def last_line(folder: Path, program: str) -> str:
    path = os.pathsep.join([str(folder), str(ROOT)])
    run = subprocess.run(
        [sys.executable, "-c", program],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 1, run.stdout + run.stderr
    return run.stderr.strip().splitlines()[-1]


@pytest.mark.parametrize("extra", NEEDS)
def test_a_package_that_is_not_there_is_named_with_the_command(extra: str, tmp_path: Path) -> None:
    package, program = NEEDS[extra]
    told = last_line(tmp_path, f"import sys; sys.modules[{package!r}] = None; {program}")
    assert f"needs {package}; install it: pip install 'neardup[{extra}]'" in told


@pytest.mark.parametrize("extra", NEEDS)
def test_a_package_that_is_there_and_broken_is_not_called_missing(extra: str, tmp_path: Path) -> None:
    package, program = NEEDS[extra]
    (tmp_path / package).mkdir()
    (tmp_path / package / "__init__.py").write_text("raise ImportError('libx.so.7:\\n no such file')\n")
    told = last_line(tmp_path, program)
    assert f"needs {package}; it is installed but cannot be imported: libx.so.7: no such file;" in told
    assert f"pip install --upgrade 'neardup[{extra}]'" in told
