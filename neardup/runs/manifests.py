"""Manifests: what a run says of itself. They are written last: a folder that has one holds a finished run.

A manifest may be damaged, or written by somebody else: nothing in it is trusted before it was checked.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from neardup import __version__
from neardup.errors import DamagedFile, InvalidValue, shown
from neardup.files import atomic_file, file_digest
from neardup.results import Result
from neardup.seals import own_key, seal
from neardup.settings import Settings
from neardup.sources import Reading, Source, path_id

MANIFEST: Final = "manifest.json"
FORMAT: Final = 2  # 1 called reasons `rule`, and figures of images by the names of those of texts


@dataclass(frozen=True, slots=True)
class Asked:
    """The options of a run, apart from its inputs and the place of its results."""

    settings: Settings = field(default_factory=Settings)
    reading: Reading = field(default_factory=Reading)
    annotate_only: bool = False
    save_scheme: bool = False
    guards: bool = True
    command: Sequence[str] = ()
    """What to type for the same results, except for the places they go to."""

    def run_id(self, key: str) -> str:
        """What must be equal for a finished run to be the requested one.

        *key* identifies the inputs and all that decides what is found in them.
        """
        limits = asdict(self.settings.guards) if self.guards else None
        wanted = [key, self.annotate_only, self.save_scheme, limits]
        return hashlib.blake2b(json.dumps(wanted).encode(), digest_size=16).hexdigest()


@dataclass(frozen=True, slots=True)
class Input:
    """A file that a run read: its path as it was given, and what it was then (*modified* in nanoseconds).

    *root* is the folder that was named, and walked to find it; None where the file itself was named.
    """

    path: str
    bytes: int | None
    sha256: str | None
    modified: int | None = None
    root: str | None = None

    @property
    def id(self) -> str:
        """The id of the document that is the whole file."""
        return path_id(self.path)


# --- reading ---------------------------------------------------------------------------------------------


def read(folder: str) -> dict[str, Any]:
    """What the manifest in *folder* says."""
    path = os.path.join(folder, MANIFEST)
    try:
        with open(path, "rb") as file:
            found = json.load(file)
    except FileNotFoundError:
        raise InvalidValue(
            f"{folder!r} has no {MANIFEST}: it is not a run directory, or the run did not finish; "
            "repeat the same `neardup dedupe` to continue it"
        ) from None
    except (ValueError, RecursionError) as error:
        raise DamagedFile(f"{path!r} is damaged: {error}") from None
    if not isinstance(found, dict):
        raise DamagedFile(f"{path!r} is damaged: it is not a JSON object")
    return found


def known(folder: str) -> dict[str, Any]:
    """The same; nothing if there is none, or none that can be read."""
    try:
        return read(folder)
    except (InvalidValue, DamagedFile, NotADirectoryError):
        return {}


def rows(value: Any) -> list[dict[str, Any]]:
    """The entries of a list in the manifest that name a file."""
    if not isinstance(value, list):
        return []
    return [row for row in value if isinstance(row, dict) and isinstance(row.get("name"), str)]


def listed(manifest: Mapping[str, Any]) -> list[str]:
    """The files of its folder that a manifest lists as outputs, such as the report."""
    names = (row["name"] for row in rows(manifest.get("outputs")))
    return [name for name in names if os.path.basename(name) == name]


def inputs(value: Any) -> tuple[Input, ...]:
    """The files that a list in the manifest names."""
    return tuple(map(_input, rows(value)))


def _input(row: dict[str, Any]) -> Input:
    """An input as the manifest describes it. A value of the wrong type counts as missing."""
    found = {
        name: row[name] if type(row.get(name)) is kind else None
        for name, kind in (("bytes", int), ("sha256", str), ("modified", int), ("root", str))
    }
    try:
        os.fsencode(row["name"])
    except UnicodeError:
        raise DamagedFile(
            f"the manifest names {shown(row['name'])}, which cannot be the name of a file"
        ) from None
    return Input(row["name"], **found)


# --- writing ---------------------------------------------------------------------------------------------


def describe(asked: Asked, result: Result, source: Source, protected: Source | None = None) -> dict[str, Any]:
    """What was done, in the words of the manifest."""
    sources = [source] if protected is None else [source, protected]
    settings = asdict(asked.settings)
    if asked.settings.learned is not None:
        settings["rule"] = asked.settings.learned.facts()
    settings.update(asked.reading.facts(), annotate_only=asked.annotate_only, no_guards=not asked.guards)
    return {
        "neardup": __version__,
        "format": FORMAT,
        "command": list(asked.command),
        "content": result.request.content.name,
        "scheme": {**result.scheme.facts(), "digest": result.scheme.digest},
        "settings": settings,
        "plan": result.plan,
        "inputs": _read_from(source),
        "protected": [] if protected is None else _read_from(protected),
        "counts": {**result.summary, "bad": sum(one.bad for one in sources)},
        "sources": [asdict(loss) for loss in result.losses],
        "guards": [{**asdict(trip), "stopped": trip.stopped} for trip in result.guards],
        "refused": [
            {"file": path_id(bad.file), "reason": bad.reason} for source in sources for bad in source.refused
        ],
        "skipped": [
            {"file": path_id(one.file), "reason": one.reason} for source in sources for one in source.skipped
        ],
    }


def _read_from(source: Source) -> list[dict[str, Any]]:
    """A row for each file that was read to its end."""
    found = []
    files = {one.name: one for one in source.inputs}
    for name, digest in source.digests.items():
        file = files[name]
        size = os.path.getsize(name) if os.path.isfile(name) else None
        row = {"name": name, "bytes": size, "sha256": digest, "modified": file.modified}
        if file.walked:
            row["root"] = file.root
        if file.reduced is not None:
            row["reduced"] = file.reduced
        found.append(row)
    return found


def output(folder: str, name: str, digest: str | None = None) -> dict[str, Any]:
    """The row of a file that the run wrote."""
    path = os.path.join(folder, name)
    return {"name": name, "bytes": os.path.getsize(path), "sha256": digest or file_digest(path)}


def sealed(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """*manifest* with the seal of the user; a null where there is no place for a key.

    Only for what this process knows to be true: before changing a manifest, ask whether the run `is_own`.
    """
    return {**manifest, "seal": seal(own_key(make=True), *sealed_parts(manifest))}


def sealed_parts(manifest: Mapping[str, Any]) -> tuple[bytes, bytes]:
    body = {name: value for name, value in manifest.items() if name != "seal"}
    # As it is read again: keys are texts and tuples lists.
    body = json.loads(json.dumps(body))
    return b"run", json.dumps(body, sort_keys=True, separators=(",", ":")).encode("ascii")


def write(folder: str, manifest: Mapping[str, Any]) -> None:
    """Write the manifest; the run in *folder* is finished with it."""
    with atomic_file(os.path.join(folder, MANIFEST), overwrite=True) as file:
        # A lone surrogate, of a file name that is not UTF-8, becomes the escape that JSON has for it.
        file.write(json.dumps(manifest, indent=2, ensure_ascii=False).encode("utf-8", "backslashreplace"))
        file.write(b"\n")
