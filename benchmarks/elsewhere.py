"""How good the verified clusters are on kinds of documents that played no part in the choice of the rule.

    python benchmarks/elsewhere.py [--man /usr/share/man] [--precision NAME] [--seed N]

The documents are the manual pages and the Python packages of this machine, by kind: commands, a large
family of commands of one program, functions, docstrings, licences with and without a clause, notices from one
form. Some get a revised copy: sentences rewritten, words replaced, a page's furniture around it, other years,
versions and addresses. A pair is right if it is a document and its revised copy, or two such copies.
Different documents that are nearly the same word for word count on neither side: many are one text under two
names.

Nothing here was used to choose a setting; figures are in docs/quality.md.
"""

from __future__ import annotations

import argparse
import ast
import gzip
import random
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import neardup as nd

sys.path.insert(0, str(Path(__file__).parent))
import results

DOCUMENTS = 1500
REVISED = 400
# Different documents that have this share of their pairs of neighbouring words in common are left out.
ALIKE = 0.85
SITES = ("Daily Manual", "Reference Desk", "Open Shelf", "The Archive", "Docs Mirror")
LINKS = ("Home", "About", "Contact", "Privacy", "Terms", "Search", "Login", "News", "Help", "Sitemap")
NAMES = ("Ann Lee", "Tom Reed", "Jo Park", "Eva Klein", "Sam Diaz", "Aki Sato")


@dataclass(frozen=True)
class Page:
    """A text, and what it is: revised copies of one text are the same."""

    id: str
    text: str
    what: str


def manual(folder: Path, pattern: str) -> Iterator[tuple[str, str]]:
    """Names and texts of manual pages, each file once; pages that only point to another are left out."""
    seen = set()
    for path in sorted(folder.glob(pattern)):
        if path.resolve() in seen:
            continue
        seen.add(path.resolve())
        data = path.read_bytes()
        data = gzip.decompress(data) if path.suffix == ".gz" else data
        lines = data.decode("utf-8", "replace").splitlines()
        kept = (
            plain(line) for line in lines if not re.match(r"[.'](\\\"|so |ds|de|if|ie|nr|ad|ti|in|ne)", line)
        )
        text = "\n".join(line for line in kept if line.strip())
        if len(text.split()) >= 40:
            yield path.name.removesuffix(".gz"), text


def plain(line: str) -> str:
    """A line of a manual page without its markup."""
    line = re.sub(r"^[.'][A-Za-z]{1,3}\b ?", "", line)
    return re.sub(r"\\f[A-Z]|\\f\(..|\\-|\\&|\\|\"", lambda found: "-" if found[0] == "\\-" else "", line)


def modules(folder: Path) -> Iterator[tuple[str, str]]:
    """Docstrings of the modules, classes and functions of the packages in a folder, under their names."""
    for path in sorted(folder.rglob("*.py")):
        try:
            tree = ast.parse(path.read_bytes())
        except (SyntaxError, ValueError):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                said = ast.get_docstring(node) or ""
                if len(said.split()) >= 40:
                    name = getattr(node, "name", path.stem)
                    yield f"{path.relative_to(folder)}:{name}", f"{name}\n\n{said}"


def licences(rng: random.Random, *, named: bool) -> list[Page]:
    """Licences of 12 to 40 paragraphs, each in versions with and without one of them; *named* if each version
    has a name of its own."""
    paragraphs: list[str] = []
    for path in sorted(Path("/usr/share/common-licenses").glob("*")):
        if path.is_file() and not path.is_symlink():
            paragraphs += [
                part for part in path.read_text("utf-8", "replace").split("\n\n") if len(part.split()) > 25
            ]
    pages = []
    for number in range(20):
        own = rng.sample(paragraphs, rng.randint(12, 40))
        inner = rng.sample(range(2, len(own) - 2), 5)
        names = rng.sample(sorted(set(re.findall(r"[a-z]{5,9}", " ".join(own)))), 7)
        for at_name, left_out in enumerate((None, *inner)):
            name = f"{names[-1]} {names[at_name * named]}".title()
            text = "\n\n".join(part for at, part in enumerate(own) if at != left_out)
            what = f"licence-{number}-{left_out}"
            pages.append(Page(what, f"{name} Licence\n\n{text}", what))
    return pages


