from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from factories import kept_blocks, kept_ns
from steptime.core.measurement import Measurement
from steptime.engine.meter import Meter

MS = 1_000_000


def kept_mean(measurement: Measurement) -> float:
    return float(np.mean(kept_ns(measurement))) / measurement.group


def test_meter_accounts_for_every_step(fakes, measured, cpu, protocol):
    program = fakes.Host(3 * MS)
    result = measured(program, cpu, protocol)
    assert sum(result.samples_ns) == result.stamps[-1] - result.stamps[0]
    assert len(result.samples_ns) == sum(block.samples for block in result.blocks)
    assert program.steps == result.checks["unstamped_steps"] + result.group * len(result.samples_ns)


def test_meter_keeps_warmup_and_measured_samples(fakes, measured, cpu, protocol):
    result = measured(fakes.Host(lambda number: 9 * MS if number < 30 else 3 * MS), cpu, protocol)
    assert 20 <= result.cut < 100 and result.steady
    assert len(kept_ns(result)) == len(result.samples_ns) - result.cut
    assert kept_mean(result) == pytest.approx(3 * MS, rel=0.001)


def test_meter_counts_samples_after_the_cut_as_measured(fakes, measured, cpu, protocol):
    result = measured(fakes.Host(MS), cpu, protocol)
    assert 1.0 <= sum(result.samples_ns) / 1e9 < 1.2


def test_meter_measures_at_least_protocol_steps(fakes, measured, cpu, protocol):
    result = measured(fakes.Host(MS), cpu, replace(protocol, steps=5000))
    assert 5000 <= len(kept_ns(result)) < 5100


def test_meter_groups_short_steps(fakes, measured, cpu, protocol):
    result = measured(
        fakes.Host(3_000), cpu, replace(protocol, warmup_seconds=0.1, least_seconds=0.1)
    )
    assert result.group == 8 and kept_mean(result) == pytest.approx(3_000, rel=0.01)


def test_meter_without_grouping_shows_clock_resolution(fakes, measured, cpu, protocol):
    fine = replace(
        protocol, group_host_seconds=0.0, group_clock_costs=0, warmup_seconds=0.1, least_seconds=0.1
    )
    result = measured(fakes.Host(5_000), cpu, fine)
    assert result.group == 1 and np.median(kept_ns(result)) < 200 * result.clock["cost_ns"]


def test_meter_reports_first_step_separately(fakes, measured, cpu, protocol):
    result = measured(fakes.Host(lambda number: 4_000 * MS if number == 0 else MS), cpu, protocol)
    assert result.starts == {"import": 1.0, "first_step": pytest.approx(4.0, rel=1e-6)}
    assert kept_mean(result) == pytest.approx(MS, rel=0.001)


def test_meter_is_not_steady_if_steps_never_settle(fakes, measured, cpu, protocol):
    result = measured(
        fakes.Host(lambda number: MS + 200 * number),
        cpu,
        replace(protocol, warmup_most_seconds=5.0),
    )
    assert not result.steady and result.cut == len(result.samples_ns) // 2
    assert sum(result.samples_ns) / 1e9 >= 5.0


def test_meter_warms_up_longer_for_a_longer_transient(fakes, measured, cpu, protocol):
    result = measured(fakes.Host(lambda number: 2 * MS if number < 330 else MS), cpu, protocol)
    assert result.steady and 320 <= result.cut < 500
    assert sum(result.samples_ns) / 1e9 > 1.3
    assert kept_mean(result) == pytest.approx(MS, rel=0.001)


def test_meter_keeps_slowdown_after_warmup(fakes, measured, cpu, protocol):
    program = fakes.Host(lambda number: MS if number < 3000 else 1_100_000)
    result = measured(program, cpu, replace(protocol, steps=5000))
    assert result.steady and max(kept_ns(result)[-100:]) > 1.09 * MS
    assert 1.03 * MS < kept_mean(result) < 1.06 * MS


def test_meter_limits_warmup_of_slow_steps(fakes, measured, cpu, protocol):
    program = fakes.Host(20_000 * MS)
    result = measured(program, cpu, replace(protocol, least_steps=3))
    assert program.steps <= 16 and len(kept_ns(result)) >= 3


def test_meter_starts_from_the_cut_of_earlier_processes(fakes, measured, cpu, protocol):
    assert measured(fakes.Host(MS), cpu, replace(protocol, warmup_start=200)).cut == 200


