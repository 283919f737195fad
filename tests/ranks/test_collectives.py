from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from steptime.core.case import Case
from steptime.core.errors import Unsupported
from steptime.core.ranks import Ranks
from steptime.ranks.collectives import (
    LEAST_REPEATS,
    MOST_REPEATS,
    _bandwidth,
    _median_interval,
    explain_missing_exchange,
    measure_exchange,
)
from steptime.ranks.launcher import find_free_port
from steptime.ranks.rendezvous import Rendezvous

BYTES = 1000


class Exchanging:
    def __init__(self, seconds: float = 0.005) -> None:
        self.seconds, self.times = seconds, {False: 0, True: 0}

    def exchange(self, *, tiny: bool = False) -> int:
        self.times[tiny] += 1
        time.sleep(self.seconds / 10 if tiny else self.seconds)
        return 4 if tiny else BYTES

    def facts(self) -> dict[str, Any]:
        return {"exchange_backend": "pigeons"}


class Alone:
    def exchange(self, *, tiny: bool = False) -> int:
        raise Unsupported("These ranks exchange nothing.")


def run(programs: list[Any]) -> list[dict[str, Any]]:
    port = find_free_port()

    def one(rank: int) -> dict[str, Any]:
        rendezvous = Rendezvous(
            Ranks(rank, len(programs), port=port), "secret", patience_seconds=5.0
        )
        try:
            return measure_exchange(programs[rank], rendezvous)
        finally:
            rendezvous.close()

    with ThreadPoolExecutor(len(programs)) as pool:
        return list(pool.map(one, range(len(programs))))


def test_measure_exchange_reports_on_rank_0() -> None:
    programs = [Exchanging() for _ in range(4)]
    first, *others = run(programs)
    exchange = first["exchange"]
    assert (exchange["backend"], exchange["ranks"], exchange["bytes"]) == (
        "pigeons",
        4,
        BYTES,
    ) and others == [{}] * 3
    assert (
        LEAST_REPEATS <= len(exchange["seconds"]) <= MOST_REPEATS and min(exchange["seconds"]) > 0
    )
    middle = sorted(exchange["seconds"])[len(exchange["seconds"]) // 2]
    assert exchange["bus_bytes_per_second"] == pytest.approx(1.5 * BYTES / middle, rel=0.5)


def test_measure_exchange_leaves_out_first_exchange() -> None:
    programs = [Exchanging(), Exchanging()]
    exchange = run(programs)[0]["exchange"]
    counts = {False: 1 + len(exchange["seconds"]), True: 1 + len(exchange["tiny"]["seconds"])}
    assert [program.times for program in programs] == [counts] * 2


def test_measure_exchange_separates_latency_from_bandwidth() -> None:
    exchange = run([Exchanging(), Exchanging()])[0]["exchange"]
    latency, rate = exchange["latency_seconds"], exchange["bandwidth_bytes_per_second"]
    assert exchange["tiny"]["bytes"] == 4 and latency["low"] <= latency["value"] <= latency["high"]
    assert latency["value"] < max(exchange["seconds"]) and rate["low"] <= rate["value"]
    assert rate["value"] > exchange["bus_bytes_per_second"]  # which pays for the latency, too


def test_measure_exchange_has_seconds_of_each_rank() -> None:
    exchange = run([Exchanging(), Exchanging(0.02)])[0]["exchange"]
    assert (
        exchange["rank_seconds"][1] > 0.02 > exchange["rank_seconds"][0]
        and min(exchange["seconds"]) > 0.02
    )


@pytest.mark.parametrize(("count", "ends"), [(5, (None, None)), (6, (1, 6)), (20, (6, 15))])
def test_median_interval_is_binomial(count: int, ends: Any) -> None:
    interval = _median_interval(range(count, 0, -1))
    assert (interval["low"], interval["high"]) == ends and interval["value"] == (count + 1) / 2


def test_bandwidth_is_none_if_bytes_take_no_longer_than_one_number() -> None:
    def middle(*values: float) -> dict[str, float | None]:
        return dict(zip(("value", "low", "high"), values, strict=True))

    assert _bandwidth(100, middle(1.0, 0.9, 1.1), middle(1.0, 0.9, 1.1)) is None
    assert _bandwidth(100, middle(2.0, 1.0, 3.0), middle(1.0, 0.5, 1.5)) == {
        "value": 100.0,
        "low": 40.0,
        "high": None,
    }


@pytest.mark.parametrize("program", [Alone(), object()])
def test_measure_exchange_is_empty_without_exchange(program: Any) -> None:
    assert run([program, program]) == [{}, {}]


@pytest.mark.parametrize(
    ("program", "settings", "refused"),
    [
        (Exchanging(), {"exchange": "allreduce"}, False),
        (object(), {"exchange": "allreduce"}, True),
        (object(), {"exchange": "parameter_server"}, True),
        (object(), {"exchange": "independent"}, False),
        (object(), {"exchange": "allreduce", "phase": "inference"}, False),
    ],
)
def test_explain_missing_exchange_only_for_exchanging_training(
    program: Any, settings: Any, refused: bool
) -> None:
    assert (
        bool(explain_missing_exchange(program, Case(workload="lenet5", devices=2, **settings)))
        is refused
    )
