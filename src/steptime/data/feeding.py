"""A program whose every step takes the next batch first, made by itself or by a thread that keeps some ready."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Iterator
from typing import Any

Batches = Iterator[dict[str, Any]]


class FedProgram:
    """A program whose every step takes the next batch first. The rest is the program's own."""

    def __init__(self, program: Any, batches: Batches) -> None:
        self._program, self._batches = program, batches

    def step(self) -> Any:
        self._program.feed(next(self._batches))
        return self._program.step()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._program, name)


@contextlib.contextmanager
def ahead(batches: Batches, most: int) -> Iterator[Batches]:
    """A thread keeps so many ready; with none, whoever wants a batch makes it himself."""
    if not most:
        yield batches
        return
    ready: queue.Queue[dict[str, Any] | BaseException] = queue.Queue(most)
    over = threading.Event()
    thread = threading.Thread(target=_fill, args=(ready, batches, over), daemon=True)
    thread.start()
    try:
        yield _taken(ready)
    finally:
        over.set()
        with contextlib.suppress(queue.Empty):
            ready.get_nowait()  # it may wait for room
        thread.join()


def _fill(ready: queue.Queue[Any], batches: Batches, over: threading.Event) -> None:
    try:
        while not over.is_set():
            ready.put(next(batches))
    except BaseException as problem:  # told to whoever waits
        ready.put(problem)


def _taken(ready: queue.Queue[Any]) -> Batches:
    while True:
        found = ready.get()
        if isinstance(found, BaseException):
            raise found
        yield found
