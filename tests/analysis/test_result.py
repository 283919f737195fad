from __future__ import annotations

import json
import math
import statistics as plain
import tracemalloc
from array import array
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from factories import make_attempt, make_record, make_times
from steptime.analysis.result import result
from steptime.core.cause import Cause
from steptime.core.errors import SteptimeError
from steptime.core.protocol import preset
from steptime.core.record import Failure, Record


@pytest.fixture
def record() -> Record:
    """Ordinary: warm-up to cut, side channels that are not zero, a slow step here and there."""
    made = []
    for process in range(8):
        times = make_times(process, steps=400)
        times[:30] *= 4
        times[37 * (process + 1)] *= 6
        side = {
            "faults": 7 * process,
            "queue_ns": 90_000 + process,
            "cpu_ns": 19_000_000,
            "switches": process,
        }
        made.append(
            make_attempt(times, cut=30, process=process, id=str(process), blocks=20, **side)
        )
    return Record(attempts=tuple(made))


def kept_seconds(attempt: Any) -> list[float]:
    """From the stored stamps, with nothing of the analysis."""
    stamps, cut = list(attempt.measurement.stamps), attempt.measurement.cut
    return [(b - a) / 1e9 for a, b in zip(stamps[cut:], stamps[cut + 1 :], strict=False)]


def recomputed(record: Record) -> dict[str, Any]:
    """Every statistic once more in plain Python, from the raw samples, as METHOD.md defines it."""
    each = [kept_seconds(attempt) for attempt in record.attempts]
    every = [second for row in each for second in row]
    medians, means = [plain.median(row) for row in each], [plain.fmean(row) for row in each]
    walsh = sorted((a + b) / 2 for i, a in enumerate(medians) for b in medians[i:])
    speeds = [32 / second for second in every]
    widening = widened_by(medians)
    kept_blocks = [
        b for a in record.attempts for b in a.measurement.blocks[2:]
    ]  # 20 samples each: 30 cuts two
    kept_steps = 8 * 18 * 20
    centre = plain.median(walsh)
    return {
        "typical": centre,
        # 8 processes: rank sums 0, 1, 2 have 1 + 1 + 1 of 256 signs, both tails 6 / 256 = 0.023.
        # A fourth is too much.
        "typical_low": centre * (walsh[3 - 1] / centre) ** widening,
        "typical_high": centre * (walsh[-3] / centre) ** widening,
        "widening": widening,
        "mean_time": plain.fmean(every),
        "mean_speed": 32 / plain.fmean(every),
        "uncertainty": plain.pstdev(speeds) / math.sqrt(len(speeds)),
        "jitter": 1.4826 * plain.median(abs(s - plain.median(speeds)) for s in speeds),
        "p95": plain.quantiles(every, n=100, method="inclusive")[94],
        "between": plain.stdev(medians) / plain.fmean(medians),
        "within": math.sqrt(plain.fmean(plain.pvariance(row) for row in each)) / plain.fmean(means),
        "lag_one": plain.fmean(lag_one(row) for row in each),
        "effective": sum(geyer(row) for row in each),
        "outliers": sum(sum(t > outlier_mark(row) for t in row) for row in each) / len(every),
        "slowest": max(every),
        "cpu": sum(b.cpu_ns for b in kept_blocks) / 1e9 / kept_steps,
        "queue": sum(b.queue_ns for b in kept_blocks) / sum(b.host_ns for b in kept_blocks),
        "faults": sum(b.faults for b in kept_blocks) / kept_steps,
        "switches": sum(b.switches for b in kept_blocks) / kept_steps,
        "flops": 1000 / centre,
    }


def widened_by(medians: list[float]) -> float:
    """For a case alone: √((1 + ρ) / (1 − ρ)) with the rank correlation of neighbours."""
    ranks = [sorted(medians).index(median) for median in medians]
    steps = sum((b - a) ** 2 for a, b in pairwise(ranks))
    spread = sum((rank - plain.fmean(ranks)) ** 2 for rank in ranks)
    correlation = min(0.8, 1 - steps / spread / 2 + 3.5 / math.sqrt(len(medians)))
    return math.sqrt((1 + correlation) / (1 - correlation))


