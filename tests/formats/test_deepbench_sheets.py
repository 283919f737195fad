"""DeepBench's spreadsheets."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from steptime.formats import Reading
from workbooks import workbook

Read = Callable[..., Reading]


ROWS = [
    ["Precision", "Float"],
    [
        "Dense Matrix Multiplication",
        "",
        "M",
        "N",
        "K",
        "A Transpose",
        "B Transpose",
        "",
        "Time (msec)",
        "TERAFLOPS",
    ],
    ["", "", "1760", "16", "1760", "N", "T", "", "0.038", "2.6085"],
    ["Convolution"],
    [
        "",
        "",
        "W",
        "H",
        "C",
        "N",
        "K ",
        "R",
        "S",
        "pad_h",
        "pad_w",
        "Vertical stride",
        "Horizontal stride",
        "Forward (msec)",
        "wrt Inputs (msec)",
        "wrt Parameters (msec)",
        "",
        "P",
        "Q",
    ],
    [
        "",
        "",
        "700",
        "161",
        "1",
        "4",
        "32",
        "5",
        "20",
        "0",
        "0",
        "2",
        "2",
        "0.142",
        "N/A*",
        "0.301",
        "",
        "78.5",
        "340.5",
    ],
    [
        "",
        "",
        "700",
        "161",
        "1",
        "8",
        "32",
        "5",
        "20",
        "0",
        "0",
        "2",
        "2",
        "",
        "",
        "",
        "",
        "79",
        "341",
    ],
    [
        "All-Reduce",
        "",
        "Size # floats",
        "# chips / accelerator cards",
        "",
        "",
        "Mean All Reduce Time (msec)",
    ],
    ["", "", "100000", "2", "", "", "0.1019"],
]


BOOK = workbook({"Results FP32": ROWS, "Specs": [["GPU Model", "NVIDIA V100"]]})


def test_rows_and_passes_are_runs(read: Read) -> None:
    found = read("train/DeepBench_NV_V100.xlsx", BOOK)
    assert found.source == "deepbench_sheets"
    assert [run.location for run in found.runs] == [
        "Results FP32, row 3",
        "Results FP32, row 6, forward",
        "Results FP32, row 6, backward weights",
        "Results FP32, row 9",
    ]
    assert [skipped.location for skipped in found.skipped] == ["Results FP32, row 7"]


def test_flops_follow_from_the_shapes(read: Read) -> None:
    gemm, convolution, *_ = read("train/DeepBench_NV_V100.xlsx", BOOK).runs
    assert gemm.metrics == pytest.approx(
        {"step_time": 38e-6, "flops": 2 * 1760 * 16 * 1760 / 38e-6}
    )
    assert (
        gemm.dimensions["shape"] == "m1760 n16 k1760 NT"
        and gemm.dimensions["device"] == "NVIDIA V100"
    )
    assert convolution.more["output"] == [341, 79]
    assert convolution.metrics["flops"] == pytest.approx(2 * 4 * 32 * 5 * 20 * 341 * 79 / 142e-6)


def test_fractional_output_size_is_quarantined(read: Read) -> None:
    reasons = [run.quarantine for run in read("train/DeepBench_NV_V100.xlsx", BOOK).runs]
    assert reasons[1] == reasons[2] == "the sheet's output size is no whole number: P=78.5, Q=340.5"
    assert not reasons[0] and not reasons[3]


def test_ranks_of_a_collective_are_its_devices(read: Read) -> None:
    run = read("train/DeepBench_NV_V100.xlsx", BOOK).runs[3]
    assert run.dimensions["devices"] == 2 and run.metrics["bandwidth"] == pytest.approx(
        400_000 / 101.9e-6
    )
