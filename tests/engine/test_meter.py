from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from steptime.core.measurement import Measurement
from steptime.engine.meter import Meter

MS = 1_000_000


def kept_mean(measurement: Measurement) -> float:
    return float(np.mean(measurement.kept_ns)) / measurement.group


def test_nothing_is_lost(fakes, measured, cpu, protocol):
    program = fakes.Host(3 * MS)
    result = measured(program, cpu, protocol)
    assert sum(result.samples_ns) == result.stamps[-1] - result.stamps[0]
    assert len(result.samples_ns) == sum(block.samples for block in result.blocks)
    assert program.steps == result.checks["unstamped_steps"] + result.group * len(result.samples_ns)


def test_the_kept_and_the_warm_up_samples_are_all_there(fakes, measured, cpu, protocol):
    result = measured(fakes.Host(lambda number: 9 * MS if number < 30 else 3 * MS), cpu, protocol)
    assert 20 <= result.cut < 100 and result.steady
    assert len(result.kept_ns) == len(result.samples_ns) - result.cut
    assert kept_mean(result) == pytest.approx(3 * MS, rel=0.001)


def test_warm_up_counts_as_measurement_and_is_enough(fakes, measured, cpu, protocol):
    result = measured(fakes.Host(MS), cpu, protocol)
    assert 1.0 <= sum(result.samples_ns) / 1e9 < 1.2


def test_the_pilots_steps_are_measured_and_no_fewer(fakes, measured, cpu, protocol):
    result = measured(fakes.Host(MS), cpu, replace(protocol, steps=5000))
    assert 5000 <= len(result.kept_ns) < 5100


def test_short_steps_are_grouped_and_the_steps_still_counted(fakes, measured, cpu, protocol):
    result = measured(
        fakes.Host(3_000), cpu, replace(protocol, warmup_seconds=0.1, least_seconds=0.1)
    )
    assert result.group == 8 and kept_mean(result) == pytest.approx(3_000, rel=0.01)


def test_without_grouping_a_short_step_shows_as_too_short_for_the_clock(
    fakes, measured, cpu, protocol
):
    fine = replace(
        protocol, group_host_seconds=0.0, group_clock_costs=0, warmup_seconds=0.1, least_seconds=0.1
    )
    result = measured(fakes.Host(5_000), cpu, fine)
    assert result.group == 1 and np.median(result.kept_ns) < 200 * result.clock["cost_ns"]


def test_the_first_step_is_told_apart(fakes, measured, cpu, protocol):
    result = measured(fakes.Host(lambda number: 4_000 * MS if number == 0 else MS), cpu, protocol)
    assert result.starts == {"import": 1.0, "first_step": pytest.approx(4.0, rel=1e-6)}
    assert kept_mean(result) == pytest.approx(MS, rel=0.001)


def test_a_step_that_never_settles_has_no_steady_state(fakes, measured, cpu, protocol):
    result = measured(
        fakes.Host(lambda number: MS + 200 * number),
        cpu,
        replace(protocol, warmup_most_seconds=5.0),
    )
    assert not result.steady and result.cut == len(result.samples_ns) // 2
    assert sum(result.samples_ns) / 1e9 >= 5.0


def test_a_longer_transient_makes_a_longer_warm_up(fakes, measured, cpu, protocol):
    result = measured(fakes.Host(lambda number: 2 * MS if number < 330 else MS), cpu, protocol)
    assert result.steady and 320 <= result.cut < 500
    assert sum(result.samples_ns) / 1e9 > 1.3
    assert kept_mean(result) == pytest.approx(MS, rel=0.001)


def test_a_slowdown_after_warm_up_stays_in_the_mean(fakes, measured, cpu, protocol):
    program = fakes.Host(lambda number: MS if number < 3000 else 1_100_000)
    result = measured(program, cpu, replace(protocol, steps=5000))
    assert result.steady and max(result.kept_ns[-100:]) > 1.09 * MS
    assert 1.03 * MS < kept_mean(result) < 1.06 * MS


def test_a_huge_step_is_not_warmed_up_for_ever(fakes, measured, cpu, protocol):
    program = fakes.Host(20_000 * MS)
    result = measured(program, cpu, replace(protocol, least_steps=3))
    assert program.steps <= 16 and len(result.kept_ns) >= 3


def test_a_later_process_starts_from_the_cut_of_the_earlier(fakes, measured, cpu, protocol):
    assert measured(fakes.Host(MS), cpu, replace(protocol, warmup_start=200)).cut == 200


