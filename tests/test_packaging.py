"""What surrounds the code: workflows, locks and metadata say what they must."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

import neardup

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(neardup.__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def name_of(requirement: str) -> str:
    found = re.match(r"[\w.-]+", requirement)
    assert found is not None, requirement
    return re.sub(r"[-_.]+", "-", found[0]).lower()


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_an_action_is_named_by_its_commit_and_not_by_a_tag_that_moves(path: Path) -> None:
    uses = re.findall(r"uses:(.*)", path.read_text("utf-8"))
    assert uses
    for use in uses:
        assert re.fullmatch(r" [\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", use), use


def test_one_action_has_one_commit() -> None:
    uses = {use for path in WORKFLOWS for use in re.findall(r"uses: (\S+)", path.read_text("utf-8"))}
    assert len(uses) == len({use.partition("@")[0] for use in uses})


@pytest.mark.parametrize("lock", ["run.lock", "dev.lock"])
def test_a_lock_has_every_requirement_with_digests(lock: str) -> None:
    text = (ROOT / "requirements" / lock).read_text("utf-8")
    blocks = re.split(r"\n(?=\S)", re.sub(r"^#.*\n", "", text, flags=re.MULTILINE).strip())
    for block in blocks:
        assert re.match(r"[\w.-]+==[\w.]+( ; [^\\]+)? \\\n    --hash=sha256:[0-9a-f]{64}", block), block
    needed = [*PROJECT["dependencies"], "maturin"]
    if lock == "dev.lock":
        needed += (ROOT / "requirements" / "dev.txt").read_text("utf-8").split()
    assert {name_of(one) for one in needed} <= {name_of(block) for block in blocks}


def test_both_locks_take_the_same_versions() -> None:
    run, dev = (
        {*re.findall(r"^\S+==\S+", (ROOT / "requirements" / lock).read_text("utf-8"), re.MULTILINE)}
        for lock in ("run.lock", "dev.lock")
    )
    assert run <= dev


def test_every_requirement_has_a_lowest_version_that_can_be_tried() -> None:
    """`make versions` reads these lines and runs the main jobs on what they promise."""
    extras = PROJECT["optional-dependencies"].values()
    for requirement in [*PROJECT["dependencies"], *(one for extra in extras for one in extra)]:
        assert re.fullmatch(r"[\w-]+>=[\w.]+(;.*)?", requirement), requirement


def test_the_metadata_leads_to_the_project() -> None:
    assert {"Homepage", "Documentation", "Changelog", "Issues"} <= PROJECT["urls"].keys()
    assert len({"/".join(address.split("/")[:5]) for address in PROJECT["urls"].values()}) == 1
