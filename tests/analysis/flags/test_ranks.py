from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate
from typing import Any

import pytest

from steptime.analysis.flags.ranks import straggler
from steptime.analysis.process import Process, measured_processes
from steptime.core.measurement import RankSamples

STEPS = 200


@pytest.fixture
def part(attempt_of: Callable[..., Any]) -> Callable[..., list[Process]]:
    def make(times_ns: list[int], queues_ns: list[int | None]) -> list[Process]:
        """Of ranks: each with its step's time and the time that it was kept from running."""
        ranks = tuple(
            RankSamples(
                rank=rank,
                node=f"node{rank}",
                stamps=list(accumulate([time_ns] * STEPS, initial=0)),
                device_ns=None,
                idle_ns=(0,) * 10,
                cpu_ns=1,
                queue_ns=queue_ns,
                cut=0,
                steady=True,
            )
            for rank, (time_ns, queue_ns) in enumerate(zip(times_ns, queues_ns, strict=True))
        )
        return list(measured_processes([attempt_of([max(times_ns)] * STEPS, ranks=ranks)]))

    return make


def test_straggler_is_none_for_even_ranks(part: Callable[..., list[Process]]) -> None:
    assert straggler(part([1000, 1010, 1000], [0, 5, 0])) is None


def test_straggler_names_the_rank_that_ends_last(part: Callable[..., list[Process]]) -> None:
    found = straggler(part([1000, 1000, 1200], [0, 0, 0]))
    assert found is not None and found.startswith(
        "rank 2 on node2 ends after the others in 100 % of the blocks, 20 %"
    )


def test_straggler_names_the_rank_kept_from_running(
    part: Callable[..., list[Process]],
) -> None:
    found = straggler(part([1000, 1000], [40 * STEPS, 400 * STEPS]))
    assert found is not None and "rank 1 on node1 was ready but not running for 40 %" in found


def test_straggler_is_none_without_a_run_queue(
    part: Callable[..., list[Process]],
) -> None:
    assert straggler(part([1000, 1000], [None, 400 * STEPS])) is None


def test_straggler_is_none_for_one_rank(attempt_of: Callable[..., Any]) -> None:
    assert straggler(measured_processes([attempt_of([1000] * STEPS)])) is None