def test_a_device_is_timed_by_its_own_clock(fakes, measured, cuda, protocol):
    result = measured(fakes.Device(3 * MS, dispatch_ns=20_000), cuda, protocol)
    assert np.median(result.device_ns) == 3 * MS and len(result.device_ns) == len(result.stamps) - 1
    assert result.checks["closure"] < 0.01 and result.checks["closure_violations"] == 0
    assert result.checks["dispatch_share"] < 0.02


def test_dear_events_make_groups(fakes, measured, cuda, protocol):
    result = measured(fakes.Device(3 * MS, event_cost_ns=11_600), cuda, protocol)
    assert result.group == 4 and result.checks["event_cost_ns"] == 11_650


def test_a_queue_is_not_drained_after_every_slow_step(fakes, measured, cuda, protocol):
    result = measured(fakes.Device(60 * MS), cuda, protocol)
    assert {block.samples for block in result.blocks} == {10}


def test_waiting_for_every_step_costs_what_the_ratio_says(fakes, measured, cuda, protocol):
    stream = measured(fakes.Device(MS, dispatch_ns=500_000), cuda, protocol)
    latency = measured(
        fakes.Device(MS, dispatch_ns=500_000), replace(cuda, timing="latency"), protocol
    )
    assert latency.device_ns is None and kept_mean(latency) == pytest.approx(1.5 * MS, rel=0.01)
    assert stream.checks["latency_ratio"] == pytest.approx(1.5, rel=0.02)
    assert latency.checks["latency_ratio"] == pytest.approx(1.5, rel=0.02)


def test_a_host_that_is_slower_than_its_device_shows_in_the_dispatch(
    fakes, measured, cuda, protocol
):
    result = measured(fakes.Device(100_000, dispatch_ns=3 * MS), cuda, protocol)
    assert result.checks["dispatch_share"] > 0.95
    assert all(block.dispatch_ns > 0.95 * block.host_ns for block in result.blocks)


def test_a_device_that_is_never_waited_for_does_not_close(fakes, measured, cuda, protocol):
    device = fakes.Device(3 * MS, dispatch_ns=10_000)
    device.waits = False
    result = measured(
        device, cuda, replace(protocol, warmup_seconds=0.05, least_seconds=0.05, budget_seconds=2.0)
    )
    assert result.checks["closure_violations"] > 0.9


def test_a_step_that_returns_before_its_work_is_done_has_a_long_drain(
    fakes, measured, cpu, protocol
):
    device = fakes.Device(MS)
    device.timer = None
    result = measured(device, cpu, protocol)
    assert (
        result.checks["drain_share_violations"] == 1.0 and result.checks["drain_share_median"] > 0.5
    )


def test_a_wait_that_does_nothing_is_found_by_asking_for_the_result(fakes, measured, cpu, protocol):
    device = fakes.Device(MS, dispatch_ns=100_000)
    device.timer, device.waits = None, False
    result = measured(device, cpu, protocol)
    assert result.checks["drain_share_violations"] == 0.0 and result.checks["forced_share"] > 1


def test_an_honest_host_program_raises_no_suspicion(fakes, measured, cpu, protocol):
    checks = measured(fakes.Host(MS), cpu, protocol).checks
    assert checks["drain_share"] < 0.001 and checks["forced_share"] == 0.0
    assert checks["latency_ratio"] == pytest.approx(1.0, rel=0.01)


def test_one_compilation_in_the_kept_part_moves_the_cut_behind_it(fakes, measured, cpu, protocol):
    program = fakes.Host(MS)
    program.compiles_at = {500}
    result = measured(program, cpu, replace(protocol, steps=600))
    assert result.steady and result.checks["recompiled"] == 1
    assert result.cut > 400 and len(result.kept_ns) >= 600
    assert all(block.compilations == 0 for block in result.kept_blocks)


def test_a_program_that_goes_on_compiling_has_no_steady_state(fakes, measured, cpu, protocol):
    program = fakes.Host(MS)
    program.compiles_at = set(range(0, 10_000, 400))
    result = measured(program, cpu, replace(protocol, steps=2000))
    assert not result.steady and result.checks["recompiled"] >= 2


def test_compiling_at_the_start_is_warm_up(fakes, measured, cpu, protocol):
    program = fakes.Host(lambda number: 30 * MS if number in (0, 6, 9) else MS)
    program.compiles_at = {0, 6, 9}
    result = measured(program, cpu, protocol)
    assert result.steady and result.checks["recompiled"] == 0


