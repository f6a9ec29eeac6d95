"""Contents are rows of a table: what holds for each of them."""

from __future__ import annotations

import pytest

import neardup as nd
from neardup.contents import CONTENTS, TEXT, Content, content_for, content_of, content_of_run
from neardup.errors import InvalidValue
from neardup.settings import Settings

IMAGE = CONTENTS.part("image")
ROWS = [CONTENTS.part(name) for name in CONTENTS]


@pytest.mark.parametrize("keep", ["resolution", "longest,size"])
def test_a_keep_rule_for_images_is_refused_for_texts(keep: str) -> None:
    IMAGE.check(Settings(keep=keep), nd.scheme("image"))
    with pytest.raises(InvalidValue, match="is for images"):
        TEXT.check(Settings(keep=keep), None)


def test_images_are_verified_as_images() -> None:
    with pytest.raises(InvalidValue, match="jaccard"):
        IMAGE.check(Settings(verify="jaccard:0.5"), nd.scheme("image"))


def test_a_scheme_and_a_manifest_say_which_content_there_is() -> None:
    assert content_of(None) == content_of(nd.scheme("text")) == TEXT
    assert content_of(nd.scheme("image")) == content_of(nd.scheme("phash:64")) == IMAGE
    assert content_of_run({"content": "image"}) == IMAGE
    assert content_of_run({"scheme": {"features": "picture"}}) == IMAGE  # of a run before contents had names
    assert content_of_run({"content": "smell"}) == content_of_run({}) == TEXT


def test_what_is_said_goes_before_what_names_show() -> None:
    assert content_for(["a.png", "b.png"], format="jsonl") == TEXT
    assert content_for([], format="image") == content_for([], scheme="image") == IMAGE
    assert content_for([{"id": "a", "text": "x"}]) == TEXT


@pytest.mark.parametrize("row", ROWS, ids=lambda row: str(row.name))
def test_a_row_is_whole(row: Content) -> None:
    assert CONTENTS.part(row.name) == row
    assert Settings(**row.defaults)
    assert row.figures[0] == "similarity"
    assert set(row.said) == set(row.figures[1:])
    assert len(set(row.reasons)) == len(row.reasons) <= 250
    assert row.doubtful is None or row.doubtful in row.reasons
    assert row.scheme_for(10).fingerprints([]).bits == row.scheme_for(10).bits
