from __future__ import annotations

from typing import Any

from steptime.analysis.plausibility import implausible_reason, judge_runs, super_linear_runs
from steptime.core.foreign import ForeignRun


def run(place: str, devices: int, throughput: float, **changes: Any) -> ForeignRun:
    dimensions = {"model": "bert", "device": "H200", "devices": devices, **changes}
    return ForeignRun(
        source="s",
        original="o",
        file="f",
        location=place,
        dimensions=dimensions,
        metrics={"throughput": throughput},
    )


def test_implausible_reason_names_flops_above_the_peak() -> None:
    dimensions = {"device": "NVIDIA T4", "precision": "fp16", "devices": 1}
    assert implausible_reason(dimensions, {"flops": 60e12}) == ""
    assert implausible_reason(dimensions, {"flops": 90e12}) == "90 TFLOP/s exceeds the peak of 65"
    assert implausible_reason(dimensions | {"devices": 2}, {"flops": 90e12}) == ""


def test_implausible_reason_allows_fast_convolutions() -> None:
    dimensions = {"device": "NVIDIA T4", "precision": "fp16", "operator": "convolution"}
    assert implausible_reason(dimensions, {"flops": 200e12}) == ""
    assert implausible_reason(dimensions, {"flops": 400e12}) != ""


def test_implausible_reason_names_bandwidth_above_the_peak() -> None:
    assert implausible_reason({"device": "H200"}, {"bandwidth": 4.7e12}) == ""
    assert (
        implausible_reason({"device": "H200"}, {"bandwidth": 6e12})
        == "6000 GB/s exceeds the peak of 4800"
    )


def test_implausible_reason_checks_shares_and_signs() -> None:
    assert implausible_reason({}, {"accuracy": 1.0}) == "" and "is over 1" in implausible_reason(
        {}, {"accuracy": 76.1}
    )
    assert implausible_reason({}, {"throughput": -3.0}) == "throughput is negative: -3"
    assert implausible_reason({}, {"loss": -3.0}) == ""


def test_implausible_reason_compares_throughput_and_batch() -> None:
    assert (
        implausible_reason({"effective_batch": 32}, {"throughput": 100.0, "step_time": 0.333}) == ""
    )
    wrong = implausible_reason({"effective_batch": 32}, {"throughput": 100.0, "step_time": 0.4})
    assert wrong == "throughput times step time is 40, the batch 32"


def test_implausible_reason_allows_for_rounding() -> None:
    assert (
        implausible_reason({"effective_batch": 1}, {"throughput": 0.05, "step_time": 21.27}) == ""
    )


def test_super_linear_runs_are_found() -> None:
    runs = [run("a", 1, 932.0), run("b", 8, 18_291.0), run("c", 8, 7_300.0)]
    assert super_linear_runs(runs) == {"b": "19.6 times as fast on 8 devices as on 1, beyond 8"}


def test_super_linear_runs_compares_equal_configurations_only() -> None:
    assert super_linear_runs([run("a", 1, 932.0), run("b", 8, 18_291.0, precision="fp8")]) == {}
    assert (
        super_linear_runs([run("a", 1, 932.0, device=""), run("b", 8, 18_291.0, device="")]) == {}
    )


def test_super_linear_runs_allow_more_across_servers() -> None:
    runs = [run("a", 1, 100.0, server="small box"), run("b", 8, 1_100.0, server="big box")]
    assert super_linear_runs(runs) == {}
    same = [run("a", 1, 100.0, server="box 1x H200"), run("b", 8, 1_100.0, server="box 8x H200")]
    assert set(super_linear_runs(same)) == {"b"}


def test_judge_runs_quarantines_only_impossible_runs() -> None:
    runs = [run("a", 1, 932.0), run("b", 8, 18_291.0)]
    first, second = judge_runs(runs)
    assert first == runs[0] and second.quarantine.startswith("19.6 times")
