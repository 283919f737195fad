"""The flag `implausible`: more arithmetic per second than the machine can do."""

from __future__ import annotations

from typing import Any

import pytest

from factories import make_attempt
from steptime.analysis.flags import grade, invalid_flags
from steptime.analysis.flags.arithmetic import implausible, step_work
from steptime.analysis.process import measured_processes

STEP_NS = 1_000_000
PROCESSOR = {"threads": 2, "threads_usable": 2, "vector_flags": ["avx", "avx2", "fma"]}
RATES = {"fp32": 1e11, "fp64": 5e10, "bf16": 2e10}
PEAKS = {"cpu": {"flops_per_second": RATES, "threads": 2}}
MEASURED = {**PROCESSOR, "peaks": PEAKS}
BOARD = {"gpus": [{"name": "NVIDIA H200"}, {"name": "NVIDIA H200"}]}
BOARD_RATES = {"fp32": 5e13, "tf32": 4e14, "bf16": 7e14, "fp8_e4m3": 1.4e15}
BOARD_PEAKS = {"peaks": {"cuda:0": {"flops_per_second": BOARD_RATES, "threads": 16}}}


def evidence(
    flops_per_second: float,
    machine: dict[str, Any],
    least_share: float | None = 1.0,
    **case: Any,
) -> str | None:
    """Of a result that claims this rate. `least_share`: with the fastest algorithms."""
    flops = flops_per_second * STEP_NS / 1e9
    network = {"unit": "images", "units_per_step": 1, "flops_per_step": flops}
    if least_share is not None:
        network["least_flops_per_step"] = least_share * flops
    attempt = make_attempt([STEP_NS] * 40, machine=machine, network=network, **case)
    return implausible(measured_processes([attempt]))


def test_implausible_names_both_numbers() -> None:
    sentence = evidence(4e18, MEASURED) or ""
    assert "4,000 PFLOP/s" in sentence and "reach 100 GFLOP/s in fp32" in sentence


def test_implausible_makes_the_result_invalid() -> None:
    network = {"unit": "images", "units_per_step": 1, "flops_per_step": 1e15}
    attempt = make_attempt([STEP_NS] * 40, machine=MEASURED, network=network)
    raised = invalid_flags(measured_processes([attempt]))
    assert [flag.name for flag in raised] == ["implausible"] and grade(raised, 8) == "X"


@pytest.mark.parametrize(("rate", "flagged"), [(1.2e11, False), (1.3e11, True)])
def test_implausible_holds_a_result_against_the_measured_peak(rate: float, flagged: bool) -> None:
    """In theory the two cores could do 3.9e11."""
    assert bool(evidence(rate, MEASURED)) is flagged


@pytest.mark.parametrize(("rate", "flagged"), [(3.9e11, False), (5e11, True)])
def test_implausible_falls_back_to_the_limit_in_theory(rate: float, flagged: bool) -> None:
    sentence = evidence(rate, PROCESSOR)
    assert bool(sentence) is flagged
    if sentence:
        assert "396.8 GFLOP/s in fp32" in sentence and "in theory" in sentence


def test_implausible_falls_back_if_the_precision_was_not_measured() -> None:
    """int8 may be four times as fast as fp32."""
    assert evidence(1e12, MEASURED, precision="int8") is None
    assert "in theory" in (evidence(1e13, MEASURED, precision="int8") or "")


def test_implausible_allows_fast_convolutions_by_their_share() -> None:
    """Half of the work in kernels that need a quarter of the multiplications."""
    assert evidence(1.9e11, MEASURED, least_share=0.625) is None
    sentence = evidence(2.1e11, MEASURED, least_share=0.625) or ""
    assert "210 GFLOP/s (131.2 GFLOP/s with the fastest algorithms)" in sentence


def test_step_work_of_older_records_may_be_all_convolutions() -> None:
    work = step_work({"flops_per_step": 100})
    assert work is not None and work.least == 25


