from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from steptime.core.case import Case
from steptime.core.ranks import Ranks
from steptime.ranks import pause_cost
from steptime.ranks.launcher import find_free_port
from steptime.ranks.rendezvous import Rendezvous

pytestmark = pytest.mark.slow

SIDE_BY_SIDE = Case(workload="mnist-mlp", devices=2, exchange="independent", phase="training")


class Cold:
    """After a pause a step takes longer by a tenth of the pause."""

    def __init__(self, seconds: float = 0.001) -> None:
        self.seconds, self.steps, self.waited = seconds, 0, 0
        self.ended = time.perf_counter()

    def step(self) -> None:
        self.steps += 1
        paused = time.perf_counter() - self.ended
        time.sleep(self.seconds + (paused / 10 if paused > 0.01 else 0))

    def wait(self) -> None:
        self.waited += 1
        self.ended = time.perf_counter()


def run(programs: list[Cold], case: Case = SIDE_BY_SIDE) -> list[dict[str, Any]]:
    port = find_free_port()

    def one(rank: int) -> dict[str, Any]:
        rendezvous = Rendezvous(
            Ranks(rank, len(programs), port=port), "secret", patience_seconds=30.0
        )
        try:
            return pause_cost.measure_pause_cost(programs[rank], rendezvous, case)
        finally:
            rendezvous.close()

    with ThreadPoolExecutor(len(programs)) as pool:
        return list(pool.map(one, range(len(programs))))


def test_measure_pause_cost_times_steps_after_each_pause() -> None:
    programs = [Cold(), Cold()]
    first, other = run(programs)
    cost = first["pause_cost"]
    assert other == {} and cost["pauses_seconds"] == pause_cost.PAUSES_SECONDS
    assert 1 <= len(cost["turns"]) <= pause_cost.MOST_TURNS
    for turn in cost["turns"]:
        assert len(turn) == len(pause_cost.PAUSES_SECONDS) and turn[-1] - turn[0] > 0.003
    assert all(
        program.waited == program.steps for program in programs
    )  # what a device still does is in its step


def test_measure_pause_cost_takes_slowest_rank() -> None:
    cost = run([Cold(), Cold(0.01)])[0]["pause_cost"]
    assert min(min(turn) for turn in cost["turns"]) >= 0.01


def test_measure_pause_cost_is_empty_if_a_turn_takes_too_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pause_cost, "SECONDS", 0.2)
    programs = [Cold(), Cold()]
    assert run(programs) == [{}, {}] and max(program.steps for program in programs) == len(
        pause_cost.PAUSES_SECONDS
    )


@pytest.mark.parametrize(
    "settings", [{"exchange": "allreduce"}, {"phase": "inference"}, {"device": "cuda:0"}]
)
def test_measure_pause_cost_is_only_for_independent_cpu_training(settings: dict[str, str]) -> None:
    programs = [Cold(), Cold()]
    assert run(programs, Case(**{**SIDE_BY_SIDE.to_dict(), **settings})) == [{}, {}]
    assert not any(program.steps for program in programs)