def covariance(row: list[float], lag: int) -> float:
    mean = plain.fmean(row)
    return sum((a - mean) * (b - mean) for a, b in zip(row, row[lag:], strict=False)) / len(row)


def lag_one(row: list[float]) -> float:
    return covariance(row, 1) / covariance(row, 0)


def geyer(row: list[float]) -> float:
    total, lag = 0.0, 0
    while lag + 1 < len(row) and (pair := covariance(row, lag) + covariance(row, lag + 1)) > 0:
        total, lag = total + pair, lag + 2
    return min(len(row), len(row) / (2 * total / covariance(row, 0) - 1))


def outlier_mark(row: list[float]) -> float:
    middle = plain.median(row)
    return middle + 5 * 1.4826 * plain.median(abs(t - middle) for t in row)


def test_result_can_be_recomputed_from_the_raw_samples(record: Record) -> None:
    found = json.loads(json.dumps(result(record).to_dict()))
    typical, numbers = found["typical_time_seconds"], found["speed_numbers"]
    shown = {
        "typical": typical["value"],
        "typical_low": typical["low"],
        "typical_high": typical["high"],
        "widening": found["interval_widening"],
        "mean_time": numbers["mean_time_seconds"],
        "mean_speed": numbers["mean_speed"],
        "uncertainty": numbers["speed_uncertainty"],
        "jitter": numbers["speed_jitter"],
        "p95": next(p["seconds"] for p in found["percentiles_seconds"] if p["percent"] == 95),
        "between": found["between_process_cv"],
        "within": found["within_process_cv"],
        "lag_one": found["lag_one_autocorrelation"],
        "effective": found["effective_samples"],
        "outliers": found["outlier_share"],
        "slowest": found["slowest"][0]["step_seconds"],
        "cpu": found["cpu_seconds_per_step"],
        "queue": found["run_queue_share"],
        "faults": found["faults_per_step"],
        "switches": found["switches_per_step"],
        "flops": found["model_flops_per_second"],
    }
    expected = recomputed(record)
    assert shown == {name: pytest.approx(value, rel=1e-9) for name, value in expected.items()}


def test_throughput_interval_is_the_inverted_time_interval(record: Record) -> None:
    found = result(record)
    assert found.times.typical_time_seconds.low is not None
    speed = found.times.throughput.aggregate["images"]
    assert speed.high == 32 / found.times.typical_time_seconds.low
    assert (
        speed.value == 32 / found.times.typical_time_seconds.value == found.times.throughput.value
    )


def test_uncertainty_ratio_compares_both_errors(record: Record) -> None:
    found = result(record)
    speed = found.times.throughput.per_device["images"]
    half = (speed.high - speed.low) / 2  # type: ignore[operator]
    assert found.times.uncertainty_ratio == pytest.approx(
        half / 1.96 / found.times.speed_numbers.speed_uncertainty
    )


def test_headline_has_value_width_and_grade() -> None:
    words = result(make_record(1)).headline
    assert words == "997.8 µs ±0.94 % (95 %, 8 processes), grade A"


def test_result_of_one_process_has_no_interval() -> None:
    found = result(make_record(processes=1, protocol=preset("single")))
    assert found.times.typical_time_seconds.low is None
    assert found.spread.interval_widening is None
    assert found.times.uncertainty_ratio is None
    assert "ms (no interval: too few processes, 1 process), grade C: one_process" in found.headline


def test_mean_time_is_the_sum_over_all_steps_whatever_a_process_or_sample_holds() -> None:
    """Σt / N: neither the mean of the processes' means, nor that of samples of unequal groups."""
    few = make_attempt([8_000_000] * 40, process=0, id="few")
    many = make_attempt([4_000_000] * 160, process=1, id="many", group=4)
    found = result(Record(attempts=(few, many)))
    seconds = (40 * 8e-3 + 160 * 4e-3) / (40 + 640)
    assert found.times.speed_numbers.mean_time_seconds == pytest.approx(seconds)
    assert found.times.speed_numbers.mean_speed == pytest.approx(32 / seconds)


def test_mean_time_has_one_name_and_no_interval() -> None:
    document = result(make_record(1)).to_dict()
    assert "mean_time_seconds" not in document
    assert "mean_throughput" not in document
    assert document["speed_numbers"]["mean_time_seconds"] > 0


