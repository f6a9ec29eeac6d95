"""The folder of labelled collections that the quality benchmarks read. It is not part of this repository.

What is expected in it:

    data/NAME.jsonl.gz          one document per line: `id`, `text`, `lang`, `cluster` (shared by duplicates)
    data/NAME.uncertain.tsv     pairs whose label is in doubt: id, id, `neg-alike` or `pos-weak`, similarity
    score.py, score_sure.py     judge clusters and pairs against such files
    images_pool/, gen_images.py images, and the script that makes a labelled set of them

NAME is one of `quality.TARGETS`. A script that reads only a part of this says which.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

VARIABLE = "NEARDUP_QUALITY"


def add_data(parser: argparse.ArgumentParser, needs: str) -> None:
    """The option `--data`, for a script that *needs* these parts of the folder."""
    given = os.environ.get(VARIABLE)
    parser.add_argument(
        "--data",
        type=Path,
        metavar="DIR",
        default=Path(given) if given else None,
        required=not given,
        help=f"folder with {needs} (see benchmarks/labelled.py); default: ${VARIABLE}",
    )
