"""Peaks of devices by their makers, and limits of processors by their units."""

from __future__ import annotations

from typing import Any

import pytest

from steptime.analysis.device_peaks import DEVICES, fastest_device, find_device, processor_peaks
from steptime.core.case import CHOICES


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


def test_claimed_peak_of_fp32_allows_tf32() -> None:
    device = find_device("A100")
    assert device is not None and device.claimed_peak("fp32") == 156e12
    assert device.claimed_peak("amp") == 312e12 and device.claimed_peak("fp4") is None


def test_peak_of_fp32_excludes_tf32() -> None:
    device = find_device("A100")
    assert device is not None and device.peak("fp32") == 19.5e12
    assert device.peak("tf32") == 156e12


@pytest.mark.parametrize("precision", CHOICES["precision"])
def test_peak_of_every_precision_is_at_least_that_of_fp32(precision: str) -> None:
    for _, device in DEVICES:
        assert device.peak(precision) >= device.peak("fp32") > 0


@pytest.mark.parametrize(
    ("machine", "sold_teraflops"),
    [
        # Two cores of an EPYC 7003 at 3.7 GHz.
        ({"threads": 2, "vector_flags": ["avx", "avx2", "fma"]}, {"fp32": 0.237}),
        (
            {"cores": 192, "threads": 384, "vector_flags": ["avx", "avx2", "avx512f"]},
            {"fp32": 45.5, "bf16": 91, "int8": 182},
        ),
        # 48 cores with AMX at 3.8 GHz.
        (
            {"threads": 48, "vector_flags": ["avx", "avx512f", "amx_bf16", "amx_int8"]},
            {"bf16": 187, "int8": 374},
        ),
        # 72 cores of a Grace at 3.1 GHz.
        (
            {"threads": 72, "architecture": "aarch64", "vector_flags": ["asimd", "sve"]},
            {"fp32": 7.1, "bf16": 28.6, "int8": 57},
        ),
        ({"threads": 2, "architecture": "x86_64"}, {"fp32": 0.06}),
    ],
)
def test_processor_peaks_exceed_every_real_processor(
    machine: dict[str, Any], sold_teraflops: dict[str, float]
) -> None:
    device = processor_peaks(machine)
    assert device is not None
    for precision, teraflops in sold_teraflops.items():
        assert teraflops < device.peak(precision) / 1e12 < 5 * teraflops


def test_processor_peaks_use_the_clock_that_the_machine_reports() -> None:
    flags = ["avx", "avx2", "fma"]
    device = processor_peaks({"cores": 2, "vector_flags": flags, "clock_most_mhz": 3700})
    # Two units of eight lanes, a multiplication and an addition each.
    assert device is not None and device.peak("fp32") == pytest.approx(2 * 3.7e9 * 32)


def test_processor_peaks_count_cores_not_threads() -> None:
    machine = {"threads": 8, "cores": 4, "vector_flags": ["avx"]}
    device, half = processor_peaks(machine), processor_peaks(machine, threads=2)
    assert device is not None and half is not None
    assert device == processor_peaks({**machine, "threads": 4})
    assert device.peak("fp32") == pytest.approx(2 * half.peak("fp32"))


@pytest.mark.parametrize("machine", [{}, {"threads": None, "vector_flags": ["avx"]}])
def test_processor_peaks_are_none_without_a_count_of_cores(machine: dict[str, Any]) -> None:
    assert processor_peaks(machine) is None


def test_processor_peaks_of_unknown_instructions_assume_the_widest() -> None:
    unknown = processor_peaks({"threads": 8})
    widest = processor_peaks({"threads": 8, "vector_flags": ["avx", "avx512f"]})
    assert unknown == widest


def test_fastest_device_exceeds_all_others() -> None:
    for _, device in DEVICES:
        for precision in CHOICES["precision"]:
            assert fastest_device().peak(precision) >= device.peak(precision)
