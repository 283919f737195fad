"""SuperBench's results of nodes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from steptime.formats import Reading

Read = Callable[..., Reading]

NODE = """{"node": "n1", "bert_models/pytorch-bert-base/steptime_train_float16": 83.9, \
"bert_models/pytorch-bert-base/throughput_train_float16": 382.0, "nccl-bw/allreduce_8_busbw:0": \
230.5, "gemm-flops/FP16_TC:3": 250000.0, "kernel-launch/return_code": 0, "mem-bw/return_code": 3, \
"mem-bw/H2D_Mem_BW:0": "N/A", "odd/thing": 1}
"""


def test_step_time_and_throughput_of_a_network_are_one_run(read: Read) -> None:
    run = next(run for run in read("results.jsonl", NODE).runs if run.dimensions.get("model"))
    assert run.metrics == pytest.approx({"step_time": 0.0839, "throughput": 382.0})
    assert (
        run.dimensions["model"] == "bert-base"
        and run.dimensions["precision"] == "fp16"
        and run.dimensions["server"] == "n1"
    )


def test_kernels_have_our_units(read: Read) -> None:
    metrics = {
        run.dimensions.get("operator"): run.metrics for run in read("results.jsonl", NODE).runs
    }
    assert metrics["nccl-bw"] == {"bandwidth": 230.5e9} and metrics["gemm-flops"] == {
        "flops": 250e12
    }


def test_return_code_is_a_failure_and_missing_value_is_skipped(read: Read) -> None:
    found = read("results.jsonl", NODE)
    assert [run.failure for run in found.runs if run.failure] == ["the benchmark ended with code 3"]
    assert [s.reason for s in found.skipped] == [
        "no value: 'N/A'",
        "1 metrics whose unit is not known here",
    ]


def test_load_of_a_node_is_no_result(read: Read) -> None:
    assert not read("monitor.jsonl", '{"time": "2021-12-06", "gpu_usage:0": 56}\n').runs
