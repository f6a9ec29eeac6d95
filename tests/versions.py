"""Runs the main jobs on the lowest declared versions and on the newest of everything: `make versions`.

The lowest are read from pyproject.toml, where they stand; they run on the lowest Python that is declared. The
newest are what the registry gives today, on the newest Python of this machine. Both install the wheel, not the
tree, and must decide the same. A Python that is not here is left out with a line that says so.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "target" / "versions"
FRAMES = ("pandas", "polars")  # not required, and not to be left out either


# --- inside one environment -----------------------------------------------------------------------------------


def neardup(*arguments: str | Path) -> str:
    command = [sys.executable, "-m", "neardup", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"neardup {' '.join(map(str, arguments))}: exit {done.returncode}\n{done.stderr}")
    return done.stdout


def decisions(name: str, *inputs: str | Path) -> list[Any]:
    """What a run decides of its documents, and that a second one is equal to it."""
    import pyarrow.parquet as pq

    for out in (f"{name}.run", f"{name}.again"):
        neardup("dedupe", *inputs, "-o", out, "--no-guards", "--quiet")
    neardup("check", f"{name}.run", f"{name}.again")
    rows = pq.read_table(f"{name}.run/annotations.parquet").to_pylist()
    return sorted((Path(row["id"]).name, row["keep"], Path(row["duplicate_of"] or "").name) for row in rows)


def documents() -> list[dict[str, Any]]:
    """Six stories, each told twice with another end, in two scripts."""
    told = "The {0} walks along the {0} road, over the bridge and past the mill, to buy a loaf of bread"
    chinese = "\u4e2d\u6587\u6587\u672c{0}\u8d70\u8fc7\u6865\u548c\u78e8\u574a\u53bb\u4e70\u9762\u5305"
    names = ("miller", "farmer", "smith", "tailor", "weaver", "potter")
    stories = [(told if at % 2 else chinese).format(name) for at, name in enumerate(names)]
    return [
        {"id": f"{at}{end}", "text": f"{story} {at * 'again '}and {end}", "number": at}
        for at, story in enumerate(stories)
        for end in ("x", "y")
    ]


def page(text: str) -> bytes:
    main = "".join(f"<p>{text}, and sentence {number} of this page.</p>" for number in range(9))
    return f"<html><head><title>t</title></head><body><article>{main}</article></body></html>".encode()


def warc(rows: list[dict[str, Any]]) -> bytes:
    records = []
    for row in rows:
        body = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n" + page(row["text"])
        head = (
            f"WARC/1.1\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:x:{row['id']}>\r\nWARC-Date: 2024-01-01T00:00:00Z"
            f"\r\nWARC-Target-URI: http://a/{row['id']}\r\nContent-Type: application/http; msgtype=response\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        records.append(head.encode() + body + b"\r\n\r\n")
    return b"".join(records)


def images(folder: Path) -> None:
    from PIL import Image, ImageDraw

    folder.mkdir()
    for number in range(3):
        image = Image.new("RGB", (160, 120), (200, 190 - 40 * number, 90))
        draw = ImageDraw.Draw(image)
        for at in range(24):
            left, top = at * (37 + 11 * number) % 140, at * (53 - 7 * number) % 100
            draw.rectangle((left, top, left + 18, top + 14), fill=(at * 9, 255 - at * 10, at * 5 % 255))
        image.save(folder / f"{number}.png")
        image.resize((320, 240), Image.Resampling.BICUBIC).save(folder / f"{number}-large.png")


def jobs() -> Iterator[tuple[str, Any]]:
    """Every main job and what came of it, in the folder where we stand."""
    import csv

    import pyarrow as pa
    import pyarrow.feather
    import pyarrow.parquet as pq

    import neardup as nd
    from neardup.compat.qyoki import CorpusReader
    from neardup.images.thumbs import formats

    rows = documents()
    texts = [row["text"] for row in rows]
    table = pa.Table.from_pylist(rows)
    Path("a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    with open("a.csv", "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    pq.write_table(table, "a.parquet")
    pyarrow.feather.write_feather(table, "a.arrow", compression="zstd")
    Path("a.warc").write_bytes(warc(rows))
    Path("pages").mkdir()
    for row in rows:
        Path("pages", f"{row['id']}.html").write_bytes(page(row["text"]))
    images(Path("images"))
    for name in ("a.jsonl", "a.csv", "a.parquet", "a.arrow", "a.warc"):
        yield name, decisions(name, name)
    yield "html", decisions("html", "pages", "--html")
    yield "images", decisions("images", "images")
    yield "fingerprint", neardup("fingerprint", "a.jsonl", "--scheme", "text")
    address = Path("a.jsonl").resolve().as_uri()
    yield "remote", decisions("remote", address)
    neardup("dedupe", "a.jsonl", "-o", "report.run", "--no-guards", "--quiet", "--report", "report.html")
    yield "report", Path("report.html").read_text("utf-8").count("<h")

    fitted = nd.scheme("text").fit(texts)
    yield "digests", [fitted.digest, *(nd.scheme(name).digest for name in ("text", "image", "chars:3"))]
    prints = fitted.fingerprints(pa.array(texts))
    yield "fingerprints", prints.hex()
    yield "join", sorted(nd.join(prints, radius=40))
    kept = nd.dedupe(iter(texts)).keep_mask.tolist()
    yield "in memory", kept
    frames = {"arrow": table}
    for package in FRAMES:
        if importlib.util.find_spec(package):
            frames[package] = importlib.import_module(package).DataFrame(rows)
    for package, frame in frames.items():
        assert nd.dedupe(frame).keep_mask.tolist() == kept, package
    Path("zh.txt").write_text(texts[0], "utf-8")
    assert CorpusReader().read_corpus_from_path("zh.txt")
    assert "HEIF" in formats()


# --- around them ----------------------------------------------------------------------------------------------


def pythons() -> dict[tuple[int, int], str]:
    """The interpreters of this machine: on the path, beside us, and those that pyenv has put aside."""
    found: dict[tuple[int, int], str] = {}
    names = [sys.executable, *(shutil.which(f"python3.{minor}") for minor in range(10, 40))]
    if pyenv := shutil.which("pyenv"):
        listed = subprocess.run([pyenv, "versions", "--bare"], capture_output=True, text=True).stdout.split()
        for version in listed:
            home = subprocess.run([pyenv, "prefix", version], capture_output=True, text=True).stdout.strip()
            names.append(str(Path(home, "bin", "python")))
    ask = "import sys, venv, ensurepip; print(sys.implementation.name, *sys.version_info[:2])"
    for name in filter(None, names):
        try:
            told = subprocess.run([name, "-c", ask], capture_output=True, text=True).stdout.split()
        except OSError:
            continue
        if told[:1] == ["cpython"]:
            found.setdefault((int(told[1]), int(told[2])), name)
    return found


def declared() -> tuple[tuple[int, int], list[str], list[str]]:
    """The lowest Python, the lowest version of every requirement, and the names of the extras."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras: dict[str, list[str]] = project["optional-dependencies"]
    floors = []
    for requirement in [*project["dependencies"], *(one for extra in extras.values() for one in extra)]:
        parts = re.fullmatch(r"([\w-]+)>=([\w.]+)(;.*)?", requirement)
        if parts is None:
            raise SystemExit(f"pyproject.toml: {requirement!r} has no lowest version of the form name>=1.2")
        floors.append(f"{parts[1]}=={parts[2]}{parts[3] or ''}")
    major, minor = project["requires-python"].removeprefix(">=").split(".")
    return (int(major), int(minor)), sorted({*floors}), sorted(extras)


