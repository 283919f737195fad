from __future__ import annotations

from typing import Any

import pytest

from steptime.analysis.plausibility import (
    find_device,
    implausible_reason,
    judge_runs,
    processor_peaks,
    super_linear_runs,
)
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


@pytest.mark.parametrize(
    ("name", "teraflops"),
    [
        ("NVIDIA H100-SXM-80GB", 990), ("NVIDIA A100-PCIe-40GB", 312), ("rtx3090", 142),
        ("4090", 330),
        ("NVIDIA GH200 480GB", 990), ("pro6000maxq", 504), ("Tesla V100-PCIE-32GB", 131),
        ("NVIDIA T4", 65),
        ("NVIDIA L4", 121), ("NVIDIA L40S", 366), ("AMD Vega Frontier Edition 16GB", 26.2),
    ],
)  # fmt: skip
def test_find_device_accepts_any_spelling(name: str, teraflops: float) -> None:
    device = find_device(name)
    assert device is not None and device.peak("fp16") == pytest.approx(teraflops * 1e12)


@pytest.mark.parametrize(
    "name", ["", "Xeon Gold 6140", "TPU v4", "RTX A1000", "Graphics Device", "A4000", "M4000"]
)
def test_find_device_rejects_similar_names(name: str) -> None:
    assert find_device(name) is None


def test_device_peak_of_fp32_allows_tf32() -> None:
    device = find_device("A100")
    assert device is not None and device.peak("fp32") == 156e12 and device.peak("amp") == 312e12
    assert device.peak("fp4") is None


def test_implausible_reason_names_flops_above_the_peak() -> None:
    dimensions = {"device": "NVIDIA T4", "precision": "fp16", "devices": 1}
    assert implausible_reason(dimensions, {"flops": 60e12}) == ""
    assert implausible_reason(dimensions, {"flops": 90e12}) == "90 TFLOP/s exceeds the peak of 65"
    assert implausible_reason(dimensions | {"devices": 2}, {"flops": 90e12}) == ""


@pytest.mark.parametrize(
    ("threads", "flags", "sold_teraflops"),
    [
        (2, ["avx", "avx2", "fma"], {"fp32": 0.118}),  # two cores of an EPYC 7003 at 3.7 GHz
        (
            384,
            ["avx", "avx2", "avx512f", "avx512_bf16", "avx512_vnni"],
            {"fp32": 45.5, "bf16": 91, "int8": 182},
        ),
        (
            48,
            ["avx", "avx512f", "amx_bf16", "amx_int8"],
            {"bf16": 187, "int8": 374},
        ),  # of 48 cores at 3.8 GHz
    ],
)
def test_processor_peaks_exceed_every_real_processor(
    threads: int, flags: list[str], sold_teraflops: dict[str, float]
) -> None:
    device = processor_peaks({"threads": threads, "vector_flags": flags})
    for precision, teraflops in sold_teraflops.items():
        assert (
            implausible_reason({"precision": precision}, {"flops": teraflops * 1e12}, device) == ""
        )
        assert "exceeds the peak" in implausible_reason(
            {"precision": precision}, {"flops": 10 * teraflops * 1e12}, device
        )


@pytest.mark.parametrize(
    "machine",
    [
        {},
        {"threads": None, "vector_flags": ["avx"]},
        {"threads": 8},
        {"threads": 64, "vector_flags": ["asimd", "sve"]},
    ],
)
def test_processor_peaks_are_none_for_an_unknown_processor(machine: dict[str, Any]) -> None:
    assert processor_peaks(machine) is None and implausible_reason({}, {"flops": 1e18}, None) == ""


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
