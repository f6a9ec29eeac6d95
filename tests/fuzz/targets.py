"""What is fuzzed. A target raises on anything but a documented answer, and compares where there are two ways."""

from __future__ import annotations

import hashlib
import io
import json
import os
import struct
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet as pq

import neardup as nd
from neardup import _native
from neardup.calibration import read_answers
from neardup.errors import NeardupError
from neardup.hashes import HASHES
from neardup.schemes import Scheme
from neardup.sources import jsonl as lines
from neardup.sources import open_source
from neardup.undologs import parse_log
from neardup.verifiers import LearnedRule
from neardup.verifiers.figures import NAMES
from neardup.verifiers.learned import Learned, Share, Weight, parse_rule, to_toml
from neardup.verifiers.reasons import TABLE, code_of

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROWS: Final[list[dict[str, Any]]] = [
    {"id": "a", "text": "The old house by the sea", "n": 1.5},
    {"id": "b", "text": "straße, 東京 and \u0130stanbul", "n": None},
    {"id": "ü", "text": "", "deep": {"x": [1, True, "\\u00e9\n"]}},
    {"id": "d", "text": "a" * 300},
]


class Target:
    """Seeds, words that its inputs are made of, and what is done with an input."""

    words: tuple[bytes, ...] = ()

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = str(folder / f"input{self.suffix}")
        self.seeds: list[bytes] = self.make()

    suffix = ""

    def make(self) -> list[bytes]:
        """Sound inputs."""
        raise NotImplementedError

    def seal(self, data: bytes) -> bytes:
        """*data* with checksums that are right, so that the code behind them is reached."""
        return data

    def run(self, data: bytes) -> str:
        """What *data* was taken for, in a word or two; raises if it is not treated as documented."""
        raise NotImplementedError

    def read(self, data: bytes) -> str:
        """What the documents of *data* as a file are: every record is a document or bad."""
        with open(self.path, "wb") as file:
            file.write(data)
        bad: list[Any] = []
        source = open_source([self.path], unique=True, on_bad=bad.append)
        found = [(batch.ids.to_pylist(), batch.texts.to_pylist()) for batch in source]
        assert sum(len(ids) for ids, _ in found) == source.documents
        assert len(bad) == source.bad + len(source.refused)
        return f"{min(source.documents, 5)} documents; {'; '.join(sorted({one.reason[:30] for one in bad}))}"


class JsonLines(Target):
    """JSON Lines: the core reads a block as the reader in Python does, or leaves it to that."""

    suffix = ".jsonl"
    words = (
        b'"text"', b'"id"', b":", b",", b"{", b"}", b"[", b"]", b"null", b"true", b"1e999", b"-0", b"\\u0000", b"\\ud83d\\ude00",
        b"\\ud800", b"\\u0065", b'\\"', b"\\\\", b"\xef\xbb\xbf", b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\r\n", b"\n", b"\x00",
        b"123456789012345678901234567890", b'{"text": "x"}\n', b'{"id": "i", "text": "y"}\n',
    )  # fmt: skip

    def make(self) -> list[bytes]:
        bare = [{"text": row["text"]} for row in ROWS]
        numbered = [{"id": at, "text": row["text"]} for at, row in enumerate(ROWS)]
        return [
            b"".join(orjson.dumps(row) + b"\n" for row in rows) for rows in (ROWS, bare, numbered, ROWS[:1])
        ]

    def run(self, data: bytes) -> str:
        self._run_fields(data)
        found = _native.read_jsonl(data, "text", "id")
        if found is None:
            return "left to Python"
        texts, named, ends = found
        lines_of = data.removesuffix(b"\n").split(b"\n") if data else []
        records = [orjson.loads(line) for line in lines_of]
        assert len(records) == len(ends) - 1
        assert lines._strings(*texts).to_pylist() == [record["text"] for record in records]
        if named is not None:
            assert lines._strings(*named).to_pylist() == [record["id"] for record in records]
        else:
            assert not any("id" in record and record["id"] is not None for record in records)
        return f"{min(len(records), 5)} read, {'with' if named is not None else 'without'} ids"

    def _run_fields(self, data: bytes) -> None:
        """A text of two fields, one of them twice, that is at most 99 bytes long."""
        found = _native.read_jsonl_fields(data, ["id", "text", "id"], "n", "\n\n", 99)
        if found is None:
            return
        records = [orjson.loads(line) for line in (data.removesuffix(b"\n").split(b"\n") if data else [])]
        wanted = [
            [record[name] for name in ("id", "text", "id") if record.get(name) is not None]
            for record in records
        ]
        assert all(wanted)
        texts = lines._strings(*found[0]).to_pylist()
        assert texts == ["\n\n".join(filter(None, parts)) for parts in wanted]
        assert all(len(text.encode()) <= 99 for text in texts)