def check_sbom(wheel: Path) -> None:
    """The wheel names every crate that it was built from, with its licence."""
    with zipfile.ZipFile(wheel) as file:
        names = [name for name in file.namelist() if ".dist-info/sboms/" in name]
        crates = {
            (part["name"], part["version"])
            for name in names
            for part in json.loads(file.read(name))["components"]
            if part.get("licenses")
        }
    locked = re.findall(r'name = "(.+)"\nversion = "(.+)"\nsource', (ROOT / "Cargo.lock").read_text("utf-8"))
    needed = {
        name: version for name, version in locked if name in ("pyo3", "blake3", "unicode-normalization")
    }
    if len(needed) < 3 or not {*needed.items()} <= crates or not crates <= {*locked}:
        raise SystemExit(f"{wheel.name}: its SBOM does not hold the crates of Cargo.lock")


def run(command: list[Any], **where: Any) -> None:
    done = subprocess.run(command, **where)
    if done.returncode:
        raise SystemExit(f"versions: exit {done.returncode} of {' '.join(map(str, command))}")


def installed(name: str, python: str, install: list[str]) -> bool:
    """Whether a new environment of that name has it all; pip says why not."""
    run([python, "-m", "venv", "--clear", FOLDER / name])
    pip = [
        str(own(name)),
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--only-binary",
        ":all:",
    ]
    return subprocess.run([*pip, *install]).returncode == 0


