"""Threads of Python, started only where there is memory for one.

Python waits for a new thread to say that it has begun, and a thread that finds no memory ends before it does:
the program would wait forever.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Thread
from typing import Any, TypeVar

from neardup import _native

T = TypeVar("T")


def started(work: Callable[[], object]) -> Thread:
    """A thread that does *work*, and does not keep the program from ending."""
    _native.check_thread_memory()
    thread = Thread(target=work, daemon=True)
    thread.start()
    return thread


class Pool(ThreadPoolExecutor):
    """Threads that do what is handed in."""

    def submit(self, work: Callable[..., T], /, *args: Any, **named: Any) -> Future[T]:
        """What *work* will return; MemoryError where there is none for another thread."""
        _native.check_thread_memory()
        return super().submit(work, *args, **named)
