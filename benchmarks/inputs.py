"""What workloads run on: each input is made by a function of this module, from the arguments it is given.

Inputs that are made from a seed are the same on every machine. Real text is not: it is read from the folder
that `--data` names (`*.jsonl.gz` files with `text`, and `lang` for other languages), or from documentation
that is installed. To add an input, write its function and add it to INPUTS.
"""

from __future__ import annotations

import functools
import glob
import gzip
import json
import os
import random
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate, islice
from pathlib import Path
from typing import Any

import numpy as np

RADIUS = 3
STEP = 1 << 24
DOCS = ("/usr/share/doc", "/usr/share/perl", "/usr/lib/python3", os.path.dirname(os.__file__))
PAGES = ("/usr/share/doc/**/*", "/usr/share/man/man*/*.gz", os.path.dirname(os.__file__) + "/**/*.py")
data: Path | None = None
"""The folder that `--data` names."""
work = Path(__file__).parent / "data"
"""Where files of documents are made; they are kept for the next run, and never committed."""


def frozen(words: np.ndarray) -> np.ndarray:
    words.flags.writeable = False
    return words


# --- fingerprints ----------------------------------------------------------------------------------------


def uniform(count: int, width: int = 1, seed: int = 1) -> np.ndarray:
    """Random fingerprints; one in twenty is another with up to three bits flipped."""
    rng = np.random.default_rng(seed)
    words = rng.integers(0, 2**64, (count, width), dtype=np.uint64)
    near = count // 20
    words[-near:] = words[rng.integers(0, count - near, near)]
    for _ in range(RADIUS):
        words[-near:, 0] ^= np.uint64(1) << rng.integers(0, 64, near, dtype=np.uint64)
    return frozen(words[:, 0].copy() if width == 1 else words)


def uniform_in_parts(count: int) -> np.ndarray:
    """The same kind, made part by part, so that the input is all the memory it takes."""
    words = np.empty(count, dtype=np.uint64)
    rng = np.random.default_rng(1)
    for start in range(0, count, STEP):
        part = words[start : start + STEP]
        part[:] = rng.integers(0, 2**64, len(part), dtype=np.uint64)
        near = len(part) // 20
        part[-near:] = part[:near]
        for _ in range(RADIUS):
            part[-near:] ^= np.uint64(1) << rng.integers(0, 64, near, dtype=np.uint64)
    return frozen(words)


