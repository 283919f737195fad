"""Estimates of time: from the protocol, or from what the same case took before."""

from __future__ import annotations

from steptime.cli.estimate import SHARE_OF_ROOF, estimate, speed, step_seconds
from steptime.core.case import Case
from steptime.core.protocol import profile

CASE = Case(workload="lenet5")


def test_history_of_the_same_case_wins_over_the_guess() -> None:
    guess, known = (estimate(CASE, profile("quick"), past) for past in ({}, {CASE.key: 40.0}))
    assert (known.least_seconds, known.from_history) == (120.0, True)
    assert 0 < guess.least_seconds < 60 and not guess.from_history


def test_the_budget_bounds_the_most_but_not_the_least() -> None:
    standard = profile("standard")
    quick, slow = (estimate(CASE, standard, {CASE.key: seconds}) for seconds in (5.0, 100.0))
    assert (quick.least_seconds, quick.most_seconds) == (30.0, standard.budget_seconds)
    assert (slow.least_seconds, slow.most_seconds) == (600.0, 600.0)


def test_compiling_and_a_gpu_take_longer_to_start() -> None:
    plain, compiled, gpu = (
        estimate(Case(workload="lenet5", **words), profile("quick"), {}).least_seconds  # type: ignore[arg-type]
        for words in ({}, {"mode": "compiled"}, {"device": "cuda:0"})
    )
    assert plain < gpu < compiled


def test_a_large_network_is_guessed_by_its_arithmetic() -> None:
    small, large = (step_seconds(Case(workload=name, threads=2), {}) for name in ("lenet5", "resnet50"))
    assert large > 100 * small
    guess = estimate(Case(workload="resnet50", threads=2), profile("quick"), {})
    assert guess.least_seconds > 3 * 30 * large


def test_a_measured_roof_is_believed_more_than_a_usual_speed() -> None:
    slow, fast = (speed(CASE, {"cpu": {"fp32": roof}}) for roof in (1e10, 1e12))
    assert fast == 100 * slow == SHARE_OF_ROOF * 1e12
    assert speed(CASE, {"cpu": {"bf16": 1e15}}) == speed(CASE, {})


def test_the_reference_is_slow_and_a_gpu_is_fast() -> None:
    reference, cpu, gpu = {"framework": "numpy"}, {"threads": 4}, {"device": "cuda:0"}
    speeds = [speed(Case(workload="lenet5", **words), {}) for words in (reference, cpu, gpu)]  # type: ignore[arg-type]
    assert speeds == sorted(speeds) and len(set(speeds)) == 3
