"""How good the verified clusters are on labelled collections, with one setting for all of them.

    python benchmarks/quality.py --data DIR
    python benchmarks/quality.py --data DIR --learn
    python benchmarks/quality.py --data DIR --images

Every collection of DATA/data goes through `neardup.dedupe` as a user would call it; DATA/score.py
(and DATA/score_sure.py, where some labels are in doubt) judge the annotated clusters. Prints a
table for each setting. Exit 1 if the default misses a target. The folder DIR is described in labelled.py;
images: see quality_images.py. With --learn, a rule is learned from labels of one half of a collection, and
the other half is scored by the default and by that rule.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import random
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import neardup as nd
from neardup.calibration import Choices, Label, calibrate
from neardup.verifiers import IDENTICAL, SPELLED

sys.path.insert(0, str(Path(__file__).parent))
import results
from labelled import add_data


@dataclass(frozen=True)
class Target:
    """What the default must reach; with *sure*, pairs whose label is in doubt count on neither side."""

    f1: float
    precision: float = 0.93
    sure: bool = False


TARGETS = {
    "web": Target(0.97, precision=0.98),
    "multi": Target(0.98, precision=0.99),
    "short": Target(0.985, precision=0.99),
    "revisions": Target(0.99, precision=0.99),
    "articles": Target(1.0, precision=0.99),
    "dblp_acm": Target(0.88, precision=0.98),
    "advisories": Target(0.98, precision=0.98, sure=True),
    "debdesc": Target(0.88, precision=0.93, sure=True),
}
# Families of templates, of which nobody but the user knows what is the same.
LEARNED = ("debdesc", "advisories")
# The first one is what the targets are for.
SETTINGS: dict[str, dict[str, Any]] = {
    "default": {},
    "highest": {"precision": "highest"},
    "high": {"precision": "high"},
    "low": {"precision": "low"},
    "default, --keep longest": {"keep": "longest"},
}


@dataclass(frozen=True)
class Score:
    """What a scorer said about the clusters of one collection."""

    precision: float
    recall: float
    f1: float
    ari: float
    seconds: float
    removed: int
    labels: tuple[float, float, float] | None = None
    """Precision, recall and F1 with the labels in doubt, where those above are without."""
    reasons: dict[str, tuple[int, int]] | None = None
    """Reason -> accepted pairs of different texts that are right, and all of them."""

    def holds(self, target: Target) -> bool:
        """Whether both figures reach the target."""
        return self.f1 >= target.f1 and self.precision >= target.precision


def documents(path: Path) -> list[dict[str, str]]:
    """Ids and texts: what a user has. The labels stay in the file."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [{"id": row["id"], "text": row["text"]} for row in map(json.loads, lines)]


def score(data: Path, name: str, choices: Mapping[str, Any], threads: int | None) -> Score:
    """Deduplicate one collection and have it judged."""
    truth = data / "data" / f"{name}.jsonl.gz"
    rows = documents(truth)
    start = time.perf_counter()
    result = nd.dedupe(rows, threads=threads, **choices)
    seconds = time.perf_counter() - start
    columns = (result.annotations.column(column).to_pylist() for column in ("id", "cluster"))
    clusters: dict[str, list[str]] = {}
    for id, cluster in zip(*columns, strict=True):
        clusters.setdefault(cluster, []).append(id)
    with tempfile.TemporaryDirectory() as folder:
        labels, pairs = Path(folder, "clusters.tsv"), Path(folder, "pairs.tsv")
        labels.write_text("".join(f"{id}\t{name}\n" for name, ids in clusters.items() for id in ids))
        pairs.write_text("".join(f"{a}\t{b}\n" for ids in clusters.values() for a, b in combinations(ids, 2)))
        said = json.loads(run(data / "score.py", truth, "--clusters", labels, "--json"))
        found = said["closure_precision"], said["closure_recall"], said["closure_f1"]
        in_doubt = None
        if TARGETS[name].sure:
            in_doubt = found
            doubtful = data / "data" / f"{name}.uncertain.tsv"
            found = sure_figures(run(data / "score_sure.py", truth, pairs, doubtful))
    reasons = by_reason(truth, result.evidence)
    return Score(*found, said["ari"], seconds, result.summary["removed"], in_doubt, reasons)


def by_reason(truth: Path, evidence: Any) -> dict[str, tuple[int, int]]:
    """How often each reason to accept a pair was right; pairs whose label is in doubt are left out."""
    with gzip.open(truth, "rt", encoding="utf-8") as lines:
        cluster = {row["id"]: row["cluster"] for row in map(json.loads, lines)}
    doubtful = doubtful_pairs(truth)
    counts: dict[str, list[int]] = {}
    for row in evidence.to_pylist():
        one, other = row["keeper"], row["id"]
        if row["accepted"] and row["reason"] not in (IDENTICAL, SPELLED) and {one, other} not in doubtful:
            count = counts.setdefault(row["reason"], [0, 0])
            count[0] += cluster[one] == cluster[other]
            count[1] += 1
    return {rule: (right, all) for rule, (right, all) in sorted(counts.items())}


