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


def test_make_row_of_full_precision_has_no_accuracy_loss(record_of: Callable[..., Record]) -> None:
    assert make_row(record_of())["task_loss"] == 0


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


def test_make_row_quarantines_more_arithmetic_than_the_board_can_do(
    record_of: Callable[..., Record],
) -> None:
    work = {"fingerprint": "f", "unit": "images", "units_per_step": 32}
    found = [
        make_row(
            record_of(device="cuda:0", machine=BOARDS, network={**work, "flops_per_step": flops})
        )["plausible"]
        for flops in (10**6, 10**15)
    ]
    assert found == ["yes", "no"]


PROCESSOR = {"threads": 2, "vector_flags": ["avx", "avx2", "fma"]}


@pytest.mark.parametrize(
    ("machine", "nodes", "flops_per_second", "plausible"),
    [
        (PROCESSOR, 1, 1e12, "yes"),
        (PROCESSOR, 1, 5e12, "no"),
        (PROCESSOR, 2, 5e12, "yes"),
        ({}, 1, 5e12, "yes"),
    ],
)
def test_make_row_quarantines_more_arithmetic_than_the_processor_can_do(
    record_of: Callable[..., Record],
    machine: dict[str, Any],
    nodes: int,
    flops_per_second: float,
    plausible: str,
) -> None:
    """4.1 TFLOP/s is what two threads with AVX cannot pass, were every layer a convolution."""
    work = {"fingerprint": "f", "unit": "images", "units_per_step": 32, "flops_per_step": 10**9}
    ranks = {"machine": machine, "nodes": nodes, "devices": 2, "exchange": "allreduce"}
    slow = make_row(record_of(**ranks, network=work))["flops"]
    fast = {**work, "flops_per_step": 10**9 * flops_per_second / slow}
    assert make_row(record_of(**ranks, network=fast))["plausible"] == plausible


def test_make_row_quarantines_unsynchronised_steps(record_of: Callable[..., Record]) -> None:
    assert make_row(record_of(checks={"forced_share": 0.9}))["plausible"] == "no"
    assert make_row(record_of(steady=False))["plausible"] == "yes"  # noisy, and true
