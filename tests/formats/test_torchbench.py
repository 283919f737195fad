"""TorchBench's JSON."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from steptime.formats import Reading

Read = Callable[..., Reading]


def test_run_has_latency_and_throughput(read: Read) -> None:
    entry = {
        "name": "BERT",
        "test": "eval",
        "device": "cpu",
        "extra_args": [],
        "status": "OK",
        "batch_size": 2,
        "precision": "fp32",
        "results": {"latency_ms": 500.0},
    }
    good, bad = read("tb.json", json.dumps([entry, entry | {"status": "OOM", "results": {}}])).runs
    assert (
        good.metrics == {"step_time": 0.5, "throughput": 4.0}
        and good.dimensions["phase"] == "inference"
    )
    assert bad.failure == "status OOM"


def test_metrics_of_a_configuration_are_one_run(read: Read) -> None:
    key = (
        "model=yolov3, test=train, device=cuda, bs=8, extra_args=--precision "
        "bf16 --torchdynamo inductor, metric="
    )
    metrics = {
        key + "latencies": 22.0,
        key + "gpu_peak_mem": 2.0,
        key.replace("yolov3", "bert") + "latencies": "err",
    }
    text = json.dumps(
        {"name": "x", "environ": {"pytorch_git_version": "1", "device": "A100"}, "metrics": metrics}
    )
    good, bad = read("metrics.json", text).runs
    assert good.metrics == pytest.approx({"step_time": 0.022, "memory": 2 * 2**30})
    assert good.dimensions["precision"] == "bf16" and good.dimensions["mode"] == "compiled"
    assert (
        good.dimensions["device"] == "A100"
        and good.dimensions["phase"] == "training"
        and bad.failure == "err"
    )


def test_scores_are_one_run_for_each_domain(read: Read) -> None:
    text = json.dumps(
        [{"pytorch_version": "2.2", "score": {"total": 1062.0, "domain": {"nlp": 1000.0}}}]
    )
    assert [run.metrics["score"] for run in read("score.json", text).runs] == [1062.0, 1000.0]
