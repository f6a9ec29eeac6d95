"""Messages of the core name settings; the command line spells them as options."""

from __future__ import annotations

import ast
import pickle
import re
from pathlib import Path

import pytest

import neardup as nd
from neardup.adapters.cli.spelling import option, spelled
from neardup.errors import InvalidValue, Said, Setting

ROOT = Path(nd.__file__).parent
OPTION = re.compile(r"(?<![\w-])--[a-z]")

# Where an option is not part of a message: the manifest and the page name guards by their options, what
# calibrate recommends is a command to type, and the tests of the rule are told in the docs by their options.
DATA = {"guards.py", "calibration/advice.py", "calibration/model.py"}
DATA |= {"verifiers/reasons.py", "verifiers/rules.py"}
CORE = [
    path
    for path in sorted(ROOT.rglob("*.py"))
    if not path.is_relative_to(ROOT / "adapters") and str(path.relative_to(ROOT)) not in DATA
]


def texts(path: Path) -> list[tuple[int, str]]:
    """The texts in a file's code, which docstrings and comments are not."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    told = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    return [
        (node.lineno, node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in told
    ]


@pytest.mark.parametrize("path", CORE, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_message_of_the_core_names_an_option(path: Path) -> None:
    for line, text in texts(path):
        found = OPTION.search(text)
        assert not found or "pip install" in text, f"{path}:{line}: {text!r}; name the setting (errors.Said)"


def test_a_setting_is_spelled_as_python_and_as_an_option() -> None:
    message = Said("choose another ", Setting("out"), ", or use ", Setting("source_field"))
    assert str(message) == "choose another out, or use source_field"
    assert spelled(InvalidValue(message)) == "choose another -o, or use --source-field"


def test_what_is_no_setting_is_said_as_it_is() -> None:
    assert spelled(InvalidValue("overwrite 'x'")) == "overwrite 'x'"
    assert spelled(ValueError()) == ""


def test_a_message_survives_pickling_with_its_settings() -> None:
    again = pickle.loads(pickle.dumps(InvalidValue(Said("use ", Setting("overwrite")))))
    assert spelled(again) == "use --overwrite"


def test_python_and_the_command_line_are_told_of_one_field_in_their_own_words() -> None:
    with pytest.raises(InvalidValue, match=r"the field 'lang' of within; correct its name") as raised:
        nd.dedupe(["one text", "another text"], within="lang")
    assert "of --within; correct" in spelled(raised.value)
    assert option(Setting("within")) == "--within"
