"""Quotations: what of one set of documents is in another, as whole documents and as passages.

A passage that very many training documents share is counted in all of them and listed for the first ones
only. Which documents share something, and how much of each, is exact whatever is common.
"""

from __future__ import annotations

from neardup.quotations.defaults import FORMATS, MOST, WORDS
from neardup.quotations.model import Leaks
from neardup.quotations.page import write_page
from neardup.quotations.search import leaks
from neardup.quotations.writing import write_leaks

__all__ = ["FORMATS", "MOST", "WORDS", "Leaks", "leaks", "write_leaks", "write_page"]
