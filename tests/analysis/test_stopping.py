from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.signal import lfilter

from factories import make_attempt, make_record, make_times
from steptime.analysis import intervals
from steptime.analysis.process import measured_processes
from steptime.analysis.result import result
from steptime.analysis.stopping import (
    is_enough,
    next_protocol,
    planned_looks,
    set_aside,
    steps_per_process,
    wants_more,
)
from steptime.core.protocol import Protocol, preset
from steptime.core.record import Record

pytestmark = pytest.mark.slow
Make = Callable[..., Any]
SESSIONS, MOST, STEPS = 2000, 36, 40
STANDARD = preset("standard")


def simulated(law: str, spread: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Medians and means of the processes of many sessions.

    Process effect × AR(1) × outliers × contamination."""
    rng, shape = np.random.default_rng(seed), (SESSIONS, MOST)
    units = rng.standard_t(3, shape) / 3**0.5 if law == "t3" else rng.standard_normal(shape)
    effect = np.exp(spread * units) if law == "lognormal" else 1 + spread * units
    if law == "disturbed":
        effect *= np.where(rng.random(shape) < 0.1, 1.1 + 0.1 * rng.random(shape), 1)
    wobble = lfilter([0.8 * 0.03], [1, -0.6], rng.standard_normal((*shape, STEPS)))
    outliers = 1 + np.where(rng.random(wobble.shape) < 0.02, rng.exponential(0.3, wobble.shape), 0)
    steps = effect[..., None] * (1 + wobble) * outliers
    return np.median(steps, axis=2), steps.mean(axis=2)


def pseudo_median(values: np.ndarray) -> float:
    first, second = np.array_split(values.ravel(), 2)
    return float(np.median((first + second) / 2))


def stopping_counts(medians: np.ndarray, protocol: Protocol) -> Iterator[int]:
    """Of interleaved processes: their interval is not widened."""
    for row in medians:
        for count in planned_looks(protocol):
            interval = intervals.signed_rank(row[:count], protocol.look_alpha)
            if is_enough(count, interval and interval.half_width, protocol):
                yield count
                break


def coverage(rows: np.ndarray, counts: list[int], truth: float) -> float:
    held = []
    for row, count in zip(rows, counts, strict=True):
        interval = intervals.signed_rank(row[:count], STANDARD.look_alpha)
        held.append(interval is not None and interval.low <= truth <= interval.high)
    return float(np.mean(held))


@pytest.mark.parametrize("law", ["normal", "lognormal", "t3", "disturbed"])
def test_typical_interval_keeps_its_coverage_when_it_decides_the_end(law: str) -> None:
    medians, _ = simulated(law, 0.02, seed=11)
    counts = list(stopping_counts(medians, STANDARD))
    assert coverage(medians, counts, pseudo_median(medians)) >= 0.93
    assert np.mean(counts) < 20


def test_looking_after_every_process_loses_coverage() -> None:
    _, means = simulated("normal", 0.02, seed=13)
    hits = 0
    for row in means[:1000]:
        found = (intervals.student(row[:count], 0.05) for count in range(3, MOST + 1))
        first = next(
            (one for one in found if one and one.half_width <= 0.01), intervals.student(row, 0.05)
        )
        hits += first is not None and first.low <= means.mean() <= first.high
    assert hits / 1000 < 0.92


@pytest.mark.parametrize("name", ["cnn_train_t1", "mlp_infer_t1"])
def test_intervals_keep_their_coverage_on_a_recorded_noisy_machine(name: str, bank: Make) -> None:
    steps = bank("bank_loud")[f"{name}_dt_us_x10"][:, 40:].astype(float)
    medians, means, rng = np.median(steps, axis=1), steps.mean(axis=1), np.random.default_rng(4)
    typical, mean = intervals.typical(medians), means.mean()
    hits = []
    for _ in range(1000):
        chosen = rng.permutation(len(steps))[: rng.integers(8, 13)]
        found = [
            (intervals.signed_rank(medians[chosen], STANDARD.look_alpha), typical),
            (pooled(means[chosen], steps[chosen]), mean),
            (pooled(means[chosen[:1]], steps[chosen[:1]]), mean),
        ]
        hits.append([one.low <= truth <= one.high for one, truth in found])
    covered = np.mean(hits, axis=0)
    assert covered[0] >= 0.93
    assert covered[1] < 0.5 and covered[2] < 0.5


def pooled(means: np.ndarray, steps: np.ndarray) -> intervals.Interval:
    """What treating every step as independent claims."""
    reach = 1.96 * steps.std() / steps.size**0.5
    return intervals.Interval(means.mean(), means.mean() - reach, means.mean() + reach)


def test_planned_looks_match_the_method() -> None:
    assert planned_looks(STANDARD) == [8, 11, 15, 20, 27, 36]
    assert planned_looks(preset("gold")) == [8, 11, 15, 20, 27, 36]
    assert planned_looks(replace(STANDARD, processes_least=6))[:2] == [6, 8]
    assert planned_looks(preset("quick")) == [3]


def test_is_enough_if_the_target_is_met_at_a_look() -> None:
    assert not is_enough(7, 0.01, STANDARD)
    assert is_enough(8, 0.01, STANDARD)
    assert not is_enough(8, 0.03, STANDARD)
    assert not is_enough(9, 0.01, STANDARD)
    assert not is_enough(8, None, STANDARD)


def test_is_enough_if_the_budget_is_spent_after_the_least_processes() -> None:
    assert is_enough(9, 0.03, STANDARD, elapsed_seconds=121)
    assert not is_enough(7, 0.03, STANDARD, elapsed_seconds=1e6)
    assert not is_enough(9, 0.03, STANDARD, elapsed_seconds=119)


def test_wants_more_by_the_printed_interval() -> None:
    """The same medians are enough for one of many cases, and too few for a case alone."""
    interleaved = make_record(seed=2, processes=8)
    alone = make_record(seed=2, processes=8, environment={})
    assert not wants_more(interleaved)
    assert wants_more(alone)
    for record in (interleaved, alone):
        half_width = result(record).times.typical_time_seconds.half_width
        assert half_width is not None
        assert wants_more(record) == (half_width > STANDARD.target)


def test_wants_more_counts_elapsed_time_towards_the_budget() -> None:
    record = make_record(processes=9)
    longer = tuple(
        replace(attempt, ended="2026-01-01T00:00:20+00:00") for attempt in record.attempts
    )
    assert wants_more(record)
    assert not wants_more(Record(attempts=longer))


@pytest.mark.parametrize(("name", "count"), [("quick", 3), ("single", 1)])
def test_wants_more_stops_at_a_fixed_number_of_processes(name: str, count: int) -> None:
    record = make_record(processes=count, protocol=preset(name))
    assert not wants_more(record)
    assert count == 1 or wants_more(Record(attempts=record.attempts[:-1]))


def test_wants_more_for_an_empty_record() -> None:
    assert wants_more(Record())


def test_next_protocol_starts_from_the_largest_cut() -> None:
    late = make_attempt(make_times(3), cut=30, process=1)
    assert (
        next_protocol(Record(attempts=(*make_record(processes=1).attempts, late))).warmup_start
        == 30
    )


def test_next_protocol_sets_steps_once_after_the_pilot() -> None:
    record = make_record(processes=4)
    assert next_protocol(Record(attempts=record.attempts[:2])).steps == 0
    steps = next_protocol(Record(attempts=record.attempts[:3])).steps
    assert steps >= 500  # half a second of millisecond steps
    decided = tuple(
        replace(attempt, protocol=replace(STANDARD, steps=77)) for attempt in record.attempts
    )
    assert next_protocol(Record(attempts=decided)).steps == 77


def test_steps_per_process_is_capped_if_only_steps_vary() -> None:
    times = np.tile([900_000, 1_100_000], 100)
    pilot = measured_processes([make_attempt(times, process=p) for p in range(3)])
    # Five seconds each, 0.2 of them measuring: 4.8 s of start-up at 1 ms a step.
    assert steps_per_process(pilot, STANDARD) == pytest.approx(3 * 4800, rel=0.01)


def test_steps_per_process_is_least_if_only_processes_vary() -> None:
    pilot = measured_processes(
        [
            make_attempt([1_000_000 + 100_000 * p + i % 2 for i in range(200)], process=p)
            for p in range(3)
        ]
    )
    assert steps_per_process(pilot, STANDARD) == pytest.approx(500, rel=0.2)


def test_steps_per_process_follows_the_variance() -> None:
    """n = √(start / step · within / between), here √(4800 · 1e8 / 4e6) ≈ 346."""
    rng = np.random.default_rng(0)
    protocol = replace(STANDARD, least_seconds=0.1)
    pilot = [
        make_attempt(
            np.rint(1e6 + 2e3 * (p - 1) + 1e4 * rng.standard_normal(200)).astype(int), process=p
        )
        for p in range(3)
    ]
    assert 150 <= steps_per_process(measured_processes(pilot), protocol) <= 700


def test_set_aside_needs_evidence_other_than_time() -> None:
    calm = [make_attempt(make_times(p), process=p, id=str(p)) for p in range(6)]
    slow = make_attempt(make_times(7, centre_ns=9e6), process=6, id="slow")
    swapped = make_attempt(make_times(8), process=7, id="swapped", swap_ins=3)
    hot = make_attempt(make_times(9), process=8, id="hot", gpu={"reasons": float(0x40)})
    jumped = make_attempt(make_times(9), process=9, id="jumped", clock={"drift": 0.5})
    assert list(set_aside(measured_processes([*calm, slow, swapped]))) == ["swapped"]
    assert list(set_aside(measured_processes([*calm, hot]))) == ["hot"]
    assert list(set_aside(measured_processes([*calm, jumped]))) == ["jumped"]


def test_set_aside_takes_at_most_a_quarter() -> None:
    assert len(set_aside(measured_processes(make_record(processes=9, swap_ins=1).attempts))) == 2
    assert len(set_aside(measured_processes(make_record(processes=3, swap_ins=1).attempts))) == 0


def test_wants_more_replaces_a_process_set_aside() -> None:
    eight = make_record(processes=8).attempts
    swapped = make_attempt(make_times(8), process=0, id="swapped", swap_ins=3)
    assert not wants_more(Record(attempts=eight))
    assert wants_more(Record(attempts=(swapped, *eight[1:])))
    assert not wants_more(Record(attempts=(swapped, *eight)))
