"""neardup search: what is near to one image or text, in folders and in an index."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from PIL import ImageOps

import neardup as nd
from neardup.adapters.cli import run
from neardup.images import proposals
from neardup.search import search_images

from .corpus import words
from .scenes import collage, data_of, on_a_page, saved, scene


def test_search_finds_a_part_and_names_the_change(
    library: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    image = saved(ImageOps.mirror(scene(4)), tmp_path / "asked.jpg")
    assert run(["search", str(image), "--in", str(library)]) == 0
    line = capsys.readouterr().out.splitlines()[0].split("\t")
    assert line[2] == "same image: mirror"
    assert line[3].endswith("4.png")
    corner = data_of(scene(5).crop((0, 0, 170, 130)))
    assert [os.path.basename(one.id) for one in search_images(corner, str(library))] == ["5.png"]


def test_search_finds_a_image_on_a_page_and_the_page_of_a_image(library: Path, tmp_path: Path) -> None:
    page = data_of(on_a_page(scene(3)))
    assert [os.path.basename(one.id) for one in search_images(page, str(library))] == ["3.png"]
    (tmp_path / "pages").mkdir()
    (tmp_path / "pages/page.png").write_bytes(page)
    assert len(search_images(data_of(scene(3)), str(tmp_path / "pages"))) == 1


def test_what_an_index_names_is_said_to_be_unverified_where_it_cannot_be_read(
    library: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    index = str(tmp_path / "pics.index")
    run(["index", "build", index, str(library), "--scheme", "image"])
    image = saved(ImageOps.mirror(scene(4)), tmp_path / "asked.jpg")
    (library / "4.png").unlink()
    capsys.readouterr()
    assert run(["search", str(image), "--in", index]) == 0
    line = capsys.readouterr().out.splitlines()[0].split("\t")
    assert line[2:] == ["not verified: same image: mirror", str(library / "4.png")]


def test_an_image_added_again_replaces_what_the_index_held(
    library: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    index = str(tmp_path / "pics.index")
    run(["index", "build", index, str(library / "sub"), "--scheme", "image"])
    before = len(nd.Index.load(index))
    saved(scene(60), library / "sub/small.jpg")
    assert run(["index", "add", index, str(library / "sub"), "--scheme", "image"]) == 0
    assert len(nd.Index.load(index)) == before
    capsys.readouterr()
    assert run(["search", str(library / "sub/small.jpg"), "--in", index]) == 0
    assert capsys.readouterr().out.strip().endswith("small.jpg")


def test_an_index_holds_images_and_texts_alike(library: Path) -> None:
    paths = [library / f"{seed}.png" for seed in range(6)]
    scheme = nd.scheme("image")
    index = nd.Index(bits=256, radius=20)
    index.add([path.name for path in paths], scheme.fingerprints(paths))
    assert [id for _, id, _ in index.search(scheme.fingerprints([scene(0).resize((200, 150))]))] == ["0.png"]
    with pytest.raises(nd.NeardupError, match="scheme"):
        index.search(nd.scheme("text", bits=256).fingerprints(["no image"]))


def test_an_index_of_the_other_kind_is_an_error_with_a_way_out(
    library: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    index = str(tmp_path / "pics.index")
    run(["index", "build", index, str(library), "--scheme", "image"])
    capsys.readouterr()
    assert run(["search", "some text", "--in", index]) == 2
    assert "--scheme" in capsys.readouterr().err
    assert run(["search", "some text", "--in", index, "--scheme", "image"]) == 2
    assert "search it with an image" in capsys.readouterr().err


def test_the_searched_file_itself_is_an_identical_file(
    library: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("2.png", "flat.png"):  # of which one has a copy, and one shows nothing
        capsys.readouterr()
        assert run(["search", str(library / name), "--in", str(library), "--json"]) == 0
        found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        told = {
            os.path.basename(one["id"]): (one["distance"], one["similarity"], one["reason"]) for one in found
        }
        assert told == dict.fromkeys(
            {"2.png", "copy.png"} if name == "2.png" else {name}, (0, 1.0, "identical file")
        )
    assert run(["explain", str(library / "2.png"), str(library / "sub/copy.png")]) == 0
    assert "accepted: identical file" in capsys.readouterr().out


def test_search_of_a_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.txt").write_text("the quick brown fox jumps over the lazy dog by the river")
    (tmp_path / "b.txt").write_text("nothing of the kind is written in this other file at all")
    assert (
        run(["search", "the quick brown fox jumps over a lazy dog by the river", "--in", str(tmp_path)]) == 0
    )
    assert [line.rpartition("/")[2] for line in capsys.readouterr().out.splitlines()] == ["a.txt"]


def test_search_finds_no_sibling_that_a_run_would_keep(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    forms = []
    for number in range(7):
        form = words(1, 200)
        form[::10] = words(10 + number, 20)
        forms.append(" ".join(form))
    for number, text in enumerate(forms[1:]):
        (tmp_path / f"form-{number}.txt").write_text(text)
    (tmp_path / "copy.txt").write_text(f"{forms[0]} and more")
    (tmp_path / "other.txt").write_text(" ".join(words(99, 200)))
    names = {}
    for options in ([], ["--rejected"]):
        assert run(["search", forms[0], "--in", str(tmp_path), "--json", *options]) == 0
        lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        names[len(options)] = {os.path.basename(line["id"]): line["reason"] for line in lines}
        assert all(line["accepted"] == (line["reason"] == "nearly identical") for line in lines)
    assert names[0] == {"copy.txt": "nearly identical"}
    siblings = {f"form-{number}.txt": "same template, different content" for number in range(6)}
    assert names[1] == {**names[0], **siblings}


def test_an_index_of_images_is_searched(
    library: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    index = str(tmp_path / "pics.index")
    assert run(["index", "build", index, str(library), "--scheme", "image"]) == 3  # broken.jpg
    image = saved(ImageOps.mirror(scene(4)), tmp_path / "asked.jpg")
    capsys.readouterr()
    assert run(["search", str(image), "--in", index, "--json"]) == 0
    (match,) = map(json.loads, capsys.readouterr().out.splitlines())
    assert (match["id"], match["reason"]) == (str(library / "4.png"), "same image: mirror")
    assert match["verified"]
    assert match["similarity"] > 0.9
    around = collage(scene(5), scene(98))  # an image of the index is half of the one in question
    assert run(["search", str(saved(around, tmp_path / "around.png")), "--in", index]) == 0
    distance, _, rule, id = capsys.readouterr().out.split("\t")
    assert int(distance) <= proposals.RADIUS
    assert (rule, id.strip()) == ("same image: crop", str(library / "5.png"))


def test_an_index_of_texts_is_searched(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, index = tmp_path / "texts", str(tmp_path / "texts.index")
    folder.mkdir()
    (folder / "a.txt").write_text("the quick brown fox jumps over the lazy dog by the river")
    (folder / "b.txt").write_text("nothing of the kind is written in this other file at all")
    assert run(["index", "build", index, str(folder), "--scheme", "text"]) == 0
    question = "the quick brown fox jumps over a lazy dog by the river"
    capsys.readouterr()
    assert run(["search", question, "--in", index]) == 0
    assert capsys.readouterr().out.split("\t")[2:] == ["nearly identical", f"{folder}/a.txt\n"]
    (folder / "a.txt").unlink()
    assert run(["search", question, "--in", index]) == 0
    assert capsys.readouterr().out.split("\t")[2] == "not verified"
