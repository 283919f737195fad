"""Feed a program a new batch before each step, prepared in advance by a thread if wanted."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Iterator
from typing import Any

from steptime.core.program import Program

Batches = Iterator[dict[str, Any]]


class FedProgram:
    """A program that takes the next batch before each step. All else is the program's own."""

    def __init__(self, program: Program, batches: Batches) -> None:
        self._program = program
        self._batches = batches

    def step(self) -> Any:
        self._program.feed(next(self._batches))
        return self._program.step()

    # The meter also needs `timer`, `wait`, `facts` and so on.
    def __getattr__(self, name: str) -> Any:
        return getattr(self._program, name)


@contextlib.contextmanager
def prefetch(batches: Batches, most: int) -> Iterator[Batches]:
    """A thread keeps up to `most` batches ready. With 0 the consumer makes each one itself."""
    if not most:
        yield batches
        return
    ready: queue.Queue[dict[str, Any] | BaseException] = queue.Queue(most)
    stopped = threading.Event()
    thread = threading.Thread(target=_fill, args=(ready, batches, stopped), daemon=True)
    thread.start()
    try:
        yield _take(ready)
    finally:
        stopped.set()
        # The thread may be waiting for room in the queue.
        with contextlib.suppress(queue.Empty):
            ready.get_nowait()
        thread.join()


def _fill(ready: queue.Queue[Any], batches: Batches, stopped: threading.Event) -> None:
    try:
        while not stopped.is_set():
            ready.put(next(batches))
    except BaseException as problem:
        ready.put(problem)  # the consumer raises it


def _take(ready: queue.Queue[Any]) -> Batches:
    while True:
        batch = ready.get()
        if isinstance(batch, BaseException):
            raise batch
        yield batch
