"""MLPerf Training's logs of three eras."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from steptime.formats import Reading
from steptime.formats._writer import Page, read_back
from steptime.formats.mlperf_training_log import write

Read = Callable[..., Reading]


def line(key: str, time: float, value: object = None, **metadata: object) -> str:
    return (
        ":::MLLOG "
        + json.dumps(
            {"namespace": "", "time_ms": time, "key": key, "value": value, "metadata": metadata}
        )
        + "\n"
    )


LOG = (
    line("submission_benchmark", 0, "resnet")
    + line("global_batch_size", 1.5e12, 2496)
    + line("seed", 1.5e12, 7)
    + "0: "
    + line("run_start", 1.5e12)
    + line("eval_accuracy", 1.50001e12, 0.5)
    + line("eval_accuracy", 1.50006e12, 0.76)
    + line("run_stop", 1.50006e12, status="success")
)
SYSTEM = (
    '{"system_name": "8xV100", "number_of_nodes": "2", '
    '"accelerators_per_node": "8", "accelerator_model_name": "NVIDIA V100",'
    ' "framework": "tf2.0"}'
)


def test_time_to_accuracy_is_from_run_start_to_run_stop(read: Read) -> None:
    run = read("mlperf-training-v0.7/Google/results/gpu/resnet/result_0.txt", LOG).runs[0]
    assert run.metrics == pytest.approx({"time_to_accuracy": 60_000.0, "accuracy": 0.76})
    assert (
        run.dimensions["effective_batch"] == 2496
        and run.dimensions["suite"] == "MLPerf Training v0.7"
    )
    assert (
        run.more["evaluations"] == [[10_000.0, 0.5], [60_000.0, 0.76]]
        and run.started == "2017-07-14T02:40:00+00:00"
    )


def test_system_is_read_from_its_description(read: Read) -> None:
    name = "training-v0.7/Google/results/gpu/resnet/result_0.txt"
    run = read(name, LOG, {"../../../systems/gpu.json": SYSTEM}).runs[0]
    assert (
        run.dimensions["devices"] == 16
        and run.dimensions["nodes"] == 2
        and run.dimensions["device"] == "NVIDIA V100"
    )
    assert (
        run.dimensions["framework"] == "tensorflow" and run.dimensions["framework_version"] == "2.0"
    )


def test_run_without_its_end_failed(read: Read) -> None:
    run = read("result_0.txt", LOG.split(":::MLLOG" + LOG.rsplit(":::MLLOG", 1)[1])[0]).runs[0]
    assert (
        run.failure == "no run_stop: the run did not end" and "time_to_accuracy" not in run.metrics
    )


def test_aborted_run_failed(read: Read) -> None:
    run = read("result_0.txt", LOG.replace('"success"', '"aborted"')).runs[0]
    assert run.failure == "the run ended with the status aborted"


def test_mll_log_is_read(read: Read) -> None:
    text = """:::MLL 1558640001.5 submission_benchmark: {"value": "resnet", "metadata": {}}
:::MLL 1558640002.0 run_start: {"value": null, "metadata": {}}
:::MLL 1558640102.0 eval_accuracy: {"value": {"value": 0.75}, "metadata": {}}
:::MLL 1558640102.0 run_stop: {"value": null, "metadata": {"status": "success"}}
"""
    assert read("result_0.txt", text).runs[0].metrics == {
        "accuracy": 0.75,
        "time_to_accuracy": 100.0,
    }


def test_mlp_log_is_read(read: Read) -> None:
    text = """:::MLPv0.5.0 resnet 1541000000.0 (main.py:1) run_start
:::MLPv0.5.0 resnet 1541000050.0 (main.py:9) eval_accuracy: {"epoch": 4, "value": 0.749}
:::MLPv0.5.0 resnet 1541000050.0 (main.py:9) run_stop: {"success": true}
"""
    assert read("result_0.txt", text).runs[0].metrics == {
        "accuracy": 0.749,
        "time_to_accuracy": 50.0,
    }


def test_accuracy_of_a_language_model_is_its_loss(read: Read) -> None:
    run = read("result_0.txt", LOG.replace('"resnet"', '"llama2_70b_lora"')).runs[0]
    assert run.metrics["loss"] == 0.76 and "accuracy" not in run.metrics


def test_damaged_lines_are_counted(read: Read) -> None:
    found = read("result_0.txt", LOG + ':::MLLOG {"key": "torn\n')
    assert found.skipped[0].reason == "1 lines that cannot be read" and len(found.runs) == 1


def test_log_of_the_speed_alone_is_no_failure(read: Callable[..., Reading]) -> None:
    line = (
        ':::MLLOG {"namespace": "", "time_ms": 1, "key": "tracked_stats", '
        '"value": {"throughput": 5.0}}\n'
    )
    (run,) = read("result_0.txt", line).runs
    assert (run.failure, run.metrics) == ("", {"throughput": 5.0})


CPU_ROW: dict[str, Any] = {
    "id": "a",
    "model": "resnet50",
    "phase": "training",
    "device": "AMD EPYC 7763",
    "devices": 2.0,
    "nodes": 1.0,
    "unit": "images",
    "throughput": 10.0,
    "server": "node1",
}
ON_CPU = {"accelerators": 0, "processor": "AMD EPYC 7763", "processors_per_node": 1}
ON_GPU = {"accelerators": 2, "processor": "AMD EPYC 7763", "processors_per_node": 1}


def description(**changes: Any) -> dict[str, Any]:
    """The system's description of a written row."""
    pages = [page for page in write([{**CPU_ROW, **changes}]) if isinstance(page, Page)]
    (page,) = [page for page in pages if "/systems/" in page.name]
    described: dict[str, Any] = json.loads(page.data)
    return described


@pytest.mark.parametrize("changes", [{"hardware": ON_CPU}, {}])
def test_write_of_a_cpu_run_has_no_accelerators(changes: dict[str, Any]) -> None:
    """Two ranks on one processor are neither two accelerators nor two processors."""
    described = description(**changes)
    assert described["accelerators_per_node"] == 0 and described["accelerator_model_name"] == ""
    assert described["host_processor_model_name"] == "AMD EPYC 7763"
    assert described.get("host_processors_per_node") == (1 if changes else None)


def test_write_of_a_gpu_run_has_accelerators_and_its_host() -> None:
    described = description(device="Some New Board", hardware=ON_GPU)
    assert described["accelerators_per_node"] == 2
    assert described["accelerator_model_name"] == "Some New Board"
    assert described["host_processor_model_name"] == "AMD EPYC 7763"


def test_write_of_a_cpu_run_is_read_as_a_cpu() -> None:
    pages = [page for page in write([{**CPU_ROW, "hardware": ON_CPU}]) if isinstance(page, Page)]
    row = read_back("mlperf_training_log", pages)["a"]
    assert (row["device"], row["devices"]) == ("AMD EPYC 7763", 1)
