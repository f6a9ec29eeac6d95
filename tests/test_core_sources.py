"""What every file of the core keeps to, read from its sources."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

SOURCES = Path(__file__).parent.parent / "src"
FILES = sorted(path.relative_to(SOURCES).as_posix() for path in SOURCES.rglob("*.rs"))

pytestmark = pytest.mark.skipif(not FILES, reason="the sources of the core are not here")

# Files that may hold unsafe code, and what for, beside the variants of kernels. All others forbid it.
_INSTRUCTIONS = "instructions of one kind of processor, and places that an assertion proves"
UNSAFE = {
    "lib.rs": "what it forbids it forbids all",
    "arrow/interface.rs": "the Arrow C data interface",
    "arrow/array.rs": "the buffers of an Arrow array",
    "arrow/span.rs": "memory that others may write",
    "bindings/arrow.rs": "the capsules of the Arrow C data interface",
    "index/opened.rs": "maps a file",
    "bindings/interpreter.rs": "asks Python which interpreter this is",
    "join/banded.rs": _INSTRUCTIONS,
    "join/nearest.rs": _INSTRUCTIONS,
    "hamming/keys.rs": _INSTRUCTIONS,
    "hamming/distance/listed.rs": _INSTRUCTIONS,
    "instructions.rs": "asks valgrind to count",
    "recipe/tally/rounds.rs": "rows that an assertion proves",
    "system/simd.rs": _INSTRUCTIONS,
    "system/column.rs": "numbers in a mapped file",
    "system/cores.rs": "system calls",
    "system/memory.rs": "the allocator, zeroed memory and large pages",
    "join/sorting.rs": "room that is written before it is read",
    "join/scatter.rs": "instructions of one kind of processor, and room that is written before it is read",
}

# The forms of a kernel for some processors: its face, with the plain form, denies what they allow.
VARIANTS = [name for name in FILES if Path(name).stem in ("avx2", "avx512", "avx512_base", "neon")]

# What turns a panic into an error.
GUARDS = {"caught", "interruptible", "answered", "watched"}
# The collector calls these, and takes no error.
COLLECTOR = ("__traverse__", "__clear__")


@pytest.mark.parametrize("name", FILES)
def test_unsafe_code_is_forbidden_where_none_is_needed(name: str) -> None:
    text = (SOURCES / name).read_text(encoding="utf-8")
    forbids = text.startswith("#![forbid(unsafe_code)]\n")
    # What the face of a folder forbids is forbidden in all of it; what it denies its files may allow.
    folder = name.removesuffix("mod.rs")
    face = folder != name and any(other.startswith(folder) for other in [*UNSAFE, *VARIANTS])
    assert forbids != (name in UNSAFE or name in VARIANTS or face), (
        f"{name} must begin with #![forbid(unsafe_code)], or stand in UNSAFE"
    )


@pytest.mark.parametrize("name", VARIANTS)
def test_a_variant_stands_in_the_folder_of_its_kernel(name: str) -> None:
    face = (SOURCES / name).with_name("mod.rs").read_text(encoding="utf-8")
    assert re.search(rf"^(pub )?mod {Path(name).stem};$", face, re.MULTILINE)
    allows = (SOURCES / name).read_text(encoding="utf-8").startswith("#![allow(unsafe_code)]\n")
    assert allows
    assert not face.startswith("#![allow")


def test_only_files_that_are_there_may_hold_unsafe_code() -> None:
    assert not set(UNSAFE) - set(FILES)


def functions(text: str) -> dict[str, tuple[bool, str]]:
    """The functions of a file of bindings: whether Python calls each, and its body."""
    methods = [
        range(block.start(), text.index("\n}\n", block.start()))
        for block in re.finditer(r"#\[pymethods\]\nimpl", text)
    ]
    found = {}
    for match in re.finditer(r"^( *)(?:pub(?:\([a-z]+\))? )?fn (\w+)", text, re.MULTILINE):
        indent, name = match.groups()
        end = text.find(f"\n{indent}}}\n", match.start())
        before = text[: match.start()].rsplit("\n\n", 1)[-1]
        called = "#[pyfunction]" in before or any(match.start() in block for block in methods)
        found[f"{name} at {match.start()}"] = (called, text[match.start() : end])
    return found


def guarded() -> re.Pattern[str]:
    """Calls of what turns a panic into an error, or of what calls that with the interpreter at hand."""
    every = [found for path in SOURCES.glob("bindings/*.rs") for found in functions(path.read_text()).items()]
    calls = {rf"\b{name}\(" for name in GUARDS}
    while True:
        call = re.compile("|".join(sorted(calls)))
        helpers = {key.split()[0] for key, (called, body) in every if not called and call.search(body)}
        more = {rf"\b{name}\(\s*py\b|\bself\.{name}\(" for name in helpers - GUARDS}
        if more <= calls:
            return call
        calls |= more


def works(body: str) -> bool:
    """Whether a function does more than to hand over what it holds."""
    inside = body[body.index("{", body.rindex(")", 0, body.index("{"))) :]
    return re.search(r"\w+!?\(|\[", re.sub(r"\b(Ok|Some|clone|clone_ref)\(", "", inside)) is not None


@pytest.mark.parametrize("name", [name for name in FILES if name.startswith("bindings/")])
def test_no_panic_passes_a_binding(name: str) -> None:
    """PyO3 makes a panic a PanicException, which `except Exception` lets pass."""
    call = guarded()
    own = functions((SOURCES / name).read_text())
    bare = [
        key.split()[0]
        for key, (called, body) in own.items()
        if called and works(body) and not call.search(body) and not key.startswith(COLLECTOR)
    ]
    assert not bare, (
        f"{', '.join(bare)} of {name} must do their work in `caught`, `interruptible` or `watched`"
    )


def test_bindings_are_found() -> None:
    found = [
        key
        for name in FILES
        for key, (called, _) in functions((SOURCES / name).read_text()).items()
        if called
    ]
    assert len(found) > 60
