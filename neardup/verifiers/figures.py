"""Figures: what a learned rule looks at in a pair of texts, one row each.

The core computes them (src/verify/figures.rs), in ten-thousandths, rounded down. They say nothing of how
much a figure counts: that is learned from a person's answers, for one collection, and kept in a file of its
own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

# Rules that were learned rest on what the figures mean. Where that changes, so does this number: the figures
# themselves, their order, or what the default rule accepts.
VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure: its name, what it is, and what can be said of a pair that has more, or less, of it."""

    name: str
    what: str
    more: str
    less: str


# In the order of the core, which a test compares.
FIGURES: Final = (
    Figure("similarity", "the plain cosine", "alike in most of the text", "alike in less of the text"),
    Figure(
        "weighted",
        "the same, where common text counts little",
        "alike in more than common text",
        "alike in common text",
    ),
    Figure("rare", "the same, over text that few documents have", "alike in rare text", "rare text differs"),
    Figure(
        "features", "share of all features that both have", "most features shared", "fewer features shared"
    ),
    Figure("words", "share of all words that both have", "most words shared", "fewer words shared"),
    Figure(
        "pairs",
        "the same of pairs of neighbouring words",
        "most pairs of words shared",
        "fewer pairs of words shared",
    ),
    Figure(
        "triples",
        "the same of three words in a row",
        "most runs of words shared",
        "fewer runs of words shared",
    ),
    Figure(
        "contained",
        "share of the runs of three words of one that the other has",
        "one holds most of the other",
        "neither holds the other",
    ),
    Figure(
        "edited-less",
        "share of the words in gaps, of the text that has less in them",
        "both have words of their own",
        "one has few words of its own",
    ),
    Figure(
        "edited-more",
        "the same, of the text that has more in them",
        "one has many words of its own",
        "neither has many words of its own",
    ),
    Figure(
        "passage",
        "longest gap, as a share of the text, of the side where that is less",
        "a longer passage replaced",
        "no long passage replaced",
    ),
    Figure(
        "lengths", "words of the shorter text for each of the longer", "about as long", "of other lengths"
    ),
    Figure("length", "how long the shorter text is, by doublings", "longer texts", "shorter texts"),
    Figure("numbers", "share of all numbers that both have", "the same numbers", "fewer numbers shared"),
    Figure(
        "other-numbers",
        "how many numbers only one has, of the side that has fewer",
        "each has numbers of its own",
        "not both have numbers of their own",
    ),
    Figure(
        "more-numbers",
        "the same, of the side that has more",
        "one has numbers of its own",
        "hardly a number of its own",
    ),
    Figure(
        "opening",
        "how many of the first 12 words are the same, before the first other one",
        "the same opening",
        "another opening",
    ),
    Figure(
        "first-words",
        "share of the first 12 words that both have",
        "the same first words",
        "other first words",
    ),
    Figure(
        "other-names",
        "how many of the first 24 words the other never has, of the side with fewer",
        "each names what the other never has",
        "not both name what the other never has",
    ),
    Figure(
        "more-names",
        "the same, of the side with more",
        "one names what the other never has",
        "nothing named that the other lacks",
    ),
    Figure(
        "ending",
        "how many of the last 12 words are the same, up to the last other one",
        "the same ending",
        "another ending",
    ),
    Figure(
        "alone",
        "whether the default rule accepts the pair as if there were no other document",
        "the default accepts it by itself",
        "the default rejects it by itself",
    ),
    Figure(
        "default",
        "whether the default rule accepts the pair among its neighbours",
        "the default accepts it",
        "the default rejects it",
    ),
)
NAMES: Final = tuple(figure.name for figure in FIGURES)