def notices(source: Sequence[tuple[str, str]], rng: random.Random) -> list[Page]:
    """Notices from forms: pages in which the name of the subject and a few other words are others."""
    pages = []
    names = [name.partition(".")[0] for name, _ in source]
    words = [word for _, text in source[:200] for word in text.split() if word.isalpha()]
    for form in range(40):
        name, text = source[rng.randrange(len(source))]
        subject = name.partition(".")[0]
        tokens = text.split()[:400]
        if tokens.count(subject) < 3:
            continue
        slots = rng.sample(range(len(tokens)), max(2, len(tokens) // 50))
        for at, other in enumerate(rng.sample(names, 12)):
            own = [other if word == subject else word for word in tokens]
            for slot in slots:
                own[slot] = rng.choice(words)
            what = f"notice-{form}-{at}"
            pages.append(Page(what, f"{other} manual\n\n" + " ".join(own), what))
    return pages


# --- revised copies ----------------------------------------------------------------------------------------


def rewritten(text: str, rng: random.Random, words: Sequence[str]) -> str:
    """Up to a tenth of the words are others, singly and in one or two sentences."""
    parts = re.split(r"(\s+)", text)
    places = [at for at in range(0, len(parts), 2) if at > 12]
    for at in rng.sample(places, int(len(places) * rng.uniform(0.01, 0.06))):
        parts[at] = rng.choice(words)
    for _ in range(rng.randint(0, 2)):
        at = rng.choice(places or [0])
        for place in range(at, min(at + 2 * rng.randint(4, 10), len(parts)), 2):
            parts[place] = rng.choice(words)
    return "".join(parts)


def furnished(text: str, rng: random.Random, words: Sequence[str]) -> str:
    """The page of a site around it."""
    links = " | ".join(rng.sample(LINKS, rng.randint(4, 8)))
    date = f"{rng.randint(1, 28)} March {rng.randint(1999, 2024)} by {rng.choice(NAMES)}"
    related = "\n".join("Related: " + " ".join(rng.sample(words, 6)) for _ in range(rng.randint(0, 3)))
    return f"{rng.choice(SITES)}\n{links}\n{date}\n\n{text}\n\n{related}\n{links}\nAll rights reserved."


def renumbered(text: str, rng: random.Random, words: Sequence[str]) -> str:
    """Years, and numbers of versions, are others."""
    step = rng.randint(1, 4)
    return re.sub(r"\b(?:19|20)\d\d\b|(?<=\d\.)\d+\b", lambda found: str(int(found[0]) + step), text)


def relinked(text: str, rng: random.Random, words: Sequence[str]) -> str:
    """Addresses after some of its lines."""
    found = []
    for line in text.splitlines():
        address = "/".join(rng.sample(words, 4)).lower()
        found.append(f"{line} (https://{address}?id={rng.randrange(10**6)})" if rng.random() < 0.08 else line)
    return "\n".join(found)


def rewrapped(text: str, rng: random.Random, words: Sequence[str]) -> str:
    """Other line ends, from the second line on."""
    first, _, rest = text.partition("\n")
    found, line = [first], ""
    for word in rest.split():
        line = f"{line} {word}".strip()
        if len(line) > 60 + rng.randrange(30):
            found.append(line)
            line = ""
    return "\n".join([*found, line])


def extended(text: str, rng: random.Random, words: Sequence[str]) -> str:
    """A paragraph more, at the end."""
    return f"{text}\n\n{' '.join(rng.choices(words, k=rng.randint(8, max(9, len(text.split()) // 8))))}."


CHANGES: tuple[Callable[[str, random.Random, Sequence[str]], str], ...] = (
    rewritten, furnished, renumbered, relinked, rewrapped, extended,
)  # fmt: skip


def revised(pages: Sequence[Page], rng: random.Random, count: int) -> list[Page]:
    """The pages, and revised copies of some of them."""
    words = [word for page in pages[:300] for word in page.text.split() if word.isalpha()]
    made = list(pages)
    for page in rng.sample(list(pages), min(count, len(pages))):
        for number in range(rng.choice((1, 1, 1, 2))):
            text = page.text
            for change in rng.sample(CHANGES, rng.randint(1, 3)):
                text = change(text, rng, words)
            made.append(Page(f"{page.id}~{number}", text, page.what))
    rng.shuffle(made)
    return made


# --- scores ------------------------------------------------------------------------------------------------


def pages_of(found: Iterator[tuple[str, str]], rng: random.Random) -> list[Page]:
    """Some of the documents that were found."""
    every = list(found)
    return [Page(name, text, name) for name, text in rng.sample(every, min(DOCUMENTS, len(every)))]


def kinds(man: Path, packages: Path, seed: int) -> Iterator[tuple[str, list[Page]]]:
    """The collections, each under its name."""
    rng = random.Random(seed)
    one = list(manual(man, "man1/*"))
    programs = [row for row in [*one, *manual(man, "man8/*")] if not row[0].startswith("gcloud")]
    family = [row for row in one if re.match(r"gcloud[-_](?!alpha|beta)", row[0])]
    if family:
        start = rng.randrange(max(1, len(family) - DOCUMENTS))
        yield "family", revised(pages_of(iter(family[start : start + DOCUMENTS]), rng), rng, REVISED)
    yield "commands", revised(pages_of(iter(programs), rng), rng, REVISED)
    yield "functions", revised(pages_of(manual(man, "man3/*"), rng), rng, REVISED)
    yield "docstrings", revised(pages_of(modules(packages), rng), rng, REVISED)
    yield "licences with names", revised(licences(rng, named=True), rng, 40)
    yield "licences of one name", revised(licences(rng, named=False), rng, 40)
    yield "notices", revised(notices(programs, rng), rng, 150)


def pairs_of_words(text: str) -> set[tuple[str, str]]:
    return set(pairwise(re.findall(r"\w+", text.lower())))


def score(pages: Sequence[Page], **choices: Any) -> dict[str, float]:
    """Precision, recall and F1 of all pairs in the clusters, and how many pairs were wrong."""
    what = {page.id: page.what for page in pages}
    text = {page.id: page.text for page in pages}
    result = nd.dedupe([{"id": page.id, "text": page.text} for page in pages], guards=False, **choices)
    clusters: dict[str, list[str]] = {}
    for row in result.annotations.to_pylist():
        clusters.setdefault(row["cluster"], []).append(row["id"])
    right = wrong = 0
    for ids in clusters.values():
        for one, other in combinations(ids, 2):
            if what[one] == what[other]:
                right += 1
                continue
            ours, theirs = pairs_of_words(text[one]), pairs_of_words(text[other])
            licence = what[one].startswith(("licence-", "notice-"))
            wrong += licence or len(ours & theirs) < ALIKE * len(ours | theirs)
    members: dict[str, int] = {}
    for page in pages:
        members[page.what] = members.get(page.what, 0) + 1
    true = sum(count * (count - 1) // 2 for count in members.values())
    precision, recall = right / max(1, right + wrong), right / max(1, true)
    f1 = 2 * precision * recall / max(1e-9, precision + recall)
    return {
        "documents": len(pages),
        "true": true,
        "wrong": wrong,
        "f1": f1,
        "precision": precision,
        "recall": recall,
    }


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--man", type=Path, default=Path("/usr/share/man"), help="folder with manual pages")
    parser.add_argument(
        "--packages", type=Path, default=Path(nd.__file__).parent, help="folder with Python code"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--verify", action="append", help="only by these rules")
    results.add_out(parser)
    chosen = parser.parse_args(arguments)
    rows = []
    print("| set | rule | documents | true pairs | F1 | precision | recall |\n|---|---|---|---|---|---|---|")
    for name, pages in kinds(chosen.man, chosen.packages, chosen.seed):
        for rule in chosen.verify or ("strict", "high", "default", "loose"):
            found = score(pages, verify=rule)
            rows.append({"work": f"quality of {name}", "engine": f"neardup, {rule}", **found})
            cells = [name, rule, f"{found['documents']:,}", f"{found['true']:,}"]
            cells += [f"{found[figure]:.3f}" for figure in ("f1", "precision", "recall")]
            print("| " + " | ".join(cells) + " |", flush=True)
    results.write(rows, chosen.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
