"""Records become rows that keep to the catalogue."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from steptime.core.record import Failure, Record
from steptime.guide.catalogue import DIMENSIONS, METRICS
from steptime.guide.rows import row

BESIDE = {"id", "started"}
ACCURACY = {
    "largest_relative_error": 0.02, "top1_agreement": 0.99, "top1_agreement_interval": [0.98, 0.995],
    "task": {"metric": "top-1 accuracy", "after": 0.7, "change": -0.01, "change_interval": [-0.015, -0.005]},
}  # fmt: skip


def test_a_row_has_only_names_of_the_catalogue(record_of: Callable[..., Record]) -> None:
    names = {name.removesuffix("_low").removesuffix("_high") for name in row(record_of())}
    assert names - BESIDE <= {*DIMENSIONS, *METRICS}


def test_a_failure_has_dimensions_and_no_metric(record_of: Callable[..., Record]) -> None:
    attempt = replace(record_of().last, measurement=None, failure=Failure(cause="crashed", reason="why"))
    found = row(Record(attempts=(attempt,)))
    assert found["status"] == "crashed" and not set(found) & set(METRICS)


def test_full_precision_has_no_price(record_of: Callable[..., Record]) -> None:
    assert row(record_of())["task_loss"] == 0


def test_a_low_precision_has_its_price_with_an_interval(record_of: Callable[..., Record]) -> None:
    record = record_of(precision="int8")
    attempts = tuple(replace(attempt, findings={"accuracy": ACCURACY}) for attempt in record.attempts)
    found: dict[str, Any] = row(Record(attempts=attempts))
    assert (found["task_loss"], found["task_loss_low"], found["task_loss_high"]) == (1.0, 0.5, 1.5)
    assert round(found["disagreement"], 6) == 1 and found["logit_error"] == 0.02


def test_ranks_are_told_by_devices_nodes_exchange_and_both_batches(record_of: Callable[..., Record]) -> None:
    found = row(record_of(exchange="allreduce", devices=4, nodes=2, batch_size=8, interconnect="roce"))
    wanted = {"devices": 4, "nodes": 2, "exchange": "allreduce", "interconnect": "roce"}
    assert wanted.items() <= found.items() and (found["replica_batch"], found["effective_batch"]) == (8, 32)
    assert found["throughput"] == 4 * found["throughput_per_device"]


def test_one_process_has_no_exchange_whatever_is_allocated_for_it(record_of: Callable[..., Record]) -> None:
    found = row(record_of(devices=4, batch_size=8))
    assert (found["exchange"], found["effective_batch"]) == ("", 8)
