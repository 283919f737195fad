"""Rank by rank: its own steps, and who ended a step last."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from factories import make_attempt, make_position, make_rank, make_record
from steptime.analysis.by_rank import UNDECIDED, by_rank, last_to_end
from steptime.core.measurement import RankSamples
from steptime.core.record import Attempt, Record

STEPS, BLOCKS = 100, 10


def make_shared(*ranks: RankSamples, **changes: Any) -> Attempt:
    """An attempt of several ranks."""
    case = {"devices": len(ranks), "exchange": "allreduce", **changes}
    return make_attempt([1000] * (len(ranks[0].stamps) - 1), ranks=ranks, **case)


def test_last_to_end_names_the_rank_that_ends_last() -> None:
    late = [1200 if step % 4 == 0 else 1000 for step in range(STEPS)]
    even = [1000 if step % 4 else 1150 for step in range(STEPS)]
    attempt = make_shared(make_rank(0, even), make_rank(1, late))
    last = last_to_end(attempt.measurement)  # type: ignore[arg-type]
    assert set(last.tolist()) == {1}


def test_by_rank_reports_time_node_and_share_of_each_rank() -> None:
    def process(number: int) -> Attempt:
        slow = [1010 + number] * STEPS
        return make_shared(
            make_rank(0, [1000] * STEPS),
            make_rank(1, slow, device="cuda:1"),
            id=str(number),
            process=number,
            environment=make_position(number),
        )

    found = by_rank(Record(attempts=tuple(map(process, range(8)))))
    assert found is not None and found.undecided_share == 0
    first, second = found.ranks
    assert (first.node, first.device, first.slowest_share) == ("node0", "cpu", 0.0)
    assert (second.node, second.device, second.slowest_share) == ("node1", "cuda:1", 1.0)
    assert first.typical_time_seconds.value == pytest.approx(1e-6)
    low, high = second.typical_time_seconds.low, second.typical_time_seconds.high
    assert low is not None and high is not None and 1.010e-6 <= low < high <= 1.017e-6


def test_last_to_end_is_undecided_within_the_clock_error() -> None:
    far = make_rank(1, [1000] * STEPS, start_ns=5000, offset_ns=(-4990, -4990), offset_error_ns=20)
    measurement = make_shared(make_rank(0, [1000] * STEPS), far).measurement
    assert measurement is not None and set(last_to_end(measurement).tolist()) == {UNDECIDED}


def test_last_to_end_corrects_clock_offset_and_drift() -> None:
    far = make_rank(1, [1000] * STEPS, start_ns=5000, offset_ns=(-5100, -4900))
    measurement = make_shared(make_rank(0, [1000] * STEPS), far).measurement
    assert measurement is not None
    last = last_to_end(measurement)
    assert (
        np.count_nonzero(last == 0) == pytest.approx(STEPS / 2, abs=1)
        and last[0] == 0
        and last[-1] == 1
    )


def test_last_to_end_adds_pauses_back() -> None:
    paused = make_rank(1, [990] * STEPS, idle_ns=(0, *[300] * (BLOCKS - 1)))
    measurement = make_shared(make_rank(0, [1000] * STEPS), paused).measurement
    assert measurement is not None
    last = last_to_end(measurement)
    assert set(last[: STEPS // BLOCKS].tolist()) == {0} and set(
        last[STEPS // BLOCKS :].tolist()
    ) == {1}


def test_last_to_end_skips_warm_up() -> None:
    ranks = make_rank(0, [5000] * 10 + [1000] * 90), make_rank(1, [1000] * 10 + [2000] * 90)
    found = by_rank(Record(attempts=(make_shared(*ranks, cut=60),)))
    assert found is not None and [rank.slowest_share for rank in found.ranks] == [0.0, 1.0]
    assert found.ranks[1].typical_time_seconds.claim == "no interval: too few processes"


def test_by_rank_reports_exchange_seconds_of_each_rank() -> None:
    pair = make_rank(0, [1000] * STEPS), make_rank(1, [1000] * STEPS)
    told = make_shared(
        *pair, findings={"exchange": {"seconds": [0.1], "rank_seconds": [0.09, 0.1]}}
    )
    found, older = (
        by_rank(Record(attempts=(told,))),
        by_rank(Record(attempts=(make_shared(*pair),))),
    )
    assert found is not None and [rank.exchange_seconds for rank in found.ranks] == [0.09, 0.1]
    assert older is not None and [rank.exchange_seconds for rank in older.ranks] == [None, None]


def test_by_rank_is_none_for_a_single_rank() -> None:
    assert by_rank(make_record()) is None
