"""optimum-benchmark."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from steptime.formats import Reading

Read = Callable[..., Reading]


FULL = """experiment_name,backend.name,backend.version,backend.torch_dtype,benchmark.name,\
benchmark.input_shapes.batch_size,model,environment.gpus,forward.latency(s),\
forward.throughput(samples/s),forward.peak_memory(MB),decode.throughput(tokens/s)
fp16,pytorch,2.1.1+cu118,float16,inference,1,NousResearch/Llama-2-7b-hf,"['NVIDIA A100-SXM4-80GB', \
'NVIDIA A100-SXM4-80GB']",0.0336,29.8,15239,38.7
"""
YAML = (
    "backend:\n  name: pytorch\n  torch_dtype: float16\n  _target_: "
    "optimum_benchmark.backends.x\nbenchmark:\n  name: inference\n  "
    "input_shapes:\n    batch_size: 4\nmodel: llama\nenvironment:\n  "
    "gpus:\n  - NVIDIA A100\n"
)


def test_every_phase_of_a_row_is_a_run(read: Read) -> None:
    forward, decode = read("artifacts/full_report.csv", FULL).runs
    assert forward.metrics == pytest.approx(
        {"throughput": 29.8, "step_time": 0.0336, "memory": 15239e6}
    )
    assert forward.dimensions["unit"] == "samples" and decode.dimensions["unit"] == "tokens"
    assert (
        forward.dimensions["device"] == "NVIDIA A100-SXM4-80GB"
        and forward.dimensions["devices"] == 2
    )
    assert forward.dimensions["precision"] == "fp16" and decode.location == "line 2, decode"


def test_short_report_beside_the_full_one_is_skipped(read: Read) -> None:
    text = (
        "experiment_name,Batch Size,Forward Latency (s),Forward Throughput "
        "(samples/s)\na,8,0.5,16\n"
    )
    assert not read("artifacts/short_report.csv", text, {"full_report.csv": FULL}).runs
    assert read("artifacts/short_report.csv", text).runs[0].metrics["throughput"] == 16


def test_settings_come_from_the_file_beside_the_results(read: Read) -> None:
    run = read(
        "fp16/4/inference_results.csv",
        "forward.latency(s),forward.throughput(samples/s)\n0.1,40\n",
        {"hydra_config.yaml": YAML},
    ).runs[0]
    assert run.dimensions["model"] == "llama" and run.dimensions["replica_batch"] == 4
    assert run.dimensions["device"] == "NVIDIA A100" and run.dimensions["precision"] == "fp16"


def test_settings_without_results_are_a_failure(read: Read) -> None:
    run = read("fp16/128/hydra_config.yaml", YAML).runs[0]
    assert run.failure.startswith("settings without results") and run.dimensions["model"] == "llama"
    assert not read("fp16/4/hydra_config.yaml", YAML, {"inference_results.csv": "x"}).runs


def test_report_has_its_percentiles(read: Read) -> None:
    latency = {
        "unit": "s",
        "mean": 11.3,
        "p50": 11.2,
        "p90": 11.4,
        "p99": 11.5,
        "stdev_": 1.1,
        "count": 10,
    }
    text = json.dumps(
        {
            "load": None,
            "forward": {"latency": latency, "throughput": {"unit": "samples/s", "value": 5.6}},
        }
    )
    found = read("benchmark_report.json", text)
    assert found.runs[0].metrics == {
        "step_time": 11.3,
        "throughput": 5.6,
        "latency_p50": 11.2,
        "latency_p90": 11.4,
        "latency_p99": 11.5,
    }
    assert found.skipped[0].location == "load"
