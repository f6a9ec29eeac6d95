"""A corpus of real English documents with planted near-duplicates, from text that this machine has.

    python benchmarks/corpus.py OUT.jsonl --documents 100000

Paragraphs are taken from documentation (HTML, man pages, text; --data DIR adds folders), each one
once, and joined, in the order of their file, into documents of about --size bytes. Then a share of
the documents is copied, with 1 to 15 % of the words replaced. OUT.pairs.tsv lists the planted pairs:
original, copy, share of words. None of this is committed.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import html
import json
import os
import random
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

ROOTS = (
    "/usr/share/doc",
    "/usr/share/man",
    "/usr/share/common-licenses",
    "/usr/share/perl",
    "/usr/lib/python3.11",
    "~/.rustup/toolchains/stable-x86_64-unknown-linux-gnu/share/doc",
    "/usr/lib",
    "/usr/local",
    "/usr/share",
)
SHARES = (0.01, 0.02, 0.05, 0.10, 0.15)
_TAG = re.compile(r"<(script|style|nav|head)\b.*?</\1>|<!--.*?-->", re.DOTALL | re.IGNORECASE)
_BLOCK = re.compile(r"</?(p|div|section|h\d|li|ul|pre|table|tr|td|br|dd|dt|summary)\b[^>]*>", re.IGNORECASE)
_ANY_TAG = re.compile(r"<[^>]+>")
_ROFF = re.compile(r"^[.'].*$|\\f[A-Z(\[]?\S?|\\[-&e|^/]", re.MULTILINE)
_PARAGRAPH = re.compile(r"\n\s*\n")
_ENGLISH = re.compile(r"\b(the|of|to|and|is|in|for)\b")
_WORD = re.compile(r"[^\W\d_]+")


def files(roots: Iterable[str]) -> Iterator[Path]:
    """Every file under *roots* that may hold prose, once, in a fixed order."""
    seen: set[str] = set()
    for root in roots:
        for folder, names, leaves in os.walk(os.path.expanduser(root)):
            names.sort()
            for leaf in sorted(leaves):
                path = os.path.join(folder, leaf)
                if _kind(path) and path not in seen and not os.path.islink(path):
                    seen.add(path)
                    yield Path(path)


def _kind(path: str) -> str | None:
    bare = path.removesuffix(".gz")
    ending = os.path.splitext(bare)[1].lower()
    if ending in (".html", ".htm"):
        return "html"
    if re.fullmatch(r"\.\d\w*", ending) and "/man" in path:
        return "roff" if re.search(r"/man/man\d", path) else None
    if ending in (".txt", ".md", ".rst", ".pod", ".py", ".h") or "common-licenses" in path:
        return "text"
    if os.path.basename(bare) in ("copyright", "README", "NEWS", "changelog", "ChangeLog", "CHANGES"):
        return "text"
    return None


def paragraphs(path: Path) -> Iterator[str]:
    """The English paragraphs of a file."""
    try:
        data = path.read_bytes()
        if path.suffix == ".gz":
            data = gzip.decompress(data)
        text = data[:2_000_000].decode("utf-8")
    except (OSError, EOFError, ValueError):
        return
    kind = _kind(str(path))
    if kind == "html":
        text = html.unescape(_ANY_TAG.sub(" ", _BLOCK.sub("\n\n", _TAG.sub(" ", text))))
    elif kind == "roff":
        text = _ROFF.sub("", re.sub(r"^\.(SH|SS|PP|TP|P|IP|LP)\b.*$", "\n\n", text, flags=re.MULTILINE))
    for part in _PARAGRAPH.split(text):
        clean = " ".join(part.split())
        if len(clean) < 60 or len(clean) > 4000:
            continue
        letters = sum(map(str.isalpha, clean)) + clean.count(" ")
        if letters >= 0.85 * len(clean) and len(_ENGLISH.findall(clean)) >= 2:
            yield clean


def documents(roots: Iterable[str], size: int) -> Iterator[str]:
    """Documents of about *size* characters; no paragraph is in two of them."""
    seen: set[bytes] = set()
    parts: list[str] = []
    length = 0
    for path in files(roots):
        for paragraph in paragraphs(path):
            key = hashlib.blake2b(paragraph.encode(), digest_size=8).digest()
            if key in seen:
                continue
            seen.add(key)
            parts.append(paragraph)
            length += len(paragraph)
            if length >= size:
                yield "\n\n".join(parts)
                parts, length = [], 0


def copy_of(text: str, share: float, words: Sequence[str], chance: random.Random) -> str:
    """*text* with that share of its words replaced."""
    places = [found.span() for found in _WORD.finditer(text)]
    out, last = [], 0
    for at, end in sorted(chance.sample(places, max(1, round(share * len(places))))):
        out += [text[last:at], chance.choice(words)]
        last = end
    return "".join([*out, text[last:]])


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--documents", type=int, default=100_000)
    parser.add_argument("--size", type=int, default=3000, help="characters of a document, about")
    parser.add_argument("--copies", type=float, default=0.1, help="share of the documents that are copies")
    parser.add_argument("--data", action="append", default=[], help="folder with more text")
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args(arguments)
    chance = random.Random(chosen.seed)
    wanted = chosen.documents - round(chosen.documents * chosen.copies)
    texts: list[str] = []
    for text in documents([*chosen.data, *ROOTS], chosen.size):
        texts.append(text)
        if len(texts) == wanted:
            break
    if len(texts) < wanted:
        print(f"only {len(texts):,} documents of {wanted:,} could be made; give --data DIR", file=sys.stderr)
        wanted = len(texts)
    words = [word for text in chance.sample(texts, min(len(texts), 500)) for word in _WORD.findall(text)]
    rows = [(f"d{number}", text) for number, text in enumerate(texts)]
    pairs = []
    count = round(wanted * chosen.copies / (1 - chosen.copies))
    for number, at in enumerate(chance.sample(range(wanted), count)):
        share = SHARES[number % len(SHARES)]
        rows.append((f"c{at}", copy_of(texts[at], share, words, chance)))
        pairs.append((f"d{at}", f"c{at}", share))
    chance.shuffle(rows)
    with open(chosen.out, "w", encoding="utf-8") as file:
        file.writelines(json.dumps({"id": id, "text": text}, ensure_ascii=False) + "\n" for id, text in rows)
    with open(f"{chosen.out}.pairs.tsv", "w", encoding="utf-8") as file:
        file.writelines(f"{one}\t{other}\t{share}\n" for one, other, share in pairs)
    total = sum(len(text) for _, text in rows)
    print(f"{len(rows):,} documents, {total / len(rows):,.0f} characters each, {len(pairs):,} planted pairs")
    return 0


if __name__ == "__main__":
    sys.exit(main())
