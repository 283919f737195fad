"""HPE DLBS."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from steptime.formats import Reading, Skipped
from steptime.formats._writer import Page, read_back
from steptime.formats.dlbs import write

Read = Callable[..., Reading]
LOG = """Running subprocess
__exp.status__="ok"
__exp.framework__="nvtfcnn"
  __exp.framework_ver__= "1.8.0"
__exp.model__="resnet50"
__exp.phase__="training"
__exp.dtype__="float32"
__exp.num_gpus__=2
__exp.replica_batch__=4
__exp.effective_batch__=8
__pytorch.__master_addr__="localhost"
name: GeForce RTX 2080 SUPER major: 7 minor: 5
__results.start_time__= "2019-10-16:04:10:33:197"
__results.throughput__=120.300000
__results.time__=66.500416
__exp.status__="success"
"""


def test_log_is_one_run(read: Read) -> None:
    run = read("logs/resnet50_8.log", LOG).runs[0]
    assert run.metrics == {
        "throughput": 120.3,
        "throughput_per_device": 60.15,
        "step_time": 0.066500416,
    }
    assert run.dimensions["framework"] == "tensorflow" and run.dimensions["precision"] == "fp32"
    assert (
        run.dimensions["device"] == "GeForce RTX 2080 SUPER"
        and run.started == "2019-10-16T04:10:33.197"
    )
    assert run.status == "ok" and run.more["keys"] == 13


def test_log_without_a_result_is_a_failure_whatever_its_status(read: Read) -> None:
    run = read(
        "a.log", LOG.replace("__results.throughput__=120.300000\n__results.time__=66.500416\n", "")
    ).runs[0]
    assert run.failure == "no result; the log says success" and not run.metrics


def test_json_has_the_same_keys(read: Read) -> None:
    text = (
        '{"data": [{"exp.framework": "mxnet", "exp.model": "vgg16", '
        '"results.throughput": 10, "results.time": 800}, 7]}'
    )
    found = read("bench.json", text)
    assert (
        found.runs[0].dimensions["framework"] == "mxnet"
        and found.runs[0].metrics["step_time"] == 0.8
    )
    assert found.skipped[0].location == "data 2"


def test_session_summary_has_no_rows(read: Read) -> None:
    found = read(
        "run.log", "- DLBS benchmark session summary (this is not a performance report) -\n"
    )
    assert not found.runs and "own logs" in found.skipped[0].reason


@pytest.mark.parametrize(
    ("keys", "word"),
    [
        ({"exp.data": "synthetic", "exp.data_store": "mem"}, "synthetic"),
        ({"exp.data": "real", "exp.data_store": "mem"}, "real in DRAM"),
        ({"exp.data": "real", "exp.data_store": "weka"}, "real (weka)"),
        ({"exp.data": "real"}, "real"),
        ({"exp.data_dir": "/imagenet", "exp.data_store": "local-ssd"}, "real on SSD"),
    ],
)
def test_data_names_become_ours(read: Read, keys: dict[str, str], word: str) -> None:
    run = {"exp.framework": "mxnet", "exp.model": "vgg16", "results.throughput": 10, **keys}
    assert read("bench.json", json.dumps({"data": [run]})).runs[0].dimensions["data"] == word


@pytest.mark.parametrize(
    ("word", "keys"),
    [
        ("synthetic on device", {"exp.data": "synthetic", "steptime.data": "synthetic on device"}),
        ("synthetic", {"exp.data": "synthetic"}),
        ("real on NVMe", {"exp.data": "real", "exp.data_store": "nvme"}),
        (
            "real in DRAM, cold (memory)",
            {
                "exp.data": "real",
                "exp.data_store": "mem",
                "steptime.data": "real in DRAM, cold (memory)",
            },
        ),
        ("real (weka)", {"exp.data": "real", "exp.data_store": "weka"}),
        ("real, cold", {"exp.data": "real", "steptime.data": "real, cold"}),
        ("scratch", {"exp.data_store": "scratch"}),
        ("realm", {"exp.data_store": "realm"}),
    ],
)
def test_data_names_survive_writing_and_reading(word: str, keys: dict[str, str]) -> None:
    row = {"id": "a", "model": "resnet50", "framework": "pytorch", "data": word, "throughput": 10.0}
    (page,) = write([row])
    assert isinstance(page, Page)
    (written,) = json.loads(page.data)["data"]
    assert {key: value for key, value in written.items() if "data" in key} == keys
    assert read_back("dlbs", [page])["a"]["data"] == word


@pytest.mark.parametrize(
    ("device", "gpus", "replicas"), [("Intel(R) Xeon(R) Gold 6140", 0, 2), ("H200", 2, None)]
)
def test_write_of_a_cpu_run_has_no_gpus(device: str, gpus: int, replicas: int | None) -> None:
    row = {"id": "a", "model": "resnet50", "device": device, "devices": 2, "throughput": 10.0}
    (page,) = write([row])
    assert isinstance(page, Page)
    (written,) = json.loads(page.data)["data"]
    assert (written["exp.num_gpus"], written.get("exp.num_replicas")) == (gpus, replicas)
    assert read_back("dlbs", [page])["a"]["devices"] == 2


def test_write_skips_rows_that_no_reader_takes() -> None:
    kernel, network = {"id": "a", "operator": "gemm"}, {"id": "b", "model": "m", "throughput": 1.0}
    skipped, page = write([kernel, network])
    assert isinstance(skipped, Skipped) and skipped.location == "a"
    assert isinstance(page, Page) and list(read_back("dlbs", [page])) == ["b"]
