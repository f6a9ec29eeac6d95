"""The documents that a calibration looks at, and the edited copies that it plants among them."""

from __future__ import annotations

import hashlib
import heapq
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from neardup.calibration.model import Choices
from neardup.edits import EDITS, FEWEST_WORDS, Edit, Vocabulary, edited, word_count
from neardup.errors import InvalidValue
from neardup.observers import SILENT, Observer, watching
from neardup.schemes import Scheme
from neardup.schemes.fitting import fit_batches
from neardup.sources import Source
from neardup.verifiers import measuring_scheme

ROUNDS: Final = 10


def take_sample(
    source: Source,
    size: int,
    seed: int,
    wanted: set[str],
    *,
    threads: int | None = None,
    observer: Observer = SILENT,
) -> tuple[dict[str, str], Scheme]:
    """Texts by id, of *size* documents and of those that are *wanted*; and how common features are in all.

    Which ones does not depend on the order of the input: those whose id has the smallest hash.
    """
    heap: list[tuple[int, str, str]] = []
    asked: dict[str, str] = {}

    def texts() -> Iterator[Any]:
        for batch in source:
            for id, text in zip(batch.ids.to_pylist(), batch.texts.to_pylist(), strict=True):
                if id in wanted or id.strip() in wanted:
                    asked[id] = text
                # The heap has the largest on top: what is to go next.
                place = -hash_of(seed, id)
                if len(heap) < size:
                    heapq.heappush(heap, (place, id, text))
                elif place > heap[0][0]:
                    heapq.heapreplace(heap, (place, id, text))
            yield batch.texts

    with watching(observer, source), observer.stage("sample", total=source.size) as advance:
        whole = fit_batches(
            measuring_scheme(),
            texts(),
            threads=threads,
            after=lambda documents: advance(documents, source.consumed),
        )
    chosen = {id: text for _, id, text in sorted(heap, reverse=True)}
    return {**chosen, **{id: asked[id] for id in sorted(asked) if id not in chosen}}, whole


def hash_of(seed: int, text: str) -> int:
    """A number for each seed and text, the same everywhere."""
    key = f"{seed}:{text}".encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(key, digest_size=8).digest(), "little")


@dataclass(frozen=True, slots=True)
class Copy:
    """An edited copy: of which document, and how it was changed."""

    of: int
    edit: Edit
    text: str


def plant(ids: Sequence[str], texts: Sequence[str], choices: Choices) -> list[list[Copy]]:
    """The edited copies of each round: never two of one document, and of at most a third of them.

    Many copies of one text would be a cluster, with neighbours that a single copy does not have.
    """
    vocabulary = Vocabulary(texts)
    able = [row for row, text in enumerate(texts) if word_count(text) >= FEWEST_WORDS]
    if not able:
        raise InvalidValue(
            f"no document of the input has {FEWEST_WORDS} words or more; there is nothing to calibrate on"
        )
    size = max(1, len(able) // 3)
    made: list[Copy] = []
    for number in range(min(choices.copies, size * ROUNDS)):
        row = able[number % len(able)]
        # Another kind for the same document in each turn.
        edit = EDITS[(number + number // len(able)) % len(EDITS)]
        donor = texts[able[(number + 1 + number // len(able)) % len(able)]]
        chance = random.Random(hash_of(choices.seed, f"{ids[row]}:{edit.name}"))
        text = edited(texts[row], edit, vocabulary, donor, chance)
        made.append(Copy(row, edit, text))
    rounds = [made[at : at + size] for at in range(0, len(made), size)]
    # An edit that has nothing to work on (no paragraphs to move) leaves the text as it is.
    return [[copy for copy in one if copy.text != texts[copy.of]] for one in rounds]
