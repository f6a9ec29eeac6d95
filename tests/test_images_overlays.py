"""One image laid upon the other, and what differs then."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from PIL import ImageDraw

from neardup.adapters.cli import run

from .scenes import in_frame, saved, scene


def test_the_share_of_blocks_that_agree_is_that_of_the_map_shown(
    library: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    changed = scene(1)
    ImageDraw.Draw(changed).rectangle((200, 20, 319, 150), fill="white")
    for other in (changed, scene(3), in_frame(changed, ("white", 0.1)), changed.crop((40, 20, 320, 240))):
        path = saved(other, tmp_path / "other.png")
        capsys.readouterr()
        assert run(["explain", str(library / "1.png"), str(path), "--json"]) == 0
        told = json.loads(capsys.readouterr().out)
        same, differ = (sum(row.count(mark) for row in told["differs"]) for mark in ".#")
        assert told["agree"] == pytest.approx(same / max(1, same + differ))
        assert [len(row) for row in told["differs"]] == [8] * 8