class IndexFile(Target):
    """The file of an index, with checksums that are right: what is loaded answers every call."""

    def make(self) -> list[bytes]:
        made = []
        for bits, radius, ids in ((64, 3, "text"), (128, 7, "number"), (256, 20, "none"), (64, 0, "text")):
            index = nd.Index(bits=bits, radius=radius, digest="some scheme")
            words = np.random.default_rng(bits).integers(0, 2**63, (40, bits // 64), dtype=np.uint64)
            words[20:] = words[:20] ^ np.uint64(3)
            names: dict[str, list[Any]] = {
                "text": [f"document {at}" for at in range(40)],
                "number": list(range(7, 47)),
                "none": list(range(40)),
            }
            index.add(names[ids], nd.Fingerprints(words, bits=bits))
            index.save(self.path)
            made.append(Path(self.path).read_bytes())
        return made

    def seal(self, data: bytes) -> bytes:
        if len(data) < 64:
            return data
        found = bytearray(data)
        length, sections = struct.unpack_from("<I", found, 12)[0], struct.unpack_from("<I", found, 52)[0]
        digest, version = struct.unpack_from("<II", found, 56)
        found[16:24] = struct.pack("<Q", len(found))
        at = 64 + digest + version
        for number in range(min(sections, 64)):
            row = at + 32 * number
            if row + 32 > len(found):
                break
            begin, size = struct.unpack_from("<QQ", found, row)
            padded = (begin + size + 63) // 64 * 64
            if padded <= len(found):
                found[row + 16 : row + 32] = _xxh3(bytes(found[begin:padded]))
        if 80 <= length <= len(found):
            found[length - 16 : length] = _xxh3(bytes(found[: length - 16]))
        return bytes(found)

    def run(self, data: bytes) -> str:
        index = nd.Index._restored(data, None)
        words = np.arange(4 * ((index.bits + 63) // 64), dtype=np.uint64).reshape(4, -1) & np.uint64(1)
        some, one = (nd.Fingerprints(words[:rows], bits=index.bits) for rows in (4, 1))
        for call in (
            lambda: index.search(some),
            lambda: index.nearest(some, 2),
            lambda: list(index.items()),
            lambda: len(index),
        ):
            _documented(call)
        _documented(lambda: index.add(["one more"], one))
        _documented(lambda: index.remove(["document 3"]))
        _documented(lambda: index.search(some))
        return f"{index.bits} bits, radius {index.radius}"


def _documented(call: Callable[[], Any]) -> None:
    with suppress(NeardupError, MemoryError):
        call()


def _xxh3(data: bytes) -> bytes:
    return HASHES.part("xxh3-128").digest(data, 16)


class FrequencyTable(Target):
    """Tables of document frequencies: what is loaded is written as the same bytes, and can be used."""

    def make(self) -> list[bytes]:
        made = [
            nd.scheme("text").fit([str(row["text"]) for row in ROWS] * many).frequencies for many in (1, 40)
        ]
        return [table.to_bytes() for table in made if table is not None] + [_native.Frequencies().to_bytes()]

    def seal(self, data: bytes) -> bytes:
        return data[:-16] + _xxh3(data[:-16])

    def run(self, data: bytes) -> str:
        table = _native.Frequencies.from_bytes(data)
        assert table.to_bytes() == data
        fitted = Scheme(
            "x", features="mixed:4", weights="log-df", normalize="text", bits=128, frequencies=table
        )
        fitted.fingerprint("The old house by the sea")
        return "read"


class SchemeFile(Target):
    """Scheme files, plain and fitted: refused, or the same when they are saved again."""

    suffix = ".toml"
    words = (
        b"bits = ", b"features = ", b'"chars:', b'"words:', b'"mixed:4"', b'"mix"', b'"md5"', b"[", b"]", b"{", b"}", b"[[", b"'''", b'"""',
        b"digest", b"select = ", b'"top:7"', b"1e400", b"nan", b"0x", b"-1", b"99999999999999999999", b"\n", b"#", b".", b"\\u0000", b"2024-01-01",
    )  # fmt: skip

    def make(self) -> list[bytes]:
        made = []
        names = ("text", "chars:3", "words:2", "simhash", "news")
        fitted = nd.scheme("text").fit(["one text", "another text"])
        for one in (*(nd.scheme(name) for name in names), fitted):
            one.save(self.path)
            data = Path(self.path).read_bytes()
            made.append(data)
            if data.startswith(b"format"):
                made.append(b"\n".join(line for line in data.splitlines() if not line.startswith(b"digest")))
        return made

    def seal(self, data: bytes) -> bytes:
        import hashlib

        if not data.startswith(b"NDSCHEME") or len(data) < 56:
            return data
        (toml,) = struct.unpack_from("<I", data, 12)
        table = len(data) - 40 - toml
        if table < 0:
            return data
        body = data[:16] + struct.pack("<Q", table) + data[24:-16]
        return body + hashlib.blake2b(body, digest_size=16).digest()

    def run(self, data: bytes) -> str:
        with open(self.path, "wb") as file:
            file.write(data)
        one = nd.scheme(self.path)
        again = self.path + ".again"
        one.save(again)
        assert nd.scheme(again).digest == one.digest
        if one.bits <= 4096:
            _documented(lambda: one.fingerprint("some text"))
        return f"{one.features} {one.hash} {one.normalize}"


class Levels(Target):
    """Texts: every instruction level gives the same normalised text and the same fingerprints."""

    words = tuple(
        text.encode()
        for text in ("İ", "ß", "ﬁ", "é", "e\u0301", "漢字", "\u200d", "\ufeff", "\U0001f468\u200d\U0001f469", "ǅ", "ά", "\u1e9e", "한국", "ไทย", "\u0600", "Å", "½", "\x00", "_", "  ", "\r\n", "A" * 31, "z" * 64, "-" * 17)
    )  # fmt: skip

    def make(self) -> list[bytes]:
        self.schemes = [
            nd.scheme(name, **more)
            for name, more in (
                ("text", {}),
                ("chars:4", {"bits": 128}),
                ("words:3", {"bits": 256}),
                ("chars:1", {}),
            )
        ]
        texts = [str(row["text"]) for row in ROWS]
        return [text.encode() for text in (*texts, " ".join(texts) * 3, "The quick brown fox " * 9, "x" * 70)]

    def run(self, data: bytes) -> str:
        text = data.decode("utf-8", "replace")
        found = set()
        for level in ("scalar", "avx2", "avx512-base", "avx512"):
            _native.set_simd(level)
            found.add(tuple(one.fingerprint(text) for one in self.schemes))
        assert len(found) == 1, "levels differ"
        return "the same"


class ArrowArrays(Target):
    """Arrow data in which lengths, offsets and buffers lie: an error, or what Python reads in it."""

    def make(self) -> list[bytes]:
        self.scheme = nd.scheme("chars:3")
        made = []
        texts: list[str | None] = ["one text", None, "", "another text that is longer than twelve bytes", "ü"]
        for kind in (pa.string(), pa.large_string(), pa.string_view()):
            for array in (
                pa.array(texts, kind),
                pa.array(texts * 3, kind).slice(2, 9),
                pa.array(texts[:1], kind),
            ):
                sink = io.BytesIO()
                batch = pa.record_batch({"text": array})
                with pa.ipc.new_stream(sink, batch.schema) as writer:
                    writer.write_batch(batch)
                made.append(sink.getvalue())
        return made

    def run(self, data: bytes) -> str:
        try:
            (batch,) = list(pa.ipc.open_stream(data))[:1]
            column = batch.column(0)
        except (pa.ArrowException, OSError, ValueError, IndexError, KeyError):
            return "refused by pyarrow"
        if batch.num_rows > 1 << 12:  # may be negative, which `len` cannot say
            return "long"
        prints = self.scheme.fingerprints(column)
        try:
            column.validate(full=True)
            texts = column.to_pylist()
        except (pa.ArrowException, ValueError):
            return "no texts"
        texts = [text.decode("utf-8", "replace") if isinstance(text, bytes) else text for text in texts]
        if all(isinstance(text, str | None) for text in texts):
            expected = [None if text is None else self.scheme.fingerprint(text) for text in texts]
            assert [prints[at] for at in range(len(texts))] == expected
        return f"{column.type}, {min(len(texts), 20)} texts"


class ParquetFile(Target):
    """Parquet files: documents, bad records or a refusal."""

    suffix = ".parquet"

    def make(self) -> list[bytes]:
        made = []
        table = pa.table({"id": ["a", "b", "c"], "text": ["one text", None, "two"], "n": [1, 2, None]})
        for options in (
            {},
            {"compression": "none", "use_dictionary": False},
            {"data_page_version": "2.0", "compression": "zstd"},
        ):
            sink = io.BytesIO()
            pq.write_table(table, sink, write_page_checksum=False, **options)
            made.append(sink.getvalue())
        return made

    def run(self, data: bytes) -> str:
        return self.read(data)


class CsvFile(Target):
    """CSV files: documents, bad records or a refusal."""

    suffix = ".csv"
    words = (
        b'"',
        b'""',
        b",",
        b"\n",
        b"\r",
        b"\r\n",
        b"id",
        b"text",
        b"\xff",
        b"\x00",
        b"\xef\xbb\xbf",
        b"\t",
        b";",
    )

    def make(self) -> list[bytes]:
        return [
            b'id,text,n\na,one text,1\nb,"two, with a comma",\nc,"three\nlines",3\n',
            b"text\none\ntwo\n",
            b'id;text\r\n"a";"x ""y"" z"\r\n',
            b"\xef\xbb\xbfid,text\na,b",
        ]

    def run(self, data: bytes) -> str:
        return self.read(data)


class UndoLog(Target):
    """Logs of `apply`: read, or refused with a reason."""

    suffix = ".jsonl"
    words = (
        b'"step"',
        b'"begin"',
        b'"done"',
        b'"left"',
        b'"path"',
        b'"aside"',
        b'"target"',
        b"null",
        b"..",
        b"/",
        b"\x00",
        b"-1",
        b"1e400",
        b"{}",
        b"[]",
    )

    def make(self) -> list[bytes]:
        from neardup.adapters.cli import run

        folder, here = self.folder / "undo", os.getcwd()
        (folder / "in").mkdir(parents=True, exist_ok=True)
        for name in "abc":
            (folder / "in" / f"{name}.txt").write_text("one and the same text " * 9)
        os.chdir(folder)
        try:
            run(["dedupe", "in", "-o", "out", "--quiet", "--no-guards", "--overwrite"])
            run(["apply", "out", "--trash", "trash", "--yes"])
        finally:
            os.chdir(here)
        return [path.read_bytes() for path in (folder / "out").glob("undo-*.jsonl")]

    def run(self, data: bytes) -> str:
        return f"{len(parse_log(data).entries)} entries"


class RuleFile(Target):
    """Learned rules, with a digest that is right: what is read says itself again, and judges any pair."""

    words = (
        b"[weights]",
        b"[learned]",
        b"bias = ",
        b"= [",
        b"-1",
        b"999999999999",
        b"{",
        b"}",
        b"\n",
        b'"',
        b"true",
    )

    def make(self) -> list[bytes]:
        share = Share(1, 2, 5000, 900, 9100)
        made = Learned(20, 10, 10, share, share, share, share)
        rows = [tuple(Weight(name, weight, 5000) for name in NAMES) for weight in (0, -7)]
        return [to_toml(LearnedRule(weights, bias, made)).encode() for bias, weights in enumerate(rows)]

    def seal(self, data: bytes) -> bytes:
        try:
            said = tomllib.loads(data.decode())
            old = said.pop("digest")
            del said["neardup-rule"]
            said["weights"] = [
                {"figure": name, "weight": row[0], "middle": row[1]} for name, row in said["weights"].items()
            ]
            text = json.dumps(said, sort_keys=True, separators=(",", ":"))
            digest = hashlib.blake2b(text.encode("ascii", "backslashreplace"), digest_size=16).hexdigest()
            return data.replace(old.encode(), digest.encode())
        except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError):
            return data

    def run(self, data: bytes) -> str:
        rule = parse_rule(data, "it")
        assert parse_rule(to_toml(rule).encode(), "again") == rule
        figures = np.array([[0] * len(NAMES), [10_000] * len(NAMES)], np.uint16)
        accepted, code = rule.judge(figures, np.array([0, code_of("too-different")], np.uint8))
        assert not accepted[1]
        assert [TABLE[one].accepts for one in code.tolist()] == accepted.tolist()
        return f"a rule that {'accepts' if accepted[0] else 'rejects'}"


class LabelFile(Target):
    """Files of labelled pairs: each row is an answer, or the file is refused."""

    words = (
        b",",
        b"\t",
        b'"',
        b"\n",
        b"\r\n",
        b"0",
        b"1",
        b"?",
        b"id1,id2,label",
        b"\xff",
        b"\xe2\x80\xa8",
        b"\x00",
    )

    def make(self) -> list[bytes]:
        return [b"id1,id2,label\na,b,1\nc,d,0\ne,f,?\n", b'"a,\n",b,0\n', b"a\tb\t1\r\n"]

    def run(self, data: bytes) -> str:
        with open(self.path, "wb") as file:
            file.write(data)
        found = read_answers(self.path)
        assert all(same in (True, False, None) for *_, same in found)
        return f"{min(len(found), 9)} answers"


TARGETS: Final[dict[str, type[Target]]] = {
    "jsonl": JsonLines,
    "index": IndexFile,
    "frequencies": FrequencyTable,
    "scheme": SchemeFile,
    "levels": Levels,
    "arrow": ArrowArrays,
    "parquet": ParquetFile,
    "csv": CsvFile,
    "undo": UndoLog,
    "rule": RuleFile,
    "labels": LabelFile,
}
