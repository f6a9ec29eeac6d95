"""Jobs that are killed at their n-th step; what is left is whatever they left.

A step is a system call that changes a folder or makes bytes durable, and every 4th batch that is read:
the same steps in the same order whenever the same job is done. At its last step the process gets the
signal, as if from outside. Each job is a process of its own, forked from one that has loaded everything
and done nothing, so that a kill takes no longer than the work.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

from neardup.jobs import Job
from neardup.seals import own_key
from neardup.sizes import Sizes

# Small batches and a checkpoint after each: a small job has all the steps of a large one.
CONSTANTS = [
    ("neardup.jobs", "Job", partial(Job, sizes=Sizes(checkpoint_seconds=-1.0, block=4096, part=1))),
]

DATE = "1700000000"


class Ended(NamedTuple):
    """How a job ended: exit code, or minus the signal; the steps that it made; standard error."""

    code: int
    steps: int
    err: str


class Killer:
    """Runs command lines up to a step."""

    def __init__(self, **more: str) -> None:
        """*more* goes into the environment of the jobs."""
        root = Path(__file__).parent.parent
        command = [sys.executable, "-m", "tests.killed"]
        # The page of a run tells its date; here every run has the same.
        env = {**os.environ, "SOURCE_DATE_EPOCH": DATE, **more}
        self._server = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=root, env=env
        )

    def run(self, arguments: list[str], *, step: int = 0, signal: int = 9, folder: str = ".") -> Ended:
        """Do it in *folder*; with *step* 0 to its end."""
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.write(json.dumps([step, int(signal), folder, arguments]) + "\n")
        self._server.stdin.flush()
        answer = self._server.stdout.readline()
        assert answer, f"the server ended with {self._server.wait()}"
        return Ended(*json.loads(answer))

    def __enter__(self) -> Killer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.communicate(timeout=60)


def _serve() -> None:
    for module, constant, value in CONSTANTS:
        assert hasattr(import_module(module), constant), f"{module} has no {constant}"
        setattr(import_module(module), constant, value)
    for module in ("neardup.jobs", "neardup.actions", "neardup.adapters.cli.dedupe", "pyarrow.parquet"):
        import_module(module)
    own_key(make=True)  # the first job of a user would draw it, and have more steps than the others
    for line in sys.stdin:
        step, number, folder, arguments = json.loads(line)
        with tempfile.TemporaryFile() as told, tempfile.TemporaryFile() as said:
            child = os.fork()
            if child == 0:
                os.dup2(told.fileno(), 2)
                os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
                os.chdir(folder)
                _job(step, number, arguments, said.fileno())
            _, status = os.waitpid(child, 0)
            told.seek(0)
            said.seek(0)
            steps = int(said.read() or 0)
            answer = [os.waitstatus_to_exitcode(status), steps, told.read().decode()]
        print(json.dumps(answer), flush=True)


def _job(last: int, number: int, arguments: list[str], said: int) -> None:
    """Do one job with steps, and end the process."""
    from neardup import sources
    from neardup.adapters.cli import main

    count = 0

    def step() -> None:
        nonlocal count
        count += 1
        if count == last:
            os.kill(os.getpid(), number)

    def counted(call: Callable[..., Any]) -> Callable[..., Any]:
        def made(*positional: Any, **keywords: Any) -> Any:
            step()
            found = call(*positional, **keywords)
            step()
            return found

        return made

    for name in ("fsync", "replace", "rename", "link", "unlink", "mkdir", "rmdir"):
        setattr(os, name, counted(getattr(os, name)))
    batches = sources.Source.batches

    def stepping(self: Any, **keywords: Any) -> Any:
        for at, batch in enumerate(batches(self, **keywords)):
            if at % 4 == 0:
                step()
            yield batch

    sources.Source.batches = stepping  # type: ignore[method-assign]
    code = 1
    try:
        main(arguments)
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else 1
    finally:
        os.write(said, str(count).encode())
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    _serve()
