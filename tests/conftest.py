from pathlib import Path

import pytest

GOLDEN = Path(__file__).parent / "golden"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--golden", default=GOLDEN, type=Path, metavar="DIR", help="run the golden files of another directory"
    )
