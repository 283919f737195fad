"""MLPerf Inference's tables."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from steptime.formats import Reading

Read = Callable[..., Reading]


ROW: dict[str, Any] = {
    "Organization": "NVIDIA",
    "Division": "closed",
    "SystemType": "datacenter",
    "SystemName": "DGX",
    "Platform": "DGX",
    "Model": "resnet50",
    "MlperfModel": "resnet",
    "Scenario": "Offline",
    "Result": 300000.0,
    "Accuracy": 76.08,
    "number_of_nodes": 2,
    "host_processor_model_name": "EPYC",
    "host_processors_per_node": 2,
    "uid": "a1",
    "accelerators_per_node": 8,
    "accelerator_model_name": "NVIDIA A100",
    "framework": "TensorRT 8.4, CUDA 11.6",
    "version": "v3.0",
    "Units": "Samples/s",
    "Result_Units": "Samples/s",
}


def one(read: Read, **changes: Any) -> Any:
    return read("table.json", json.dumps([ROW | changes])).runs[0]


def test_devices_are_those_of_all_nodes(read: Read) -> None:
    run = one(read)
    assert run.dimensions["devices"] == 16 and run.dimensions["device"] == "NVIDIA A100"
    assert run.metrics == pytest.approx({"throughput": 300000.0, "accuracy": 0.7608})
    assert (
        run.dimensions["suite"] == "MLPerf Inference v3.0 datacenter closed"
        and run.dimensions["unit"] == "samples"
    )


def test_without_accelerators_processors_are_the_devices(read: Read) -> None:
    run = one(read, accelerators_per_node=0, accelerator_model_name="N/A")
    assert run.dimensions["device"] == "EPYC" and run.dimensions["devices"] == 4


def test_latency_percentile_depends_on_the_scenario(read: Read) -> None:
    single = one(
        read, Scenario="SingleStream", Result=0.5, Units="Latency (ms)", Result_Units="Latency (ms)"
    )
    several = one(
        read, Scenario="MultiStream", Result=0.5, Units="Latency (ms)", Result_Units="Latency (ms)"
    )
    assert single.metrics["latency_p90"] == several.metrics["latency_p99"] == 0.5e-3


def test_power_and_energy_by_scenario(read: Read) -> None:
    assert one(read, Result_Power=2000.0, Result_Power_Units="Watts").metrics["power"] == 2000.0
    stream = one(
        read,
        Scenario="SingleStream",
        Units="Latency (ms)",
        Result_Units="Latency (ms)",
        Result_Power=894.0,
        Result_Power_Units="millijoules",
    )
    assert stream.metrics["energy"] == pytest.approx(0.894)


def test_repeated_uid_is_a_defect_of_both_rows(read: Read) -> None:
    found = read("table.json", json.dumps([ROW, ROW, ROW | {"uid": "b2"}]))
    assert [bool(run.defects) for run in found.runs] == [True, True, False]


def test_tokens_called_samples_are_a_defect(read: Read) -> None:
    run = one(read, Model="llama2-70b-99", Result=24000.0)
    assert run.dimensions["unit"] == "tokens" and "counted in tokens/s" in run.defects[0]


def test_row_without_any_result_is_skipped(read: Read) -> None:
    found = read("table.json", json.dumps([ROW | {"Result": None}]))
    assert not found.runs and found.skipped[0].reason == "no result: None Samples/s"


def test_earliest_tables_have_their_submitter_from_the_folder(read: Read) -> None:
    text = """system_id,benchmark,scenario,perf_metric,perf_value
T4x2_TRT,resnet50,SingleStream,90th percentile latency \\(ns\\),1258096.0
"""
    run = read("inference-v0.7/closed/Atos/results_summary.csv", text).runs[0]
    assert (
        run.metrics["latency_p90"] == pytest.approx(1.258096e-3)
        and run.dimensions["submitter"] == "Atos"
    )


def test_newest_table_has_other_column_names(read: Read) -> None:
    row = {
        "Submitter": "AMD",
        "Scenario": "Offline",
        "Model": "llama2-70b-99",
        "Performance_Result": 27803.9,
        "Performance_Units": "Tokens/s",
        "a#": 8,
        "Nodes": 1,
        "Accelerator": "MI300X",
        "weight_data_types": "fp8",
        "ID": "5.1-0001",
    }
    run = read("summary_results.json", json.dumps([row])).runs[0]
    assert (
        run.dimensions["unit"] == "tokens"
        and run.dimensions["precision"] == "fp8"
        and run.metrics == {"throughput": 27803.9}
    )
