"""Collections: documents that are kept, searched while they come, and compared with all that is stored.

`Collection` keeps them in a folder; `Stream` answers one question, seen before or not, in memory or in a
collection.
"""

from __future__ import annotations

from neardup.collections.collection import Collection
from neardup.collections.matches import Added, Answer, Cluster, Match, Member
from neardup.collections.streams import Seen, Stream

__all__ = ["Added", "Answer", "Cluster", "Collection", "Match", "Member", "Seen", "Stream"]
