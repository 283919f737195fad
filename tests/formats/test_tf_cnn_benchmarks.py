"""tf_cnn_benchmarks' output and Lambda's layout."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from steptime.formats import Reading

Read = Callable[..., Reading]

LOG = """TensorFlow:  2.3
Model:       vgg16
Dataset:     imagenet (synthetic)
Mode:        training
SingleSess:  False
Batch size:  896 global
             448 per device
Devices:     ['/gpu:0', '/gpu:1']
Data format: NCHW
Optimizer:   sgd
Variables:   replicated
Step\tImg/sec\ttotal_loss
1\timages/sec: 149.0 +/- 0.0 (jitter = 0.0)\t7.261 1593042515
10\timages/sec: 147.1 +/- 1.3 (jitter = 3.8)\t7.260 1593042523
----------------------------------------------------------------
total images/sec: 147.60
----------------------------------------------------------------
"""
NAME = "logs/7742-8xA100-SXM4-40GB_TF2_3.logs/syn-replicated-fp16-2gpus/vgg16-448/throughput/1"


def test_header_path_and_table_are_one_run(read: Read) -> None:
    run = read(NAME, LOG).runs[0]
    assert run.metrics == {
        "throughput": 147.6,
        "throughput_per_device": 73.8,
        "speed_uncertainty": 1.3,
        "jitter": 3.8,
        "loss": 7.26,
    }
    told = (
        "model",
        "phase",
        "precision",
        "device",
        "devices",
        "replica_batch",
        "effective_batch",
        "framework_version",
    )
    assert [run.dimensions[name] for name in told] == [
        "vgg16",
        "training",
        "fp16",
        "A100-SXM4-40GB",
        2,
        448,
        896,
        "2.3",
    ]


def test_temperatures_and_machine_come_from_the_neighbours(read: Read) -> None:
    around = {
        "../thermal/1": "1593042494, 70.3, 79, 81, \n",
        "../../../metadata": "CPU\t7742\nCUDA\tV11.0\nGPU 0\tA100\n",
    }
    run = read(NAME, LOG, around).runs[0]
    assert run.metrics["temperature"] == pytest.approx(80.0) and run.more["machine CUDA"] == "V11.0"


def test_run_that_stopped_early_is_a_failure_with_its_speed(read: Read) -> None:
    run = read(NAME, LOG.split("total images/sec")[0]).runs[0]
    assert run.failure == "no total: the run did not end" and run.metrics["throughput"] == 147.1


def test_lines_of_every_rank_count_once(read: Read) -> None:
    line = "10\timages/sec: 147.1 +/- 1.3 (jitter = 3.8)\t7.260 1593042523\n"
    run = read(NAME, LOG.replace(line, line * 4)).runs[0]
    assert run.more["steps"] == 2 and "every rank" in run.defects[0]


def test_files_beside_a_run_have_no_rows(read: Read) -> None:
    assert not read(
        "logs/a.logs/thermal/1", "1593042494, 70.3, 79, \n1593042496, 70.3, 80, \n"
    ).runs
    assert not read("logs/a.logs/metadata", "Memory\t31GB\nGPU 0\tGTX\nCPU\ti7\nCUDA\tV10\n").runs