@pytest.mark.parametrize("network", [{}, {"flops_per_step": None}, {"flops_per_step": 0}])
def test_step_work_is_none_without_arithmetic(network: dict[str, Any]) -> None:
    assert step_work(network) is None


def test_implausible_computes_a_slow_low_precision_in_fp32() -> None:
    """bf16 was measured at a fifth of fp32, as on a CPU without its instructions."""
    assert evidence(1e11, MEASURED, precision="bf16") is None
    assert evidence(1.3e11, MEASURED, precision="bf16") is not None


def test_implausible_does_not_excuse_fp64_with_fp32() -> None:
    assert evidence(9e10, MEASURED, precision="fp64") is not None


def test_implausible_scales_a_peak_that_fewer_threads_reached() -> None:
    peaks = {"cpu": {"flops_per_second": RATES, "threads": 1}}
    machine = {**PROCESSOR, "peaks": peaks}
    assert evidence(2.4e11, machine) is None
    assert "with 1 of 2 threads" in (evidence(2.6e11, machine) or "")


def test_implausible_counts_every_node_of_a_cpu_once() -> None:
    ranks = {"exchange": "allreduce", "devices": 4, "nodes": 2}
    assert evidence(2.4e11, MEASURED, **ranks) is None
    assert "on each of 2 nodes" in (evidence(2.6e11, MEASURED, **ranks) or "")


def test_implausible_counts_every_rank_on_a_gpu() -> None:
    ranks = {"exchange": "allreduce", "devices": 2, "device": "cuda:0"}
    assert evidence(1.2e14, {**BOARD, **BOARD_PEAKS}, **ranks) is None
    assert evidence(1.3e14, {**BOARD, **BOARD_PEAKS}, **ranks) is not None


@pytest.mark.parametrize("machine", [BOARD, {**BOARD, **BOARD_PEAKS}])
def test_implausible_does_not_hold_fp32_against_tf32(machine: dict[str, Any]) -> None:
    """A step in fp32 that is faster than fp32 ran in TF32, or less."""
    assert evidence(1e14, machine, device="cuda:0") is not None
    assert evidence(1e14, machine, device="cuda:0", precision="tf32") is None


def test_implausible_uses_the_peak_of_an_equal_board() -> None:
    machine = {**BOARD, **BOARD_PEAKS}
    assert "measured to reach 50 TFLOP/s" in (evidence(1e14, machine, device="cuda:1") or "")
    others = {"gpus": [{"name": "NVIDIA H200"}, {"name": "NVIDIA T4"}], **BOARD_PEAKS}
    assert "NVIDIA T4 cannot exceed 8.1" in (evidence(1e14, others, device="cuda:1") or "")


def test_implausible_knows_the_peak_of_fp8_by_its_format() -> None:
    machine = {**BOARD, **BOARD_PEAKS}
    assert evidence(1.7e15, machine, device="cuda:0", precision="fp8") is None
    assert evidence(1.8e15, machine, device="cuda:0", precision="fp8") is not None


def test_implausible_flags_a_lie_on_an_unknown_board() -> None:
    unknown = {"gpus": [{"name": "Graphics Device"}]}
    assert evidence(5e14, unknown, device="cuda:0") is None
    assert "fastest GPU known" in (evidence(1e18, unknown, device="cuda:0") or "")


def test_implausible_says_nothing_of_an_unknown_machine() -> None:
    assert evidence(1e18, {}) is None


def test_implausible_needs_a_single_process_that_lies() -> None:
    network = {"unit": "images", "units_per_step": 1, "flops_per_step": 5e7}
    slow, fast = (
        make_attempt([nanoseconds] * 40, machine=MEASURED, network=network)
        for nanoseconds in (STEP_NS, 1000)
    )
    assert implausible(measured_processes([slow])) is None
    assert implausible(measured_processes([slow, fast, slow])) is not None
