"""Articles for the tests of collections: a few families, whose members are each other's near-duplicates."""

from __future__ import annotations

import random
from typing import Any

from neardup.collections import Collection

WORDS = [
    f"{a}{b}{c}" for a in "bdfgklmnprstvz" for b in ("an", "el", "or", "ui") for c in ("da", "ko", "mi", "te")
]


def article(family: int, edition: int = 0, words: int = 60) -> str:
    """A text of its family; editions differ in a few words."""
    chosen = random.Random(family)
    text = [chosen.choice(WORDS) + str(chosen.randint(0, 9)) for _ in range(words)]
    changed = random.Random(f"{family} {edition}")
    for _ in range(min(edition, 3)):
        text[changed.randrange(words)] = changed.choice(WORDS)
    return " ".join(text)


def quickly(news: Collection) -> Collection:
    """The same without waiting for the disk at each commit: what a crash leaves is tested elsewhere."""
    base: Any = news._store.base
    base.select("PRAGMA synchronous=OFF")
    return news


def documents(count: int, families: int, seed: int = 0) -> list[dict[str, object]]:
    """Documents of some families, in a random order."""
    order = random.Random(seed)
    return [
        {"id": f"d{row}", "text": article(order.randrange(families), order.randrange(4)), "row": row}
        for row in range(count)
    ]