def own(name: str) -> Path:
    return FOLDER / name / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def decided(name: str) -> dict[str, Any]:
    """What the jobs give in the environment of that name."""
    work = FOLDER / f"{name}.jobs"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    alone = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    run([own(name), __file__, "jobs"], cwd=work, env=alone)
    result: dict[str, Any] = json.loads((work / "decided.json").read_text("utf-8"))
    print(
        f"versions: {name}: {len(result['jobs'])} jobs on Python {result['python']} with {result['packages']}"
    )
    return result


def main() -> None:
    lowest, floors, extras = declared()
    found = pythons()
    FOLDER.mkdir(parents=True, exist_ok=True)
    for old in FOLDER.glob("*.whl"):
        old.unlink()
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    # The build tool is beside the interpreter, which is on the path only where the environment is active.
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    run([*build, "--wheel-dir", FOLDER, ROOT], env={**os.environ, "PATH": path})
    (wheel,) = FOLDER.glob("*.whl")
    check_sbom(wheel)
    (FOLDER / "lowest.txt").write_text("\n".join(floors) + "\n", "utf-8")
    all_extras = f"{wheel}[{','.join(extras)}]"
    one = None
    if lowest not in found:
        print(f"versions: no Python {lowest[0]}.{lowest[1]} here: the lowest versions were not tried")
    elif installed("lowest", found[lowest], [all_extras, "--constraint", str(FOLDER / "lowest.txt")]):
        one = decided("lowest")["jobs"]
    else:
        raise SystemExit("versions: the lowest declared versions cannot be installed together")
    for version in sorted(found, reverse=True):
        if installed("newest", found[version], [all_extras, *FRAMES]):
            break
        # A Python that is younger than the wheels of a package is not our fault.
        print(f"versions: Python {version[0]}.{version[1]} is left out: pip found no wheels for it")
    else:
        raise SystemExit("versions: the newest versions cannot be installed")
    other = decided("newest")["jobs"]
    if one is None:
        return
    differ = [job for job in one if one[job] != other[job]]
    for job in differ:
        print(f"versions: {job} differs:\n  lowest {one[job]}\n  newest {other[job]}", file=sys.stderr)
    if differ:
        raise SystemExit(1)
    print("versions: both decide the same")


def report() -> None:
    """The jobs of this environment, as JSON in `decided.json`."""
    from importlib.metadata import distributions

    done = dict(jobs())
    packages = sorted({f"{one.metadata['Name'].lower()} {one.version}" for one in distributions()})
    result = {"python": sys.version.split()[0], "packages": ", ".join(packages), "jobs": done}
    Path("decided.json").write_text(json.dumps(result), "utf-8")


if __name__ == "__main__":
    report() if sys.argv[1:] == ["jobs"] else main()
