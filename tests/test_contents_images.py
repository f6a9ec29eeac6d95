"""neardup dedupe over a folder of images: from files to what stays."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from PIL import Image

import neardup as nd
from neardup.adapters.cli import run
from neardup.images import comparisons, overlays, proposals, views
from neardup.runs import Run
from neardup.sources import images, mostly_images

from .killed import Killer
from .scenes import dedupe, in_frame, print_of, rows_of, saved, scene


def test_a_framed_copy_does_not_win_by_its_border(tmp_path: Path) -> None:
    for seed in range(3):
        saved(scene(seed), tmp_path / f"{seed}.png")
        saved(in_frame(scene(seed), ("white", 0.1)), tmp_path / f"{seed}-framed.png")
    dedupe(tmp_path, tmp_path / "out", "--keep", "resolution", "--no-guards")
    kept = {os.path.basename(row["id"]) for row in rows_of(tmp_path / "out") if row["keep"]}
    assert kept == {"0.png", "1.png", "2.png"}


def test_a_larger_image_wins_with_its_border(tmp_path: Path) -> None:
    saved(scene(1), tmp_path / "small.png")
    saved(in_frame(scene(1).resize((640, 480)), ("white", 0.1)), tmp_path / "framed.png")
    dedupe(tmp_path, tmp_path / "out", "--keep", "resolution", "--no-guards")
    assert [os.path.basename(row["id"]) for row in rows_of(tmp_path / "out") if row["keep"]] == ["framed.png"]


def test_the_keep_rules_of_images(library: Path, tmp_path: Path) -> None:
    dedupe(library, tmp_path / "a", "--keep", "resolution")
    assert {os.path.basename(row["id"]) for row in rows_of(tmp_path / "a") if not row["keep"]} >= {
        "small.jpg"
    }
    dedupe(library, tmp_path / "b", "--keep", f"path:{library}/sub")
    gone = {os.path.basename(row["id"]) for row in rows_of(tmp_path / "b") if not row["keep"]}
    assert gone == {"0.png", "1.png", "2.png"}


def test_the_oldest_by_exif_stays(tmp_path: Path) -> None:
    for name, year in (("a.jpg", 2020), ("b.jpg", 2010), ("c.jpg", None)):
        notes = Image.Exif()
        if year:
            notes[0x0132] = f"{year}:05:01 12:00:00"
        saved(scene(1), tmp_path / name, quality=90 if name == "a.jpg" else 80, exif=notes)
    dedupe(tmp_path, tmp_path / "out", "--keep", "oldest:exif", "--no-guards")
    assert [os.path.basename(row["id"]) for row in rows_of(tmp_path / "out") if row["keep"]] == ["b.jpg"]


def test_protected_images_stay_and_new_ones_go(library: Path, tmp_path: Path) -> None:
    new = tmp_path / "new"
    new.mkdir()
    saved(scene(3).resize((400, 300)), new / "again.jpg")
    saved(scene(50), new / "fresh.jpg")
    dedupe(new, tmp_path / "out", "--protect", str(library))
    assert {os.path.basename(row["id"]): row["keep"] for row in rows_of(tmp_path / "out")} == {
        "again.jpg": False,
        "fresh.jpg": True,
    }


def test_a_second_run_decodes_nothing(library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dedupe(library, tmp_path / "one")
    monkeypatch.setattr(images, "decode", lambda *_, **__: pytest.fail("decoded again"))
    dedupe(library, tmp_path / "two")
    assert rows_of(tmp_path / "one") == rows_of(tmp_path / "two")


def test_a_run_records_which_images_were_decoded_at_a_reduced_scale(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    saved(scene(1, (2000, 1500)), tmp_path / "in/large.jpg")
    saved(scene(2), tmp_path / "in/small.jpg")
    saved(scene(3, (2000, 1500)), tmp_path / "in/large.png")
    for name in ("first", "cached"):
        dedupe(tmp_path / "in", tmp_path / name)
        rows = json.loads((tmp_path / name / "manifest.json").read_text())["inputs"]
        told = {os.path.basename(row["name"]): row["reduced"] for row in rows}
        assert told == {"large.jpg": True, "small.jpg": False, "large.png": False}


def test_a_killed_run_goes_on_without_looking_for_candidates_again(
    library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def job(name: str) -> list[str]:
        return ["dedupe", str(library), "-o", str(tmp_path / name), "--quiet", "--no-guards"]

    with Killer() as killer:
        whole = killer.run(job("whole"))
        for step in range(whole.steps, 0, -1):
            for folder in (tmp_path / "killed", Path(images.cache_folder()) / "runs"):
                shutil.rmtree(folder, ignore_errors=True)
            assert killer.run(job("killed"), step=step).code == -9
            if (tmp_path / "killed/.neardup/candidates.arrow").exists():
                break
    monkeypatch.setattr(proposals, "propose", lambda *_, **__: pytest.fail("looked for again"))
    assert run(job("killed")) == whole.code == 3
    for name in ("annotations.parquet", "evidence.parquet", "quarantine.jsonl"):
        assert (tmp_path / "killed" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_a_second_run_compares_nothing_and_says_the_same(
    library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert dedupe(library, tmp_path / "one") == 3
    for module, name in ((proposals, "propose"), (comparisons, "agreements")):
        monkeypatch.setattr(module, name, lambda *_, **__: pytest.fail("compared again"))
    assert dedupe(library, tmp_path / "two") == 3
    for name in ("annotations.parquet", "evidence.parquet", "quarantine.jsonl", "kept.txt"):
        assert (tmp_path / "two" / name).read_bytes() == (tmp_path / "one" / name).read_bytes()
    one, two = (json.loads((tmp_path / name / "manifest.json").read_text()) for name in ("one", "two"))
    assert one["inputs"] == two["inputs"]
    assert one["counts"] == two["counts"]


def test_runs_that_are_remembered_are_not_many(
    library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("neardup.checkpoints.REMEMBERED", 2)
    for number in range(4):
        dedupe(library, tmp_path / str(number), "--similarity", f"0.8{number}")
    assert len(list((Path(images.cache_folder()) / "runs").iterdir())) == 2


def test_a_changed_file_is_decoded_again(library: Path, tmp_path: Path) -> None:
    dedupe(library, tmp_path / "one")
    saved(scene(77), library / "sub/small.jpg")
    dedupe(library, tmp_path / "two")
    kept = {os.path.basename(row["id"]) for row in rows_of(tmp_path / "two") if row["keep"]}
    assert {"small.jpg", "0.png"} <= kept


@pytest.mark.parametrize("action", ["--trash", "--hardlink", "--delete"])
def test_apply_and_undo_bring_images_back(library: Path, tmp_path: Path, action: str) -> None:
    def there() -> dict[Path, bytes]:
        return {path: path.read_bytes() for path in library.rglob("*") if path.is_file()}

    before = there()
    dedupe(library, tmp_path / "out", "--keep", "resolution,oldest:modified")
    asked = [
        "apply",
        str(tmp_path / "out"),
        action,
        *([str(tmp_path / "bin")] if action == "--trash" else []),
    ]
    assert run(asked) == 0
    assert there() == before  # a dry run
    assert run([*asked, "--yes", "--log", str(tmp_path / "log")]) == 0
    same = {library / "2.png", library / "sub/copy.png"}
    gone = before.keys() - there().keys()
    if action == "--hardlink":  # only what is the same byte for byte
        assert not gone
        assert len({path.stat().st_ino for path in same}) == 1
    else:
        assert len(gone) == 3
        assert len(gone & same) == 1
    assert run(["undo", str(tmp_path / "log")]) == (5 if action == "--delete" else 0)
    # Of what was deleted only a file whose keeper has the same bytes can be made again.
    lost = {path for path in gone if path not in same} if action == "--delete" else set()
    assert there() == {path: data for path, data in before.items() if path not in lost}
    assert len({path.stat().st_ino for path in same}) == 2


def test_images_are_fingerprinted_by_command(library: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("image", "phash:64"):
        assert run(["fingerprint", str(library), "--scheme", name]) == 3  # broken.jpg
        rows = {
            row["id"]: row["fingerprint"] for row in map(json.loads, capsys.readouterr().out.splitlines())
        }
        wanted = nd.format(print_of(library / "4.png", name), nd.scheme(name).bits)
        assert rows[str(library / "4.png")] == wanted
        assert len(rows) == 11


def test_a_folder_of_images_is_deduplicated(library: Path, tmp_path: Path) -> None:
    assert mostly_images(str(library))
    assert dedupe(library, tmp_path / "out", "--report", str(tmp_path / "out/report.html")) == 3
    gone = {os.path.relpath(row["id"], library): row for row in rows_of(tmp_path / "out") if not row["keep"]}
    assert set(gone) == {"sub/small.jpg", "sub/mirror.webp", "sub/copy.png"} or len(gone) == 3
    assert {os.path.basename(row["duplicate_of"]) for row in gone.values()} | {os.path.basename(name) for name in gone} == {
        "0.png", "small.jpg", "1.png", "mirror.webp", "2.png", "copy.png"
    }  # fmt: skip
    rules = {row["reason"] for row in rows_of(tmp_path / "out", "evidence") if row["accepted"]}
    assert rules == {"same image", "same image: mirror", "identical file"}
    assert "broken.jpg" in (tmp_path / "out/quarantine.jsonl").read_text()
    page = (tmp_path / "out/report.html").read_text()
    assert page.count("data:image/jpeg;base64,") >= 8
    assert page.count('class="overlay"') >= 3


def test_other_settings_and_other_files_are_compared_again(library: Path, tmp_path: Path) -> None:
    dedupe(library, tmp_path / "one")
    dedupe(library, tmp_path / "strict", "--verify", "strict")
    rules = {row["reason"] for row in rows_of(tmp_path / "strict", "evidence")}
    assert rules
    saved(scene(77), library / "1.png")
    dedupe(library, tmp_path / "two")
    assert sum(not row["keep"] for row in rows_of(tmp_path / "two")) == 2


@pytest.fixture
def found(tmp_path: Path) -> nd.Result:
    """A crop, in a name that sorts before the whole, and one in a frame."""
    saved(scene(1), tmp_path / "whole.png")
    saved(scene(1).crop((32, 24, 288, 216)), tmp_path / "a-crop.png")
    saved(in_frame(scene(2), ("white", 0.1)), tmp_path / "framed.png")
    saved(scene(2), tmp_path / "plain.png")
    (tmp_path / "copy.png").write_bytes((tmp_path / "plain.png").read_bytes())
    return nd.dedupe(str(tmp_path), guards=False)


def test_the_evidence_has_the_map_from_the_keeper_to_the_other(found: nd.Result) -> None:
    rows = {
        tuple(os.path.basename(row[side]) for side in ("keeper", "id")): row
        for row in found.evidence.to_pylist()
    }
    crop = rows["whole.png", "a-crop.png"]["map"]
    assert crop == pytest.approx([1.25, 0, -0.125, 0, 1.25, -0.125], abs=0.02)
    copy = next(row for row in rows.values() if row["reason"] == "identical file")
    assert copy["map"] == [1, 0, 0, 0, 1, 0]


def test_the_map_of_what_was_not_verified_is_not_known(library: Path) -> None:
    result = nd.dedupe(str(library), verify="none", guards=False)
    known = {row["reason"]: row["map"] for row in result.evidence.to_pylist()}
    assert known["fingerprint only, not verified"] is None


def test_the_page_draws_the_map_that_the_verification_found(
    found: nd.Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[list[float]] = []
    real = overlays.overlay

    def noted(left: Any, right: Any, map: Any) -> overlays.Overlay:
        drawn.append(map.tolist())
        return real(left, right, map)

    monkeypatch.setattr(overlays, "overlay", noted)
    monkeypatch.setattr(comparisons, "compare", lambda *_, **__: pytest.fail("looked for again"))
    found.report(tmp_path / "page.html")
    assert drawn
    assert all(map in found.evidence.column("map").to_pylist() for map in drawn)
    assert (tmp_path / "page.html").read_text().count('class="overlay"') == len(drawn)


def test_a_fingerprint_of_an_image_is_made_once(library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = 0
    real = views.fingerprints_of

    def counted(thumbs: Any, asked: Any, **options: Any) -> Any:
        nonlocal seen
        seen += len(thumbs) if list(asked) == [views.WHOLE] else 0
        return real(thumbs, asked, **options)

    for module in ("contents.images", "images.prints", "images.proposals"):
        monkeypatch.setattr(f"neardup.{module}.fingerprints_of", counted)
    result = nd.dedupe(str(library), guards=False)
    assert seen == result.summary["documents"]


def test_a_run_without_maps_can_still_be_read(library: Path, tmp_path: Path) -> None:
    dedupe(library, tmp_path / "out", "--no-guards")
    path = tmp_path / "out/evidence.parquet"
    pq.write_table(pq.read_table(path).drop_columns(["map"]), path)
    table = Run(tmp_path / "out").evidence
    assert table.column("map").null_count == len(table)
