from __future__ import annotations

from factories import make_attempt, make_rank
from steptime.analysis.flags.ranks import straggler
from steptime.analysis.process import Process, measured_processes

STEPS = 200


def make_processes(times_ns: list[int], queues_ns: list[int | None]) -> list[Process]:
    """One process of several ranks: the step time of each, and its time in the run queue."""
    ranks = []
    for number, (time_ns, queue_ns) in enumerate(zip(times_ns, queues_ns, strict=True)):
        ranks.append(make_rank(number, [time_ns] * STEPS, queue_ns=queue_ns))
    attempt = make_attempt([max(times_ns)] * STEPS, ranks=tuple(ranks))
    return list(measured_processes([attempt]))


def test_straggler_is_none_for_even_ranks() -> None:
    assert straggler(make_processes([1000, 1010, 1000], [0, 5, 0])) is None


def test_straggler_names_the_rank_that_ends_last() -> None:
    found = straggler(make_processes([1000, 1000, 1200], [0, 0, 0]))
    assert found is not None and found.startswith(
        "rank 2 on node2 ends after the others in 100 % of the blocks, 20 %"
    )


def test_straggler_names_the_rank_kept_from_running() -> None:
    found = straggler(make_processes([1000, 1000], [40 * STEPS, 400 * STEPS]))
    assert found is not None and "rank 1 on node1 was ready but not running for 40 %" in found


def test_straggler_is_none_without_a_run_queue() -> None:
    assert straggler(make_processes([1000, 1000], [None, 400 * STEPS])) is None


def test_straggler_is_none_for_one_rank() -> None:
    assert straggler(measured_processes([make_attempt([1000] * STEPS)])) is None
