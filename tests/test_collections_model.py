"""A collection against a dict and brute force, through any order of calls, restarts and kills.

`NEARDUP_MODEL=10000 pytest tests/test_collections_model.py` makes that many runs.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import neardup as nd
from neardup.collections import Collection
from neardup.collections.shelves import NEAREST, read_scheme
from neardup.radius import radius_for
from neardup.verifiers import judged_pairs, parse_measure

from .articles import article, quickly
from .test_collections import check_stars

RUNS = int(os.environ.get("NEARDUP_MODEL", "10"))
SIMILARITY = 0.64

ids = st.sampled_from([f"d{row}" for row in range(8)])
texts = st.builds(article, st.integers(0, 3), st.integers(0, 3)) | st.sampled_from(["", "...", "one word"])
banks = st.sampled_from(["main", "wire", "own"])


class Machine(RuleBasedStateMachine):
    """What a user may do to a collection, and what must be true after each step."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.mkdtemp(prefix="model-")
        self.now = 1000
        self.held: dict[str, dict[str, Any]] = {}
        self.said: dict[frozenset[str], str] = {}
        self.clusters: dict[int, set[str]] = {}
        self.open()
        self.reader = Collection.open(self.path, read_only=True, clock=lambda: self.now)

    @property
    def path(self) -> str:
        return os.path.join(self.folder, "c.nd")

    def open(self) -> None:
        self.news = quickly(Collection.open(self.path, create=True, clock=lambda: self.now))

    def teardown(self) -> None:
        self.reader.close()
        self.news.close()
        shutil.rmtree(self.folder)

    # --- what a user does ---------------------------------------------------------------------------------

    @initialize(docs=st.lists(st.tuples(ids, texts), max_size=6))
    def fill(self, docs: list[tuple[str, str]]) -> None:
        self.add([(id, text, 0) for id, text in docs], "main", "tell", None)

    @rule(
        docs=st.lists(st.tuples(ids, texts, st.integers(0, 2)), max_size=4),
        bank=banks,
        near=st.sampled_from(["tell", "skip", "none"]),
        expires=st.none() | st.integers(1, 20),
    )
    def add(self, docs: list[tuple[str, str, int]], bank: str, near: str, expires: int | None) -> None:
        given = [{"id": id, "text": text, "n": n} for id, text, n in docs]
        answers = self.news.add(given, bank=bank, near=near, expires_after=expires)
        end = None if expires is None else self.now + expires
        for (id, text, n), answer in zip(docs, answers, strict=True):
            old = self.visible().get(id)
            if old is not None and old["bank"] != bank:
                assert answer.status == "bad"
                continue
            same = [one for one, row in self.visible().items() if row["text"] == text and one != id]
            if old is None:
                assert answer.stored or near == "skip"
                if near != "none":
                    assert (answer.status == "identical") == bool(same)
                if not answer.stored:
                    assert answer.matches
                    continue
            elif old["text"] == text:
                assert answer.status == ("unchanged" if old["n"] == n else "updated")
                end = old["expires"] if expires is None else end
            else:
                assert answer.status == "updated"
            self.held[id] = {"text": text, "bank": bank, "n": n, "expires": end}
            end = None if expires is None else self.now + expires

    @rule(gone=st.lists(ids, max_size=3))
    def remove(self, gone: list[str]) -> None:
        held = {id for id in gone if id in self.held and id in self.known()}
        assert self.news.remove(gone) == len(held)
        for id in held:
            del self.held[id]

    @rule(id=ids, n=st.integers(0, 9))
    def update(self, id: str, n: int) -> None:
        if id in self.visible():
            self.news.update(id, fields={"n": n})
            self.held[id]["n"] = n

    @rule(seconds=st.integers(1, 15))
    def wait(self, seconds: int) -> None:
        self.now += seconds

    @rule()
    def expire(self) -> None:
        gone = [
            id for id, row in self.held.items() if row["expires"] is not None and row["expires"] <= self.now
        ]
        assert self.news.expire() == len(gone)
        for id in gone:
            del self.held[id]

    @rule(one=ids, other=ids, verdict=st.sampled_from(["same", "different", "unsure"]))
    def say(self, one: str, other: str, verdict: str) -> None:
        held = self.visible()
        if one in held and other in held and held[one]["text"] != held[other]["text"]:
            self.news.verdict(one, other, verdict)
            self.said[frozenset((held[one]["text"], held[other]["text"]))] = verdict

    @rule()
    def refit(self) -> None:
        self.news.refit()

    @rule()
    def rebuild(self) -> None:
        self.news.rebuild()

    @rule()
    def reopen(self) -> None:
        self.news.close()
        self.open()

    @rule()
    def kill(self) -> None:
        """What a killed process leaves: its lock is gone, and nothing was tidied up."""
        base: Any = self.news._store.base
        base._lock.forget()
        self.open()

    @precondition(lambda self: len(self.held) > 2)
    @rule()
    def back_up_and_restore(self) -> None:
        copy = os.path.join(self.folder, "copy.nd")
        self.news.backup(copy)
        with Collection.open(copy, as_new=True, clock=lambda: self.now) as made:
            assert made.search(text=article(1)) == self.news.search(text=article(1))
        shutil.rmtree(copy)

    # --- what must be true --------------------------------------------------------------------------------

    def known(self) -> set[str]:
        return set(self.held)

    def visible(self) -> dict[str, dict[str, Any]]:
        return {
            id: row for id, row in self.held.items() if row["expires"] is None or row["expires"] > self.now
        }

    @rule(text=texts, chosen=st.sampled_from([None, ["wire"], ["-own"], ["w*", "main"]]))
    def search(self, text: str, chosen: list[str] | None) -> None:
        known = {row["bank"] for row in self.news.banks()}
        if chosen == ["wire"] and "wire" not in known:
            return
        names = {None: known, "wire": {"wire"}, "-own": known - {"own"}, "w*": known & {"wire", "main"}}
        inside = names[None if chosen is None else chosen[0]]
        found = self.news.search(text=text, banks=chosen, limit=1000)
        assert found == self.reader.search(text=text, banks=chosen, limit=1000)
        told = {match.id: (match.reason, match.similarity, match.fields["n"]) for match in found}
        expected = {id: row for id, row in self.near(text).items() if self.held[id]["bank"] in inside}
        assert told == {id: (*row, self.held[id]["n"]) for id, row in expected.items()}

    def near(self, text: str) -> dict[str, tuple[str, float]]:
        """The visible documents that are near a text, by brute force."""
        live = self.news._shelf.lives["text"]
        scheme = read_scheme(self.news._store, live.generation.digest)
        radius = radius_for(SIMILARITY, 0.95, 256)
        held = {row["text"] for row in self.visible().values()}
        value = scheme.fingerprint(text)
        others: list[tuple[int, str]] = []
        prints = {other: scheme.fingerprint(other) for other in held if other != text}
        for other, own in prints.items():
            same = self.said.get(frozenset((text, other))) == "same"
            if value is not None and own is not None and (value ^ own).bit_count() <= radius:
                others.append(((value ^ own).bit_count(), other))
            elif same:
                others.append((256, other))
        assert len(others) < NEAREST
        found = dict.fromkeys(held & {text}, ("identical text", 1.0))
        names = [other for _, other in others]
        pairs = [(text, other) for other in names]
        for at, one in enumerate(names):
            for other in names[at + 1 :]:
                left, right = prints[one], prints[other]
                if left is not None and right is not None and (left ^ right).bit_count() <= radius:
                    pairs.append((one, other))
        measure = parse_measure("default", SIMILARITY)
        verdicts = judged_pairs(pairs, measure, scheme.frequencies, open=True) if names else []
        for other, verdict in zip(names, verdicts, strict=False):
            said = self.said.get(frozenset((text, other)))
            if said == "same":
                found[other] = ("said to be the same", verdict.similarity)
            elif said is None and verdict.accepted:
                found[other] = (verdict.reason, verdict.similarity)
        return {id: found[row["text"]] for id, row in self.visible().items() if row["text"] in found}

    @rule(keep=st.sampled_from(["longest", "first", "central,longest"]))
    def dedupe(self, keep: str) -> None:
        docs = [{"id": row["id"], "text": row["text"]} for row in self.news.documents()]
        texts = {row["text"] for row in self.visible().values()}
        if docs and not any(pair <= texts for pair in self.said):
            ours, theirs = self.news.dedupe(keep=keep), nd.dedupe(docs, keep=keep)
            assert ours.annotations.equals(theirs.annotations)
            assert ours.evidence.equals(theirs.evidence)
        elif docs:
            rows = self.news.dedupe(keep=keep, guards=False).annotations.to_pylist()
            cluster: dict[str, set[str]] = {}
            for row in rows:
                cluster.setdefault(row["cluster"], set()).add(self.held[row["id"]]["text"])
            self.none_apart(list(cluster.values()))

    def none_apart(self, clusters: list[set[str]]) -> None:
        for pair, verdict in self.said.items():
            if verdict == "different":
                assert not any(pair <= members for members in clusters)

    @invariant()
    def everything_is_there(self) -> None:
        assert len(self.news) == len(self.held) == len(self.reader)
        found = {row["id"]: (row["text"], row["bank"], row["fields"]["n"]) for row in self.reader.documents()}
        assert found == {id: (row["text"], row["bank"], row["n"]) for id, row in self.visible().items()}

    @invariant()
    def every_cluster_is_a_star(self) -> None:
        check_stars(self.news)
        clusters = self.news.clusters()
        self.none_apart([{self.held[one.id]["text"] for one in each.members} for each in clusters])

    @invariant()
    def every_byte_is_right(self) -> None:
        assert self.news.check() == []
        assert [json.loads(json.dumps(row)) for row in self.reader.changes()] == list(self.news.changes())


Machine.TestCase.settings = settings(
    max_examples=RUNS,
    stateful_step_count=20,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    derandomize="NEARDUP_MODEL" not in os.environ,
    database=None,
)
TestCollection = Machine.TestCase
