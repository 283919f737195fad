"""convnet-benchmarks' logs."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from steptime.formats import Reading

Read = Callable[..., Reading]


def test_torch_log_has_three_passes_and_their_sum(read: Read) -> None:
    text = """Running on device: GeForce GTX TITAN X
ModelType: AlexNet\tKernels: cudnn\tInput shape: 128x3x224x224
cudnn                                   :updateOutput():      27.65
cudnn                                :updateGradInput():      24.32
cudnn                              :accGradParameters():      28.99
cudnn                                          :Forward:      27.65
cudnn                                            :TOTAL:      80.96
"""
    runs = read("torch7/imagenet_winners/output.log", text).runs
    assert [run.dimensions["phase"] for run in runs] == [
        "forward",
        "backward inputs",
        "backward weights",
        "training",
    ]
    assert runs[3].metrics == pytest.approx({"step_time": 0.08096, "throughput": 128 / 0.08096})
    assert (
        runs[3].dimensions["device"] == "GeForce GTX TITAN X"
        and runs[3].dimensions["model"] == "AlexNet"
    )


def test_tensorflow_mean_is_corrected_and_deviation_dropped(read: Read) -> None:
    text = "2016-04-25 13:47:01.185530: Forward across 100 steps, 0.099 +/- 0.010 sec / batch\n"
    run = read("tensorflow/output_alexnet.log", text).runs[0]
    assert run.metrics["step_time"] == pytest.approx(0.1) and "99 steps" in run.defects[0]
    assert run.more == {"printed_step_time": 0.099, "printed_deviation": 0.01}


def test_caffe_log_has_layers_and_averages(read: Read) -> None:
    text = """I0228 net.cpp:113] Top shape: 128 96 55 55 (37171200)
name: "alexnet"
I0228 caffe.cpp:334] *** Benchmark begins ***
I0228 caffe.cpp:369]      conv1\tforward: 4.6583 ms.
I0228 caffe.cpp:377] Average Forward pass: 42.405 ms.
I0228 caffe.cpp:381] Average Forward-Backward: 128.729 ms.
I0228 caffe.cpp:384] *** Benchmark ends ***
"""
    forward, whole, layer = read("caffe/output_alexnet.log", text).runs
    assert (
        forward.metrics["step_time"] == pytest.approx(0.042405)
        and layer.dimensions["operator"] == "conv1"
    )
    assert whole.dimensions["phase"] == "training" and whole.metrics["throughput"] == pytest.approx(
        128 / 0.128729
    )


def test_neon_networks_follow_from_their_order(read: Read) -> None:
    block = (
        "|    Func     |    Mean     |   Median    |\n| fprop       |  28.4  | "
        " 28.3  |  27.9  |  28.8  |    msec     |\n| iteration   |  87.3  |  "
        "87.2  |  86.2  |  88.1  |    msec     |\n"
    )
    runs = read("nervana/output_fp16.log", block * 2).runs
    assert [run.dimensions["model"] for run in runs] == [
        "alexnet",
        "alexnet",
        "overfeat",
        "overfeat",
    ]
    assert {run.dimensions["precision"] for run in runs} == {"fp16"}


def test_theano_failure_is_a_failed_run(read: Read) -> None:
    text = """CONFIG: input = 3 x 128 x 128 * ker = 3 x 96 x 11 x 11 ( bs = 128 , stride = 1 )
conv2d_fft fprop: FAILED ('scikits.cuda is needed',)
(auto) GpuCorrMM          ==> fprop         ==>      91
"""
    failed, good = read("theano/output.log", text).runs
    assert "scikits.cuda" in failed.failure and failed.dimensions["mode"] == "conv2d_fft"
    assert good.metrics["step_time"] == pytest.approx(0.091) and good.dimensions[
        "shape"
    ].startswith("input 3x128x128")
