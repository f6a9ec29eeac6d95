"""Run directories for tests, made by hand: what they hold is known."""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import neardup as nd
from neardup.runs import COLUMNS, sealed

TYPES = {"keep": pa.bool_(), "accepted": pa.bool_(), "distance": pa.int32(), "radius": pa.int32()}
TYPES |= dict.fromkeys(("similarity", "common", "rare"), pa.float64())


def schema_of(name: str) -> pa.Schema:
    """The schema of a file of a run."""
    return pa.schema([(column, TYPES.get(column, pa.string())) for column in COLUMNS[name]])


def make_run(
    folder: Path,
    inputs: list[str],
    keepers: dict[str, str | None],
    *,
    rejected: tuple[tuple[str, str], ...] = (),
    similarity: float = 0.9,
    rule: str = "revision",
    unproved: tuple[str, ...] = (),
    protected: tuple[str, ...] = (),
    **settings: Any,
) -> Path:
    """A run over *inputs*; *keepers* gives for each id its keeper, None where it stays."""
    folder.mkdir(parents=True)
    scheme = nd.scheme("text")
    rows = []
    proofs = []
    for id, keeper in sorted(keepers.items()):
        far = None if keeper is None else (5, similarity)
        rows.append([id, keeper or id, keeper is None, keeper, *(far or (None, None))])
        if keeper is not None and id not in unproved:
            proofs.append([keeper, id, 5, similarity, 0.8, 0.7, True, rule, scheme.digest, 42])
    for keeper, id in rejected:
        proofs.append([keeper, id, 40, 0.5, 0.1, 0.0, False, "too different", scheme.digest, 42])
    _write(folder / "annotations.parquet", rows)
    _write(folder / "evidence.parquet", sorted(proofs))
    manifest = {
        "neardup": nd.__version__,
        "scheme": {**scheme.facts(), "digest": scheme.digest},
        "settings": {"text_field": "text", "similarity": 0.8, "keep": "longest", **settings},
        "inputs": [input_row(path) for path in inputs],
        "protected": [input_row(path) for path in protected],
        "outputs": [output_row(folder / name) for name in ("annotations.parquet", "evidence.parquet")],
        "counts": {"documents": len(rows)},
    }
    text = json.dumps(sealed(manifest), ensure_ascii=False)
    (folder / "manifest.json").write_bytes(text.encode("utf-8", "surrogatepass"))
    return folder


def input_row(path: str) -> dict[str, Any]:
    """What a manifest says of an input."""
    status = os.stat(path)
    data = Path(path).read_bytes()
    return {
        "name": path,
        "bytes": status.st_size,
        "sha256": hashlib.sha256(data).hexdigest(),
        "modified": status.st_mtime_ns,
    }


def output_row(path: Path) -> dict[str, Any]:
    """What a manifest says of an output."""
    return {
        "name": path.name,
        "bytes": path.stat().st_size,
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
    }


def _write(path: Path, rows: list[list[Any]]) -> None:
    schema = schema_of(path.name)
    columns = list(map(list, zip(*rows, strict=True))) if rows else [[] for _ in schema]
    arrays = [pa.array(column, item.type) for column, item in zip(columns, schema, strict=True)]
    pq.write_table(pa.Table.from_arrays(arrays, schema=schema), path)
