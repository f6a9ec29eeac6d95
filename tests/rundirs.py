"""Run directories for tests, made by hand: what they hold is known."""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import neardup as nd
from neardup.contents import CONTENTS, TEXT
from neardup.results import ANNOTATIONS, evidence_schema
from neardup.runs import sealed


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
    _write(folder / "annotations.parquet", rows, ANNOTATIONS)
    content = CONTENTS.part("image" if settings.get("format") == "image" else "text")
    for proof in proofs if content.mapped else ():
        proof.append(None)
    _write(folder / "evidence.parquet", sorted(proofs), evidence_schema(content))
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


def figures(weighted: float, rare: float) -> list[tuple[str, float]]:
    """What is measured of two texts beside their similarity, as a report takes it."""
    return [(TEXT.said["weighted"], weighted), (TEXT.said["rare"], rare)]


def as_format_1(folder: Path, names: dict[str, str]) -> None:
    """Make a run what it was in format 1: *names* are columns of the evidence and what they were called."""
    path, manifest = folder / "evidence.parquet", folder / "manifest.json"
    table = pq.read_table(path)
    pq.write_table(table.rename_columns([names.get(name, name) for name in table.column_names]), path)
    facts = {**json.loads(manifest.read_bytes()), "format": 1}
    facts["outputs"] = [row for row in facts["outputs"] if row["name"] != path.name] + [output_row(path)]
    manifest.write_text(json.dumps(sealed(facts)))


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


def _write(path: Path, rows: list[list[Any]], schema: pa.Schema) -> None:
    columns = list(map(list, zip(*rows, strict=True))) if rows else [[] for _ in schema]
    arrays = [pa.array(column, item.type) for column, item in zip(columns, schema, strict=True)]
    pq.write_table(pa.Table.from_arrays(arrays, schema=schema), path)


TEXTS = {
    "a": "the old house by the sea was sold to a painter in the spring of that year",
    "b": "the old house by the sea was sold to a writer in the spring of that year",
    "c": "quite another text about bridges, rivers and the men who built them",
}


def lay_out(folder: Path) -> str:
    """The texts as a file; its name."""
    lines = [json.dumps({"id": id, "text": text, "n": 1}) for id, text in TEXTS.items()]
    (folder / "corpus.jsonl").write_text("\n".join(lines) + "\n")
    return "corpus.jsonl"
