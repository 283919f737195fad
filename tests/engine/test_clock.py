from __future__ import annotations

from itertools import chain, count, repeat

from steptime.engine.clock import SOURCE, Drift, self_test, source


def test_self_test_cost_is_median_and_resolution_smallest_step():
    ticks = chain([0, 40, 90, 140, 190], repeat(190))
    facts = self_test(lambda: next(ticks), calls=5)
    assert facts == {"cost_ns": 50, "resolution_ns": 40, "monotone": True}


def test_self_test_sees_clock_that_goes_back():
    ticks = iter([10, 20, 15, 30])
    assert not self_test(lambda: next(ticks), calls=4)["monotone"]


def test_self_test_has_no_resolution_for_stopped_clock():
    assert self_test(lambda: 5, calls=10)["resolution_ns"] == 0


def test_self_test_passes_on_this_machine():
    facts = self_test()
    assert facts["monotone"] and 0 < facts["resolution_ns"] <= facts["cost_ns"]


def test_clock_source_may_be_missing(tmp_path):
    assert source(tmp_path) is None
    (tmp_path / SOURCE).parent.mkdir(parents=True)
    (tmp_path / SOURCE).write_text("hpet\n")
    assert source(tmp_path) == "hpet"


def test_drift_shows_clock_that_runs_one_percent_fast():
    fast, right = count(0, 101), count(0, 100)
    assert round(Drift(lambda: next(fast), lambda: next(right)).share(), 6) == 0.01
