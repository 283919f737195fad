"""Records become rows that keep to the catalogue."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from factories import make_attempt
from steptime.core.cause import Cause
from steptime.core.record import Failure, Record
from steptime.index.catalogue import DIMENSIONS, METRICS
from steptime.index.rows import make_row

BESIDE = {"id", "started"}
ACCURACY = {
    "largest_relative_error": 0.02,
    "top1_agreement": 0.99,
    "top1_agreement_interval": [0.98, 0.995],
    "task": {
        "metric": "top-1 accuracy",
        "after": 0.7,
        "after_interval": [0.6, 0.78],
        "change": -0.01,
        "change_interval": [-0.015, -0.005],
    },
}


def test_make_row_has_only_names_of_the_catalogue(record_of: Callable[..., Record]) -> None:
    names = {name.removesuffix("_low").removesuffix("_high") for name in make_row(record_of())}
    assert names - BESIDE <= {*DIMENSIONS, *METRICS}


def test_make_row_has_the_mean_over_all_steps_without_an_interval() -> None:
    """Few steps of a slow process do not weigh as much as many of a fast one."""
    slow = make_attempt([8_000_000] * 40, process=0, id="slow")
    fast = make_attempt([2_000_000] * 360, process=1, id="fast")
    row = make_row(Record(attempts=(slow, fast)))
    seconds = (40 * 8e-3 + 360 * 2e-3) / 400
    assert row["mean_time"] == pytest.approx(seconds)
    assert row["mean_speed"] == pytest.approx(32 / seconds)
    assert not {"mean_time_low", "mean_time_high", "mean_speed_low", "mean_speed_high"} & set(row)


def test_make_row_has_flops_at_the_typical_step(record_of: Callable[..., Record]) -> None:
    row = make_row(record_of())
    flops = record_of().last.network["flops_per_step"]
    assert row["flops"] == pytest.approx(flops / row["step_time"])


def test_make_row_of_a_failure_has_dimensions_and_no_metric(
    record_of: Callable[..., Record],
) -> None:
    attempt = replace(
        record_of().last, measurement=None, failure=Failure(cause=Cause.CRASHED, reason="why")
    )
    found = make_row(Record(attempts=(attempt,)))
    assert found["status"] == "crashed" and not set(found) & set(METRICS)


def test_make_row_of_full_precision_without_a_task_has_no_accuracy_loss(
    record_of: Callable[..., Record],
) -> None:
    row = make_row(record_of())
    assert row.get("task_loss") is None and row.get("task_metric") is None


TASK = {"metric": "top-1 accuracy", "samples": 100, "value": 0.7, "interval": [0.6, 0.78]}


@pytest.mark.parametrize(("precision", "loss"), [("fp32", 0.0), ("fp64", None)])
def test_make_row_of_full_precision_has_its_accuracy(
    record_of: Callable[..., Record], precision: str, loss: float | None
) -> None:
    """Only fp32 is what others are compared with."""
    row = make_row(record_of(precision=precision, findings={"task": TASK}))
    assert (row["task_metric"], row["task_metric_low"], row["task_metric_high"]) == (0.7, 0.6, 0.78)
    assert row.get("task_loss") == loss


def test_make_row_leaves_out_perplexity(record_of: Callable[..., Record]) -> None:
    """The metric is better if it is higher, and perplexity is not."""
    row = make_row(record_of(findings={"task": {**TASK, "metric": "perplexity"}}))
    assert row.get("task_metric") is None and row.get("task_loss") is None


def test_make_row_of_low_precision_has_its_accuracy_loss_with_an_interval(
    record_of: Callable[..., Record],
) -> None:
    record = record_of(precision="int8")
    attempts = tuple(
        replace(attempt, findings={"accuracy": ACCURACY}) for attempt in record.attempts
    )
    found: dict[str, Any] = make_row(Record(attempts=attempts))
    assert (found["task_loss"], found["task_loss_low"], found["task_loss_high"]) == (1.0, 0.5, 1.5)
    assert round(found["disagreement"], 6) == 1 and found["logit_error"] == 0.02
    assert (found["task_metric_low"], found["task_metric_high"]) == (0.6, 0.78)


def test_make_row_of_ranks_has_devices_nodes_exchange_and_both_batches(
    record_of: Callable[..., Record],
) -> None:
    found = make_row(
        record_of(exchange="allreduce", devices=4, nodes=2, batch_size=8, interconnect="roce")
    )
    wanted = {"devices": 4, "nodes": 2, "exchange": "allreduce", "interconnect": "roce"}
    assert wanted.items() <= found.items() and (
        found["replica_batch"],
        found["effective_batch"],
    ) == (8, 32)
    assert found["throughput"] == 4 * found["throughput_per_device"]


def test_make_row_of_one_process_has_no_exchange(
    record_of: Callable[..., Record],
) -> None:
    found = make_row(record_of(devices=4, batch_size=8))
    assert (found["exchange"], found["effective_batch"]) == ("", 8)


BOARDS = {"cpu": "A processor", "gpus": [{"name": "NVIDIA H200"}, {"name": "NVIDIA H200"}]}


@pytest.mark.parametrize(
    ("case", "name"),
    [
        ({}, "A processor"),
        ({"device": "cuda:1"}, "NVIDIA H200"),
        ({"device": "cuda:9"}, "cuda:9"),
        ({"device": "cuda:0", "node_type": "h200"}, "h200"),
    ],
)
def test_make_row_names_the_processing_unit(
    record_of: Callable[..., Record], case: dict[str, Any], name: str
) -> None:
    assert make_row(record_of(machine=BOARDS, **case))["device"] == name


def test_make_row_names_the_device_of_the_case_if_the_machine_is_unknown(
    record_of: Callable[..., Record],
) -> None:
    assert make_row(record_of())["device"] == "cpu"


def test_make_row_has_board_readings_and_start_time(
    record_of: Callable[..., Record],
) -> None:
    board = {"power_w": 500.0, "temperature_c": 50.0}
    found = make_row(
        record_of(device="cuda:0", gpu=board, memory={"peak_allocated_bytes": 7}, phase="inference")
    )
    assert (found["power"], found["temperature"], found["memory"], found["start_time"]) == (
        500,
        50,
        7,
        1.75,
    )
    assert 0 < found["latency_p50"] <= found["latency_p90"]
    assert (
        make_row(record_of(device="cuda:0", gpu=board, devices=2, exchange="allreduce")).get(
            "power"
        )
        is None
    )


@pytest.mark.parametrize(("flops_per_second", "plausible"), [(1e11, "yes"), (1e13, "no")])
def test_make_row_quarantines_implausible_arithmetic(
    record_of: Callable[..., Record], flops_per_second: float, plausible: str
) -> None:
    peaks = {"cpu": {"flops_per_second": {"fp32": 1e12}, "threads": 2}}
    work = {"unit": "images", "units_per_step": 32, "least_flops_per_step": 10**6}
    slow = make_row(record_of(network={**work, "flops_per_step": 10**6}))["flops"]
    flops = 10**6 * flops_per_second / slow
    fast = {**work, "flops_per_step": flops, "least_flops_per_step": flops}
    row = make_row(record_of(machine={"peaks": peaks}, network=fast))
    assert row["plausible"] == plausible and (row["grade"] == "X") == (plausible == "no")


def test_make_row_quarantines_unsynchronised_steps(record_of: Callable[..., Record]) -> None:
    assert make_row(record_of(checks={"forced_share": 0.9}))["plausible"] == "no"
    assert make_row(record_of(steady=False))["plausible"] == "yes"  # noisy, and true