def test_meter_times_a_device_by_its_own_clock(fakes, measured, cuda, protocol):
    result = measured(fakes.Device(3 * MS, dispatch_ns=20_000), cuda, protocol)
    assert np.median(result.device_ns) == 3 * MS and len(result.device_ns) == len(result.stamps) - 1
    assert result.checks["closure"] < 0.01 and result.checks["closure_violations"] == 0
    assert result.checks["dispatch_share"] < 0.02


def test_meter_groups_steps_if_events_are_expensive(fakes, measured, cuda, protocol):
    result = measured(fakes.Device(3 * MS, event_cost_ns=11_600), cuda, protocol)
    assert result.group == 4 and result.checks["event_cost_ns"] == 11_650


def test_meter_does_not_drain_queue_after_every_slow_step(fakes, measured, cuda, protocol):
    result = measured(fakes.Device(60 * MS), cuda, protocol)
    assert {block.samples for block in result.blocks} == {10}


@pytest.mark.slow
def test_latency_ratio_is_the_cost_of_waiting_for_each_step(fakes, measured, cuda, protocol):
    stream = measured(fakes.Device(MS, dispatch_ns=500_000), cuda, protocol)
    latency = measured(
        fakes.Device(MS, dispatch_ns=500_000), replace(cuda, timing="latency"), protocol
    )
    assert latency.device_ns is None and kept_mean(latency) == pytest.approx(1.5 * MS, rel=0.01)
    assert stream.checks["latency_ratio"] == pytest.approx(1.5, rel=0.02)
    assert latency.checks["latency_ratio"] == pytest.approx(1.5, rel=0.02)


def test_dispatch_share_shows_host_slower_than_device(fakes, measured, cuda, protocol):
    result = measured(fakes.Device(100_000, dispatch_ns=3 * MS), cuda, protocol)
    assert result.checks["dispatch_share"] > 0.95
    assert all(block.dispatch_ns > 0.95 * block.host_ns for block in result.blocks)


def test_closure_shows_device_that_is_never_waited_for(fakes, measured, cuda, protocol):
    device = fakes.Device(3 * MS, dispatch_ns=10_000)
    device.waits = False
    result = measured(
        device, cuda, replace(protocol, warmup_seconds=0.05, least_seconds=0.05, budget_seconds=2.0)
    )
    assert result.checks["closure_violations"] > 0.9


def test_drain_share_shows_steps_that_return_early(fakes, measured, cpu, protocol):
    device = fakes.Device(MS)
    device.timer = None
    result = measured(device, cpu, protocol)
    assert (
        result.checks["drain_share_violations"] == 1.0 and result.checks["drain_share_median"] > 0.5
    )


def test_forced_share_shows_wait_that_does_nothing(fakes, measured, cpu, protocol):
    device = fakes.Device(MS, dispatch_ns=100_000)
    device.timer, device.waits = None, False
    result = measured(device, cpu, protocol)
    assert result.checks["drain_share_violations"] == 0.0 and result.checks["forced_share"] > 1


def test_meter_checks_pass_for_synchronous_host_program(fakes, measured, cpu, protocol):
    checks = measured(fakes.Host(MS), cpu, protocol).checks
    assert checks["drain_share"] < 0.001 and checks["forced_share"] == 0.0
    assert checks["latency_ratio"] == pytest.approx(1.0, rel=0.01)


def test_meter_moves_cut_after_one_recompilation(fakes, measured, cpu, protocol):
    program = fakes.Host(MS)
    program.compiles_at = {500}
    result = measured(program, cpu, replace(protocol, steps=600))
    assert result.steady and result.checks["recompiled"] == 1
    assert result.cut > 400 and len(kept_ns(result)) >= 600
    assert all(block.compilations == 0 for block in kept_blocks(result))


def test_meter_is_not_steady_if_program_keeps_compiling(fakes, measured, cpu, protocol):
    program = fakes.Host(MS)
    program.compiles_at = set(range(0, 10_000, 400))
    result = measured(program, cpu, replace(protocol, steps=2000))
    assert not result.steady and result.checks["recompiled"] >= 2


def test_meter_treats_early_compilation_as_warmup(fakes, measured, cpu, protocol):
    program = fakes.Host(lambda number: 30 * MS if number in (0, 6, 9) else MS)
    program.compiles_at = {0, 6, 9}
    result = measured(program, cpu, protocol)
    assert result.steady and result.checks["recompiled"] == 0


