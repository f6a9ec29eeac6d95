"""A trie: words by their letters, so that the longest one at a place in a text is found in one walk."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any


class Trie:
    """A set of words.

    >>> trie = Trie(["the", "then"])
    >>> "the" in trie, "th" in trie, trie.longest("thenceforth"), sorted(trie)
    (True, False, 'then', ['the', 'then'])
    """

    __slots__ = ("_count", "_root")

    _END = ""  # no letter is empty

    def __init__(self, words: Iterable[str] = ()) -> None:
        self._root: dict[str, Any] = {}
        self._count = 0
        for word in words:
            self.add(word)

    def add(self, word: str) -> None:
        """Put a word in."""
        node = self._root
        for letter in word:
            node = node.setdefault(letter, {})
        self._count += self._END not in node
        node[self._END] = True

    def __contains__(self, word: object) -> bool:
        if not isinstance(word, str):
            return False
        node = self._root
        for letter in word:
            if letter not in node:
                return False
            node = node[letter]
        return self._END in node

    def longest(self, text: str, start: int = 0) -> str:
        """The longest word that begins at *start*; empty where none does."""
        node, end = self._root, start
        for at in range(start, len(text)):
            if text[at] not in node:
                break
            node = node[text[at]]
            if self._END in node:
                end = at + 1
        return text[start:end]

    def __iter__(self) -> Iterator[str]:
        stack = [("", self._root)]
        while stack:
            word, node = stack.pop()
            for letter, below in node.items():
                if letter == self._END:
                    yield word
                else:
                    stack.append((word + letter, below))

    def __len__(self) -> int:
        return self._count