def test_throttle_bits_travel_with_the_blocks(fakes, measured, cuda, protocol):
    device = fakes.Device(3 * MS)
    nvml = fakes.Nvml(device.clock, cost_ns=10_000)
    nvml.reasons = 0x40
    result = measured(device, cuda, protocol, nvml)
    assert all(block.gpu["reasons"] == 64 for block in result.blocks)
    assert result.checks["nvml_cost_ns"] == pytest.approx(10_000, rel=0.05)


def test_blocks_in_turns_do_not_count_the_partners_time(fakes, cpu, protocol):
    program = fakes.Host(MS)
    meter = Meter(program, cpu, protocol, clock=program.clock)
    meter.prepare()
    warm = meter.samples
    for _ in range(4):
        block = meter.block(0.15, least_steps=3)
        program.clock.now += 150 * MS
        assert block.host_ns >= 150 * MS
    result = meter.measurement({})
    assert len(result.samples_ns) >= warm + 4 * 150
    assert max(result.samples_ns) < 1.01 * MS
    assert [round(block.idle_ns / 1e9, 2) for block in result.blocks[-3:]] == [0.15] * 3


def test_the_slow_step_behind_a_pause_is_not_stamped(fakes, cpu, protocol):
    program = fakes.Host(MS)
    meter = Meter(program, cpu, protocol, clock=program.clock)
    meter.prepare()
    for _ in range(3):
        program.clock.now += 200 * MS
        first = program.steps
        program.work = lambda number, first=first: 2 * MS if number == first else MS
        meter.block(0.01, least_steps=3)
    assert max(meter.measurement({}).samples_ns) < 1.01 * MS


def test_a_block_has_the_least_steps_even_if_they_are_slow(fakes, cpu, protocol):
    program = fakes.Host(400 * MS)
    meter = Meter(program, cpu, protocol, clock=program.clock)
    meter.prepare()
    assert meter.block(0.15, least_steps=3).samples == 3
    meter.measurement({})


def test_what_the_program_says_of_itself_is_kept(fakes, measured, cpu, protocol):
    result = measured(fakes.Host(MS), cpu, protocol)
    assert result.memory == {"peak_bytes": 7} and result.facts["threads"] == 1
    assert result.facts["absent_channels"] == [] or "run queue" in result.facts["absent_channels"]
    assert set(result.clock) == {
        "cost_ns",
        "resolution_ns",
        "monotone",
        "stamp_ns",
        "source",
        "drift",
    }


def test_a_measurement_survives_being_stored(fakes, measured, cuda, protocol):
    result = measured(fakes.Device(3 * MS), cuda, protocol)
    assert Measurement.from_dict(result.to_dict()) == result


def run_as_rank(program, case, protocol, broadcast):
    meter = Meter(program, case, protocol, clock=program.clock, nvml=False)
    meter.broadcast = broadcast
    meter.prepare()
    meter.measure()
    return meter.measurement({})


@pytest.mark.parametrize("kind", ["Host", "Device"])
@pytest.mark.parametrize("slower", [1.1, 3.0, 0.01])
def test_every_rank_runs_the_steps_that_the_first_decides_on(
    fakes, cpu, cuda, protocol, kind, slower
):
    """The second rank hears what the first agreed to; by its own clock it would have decided otherwise."""
    said, case = [], cpu if kind == "Host" else cuda
    first, second = (
        getattr(fakes, kind)(lambda n, work=work: work * (3 if n < 20 else 1))
        for work in (MS, int(slower * MS))
    )
    leading = run_as_rank(first, case, protocol, lambda value: said.append(value) or value)
    answers = iter(said)
    following = run_as_rank(second, case, protocol, lambda value: next(answers))
    assert first.steps == second.steps and next(answers, "none left") == "none left"
    assert [block.samples for block in leading.blocks] == [
        block.samples for block in following.blocks
    ]


def test_to_agree_is_no_part_of_a_step(fakes, cpu, protocol):
    program = fakes.Host(MS)

    def broadcast(value):
        program.clock.now += 7 * MS
        return value

    result = run_as_rank(program, cpu, protocol, broadcast)
    assert (
        max(result.samples_ns) < 1.01 * MS
        and max(block.idle_ns for block in result.blocks) > 7 * MS
    )
