"""`neardup dedupe FILE -o OUT`, then the ids of all documents that were read, for run_badinput.py.

    run_badinput.py --manifest manifest.json --cmd "python tests/badinput_dedupe.py {file} {q}"

The runner looks for ids in plain bytes; annotations are Parquet, and the quarantine rightly holds bad ids.
"""

import sys
from pathlib import Path

from neardup.adapters.cli import run

if __name__ == "__main__":
    code = run(["dedupe", sys.argv[1], "-o", sys.argv[2], "--quiet", "--no-guards"])
    table = Path(sys.argv[2], "annotations.parquet")
    if table.exists():
        import pyarrow.parquet as pq

        print(*pq.read_table(table, columns=["id"]).column("id").to_pylist(), sep="\n")
    sys.exit(code)
