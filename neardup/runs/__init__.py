"""Runs: folders that hold what a deduplication found (docs/formats/run.md).

`folders` knows the names of the files, `manifests` what a run says of itself, `run` reads a finished one
again, `writing` makes one of a result, `pages` and `views` its report, `comparisons` tells two apart.
"""

from __future__ import annotations

from neardup.runs.comparisons import Change, Differences, compare_runs
from neardup.runs.folders import ANNOTATIONS, EVIDENCE, SCHEME
from neardup.runs.manifests import MANIFEST, Asked, Input, sealed
from neardup.runs.run import Run

__all__ = [
    "ANNOTATIONS",
    "EVIDENCE",
    "MANIFEST",
    "SCHEME",
    "Asked",
    "Change",
    "Differences",
    "Input",
    "Run",
    "compare_runs",
    "sealed",
]
