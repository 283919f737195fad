from __future__ import annotations

import threading
from collections.abc import Iterator
from itertools import count, islice
from typing import Any

import pytest

from steptime.data.feeding import FedProgram, prefetch


class Program:
    timer = None

    def __init__(self) -> None:
        self.batch: Any = None

    def feed(self, batch: Any) -> None:
        self.batch = batch

    def step(self) -> Any:
        return self.batch


def numbered() -> Iterator[dict[str, Any]]:
    return ({"input": number} for number in count())


def test_fed_program_takes_next_batch_in_each_step() -> None:
    program = FedProgram(Program(), numbered())
    assert [program.step()["input"] for _ in range(3)] == [0, 1, 2] and program.timer is None


@pytest.mark.parametrize("most", [0, 1, 3])
def test_prefetch_keeps_order(most: int) -> None:
    before = threading.active_count()
    with prefetch(numbered(), most) as batches:
        assert [batch["input"] for batch in islice(batches, 7)] == list(range(7))
    assert threading.active_count() == before


def test_prefetch_makes_batches_in_advance() -> None:
    made = threading.Event()

    def batches() -> Iterator[dict[str, Any]]:
        yield {"input": 0}
        made.set()
        yield {"input": 1}

    with prefetch(batches(), 2):
        assert made.wait(10)


def test_prefetch_raises_error_of_the_thread() -> None:
    def broken() -> Iterator[dict[str, Any]]:
        yield {"input": 0}
        raise OSError("the disk is gone")

    with prefetch(broken(), 2) as batches:
        next(batches)
        with pytest.raises(OSError, match="the disk is gone"):
            next(batches)