def doubtful_pairs(truth: Path) -> set[frozenset[str]]:
    """The pairs of a collection whose label is in doubt."""
    doubtful = set()
    listed = truth.with_name(truth.name.replace(".jsonl.gz", ".uncertain.tsv"))
    if listed.exists():
        for line in listed.read_text(encoding="utf-8").splitlines():
            one, other, kind, similarity = line.split("\t")[:4]
            if kind != "neg-alike" or float(similarity) >= 0.85:  # as score_sure.py does
                doubtful.add(frozenset((one, other)))
    return doubtful


def reason_table(title: str, scores: Mapping[str, Score]) -> str:
    """The precision of each reason, over all pairs together and by collection."""
    rules = sorted({rule for one in scores.values() for rule in one.reasons or {}})
    head = ["reason", "all", *scores]
    lines = [f"**{title}: accepted pairs that are right**", ""]
    lines += ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for rule in rules:
        found = [(one.reasons or {}).get(rule, (0, 0)) for one in scores.values()]
        found.insert(0, (sum(right for right, _ in found), sum(all for _, all in found)))
        cells = [f"{right / all:.3f} of {all:,}" if all else "" for right, all in found]
        lines.append("| " + " | ".join([rule, *cells]) + " |")
    return "\n".join(lines) + "\n"


