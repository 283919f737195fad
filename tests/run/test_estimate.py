"""Estimates of time: from the protocol, or from what the same case took before."""

from __future__ import annotations

from dataclasses import replace

import pytest

from steptime.core.case import Case
from steptime.core.protocol import preset
from steptime.run.estimate import (
    SHARE_OF_PEAK,
    SHARED,
    History,
    PastRun,
    estimate,
    speed,
    step_seconds,
)

CASE = Case(workload="lenet5")


def past(*ran: tuple[Case, float], by: str = "quick") -> History:
    found: History = {}
    for case, seconds in ran:
        shared = tuple(getattr(case, name) for name in SHARED)
        found.setdefault(shared, []).append(PastRun(case, preset(by), seconds))
    return found


def test_estimate_prefers_the_history_of_the_same_case() -> None:
    guess, known = (estimate(CASE, preset("quick"), before) for before in ({}, past((CASE, 40.0))))
    assert round(known.least_seconds, 6) == 120.0 and (known.source, known.like) == (
        "history",
        CASE,
    )
    assert 0 < guess.least_seconds < 60 and (guess.source, guess.like) == ("guess", None)


def test_estimate_ignores_seed_and_trial() -> None:
    other = replace(CASE, seed=3, trial=1)
    assert estimate(other, preset("quick"), past((CASE, 40.0))).source == "history"


def test_estimate_is_corrected_by_a_similar_case() -> None:
    near, far = replace(CASE, batch_size=64), replace(CASE, batch_size=1, precision="bf16")
    guess = estimate(CASE, preset("quick"), {})
    learned = estimate(CASE, preset("quick"), past((far, 9.0), (near, 40.0)))
    assert (learned.like, learned.differs, learned.source) == (near, ("batch_size",), "similar")
    assert learned.least_seconds > 2 * guess.least_seconds


@pytest.mark.parametrize(
    "words", [{"framework": "numpy"}, {"mode": "compiled"}, {"workload": "mnist-mlp"}]
)
def test_estimate_ignores_other_networks_frameworks_and_modes(words: dict[str, str]) -> None:
    other = Case(**{"workload": "lenet5", **words})
    assert estimate(CASE, preset("quick"), past((other, 40.0))).source == "guess"


def test_estimate_scales_from_a_shorter_protocol() -> None:
    slow = replace(preset("quick"), least_seconds=60.0)
    known = past((CASE, 5.0))
    assert (
        estimate(CASE, slow, known).least_seconds
        > 5 * estimate(CASE, preset("quick"), known).least_seconds
    )


def test_estimate_bounds_the_most_by_the_budget() -> None:
    standard = preset("standard")
    quick, slow = (
        estimate(CASE, standard, past((CASE, seconds), by="standard")) for seconds in (5.0, 100.0)
    )
    assert (round(quick.least_seconds, 6), quick.most_seconds) == (40.0, standard.budget_seconds)
    assert [round(seconds, 6) for seconds in (slow.least_seconds, slow.most_seconds)] == [
        800.0,
        800.0,
    ]


def test_estimate_is_longer_for_compilation_and_gpus() -> None:
    plain, compiled, gpu = (
        estimate(Case(workload="lenet5", **words), preset("quick"), {}).least_seconds
        for words in ({}, {"mode": "compiled"}, {"device": "cuda:0"})
    )
    assert plain < gpu < compiled


def test_estimate_of_a_large_network_follows_its_flops() -> None:
    small, large = (
        step_seconds(Case(workload=name, threads=2), {}) for name in ("lenet5", "resnet50")
    )
    assert large > 100 * small
    guess = estimate(Case(workload="resnet50", threads=2), preset("quick"), {})
    assert guess.least_seconds > 3 * 5 * large


def test_speed_prefers_a_measured_peak() -> None:
    slow, fast = (speed(CASE, {"cpu": {"fp32": peak}}) for peak in (1e10, 1e12))
    assert fast == 100 * slow == SHARE_OF_PEAK * 1e12
    assert speed(CASE, {"cpu": {"bf16": 1e15}}) == speed(CASE, {})


def test_speed_is_low_for_the_reference_and_high_for_a_gpu() -> None:
    reference, cpu, gpu = {"framework": "numpy"}, {"threads": 4}, {"device": "cuda:0"}
    speeds = [speed(Case(workload="lenet5", **words), {}) for words in (reference, cpu, gpu)]
    assert speeds == sorted(speeds) and len(set(speeds)) == 3


def test_estimate_of_slow_steps_shrinks_with_the_budget() -> None:
    case = Case(workload="resnet50", threads=2)
    short = estimate(case, preset("quick"), {})
    long = estimate(case, replace(preset("quick"), budget_seconds=1e6), {})
    assert short.least_seconds < long.least_seconds / 2
