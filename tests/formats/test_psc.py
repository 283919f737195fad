"""PSC's Deep MNIST."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from steptime.formats import Reading, Skipped
from steptime.formats.psc import HEAD, parse_name, write

Read = Callable[..., Reading]


LOG = """+ scontrol show jobid=3080006
JobId=3080006 JobName=tf_CNN_MNIST
   StartTime=2018-06-05T10:14:13 EndTime=2018-06-05T10:29:15
   Partition=GPU-shared AllocNode:Sid=br006:26588
   NodeList=gpu013
   NumNodes=1 NumCPUs=14
   Gres=gpu:k80:2 Reservation=(null)
test accuracy 0.9917
Mean Time Per Step : 0.00954432297945
Mean Speed : 5238.71626177Images/Sec
speed uncertainty : 0.86728809406
Speed Jitter : 73.5046674466
"""


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("2018-06-05-k80:2:local", {"device": "k80", "devices": 2, "staging": "local"}),
        ("20180531-k80:1:scratch", {"device": "k80", "devices": 1, "staging": "scratch"}),
        (
            "2018-06-14-GPU-p100:4:128:local:IN",
            {"device": "p100", "devices": 4, "batch": 128, "towers": "IN"},
        ),
        (
            "2018-07-01-CPU-RM:E5-2695:28:64:scratch",
            {"device": "E5-2695", "cores": "28", "batch": 64, "devices": 1},
        ),
        (
            "2018-07-24-CPU-GPU_E5-2683-V4_1_128_local",
            {"device": "E5-2683-V4", "cores": "1", "batch": 128},
        ),
    ],
)
def test_parse_name_knows_five_grammars(name: str, told: dict[str, Any]) -> None:
    found = parse_name(name)
    assert {key: found[key] for key in told} == told


def test_log_has_its_numbers_and_its_node(read: Read) -> None:
    run = read("results/2018-06-05-k80:2:local", LOG).runs[0]
    assert run.metrics == {
        "step_time": 0.00954432297945,
        "throughput": 5238.71626177,
        "speed_uncertainty": 0.86728809406,
        "jitter": 73.5046674466,
        "accuracy": 0.9917,
        "mean_time": 0.00954432297945,
        "mean_speed": 5238.71626177,
    }
    assert run.dimensions["effective_batch"] == 50 and run.dimensions["server"] == "gpu013"
    assert run.started == "2018-06-05T10:14:13" and "one tower" in run.defects[0]


def test_job_over_its_time_limit_is_a_failure(read: Read) -> None:
    text = (
        LOG.split("test accuracy")[0]
        + "slurmstepd: error: *** JOB 3 ON gpu1 CANCELLED AT 2018 DUE TO TIME LIMIT ***\n"
    )
    run = read("results/2018-06-11-k80:1:local", text).runs[0]
    assert (
        run.failure == "Slurm's time limit"
        and run.status == "failed"
        and run.dimensions["device"] == "k80"
    )


def test_speed_of_one_gpu_is_the_speed_per_device(read: Read) -> None:
    run = read("results/2018-06-14-GPU-k80:2:50:local:IN", LOG).runs[0]
    assert "throughput" not in run.metrics and run.metrics["throughput_per_device"] == 5238.71626177


def test_write_makes_a_table_of_today() -> None:
    row = {
        "id": "a",
        "model": "deepmnist",
        "phase": "training",
        "mean_speed": 8732.9,
        "mean_time": 0.0057,
        "jitter": 7.5,
    }
    row |= {
        "throughput": 9000.0,
        "speed_uncertainty": 6.3,
        "device": "p100",
        "devices": 2.0,
        "data": "scratch",
    }
    (page,) = write([row])
    assert re.fullmatch(r"\d{4}-\d\d-\d\d:TF_PERFORMANCE_RESULTS\.csv", page.name)
    assert page.data.decode() == f"{HEAD}\n0,8732.9,0.0057,6.3,7.5,p100,2,$SCRATCH\n"


def test_table_reads_back_equal(read: Read) -> None:
    first = "0,8732.9,0.0057254,6.3,760.2,p100,2,$SCRATCH"
    second = "1,5250.9,0.0095221,0.7,65.7,k80,1,$LOCAL"
    text = f"{HEAD}\n{first}\n{second}\n"
    runs = read("2018-06-05:TF_PERFORMANCE_RESULTS.csv", text).runs
    (page,) = write([{"id": run.id, **run.dimensions, **run.metrics} for run in runs])
    assert page.data.decode() == text


def test_write_skips_other_networks() -> None:
    (skipped,) = write([{"id": "a", "model": "resnet50", "phase": "training", "throughput": 1.0}])
    assert isinstance(skipped, Skipped) and "no column for other networks" in skipped.reason


def test_table_rows_are_runs(read: Read) -> None:
    head = (
        ",mean_speed,Mean_Time_Per_Step,speed_uncertainty,Speed_Jitter,"
        "gpu_type,num_gpu,staged_from\n"
    )
    found = read(
        "2018-06-05:TF_PERFORMANCE_RESULTS.csv",
        head + "0,8732.9,0.0057254,6.3,760.2,p100,2,$SCRATCH\n1,,,,,k80,1,\n",
    )
    assert (
        found.runs[0].dimensions["data"] == "scratch"
        and found.runs[0].dimensions["effective_batch"] == 50
    )
    assert found.skipped[0].reason == "no speed: ''"
