"""simhash-py 0.4.0 as a peer: built from its source, run in an environment of its own.

    python benchmarks/engines/simhash_py.py build ENVIRONMENT

It has the name of another peer (`simhash`), its generated C++ does not compile from Python 3.11 on, and its
archive lacks the declarations that Cython needs to generate it again: they are given here, from its header.
`find FILE RADIUS`, run by that environment, prints the pairs and the seconds of the best number of blocks.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
import tempfile
import time
import venv
from pathlib import Path

DECLARATIONS = """
from libc.stdint cimport uint64_t
from libcpp.unordered_set cimport unordered_set
from libcpp.utility cimport pair
from libcpp.vector cimport vector

cdef extern from "simhash.h" namespace "Simhash":
    ctypedef uint64_t hash_t
    ctypedef pair[hash_t, hash_t] match_t
    cdef cppclass matches_t:
        cppclass iterator:
            match_t& operator*()
            iterator operator++()
            bint operator!=(iterator)
        iterator begin()
        iterator end()
    size_t c_differing "Simhash::num_differing_bits"(hash_t a, hash_t b)
    hash_t c_compute "Simhash::compute"(vector[hash_t]& hashes)
    matches_t c_find_all "Simhash::find_all"(unordered_set[hash_t]& all, size_t blocks, size_t bits) except +
"""
IMPORTS = """
from libcpp.vector cimport vector
from simhash.simhash cimport c_compute, c_differing, c_find_all, hash_t, match_t, matches_t

def num_differing_bits(a, b):
    return c_differing(a, b)
"""


def build(environment: Path) -> None:
    venv.create(environment, with_pip=True)
    pip = [str(environment / "bin" / "python"), "-m", "pip", "-q"]
    subprocess.run([*pip, "install", "cython==0.29.37", "setuptools<70", "wheel", "numpy", "six"], check=True)
    with tempfile.TemporaryDirectory() as folder:
        fetch = ["download", "--no-deps", "--no-build-isolation", "--no-binary", ":all:", "-d", folder]
        subprocess.run([*pip, *fetch, "simhash-py==0.4.0"], check=True)
        with tarfile.open(next(Path(folder).glob("*.tar.gz"))) as archive:
            archive.extractall(folder, filter="data")
        source = next(Path(folder).glob("simhash-py-*/simhash"))
        (source / "simhash.pxd").write_text(DECLARATIONS)
        lines = (source / "simhash.pyx").read_text().splitlines(keepends=True)
        kept = [line for line in lines if not line.startswith("from simhash cimport")]
        (source / "simhash.pyx").write_text(IMPORTS + "".join(kept))
        subprocess.run([*pip, "install", "--no-deps", "--no-build-isolation", str(source.parent)], check=True)


def find(file: str, radius: int) -> None:
    import numpy as np
    import simhash

    words = np.load(file).tolist()
    best = None
    for blocks in (radius + 1, radius + 2, radius + 3):
        start = time.perf_counter()
        pairs = len(simhash.find_all(words, blocks, radius))
        seconds = time.perf_counter() - start
        if best is None or seconds < best["seconds"]:
            best = {"pairs": pairs, "seconds": seconds, "blocks": blocks}
    print(json.dumps(best))


if __name__ == "__main__":
    if sys.argv[1] == "build":
        build(Path(sys.argv[2]))
    else:
        find(sys.argv[2], int(sys.argv[3]))
