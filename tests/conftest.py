"""What many tests share: texts of many scripts, in small pieces that tend to meet again."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
import unicodedata
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

GOLDEN = Path(__file__).parent / "golden"

# Shared machines stall: a slow example is not a wrong one.
settings.register_profile("neardup", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("neardup")

# The key of the user's seals is one for all tests, also for those in other processes, and not the user's.
os.environ["NEARDUP_STATE"] = tempfile.mkdtemp(prefix="neardup-state-")
atexit.register(shutil.rmtree, os.environ["NEARDUP_STATE"], ignore_errors=True)

# Pieces that touch every rule: case, marks, widths, CJK, format characters, sigma, surrogate pairs.
PIECES = [
    "the quick brown fox", "Hello", "a", " ", "  ", "\n", ",", "...", "_", "42", "e\u0301", "é", "\u00ad", "\u200b",
    "ＡＢＣ", "①", "ﬁ", "İ", "ΣΑΣ", "Σ", "привет", "мир", "漢字", "日本", "ひらがな", "한국어", "ｶﾞ", "ไทย", "हिन्दी", "عربى",
    "\u0301", "❤\ufe0f", "👍🏽", "𠮷", "\u212a", "x" * 9, "y" * 17, "z" * 70, "…", "\u00a0", "q\u0323\u0307", "\0",
]  # fmt: skip

known_letters = st.characters(codec="utf-8").filter(lambda letter: unicodedata.category(letter) != "Cn")
texts = st.one_of(
    st.lists(st.sampled_from(PIECES), max_size=30).map("".join),
    st.text(known_letters, max_size=40),
    st.text("abc ", max_size=300),
)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--golden", default=GOLDEN, type=Path, metavar="DIR", help="run the golden files of another directory"
    )


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Images are remembered in a folder of the test, not of the user."""
    monkeypatch.setenv("NEARDUP_CACHE", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """A folder of images (`scenes.make_library`)."""
    from .scenes import make_library

    return make_library(tmp_path / "Images")
