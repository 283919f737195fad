"""Estimates of time: from the protocol, or from what the same case took before."""

from __future__ import annotations

from steptime.cli.estimate import estimate
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