def test_typical_time_of_a_case_alone_is_said_to_be_widened() -> None:
    interleaved, alone = result(make_record(1)), result(make_record(1, environment={}))
    assert interleaved.times.typical_time_seconds.claim == "95 % across processes"
    claim = alone.times.typical_time_seconds.claim
    assert claim == f"95 % across processes, widened ×{alone.spread.interval_widening:.2g}"
    assert alone.times.typical_time_seconds.value == interleaved.times.typical_time_seconds.value


def test_model_flops_are_those_at_the_typical_time(record: Record) -> None:
    """As the throughput is: both are of the same step."""
    found = result(record)
    flops = found.costs.model_flops_per_second
    assert flops == pytest.approx(1000 / 32 * found.times.throughput.value)


def test_result_has_both_times_if_a_process_is_set_aside() -> None:
    swapped = make_attempt(make_times(9, centre_ns=2e6), process=8, id="swapped", swap_ins=9)
    found = result(Record(attempts=(*make_record(1).attempts, swapped)))
    assert found.spread.set_aside == {"swapped": "90 pages were read back from swap"}
    assert found.times.typical_time_seconds == result(make_record(1)).times.typical_time_seconds
    assert found.times.typical_time_seconds_all_processes is not None
    assert (
        found.times.typical_time_seconds_all_processes.value
        > found.times.typical_time_seconds.value
    )
    assert (found.spread.processes, len(found.spread.each_process)) == (8, 9)


def test_result_of_grouped_samples_has_no_percentiles() -> None:
    single, grouped = result(make_record(1)), result(make_record(1, group=4))
    assert grouped.times.typical_time_seconds.value == pytest.approx(
        single.times.typical_time_seconds.value / 4
    )
    assert (grouped.spread.steps, grouped.spread.samples, grouped.times.percentiles_seconds) == (
        6400,
        1600,
        (),
    )


def test_result_uses_the_device_clock_if_recorded() -> None:
    found = result(make_record(1, device="cuda:0", device_ns=[500_000] * 200))
    assert found.times.typical_time_seconds.value == 0.0005


def test_result_reports_protocol_changes() -> None:
    changed = replace(preset("standard"), target=0.05, warmup_start=7)
    assert result(make_record(1, protocol=changed)).identity.protocol_changes == {"target": 0.05}


def test_result_reports_start_up_and_memory() -> None:
    found = result(make_record(1))
    assert found.costs.start_seconds == {"build": 0.25, "first_step": 0.5, "import": 1.0}
    assert (found.costs.memory_bytes, found.costs.elapsed_seconds) == ({"peak_bytes": 1000}, 40.0)


def test_result_of_a_failure_raises() -> None:
    failed = replace(
        make_record().last, measurement=None, failure=Failure(cause=Cause.CRASHED, reason="x")
    )
    with pytest.raises(SteptimeError, match="no measurement \\(crashed\\)"):
        result(Record(attempts=(failed,)))


@pytest.mark.slow
def test_result_of_millions_of_samples_needs_little_memory() -> None:
    """A tenth of 36 × 10⁶, for which the goal is 1 GB; three times its share."""
    times = [make_times(process, steps=100_000, centre_ns=64_000) for process in range(36)]
    attempts = [
        make_attempt(row, process=process, id=str(process), blocks=120)
        for process, row in enumerate(times)
    ]
    result(Record(attempts=(attempts[0],)))  # imports and tables
    tracemalloc.start()
    result(Record(attempts=tuple(attempts)))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3 * 100e6
    assert isinstance(attempts[0].measurement.stamps, array)


def test_result_of_ranks_has_rates_per_device_and_in_total() -> None:
    shared = {"exchange": "allreduce", "devices": 4}
    found = result(
        make_record(**shared, network={"unit": "images", "units_per_step": {"images": 128}})
    )
    alone, together = (
        getattr(found.times.throughput, word)["images"].value
        for word in ("per_device", "aggregate")
    )
    assert found.times.throughput.devices == 4 and together == pytest.approx(4 * alone)
    assert together == pytest.approx(128 / found.times.typical_time_seconds.value)
