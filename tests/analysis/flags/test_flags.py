from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from factories import make_attempt, make_rank, make_record, make_times
from steptime.analysis.flags import LEVELS, RULES, Flag, flags, grade
from steptime.analysis.process import measured_processes
from steptime.core.protocol import preset
from steptime.core.record import Record

SEEDS = range(20)
CALM = {
    "governor": "performance",
    "turbo": False,
    "virtualised": None,
    "smt_shared": False,
    "other_gpu_processes": 0,
}


def names(record: Record) -> set[str]:
    return {flag.name for flag in flags(measured_processes(record.attempts))}


def test_flags_are_empty_for_clean_runs() -> None:
    raised = [name for seed in SEEDS for name in names(make_record(seed)) - {"too_few_samples"}]
    assert len(raised) <= 1  # of 20 runs, each asked 30 questions


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        (
            "unsynchronised",
            {"checks": {"closure": 0.9, "closure_median": 0.9, "closure_violations": 1.0}},
        ),
        ("unsynchronised", {"checks": {"drain_share_violations": 0.9}}),
        ("unsynchronised", {"checks": {"forced_share": 0.4}}),
        ("no_steady_state", {"steady": False}),
        ("recompiled", {"compilations": 1}),
        ("recompiled", {"checks": {"recompiled": 1}}),
        ("clock_drift", {"clock": {"drift": 0.002}}),
        ("clock_drift", {"clock": {"drift": -0.2}}),
        ("contended", {"queue_ns": 2_000_000}),
        ("contended", {"pressure": 0.5}),
        ("idle_cpu", {"cpu_ns": 15_000_000}),
        ("stolen", {"steal_share": 0.05}),
        ("throttled", {"gpu": {"reasons": float(0x20)}}),
        ("power_capped", {"gpu": {"reasons": float(0x4)}}),
        ("clock_coarse", {"clock": {"cost_ns": 6000.0}}),
        ("slow_clock", {"clock": {"source": "hpet"}}),
        ("harness_share", {"clock": {"cost_ns": 2000.0}}),
        ("host_bound", {"checks": {"dispatch_share": 0.97}}),
        ("async_gain", {"checks": {"latency_ratio": 1.4}}),
        ("allocator_churn", {"faults": 50 * 20, "allocator": "stock"}),
        ("gc_in_step", {"gc_ns": 500_000}),
        ("swap", {"swap_ins": 1}),
        ("virtualised", {"machine": {"health": {**CALM, "virtualised": "kvm"}}}),
        ("governor", {"machine": {"health": {**CALM, "governor": "powersave"}}}),
        ("turbo", {"machine": {"health": {**CALM, "turbo": True}}}),
        ("smt_shared", {"machine": {"health": {**CALM, "smt_shared": True}}}),
        (
            "other_gpu_process",
            {"device": "cuda:0", "machine": {"health": {**CALM, "other_gpu_processes": 2}}},
        ),
        ("cut_short", {"facts": {"cut_short": "budget"}}),
        ("cut_short", {"facts": {"cut_short": "limit"}}),
        ("target_missed", {"protocol": replace(preset("standard"), target=0.0001)}),
    ],
)
def test_flags_include_each_injected_fault(name: str, changes: dict[str, Any]) -> None:
    assert name in names(make_record(1, **changes))
    assert name not in names(make_record(1))


@pytest.mark.parametrize(
    ("blocks", "share", "raised"), [(2, 0.5, False), (2, 1.0, True), (10, 0.3, True)]
)
def test_unsynchronised_ignores_a_single_disturbed_block(
    blocks: int, share: float, raised: bool
) -> None:
    attempt = make_attempt(
        make_times(1, steps=40), blocks=blocks, checks={"drain_share_violations": share}
    )
    found = {flag.name for flag in flags(measured_processes([attempt]))}
    assert ("unsynchronised" in found) == raised


@pytest.mark.parametrize("changes", [{"queue_ns": 2_000_000}, {"pressure": 0.5}])
def test_contended_needs_other_processes_if_their_cpu_time_is_recorded(
    changes: dict[str, Any],
) -> None:
    assert "contended" in names(make_record(1, others_share=0.4, **changes))
    assert "contended" not in names(make_record(1, others_share=0.01, **changes))


def test_contended_counts_the_rank_that_waited_longest() -> None:
    times = make_times(1)
    waiting_ns = int(0.3 * times.sum())
    ranks = (make_rank(0, times, queue_ns=0), make_rank(1, times, queue_ns=waiting_ns))
    assert "contended" in names(Record(attempts=(make_attempt(times, ranks=ranks),)))
    quiet = (make_rank(0, times, queue_ns=0), make_rank(1, times, queue_ns=0))
    assert "contended" not in names(Record(attempts=(make_attempt(times, ranks=quiet),)))


