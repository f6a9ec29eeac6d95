"""What a search takes unless the user says otherwise; loads nothing, so that --help is quick."""

from __future__ import annotations

from typing import Final

# A passage has this many words, or more.
WORDS: Final = 30
# Of a run of words that more training documents have, or that has more places in the test set, passages are
# listed for this many.
MOST: Final = 16
# In what the tables are written.
FORMATS: Final = ("parquet", "jsonl", "csv")
