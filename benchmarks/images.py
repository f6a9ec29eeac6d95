"""How fast images are read and compared, beside imagehash.phash in the same run.

    python benchmarks/images.py [--photos 200] [--pixels 3000000] --data DIR

Photographs are made of the pool's images: enlarged, with grain, as JPEG files of a camera's quality.
`thumbnails` reads a folder to fingerprints with all cores, `phash` is the loop that users of imagehash
write. `dedupe` is the whole job, the second time over the unchanged folder, without the start of the
interpreter; `command` is the second time with it. Seconds are wall clock, CPU seconds are
beside them. Exit 1 if a target is missed.
"""

from __future__ import annotations

import argparse
import io
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import numpy as np
from PIL import Image

sys.path.insert(0, str(Path(__file__).parent))
import results
from labelled import add_data

TARGETS = {"phash": 4.0, "second": 50.0}


def make_photos(pool: Path, folder: Path, count: int, pixels: int) -> None:
    """Photographs of that many pixels. Some share half of what they show; only time is measured here."""
    r = random.Random(7)
    noise = np.random.default_rng(7).normal(0, 5, 2 * pixels).astype(np.float32)
    files = sorted(path for path in pool.iterdir() if path.suffix == ".jpg")
    for number in range(count):
        one, other = (Image.open(path).convert("RGB") for path in r.sample(files, 2))
        height = round((pixels * 3 / 4) ** 0.5 + 1)
        size = (pixels // height + 1, height)
        mixed = Image.blend(
            one.resize(size, Image.Resampling.BICUBIC), other.resize(size), r.uniform(0.3, 0.7)
        )
        grain = np.roll(noise, number * 7919)[: size[0] * size[1]].reshape(size[1], size[0], 1)
        Image.fromarray(np.clip(np.asarray(mixed) + grain, 0, 255).astype(np.uint8)).save(
            folder / f"{number:05d}.jpg", quality=90
        )


def measured(work: Callable[[], object]) -> tuple[float, float]:
    """Wall and CPU seconds of this process and its children."""

    def spent() -> float:
        both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        return sum(one.ru_utime + one.ru_stime for one in both)

    begin, used = time.perf_counter(), spent()
    work()
    return time.perf_counter() - begin, spent() - used


def thumbnails(folder: Path) -> None:
    from neardup.images.prints import stored
    from neardup.sources import open_source

    for batch in open_source(str(folder), format="image"):
        assert batch.images is not None
        stored(batch.images)


def phash(folder: Path) -> None:
    import imagehash

    for path in sorted(folder.iterdir()):
        imagehash.phash(Image.open(path))


def dedupe(folder: Path, out: Path) -> None:
    from neardup.adapters.cli import run

    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        assert run(["dedupe", str(folder), "-o", str(out), "--quiet", "--no-guards"]) == 0


def command(folder: Path, out: Path) -> None:
    words = [sys.executable, "-m", "neardup", "dedupe", str(folder), "-o", str(out), "--quiet", "--no-guards"]
    subprocess.run(words, check=True, capture_output=True)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--photos", type=int, default=200)
    parser.add_argument("--pixels", type=int, default=3_000_000)
    add_data(parser, "images_pool/")
    results.add_out(parser)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder, work = Path(temporary) / "photos", Path(temporary) / "work"
        folder.mkdir()
        work.mkdir()
        make_photos(options.data / "images_pool", folder, options.photos, options.pixels)
        found: dict[str, tuple[float, float]] = {}
        # The peer before and after: the machine may be shared.
        phashes = [measured(lambda: phash(folder))]
        for name in ("a", "b"):
            os.environ["NEARDUP_CACHE"] = str(work / name)
            again = measured(lambda: thumbnails(folder))
            found["thumbnails"] = min(found.get("thumbnails", again), again)
        phashes.append(measured(lambda: phash(folder)))
        found["phash"] = min(phashes)
        os.environ["NEARDUP_CACHE"] = str(work / "c")
        found["dedupe"] = measured(lambda: dedupe(folder, work / "one"))
        found["dedupe, again"] = measured(lambda: dedupe(folder, work / "two"))
        found["command, again"] = measured(lambda: command(folder, work / "three"))
        size = sum(path.stat().st_size for path in folder.iterdir()) / options.photos
    cores = len(os.sched_getaffinity(0))
    print(f"{options.photos} photographs of {options.pixels:,} pixels, {size / 1e6:.2f} MB, {cores} cores")
    print("| work | seconds | CPU seconds | images/s |\n| --- | --- | --- | --- |")
    for name, (wall, used) in found.items():
        print(f"| {name} | {wall:.2f} | {used:.2f} | {options.photos / wall:,.0f} |")
    ratios = {
        "phash": found["phash"][0] / found["thumbnails"][0],
        "second": found["dedupe"][0] / found["dedupe, again"][0],
    }
    used = found["phash"][1] / found["thumbnails"][1]
    print(f"thumbnails: {ratios['phash']:.1f} x phash by wall clock, {used:.1f} x by CPU time")
    print(f"dedupe: the second time {ratios['second']:.0f} x faster")
    rows = [
        {
            "work": f"images: {name}",
            "engine": "imagehash" if name == "phash" else "neardup",
            "items": options.photos,
        }
        | {"wall": wall, "cpu": used}
        for name, (wall, used) in found.items()
    ]
    results.write(rows, options.out)
    missed = [name for name, aim in TARGETS.items() if ratios[name] < aim]
    if missed:
        print(f"missed: {', '.join(missed)}", file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
