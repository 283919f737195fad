"""What the tools under SuperBench print."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from steptime.formats import Reading

Read = Callable[..., Reading]


def test_nccl_times_are_out_of_place(read: Read) -> None:
    text = """# nThread 1 nGpus 2
#   Rank  0 Pid 1 on localhost device  0 [0x00] A100
#   Rank  1 Pid 1 on localhost device  1 [0x00] A100
#       size         count    type   redop     time   algbw   busbw  error     time   algbw   \
busbw  error
        4096          1024   float     sum    35.92    0.11    0.20    N/A    36.11    0.11    \
0.20    N/A
"""
    run = read("nccl_allreduce.log", text).runs[0]
    assert run.metrics == pytest.approx({"step_time": 35.92e-6, "bandwidth": 0.11e9})
    assert (
        run.dimensions["devices"] == 2
        and run.dimensions["operator"] == "allreduce"
        and run.more["bus_bandwidth"] == 0.2e9
    )


def test_copy_beyond_the_memory_bandwidth_is_quarantined(read: Read) -> None:
    text = """ Device 0: Tesla V100
bandwidthTest-D2D, Bandwidth = %s GB/s, Time = 0.1 s, Size = 1000 bytes, NumDevsUsed = 1
"""
    assert not read("a.log", text % "740.0").runs[0].quarantine
    assert read("a.log", text % "7400.0").runs[0].quarantine == "7400 GB/s exceeds the peak of 1134"


def test_fio_has_reads_and_writes(read: Read) -> None:
    text = (
        '{"fio version": "fio-3.16", "jobs": [{"jobname": "a", "read": '
        '{"bw_bytes": 348743777, "iops": 85138.9, "lat_ns": {"percentile": '
        '{"99.000000": 2000}}}, "write": {"bw_bytes": 0}}]}'
    )
    run = read("disk.log", text).runs[0]
    assert run.metrics == pytest.approx(
        {"bandwidth": 348743777, "throughput": 85138.9, "latency_p99": 2e-6}
    )


def test_trtexec_without_latency_is_a_failure(read: Read) -> None:
    text = """[I] === Model Options ===
[I] Model: r/resnet50.onnx
[I] Precision: FP32+INT8
[I] Timing trace has 0 queries over 3 s
"""
    run = read("tensorrt.log", text).runs[0]
    assert (
        run.failure == "no latency: Timing trace has 0 queries over 3 s"
        and run.dimensions["precision"] == "int8"
    )


def test_megatron_iterations_are_runs(read: Read) -> None:
    text = """Megatron-DeepSpeed
vm: iteration  1/ 5 | elapsed time per iteration (ms): 76015.3 | global batch size:  2048 | lm \
loss: 1.1E+01 |
"""
    assert read("m.log", text).runs[0].metrics == pytest.approx(
        {"step_time": 76.0153, "throughput": 2048 / 76.0153, "loss": 11.0}
    )


def test_stream_copies_and_latencies_are_runs(read: Read) -> None:
    assert read(
        "s.log",
        "STREAM version $Revision: 5.10 $\nCopy:          108180.5     "
        "0.017811     0.017748     0.017950\n",
    ).runs[0].metrics == {"bandwidth": 108180.5e6}
    assert read("c.log", "gpu0_to_gpu1_by_dma 279.287\n").runs[0].metrics[
        "bandwidth"
    ] == pytest.approx(279.287e9)
    assert read("d.log", "Latency of step 0: 2.0 ms\nLatency of step 1: 4.0 ms\n").runs[0].metrics[
        "step_time"
    ] == pytest.approx(0.003)