def injected(shape: Callable[[int], np.ndarray], seed: int) -> Record:
    """The clean run of this seed with the times of each process changed."""
    made = []
    for process, attempt in enumerate(make_record(seed).attempts):
        times = np.diff(np.asarray(attempt.measurement.stamps)) * shape(process)
        made.append(make_attempt(np.rint(times).astype(int), process=process, blocks=20))
    return Record(attempts=tuple(made))


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("drift", lambda process: 1.05 ** (np.arange(200) / 50)),
        ("level_shift", lambda process: np.where(np.arange(200) < 120, 1, 1.1)),
        ("level_shift", lambda process: np.where((np.arange(200) < 80) | (process != 3), 1, 1.3)),
        ("session_drift", lambda process: 1 + 0.05 * process),
        ("unstable", lambda process: 1 + 0.2 * (process * 5 % 8) / 8),
        ("bimodal", lambda process: 1 + 0.5 * (process % 2)),
    ],
)
def test_flags_detect_a_disturbed_course_in_most_runs(
    name: str, shape: Callable[[int], np.ndarray]
) -> None:
    raised = [name in names(injected(shape, seed)) for seed in SEEDS]
    assert np.mean(raised) >= 0.95


@pytest.mark.parametrize(("gap", "level"), [(0.2, "noisy"), (0.005, None)])
def test_bimodal_lowers_the_grade_if_the_groups_are_apart(gap: float, level: str | None) -> None:
    made = []
    for process in range(8):
        times = [round(1e6 * (1 + 1e-4 * process + gap * (process % 2)))] * 200
        made.append(make_attempt(times, process=process))
    raised = {flag.name: flag.level for flag in flags(measured_processes(made))}
    assert raised.get("bimodal") == level


def test_level_shift_names_sample_and_time() -> None:
    record = injected(lambda process: np.where(np.arange(200) < 120, 1, 1.1), 1)
    evidence = next(
        flag.evidence
        for flag in flags(measured_processes(record.attempts))
        if flag.name == "level_shift"
    )
    assert evidence.startswith("8 of 8 processes") and "at sample 120, 0.1" in evidence


@pytest.mark.parametrize(
    ("count", "name"), [(1, "one_process"), (3, "few_processes"), (5, "few_processes")]
)
def test_few_processes_are_flagged(count: int, name: str) -> None:
    assert names(make_record(processes=count)) >= {name}
    assert not names(make_record(processes=6)) & {"one_process", "few_processes"}


def test_throttled_detects_a_falling_gpu_clock() -> None:
    fast = [make_attempt(make_times(p), process=p, gpu={"sm_clock_mhz": 1980.0}) for p in range(5)]
    slow = make_attempt(make_times(6), process=6, gpu={"sm_clock_mhz": 1200.0})
    assert "throttled" in names(Record(attempts=(*fast, slow)))
    assert "throttled" not in names(Record(attempts=tuple(fast)))


def test_no_steady_state_is_noisy_for_one_process_and_invalid_for_half() -> None:
    unsteady = tuple(make_record(3, steady=False).attempts)
    steady = tuple(make_record(4).attempts)
    one = flags(measured_processes((*steady[:7], unsteady[0])))
    half = flags(measured_processes((*steady[:4], *unsteady[:4])))
    assert [flag.level for flag in one if flag.name == "no_steady_state"] == ["noisy"]
    assert [flag.level for flag in half if flag.name == "no_steady_state"] == ["invalid"]


def test_too_few_samples_names_percentiles_of_single_steps() -> None:
    found = {
        flag.name: flag.evidence
        for flag in flags(measured_processes(make_record(processes=1).attempts))
    }
    assert found["too_few_samples"] == "200 steps: p99 needs 299, p99.9 needs 2,995"
    assert "too_few_samples" not in names(make_record(processes=1, group=4))


def test_flags_ignore_missing_side_channels() -> None:
    silent = {
        "queue_ns": None,
        "pressure": None,
        "swap_ins": None,
        "steal_share": None,
        "clock": {},
        "machine": {},
    }
    assert names(make_record(1, **silent)) == names(make_record(1))


def test_every_rule_has_a_known_level() -> None:
    assert {rule.level for rule in RULES} <= set(LEVELS)


@pytest.mark.parametrize(
    ("levels", "count", "expected"),
    [
        ([], 8, "A"),
        ([], 6, "B"),
        (["note"], 8, "A"),
        (["noisy"], 12, "C"),
        (["limits"], 12, "C"),
        (["noisy", "invalid"], 12, "X"),
    ],
)
def test_grade_follows_from_the_heaviest_flag(levels: list[str], count: int, expected: str) -> None:
    assert grade([Flag("some", level, "why") for level in levels], count) == expected


def test_grade_ignores_a_missing_percentile() -> None:
    assert grade([Flag("too_few_samples", "limits", "200 steps")], 8) == "A"
