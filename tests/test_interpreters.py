"""The core and its interpreter: one a process, its lock kept, one version of Unicode in every digest."""

from __future__ import annotations

import subprocess
import sys

import neardup as nd
from neardup import _native

PROGRAM = """
import sys
import neardup._native
try:
    import _interpreters as interpreters
    one = interpreters.create("legacy")
except ImportError:
    import _xxsubinterpreters as interpreters
    one = interpreters.create(isolated=False)
interpreters.run_string(one, '''
import sys
sys.path[:] = %r
try:
    import neardup._native
except ImportError as error:
    print(error)
''' % sys.path)
print(neardup.scheme("text").fingerprint("a text"))
"""


def test_a_second_interpreter_of_a_process_is_refused_with_a_reason() -> None:
    run = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    told = "neardup runs in one interpreter a process, and another one has imported it; use processes"
    value = nd.scheme("text").fingerprint("a text")
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout.splitlines() == [f"{told} instead of sub-interpreters", str(value)]


def test_the_digest_of_a_scheme_knows_the_unicode_of_the_core() -> None:
    """Both values are fixed: another version of Unicode is another digest, and old files are refused."""
    assert _native.UNICODE_VERSION == "18.0.0"
    assert nd.scheme("text").digest == "dd98833a01b23f0fadb2fb9a4e941b25"
