"""What a program holds comes back as what it was: the same kind of object, rows, order and columns."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import neardup as nd
from neardup.errors import InvalidType, InvalidValue, RefusedInput
from neardup.guards import Limits
from neardup.sources.memory import set_aside
from neardup.types import Document

OPEN = Limits(max_loss=None, max_cluster=None, max_same=None)
COUNT = 30
TEXTS = [
    f"Number {at // 2} of the texts, in which nothing is like any other: {'abcdefghijklmno'[at // 2] * 7} {at // 2 * 77}"
    for at in range(COUNT)
]
IDS = [f"http://x/{at}" for at in range(COUNT)]  # "0", "1", "10", ...: sorted they are in another order
COLUMNS = {"url": IDS, "text": TEXTS, "source": [at * 1.5 for at in range(COUNT)], "id": ["own"] * COUNT}
# Every second text is the one before it.
STAYS = [at % 2 == 0 for at in range(COUNT)]

FRAMES: dict[str, Callable[[], Any]] = {
    "pandas": lambda: pd.DataFrame(COLUMNS, index=range(100, 100 + COUNT)),
    "polars": lambda: pl.DataFrame(COLUMNS),
    "pyarrow": lambda: pa.table(COLUMNS),
    "record batch": lambda: pa.RecordBatch.from_pydict(COLUMNS),
    "rows": lambda: pa.table(COLUMNS).to_pylist(),
}


def rows_of(data: Any) -> list[dict[str, Any]]:
    if isinstance(data, pd.DataFrame):
        return data.to_dict("records")
    if isinstance(data, pl.DataFrame):
        return data.to_dicts()
    return data if isinstance(data, list) else data.to_pylist()


@pytest.mark.parametrize("kind", FRAMES)
def test_what_is_kept_is_the_users_own_table(kind: str) -> None:
    data = FRAMES[kind]()
    result = nd.dedupe(data, id_field="url", keep="first", guards=OPEN)
    assert type(result.kept) is type(data)
    assert rows_of(result.kept) == [row for row, stays in zip(rows_of(data), STAYS, strict=True) if stays]
    assert result.keep_mask.tolist() == STAYS
    assert result.annotations.column("id").to_pylist() == IDS
    assert result.annotations.column("keep").to_pylist() == STAYS
    if isinstance(data, pd.DataFrame):
        assert result.kept.index.tolist() == data.index[STAYS].tolist()
        assert result.kept.dtypes.equals(data.dtypes)


@pytest.mark.parametrize("kind", FRAMES)
def test_a_table_gets_its_annotations_as_columns(kind: str) -> None:
    data = FRAMES[kind]()
    result = nd.dedupe(data, id_field="url", keep="first", guards=OPEN)
    for found in (result.annotate(), result.annotate(data)):
        assert isinstance(found, type(data)) or kind == "record batch"
        rows = rows_of(found)
        assert [{name: row[name] for name in COLUMNS} for row in rows] == rows_of(data)
        assert [row["keep"] for row in rows] == STAYS
        assert [row["cluster"] for row in rows] == [IDS[at // 2 * 2] for at in range(COUNT)]
        gone = [row["duplicate_of"] for row, stays in zip(rows, STAYS, strict=True) if not stays]
        assert gone == IDS[::2]
    if isinstance(data, pd.DataFrame):
        assert result.annotate(data[::-1])["keep"].tolist() == STAYS[::-1]
        assert result.annotate(data[::-1]).index.tolist() == data.index[::-1].tolist()


def test_annotations_are_found_by_id_and_text_never_by_position() -> None:
    data = pa.table({"id": ["a", "b", "c"], "text": ["one text", "one text", "quite another one"]})
    result = nd.dedupe(data, guards=OPEN)
    assert result.annotate(data.take([2, 0])).column("cluster").to_pylist() == ["c", "a"]
    with pytest.raises(InvalidValue, match="document 'z' was not among those"):
        result.annotate([{"id": "z", "text": "one text"}])
    with pytest.raises(InvalidValue, match="document 'a' does not have the text"):
        result.annotate([{"id": "a", "text": "other text"}])
    numbered = nd.dedupe(["one text", "two texts"], guards=OPEN)
    with pytest.raises(InvalidValue, match="document '0' does not have the text"):
        numbered.annotate(["two texts", "one text"])


def test_a_column_of_the_users_is_never_replaced() -> None:
    data = pa.table({"id": ["a"], "text": ["one text"], "cluster": [7]})
    result = nd.dedupe(data)
    with pytest.raises(InvalidValue, match="a column 'cluster' of its own"):
        result.annotate()
    found = result.annotate(prefix="nd_")
    assert found.column_names == [
        "id",
        "text",
        "cluster",
        "nd_cluster",
        "nd_keep",
        "nd_duplicate_of",
        "nd_similarity",
    ]


def test_bad_records_have_no_annotation_and_are_not_kept() -> None:
    data = pd.DataFrame({"id": ["a", "b", "a", "c"], "text": ["one text", None, "other", "more text"]})
    result = nd.dedupe(data)
    assert len(result.bad) == 2
    assert result.kept["id"].tolist() == ["a", "c"]
    found = result.annotate()
    assert found["keep"].dtype == "boolean"
    assert found["keep"].isna().tolist() == [False, True, True, False]
    assert found["keep"].sum() == 2
    assert found["text"].tolist()[2] == "other"


COLUMN_KINDS: dict[str, Callable[[], Any]] = {
    "list": lambda: list(TEXTS),
    "tuple": lambda: tuple(TEXTS),
    "pandas": lambda: pd.Series(TEXTS, index=range(7, 7 + COUNT)),
    "polars": lambda: pl.Series("body", TEXTS),
    "array": lambda: pa.array(TEXTS),
    "chunks": lambda: pa.chunked_array([TEXTS[:3], TEXTS[3:]]),
    "numpy": lambda: np.array(TEXTS, dtype=object),
}


@pytest.mark.parametrize("kind", COLUMN_KINDS)
def test_a_column_of_texts_comes_back_as_one(kind: str) -> None:
    data = COLUMN_KINDS[kind]()
    result = nd.dedupe(data, keep="first", guards=OPEN)
    assert type(result.kept) is type(data)
    kept = result.kept.to_pylist() if hasattr(result.kept, "to_pylist") else list(result.kept)
    assert kept == TEXTS[::2]
    found = rows_of(result.annotate())
    assert [row["keep"] for row in found] == STAYS
    name = "body" if kind == "polars" else "text"
    assert [row[name] for row in found] == TEXTS


def test_iterables_come_back_as_lists() -> None:
    for data in (iter(TEXTS), (text for text in TEXTS), dict.fromkeys(TEXTS).keys()):
        kept = nd.dedupe(data, keep="first", guards=OPEN).kept
        assert kept == TEXTS[::2]
    assert nd.dedupe([]).kept == []
    pairs = nd.dedupe(list(zip(IDS, TEXTS, strict=True)), keep="first", guards=OPEN)
    assert pairs.kept == list(zip(IDS, TEXTS, strict=True))[::2]
    assert pairs.annotate()[0] == {
        "id": IDS[0],
        "text": TEXTS[0],
        "cluster": IDS[0],
        "keep": True,
        "duplicate_of": None,
        "similarity": None,
    }


def test_a_list_of_texts_is_a_list_of_texts_and_names_of_files_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for texts in (
        ["one", "two words", ""],
        ["東京の天気", "大阪の天気"],
        ["x y", "please see report.txt"],
        ["a\nb"],
    ):
        assert nd.dedupe(texts).summary["documents"] == len(texts)
    Path("a.txt").write_text("some text")
    Path("one").write_text("another text")
    assert nd.dedupe(["a.txt", "one"]).annotations.column("id").to_pylist() == ["a.txt", "one"]
    assert nd.dedupe(["one", "two words"]).annotations.column("id").to_pylist() == ["0", "1"]
    typos = (
        ["a.txt", "b.txt"],
        ["nosuch.jsonl"],
        ["x.jpg", "y.jpg"],
        ["one", "two"],
        ["./one", "./two"],
        ["My Own/b.txt"],
    )
    for typo in typos:
        with pytest.raises(RefusedInput, match="cannot be read"):
            nd.dedupe(typo)
        with pytest.raises(RefusedInput, match="cannot be read"):
            nd.dedupe(["some text"], protect=typo)


def test_what_is_kept_is_never_of_other_rows_than_were_compared() -> None:
    data = pd.DataFrame({"id": ["a", "b", "c"], "text": ["z text", "one text", "one text"]})
    result = nd.dedupe(data, keep="first", guards=OPEN)
    data.loc[1, "id"] = "new"
    del data["text"]
    assert result.kept["id"].tolist() == ["a", "b"]
    assert result.annotate()["keep"].tolist() == [True, True, False]
    rows = [{"id": "a", "text": "z text"}, {"id": "b", "text": "one text"}]
    for change in (rows.reverse, rows.pop, lambda: rows[0].update(text="new")):
        result = nd.dedupe(rows)
        change()
        with pytest.raises(RefusedInput, match="changed while it was read"):
            _ = result.kept


def test_a_column_that_nobody_reads_may_hold_anything() -> None:
    data = pd.DataFrame(
        {"id": ["a", "b"], "text": ["one text", "two texts"], "odd": [1, "x"], 7: [object(), None]}
    )
    result = nd.dedupe(data)
    assert result.kept.equals(data)
    assert result.annotate().columns.tolist() == [
        "id",
        "text",
        "odd",
        7,
        "cluster",
        "keep",
        "duplicate_of",
        "similarity",
    ]
    twice = pd.concat([data, data[["odd"]]], axis=1)
    assert nd.dedupe(twice).kept.shape == (2, 5)
    with pytest.raises(RefusedInput, match="has no column 'text'; columns: 'id', 'odd'"):
        nd.dedupe(data[["id", "odd"]])


class Frame(pd.DataFrame):
    """As geopandas and others have."""


def test_other_kinds_keep_their_kind() -> None:
    result = nd.dedupe(Frame({"text": ["one text", "two texts"]}))
    assert isinstance(result.kept, pd.DataFrame)
    assert isinstance(result.annotate(), pd.DataFrame)
    batch = pa.RecordBatch.from_pydict({"text": ["one text", "two texts"]})
    assert isinstance(nd.dedupe(batch).annotate(), pa.RecordBatch)
    with pytest.raises(InvalidType, match=r"LazyFrame; call collect\(\) first"):
        nd.dedupe(pl.LazyFrame({"text": ["one text"]}))


@pytest.mark.parametrize(
    "data",
    [
        pd.Series(["one text"], name="keep"),
        pl.Series("keep", ["one text"]),
        [{"text": "one text"}, {"text": "two texts", "keep": "mine"}],
        [Document("a", "one text", {"keep": "mine"})],
    ],
)
def test_a_name_that_a_record_has_is_never_replaced(data: Any) -> None:
    with pytest.raises(InvalidValue, match="'keep' of its own"):
        nd.dedupe(data).annotate()


def test_a_null_text_in_a_table_of_views_is_one_bad_record() -> None:
    frame = pl.DataFrame(
        {"id": ["a", "b", "c"], "text": ["one two three", None, "four five six"], "n": [1, 2, 3]}
    )
    result = nd.dedupe(frame, keep="max:n")
    assert result.kept["id"].to_list() == ["a", "c"]
    assert [bad.reason for bad in result.bad] == ["its text is null"]


def test_data_without_the_text_is_not_annotated_with_nothing() -> None:
    result = nd.dedupe(
        pa.table({"id": ["a"], "text": ["one text"], "day": ["2024-01-01"]}), keep="newest:day"
    )
    with pytest.raises(RefusedInput, match="has no column 'text'"):
        result.annotate(pa.table({"id": ["a"]}))
    assert result.annotate(pa.table({"id": ["a"], "text": ["one text"]})).column("keep").to_pylist() == [True]


def test_a_stream_may_change_its_schema_and_its_dictionaries() -> None:
    first = pa.record_batch({"id": ["a"], "text": ["one text"], "kind": pa.array(["x"]).dictionary_encode()})
    second = pa.record_batch(
        {"id": ["b"], "text": ["two texts"], "kind": pa.array(["y"]).dictionary_encode()}
    )
    result = nd.dedupe(pa.RecordBatchReader.from_batches(first.schema, iter([first, second])))
    assert result.kept.column("kind").to_pylist() == ["x", "y"]
    parts = [pa.table({"text": [f"text {at}"], "n": pa.array([None if at % 2 else at])}) for at in range(300)]
    whole = set_aside(batch for part in parts for batch in part.to_batches())
    assert whole.column("n").to_pylist() == [None if at % 2 else at for at in range(300)]
    assert nd.dedupe(pa.RecordBatchReader.from_batches(first.schema, iter([]))).kept.num_rows == 0


def test_files_are_kept_as_a_table_and_cannot_be_annotated(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"id": "b", "text": "one text"}\n{"id": "a", "text": "another one"}\n')
    result = nd.dedupe(tmp_path / "a.jsonl")
    assert result.kept.to_pydict() == {"id": ["b", "a"], "text": ["one text", "another one"]}
    with pytest.raises(InvalidType, match="files cannot be annotated"):
        result.annotate()
    table = pa.table({"id": ["a", "b"], "text": ["another one", "one text"]})
    assert result.annotate(table).column("keep").to_pylist() == [True, True]


def test_a_data_set_comes_back_with_its_features() -> None:
    datasets = pytest.importorskip("datasets")
    features = datasets.Features(
        {name: datasets.Value("string") for name in ("url", "text")}
        | {"kind": datasets.ClassLabel(names=["a", "b"])}
    )
    data = datasets.Dataset.from_dict(
        {"url": IDS, "text": TEXTS, "kind": [0, 1] * (COUNT // 2)}, features=features
    )
    for given in (data, data.to_iterable_dataset()):
        result = nd.dedupe(given, id_field="url", keep="first", guards=OPEN)
        assert isinstance(result.kept, datasets.Dataset)
        assert result.kept.features == features
        assert result.kept["url"][:] == IDS[::2]
        assert result.annotate()["keep"][:] == STAYS


def test_a_streamed_data_set_is_read_once() -> None:
    datasets = pytest.importorskip("datasets")
    times = []

    def rows() -> Any:
        times.append(1)
        for id, text in zip(IDS, TEXTS, strict=True):
            yield {"id": id, "text": text}

    result = nd.dedupe(datasets.IterableDataset.from_generator(rows), keep="first", guards=OPEN)
    assert result.kept["id"][:] == IDS[::2]
    assert len(times) == 1