def flood(count: int, kind: str) -> np.ndarray:
    """Fingerprints of which a bucket, or a ball, holds all or many."""
    rng = np.random.default_rng(1)
    words = rng.integers(0, 2**64, count, dtype=np.uint64)
    if kind == "all equal":
        words[:] = 7
    elif kind == "10 % equal":
        words[: count // 10] = 7
    elif kind == "one shared block":
        words >>= np.uint64(16)
    elif kind == "within 1 of a centre":
        words = np.uint64(1) << rng.integers(0, 64, count, dtype=np.uint64)
    else:
        raise SystemExit(f"unknown flood {kind!r}")
    return frozen(words)


def real_words(count: int) -> np.ndarray:
    """64-bit fingerprints of unweighted words of real text, cut in pieces of about 60 words."""
    import neardup as nd

    pieces: list[str] = []
    for text in _installed_texts():
        words = re.findall(r"\w+", text.lower())
        pieces.extend(" ".join(words[at : at + 60]) for at in range(0, max(len(words) - 30, 0), 60))
        if len(pieces) >= count:
            break
    prints = nd.scheme("words:1", bits=64).fingerprints(pieces[:count])
    return frozen(prints.words[prints.valid][:, 0].copy())


def zeros(megabytes: int) -> np.ndarray:
    return np.zeros(megabytes << 17, dtype=np.uint64)


def near_values(count: int, seed: int = 2) -> list[int]:
    """Half of them random, the others with one or two bits of such a one flipped."""
    chance = random.Random(seed)
    values = [chance.getrandbits(64) for _ in range(count // 2)]
    flips = (1 << chance.randrange(64) | 1 << chance.randrange(64) for _ in range(count - count // 2))
    return values + [value ^ flip for value, flip in zip(values, flips, strict=True)]


def text_values(count: int) -> list[int]:
    """Fingerprints of short texts, two and two of them near; their bits are far from random."""
    from neardup.compat.simhash import values

    chance = np.random.default_rng(6)
    words = ["".join(map(chr, chance.integers(97, 123, chance.integers(2, 10)))) for _ in range(20_000)]
    share = 1 / np.arange(1, len(words) + 1)
    many = []
    for row in chance.choice(len(words), size=(count // 2, 40), p=share / share.sum()):
        many.append(" ".join(words[at] for at in row))
        row[chance.integers(40)] = chance.integers(len(words))
        many.append(" ".join(words[at] for at in row))
    found: list[int] = values(many).tolist()
    return found


# --- texts -----------------------------------------------------------------------------------------------


def made_texts(count: int, words: int = 470) -> list[str]:
    """Random words, about 3 kB in each text."""
    chance = random.Random(1)
    letters = "abcdefghijklmnopqrstuvwxyz"
    known = ["".join(chance.choices(letters, k=chance.randint(2, 9))) for _ in range(5000)]
    return [" ".join(chance.choices(known, k=words)) for _ in range(count)]


def short_texts(count: int) -> list[str]:
    """Twelve random words in each text."""
    rng = np.random.default_rng(4)
    words = ["".join(map(chr, rng.integers(97, 123, rng.integers(3, 9)))) for _ in range(50_000)]
    return [" ".join(words[at] for at in row) for row in rng.integers(0, len(words), (count, 12))]


@functools.cache
def documents(language: str, size: int, megabytes: float) -> list[str]:
    """Real documents of about *size* bytes, that many megabytes of them, each once and then all again."""
    total = int(megabytes * 1e6)
    return _cut(_real_texts(language), size, total)


def articles(count: int) -> list[dict[str, str]]:
    """Articles with fingerprints and dates, as news clustering takes them."""
    chance = random.Random(4)
    days = [f"2024-{chance.randint(1, 12):02}-{chance.randint(1, 28):02}" for _ in range(count)]
    return [
        {"id": f"a{at}", "simHash": f"{value:016x}", "publishedAt": day}
        for at, (value, day) in enumerate(zip(near_values(count, 5), days, strict=True))
    ]


# --- files of documents ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Corpus:
    """A JSON Lines file of documents, in a folder of its own."""

    path: Path
    documents: int

    def __len__(self) -> int:
        return self.documents

    def ids(self, limit: int | None = None) -> set[str]:
        with open(self.path, encoding="utf-8") as lines:
            return {json.loads(line)["id"] for line in islice(lines, limit)}

    def planted(self) -> list[tuple[str, str, float]]:
        """Original, copy, and the share of words that was changed."""
        with open(f"{self.path}.pairs.tsv", encoding="utf-8") as lines:
            return [(one, other, float(share)) for one, other, share in (line.split("\t") for line in lines)]


def corpus(documents: int) -> Corpus:
    """Real English documents with planted near-duplicates, as corpus.py makes them."""
    path = _folder(f"corpus-{documents}") / "documents.jsonl"
    if not path.exists():
        command = [sys.executable, str(Path(__file__).with_name("corpus.py")), str(path)]
        more = ["--data", str(data)] if data is not None else []
        subprocess.run([*command, "--documents", str(documents), *more], check=True, stdout=sys.stderr)
    return Corpus(path, _lines(path))


def corpus_pieces(documents: int, size: int, of: int = 100_000) -> Corpus:
    """That many pieces of about *size* characters, of a corpus of real documents."""
    path = _folder(f"pieces-{documents}-{size}") / "documents.jsonl"
    if not path.exists():
        with open(corpus(of).path, "rb") as lines, open(path, "wb") as out:
            out.writelines(islice(pieces(lines, size), documents))
    return Corpus(path, _lines(path))


def made_corpus(documents: int) -> Corpus:
    """400 words in each document, with the frequencies of words; every tenth is a near-duplicate."""
    path = _folder(f"made-{documents}") / "documents.jsonl"
    if not path.exists():
        with path.open("w", encoding="utf-8") as file:
            file.writelines(islice(made_lines(), documents))
    return Corpus(path, documents)


@dataclass(frozen=True, slots=True)
class Quotations:
    """A training set that quotes a test set, each as JSON Lines."""

    train: Path
    test: Path
    documents: int
    planted: int

    def __len__(self) -> int:
        return self.documents


def quotations(documents: int, planted: int) -> Quotations:
    """A made corpus, and a tenth as many others as a test set. That many of the former quote 60 words of
    one of the latter each."""
    folder = _folder(f"quotations-{documents}-{planted}")
    found = Quotations(folder / "train.jsonl", folder / "test.jsonl", documents, planted)
    if not found.test.exists():
        chance, lines = random.Random(5), made_lines()
        train = [json.loads(line) for line in islice(lines, documents)]
        test = [json.loads(line) for line in islice(lines, documents // 10)]
        # Of each ten the last one is a near-duplicate of the one before: neither quotes, nor is quoted.
        quoting = chance.sample([at for at in range(documents) if at % 10 < 8], planted)
        quoted = chance.sample([at for at in range(len(test)) if at % 10 < 8], planted)
        for one, other in zip(quoting, quoted, strict=True):
            words, place = train[one]["text"].split(), chance.randrange(400)
            quote = test[other]["text"].split()[170:230]
            train[one]["text"] = " ".join([*words[:place], *quote, *words[place:]])
        for path, rows in ((found.train, train), (found.test, test)):
            path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return found


def made_lines() -> Iterator[str]:
    """The lines of a made corpus, without end."""
    chance = random.Random(1)
    letters = "etaoinshrdlucmfwypvbgkjqxz"
    vocabulary = ["".join(chance.choices(letters, k=chance.randint(3, 10))) for _ in range(200_000)]
    weights = list(accumulate(1 / (rank + 10) for rank in range(len(vocabulary))))
    count, last = 0, list[str]()
    while True:
        words = chance.choices(vocabulary, cum_weights=weights, k=400)
        if count % 10 == 9:
            words = [*last[:200], *chance.choices(vocabulary, k=3), *last[203:]]
        yield json.dumps({"id": f"doc-{count:09}", "text": " ".join(words)}) + "\n"
        count, last = count + 1, words


def _folder(name: str) -> Path:
    folder = work / name
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _lines(path: Path) -> int:
    with open(path, "rb") as lines:
        return sum(1 for _ in lines)


def pieces(lines: Iterable[bytes], size: int) -> Iterator[bytes]:
    for line in lines:
        row = json.loads(line)
        words: list[str] = []
        length = number = 0
        for word in row["text"].split():
            words.append(word)
            length += len(word) + 1
            if length >= size:
                yield json.dumps({"id": f"{row['id']}-{number}", "text": " ".join(words)}).encode() + b"\n"
                words, length, number = [], 0, number + 1


# --- real text -------------------------------------------------------------------------------------------


def _real_texts(language: str) -> Iterator[str]:
    if data is None:
        if language == "en":
            for root in DOCS:
                for path in sorted(Path(root).rglob("*")):
                    if path.suffix in (".txt", ".rst", ".md", ".py", ".pod") and path.is_file():
                        yield path.read_text(encoding="utf-8", errors="ignore")
        return
    for path in sorted(data.glob("*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            yield from (row["text"] for row in map(json.loads, lines) if row.get("lang", "en") == language)


def _cut(texts: Iterable[str], size: int, total: int) -> list[str]:
    once: list[str] = []
    taken = 0
    for text in texts:
        encoded = text.encode()
        for begin in range(0, len(encoded) - size * 4 // 5, size):
            once.append(encoded[begin : begin + size].decode(errors="ignore"))
            taken += size
        if taken >= total:
            break
    return once * (total // max(taken, 1) + 1) if once else []


def _installed_texts() -> Iterator[str]:
    if data is not None:
        for path in sorted(data.glob("*.jsonl.gz")):
            with gzip.open(path, "rt", encoding="utf-8", errors="replace") as lines:
                for row in map(json.loads, lines):
                    yield row.get("text") or ""
    for pattern in PAGES:
        for name in sorted(glob.glob(pattern, recursive=True)):
            if not os.path.isfile(name) or os.path.islink(name):
                continue
            opened = gzip.open if name.endswith(".gz") else open
            try:
                with opened(name, "rb") as file:
                    yield file.read(1 << 20).decode("utf-8", "replace")
            except OSError:
                continue


INPUTS: dict[str, Callable[..., Any]] = {
    "uniform": uniform,
    "uniform in parts": uniform_in_parts,
    "flood": flood,
    "words of real text": real_words,
    "zeros": zeros,
    "near values": near_values,
    "values of texts": text_values,
    "made texts": made_texts,
    "short texts": short_texts,
    "documents": documents,
    "articles": articles,
    "corpus": corpus,
    "pieces of a corpus": corpus_pieces,
    "made corpus": made_corpus,
    "quotations": quotations,
}


def make(given: dict[str, Any]) -> Any:
    """The input that a workload describes."""
    arguments = dict(given)
    name = arguments.pop("make")
    if name not in INPUTS:
        raise SystemExit(f"unknown input {name!r}; known: {', '.join(INPUTS)}")
    return INPUTS[name](**arguments)
