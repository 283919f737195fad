"""MLPerf Training's tables."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from steptime.formats import Reading

Read = Callable[..., Reading]


TABLE = """division,availability,submitter,system,host_processor_model_name,host_processors_count,\
accelerator_model_name,accelerators_count,framework,notes,bert,resnet,details_url,code_url
closed,cloud,Azure,NC96,EPYC,2,NVIDIA A100,4,PyTorch NVIDIA Release 22.09,,46.25,,u,c
closed,cloud,Azure,NC96,EPYC,2,NVIDIA A100,4,MxNet,,,,u,c
"""


def test_every_benchmark_with_minutes_is_a_run(read: Read) -> None:
    found = read("training-v2.1/Azure/summary.csv", TABLE)
    run = found.runs[0]
    assert (
        len(found.runs) == 1
        and run.location == "line 2, bert"
        and run.metrics == {"time_to_accuracy": 46.25 * 60}
    )
    assert (
        run.dimensions["devices"] == 4 and run.dimensions["suite"] == "MLPerf Training v2.1 closed"
    )
    assert found.skipped[0].location == "line 3"


def test_table_of_all_rounds_has_one_result_per_row(read: Read) -> None:
    row = {
        "submitter": "H3C",
        "accelerators_count": 8,
        "accelerator_model_name": "A30",
        "Model_ID": "resnet",
        "Result": 57.7,
        "resnet": 57.7,
        "version": "3.0",
        "Accuracy": 75.9,
        "division": "closed",
    }
    run = read("a.json", json.dumps([row])).runs[0]
    assert (
        run.dimensions["model"] == "resnet"
        and run.dimensions["suite"] == "MLPerf Training v3.0 closed"
    )
    assert run.metrics == pytest.approx({"time_to_accuracy": 3462.0, "accuracy": 0.759})