def run(script: Path, *arguments: Any) -> str:
    """What a scorer prints."""
    command = [sys.executable, str(script), *map(str, arguments)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def sure_figures(text: str) -> tuple[float, float, float]:
    """Precision, recall and F1 of the pairs whose label is beyond doubt."""
    found = re.search(r"^sure\s+P ([\d.]+) R ([\d.]+) F1 ([\d.]+)", text, re.MULTILINE)
    if found is None:
        raise SystemExit(f"score_sure.py said nothing that is understood: {text[:200]!r}")
    precision, recall, f1 = map(float, found.groups())
    return precision, recall, f1


def table(title: str, scores: Mapping[str, Score], *, judged: bool) -> str:
    """One setting as a markdown table; with *judged*, whether each target holds."""
    head = ["set", "F1", "precision", "recall", "ARI", "removed", "s"]
    if judged:
        head[1:1] = ["target F1 / precision", "holds"]
    lines = [f"**{title}**", "", "| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for name, one in scores.items():
        target = TARGETS[name]
        cells = [name + (" (sure)" if target.sure else "")]
        if judged:
            cells += [f"{target.f1:.2f} / {target.precision:.2f}", "yes" if one.holds(target) else "**no**"]
        cells += [f"{figure:.4f}" for figure in (one.f1, one.precision, one.recall, one.ari)]
        cells += [f"{one.removed:,}", f"{one.seconds:.1f}"]
        lines.append("| " + " | ".join(cells) + " |")
        if one.labels is not None:
            precision, recall, f1 = one.labels
            blank = ["", ""] if judged else []
            cells = [f"{name}, doubtful labels too", *blank, f"{f1:.4f}", f"{precision:.4f}", f"{recall:.4f}"]
            lines.append("| " + " | ".join([*cells, "", "", ""]) + " |")
    return "\n".join(lines) + "\n"


@dataclass(frozen=True)
class Learnt:
    """What a rule that was learned on one half of a collection does on the other: means over the draws."""

    name: str
    rule: str
    precision: float
    recall: float
    f1: float
    draws: tuple[float, ...]
    """F1 of each draw."""


def halves(rows: Sequence[Mapping[str, str]]) -> list[list[Mapping[str, str]]]:
    """Two halves that share no cluster."""
    digests = [hashlib.blake2b(row["cluster"].encode(), digest_size=1).digest()[0] & 1 for row in rows]
    return [[row for row, at in zip(rows, digests, strict=True) if at == half] for half in (0, 1)]


def drawn(rows: Sequence[Mapping[str, str]], count: int, draw: int, threads: int | None) -> list[Label]:
    """*count* labelled pairs: half of what the default accepts, half of what it rejects from 0.64 on."""
    cluster = {row["id"]: row["cluster"] for row in rows}
    texts = [{"id": row["id"], "text": row["text"]} for row in rows]
    evidence = nd.dedupe(texts, guards=False, threads=threads).evidence.to_pylist()
    open_ = [
        row for row in evidence if row["reason"] not in (IDENTICAL, SPELLED) and row["similarity"] >= 0.64
    ]
    chance, found = random.Random(draw), []
    for accepted in (True, False):
        some = [row for row in open_ if row["accepted"] is accepted]
        for row in chance.sample(some, min(count // 2, len(some))):
            one, other = row["keeper"], row["id"]
            found.append(Label(one, other, cluster[one] == cluster[other]))
    return found


def pair_figures(rows: Sequence[Mapping[str, str]], choices: Mapping[str, Any]) -> tuple[float, float, float]:
    """Precision, recall and F1 over all pairs inside clusters, whatever is in doubt."""
    texts = [{"id": row["id"], "text": row["text"]} for row in rows]
    result = nd.dedupe(texts, guards=False, **choices)
    ids, clusters = (result.annotations.column(name).to_pylist() for name in ("id", "cluster"))
    found, truth = dict(zip(ids, clusters, strict=True)), {row["id"]: row["cluster"] for row in rows}

    def pairs(groups: Iterable[Any]) -> int:
        return sum(count * (count - 1) // 2 for count in Counter(groups).values())

    right = pairs((found[id], truth[id]) for id in truth)
    precision, recall = right / max(pairs(found.values()), 1), right / max(pairs(truth.values()), 1)
    return precision, recall, 2 * precision * recall / max(precision + recall, 1e-9)


def learnt(data: Path, name: str, labels: int, draws: int, threads: int | None) -> list[Learnt]:
    """The default and a learned rule on the half that no label is from; each half is once that."""
    with gzip.open(data / "data" / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        both = halves([json.loads(line) for line in lines])
    found: dict[str, list[tuple[float, float, float]]] = {"default": [], "learned": []}
    for draw in range(draws):
        own, other = both[draw % 2], both[1 - draw % 2]
        answers = drawn(own, labels, draw, threads)
        texts = [{"id": row["id"], "text": row["text"]} for row in own]
        rule = calibrate(texts, labels=answers, choices=Choices(copies=1), threads=threads).learned
        found["default"].append(pair_figures(other, {"threads": threads}))
        found["learned"].append(pair_figures(other, {"threads": threads, "rule": rule}))
    learned = []
    for judge, rows in found.items():
        precision, recall, f1 = (sum(column) / draws for column in zip(*rows, strict=True))
        learned.append(Learnt(name, judge, precision, recall, f1, tuple(one for *_, one in rows)))
    return learned


def learnt_table(rows: Sequence[Learnt], labels: int) -> str:
    """The figures of learned rules beside those of the default."""
    lines = [f"**learned from {labels} labels, scored on the other half, all labels**", ""]
    lines += ["| set | rule | F1 | precision | recall | F1 of each draw |", "|---" * 6 + "|"]
    for one in rows:
        figures = f"{one.f1:.3f} | {one.precision:.3f} | {one.recall:.3f}"
        draws = ", ".join(f"{f1:.3f}" for f1 in one.draws)
        lines.append(f"| {one.name} | {one.rule} | {figures} | {draws} |")
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    add_data(parser, "score.py and data/, for --images gen_images.py and images_pool/")
    parser.add_argument("--set", action="append", choices=list(TARGETS), help="only these collections")
    parser.add_argument("--setting", action="append", choices=list(SETTINGS), help="only these settings")
    parser.add_argument("--similarity", type=float, help="another similarity, for all of them")
    parser.add_argument("--bits", type=int, help="another width of fingerprints, for all of them")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--images", action="store_true", help="score images, beside their peers, instead")
    parser.add_argument("--reasons", action="store_true", help="how often each reason to accept is right")
    parser.add_argument("--learn", action="store_true", help="score rules learned from labels, instead")
    parser.add_argument("--labels", type=int, default=100, help="labels of a draw, with --learn")
    parser.add_argument("--draws", type=int, default=3, help="draws of labels, with --learn")
    results.add_out(parser)
    chosen = parser.parse_args(arguments)
    if chosen.images:
        images = Path(__file__).with_name("quality_images.py")
        return subprocess.run([sys.executable, images, "--data", chosen.data], check=False).returncode
    if chosen.learn:
        learned = [
            one
            for name in chosen.set or LEARNED
            for one in learnt(chosen.data, name, chosen.labels, chosen.draws, chosen.threads)
        ]
        print(learnt_table(learned, chosen.labels), flush=True)
        results.write(
            [
                {"work": f"quality of {one.name}", "engine": f"neardup, {one.rule}", **asdict(one)}
                for one in learned
            ],
            chosen.out,
        )
        return 0
    settings = chosen.setting or list(SETTINGS)
    missed: list[str] = []
    figures: dict[str, dict[str, Any]] = {}
    for setting in settings:
        choices = dict(SETTINGS[setting])
        if chosen.similarity is not None:
            choices["similarity"] = chosen.similarity
        if chosen.bits is not None:
            choices["scheme"] = nd.scheme("text", bits=chosen.bits)
        scores = {name: score(chosen.data, name, choices, chosen.threads) for name in chosen.set or TARGETS}
        judged = setting == next(iter(SETTINGS))
        print(table(setting, scores, judged=judged), flush=True)
        if chosen.reasons:
            print(reason_table(setting, scores), flush=True)
        if judged:
            missed = [name for name, one in scores.items() if not one.holds(TARGETS[name])]
        figures[setting] = {
            name: {field: getattr(one, field) for field in Score.__dataclass_fields__}
            for name, one in scores.items()
        }
    rows = [
        {"work": f"quality of {name}", "engine": f"neardup, {setting}", **one}
        for setting, scores in figures.items()
        for name, one in scores.items()
    ]
    results.write(rows, chosen.out)
    if missed:
        print(f"missed: {', '.join(missed)}", file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
