"""Which way paths point in the core, read from its sources: as test_layers has it for the package.

A kernel is a folder: its plain form with its variants for AVX2 and AVX-512 is one module.
"""

from __future__ import annotations

import re
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

SOURCES = Path(__file__).parent.parent / "src"

# A room uses only what is above it.
ROOMS = (
    "system",
    "arrow",
    "hash",
    "text",
    "frequencies",
    "recipe",
    "documents",
    "hamming",
    "join",
    "index",
    "verify",
    "passages",
    "image",
    "compat",
    "bindings",
)

VARIANTS = {"avx2", "avx512", "avx512_base", "neon"}

pytestmark = pytest.mark.skipif(not SOURCES.is_dir(), reason="the sources of the core are not here")


def module_of(file: Path) -> str:
    """The path of a module in the crate: `hash::mix` of `hash/mix/mod.rs` and `hash/mix/avx2.rs`.

    >>> module_of(SOURCES / "hash" / "mix" / "avx512.rs")
    'hash::mix'
    """
    parts = list(file.relative_to(SOURCES).with_suffix("").parts)
    if parts[-1] in VARIANTS or parts[-1] == "mod":
        parts.pop()
    return "::".join(parts)


def spread(tree: str) -> list[str]:
    """The paths of one `use`.

    >>> spread("a::{b, c::{self, d}}")
    ['a::b', 'a::c', 'a::c::d']
    """
    found: list[str] = []
    begin, _, rest = tree.partition("{")
    if not rest:
        return [tree.strip().split(" as ")[0]]
    inside, depth, part = rest.rsplit("}", 1)[0], 0, ""
    for sign in inside + ",":
        depth += (sign == "{") - (sign == "}")
        if sign == "," and depth == 0:
            found += [begin.strip() + path for path in spread(part.strip())] if part.strip() else []
            part = ""
        else:
            part += sign
    return [path.removesuffix("::self") for path in found]


def code_of(file: Path) -> str:
    """A source without comments and tests."""
    text = file.read_text(encoding="utf-8")
    text = text.split("\n#[cfg(test)]\nmod tests {")[0]
    return re.sub(r"//[^\n]*", "", text)


def paths(code: str, module: str) -> list[str]:
    """What a module names of the crate, from its root.

    >>> paths("use super::keys::Key; use crate::hash::{mix, md5}; let x = crate::join::rows();", "hamming::plan")
    ['hamming::keys::Key', 'hash::mix', 'hash::md5', 'join::rows']
    """
    found = []
    for tree in re.findall(r"\buse ((?:crate|super)::[^;]*);", code):
        found += spread(re.sub(r"\s+", " ", tree))
    code = re.sub(r"\buse [^;]*;", "", code)
    found += re.findall(r"\b(?:crate|super)(?:::\w+)+", code)
    above = module.rpartition("::")[0]
    return [
        path.removeprefix("crate::") if path.startswith("crate") else above + path.removeprefix("super")
        for path in found
    ]


def uses() -> dict[str, set[str]]:
    """Each module, and the other modules that it names."""
    files = [file for file in sorted(SOURCES.rglob("*.rs")) if file.name != "lib.rs"]
    modules = {module_of(file) for file in files}
    found: dict[str, set[str]] = {module: set() for module in modules}
    for file in files:
        own = module_of(file)
        # In a variant `super` is its kernel.
        inside = own + "::variant" if file.stem in VARIANTS else own
        for path in paths(code_of(file), inside):
            parts = path.split("::")
            while parts and "::".join(parts) not in modules:
                parts.pop()
            named = "::".join(parts)
            if named and named != own:
                found[own].add(named)
    return found


USES = uses() if SOURCES.is_dir() else {}


def test_every_folder_is_a_room() -> None:
    assert {folder.name for folder in SOURCES.iterdir() if folder.is_dir()} == set(ROOMS)


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_uses_only_rooms_above_it(room: str) -> None:
    below = {
        f"{module} uses {named}"
        for module, all_named in USES.items()
        for named in all_named
        if module.split("::")[0] == room and ROOMS.index(named.split("::")[0]) > ROOMS.index(room)
    }
    assert not below


def test_no_module_uses_one_that_uses_it() -> None:
    try:
        TopologicalSorter(USES).prepare()
    except CycleError as cycle:
        pytest.fail(" -> ".join(cycle.args[1]))


def test_paths_are_found() -> None:
    assert "hash::mix" in USES["recipe::votes"]
    assert sum(map(len, USES.values())) > 150


def test_the_architecture_names_the_rooms_in_their_order() -> None:
    page = (SOURCES.parent / "docs" / "architecture.md").read_text(encoding="utf-8")
    table = page[page.index("| room | holds | what |") :]
    assert tuple(re.findall(r"^\| `(\w+)` \|", table.split("\n\n")[0], re.MULTILINE)) == ROOMS
