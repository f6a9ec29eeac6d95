"""Writers of a collection that end at any moment, as if the machine did: by a timer that nothing can catch.

A server that has loaded everything forks one writer after the other. A writer acknowledges each call that
returned by one line on a file; what it says there was promised.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from types import TracebackType

BATCH = 3


class Ingest:
    """Runs writers on one folder."""

    def __init__(self, acks: Path, **more: str) -> None:
        """*more* goes into the environment of the writers."""
        self._acks = acks
        root = Path(__file__).parent.parent
        self._server = subprocess.Popen(
            [sys.executable, "-m", "tests.ingest"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=root,
            env={**os.environ, **more},
        )

    def run(self, path: Path, first: int, milliseconds: float) -> tuple[list[str], int]:
        """Let a writer begin with batch *first* and end after that time: what it acknowledged, how it ended."""
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._acks.write_text("")
        order = [str(path), first, milliseconds, str(self._acks)]
        self._server.stdin.write(json.dumps(order) + "\n")
        self._server.stdin.flush()
        ended = int(self._server.stdout.readline())
        return self._acks.read_text().split("\n")[:-1], ended

    def __enter__(self) -> Ingest:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.communicate(timeout=60)


def _write(path: str, first: int, milliseconds: float, acks: str) -> None:
    """Write until the timer ends the process: add, remove, refit, back up."""
    from neardup.collections import Collection

    from .articles import article

    handle = os.open(acks, os.O_WRONLY | os.O_APPEND)
    # It ends the process at once, after so much time of its own: how busy the machine is decides nothing.
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, milliseconds / 1000)
    news = Collection.open(path, create=True)
    for number in range(first, first + 10_000):
        docs = [
            {"id": f"{number}.{part}", "text": article(number, part), "n": number} for part in range(BATCH)
        ]
        news.add(docs)
        os.write(handle, f"add {number}\n".encode())
        if number % 5 == 2:
            news.remove([f"{number - 1}.{part}" for part in range(BATCH)])
            os.write(handle, f"remove {number - 1}\n".encode())
        if number % 7 == 3:
            news.refit()
            os.write(handle, b"refit\n")
        if number % 11 == 5:
            copy = f"{path}-copy-{os.getpid()}-{number}"
            news.backup(copy)
            os.write(handle, f"backup {copy}\n".encode())


def _serve() -> None:
    from neardup.collections import Collection

    from .articles import documents

    with tempfile.TemporaryDirectory() as folder, Collection.open(f"{folder}/c.nd", create=True) as news:
        news.add(documents(5, 2))  # which loads what a writer would load first
        news.refit()
    for line in sys.stdin:
        order = json.loads(line)
        child = os.fork()
        if child == 0:
            code = 1
            try:
                _write(*order)
                code = 0
            finally:
                os._exit(code)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    _serve()