def test_meter_stores_throttle_reasons_with_blocks(fakes, measured, cuda, protocol):
    device = fakes.Device(3 * MS)
    nvml = fakes.Nvml(device.clock, cost_ns=10_000)
    nvml.reasons = 0x40
    result = measured(device, cuda, protocol, nvml)
    assert all(block.gpu["reasons"] == 64 for block in result.blocks)
    assert result.checks["nvml_cost_ns"] == pytest.approx(10_000, rel=0.05)


def test_meter_blocks_exclude_the_partner_s_time(fakes, cpu, protocol):
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


def test_meter_block_does_not_stamp_first_step_after_a_pause(fakes, cpu, protocol):
    program = fakes.Host(MS)
    meter = Meter(program, cpu, protocol, clock=program.clock)
    meter.prepare()
    for _ in range(3):
        program.clock.now += 200 * MS
        first = program.steps
        program.work = lambda number, first=first: 2 * MS if number == first else MS
        meter.block(0.01, least_steps=3)
    assert max(meter.measurement({}).samples_ns) < 1.01 * MS


def test_meter_block_has_least_steps_even_if_slow(fakes, cpu, protocol):
    program = fakes.Host(400 * MS)
    meter = Meter(program, cpu, protocol, clock=program.clock)
    meter.prepare()
    assert meter.block(0.15, least_steps=3).samples == 3
    meter.measurement({})


def test_measurement_includes_program_memory_and_facts(fakes, measured, cpu, protocol):
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


def run_as_rank(program, case, protocol, broadcast):
    meter = Meter(program, case, protocol, clock=program.clock, nvml=False)
    meter.broadcast = broadcast
    meter.prepare()
    meter.measure()
    return meter.measurement({})


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["Host", "Device"])
@pytest.mark.parametrize("slower", [1.1, 3.0, 0.01])
def test_meter_runs_the_steps_that_rank_0_decides(fakes, cpu, cuda, protocol, kind, slower):
    """The second rank receives the decisions of the first; by its own clock it would differ."""
    decisions, case = [], cpu if kind == "Host" else cuda
    first, second = (
        getattr(fakes, kind)(lambda n, work=work: work * (3 if n < 20 else 1))
        for work in (MS, int(slower * MS))
    )
    leading = run_as_rank(first, case, protocol, lambda value: decisions.append(value) or value)
    answers = iter(decisions)
    following = run_as_rank(second, case, protocol, lambda value: next(answers))
    assert first.steps == second.steps and next(answers, "none left") == "none left"
    assert [block.samples for block in leading.blocks] == [
        block.samples for block in following.blocks
    ]


def test_agreement_time_is_excluded_from_steps(fakes, cpu, protocol):
    program = fakes.Host(MS)

    def broadcast(value):
        program.clock.now += 7 * MS
        return value

    result = run_as_rank(program, cpu, protocol, broadcast)
    assert (
        max(result.samples_ns) < 1.01 * MS
        and max(block.idle_ns for block in result.blocks) > 7 * MS
    )


def test_meter_shrinks_slow_steps_to_the_budget_and_records_it(fakes, measured, cpu, protocol):
    program = fakes.Host(5_000 * MS)
    result = measured(program, cpu, protocol)
    assert result.facts["cut_short"] == "budget"
    assert 3 <= len(kept_ns(result)) < protocol.least_steps and program.steps < 20
    assert kept_mean(result) == pytest.approx(5_000 * MS, rel=0.001)


def test_meter_ends_before_the_deadline_and_keeps_what_it_measured(fakes, measured, cpu, protocol):
    program = fakes.Host(1_000 * MS)
    deadline_ns = program.clock() + 30_000 * MS
    patient = replace(protocol, budget_seconds=1e6)
    result = measured(program, cpu, patient, deadline_ns=deadline_ns)
    assert result.facts["cut_short"] == "limit" and len(kept_ns(result)) > 1
    assert program.clock() <= deadline_ns


def test_meter_is_not_cut_short_if_its_steps_fit(fakes, measured, cpu, protocol):
    result = measured(fakes.Host(3 * MS), cpu, replace(protocol, steps=10_000))
    assert "cut_short" not in result.facts
